// Small questions with shipped data.
#pragma once

#include <string>

#include "nvlsim/planner/draft.hpp"
#include "nvlsim/planner/serving_plan.hpp"
#include "nvlsim/planner/training_plan.hpp"

namespace nvlsim::test {

inline data_folders shipped() { return folders_under(NVLSIM_SOURCE_DIR); }

/// Llama-3.1-8B on a server of eight H100.
inline serving_question small_server(std::int64_t gpus, const std::string& tpot = "20 ms") {
  serving_draft d;
  d.model = "llama3.1-8b";
  d.platform = "nd-h100-v5";
  d.input = 400;
  d.output = 60;
  d.ttft = "1 s";
  d.tpot = tpot;
  d.share = 0.9;
  std::vector<std::string> assumed;
  diagnostics problems;
  serving_question q;
  q.base.data = shipped();
  q.base.text = draft_serving(d, q.base.data, assumed, problems);
  problems.throw_if_any();
  q.gpus = gpus;
  return q;
}

/// Llama-3-8B on H100s, for a run of `tokens`.
inline training_question small_trainer(double tokens) {
  training_draft d;
  d.model = "llama3-8b";
  d.platform = "nd-h100-v5";
  d.precision = "bf16";
  d.global_batch_size = 128;
  d.seq_length = 8192;
  d.tokens = tokens;
  std::vector<std::string> assumed;
  diagnostics problems;
  training_question q;
  q.base.data = shipped();
  q.base.text = draft_training(d, q.base.data, assumed, problems);
  problems.throw_if_any();
  q.flexible_batch = false;
  return q;
}

}  // namespace nvlsim::test
