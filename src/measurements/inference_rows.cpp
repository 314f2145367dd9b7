#include "nvlsim/measurements/inference_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "measurements/inference_catalogue.hpp"
#include "measurements/inference_cells.hpp"
#include "nvlsim/measurements/pooled_rows.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/mlperf.hpp"

namespace nvlsim {
namespace {

/// MLPerf results of TensorRT-LLM on dense NVFP4 models match the plain kernel tables better than the serving fit.
/// [docs/accuracy.md#inference]
constexpr const char* unfitted_dense = "tensorrt-llm-1.1-dense";
constexpr double jitter =
    0.2;  // spread of output lengths if the source gives one length: equal outputs would stay in lockstep
constexpr double random_range_ratio = 0.8;   // of the InferenceX load generator, at every commit checked
constexpr double decode_output = 100;        // output tokens in the decode-only runs
constexpr std::int64_t run_of_clients = 10;  // requests per client in common benchmarks

class unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class inference_row_reader {
 public:
  inference_row_reader(const csv_row& row, inference_row& out) : row_(row), out_(out), workload_(out.workload) {}

  void read() {
    check_cells();
    refuse();
    find_inputs();
    read_formats();
    read_drafts();
    if (row_["disaggregated"] == "yes") read_pooled_layout();
    else read_layout();
    find_usual_settings(out_.hardware, *out_.software, *out_.net, workload_);
    read_settings();
    read_load();
  }

 private:
  bool has(std::string_view column, std::string_view word) const {
    return row_[column].find(word) != std::string::npos;
  }
  void note(const std::string& text) {
    std::string& notes = out_.record.notes;
    notes += (notes.empty() ? "" : "; ") + text;
  }
  /// Whether the row used the InferenceX load generator or its settings.
  bool inferencex() const {
    return has("client", "InferenceX") || has("notes", "0.9 of nominal") || row_["id"].starts_with("ix-") ||
           has("id", "gap_ana");
  }

  /// Checks that counts and rates are positive and counts are not absurdly large.
  void check_cells() const {
    static constexpr std::array counts = {"gpus",
                                          "tp",
                                          "pp",
                                          "ep",
                                          "prefill_gpus",
                                          "decode_gpus",
                                          "concurrency",
                                          "stream_interval",
                                          "batch_limit_per_instance",
                                          "num_prompts"};
    static constexpr std::int64_t max = 1'000'000'000;
    for (const char* column : counts)
      if (const auto n = row_.integer(column); n && (*n < 1 || *n > max))
        throw cell_error(fmt::format("{} is {}; it must be from 1 to {}", column, *n, max));
    double gpus = 1;
    for (const char* column : {"tp", "pp"}) gpus *= static_cast<double>(row_.integer(column).value_or(1));
    if (gpus > static_cast<double>(max))
      throw cell_error(fmt::format("tp x pp is {:.4g} GPUs; the maximum is {}", gpus, max));
    if (row_.number("request_rate_per_s")) need(row_, "request_rate_per_s");
    if (const auto named = parse_layout(row_["launch_layout"]);
        named && std::min({named->tp, named->pp, named->ep}) < 1)
      throw cell_error(fmt::format("launch_layout: \"{}\" has a size of 0", row_["launch_layout"]));
  }

  void refuse() {
    static constexpr std::array known = {
        "closed-loop",    "static-batch",  "prefill-only",       "prefill-iteration", "offline-max-throughput",
        "mlperf-offline", "mlperf-server", "mlperf-interactive", "open-loop",         "decode-saturated",
        "min-latency",    "ttft-128k"};
    if (std::find(known.begin(), known.end(), row_["scenario"]) == known.end())
      throw unsupported(fmt::format("scenario \"{}\" is not simulated yet", row_["scenario"]));
  }

