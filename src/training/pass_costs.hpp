// Costs of a training step's operations on one GPU: layers, LM head, embedding, optimizer and communication.
#pragma once

#include <memory>
#include <vector>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"

namespace nvlsim {

/// Most passes of micro-batches through model chunks, over all simulated ranks. Keeps memory below that of a
/// laptop.
inline constexpr double max_passes = 4e6;
/// The same where transfers are flows. Two 405B jobs with 32,768 passes take 270 MB, one alone 2.5 kB a pass.
inline constexpr double max_passes_in_flow = 5e5;

/// Parts of an operation, and the energy of one GPU while they run.
struct costed_parts {
  std::vector<operation_part> parts;
  joules energy;

  seconds duration() const;
  /// Appends `times` repetitions of `other`, as a repeat count rather than copies.
  void append(const costed_parts& other, std::int64_t times);
};

class pass_cache;

/// Inputs of the cost functions. Everything referenced must outlive it. Requires `s.training`.
struct training_context {
  const platform& machine;
  std::shared_ptr<const kernel_profile> profile;
  const kernel_profile& kernels;  ///< of `profile`
  const training_profile& framework;
  const collective_profile& collectives;
  const model& net;
  const training_workload& workload;
  token_counts tokens;
  double slowdown;               ///< multiplies kernel times: release factor and jitter
  pass_cache* passes = nullptr;  ///< passes that layouts share. With it, parts have no facts, and items no texts

  training_context(const platform& p, const stack& s, const model& m, const training_workload& w);
  /// Of a layout whose passes are looked up, and kept, in `passes`.
  training_context(const platform& p, const stack& s, const model& m, const training_workload& w,
                   pass_cache& passes);
  /// The same machine, stack, model and passes with another workload, which must outlive the context.
  training_context(const training_context& like, const training_workload& w);
  /// The same for an encoder in front of the model, which must outlive the context, too; as slow as the model.
  training_context(const training_context& like, const model& m, const training_workload& w);
};

/// `training_memory`; without texts where passes are shared.
memory_report memory_of(const training_context& c);
/// No less than this is needed on the fullest GPU, whatever modules or layers are recomputed; with `any_sharding`,
/// however model states are sharded.
bytes min_memory(const training_context& c, bool any_sharding);

/// A pass through one layer. `paired`: overlaps another micro-batch's pass, which hides token exchange.
costed_parts layer_pass(const training_context& c, const layer_spec& l, pass_kind what, bool paired = false);
/// The embedding, and the encoder of images in front of it.
costed_parts embedding_pass(const training_context& c, pass_kind what);
/// The LM head and the loss, `1 + mtp_layers` times.
costed_parts head_pass(const training_context& c, pass_kind what);
/// Number of micro-batches whose LM head weight gradient is deferred until the last stage has run all passes; at
/// most the stack's `wgrad_deferral_limit`. Zero without pipeline stages, with routed experts (their recipes do
/// not use it), under FSDP, with frozen weights, or if the schedule itself defers weight gradients.
std::int64_t deferred_head_gradients(const training_context& c);
/// Optimizer step of a GPU that holds `local` parameters and updates `updated` of them.
costed_parts optimizer_step(const training_context& c, double local, double updated);

/// What Muon's step takes to orthogonalise the update of the matrices of a layer, on one GPU.
costed_parts orthogonalisation(const training_context& c, const layer_spec& l);

/// Ranks that reduce gradients of dense parameters, and of experts: the data- and context-parallel ranks of one
/// sharding group, and under DualPipe also those of the opposite stage, which holds the same chunk.
communicator gradient_group(const training_workload& w);
communicator expert_gradient_group(const training_workload& w);

/// LoRA trains adapters of about this share of the parameters (rank 16 to 32 on attention). [assumed]
inline constexpr double lora_share = 0.002;

/// One data-parallel collective over this GPU's parameters: gradient reduction or parameter gather.
priced_transfer gradient_reduction(const training_context& c, local_parameters p);
priced_transfer parameter_gather(const training_context& c, local_parameters p);
/// Sends one activation (or its gradient) to a neighbouring pipeline stage.
priced_transfer pipeline_send(const training_context& c, bool crosses_domain);

/// Parameters of the embedding or of the LM head on one GPU.
double local_vocabulary_parameters(const training_context& c);
/// Parameters that join the two inputs of prediction modules, on one GPU.
double local_predictor_parameters(const training_context& c);

}  // namespace nvlsim
