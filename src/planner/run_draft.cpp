#include "nvlsim/planner/run_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "nvlsim/config/document.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/planner/draft.hpp"
#include "nvlsim/planner/plan_question.hpp"
#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t usual_requests_of_client = 10, usual_requests = 2000;

using texts = std::map<std::string, std::string>;

/// A whole number of an option; `otherwise` where it is not given.
std::int64_t count_of(const texts& given, const char* name, std::int64_t otherwise, diagnostics& problems) {
  const auto at = given.find(name);
  if (at == given.end()) return otherwise;
  std::int64_t n = 0;
  const std::string& text = at->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc() && end == text.data() + text.size() && n >= 1 && n <= 10'000'000) return n;
  problems.add(name, "", fmt::format("\"{}\" is not a whole number from 1 to 10000000", text));
  return otherwise;
}

std::string text_of(const texts& given, const char* name) {
  const auto at = given.find(name);
  return at == given.end() ? std::string() : at->second;
}

double number_of(const texts& given, const char* name, diagnostics& problems) {
  const std::string text = text_of(given, name);
  if (text.empty()) return 0;
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error == std::errc() && end == text.data() + text.size() && x > 0 && x < 1e18) return x;
  problems.add(name, "", fmt::format("\"{}\" is not a number above 0", text));
  return 0;
}

/// Options that are of one kind of workload alone.
std::vector<std::string> only_of(const texts& given, bool serving) {
  std::vector<std::string> out;
  for (const draft_option& o : draft_options())
    if (given.contains(o.name) && *(serving ? o.serving : o.training) && !*(serving ? o.training : o.serving))
      out.emplace_back(o.name);
  return out;
}

/// Writes the options over the draft of their kind.
void write_options(value& text, const texts& given, bool serving) {
  std::vector<std::pair<std::string, value>> more;
  for (const draft_option& o : draft_options()) {
    const char* pointer = serving ? o.serving : o.training;
    const auto at = given.find(o.name);
    if (at != given.end() && pointer[0] == '/') more.emplace_back(pointer, config::parse_scalar(at->second));
  }
  text = with_members(std::move(text), more);
}

struct gpu_counts {
  std::int64_t gpus = 0, group = 1;  ///< of all, and of a model replica
};

gpu_counts counts_of(const texts& given, bool serving, diagnostics& problems) {
  gpu_counts out;
  for (const char* name : {"--tp", "--pp", serving ? "--attention-dp" : "--cp"})
    out.group *= count_of(given, name, 1, problems);
  const char* copies = serving && !given.contains("--dp") ? "--replicas" : "--dp";
  if (serving && given.contains("--dp") && given.contains("--replicas"))
    problems.add("--dp", "", "says the same as --replicas; give one of them");
  const std::int64_t stated = count_of(given, copies, 0, problems);
  out.gpus = count_of(given, "--gpus", out.group * std::max<std::int64_t>(1, stated), problems);
  if (out.gpus % out.group != 0)
    problems.add("--gpus", "",
                 fmt::format("{} is not divisible by {} = {}", out.gpus,
                             serving ? "tp x pp x attention-dp" : "tp x pp x cp", out.group));
  else if (stated > 0 && stated * out.group != out.gpus)
    problems.add(copies, "", fmt::format("{} x {} GPUs does not match --gpus {}", stated, out.group, out.gpus));
  return out;
}

value draft_step(const texts& given, const data_folders& data, std::vector<std::string>& assumed,
                 diagnostics& problems) {
  const gpu_counts n = counts_of(given, false, problems);
  training_draft d;
  d.model = text_of(given, "--model");
  d.platform = text_of(given, "--platform");
  d.stack = text_of(given, "--stack");
  d.precision = text_of(given, "--precision");
  d.seq_length = count_of(given, "--seq-length", 0, problems);
  d.global_batch_size = count_of(given, "--global-batch-size", 0, problems);
  const std::int64_t micro = count_of(given, "--micro-batch-size", 1, problems);
  value text = draft_training(d, data, assumed, problems);
  if (!problems.empty()) return text;
  const std::int64_t dp = n.gpus / n.group;
  write_options(text, given, false);
  std::vector<std::pair<std::string, value>> more = {{"/workload/dp", dp}};
  if (count_of(given, "--vp", 1, problems) > 1 && !given.contains("--schedule"))
    more.emplace_back("/workload/schedule", "interleaved");
  if (d.global_batch_size == 0) {  // assumed, so it may be one that divides
    const std::int64_t unit = dp * micro, about = *text.at_pointer("/workload/global_batch_size")->integer();
    more.emplace_back("/workload/global_batch_size", std::max<std::int64_t>(1, (about + unit / 2) / unit) * unit);
  }
  const platform p = load_platform(d.platform, data, {}, {"--platform", "", {}, {}}, problems).content;
  const std::int64_t each =
      std::clamp<std::int64_t>(default_segment(p, n.gpus), 1, std::max(1, p.gpus_per_rack()));
  more.emplace_back("/platform/racks", (n.gpus + each - 1) / each);
  return with_members(std::move(text), more);
}