  void find_inputs() {
    // Serving tables do not distinguish A100 variants. 70B models in BF16 on two GPUs need the 80 GB variant.
    const std::string name(platform_of_system(row_["system"] == "a100" ? "a100-80g" : row_["system"]));
    if (name.empty()) throw cell_error(fmt::format("system: \"{}\" is unknown", row_["system"]));
    out_.hardware = inputs().platform_named(name);
    out_.net = &inputs().model_named(row_["model"]);
    std::string engine = row_["engine"], version = row_["engine_version"];
    if (has("suspect", "engine is TensorRT-LLM")) engine = "TRT-LLM";
    if (has("suspect", "is SGLang")) engine = "SGLang", version = "";
    std::string named = serving_stack_of(engine, version);
    if (out_.hardware.gpu.architecture.starts_with("cdna")) named = rocm_stack(named);
    const bool fp4 = row_["weight_precision"] == "fp4" && out_.hardware.gpu.architecture == "blackwell";
    if (row_["scenario"].starts_with("mlperf") && named.starts_with("tensorrt-llm") && fp4 && !routed() &&
        row_["disaggregated"] != "yes")
      named = unfitted_dense;
    out_.software = &inputs().stack_named(named);
  }

  bool routed() const { return has_routed_experts(*out_.net); }

  void read_formats() {
    const bool latent = out_.net->layers.front().attention == attention_kind::mla;
    const bool unset = row_["weight_precision"].empty() || row_["weight_precision"] == "UNSET";
    const std::string usual = "fp8";  // in MLPerf submissions
    const bool mlperf = row_["scenario"].starts_with("mlperf");
    const std::string cell = unset && mlperf ? usual : row_["weight_precision"];
    if (unset) note(fmt::format("weight precision not stated: {} assumed", mlperf ? usual : "BF16"));
    const weight_formats f = formats_of(cell, row_["model"], routed(), latent);
    workload_.weights = f.dense;
    workload_.attention_weights = has("checkpoint", "Meta FP8") ? precision::bf16 : f.attention;
    workload_.expert_weights = f.expert;
    const std::string stated = row_["kv_precision"].empty() ? row_["launch_kv_dtype"] : row_["kv_precision"];
    if (stated.starts_with("fp8")) {
      workload_.kv_cache = precision::fp8;
    } else if (!stated.empty()) {
      workload_.kv_cache = precision::bf16;
    } else {
      const bool small = cell != "" && cell != "bf16" && cell != "fp16" && cell != "UNSET";
      // Engines keep compressed vectors in 8 bits unless told.
      const bool compressed = out_.net->layers.front().attention == attention_kind::compressed;
      workload_.kv_cache = compressed || (small && (inferencex() || mlperf)) ? precision::fp8 : precision::bf16;
      if (small) note(fmt::format("KV-cache precision not stated: {} assumed", name(workload_.kv_cache)));
    }
  }

  int ranks(std::string_view column, int otherwise) const {
    return static_cast<int>(row_.integer(column).value_or(otherwise));
  }

  /// The smallest tensor parallel size that leaves a quarter of the memory for the KV cache.
  int min_tp(std::int64_t gpus) const {
    constexpr double cache_share = 0.25;
    constexpr std::int64_t server = 8;  // GPUs
    inference_workload w = workload_;
    for (w.tp = 1; 2 * w.tp <= std::min(gpus, server); w.tp *= 2) {
      const serving_memory m = plan_serving_memory(out_.hardware, *out_.software, *out_.net, w);
      if (m.kv_per_token * static_cast<double>(m.kv_capacity_tokens) > out_.hardware.gpu.hbm_usable * cache_share)
        break;
    }
    return w.tp;
  }

