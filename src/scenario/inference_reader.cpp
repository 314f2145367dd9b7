#include "scenario/inference_reader.hpp"
#include "nvlsim/scenario/write_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "nvlsim/serving/mlperf.hpp"
#include "nvlsim/units/units_text.hpp"

#include "scenario/cache_tiers_reader.hpp"
#include "scenario/enum_names.hpp"
#include "scenario/lengths_reader.hpp"
#include "scenario/name_reader.hpp"

namespace nvlsim {
namespace {

using config::positive_int;

constexpr config::range<std::int64_t> token_count{1, std::int64_t{1} << 30};

const std::array<std::string, 6> weight_precisions = {"bf16", "fp8", "fp8_block", "nvfp4", "mxfp4", "int4"};
const std::array<std::string, 4> cache_precisions = {"bf16", "fp16", "fp8", "nvfp4"};
const std::array<std::string, 3> time_units = {"s", "ms", "us"};
constexpr std::array<double, 3> seconds_per_time_unit = {1, 1e-3, 1e-6};
const std::array<std::string, 4> draft_sources = {"mtp", "eagle3", "draft_model", "ngram"};
const std::array<std::string, 2> state_precisions = {"fp32", "bf16"};
const std::array<std::string, 5> load_kinds = {"offline", "closed_loop", "static_batch", "open_loop", "trace"};
const std::array<std::string, 3> mlperf_scenarios = {"offline", "server", "interactive"};
const std::array<std::string, 3> processes = {"poisson", "gamma", "fixed"};
const std::array<std::string, 3> routers = {"round_robin", "least_loaded", "prefix_aware"};
constexpr config::range<double> request_rate{1e-9, 1e9};
constexpr config::range<double> longest_wait{0, 1e7};
constexpr double usual_margin = 0.1;  // of an open loop, at both ends

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
  out.source = static_cast<draft_source>(r.one_of_or("method", draft_sources, 0));
  if (out.source == draft_source::model) out.model_name = read_name(r, "model");
  else r.belongs("model", "method draft_model");
  if (out.source == draft_source::model || out.source == draft_source::eagle3)
    out.parallel = r.boolean_or("parallel", false);
  else r.belongs("parallel", "methods eagle3 and draft_model");
  r.done();
}

adapter_settings read_adapters(config::reader r) {
  adapter_settings out;
  out.rank = r.integer({"rank", {"max_lora_rank"}}, {1, 1024});
  out.count = r.integer({"count", {"max_loras"}}, {1, 1 << 20});
  r.done();
  return out;
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
  if (const config::key states{"state_cache", {"mamba_ssm_cache_dtype"}}; r.has(states))
    w.state_cache = *precision_by_name(state_precisions[r.one_of(states, state_precisions)]);
}

/// Counts of ranks that are fine by themselves.
void check_gpus(const config::reader& r, const rank_counts& c) {
  double gpus = 1;
  for (const int n : {c.tp, c.pp, c.attention_dp, c.replicas}) gpus *= n;
  if (gpus > max_gpus)
    r.fail("", fmt::format("the layout has {:.4g} GPUs; a platform has at most {:g}", gpus, max_gpus));
}

/// What the file leaves out is the checkpoint's or the stack's.
void read_engine_of(config::reader r, const checkpoint_spec& checkpoint, inference_workload& w) {
  read_precisions(r, checkpoint, w);
  const engine_said said = read_engine(r, engine_place::engine);
  check_gpus(r, said.ranks);
  static_cast<rank_counts&>(w) = said.ranks;
  w.engine = said.settings;
  if (auto s = r.find_child("speculative")) read_drafts(std::move(*s), w.drafts);
  if (auto a = r.find_child({"adapters", {"lora"}})) w.adapters = read_adapters(std::move(*a));
  if (r.has("front_end")) w.front_end = r.boolean("front_end");
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
  if (auto first = r.find_child("first_input")) s.first_input = read_lengths(std::move(*first));
  r.done();
  return s;
}

image_settings read_images(config::reader r) {
  image_settings i;
  i.count = read_lengths(r.child("count"));
  i.tokens_each = r.integer("tokens", token_count);
  if (auto t = r.find_child("tower")) {
    vision_tower v;
    v.parameters = t->number("parameters", {1, 1e12});
    v.hidden = t->integer("hidden", {1, 1 << 20});
    v.layers = t->integer("layers", {1, 1 << 16});
    v.patches_per_token = t->number_or("patches_per_token", 4, {0.01, 1e4});
    t->done();
    i.tower = v;
  }
  r.done();
  return i;
}

void read_trace(config::reader& r, inference_workload& w) {
  w.trace_file = read_name(r, "file");
  w.requests = r.find_integer({"requests", {"num_prompts"}}, positive_int).value_or(0);
  w.rate_scale = r.number_or("rate_scale", 1, {1e-6, 1e6});
  if (r.has("time_unit")) w.trace_seconds_per_unit = seconds_per_time_unit[r.one_of("time_unit", time_units)];
  if (const auto n = r.find_integer({"block_tokens", {"block_size"}}, {1, 1 << 20})) w.trace_block_tokens = *n;
  w.tick_s = r.find_quantity<seconds>("tick", longest_wait).value_or(seconds{}).base();
  if (r.has({"requests_per_s", {"request_rate"}})) read_arrivals(r, w.arrivals);
}

/// MLPerf's rules, of what is already read of the load.
void read_mlperf(config::reader r, inference_workload& w) {
  static const std::vector<std::string> benchmarks = [] {
    std::vector<std::string> out;
    for (const mlperf_benchmark& b : mlperf_benchmarks()) out.emplace_back(b.name);
    return out;
  }();
  mlperf_rules rules;
  rules.scenario = static_cast<mlperf_scenario>(r.one_of("scenario", mlperf_scenarios));
  rules.benchmark = benchmarks[r.one_of("benchmark", benchmarks)];
  const bool offline = rules.scenario == mlperf_scenario::offline;
  if (w.load != (offline ? load_kind::offline : load_kind::open_loop))
    r.fail("scenario", offline ? "the offline scenario needs load kind offline"
                               : "server and interactive scenarios need load kind open_loop");
  else if (!offline && (w.arrivals.process != arrival_process::poisson || w.sessions))
    r.fail("scenario", "requests of MLPerf's servers arrive one by one as a Poisson process");
  const mlperf_benchmark& b = *find_mlperf_benchmark(rules.benchmark);
  if (rules.scenario == mlperf_scenario::interactive && !b.interactive)
    r.fail("benchmark", fmt::format("{} has no interactive scenario", b.name));
  else w.mlperf = rules;
  r.done();
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
  for (const config::key& k :
       {config::key("file"), {"rate_scale"}, {"time_unit"}, {"block_tokens", {"block_size"}}, {"tick"}})
    if (!trace) refuse(k, "trace");
  for (const char* k : {"input", "output", "sessions"})
    if (trace) refuse(k, "loads that generate requests; a trace has its own");
}

void read_load(config::reader r, inference_workload& w) {
  w.load = static_cast<load_kind>(r.one_of("kind", load_kinds));
  const bool by_rules = r.has("mlperf");
  if (w.load == load_kind::trace) {
    read_trace(r, w);
  } else {
    const config::key requests{"requests", {"num_prompts"}};
    if (!by_rules || r.has(requests)) w.requests = r.integer(requests, positive_int);
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
  if (auto m = r.find_child("mlperf")) read_mlperf(std::move(*m), w);
  if (w.mlperf) w.requests = std::max(w.requests, mlperf_requests(w));
  if (by_rules)
    for (const char* k : {"warmup", "tail"})
      r.belongs(k, "loads without rules of MLPerf, which count every request");
  w.measured.steady = w.load == load_kind::closed_loop && !r.has("warmup") && !r.has("tail");
  const double margin = w.load == load_kind::open_loop ? usual_margin : 0;
  if (!by_rules) {
    w.measured.warmup = r.number_or("warmup", margin, {0, 0.9});
    w.measured.tail = r.number_or("tail", margin, {0, 0.9});
  }
  if (w.measured.warmup + w.measured.tail > 0.95)
    r.fail("warmup", "warmup and tail leave less than 5 % of the requests to measure");
  r.done();
}

const std::array<std::string, 2> objective_statistics = {"share", "mean"};

constexpr config::range<double> limit_range{1e-6, 1e7};
const std::array<std::string, 3> limited_latencies = {"ttft", "tpot", "e2e"};

/// The share of a percentile: "p99.9" is 0.999. Nothing for another name.
std::optional<double> share_of_percentile(const std::string& name) {
  double percent = 0;
  const char* const end = name.data() + name.size();
  if (name.size() < 2 || name.front() != 'p') return std::nullopt;
  const auto [last, error] = std::from_chars(name.data() + 1, end, percent, std::chars_format::fixed);
  if (error != std::errc{} || last != end || !(percent >= 1 && percent <= 100)) return std::nullopt;
  return percent / 100;
}

std::string percentile_of_share(double part) { return fmt::format("p{:.10g}", 100 * part); }

/// Limits on a latency by percentile: {"p50": "0.5 s", "p99": "2 s"}. Returns that of the highest.
std::optional<double> read_percentiles(config::reader r, latency of, service_objective& o) {
  std::vector<percentile_limit> own;
  for (const std::string& name : r.names()) {
    const auto part = share_of_percentile(name);
    if (!part) {
      r.ignore(name);
      r.fail(name, "is no percentile; write p50, p99 or p99.9");
      continue;
    }
    if (const auto t = r.find_quantity<seconds>(name, limit_range)) own.push_back({of, t->base(), *part});
  }
  if (r.names().empty()) r.fail("", "has no limit; name a percentile: {\"p99\": \"2 s\"}");
  r.done();
  if (own.empty()) return std::nullopt;
  std::stable_sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.share < b.share; });
  for (std::size_t i = 1; i < own.size(); ++i)
    if (own[i].share == own[i - 1].share) r.fail(percentile_of_share(own[i].share), "is given twice");
    else if (own[i].limit_s < own[i - 1].limit_s)
      r.fail(percentile_of_share(own[i].share),
             fmt::format("is below the limit at {}", percentile_of_share(own[i - 1].share)));
  o.percentiles.insert(o.percentiles.end(), own.begin(), own.end());
  return own.back().limit_s;
}

