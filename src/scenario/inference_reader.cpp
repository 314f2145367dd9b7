#include "scenario/inference_reader.hpp"

#include <fmt/format.h>

#include <array>

namespace nvlsim {
namespace {

using config::positive_int;

constexpr config::range<std::int64_t> token_count{1, std::int64_t{1} << 30};
constexpr config::range<double> token_mean{1.0, double{1 << 30}};

const std::array<std::string, 4> weight_precisions = {"bf16", "fp8", "fp8_block", "nvfp4"};
const std::array<std::string, 4> cache_precisions = {"bf16", "fp16", "fp8", "nvfp4"};
const std::array<std::string, 1> load_kinds = {"offline"};

void read_engine(config::reader r, inference_workload& w) {
  w.weights =
      precision_by_name(weight_precisions[r.one_of({"weights", {"quantization"}}, weight_precisions)]).value();
  // Checkpoints of eight bits and less come with an FP8 cache.
  const std::size_t usual = w.weights == precision::bf16 ? 0 : 2;
  w.kv_cache =
      precision_by_name(cache_precisions[r.one_of_or({"kv_cache", {"kv_cache_dtype"}}, cache_precisions, usual)])
          .value();
  w.max_num_tokens = r.integer_or({"max_num_tokens", {"max_num_batched_tokens"}}, w.max_num_tokens, token_count);
  w.max_batch_size = r.integer_or({"max_batch_size", {"max_num_seqs"}}, w.max_batch_size, token_count);
  w.chunked_prefill = r.boolean_or({"chunked_prefill", {"enable_chunked_prefill"}}, w.chunked_prefill);
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
  r.one_of("kind", load_kinds);
  w.requests = r.integer({"requests", {"num_prompts"}}, positive_int);
  w.input = read_lengths(r.child("input"));
  w.output = read_lengths(r.child("output"));
  r.done();
}

void read_layout(config::reader r, inference_workload& w) {
  w.tp = static_cast<int>(r.integer_or({"tp", {"tensor_parallel_size"}}, 1, {1, 1 << 20}));
  w.replicas = static_cast<int>(r.integer_or({"replicas", {"data_parallel_size"}}, 1, {1, 1 << 20}));
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