  void read_layout() {
    auto gpus = row_.integer("gpus");
    if (!gpus && prompts_alone()) gpus = row_.integer("prefill_gpus");
    if (!gpus) throw unsupported("number of GPUs not stated");
    out_.gpus = static_cast<double>(*gpus);
    int tp = ranks("tp", 0), ep = ranks("ep", 1);
    workload_.pp = ranks("pp", 1);
    bool apart = row_["dp_attention"] == "yes" && routed();
    if (tp == 0) {
      tp = row_["model"] == "llama3.1-405b"                    ? 4
           : routed() && row_["model"].starts_with("deepseek") ? 8
                                                               : min_tp(*gpus);
      note(fmt::format("layout not stated: tp {} assumed", tp));
    }
    std::int64_t whole = *gpus;
    if (const auto named = parse_layout(row_["launch_layout"])) {
      tp = named->tp;
      workload_.pp = named->pp;
      apart = named->attention_dp && routed();
      ep = named->recipe && apart ? tp : std::max(named->ep, 1);
      if (whole < std::int64_t{tp} * workload_.pp || has("suspect", "caution: read as") ||
          has("suspect", "gpus count"))
        whole = std::int64_t{tp} * workload_.pp;
    } else if (apart && row_["scenario"] == "closed-loop" && tp > 1) {
      // Some dumps multiply TP by DP: the same points appear elsewhere as plain TP (and EP).
      whole = tp;
      apart = false;
      note(fmt::format("read as tp {} ep {}", tp, std::min(ep, tp)));
    } else if (routed() && tp > 1 && has("attention_dp_balance", "balance=yes")) {
      apart = true;  // launch files mention the balance only if attention DP is on
      note("attention data parallelism, from the launch file");
    }
    if (apart) {
      const int size = std::max(tp, ep);
      workload_.attention_dp = tp == 1 && ep <= 1 ? static_cast<int>(whole / workload_.pp) : size;
      workload_.tp = 1;
      workload_.ep = std::min(std::max(ep, 1), workload_.attention_dp);
    } else {
      workload_.tp = tp;
      workload_.ep = routed() ? std::clamp(ep, 1, tp) : 1;
    }
    workload_.replicas = static_cast<int>(std::max<std::int64_t>(1, whole / workload_.gpus_per_replica()));
    const int racks =
        static_cast<int>((workload_.gpus_per_replica() * workload_.replicas + out_.hardware.gpus_per_rack() - 1) /
                         out_.hardware.gpus_per_rack());
    out_.hardware.racks = std::max(out_.hardware.racks, racks);
  }

  void read_pooled_layout() {
    const auto assumed = read_pools(row_, out_);
    if (!assumed) throw unsupported("GPUs of the prefill and decode pools not stated");
    if (!assumed->empty()) note(*assumed);
    if (row_["scenario"] == "ttft-128k") {
      workload_.prefill_pool->pp = workload_.prefill_pool->tp * workload_.prefill_pool->attention_dp;
      workload_.prefill_pool->tp = workload_.prefill_pool->attention_dp = workload_.prefill_pool->ep = 1;
    }
  }

  /// The number after `words` in either cell that describes drafts.
  std::optional<double> stated_after(std::string_view words) const {
    for (const char* column : {"launch_spec_decode", "notes"}) {
      const std::size_t at = row_[column].find(words);
      double x = 0;
      if (at != std::string::npos && std::sscanf(row_[column].c_str() + at + words.size(), "%lf", &x) == 1 &&
          x > 0)
        return x;
    }
    return std::nullopt;
  }

