#include "nvlsim/planner/draft.hpp"

#include <fmt/format.h>

#include <cmath>

#include "nvlsim/output/output.hpp"
#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim {
namespace {

constexpr const char *usual_server = "vllm", *usual_server_on_amd = "vllm-rocm-0.19";
constexpr const char* usual_trainer = "megatron-bridge-26.06";
constexpr double usual_share = 0.99;
constexpr std::int64_t usual_sequence = 4096, usual_batch_tokens = std::int64_t{1} << 24;
constexpr const char *usual_loop = "nemo-rl", *usual_rollouts = "vllm-0.11",
                     *usual_updates = "megatron-bridge-26.02";
constexpr std::int64_t usual_prompts = 512, usual_samples = 16, usual_mini_batches = 4;
constexpr double usual_prompt = 512, usual_longest = 4;  // tokens; longest response over the mean

struct named_inputs {
  platform hardware;
  model net;
};

named_inputs load_named_inputs(const std::string& platform_name, const std::string& model_name,
                               const data_folders& data, diagnostics& problems) {
  named_inputs out;
  out.hardware = load_platform(platform_name, data, {}, {"--platform", "", {}, {}}, problems).content;
  out.net = load_model(model_name, data, {}, {"MODEL", "", {}, {}}, problems).content;
  return out;
}

bool fast_in_fp4(const platform& p) {
  return p.gpu.architecture.starts_with("blackwell") || p.gpu.architecture == "rubin";
}
bool fast_in_fp8(const platform& p) { return fast_in_fp4(p) || p.gpu.architecture == "hopper"; }

std::string usual_server_of(const platform& p) {
  return p.gpu.architecture.starts_with("cdna") ? usual_server_on_amd : usual_server;
}

value whole_or_number(double x) {
  if (x == std::floor(x) && std::abs(x) < 1e15) return value{static_cast<std::int64_t>(x)};
  return value{x};
}

value platform_member(const std::string& name, const std::string& price) {
  value out{value::object{{"use", name}}};
  if (!price.empty()) out.set("set", value::object{{"/price/per_gpu", price}});
  return out;
}

value draft_engine(const serving_draft& d, const named_inputs& in, std::vector<std::string>& assumed) {
  value out{value::object{}};
  std::string weights = d.weights;
  if (weights.empty() && !in.net.checkpoint.weights) {
    weights = fast_in_fp4(in.hardware) ? "nvfp4" : in.hardware.gpu.peak(precision::fp8) ? "fp8" : "bf16";
    const bool experts = has_routed_experts(in.net);
    if (weights == "nvfp4" && experts) out.set("attention_weights", "bf16");
    assumed.push_back(fmt::format("weights {}{} (--weights)", weights,
                                  weights == "nvfp4" && experts
                                      ? ", attention in bf16 as in NVIDIA's NVFP4 checkpoints of routed models"
                                      : ""));
  }
  if (!weights.empty()) {
    value all{value::object{{"weights", weights}}};
    for (const auto& [k, v] : *out.members()) all.set(k, v);
    out = std::move(all);
  }
  if (!d.kv_cache.empty()) out.set("kv_cache", d.kv_cache);
  return out;
}

}  // namespace

value draft_serving(const serving_draft& d, const data_folders& data, std::vector<std::string>& assumed,
                    diagnostics& problems) {
  if (!(d.input >= 1)) problems.add("--input", "", "give the mean number of tokens of a prompt");
  if (!(d.output >= 1)) problems.add("--output-tokens", "", "give the mean number of tokens of an answer");
  if (d.ttft.empty() && d.tpot.empty() && d.e2e.empty())
    problems.add("--ttft", "", "give at least one limit: --ttft, --tpot or --e2e");
  const named_inputs in = load_named_inputs(d.platform, d.model, data, problems);
  if (!problems.empty()) return {};
  const std::string software = d.stack.empty() ? usual_server_of(in.hardware) : d.stack;
  if (d.stack.empty()) assumed.push_back(fmt::format("stack {} (--stack)", software));
  value slo{value::object{}};
  const auto limit = [&](const char* name, const std::string& text) {
    if (!text.empty()) slo.set(name, text);
  };
  limit("ttft", d.ttft);
  limit("tpot", d.tpot);
  limit("e2e", d.e2e);
  if (d.means) slo.set("statistic", "mean");
  else slo.set("share", d.share.value_or(usual_share));
  if (!d.means && !d.share)
    assumed.push_back(fmt::format("limits hold for {:g} % of the requests (--share, --mean)", 100 * usual_share));
  assumed.emplace_back("requests arrive as a Poisson process and all have the given lengths");
  return value::object{
      {"schema", "nvlsim.scenario/1"},
      {"name",
       fmt::format("{}-{}", d.model.substr(d.model.rfind('/') + 1), d.platform.substr(d.platform.rfind('/') + 1))},
      {"platform", platform_member(d.platform, d.price)},
      {"stack", software},
      {"model", d.model},
      {"workload",
       value::object{{"kind", "inference"},
                     {"engine", draft_engine(d, in, assumed)},
                     {"load", value::object{{"kind", "open_loop"},
                                            {"requests", 2000},
                                            {"requests_per_s", 1},
                                            {"input", value::object{{"mean", whole_or_number(d.input)}}},
                                            {"output", value::object{{"mean", whole_or_number(d.output)}}}}},
                     {"slo", std::move(slo)},
                     {"layout", value::object{{"tp", 1}}}}}};
}

