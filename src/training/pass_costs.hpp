// Prices of a training step's operations on one GPU: layers, loss head, embedding, optimizer, and the traffic
// between.
#pragma once

#include <vector>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"

namespace nvlsim {

/// Passes of micro-batches through model chunks, over all simulated ranks; more would fill the memory of a laptop.
inline constexpr double most_passes = 4e6;

/// Parts of an operation with the energy of one GPU while they run.
struct costed_parts {
  std::vector<work_part> parts;
  joules energy;

  seconds duration() const;
  /// Appends `other` `times` times (as a repeat count, not copies).
  void append(const costed_parts& other, std::int64_t times);
};

/// What the cost functions need to know; references must outlive it. Requires `s.training`.
struct training_context {
  const platform& machine;
  kernel_profile kernels;
  const training_profile& framework;
  const collective_profile& collectives;
  const model& net;
  const training_workload& work;
  token_counts tokens;
  double slowdown;  ///< of kernels: release factor and jitter

  training_context(const platform& p, const stack& s, const model& m, const training_workload& w);
};

/// A pass through one layer. `paired`: beside another micro-batch's pass, behind which token exchange hides.
costed_parts layer_pass(const training_context& c, const layer_spec& l, pass_kind what, bool paired = false);
costed_parts embedding_pass(const training_context& c, pass_kind what);
/// The LM head and the loss, `1 + mtp_layers` times.
costed_parts head_pass(const training_context& c, pass_kind what);
/// Micro-batches whose weight gradient of the LM head waits until the last stage has done all its passes: the
/// stack's `wgrad_deferral_limit` at most. None without pipeline stages, with routed experts (whose recipes do not
/// ask for it), under FSDP, with frozen weights, or where the schedule puts off weight gradients by itself.
std::int64_t deferred_head_gradients(const training_context& c);
/// Optimizer step over `local` parameters held by this GPU, of which it updates `updated`.
costed_parts optimizer_step(const training_context& c, double local, double updated);

/// Ranks that share out gradients of dense parameters, and of experts: those of data and context parallelism, of
/// one sharding group, and under DualPipe those of the opposite stage, which holds the same chunk.
comm_group gradient_group(const training_workload& w);
comm_group expert_gradient_group(const training_workload& w);

/// LoRA trains adapters of about this share of the parameters (rank 16 to 32 on attention). [assumed]
inline constexpr double lora_share = 0.002;

/// One data-parallel collective over parameters of this GPU: gradients out, or parameters back in.
priced_transfer gradient_reduction(const training_context& c, local_parameters p);
priced_transfer parameter_gather(const training_context& c, local_parameters p);
/// One activation (or its gradient) to a pipeline neighbour.
priced_transfer pipeline_send(const training_context& c, bool crosses_domain);

/// Parameters of the embedding or of the LM head on one GPU.
double local_vocabulary_parameters(const training_context& c);
/// Those with which prediction modules join their two inputs.
double local_predictor_parameters(const training_context& c);

}  // namespace nvlsim