  /// Reads draft settings such as "mtp3 (config)", "mtp" or "eagle3 (accept length 2.49)".
  /// [docs/models-and-assumptions.md#speculative-decoding]
  void read_drafts() {
    const std::string& spec = row_["spec_decode"].empty() ? row_["launch_spec_decode"] : row_["spec_decode"];
    static constexpr std::string_view word = "mtp";
    const bool other = spec.starts_with("eagle") || spec.starts_with("dspark");
    if ((!spec.starts_with(word) && !other) || spec.starts_with("mtp?")) return;
    static constexpr std::array of_ablation = {1.92, 2.58, 2.82, 2.99,
                                               3.01};  // tokens per step, by number of drafts
    constexpr double acceptance = 0.64;                // in other runs
    const auto stated = other ? std::nullopt : leading(std::string_view(spec).substr(word.size()));
    constexpr double large_batch =
        128;  // sequences per GPU; beyond this the tensor cores are full and each further draft costs time
    const double gpus = row_.number("decode_gpus").value_or(row_.number("gpus").value_or(1));
    const int usual = row_.number("concurrency").value_or(0) >= large_batch * gpus ? 1 : 3;
    if (!stated) note(fmt::format("number of draft tokens not stated: {} assumed", usual));
    const auto n = static_cast<int>(std::clamp<std::int64_t>(stated.value_or(usual), 1, of_ablation.size()));
    const bool ablation = has("notes", "tokens per step");
    const auto accepted = stated_after("accept length ");
    workload_.drafts = {n, ablation   ? of_ablation[static_cast<std::size_t>(n) - 1]
                           : accepted ? std::clamp(*accepted, 1.0, 1.0 + n)
                                      : expected_tokens_per_step(n, acceptance)};
    if (!ablation && !accepted)
      note(fmt::format("{:.3g} tokens per step assumed", workload_.drafts.tokens_per_step));
    if (out_.net->mtp_layers > 0) return;
    workload_.drafts.source = draft_source::ngram;
    note("the draft model's own time is left out");
  }

  /// The engine, or those of both pools.
  template <class Member, class T>
  void set_engines(Member engine_overrides::*setting, const T& v) {
    workload_.engine.*setting = v;
    if (workload_.prefill_pool) workload_.prefill_pool->engine.*setting = v;
  }

  /// A limit of the engine's batches. Throws cell_error for 0.
  std::optional<std::int64_t> limit_in(const char* column) const {
    const auto n = leading(row_[column]);
    if (n && *n < 1) throw cell_error(fmt::format("{}: 0 admits nothing", column));
    return n;
  }

  void read_settings() {
    engine_overrides& o = workload_.engine;
    o.max_num_tokens = limit_in("max_num_tokens");
    o.max_batch_size = limit_in("max_batch");
    if (const auto ratio = row_.number("random_range_ratio"); ratio && (*ratio < 0 || *ratio > 1))
      throw cell_error(fmt::format("random_range_ratio: {} is not from 0 to 1", *ratio));
    if (workload_.prefill_pool) return read_pool_settings();
    // SGLang shares its limit of requests out to the ranks that have sequences of their own.
    if (const auto all = limit_in("max_batch");
        all && out_.software->name.starts_with("sglang") && workload_.attention_dp > 1)
      o.max_batch_size = std::max<std::int64_t>(1, *all / workload_.attention_dp);
    o.kv_fraction = row_.number("kv_memory_fraction");
    o.batch_wait_iterations = row_.integer("batch_wait_iters");
    o.batch_wait_ratio = row_.number("batch_wait_tokens_ratio");
    static constexpr std::string_view poll = "recv_interval=";
    const std::string& balance = row_["attention_dp_balance"];
    static constexpr std::string_view timeout = "timeout_iters=";
    if (const std::size_t at = balance.find(timeout);
        balance.starts_with("balance=yes") && at != std::string::npos)
      o.rank_wait_iterations = leading(std::string_view(balance).substr(at + timeout.size()));
    // `--enable-prefill-delayer` of SGLang, whose default is to wait for 30 forward passes at most.
    constexpr std::int64_t delayed_passes = 30;
    if (out_.software->name.starts_with("sglang") && workload_.attention_dp > 1 && has("notes", "prefill delayer"))
      o.rank_wait_iterations = delayed_passes;
    if (row_["decode_poll_or_steps"].starts_with(poll))
      o.poll_interval = leading(row_["decode_poll_or_steps"].substr(poll.size()));
    o.stream_interval = row_.integer("stream_interval");
    o.cuda_graph_max_batch_size = graphs_in(row_["cuda_graph"]);
    // SGLang keeps prefixes unless told; only the states of scans make a difference to other loads.
    const bool scans = std::any_of(out_.net->layers.begin(), out_.net->layers.end(),
                                   [](const layer_spec& l) { return l.scan.heads > 0; });
    if (scans && out_.software->name.starts_with("sglang") && row_["prefix_cache"] != "off") o.prefix_cache = true;
    if (row_["chunked_prefill"] == "on") o.prefill = prefill_policy::chunked;
    if (row_["chunked_prefill"] == "off") o.prefill = prefill_policy::whole_prompt;
    const engine_settings& set = out_.software->inference->settings;
    if (!o.max_num_tokens)
      note(fmt::format("max_num_tokens not stated: {} taken from the stack", set.max_num_tokens));
  }

