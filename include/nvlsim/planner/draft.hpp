// Scenarios made from a few words of a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

/// A server under a load of equal requests. Quantities are written as in a scenario.
struct serving_draft {
  std::string model, platform, stack;  ///< no stack: vllm
  std::string weights, kv_cache;       ///< empty: the checkpoint's, else what the GPU is built for
  double input = 0, output = 0;        ///< mean tokens
  std::string ttft, tpot, e2e;         ///< limits; empty: none
  std::optional<double> share;         ///< of the requests that keep each limit; empty: 0.99
  bool means = false;                  ///< limits are on means
  std::string price;                   ///< of a GPU, "4 USD/h"; empty: the platform's, if any
};

/// Text of a scenario. What was taken for granted is added to `assumed`; what is missing to `problems`.
value draft_serving(const serving_draft& d, const data_folders& data, std::vector<std::string>& assumed,
                    diagnostics& problems);

/// A training step. `global_batch_size` is in sequences.
struct training_draft {
  std::string model, platform, stack;  ///< no stack: megatron-bridge-26.06
  std::string precision;               ///< empty: what the GPU is built for
  std::int64_t seq_length = 0;         ///< 0: 4096
  std::int64_t global_batch_size = 0;  ///< 0: as many sequences as make 16 Mi tokens
  double tokens = 0;                   ///< of the whole run; 0: not stated
  std::string price;
};

/// Text of a scenario with a layout of one GPU, which a plan replaces.
value draft_training(const training_draft& d, const data_folders& data, std::vector<std::string>& assumed,
                     diagnostics& problems);

/// A loop of rollouts and updates (GRPO) as NeMo RL runs it.
struct post_training_draft {
  std::string model, platform, price;
  std::int64_t prompts = 0, samples = 0;  ///< of a step, 0: 512; of a prompt, 0: 16
  double prompt_tokens = 0;               ///< 0: 512
  double response_tokens = 0,
         max_response = 0;  ///< mean after the cut, and where it is cut; the latter 0: 4 times
};

/// Text of a scenario with pools that take turns on one GPU, which a plan replaces.
value draft_post_training(const post_training_draft& d, const data_folders& data,
                          std::vector<std::string>& assumed, diagnostics& problems);

/// The file of a text of a scenario: its members in order, with two blanks of indent.
std::string scenario_file_text(const value& text);

}  // namespace nvlsim