value draft_server(const texts& given, const data_folders& data, std::vector<std::string>& assumed,
                   diagnostics& problems) {
  const gpu_counts n = counts_of(given, true, problems);
  serving_draft d;
  d.model = text_of(given, "--model");
  d.platform = text_of(given, "--platform");
  d.stack = text_of(given, "--stack");
  d.weights = text_of(given, "--weights");
  d.kv_cache = text_of(given, "--kv-cache");
  d.input = number_of(given, "--input", problems);
  d.output = number_of(given, "--output-tokens", problems);
  d.e2e = "1 h";
  std::vector<std::string> of_draft;
  value text = draft_serving(d, data, of_draft, problems);
  if (!problems.empty()) return text;
  for (const std::string& a : of_draft)
    if (a.starts_with("stack") || a.starts_with("weights")) assumed.push_back(a);
  const std::int64_t clients = count_of(given, "--concurrency", 0, problems);
  const bool open = given.contains("--requests-per-s");
  if (clients > 0 && open) problems.add("--concurrency", "", "give either this or --requests-per-s");
  const value& drafted = *text.at_pointer("/workload/load");
  value load{value::object{{"kind", clients > 0 ? "closed_loop" : open ? "open_loop" : "offline"}}};
  const std::int64_t requests = count_of(
      given, "--load-requests", clients > 0 ? usual_requests_of_client * clients : usual_requests, problems);
  if (!given.contains("--load-requests"))
    assumed.push_back(fmt::format("{} requests (--load-requests)", requests));
  if (clients == 0 && !open)
    assumed.emplace_back("all requests arrive at the start (--concurrency, --requests-per-s)");
  load.set("requests", requests);
  if (clients > 0) load.set("concurrency", clients);
  if (open) load.set("requests_per_s", config::parse_scalar(text_of(given, "--requests-per-s")));
  for (const char* k : {"input", "output"}) load.set(k, *drafted.find(k));
  text = with_members(std::move(text), {{"/workload/slo", value{}}, {"/workload/load", std::move(load)}});
  write_options(text, given, true);
  const platform p = load_platform(d.platform, data, {}, {"--platform", "", {}, {}}, problems).content;
  const std::int64_t domain = std::max(1, p.gpus_per_rack());
  return with_members(std::move(text), {{"/workload/layout/replicas", n.gpus / n.group},
                                        {"/platform/racks", (n.gpus + domain - 1) / domain}});
}

}  // namespace

const std::vector<draft_option>& draft_options() {
  static const std::vector<draft_option> all = {
      {"--model", "model", "model", "Model: makes a scenario from options instead of a file", "NAME"},
      {"--platform", "platform", "platform", "Platform of that scenario", "NAME"},
      {"--stack", "stack", "stack", "Stack of that scenario (default: megatron-bridge-26.06 or vllm)", "NAME"},
      {"--gpus", "gpus", "gpus", "GPUs; data parallel ranks or replicas, and racks, follow"},
      {"--tp", "/workload/tp", "/workload/layout/tp", "Tensor parallel size"},
      {"--pp", "/workload/pp", "/workload/layout/pp", "Pipeline parallel size"},
      {"--ep", "/workload/ep", "/workload/layout/ep", "Expert parallel size"},
      {"--vp", "/workload/vp", "", "Training: model chunks of a stage"},
      {"--cp", "/workload/cp", "", "Training: context parallel size"},
      {"--dp", "dp", "replicas", "Data parallel size; serving: replicas (default: what --gpus leaves)"},
      {"--etp", "/workload/etp", "", "Training: tensor parallel size of experts"},
      {"--seq-length", "/workload/seq_length", "", "Training: tokens of a sequence (default: 4096)"},
      {"--global-batch-size", "/workload/global_batch_size", "", "Training: sequences of a step"},
      {"--micro-batch-size", "/workload/micro_batch_size", "",
       "Training: sequences of a micro-batch (default: 1)"},
      {"--precision", "/workload/precision", "", "Training: format of linear layers", "FORMAT"},
      {"--recompute", "/workload/recompute", "", "Training: none, full, selective, or a list of modules", "WHAT"},
      {"--schedule", "/workload/schedule", "", "Training: pipeline schedule", "NAME"},
      {"--attention-dp", "", "/workload/layout/attention_dp", "Serving: ranks with sequences of their own"},
      {"--replicas", "", "replicas", "Serving: copies of the engine (default: what --gpus leaves)"},
      {"--input", "", "input", "Serving: mean tokens of a prompt"},
      {"--output-tokens", "", "output", "Serving: mean tokens of an answer"},
      {"--concurrency", "", "concurrency", "Serving: clients, each with one request at a time"},
      {"--requests-per-s", "", "rate", "Serving: requests that arrive a second"},
      {"--load-requests", "", "requests", "Serving: number of requests"},
      {"--weights", "", "weights", "Serving: format of the weights", "FORMAT"},
      {"--kv-cache", "", "kv_cache", "Serving: format of the KV cache", "FORMAT"},
  };
  return all;
}

value draft_run(const std::vector<std::pair<std::string, std::string>>& options, const data_folders& data,
                std::vector<std::string>& assumed, diagnostics& problems) {
  const texts given(options.begin(), options.end());
  if (!given.contains("--platform"))
    problems.add("--platform", "", "a model needs a platform (nvlsim platform list)");
  if (!given.contains("--model")) problems.add("--model", "", "give a model (nvlsim model list)");
  const std::vector<std::string> of_training = only_of(given, false), of_serving = only_of(given, true);
  if (!of_training.empty() && !of_serving.empty())
    problems.add(of_serving.front(), "",
                 fmt::format("is a serving option, {} a training option; use one kind", of_training.front()));
  if (!problems.empty()) return {};
  return of_serving.empty() ? draft_step(given, data, assumed, problems)
                            : draft_server(given, data, assumed, problems);
}

}  // namespace nvlsim