  /// Reads pool settings such as "P4608/D128" or "D32".
  void read_pool_settings() {
    const auto after = [&](std::string_view column, char pool) -> std::optional<std::int64_t> {
      const std::string& cell = row_[column];
      const std::size_t at = cell.find(pool);
      if (at == std::string::npos) return std::nullopt;
      return leading(std::string_view(cell).substr(at + 1, cell.find('/', at) - at - 1));
    };
    for (const auto& [engine, letter] :
         {std::pair{&workload_.prefill_pool->engine, 'P'}, {&workload_.engine, 'D'}}) {
      engine->max_num_tokens = after("max_num_tokens", letter);
      engine->max_batch_size = after("max_batch", letter);
    }
  }

  /// Lengths sampled uniformly from [ratio * nominal, nominal].
  token_lengths sampled(double nominal, double ratio) const {
    return {nominal * (1 + ratio) / 2, (1 - ratio) / (1 + ratio)};
  }

  void read_load() {
    auto input = lengths_in(row_, "isl");
    auto output = lengths_in(row_, "osl");
    const std::string& scenario = row_["scenario"];
    if (prompts_alone()) output = token_lengths{1};
    if (!output && scenario == "decode-saturated")
      output = token_lengths{decode_output}, note("outputs of 100 tokens assumed");
    if (const auto prompt = mlperf_prompt_of(row_["model"]); !input && prompt) {
      input = token_lengths{*prompt};
      note(fmt::format("prompt lengths not stated: {} tokens assumed", input->mean));
    }
    if (!input || !output) throw unsupported("prompt or output length not stated");
    workload_.input = *input;
    workload_.output = *output;
    read_reuse();
    if (prompts_alone()) read_prompts_alone();
    else if (scenario == "offline-max-throughput") read_offline(input->mean + output->mean);
    else if (scenario == "mlperf-offline") read_mlperf_offline();
    else if (scenario == "static-batch") read_static();
    else if (scenario == "closed-loop" || scenario == "min-latency" || scenario == "ttft-128k") read_closed_loop();
    else if (scenario == "decode-saturated") read_decode_alone();
    else read_open_loop();
    // Prompts longer than the token budget were chunked, even if the engine normally does not chunk.
    const engine_settings set = settings_of(*out_.software->inference, workload_);
    // Prompts that fill the budget would run without decodes; no published run does that.
    if (!workload_.pooled() && set.prefill == prefill_policy::whole_prompt &&
        input->mean * (1 + input->spread) + 1 > static_cast<double>(set.max_num_tokens)) {
      workload_.engine.prefill = prefill_policy::chunked;
      note("prompts fill max_num_tokens: chunked prefill used");
    }
  }

  /// "about 90 % prefix reuse": a part of every prompt that the cache holds.
  void read_reuse() {
    const std::size_t at = row_["notes"].find(" % prefix reuse");
    if (at == std::string::npos) return;
    const std::size_t from = row_["notes"].find_last_of(' ', at - 1) + 1;
    double share = 0;
    if (std::sscanf(row_["notes"].c_str() + from, "%lf", &share) != 1 || !(share > 0 && share < 100)) return;
    const double shared = std::floor(workload_.input.mean * share / 100);
    workload_.sessions = session_settings{{1}, 0, static_cast<std::int64_t>(shared)};
    workload_.input.mean -= shared;
    set_engines(&engine_overrides::prefix_cache, true);
    note(fmt::format("{:.0f} tokens of each prompt come from the prefix cache", shared));
  }