value draft_training(const training_draft& d, const data_folders& data, std::vector<std::string>& assumed,
                     diagnostics& problems) {
  const named_inputs in = load_named_inputs(d.platform, d.model, data, problems);
  if (!problems.empty()) return {};
  const std::string software = d.stack.empty() ? usual_trainer : d.stack;
  if (d.stack.empty()) assumed.push_back(fmt::format("stack {} (--stack)", software));
  std::string precision = d.precision;
  if (precision.empty()) {
    precision = fast_in_fp4(in.hardware) ? "mxfp8" : fast_in_fp8(in.hardware) ? "fp8" : "bf16";
    assumed.push_back(fmt::format("precision {} (--precision)", precision));
  }
  const std::int64_t length = d.seq_length > 0 ? d.seq_length : usual_sequence;
  if (d.seq_length == 0) assumed.push_back(fmt::format("sequences of {} tokens (--seq-length)", length));
  const std::int64_t batch =
      d.global_batch_size > 0 ? d.global_batch_size : std::max<std::int64_t>(1, usual_batch_tokens / length);
  if (d.global_batch_size == 0)
    assumed.push_back(fmt::format("about {} sequences a step, 16 Mi tokens (--global-batch-size)", batch));
  value workload{value::object{{"kind", "training"},
                               {"seq_length", length},
                               {"global_batch_size", batch},
                               {"micro_batch_size", 1},
                               {"precision", precision},
                               {"tp", 1},
                               {"pp", 1},
                               {"dp", 1}}};
  if (d.tokens > 0) workload.set("token_budget", whole_or_number(d.tokens));
  return value::object{{"schema", "nvlsim.scenario/1"},
                       {"name", fmt::format("{}-{}", d.model.substr(d.model.rfind('/') + 1),
                                            d.platform.substr(d.platform.rfind('/') + 1))},
                       {"platform", platform_member(d.platform, d.price)},
                       {"stack", software},
                       {"model", d.model},
                       {"workload", std::move(workload)}};
}

value draft_post_training(const post_training_draft& d, const data_folders& data,
                          std::vector<std::string>& assumed, diagnostics& problems) {
  if (!(d.response_tokens >= 1))
    problems.add("--output-tokens", "", "give the mean number of tokens of a response");
  if (d.max_response > 0 && d.max_response <= d.response_tokens)
    problems.add("--max-response", "", "must be above the mean response, --output-tokens");
  const named_inputs in = load_named_inputs(d.platform, d.model, data, problems);
  if (!problems.empty()) return {};
  const auto given = [&](auto x, auto usual, const char* what, const char* option) {
    if (x > 0) return x;
    assumed.push_back(fmt::format("{} {} ({})", usual, what, option));
    return usual;
  };
  const std::int64_t prompts = given(d.prompts, usual_prompts, "prompts a step", "--prompts");
  const std::int64_t samples = given(d.samples, usual_samples, "samples a prompt", "--samples");
  const double prompt = given(d.prompt_tokens, usual_prompt, "tokens a prompt", "--input");
  const double longest = given(d.max_response, std::ceil(usual_longest * d.response_tokens),
                               "tokens at most a response", "--max-response");
  const std::int64_t mini = std::max<std::int64_t>(1, prompts / usual_mini_batches) * samples;
  assumed.push_back(fmt::format("{} samples a mini-batch (--set /workload/mini_batch_size=N)", mini));
  assumed.push_back(fmt::format("{} with {} and {}, weights in bf16", usual_loop, usual_rollouts, usual_updates));
  return value::object{
      {"schema", "nvlsim.scenario/1"},
      {"name", fmt::format("{}-grpo-{}", d.model.substr(d.model.rfind('/') + 1),
                           d.platform.substr(d.platform.rfind('/') + 1))},
      {"platform", platform_member(d.platform, d.price)},
      {"model", d.model},
      {"workload",
       value::object{
           {"kind", "post_training"},
           {"framework", usual_loop},
           {"algorithm", "grpo"},
           {"prompts", prompts},
           {"samples_per_prompt", samples},
           {"prompt_length", whole_or_number(std::round(prompt))},
           {"response", value::object{{"mean", whole_or_number(d.response_tokens)},
                                      {"max", whole_or_number(std::round(longest))}}},
           {"mini_batch_size", mini},
           {"rollout",
            value::object{{"stack", usual_rollouts},
                          {"workload", value::object{{"engine", value::object{{"weights", "bf16"},
                                                                              {"kv_cache", "bf16"},
                                                                              {"max_batch_size", 1024},
                                                                              {"kv_fraction", 0.8}}},
                                                     {"layout", value::object{{"tp", 1}, {"replicas", 1}}}}}}},
           {"training", value::object{{"stack", usual_updates},
                                      {"workload", value::object{{"precision", "bf16"},
                                                                 {"recompute", "full"},
                                                                 {"tp", 1},
                                                                 {"pp", 1},
                                                                 {"ep", 1},
                                                                 {"dp", 1}}}}}}}};
}

std::string scenario_file_text(const value& text) { return to_json(text); }

}  // namespace nvlsim
