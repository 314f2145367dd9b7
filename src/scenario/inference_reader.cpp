#include "scenario/inference_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "scenario/lengths_reader.hpp"

namespace nvlsim {
namespace {

using config::positive_int;

constexpr config::range<std::int64_t> token_count{1, std::int64_t{1} << 30};

const std::array<std::string, 6> weight_precisions = {"bf16", "fp8", "fp8_block", "nvfp4", "mxfp4", "int4"};
const std::array<std::string, 4> cache_precisions = {"bf16", "fp16", "fp8", "nvfp4"};
const std::array<std::string, 5> load_kinds = {"offline", "closed_loop", "static_batch", "open_loop", "trace"};
const std::array<std::string, 3> processes = {"poisson", "gamma", "fixed"};
const std::array<std::string, 3> routers = {"round_robin", "least_loaded", "prefix_aware"};
const std::array<std::string, 3> preemptions = {"none", "recompute", "swap"};
constexpr config::range<double> request_rate{1e-9, 1e9};
constexpr config::range<double> longest_wait{0, 1e7};
constexpr double usual_margin = 0.1;  // default warmup and tail of an open loop
const std::array<std::string, 3> policies = {"chunked", "whole_prompt", "exclusive"};
constexpr config::range<std::int64_t> rank_count{1, 1 << 20};

/// The scenario's precision, else the `published` one if it can be simulated.
template <class Names>
std::optional<precision> read_precision(config::reader& r, const config::key& k, const Names& names,
                                        std::optional<precision> published) {
  const auto it = published ? std::find(names.begin(), names.end(), name(*published)) : names.end();
  if (it == names.end()) return r.has(k) ? precision_by_name(names[r.one_of(k, names)]) : std::nullopt;
  return precision_by_name(names[r.one_of_or(k, names, static_cast<std::size_t>(it - names.begin()))]);
}

void read_drafts(config::reader r, speculation& out) {
  out.draft_tokens = static_cast<int>(
      r.integer({"draft_tokens", {"num_nextn_predict_layers", "num_speculative_tokens"}}, {1, 64}));
  const auto acceptance = r.find_number("acceptance", config::fraction);
  const auto tokens = r.find_number("tokens_per_step", {1.0, 1.0 + out.draft_tokens});
  if (acceptance.has_value() == tokens.has_value())
    r.fail("acceptance", "give either this or \"tokens_per_step\"");
  if (tokens) out.tokens_per_step = *tokens;
  else if (acceptance) out.tokens_per_step = expected_tokens_per_step(out.draft_tokens, *acceptance);
  r.done();
}

void read_precisions(config::reader& r, const checkpoint_spec& checkpoint, inference_workload& w) {
  const config::key weights{"weights", {"quantization"}}, cache{"kv_cache", {"kv_cache_dtype"}};
  const bool unsaid = !r.has(weights) && !checkpoint.weights;
  if (unsaid && checkpoint.source.empty()) r.one_of(weights, weight_precisions);  // reports that it is missing
  else if (unsaid && !checkpoint.algorithm.empty())
    r.fail("weights", fmt::format("the checkpoint's {} ({}) is none of {}; give the precision to simulate",
                                  checkpoint.algorithm, checkpoint.source, fmt::join(weight_precisions, ", ")));
  w.weights = read_precision(r, weights, weight_precisions, checkpoint.weights).value_or(precision::bf16);
  // With different weights, other formats of the checkpoint do not apply.
  const bool as_published = !checkpoint.source.empty() && checkpoint.weights == w.weights;
  const auto published = [&](std::optional<precision> p) { return as_published ? p : std::nullopt; };
  w.attention_weights =
      read_precision(r, "attention_weights", weight_precisions, published(checkpoint.attention_weights));
  w.expert_weights = read_precision(r, "expert_weights", weight_precisions, published(checkpoint.expert_weights));
  // Checkpoints of 8 bits or fewer default to an FP8 cache.
  const precision usual = w.weights == precision::bf16 ? precision::bf16 : precision::fp8;
  w.kv_cache = read_precision(r, cache, cache_precisions, published(checkpoint.kv_cache).value_or(usual)).value();
}

/// Omitted settings come from the checkpoint or the stack.
void read_engine(config::reader r, const checkpoint_spec& checkpoint, inference_workload& w) {
  read_precisions(r, checkpoint, w);
  engine_overrides& o = w.engine;
  if (r.has("prefill")) o.prefill = static_cast<prefill_policy>(r.one_of("prefill", policies));
  o.max_num_tokens =
      r.find_integer({"max_num_tokens", {"max_num_batched_tokens", "chunked_prefill_size"}}, token_count);
  o.max_batch_size = r.find_integer({"max_batch_size", {"max_num_seqs", "max_running_requests"}}, token_count);
  o.kv_reserve = r.find_number("kv_reserve", config::fraction);
  o.kv_fraction =
      r.find_number({"kv_fraction", {"gpu_memory_utilization", "mem_fraction_static"}}, config::fraction);
  o.batch_wait_iterations =
      r.find_integer({"batch_wait_iterations", {"batch_wait_timeout_iters"}}, config::non_negative_int);
  o.batch_wait_ratio = r.find_number({"batch_wait_ratio", {"batch_wait_max_tokens_ratio"}}, config::fraction);
  o.rank_wait_iterations =
      r.find_integer({"rank_wait_iterations", {"attention_dp_timeout_iters"}}, config::non_negative_int);
  o.poll_interval = r.find_integer({"poll_interval", {"scheduler_recv_interval"}}, config::positive_int);
  o.cuda_graph_max_batch_size =
      r.find_integer({"cuda_graph_max_batch_size", {"cuda_graph_max_bs"}}, config::non_negative_int);
  o.stream_interval = r.find_integer("stream_interval", config::positive_int);
  if (auto s = r.find_child("speculative")) read_drafts(std::move(*s), w.drafts);
  if (r.has("front_end")) w.front_end = r.boolean("front_end");
  if (r.has("preemption")) o.preemption = static_cast<preemption_policy>(r.one_of("preemption", preemptions));
  if (r.has({"prefix_cache", {"enable_prefix_caching"}}))
    o.prefix_cache = r.boolean({"prefix_cache", {"enable_prefix_caching"}});
  r.done();
}

void read_arrivals(config::reader& r, arrival_settings& a) {
  a.rate_per_s = r.number({"requests_per_s", {"request_rate"}}, request_rate);
  a.process = static_cast<arrival_process>(r.one_of_or("arrivals", processes, 0));
  if (a.process != arrival_process::gamma) return r.belongs("burstiness", "gamma arrivals");
  // vLLM's burstiness is the shape of the gamma distribution.
  a.variation = 1 / std::sqrt(r.number("burstiness", {1e-3, 1e6}));
}

session_settings read_sessions(config::reader r) {
  session_settings s;
  s.turns = read_lengths(r.child("turns"));
  const auto wait = r.find_quantity<seconds>({"wait", {"tool_wait", "think_time"}}, longest_wait);
  s.wait_mean_s = wait.value_or(seconds{}).base();
  s.shared_prompt = r.integer_or("shared_prompt", 0, {0, std::int64_t{1} << 30});
  r.done();
  return s;
}

image_settings read_images(config::reader r) {
  image_settings i;
  i.count = read_lengths(r.child("count"));
  i.tokens_each = r.integer("tokens", token_count);
  r.done();
  return i;
}

void read_trace(config::reader& r, inference_workload& w) {
  w.trace_file = r.string("file");
  w.requests = r.find_integer({"requests", {"num_prompts"}}, positive_int).value_or(0);
  w.rate_scale = r.number_or("rate_scale", 1, {1e-6, 1e6});
  w.tick_s = r.find_quantity<seconds>("tick", longest_wait).value_or(seconds{}).base();
  if (r.has({"requests_per_s", {"request_rate"}})) read_arrivals(r, w.arrivals);
}

/// Rejects members of other kinds of load. Ignores them if the kind itself is unknown.
void refuse_others(config::reader& r, load_kind kind) {
  const value* named = r.raw("kind");
  const bool known = named && named->string() &&
                     std::find(load_kinds.begin(), load_kinds.end(), *named->string()) != load_kinds.end();
  const auto refuse = [&](const config::key& k, const char* whose) {
    if (known) r.belongs(k, whose);
    else r.ignore(k);
  };
  const bool trace = kind == load_kind::trace;
  if (kind != load_kind::closed_loop) refuse({"concurrency", {"max_concurrency"}}, "closed_loop");
  if (kind != load_kind::open_loop && !trace)
    refuse({"requests_per_s", {"request_rate"}}, "open_loop, or of a trace without arrival times");
  if (kind != load_kind::open_loop)
    for (const char* k : {"arrivals", "burstiness"}) refuse(k, "a load with requests_per_s");
  for (const char* k : {"file", "rate_scale", "tick"})
    if (!trace) refuse(k, "trace");
  for (const char* k : {"input", "output", "sessions"})
    if (trace) refuse(k, "loads that generate requests; a trace has its own");
}

void read_load(config::reader r, inference_workload& w) {
  w.load = static_cast<load_kind>(r.one_of("kind", load_kinds));
  if (w.load == load_kind::trace) {
    read_trace(r, w);
  } else {
    w.requests = r.integer({"requests", {"num_prompts"}}, positive_int);
    if (w.load == load_kind::closed_loop)
      w.concurrency = r.integer({"concurrency", {"max_concurrency"}}, positive_int);
    if (w.load == load_kind::open_loop) read_arrivals(r, w.arrivals);
    w.input = read_lengths(r.child("input"));
    w.output = read_lengths(r.child("output"));
    if (auto s = r.find_child("sessions")) {
      w.sessions = read_sessions(std::move(*s));
      if (w.load != load_kind::closed_loop && w.load != load_kind::open_loop)
        r.fail("sessions", "sessions need load kind closed_loop or open_loop");
    }
  }
  refuse_others(r, w.load);
  if (auto i = r.find_child("images")) w.images = read_images(std::move(*i));
  const double margin = w.load == load_kind::open_loop ? usual_margin : 0;
  w.measured.warmup = r.number_or("warmup", margin, {0, 0.9});
  w.measured.tail = r.number_or("tail", margin, {0, 0.9});
  if (w.measured.warmup + w.measured.tail > 0.95)
    r.fail("warmup", "warmup and tail leave less than 5 % of the requests to measure");
  r.done();
}

void read_objective(config::reader r, service_objective& o) {
  const auto limit = [&](const char* key) -> std::optional<double> {
    if (const auto t = r.find_quantity<seconds>(key, {1e-6, 1e7})) return t->base();
    return std::nullopt;
  };
  o.ttft_s = limit("ttft");
  o.tpot_s = limit("tpot");
  o.e2e_s = limit("e2e");
  o.share = r.number_or("share", 0.99, {0.01, 1});
  if (!o.any()) r.fail("", "give at least one of ttft, tpot and e2e");
  r.done();
}

/// Checks the product of rank counts that are valid on their own.
void check_gpus(config::reader& r, double tp, double pp, double attention_dp, double replicas) {
  if (const double gpus = tp * pp * attention_dp * replicas; gpus > most_gpus)
    r.fail("", fmt::format("the layout has {:.4g} GPUs; a platform has at most {:g}", gpus, most_gpus));
}

pool_layout read_pool(config::reader r) {
  pool_layout p;
  const auto ranks = [&](const config::key& k) { return static_cast<int>(r.integer_or(k, 1, rank_count)); };
  p.tp = ranks({"tp", {"tensor_parallel_size"}});
  p.pp = ranks({"pp", {"pipeline_parallel_size"}});
  p.ep = ranks({"ep", {"expert_parallel_size"}});
  p.attention_dp = ranks("attention_dp");
  p.replicas = ranks({"workers", {"replicas"}});
  check_gpus(r, p.tp, p.pp, p.attention_dp, p.replicas);
  p.max_num_tokens =
      r.find_integer({"max_num_tokens", {"max_num_batched_tokens", "chunked_prefill_size"}}, token_count);
  p.max_batch_size = r.find_integer({"max_batch_size", {"max_num_seqs", "max_running_requests"}}, token_count);
  p.kv_fraction =
      r.find_number({"kv_fraction", {"gpu_memory_utilization", "mem_fraction_static"}}, config::fraction);
  r.done();
  return p;
}

/// A decode pool with a prefill pool, or alone with prompts already cached.
void read_pools(config::reader& r, inference_workload& w) {
  const pool_layout d = read_pool(r.child("decode"));
  w.tp = d.tp;
  w.pp = d.pp;
  w.ep = d.ep;
  w.attention_dp = d.attention_dp;
  w.replicas = d.replicas;
  if (auto prefill = r.find_child("prefill")) {
    w.prefill_pool = read_pool(std::move(*prefill));
    if (!w.prefill_pool->max_num_tokens) w.prefill_pool->max_num_tokens = w.engine.max_num_tokens;
    if (!w.prefill_pool->max_batch_size) w.prefill_pool->max_batch_size = w.engine.max_batch_size;
    if (!w.prefill_pool->kv_fraction) w.prefill_pool->kv_fraction = w.engine.kv_fraction;
  } else {
    w.prompts_cached = true;
  }
  if (d.max_num_tokens) w.engine.max_num_tokens = d.max_num_tokens;
  if (d.max_batch_size) w.engine.max_batch_size = d.max_batch_size;
  if (d.kv_fraction) w.engine.kv_fraction = d.kv_fraction;
  r.done();
}

void read_layout(config::reader r, inference_workload& w) {
  if (r.has("decode") || r.has("prefill")) return read_pools(r, w);
  const auto ranks = [&](const config::key& k) { return static_cast<int>(r.integer_or(k, 1, rank_count)); };
  w.tp = ranks({"tp", {"tensor_parallel_size"}});
  w.pp = ranks({"pp", {"pipeline_parallel_size"}});
  w.ep = ranks({"ep", {"expert_parallel_size"}});
  w.attention_dp = ranks("attention_dp");
  w.replicas = ranks({"replicas", {"data_parallel_size"}});
  check_gpus(r, w.tp, w.pp, w.attention_dp, w.replicas);
  w.router = static_cast<router_policy>(r.one_of_or("router", routers, 0));
  r.done();
}

}  // namespace

inference_workload read_inference_workload(config::reader& r, const checkpoint_spec& checkpoint) {
  inference_workload w;
  r.ignore("kind");
  read_engine(r.child("engine"), checkpoint, w);
  read_load(r.child("load"), w);
  if (auto slo = r.find_child("slo")) read_objective(std::move(*slo), w.objective);
  if (auto layout = r.find_child("layout")) read_layout(std::move(*layout), w);
  r.done();
  return w;
}

}  // namespace nvlsim