void read_objective(config::reader r, service_objective& o) {
  bool shared = false;
  const auto limit = [&](latency of) -> std::optional<double> {
    const std::string& key = limited_latencies[static_cast<std::size_t>(of)];
    if (const value* v = r.raw(key); v && v->members()) return read_percentiles(r.child(key), of, o);
    const auto t = r.find_quantity<seconds>(key, limit_range);
    shared = shared || t;
    return t ? std::optional(t->base()) : std::nullopt;
  };
  o.ttft_s = limit(latency::ttft);
  o.tpot_s = limit(latency::tpot);
  o.e2e_s = limit(latency::e2e);
  o.means = r.one_of_or("statistic", objective_statistics, 0) == 1;
  if (o.means && r.has("share")) r.fail("share", "has no effect on limits on means");
  if (o.means && !o.percentiles.empty()) r.fail("statistic", "cannot be combined with limits by percentile");
  if (!shared && !o.percentiles.empty()) {
    if (r.has("share")) r.fail("share", "has no effect: all limits name a percentile");
    r.ignore("share");
  } else if (!o.means) {
    o.share = r.number_or("share", 0.99, {0.01, 1});
  }
  if (!o.any()) r.fail("", "give at least one of ttft, tpot and e2e");
  r.done();
}

/// A pool, or a layout without pools: what it does not say is as `engine` has it.
pool_layout read_workers(config::reader& r, engine_place place, const pool_layout& engine) {
  const engine_said said = read_engine(r, place, engine);
  check_gpus(r, said.ranks);
  return {said.ranks, merged(engine.engine, said.settings)};
}

