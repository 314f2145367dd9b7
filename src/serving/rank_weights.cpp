#include "nvlsim/serving/rank_weights.hpp"

namespace nvlsim {

rank_layout ranks_of(const inference_workload& w) { return {w.tp, w.ep, w.tp * w.attention_dp}; }

precision weights_of(const inference_workload& w, weight_role r) {
  switch (r) {
    case weight_role::dense:
      return w.weights;
    case weight_role::attention:
      return w.attention_weights.value_or(w.weights);
    case weight_role::expert:
      return w.expert_weights.value_or(w.weights);
    case weight_role::sixteen_bit:
      break;
  }
  return precision::bf16;
}

}  // namespace nvlsim
