// Communication of a training step outside layers: gradients, parameters, and activations between stages.
#include "nvlsim/collectives/collectives.hpp"
#include "training/pass_costs.hpp"

namespace nvlsim {
namespace {

/// Under DualPipe the opposite stage holds copies too, in other domains unless the job fits in one.
communicator both_ends(const training_workload& w, communicator g) {
  if (w.schedule != pipeline_schedule::dualpipe) return g;
  return {g.ranks * 2, spans_domains(w.par, w.place) ? g.domains * 2 : g.domains};
}

/// A collective over dense and expert parameters, each in its own group.
priced_transfer data_collective(const training_context& c, collective kind, local_parameters p,
                                double element_bytes) {
  const auto price = [&](double parameters, communicator g) {
    if (parameters <= 0) return priced_transfer{};
    return price_transfer(c.collectives, c.machine, kind, bytes::from_base(parameters * element_bytes), g);
  };
  const communicator dense = gradient_group(c.workload), experts = expert_gradient_group(c.workload);
  priced_transfer all = price(p.dense, dense) + price(p.expert, experts);
  const training_workload& w = c.workload;
  if (w.sharding_groups == 1 || kind != collective::reduce_scatter) return all;
  // Each rank's shard is then reduced over the groups once per step; each reduction carries its share.
  const bool always =
      w.sharding == data_parallel_sharding::fsdp || w.sharding == data_parallel_sharding::optim_grads;
  const double share = always ? 1 / static_cast<double>(w.micro_batches()) : 1;
  const auto across = [&](double parameters, communicator inside, communicator g) {
    if (parameters <= 0) return priced_transfer{};
    priced_transfer t = price_transfer(c.collectives, c.machine, collective::all_reduce,
                                       bytes::from_base(parameters / inside.ranks * element_bytes), g);
    t.time *= share, t.latency *= share;
    t.traffic = scaled(t.traffic, share);
    return t;
  };
  return all + across(p.dense, dense, data_parts_group(w.par, w.place, w.sharding_groups)) +
         across(p.expert, experts, expert_parts_group(w.par, w.place, w.sharding_groups));
}

}  // namespace

communicator gradient_group(const training_workload& w) {
  return both_ends(w, data_group(w.par, w.place, w.sharding_groups));
}

communicator expert_gradient_group(const training_workload& w) {
  return both_ends(w, expert_data_group(w.par, w.place, w.sharding_groups));
}

namespace {

/// Trained parameters, as a share of those of the language model.
double trained_share(const training_context& c) {
  if (c.workload.task == training_task::lora) return lora_share;
  if (!c.workload.freeze_language) return 1;
  return static_cast<double>(tower_parameters(c.net)) / static_cast<double>(parameters(c.net));
}

}  // namespace

priced_transfer gradient_reduction(const training_context& c, local_parameters p) {
  const double share = trained_share(c);
  const collective kind = c.workload.sharding == data_parallel_sharding::replicated ? collective::all_reduce
                                                                                    : collective::reduce_scatter;
  return data_collective(c, kind, p,
                         share * (tensor_bytes(c.workload) > 2 ? 4.0 : c.framework.gradient_bytes.read()));
}

priced_transfer parameter_gather(const training_context& c, local_parameters p) {
  const double share = c.workload.sharding == data_parallel_sharding::fsdp ? 1.0 : trained_share(c);
  // Per-tensor FP8 gathers 8-bit parameters. Block formats gather 16-bit parameters and cast them by row and by
  // column.
  const double element = c.workload.gemm_precision == precision::fp8 ? 1.0 : tensor_bytes(c.workload);
  return data_collective(c, collective::all_gather, p, share * element);
}

priced_transfer pipeline_send(const training_context& c, bool crosses_domain) {
  const bytes size = bytes::from_base(
      c.tokens.sharded * static_cast<double>(c.net.hidden * c.net.residual_streams) * tensor_bytes(c.workload));
  return price_transfer(
      c.collectives, c.machine, collective::send_recv, size,
      {.ranks = 2, .domains = crosses_domain ? 2 : 1, .stride = c.workload.par.gpus() / c.workload.par.pp});
}

}  // namespace nvlsim