  void read_offline(double tokens) {
    workload_.load = load_kind::offline;
    constexpr double min = 600, max = 3000,
                     tokens_in_all = 3e6;  // enough for the steady part to outweigh ramp-up and drain
    workload_.requests = static_cast<std::int64_t>(std::clamp(tokens_in_all / tokens, min, max)) *
                         workload_.replicas * workload_.pp * workload_.attention_dp;
    if (const auto stated = row_.integer("num_prompts"))
      workload_.requests = std::min(workload_.requests, std::max<std::int64_t>(*stated, 1));
    note(fmt::format("{} requests", workload_.requests));
  }

  void read_mlperf_offline() {
    workload_.load = load_kind::offline;
    read_mlperf_engine();
    measure_by_rules(mlperf_scenario::offline);
    note("spreads of lengths assumed");
  }

  /// The run is as long as MLPerf's rules ask.
  void measure_by_rules(mlperf_scenario s) {
    if (!find_mlperf_benchmark(row_["model"]))
      throw unsupported(fmt::format("{} is no benchmark of MLPerf", row_["model"]));
    workload_.mlperf = mlperf_rules{s, row_["model"]};
    workload_.requests = mlperf_requests(workload_);
  }

  void read_mlperf_engine() {
    workload_.input.spread = 0.7;
    workload_.output.spread = 0.95;
    if (!workload_.engine.prefill) set_engines(&engine_overrides::prefill, prefill_policy::chunked);
    // The submissions schedule for maximum utilisation: requests are paused when the cache is full.
    set_engines(&engine_overrides::kv_reserve, 0.0);
    set_engines(&engine_overrides::preemption, preemption_policy::recompute);
  }

  bool prompts_alone() const {
    return row_["scenario"].starts_with("prefill-") || row_["disaggregated"] == "prefill only";
  }

  /// Prefill-only rows: one pass over a batch of prompts, or prompts one after another. The only output is the
  /// first token.
  void read_prompts_alone() {
    set_engines(&engine_overrides::prefill, prefill_policy::chunked);
    out_.counts_prompts = true;
    const auto clients = row_.integer("concurrency"), all = row_.integer("num_prompts");
    if (clients && all && *all > *clients) return read_closed_loop();
    if (const auto n =
            row_.integer("concurrency") ? row_.integer("concurrency") : row_.integer("batch_limit_per_instance");
        n || row_.number("ttft_ms")) {
      workload_.load = load_kind::static_batch;
      workload_.requests = n.value_or(1) * out_.workers();
      return;
    }
    read_offline(workload_.input.mean + 1);
  }

  /// MLPerf server rows. The first half of the run is warm-up.
  void read_mlperf_server() {
    read_mlperf_engine();
    workload_.measured = {0.5, 0.1};
    workload_.front_end = workload_.pooled();  // the load generator calls the engine in process
    note("Poisson arrivals; spreads of lengths assumed");
  }

  void read_static() {
    const auto batch =
        row_.integer("concurrency") ? row_.integer("concurrency") : row_.integer("batch_limit_per_instance");
    if (!batch) throw unsupported("batch size not stated");
    workload_.load = load_kind::static_batch;
    workload_.requests = *batch * out_.workers();
  }