/// A pool of workers that decode, with one that prefills or, alone, with caches that are there.
pool_layout read_pools(config::reader& r, const pool_layout& engine, inference_workload& w) {
  const auto read = [&](config::reader pool, engine_place place) {
    pool_layout out = read_workers(pool, place, engine);
    pool.done();
    return out;
  };
  if (auto prefill = r.find_child("prefill"))
    w.prefill_pool = read(std::move(*prefill), engine_place::prefill_pool);
  else w.prompts_cached = true;
  for (const engine_field& f : engine_fields)
    if (f.name != "prefill") r.belongs(f.names(), "each pool, or of the engine for both");
  if (r.has("router")) w.pool_router = static_cast<router_policy>(r.one_of("router", routers));
  return read(r.child("decode"), engine_place::decode_pool);
}

void read_layout(config::reader r, inference_workload& w) {
  const pool_layout engine{w, w.engine};
  // "prefill" with a name for its value is the setting.
  const value* prefill = r.raw("prefill");
  pool_layout workers;
  if (r.has("decode") || (prefill && !prefill->string())) {
    workers = read_pools(r, engine, w);
  } else {
    workers = read_workers(r, engine_place::layout, engine);
    w.router = static_cast<router_policy>(r.one_of_or("router", routers, 0));
  }
  static_cast<rank_counts&>(w) = workers;
  w.engine = workers.engine;
  r.done();
}

