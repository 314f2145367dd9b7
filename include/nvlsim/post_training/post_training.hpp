// Reinforcement learning on one cluster: a loop of rollouts and updates. [docs/post-training.md]
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "nvlsim/config/value.hpp"
#include "nvlsim/post_training/loop.hpp"
#include "nvlsim/post_training/packing.hpp"
#include "nvlsim/post_training/weight_transfer.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct model;  // nvlsim/model/model.hpp

/// Training algorithm. `ppo` adds a critic. `distillation` replaces old policy and reference by a teacher.
/// `rejection_sampling` trains on the best samples of a prompt, without log-probabilities.
enum class post_training_algorithm { grpo, dapo, ppo, distillation, rejection_sampling };
inline const std::array<std::string, 5> algorithm_names = {"grpo", "dapo", "ppo", "distillation",
                                                           "rejection_sampling"};

/// Costs of a framework's loop in addition to its engines. [docs/post-training.md#frameworks]
struct loop_profile {
  std::string name, description;
  constant<double> rollout_factor = 1;  ///< time of rollout iterations, relative to the serving engine alone
  constant<double> update_factor =
      1;  ///< time of update and log-probability passes, relative to the trainer alone
  constant<double> logprobs_factor = 1;  ///< further factor on log-probability passes
  constant<seconds> sample_host;         ///< driver time per sample; samples are handled one after the other
  constant<seconds> step_host;           ///< driver time per step
  /// Rate of one GPU to and from pageable CPU memory, unless its link is slower. Applies to optimizer states and
  /// the reference's weights. Weights of engine and trainer move through pinned memory, at the rate of the link.
  constant<bandwidth> host_copy_rate;
  constant<double> reference_copies;  ///< copies of a rank's weights to or from CPU memory per reference pass
  constant<seconds> change_host;      ///< per switch between rollout and training, each way
  constant<bandwidth> broadcast_rate, rdma_rate, requantise_rate;
  constant<double> port_share = 1;
  constant<double> broadcast_growth;  ///< share of a broadcast's wire time per doubling of servers
  constant<seconds> transfer_fixed, rdma_fixed, per_tensor, per_tensor_shared;
  constant<double> error_90 = 0;  ///< relative error that 90 % of step times stay within
  friend bool operator==(const loop_profile&, const loop_profile&) = default;
};

/// What a colocated rollout engine does with its memory while the trainer works. `awake`: keeps it. `offload`:
/// moves weights to CPU memory and frees the cache. `discard`: frees both.
enum class sleep_level { awake = 0, offload = 1, discard = 2 };
inline const std::array<std::string, 3> sleep_names = {"awake", "offload", "discard"};

/// Who scores responses: a function, a reward model, or a program in a sandbox.
enum class reward_kind { rule, model, sandbox };
inline const std::array<std::string, 3> reward_kind_names = {"rule", "model", "sandbox"};

/// Rewards of responses.
struct reward_settings {
  reward_kind kind = reward_kind::rule;
  seconds time;             ///< of one response
  std::int64_t slots = 0;   ///< responses that are scored at the same time; 0: all that wait
  bool on_trainer = false;  ///< a reward model whose passes the trainer's GPUs compute
};

/// Models of a loop beside the policy. Null: of the policy's shape.
struct loop_models {
  std::shared_ptr<const model> critic, teacher, reward;
};

/// The loop of a post-training run.
struct post_training_workload {
  post_training_algorithm algorithm = post_training_algorithm::grpo;
  loop_settings loop;           ///< `steps` steps are measured, after `warmup` steps
  std::int64_t mini_batch = 0;  ///< samples per update, with those that are dropped
  std::int64_t epochs = 1;      ///< over the samples of a step
  bool policy_logprobs = true, reference_logprobs = true;
  packing_kind packing = packing_kind::packed;
  reward_settings reward;
  loop_models models;
  bool offload_critic = false;  ///< its states are in CPU memory except for its own passes and updates
  transfer_path transfer = transfer_path::ipc;
  sleep_level sleep = sleep_level::discard;
  bool offload_training = true;  ///< a colocated trainer's weights and states are in CPU memory during rollouts
  loop_profile costs;
  value framework;  ///< the document that `costs` was read from, for the list of inputs

  bool operator==(const post_training_workload& o) const;
};

}  // namespace nvlsim