  void read_closed_loop() {
    const auto clients =
        row_.integer("concurrency") ? row_.integer("concurrency") : row_.integer("batch_limit_per_instance");
    if (!clients) throw unsupported("concurrency not stated");
    workload_.load = load_kind::closed_loop;
    const std::int64_t workers = workload_.pooled() ? 1 : out_.workers();
    const std::int64_t each =
        std::max<std::int64_t>(1, std::llround(static_cast<double>(*clients) / static_cast<double>(workers)));
    workload_.concurrency = each * workers;
    std::int64_t requests = run_of_clients * each;  // the first requests of all clients queue together
    if (const auto stated = row_.integer("num_prompts"))
      requests = std::clamp<std::int64_t>(*stated / workers, each, requests);
    if (out_.software->name == "sglang-0.5.1" && has("evidence", "gap-analysis")) {
      requests = each;
      note(
          "one burst: each client sends one request; inferred from TTFT growing with the prompts of all "
          "clients");
    }
    workload_.requests = requests * workers;
    const auto ratio = row_.number("random_range_ratio");
    const bool drew = ratio && *ratio < 1;
    if (read_measured_lengths(drew)) return;
    if (inferencex() || drew) {
      const double r = ratio.value_or(random_range_ratio);
      if (workload_.input.spread == 0) workload_.input = sampled(workload_.input.mean, r);
      if (workload_.output.spread == 0) workload_.output = sampled(workload_.output.mean, r);
    } else if (workload_.output.spread == 0 && workload_.output.mean > 1 && !equal_lengths()) {
      workload_.output.spread = jitter;
      note("output lengths vary by 20 %: equal lengths would stay in lockstep");
    }
  }

  /// Whether all requests have the stated lengths, and so come in waves: where the row says so, and in vLLM's own
  /// runs, whose client samples lengths only if told. Drafts that are accepted keep requests apart.
  bool equal_lengths() const {
    if (workload_.drafts.draft_tokens > 0) return false;
    return row_.number("random_range_ratio").has_value() || has("client", "vllm bench") ||
           has("source", "vllm-project");
  }

  /// Lengths that the client sampled, by the means in its report: "measured mean lengths 610.1 in / 422.0 out".
  bool read_measured_lengths(bool sampled_uniformly) {
    static constexpr std::string_view words = "measured mean lengths ";
    const std::size_t at = row_["notes"].find(words);
    if (at == std::string::npos) return false;
    double in = 0, out = 0;
    const std::string text = row_["notes"].substr(at + words.size());
    if (std::sscanf(text.c_str(), "%lf in / %lf out", &in, &out) != 2 || in < 1 || out < 1) return false;
    constexpr double whole_range = 0.9;  // of uniform samples from 1 to the nominal length
    const double spread = sampled_uniformly ? whole_range : jitter;
    workload_.input = {in, sampled_uniformly ? spread : 0};
    workload_.output = {out, spread};
    return true;
  }

  /// Decode-only rows: full batches whose prompts were prefilled elsewhere.
  void read_decode_alone() {
    workload_.load = load_kind::closed_loop;
    workload_.prompts_cached = true;
    workload_.measured = {.steady = true};
    workload_.output.spread = jitter;
    const std::int64_t ranks = std::int64_t{workload_.replicas} * workload_.attention_dp;
    std::int64_t each = row_.integer("batch_limit_per_instance").value_or(0);
    if (each == 0) {
      const auto memory = plan_serving_memory(out_.hardware, *out_.software, *out_.net, workload_);
      const double held = workload_.input.mean + workload_.output.mean / 2;
      each = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(memory.kv_capacity_tokens) /
                                                                 workload_.attention_dp / held));
      note(fmt::format("batch not stated: {} sequences per GPU, which fill the KV cache", each));
    }
    workload_.engine.max_batch_size = workload_.engine.max_num_tokens = each;
    workload_.concurrency = each * ranks;
    workload_.requests = 3 * workload_.concurrency;
  }