/// Refuses settings of the engine that every pool, or the layout without pools, sets to its own value. An override
/// of pools or layout may replace what the file says of the engine.
void refuse_replaced(config::reader& r) {
  std::optional<config::reader> engine = r.find_child("engine"), layout = r.find_child("layout");
  if (!engine || !layout) return;
  std::vector<std::pair<config::reader, engine_place>> users;
  for (const auto& [name, place] :
       {std::pair{"prefill", engine_place::prefill_pool}, {"decode", engine_place::decode_pool}})
    if (const value* pool = layout->raw(name); pool && pool->members())
      users.emplace_back(layout->child(name), place);
  const std::string whose = users.empty() ? "the layout" : users.size() == 1 ? "the pool" : "each pool";
  if (users.empty()) users.emplace_back(std::move(*layout), engine_place::layout);
  for (const engine_field& f : engine_fields) {
    const std::string name = engine->spelling_of(f.names());
    if (name.empty()) continue;
    bool all = true, overridden = false;
    for (const auto& [user, place] : users) {
      if (!f.refused_in(place).empty()) continue;
      const std::string own = user.spelling_of(f.names());
      all = all && !own.empty();
      overridden = overridden || (!own.empty() && user.set_by_user(own));
    }
    if (all && (engine->set_by_user(name) || !overridden))
      engine->fail(name, fmt::format("has no effect: {} sets it", whose));
  }
}

}  // namespace

inference_workload read_inference_workload(config::reader& r, const checkpoint_spec& checkpoint) {
  inference_workload w;
  r.ignore("kind");
  read_engine_of(r.child("engine"), checkpoint, w);
  read_load(r.child("load"), w);
  if (auto slo = r.find_child("slo")) read_objective(std::move(*slo), w.objective);
  else if (w.mlperf) w.objective = mlperf_objective(*w.mlperf);
  if (auto layout = r.find_child("layout")) read_layout(std::move(*layout), w);
  refuse_replaced(r);
  w.tiers = read_cache_tiers(r);
  r.done();
  return w;
}

