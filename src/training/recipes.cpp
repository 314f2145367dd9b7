// What a recipe settles where the workload does not say it.
#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"

namespace nvlsim {

bool as_deepseek(const training_workload& w) {
  return w.schedule == pipeline_schedule::dualpipe && bytes_per_element(w.gemm_precision) < 2;
}

std::pair<double, double> moment_bytes(const training_workload& w) {
  const double usual = as_deepseek(w) ? 2 : 4;
  return {w.optimizer.first_moment.value_or(usual), w.optimizer.second_moment.value_or(usual)};
}

bool fuses_router(const training_workload& w) {
  return w.router_fusion.value_or(w.task == training_task::pretrain && sends_once(w.dispatcher));
}

bool keeps_fp8_inputs(const training_workload& w) { return w.fp8_activation_inputs.value_or(as_deepseek(w)); }

double dispatched_share(const training_workload& w) {
  constexpr double block = 128, scale = 4, bf16 = 2;  // an FP32 scale for each block of values
  return as_deepseek(w) ? (1 + scale / block) / bf16 : 1;
}

bool recomputes_layer(const recompute_spec& r, std::int64_t layer, bool predicts) {
  return r.full && (!r.block || (layer < r.num_layers && !predicts));  // Megatron-LM skips prediction modules
}

}  // namespace nvlsim
