#include "scenario/inference_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace nvlsim {
namespace {

using config::positive_int;

constexpr config::range<std::int64_t> token_count{1, std::int64_t{1} << 30};
constexpr config::range<double> token_mean{1.0, double{1 << 30}};

const std::array<std::string, 6> weight_precisions = {"bf16", "fp8", "fp8_block", "nvfp4", "mxfp4", "int4"};
const std::array<std::string, 4> cache_precisions = {"bf16", "fp16", "fp8", "nvfp4"};
const std::array<std::string, 3> load_kinds = {"offline", "closed_loop", "static_batch"};
const std::array<std::string, 3> policies = {"chunked", "whole_prompt", "exclusive"};
constexpr config::range<std::int64_t> rank_count{1, 1 << 20};

std::optional<precision> find_precision(config::reader& r, const char* key) {
  if (!r.has(key)) return std::nullopt;
  return precision_by_name(weight_precisions[r.one_of(key, weight_precisions)]);
}

/// What the file leaves out is the stack's.
void read_engine(config::reader r, inference_workload& w) {
  w.weights =
      precision_by_name(weight_precisions[r.one_of({"weights", {"quantization"}}, weight_precisions)]).value();
  w.attention_weights = find_precision(r, "attention_weights");
  w.expert_weights = find_precision(r, "expert_weights");
  // Checkpoints of eight bits and less come with an FP8 cache.
  const std::size_t usual = w.weights == precision::bf16 ? 0 : 2;
  w.kv_cache =
      precision_by_name(cache_precisions[r.one_of_or({"kv_cache", {"kv_cache_dtype"}}, cache_precisions, usual)])
          .value();
  engine_overrides& o = w.engine;
  if (r.has("prefill")) o.prefill = static_cast<prefill_policy>(r.one_of("prefill", policies));
  o.max_num_tokens = r.find_integer({"max_num_tokens", {"max_num_batched_tokens", "chunked_prefill_size"}}, token_count);
  o.max_batch_size = r.find_integer({"max_batch_size", {"max_num_seqs", "max_running_requests"}}, token_count);
  o.kv_reserve = r.find_number("kv_reserve", config::fraction);
  o.kv_fraction = r.find_number({"kv_fraction", {"gpu_memory_utilization", "mem_fraction_static"}}, config::fraction);
  o.batch_wait_iterations = r.find_integer({"batch_wait_iterations", {"batch_wait_timeout_iters"}}, config::non_negative_int);
  o.batch_wait_ratio = r.find_number({"batch_wait_ratio", {"batch_wait_max_tokens_ratio"}}, config::fraction);
  o.poll_interval = r.find_integer({"poll_interval", {"scheduler_recv_interval"}}, config::positive_int);
  r.done();
}

token_lengths read_lengths(config::reader r) {
  token_lengths l;
  l.mean = r.number("mean", token_mean);
  l.spread = r.number_or("spread", 0, config::fraction);
  r.done();
  return l;
}

void read_load(config::reader r, inference_workload& w) {
  w.load = static_cast<load_kind>(r.one_of("kind", load_kinds));
  w.requests = r.integer({"requests", {"num_prompts"}}, positive_int);
  if (w.load == load_kind::closed_loop) w.concurrency = r.integer({"concurrency", {"max_concurrency"}}, positive_int);
  w.input = read_lengths(r.child("input"));
  w.output = read_lengths(r.child("output"));
  r.done();
}

void read_layout(config::reader r, inference_workload& w) {
  const auto ranks = [&](const config::key& k) { return static_cast<int>(r.integer_or(k, 1, rank_count)); };
  w.tp = ranks({"tp", {"tensor_parallel_size"}});
  w.pp = ranks({"pp", {"pipeline_parallel_size"}});
  w.ep = ranks({"ep", {"expert_parallel_size"}});
  w.attention_dp = ranks("attention_dp");
  w.replicas = ranks({"replicas", {"data_parallel_size"}});
  r.done();
}

}  // namespace

inference_workload read_inference_workload(config::reader& r) {
  inference_workload w;
  r.ignore("kind");
  read_engine(r.child("engine"), w);
  read_load(r.child("load"), w);
  if (auto layout = r.find_child("layout")) read_layout(std::move(*layout), w);
  r.done();
  return w;
}

}  // namespace nvlsim