namespace {

std::string in_seconds(double s) { return exact_quantity(s, seconds::dim_type::value); }

value written_drafts(const speculation& d) {
  value out{value::object{{"draft_tokens", d.draft_tokens}, {"tokens_per_step", d.tokens_per_step}}};
  if (d.source != draft_source::mtp) out.set("method", named(d.source, draft_sources));
  if (d.source == draft_source::model) out.set("model", d.model_name);
  if (d.parallel) out.set("parallel", true);
  return out;
}

value written_images(const image_settings& i) {
  value out{value::object{{"count", write_lengths(i.count)}, {"tokens", i.tokens_each}}};
  if (i.tower)
    out.set("tower", value::object{{"parameters", i.tower->parameters},
                                   {"hidden", i.tower->hidden},
                                   {"layers", i.tower->layers},
                                   {"patches_per_token", i.tower->patches_per_token}});
  return out;
}

value written_engine(const inference_workload& w) {
  value out{value::object{{"weights", name(w.weights)}, {"kv_cache", name(w.kv_cache)}}};
  if (w.state_cache != precision::fp32) out.set("state_cache", name(w.state_cache));
  if (w.attention_weights) out.set("attention_weights", name(*w.attention_weights));
  if (w.expert_weights) out.set("expert_weights", name(*w.expert_weights));
  // Pools say the settings that they may have.
  for (const engine_field& f : engine_fields) {
    const bool of_pool = w.pooled() && (f.refused_in(engine_place::decode_pool).empty() ||
                                        (w.prefill_pool && f.refused_in(engine_place::prefill_pool).empty()));
    if (!of_pool) write_setting(out, f, w.engine);
  }
  if (w.drafts.draft_tokens > 0) out.set("speculative", written_drafts(w.drafts));
  if (w.adapters.rank > 0)
    out.set("adapters", value::object{{"rank", w.adapters.rank}, {"count", w.adapters.count}});
  if (!w.front_end) out.set("front_end", false);
  return out;
}

void write_arrivals(value& out, const arrival_settings& a) {
  out.set("requests_per_s", a.rate_per_s);
  out.set("arrivals", named(a.process, processes));
  if (a.process == arrival_process::gamma) out.set("burstiness", 1 / (a.variation * a.variation));
}

value written_load(const inference_workload& w) {
  value out{value::object{{"kind", named(w.load, load_kinds)}}};
  if (w.requests > 0) out.set("requests", w.requests);
  if (w.load == load_kind::closed_loop) out.set("concurrency", w.concurrency);
  if (w.arrivals.rate_per_s > 0) write_arrivals(out, w.arrivals);
  if (w.load == load_kind::trace) {
    out.set("file", w.trace_file);
    out.set("rate_scale", w.rate_scale);
    for (std::size_t i = 0; w.trace_seconds_per_unit && i < time_units.size(); ++i)
      if (*w.trace_seconds_per_unit == seconds_per_time_unit[i]) out.set("time_unit", time_units[i]);
    if (w.trace_block_tokens) out.set("block_tokens", *w.trace_block_tokens);
    if (w.tick_s > 0) out.set("tick", in_seconds(w.tick_s));
  } else {
    out.set("input", write_lengths(w.input));
    out.set("output", write_lengths(w.output));
  }
  if (w.sessions) {
    value s{value::object{{"turns", write_lengths(w.sessions->turns)}}};
    if (w.sessions->wait_mean_s > 0) s.set("wait", in_seconds(w.sessions->wait_mean_s));
    s.set("shared_prompt", w.sessions->shared_prompt);
    if (w.sessions->first_input) s.set("first_input", write_lengths(*w.sessions->first_input));
    out.set("sessions", std::move(s));
  }
  if (w.images) out.set("images", written_images(*w.images));
  if (w.mlperf) {
    out.set("mlperf", value::object{{"scenario", named(w.mlperf->scenario, mlperf_scenarios)},
                                    {"benchmark", w.mlperf->benchmark}});
    return out;
  }
  out.set("warmup", w.measured.steady ? value{} : value{w.measured.warmup});
  out.set("tail", w.measured.steady ? value{} : value{w.measured.tail});
  return out;
}

value written_objective(const service_objective& o) {
  value out{value::object{}};
  bool shared = false;
  for (const auto& [limit, of] :
       {std::pair(o.ttft_s, latency::ttft), {o.tpot_s, latency::tpot}, {o.e2e_s, latency::e2e}}) {
    if (!limit) continue;
    value own{value::object{}};
    for (const percentile_limit& p : o.percentiles)
      if (p.of == of) own.set(percentile_of_share(p.share), in_seconds(p.limit_s));
    shared = shared || own.members()->empty();
    out.set(limited_latencies[static_cast<std::size_t>(of)],
            own.members()->empty() ? value{in_seconds(*limit)} : std::move(own));
  }
  out.set("statistic", objective_statistics[o.means ? 1 : 0]);
  if (!o.means && shared) out.set("share", o.share);
  return out;
}

value written_ranks(const rank_counts& c) {
  value out{value::object{}};
  for (const auto& [name, size] : {std::pair{"tp", c.tp},
                                   {"pp", c.pp},
                                   {"ep", c.ep},
                                   {"attention_dp", c.attention_dp},
                                   {"replicas", c.replicas}})
    out.set(name, size);
  return out;
}

value written_pool(const rank_counts& ranks, const engine_overrides& engine, engine_place place) {
  value out = written_ranks(ranks);
  for (const engine_field& f : engine_fields)
    if (f.refused_in(place).empty()) write_setting(out, f, engine);
  return out;
}

value written_layout(const inference_workload& w) {
  if (!w.pooled()) {
    value out = written_ranks(w);
    out.set("router", named(w.router, routers));
    return out;
  }
  value out{value::object{{"decode", written_pool(w, w.engine, engine_place::decode_pool)}}};
  if (w.prefill_pool)
    out.set("prefill", written_pool(*w.prefill_pool, w.prefill_pool->engine, engine_place::prefill_pool));
  if (w.pool_router) out.set("router", named(*w.pool_router, routers));
  return out;
}

}  // namespace

value write_inference_workload(const inference_workload& w) {
  value out{value::object{{"kind", "inference"}, {"engine", written_engine(w)}, {"load", written_load(w)}}};
  if (w.objective.any()) out.set("slo", written_objective(w.objective));
  out.set("layout", written_layout(w));
  if (!w.tiers.empty()) out.set("cache_tiers", write_cache_tiers(w.tiers));
  return out;
}

}  // namespace nvlsim
