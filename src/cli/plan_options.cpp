#include "cli/plan_options.hpp"

#include "cli/option_text.hpp"
#include "nvlsim/planner/run_draft.hpp"

namespace nvlsim::cli {
namespace {

/// Options that every question has.
void add_common(CLI::App* c, plan_arguments& a) {
  c->add_option("--price", a.price,
                "Price of a GPU, \"4 USD/h\" (default: the platform's; costs are printed only with a price)")
      ->type_name("PRICE");
  c->add_option("--set", a.sets, "Override an input by JSON pointer, as for nvlsim run (repeatable)")
      ->type_name("POINTER=VALUE")
      ->allow_extra_args(false);
  add_format(c, a.format, {"table", "json"});
}

void add_platforms(CLI::App* c, plan_arguments& a, const char* help) {
  c->add_option("--platform", a.platforms, help)->delimiter(',')->allow_extra_args(false)->type_name("NAMES");
}

void add_gpus(CLI::App* c, plan_arguments& a, const char* help) {
  c->add_option("--gpus", a.gpus, help)->type_name("N");
}

void add_output(CLI::App* c, plan_arguments& a) {
  c->add_option("-o,--output", a.output, "Write the scenario of the best answer to this file")->type_name("FILE");
}

template <class F>
CLI::App* question(CLI::App* plan, const char* word, const char* help, F&& chosen) {
  CLI::App* c = plan->add_subcommand(word, help);
  c->callback(std::forward<F>(chosen));
  return c;
}

void add_serving(CLI::App* c, plan_arguments& a) {
  c->add_option("MODEL", a.subject, "Model, or a serving scenario that gives model, engine, lengths and slo")
      ->required();
  add_platforms(c, a, "Platforms, comma separated; with a scenario: instead of its own");
  c->add_option("--stack", a.stack, "Serving stack (default: vllm, or the scenario's)");
  add_gpus(c, a, "GPUs to use (default: what --users or --requests-per-s need; else one NVLink domain)");
  c->add_option("--input", a.input, "Mean tokens of a prompt")->check(number_from(1, 1e9));
  c->add_option("--output-tokens", a.output_tokens, "Mean tokens of an answer")->check(number_from(1, 1e9));
  c->add_option("--trace", a.trace, "File of requests that gives the lengths, as a scenario's trace does")
      ->type_name("FILE");
  c->add_option("--ttft", a.ttft, "Limit on the time to the first token, \"2 s\"")->type_name("TIME");
  c->add_option("--tpot", a.tpot, "Limit on the time between tokens, \"30 ms\"")->type_name("TIME");
  c->add_option("--e2e", a.e2e, "Limit on the time to the last token")->type_name("TIME");
  c->add_option("--share", a.share, "Share of the requests that keep each limit (default: 0.99)")
      ->check(number_from(0.01, 1));
  c->add_flag("--mean", a.means, "Limits are on the mean over requests");
  CLI::Option* users =
      c->add_option("--users", a.users, "Users to serve at once: requests in flight")->check(number_from(1, 1e9));
  c->add_option("--requests-per-s", a.requests_per_s, "Requests a second to serve")
      ->check(number_from(1e-6, 1e9))
      ->excludes(users);
  c->add_option("--weights", a.weights,
                "Precision of the weights (default: the checkpoint's, else the GPU's fastest)");
  c->add_option("--kv-cache", a.kv_cache, "Precision of the KV cache");
  c->add_option("--launch", a.launch, "Engine whose launch commands are printed (default: the stack's)")
      ->check(CLI::IsMember({"vllm", "sglang", "tensorrt-llm", "dynamo", "all"}));
  add_output(c, a);
  add_common(c, a);
  c->footer(
      "examples:\n"
      "  nvlsim plan serving deepseek-r1 --platform gb300-nvl72 --gpus 72 --input 1024 --output-tokens 1024 "
      "--ttft '2 s' --tpot '33 ms'\n"
      "  nvlsim plan serving gpt-oss-120b --platform gb200-nvl72,gb300-nvl72 --users 20000 --input 2000 "
      "--output-tokens 500 --ttft '1 s' --tpot '20 ms' --price '4 USD/h' -o server.json");
}

void add_training(CLI::App* c, plan_arguments& a) {
  c->add_option("MODEL", a.subject, "Model, or a training scenario that gives model, batch and precision")
      ->required();
  add_platforms(c, a, "Platforms, comma separated; with a scenario: instead of its own");
  c->add_option("--stack", a.stack, "Training stack (default: megatron-bridge-26.06, or the scenario's)");
  c->add_option("--tokens", a.tokens, "Tokens of the whole run: 15e12")->check(number_from(1, 1e18));
  CLI::Option* days = c->add_option("--days", a.days, "Days that the run may take")->check(number_from(1e-3, 1e6));
  add_gpus(c, a, "GPUs to use (default: what --days needs)");
  c->get_option("--gpus")->excludes(days);
  c->add_option("--goodput", a.goodput, "Productive share of the time; failures and restarts take the rest")
      ->check(number_from(0.01, 1))
      ->capture_default_str();
  c->add_option("--failures", a.failures, "Play the run through the failures of an operation profile: nvl72-fleet")
      ->excludes(c->get_option("--goodput"));
  c->add_option("--seq-length", a.seq_length, "Tokens of a sequence (default: 4096)")
      ->check(whole_from(1, 1 << 24));
  c->add_option("--global-batch-size", a.global_batch_size, "Sequences of a step (default: about 16 Mi tokens)")
      ->check(whole_from(1, 1 << 24));
  c->add_option("--precision", a.precision,
                "Precision of linear layers (default: mxfp8 on Blackwell, fp8 on Hopper)");
  add_output(c, a);
  add_common(c, a);
  c->footer(
      "examples:\n"
      "  nvlsim plan training kimi-k2 --platform gb300-nvl72 --tokens 15e12 --days 30 --price '4 USD/h'\n"
      "  nvlsim plan training llama3.1-405b-gb300-512 --gpus 1024 -o step.json");
}

void add_post_training(CLI::App* c, plan_arguments& a) {
  c->add_option("MODEL", a.subject, "Model, or a post-training scenario that gives lengths, batch and stacks")
      ->required();
  add_platforms(c, a, "Platforms, comma separated; with a scenario: instead of its own");
  add_gpus(c, a, "GPUs to divide between rollouts and training");
  c->get_option("--gpus")->required();
  c->add_option("--more", a.more, "Also print what N more GPUs gain in each pool")->check(whole_from(1, 1 << 24));
  c->add_option("--staleness", a.staleness, "How many updates old a sample may be: 0,1 (default: 0,1,2)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_from(0, 1000));
  c->add_option("--prompts", a.prompts, "Prompts of a step (default: 512)")->check(whole_from(1, 1 << 20));
  c->add_option("--samples", a.samples, "Samples of a prompt (default: 16)")->check(whole_from(1, 100'000));
  c->add_option("--input", a.input, "Tokens of a prompt (default: 512)")->check(number_from(1, 1 << 26));
  c->add_option("--output-tokens", a.output_tokens, "Mean tokens of a response")->check(number_from(1, 1 << 26));
  c->add_option("--max-response", a.max_response, "Tokens at which a response is cut (default: 4 times the mean)")
      ->check(number_from(1, 1 << 26));
  add_output(c, a);
  add_common(c, a);
  c->footer(
      "examples:\n"
      "  nvlsim plan post-training qwen3-30b-a3b --platform gb300-nvl72 --gpus 32 --output-tokens 3000\n"
      "  nvlsim plan post-training deepseek-v3-grpo-gb200-512 --gpus 256 --more 64 -o loop.json");
}

void add_scaling(CLI::App* c, plan_arguments& a) {
  c->add_option("SCENARIO", a.subject, "Training scenario")->required();
  add_platforms(c, a, "Platforms to compare, comma separated (default: the scenario's)");
  add_gpus(c, a, "Numbers of GPUs: 72..9216 doubles, 72,144,576 lists");
  c->get_option("--gpus")->required();
  c->add_flag("--weak", a.weak, "The batch grows with the GPUs (default: it stays, strong scaling)");
  add_common(c, a);
  c->footer(
      "example:\n"
      "  nvlsim plan scaling llama3.1-405b-gb300-512 --gpus 72..9216 --platform gb200-nvl72,gb300-nvl72 --set "
      "/workload/global_batch_size=9216");
}

void add_next_dollar(CLI::App* c, plan_arguments& a) {
  c->add_option("SCENARIO", a.subject, "Training or serving scenario")->required();
  add_platforms(c, a, "Platform instead of the scenario's");
  c->add_option("--step", a.step, "Relative improvement of each part")
      ->check(number_from(0.001, 10))
      ->capture_default_str();
  c->add_option("--objective", a.objective,
                "Metric (default: step_time_s, output_tokens_per_s, or the load held within the slo)")
      ->type_name("METRIC");
  c->add_option("--cost", a.costs, "Cost of the improvement of a part, USD a GPU: nic_bandwidth=400 (repeatable)")
      ->type_name("PART=USD")
      ->allow_extra_args(false);
  add_common(c, a);
  c->footer(
      "examples:\n"
      "  nvlsim plan next-dollar llama3.1-405b-gb300-512\n"
      "  nvlsim plan next-dollar deepseek-r1-gb300-prefill-decode --cost hbm_bandwidth=1500 --cost "
      "nic_bandwidth=400");
}

}  // namespace

void add_plan(CLI::App& app, plan_arguments& a, const std::function<void()>& chosen) {
  CLI::App* c = app.add_subcommand("plan",
                                   "Answer how many GPUs, which layout and what cost: serving, training, "
                                   "post-training, scaling, next-dollar");
  c->require_subcommand(1);
  const auto choose = [&a, chosen](plan_kind kind) {
    return [&a, chosen, kind] {
      a.kind = kind;
      chosen();
    };
  };
  add_serving(question(c, "serving", "The deployment of a model that serves the most users within limits",
                       choose(plan_kind::serving)),
              a);
  add_training(question(c, "training", "The GPUs, layout and cost of a training run", choose(plan_kind::training)),
               a);
  add_post_training(
      question(c, "post-training", "The split of GPUs between rollouts and training, and their layouts",
               choose(plan_kind::post_training)),
      a);
  add_scaling(question(c, "scaling", "The best layout of a training step at each number of GPUs",
                       choose(plan_kind::scaling)),
              a);
  add_next_dollar(question(c, "next-dollar", "Which part of the hardware gains most when it gets better",
                           choose(plan_kind::next_dollar)),
                  a);
}

void add_draft(CLI::App* c, draft_texts& into) {
  for (const draft_option& o : draft_options())
    c->add_option_function<std::string>(
         o.name, [&into, name = o.name](const std::string& text) { into.emplace_back(name, text); }, o.help)
        ->type_name(o.what);
}

void add_new(CLI::App* scenario, new_arguments& a, std::function<void()> chosen) {
  CLI::App* c = scenario->add_subcommand("new", "Write a scenario of a model on a platform, from options");
  add_draft(c, a.draft);
  c->add_option("-o,--output", a.output, "File to write (default: stdout)")->type_name("FILE");
  c->add_option("--set", a.sets, "Override a member by JSON pointer, as for nvlsim run (repeatable)")
      ->type_name("POINTER=VALUE")
      ->allow_extra_args(false);
  c->footer(
      "examples:\n"
      "  nvlsim scenario new --model deepseek-v3 --platform gb300-nvl72 --gpus 256 --pp 8 --ep 32 -o step.json\n"
      "  nvlsim scenario new --model gpt-oss-120b --platform gb200-nvl72 --gpus 8 --input 2000 --output-tokens "
      "500 "
      "--concurrency 256");
  c->callback(std::move(chosen));
}

}  // namespace nvlsim::cli