  void read_open_loop() {
    // If the rate column holds completed requests, the notes give the offered rate.
    auto rate = row_.number("request_rate_per_s");
    static constexpr std::string_view offered = "offered ";
    bool all_at_once = false;
    if (const std::size_t at = row_["notes"].find(offered); at != std::string::npos) {
      const std::string_view text = std::string_view(row_["notes"]).substr(at + offered.size());
      all_at_once = text.starts_with("INF");
      if (const auto n = leading(text)) rate = static_cast<double>(*n);
    }
    if (!rate && !all_at_once) throw unsupported("request rate not stated");
    workload_.requests = row_.integer("num_prompts").value_or(0);
    if (all_at_once) {
      if (workload_.requests == 0) throw unsupported("number of requests not stated");
      workload_.load = load_kind::closed_loop;
      workload_.concurrency = workload_.requests;
      return;
    }
    out_.request_rate = *rate;
    workload_.load = load_kind::open_loop;
    workload_.arrivals = {has("client", "fixed request rate") ? arrival_process::fixed : arrival_process::poisson,
                          *rate, 1};
    if (row_["scenario"].starts_with("mlperf")) read_mlperf_server();
    else workload_.output.spread = jitter, note("output lengths vary by 20 %");
  }

  input_cache& inputs() const { return *inputs_; }

  const csv_row& row_;
  inference_row& out_;
  inference_workload& workload_;

 public:
  input_cache* inputs_ = nullptr;
};

/// Chooses the columns to compare, in the documented order.
void choose_targets(const csv_row& row, inference_row& out) {
  const auto add = [&](served_metric what, const char* column, std::string_view statistic) {
    if (const auto x = row.number(column); x && *x > 0)
      out.targets.push_back({what, column, *x, !statistic.empty() && row[statistic].starts_with("median")});
  };
  add(served_metric::tpot, "tpot_ms", "tpot_stat");
  add(served_metric::ttft, "ttft_ms", "ttft_stat");
  const std::string& s = row["scenario"];
  const bool prompts = s.starts_with("prefill-");
  const bool by_rate = s.find("offline") != std::string::npos || s == "decode-saturated" || s == "prefill-only";
  if (!out.targets.empty() && !by_rate) return;
  const std::size_t before = out.targets.size();
  add(served_metric::throughput, "tokens_per_s_total", "");
  if (out.targets.size() == before) add(served_metric::throughput_per_gpu, "tokens_per_s_per_gpu", "");
  if (out.targets.size() == before && prompts)
    add(served_metric::throughput_per_gpu, "total_in_out_tokens_per_s_per_gpu", "");
}

}  // namespace

bool doubtful(std::string_view suspect) {
  static constexpr std::array<std::string_view, 6> resolved = {
      "attention DP, the column says no",   "read as", "engine is", "gpus and per-GPU columns count",
      "only the first factor of a product", "TTFT"};
  constexpr std::string_view separator = "; ";
  while (!suspect.empty()) {
    const std::size_t end = std::min(suspect.find(separator), suspect.size());
    const std::string_view mark = suspect.substr(0, end);
    if (std::none_of(resolved.begin(), resolved.end(),
                     [&](std::string_view r) { return mark.find(r) != mark.npos; }))
      return true;
    suspect.remove_prefix(std::min(end + separator.size(), suspect.size()));
  }
  return false;
}

inference_row read_inference_row(const csv_row& row, const std::string& table, input_cache& inputs) {
  inference_row out;
  validation_record& r = out.record;
  r = record_of(row, table);
  r.precision = row["weight_precision"];
  r.release = row["engine"];
  r.scenario = row["scenario"];
  try {
    choose_targets(row, out);
    if (out.targets.empty() || r.suspect.starts_with("exclude:")) {
      r.status = record_status::excluded;
      r.reason = out.targets.empty() ? "nothing to compare" : r.suspect;
      return out;
    }
    inference_row_reader reader(row, out);
    reader.inputs_ = &inputs;
    reader.read();
    const auto problems = serving_problems(out.hardware, *out.software, *out.net, out.workload);
    if (!problems.empty()) throw unsupported(fmt::format("{}", fmt::join(problems, "; ")));
    r.kind = has_routed_experts(*out.net) ? "mixture of experts" : "dense";
  } catch (const unsupported& e) {
    r.status = record_status::unsupported;
    r.reason = e.what();
  } catch (const std::exception&) {
    record_failure(r);
  }
  return out;
}

}  // namespace nvlsim
