// Loops of rollouts and updates: answers move for the right reasons.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/run/run.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;
const char* const split = "qwen3-30b-a3b-grpo-gb200-32";
const char* const colocated = "llama3.1-8b-grpo-gb200-8";

scenario loop_scenario(const std::string& name, std::vector<override_option> sets = {}) {
  sets.push_back({"/workload/steps", "2"});
  return load_scenario(root / "scenarios/post-training" / (name + ".json"), sets, folders_under(root));
}
result run_loop(const std::string& name, std::vector<override_option> sets = {}) {
  return run_scenario(loop_scenario(name, std::move(sets)), {.explained = false, .simulate = false}).outcome;
}
double of(const result& r, const char* metric) { return *r.metrics.find(metric)->number(); }
double step(const std::string& name, std::vector<override_option> sets = {}) {
  return of(run_loop(name, std::move(sets)), "step_time_s");
}
std::vector<std::string> problems_of(const std::string& name, std::vector<override_option> sets) {
  std::vector<std::string> out;
  try {
    loop_scenario(name, std::move(sets));
  } catch (const input_error& e) {
    for (const problem& p : e.problems()) out.push_back(p.pointer + ": " + p.what);
  }
  return out;
}
bool says(const std::vector<std::string>& problems, const std::string& text) {
  for (const std::string& p : problems)
    if (p.find(text) != std::string::npos) return true;
  return false;
}

TEST_CASE("A step of a loop is its phases") {
  for (const char* name : {split, colocated}) {
    const result r = run_loop(name);
    CHECK(of(r, "generation_wait_s") + of(r, "logprobs_s") + of(r, "update_s") + of(r, "remainder_s") ==
          Approx(of(r, "step_time_s")).epsilon(1e-9));
  }
}

TEST_CASE("GPUs that wait draw idle power, whoever they wait for") {
  const auto energy = [](const char* name, std::vector<override_option> sets) {
    const result r = run_loop(name, std::move(sets));
    return std::pair(*r.energy.find("gpus_J")->number(), of(r, "step_time_s"));
  };
  // Everything that makes a loop wait and computes nothing.
  for (const auto& [name, member] : {std::pair{colocated, "/workload/reward/time"},
                                     {colocated, "/workload/costs/step_host"},
                                     {colocated, "/workload/costs/change_host"},
                                     {split, "/workload/costs/step_host"},
                                     {split, "/workload/costs/transfer_fixed"}}) {
    INFO(name << " " << member);
    const platform& p = loop_scenario(name).platform;
    const auto [short_J, short_s] = energy(name, {{member, "0 s"}});
    const auto [long_J, long_s] = energy(name, {{member, "1000 s"}});
    const double gpus = static_cast<double>(*run_loop(name).metrics.find("gpus")->integer());
    CHECK(long_J - short_J == Approx(gpus * p.gpu.idle_power.read().base() * (long_s - short_s)).epsilon(0.02));
  }
}

double critic_bytes(const result& r) {
  double sum = 0;
  for (const value& i : *r.memory.at_pointer("/training/items")->items())
    if (i.find("name")->string()->starts_with("critic_")) {
      const value& b = *i.find("bytes");
      sum += b.integer() ? static_cast<double>(*b.integer()) : *b.number();
    }
  return sum;
}

TEST_CASE("A critic has weights, states and passes of its own model") {
  const override_option ppo{"/workload/algorithm", "ppo"};
  const result plain = run_loop(colocated), same = run_loop(colocated, {ppo});
  const result small = run_loop(colocated, {ppo, {"/workload/critic", "qwen3-0.6b"}});
  const result moved = run_loop(colocated, {ppo, {"/workload/offload_critic", "true"}});
  // 16 bit weights, 32 bit gradients, 12 bytes of the optimizer over 8 ranks
  CHECK(critic_bytes(same) == Approx((2 + 4 + 12.0 / 8) * 8.03e9).epsilon(0.25));
  CHECK(critic_bytes(plain) == 0);
  CHECK(critic_bytes(moved) == 0);
  CHECK(critic_bytes(small) < 0.2 * critic_bytes(same));
  CHECK(of(same, "memory_peak_bytes") >= of(plain, "memory_peak_bytes"));
  CHECK(of(same, "update_s") == Approx(2 * of(plain, "update_s")).epsilon(0.02));
  const result alone = run_loop(colocated, {{"/model", "qwen3-0.6b"}});  // trains what the critic is
  CHECK(of(small, "update_s") == Approx(of(plain, "update_s") + of(alone, "update_s")).epsilon(0.02));
  CHECK(of(moved, "update_s") > of(same, "update_s"));
  CHECK(of(same, "remainder_s") > of(small, "remainder_s"));  // more states leave and come back
}

std::string refusal(const std::string& name, std::vector<override_option> sets) {
  const result r = run_loop(name, std::move(sets));
  std::string out = r.status == run_status::infeasible ? "" : "runs";
  for (const std::string& reason : r.reasons) out += reason + "\n";
  return out;
}

TEST_CASE("Models that visit the trainer's GPUs need room beside what stays there") {
  using Catch::Matchers::Contains;
  const std::string ppo = "/workload/algorithm", critic = "/workload/critic", reward = "/workload/reward";
  const override_option moved{"/workload/offload_critic", "true"};
  CHECK(refusal(colocated, {{ppo, "ppo"}, moved}) == "runs");
  CHECK(refusal(colocated, {{reward, R"({"kind": "model", "model": "qwen3-32b"})"}}) == "runs");
  CHECK_THAT(refusal(colocated, {{ppo, "ppo"}, {critic, "qwen3-32b"}, moved}), Contains("critic: "));
  CHECK_THAT(refusal(colocated, {{reward, R"({"kind": "model", "model": "llama3.1-405b"})"}}),
             Contains("reward model: ") && Contains("states that stay"));
  // What is in CPU memory has to fit there, in pools of their own as well.
  for (const char* name : {colocated, split})
    CHECK_THAT(refusal(name, {{ppo, "ppo"}, moved, {"/platform/cpu/memory", "64 GB"}}), Contains("to CPU memory"));
}

TEST_CASE("Teachers and reward models cost passes of their own size") {
  const override_option distil{"/workload/algorithm", "distillation"};
  const double same = of(run_loop(colocated, {distil}), "logprobs_s");
  CHECK(of(run_loop(colocated, {distil, {"/workload/teacher", "qwen3-0.6b"}}), "logprobs_s") < same);
  CHECK(of(run_loop(colocated, {distil, {"/workload/teacher", "qwen3-32b"}}), "logprobs_s") > same);
  // Weights of teachers and references wait in CPU memory, and must have room there.
  CHECK_THAT(
      refusal(colocated, {distil, {"/workload/teacher", "llama3.1-70b"}, {"/platform/cpu/memory", "240 GB"}}),
      Catch::Matchers::Contains("that wait there for their pass"));
  const auto scored = [](const char* reward) {
    return of(run_loop(colocated, {{"/workload/reward", reward}}), "logprobs_s");
  };
  const double none = of(run_loop(colocated), "logprobs_s");
  CHECK(scored(R"({"kind": "model"})") > scored(R"({"kind": "model", "model": "qwen3-0.6b"})"));
  CHECK(scored(R"({"kind": "model", "model": "qwen3-0.6b"})") > none);
  CHECK(scored(R"({"kind": "model", "time": "2 s", "slots": 64})") == Approx(none));
  CHECK(step(colocated, {{"/workload/reward", R"({"kind": "sandbox", "time": "2 s", "slots": 16})"}}) >
        step(colocated, {{"/workload/reward", R"({"kind": "sandbox", "time": "2 s"})"}}) + 100);
}

TEST_CASE("Members that mean nothing are refused with the reason") {
  const auto refused = [](const char* name, std::vector<override_option> sets, const char* what) {
    INFO(what);
    CHECK(says(problems_of(name, std::move(sets)), what));
  };
  refused(split, {{"/workload/admission", "batch"}, {"/workload/staleness", "0.5"}},
          "a whole number with admission batch");
  refused(split, {{"/workload/oversample", "0.2"}, {"/workload/staleness", "1"}}, "already running");
  refused(split, {{"/workload/rollout/model", "qwen3-32b"}}, "samples must be of the policy");
  refused(split, {{"/workload/critic", "qwen3-32b"}}, "ppo");
  refused(split, {{"/workload/teacher", "qwen3-32b"}}, "distillation");
  refused(split, {{"/workload/reward", R"({"kind": "sandbox"})"}}, "needs the time");
  refused(split, {{"/workload/reward", R"({"slots": 4})"}}, "rewards with a time");
  refused(split, {{"/workload/reward", R"({"kind": "model", "model": "qwen3-32b", "time": "1 s"})"}},
          "without a time");
  refused(split, {{"/workload/algorithm", "ppo"}, {"/workload/critic", "qwen3-32c"}}, "unknown model");
}

TEST_CASE("Notes name the pool that waits, and what has no effect") {
  const auto notes = [](const char* name, std::vector<override_option> sets) {
    std::string all;
    for (const std::string& n : run_loop(name, std::move(sets)).notes) all += n + "\n";
    return all;
  };
  CHECK(notes(split, {{"/workload/staleness", "0"}}).find("each waits for the other") != std::string::npos);
  CHECK(notes(split, {{"/workload/costs/rollout_factor", "30"}}).find("rollouts are the bottleneck") !=
        std::string::npos);
  CHECK(notes(split, {{"/workload/costs/update_factor", "30"}}).find("training is the bottleneck") !=
        std::string::npos);
  for (const char* factor : {"rollout_factor", "update_factor"})
    CHECK(notes(split, {{std::string("/workload/costs/") + factor, "30"}}).find("-0 %") == std::string::npos);
  CHECK(notes(split, {{"/workload/algorithm", "dapo"}}).find("dapo drops no prompts") != std::string::npos);
}

TEST_CASE("RDMA is a path of its own") {
  const auto transfer = [](const char* path) {
    return of(run_loop(split, {{"/workload/transfer", path}}), "weight_transfer_s");
  };
  CHECK(transfer("rdma") == Approx(2 * 30.5e9 / 137e9 + 0.26).epsilon(0.02));
  CHECK(transfer("rdma") != transfer("reshard"));
  CHECK(transfer("rdma") < transfer("broadcast"));
}

TEST_CASE("Waits and updates are taken apart") {
  const scenario s = loop_scenario(colocated, {{"/workload/algorithm", "ppo"}});
  const run_record run = run_scenario(s, {.explained = false, .simulate = false});
  for (const char* metric : {"generation_wait_s", "update_s"}) {
    const explanation e = explain(s, run, metric);
    REQUIRE(e.trees.size() == 1);
    double sum = 0;
    for (const cause& c : e.trees.front().whole.parts) sum += c.amount;
    CHECK(sum == Approx(*e.amount));
    CHECK(e.trees.front().whole.parts.size() >= 2);
  }
  double product = 1;
  const explanation updates = explain(s, run, "update_s");
  REQUIRE_FALSE(updates.factors.empty());
  for (const factor& f : updates.factors) product *= std::pow(f.amount, f.power);
  CHECK(product == Approx(*updates.amount));
}

TEST_CASE("Only samples that are trained count as trained") {
  const result all = run_loop(colocated),
               best = run_loop(colocated, {{"/workload/algorithm", "rejection_sampling"}});
  CHECK(of(best, "samples_per_s") * of(best, "step_time_s") ==
        Approx(of(all, "samples_per_s") * of(all, "step_time_s") / 32));
  CHECK(of(best, "dropped_token_fraction") == Approx(31.0 / 32).epsilon(0.02));
  CHECK(of(all, "dropped_token_fraction") == 0);
}

TEST_CASE("Better hardware never makes a loop slower") {
  const double plain = step(colocated);
  for (const char* better : {"/platform/gpu/hbm_bandwidth=16 TB/s", "/platform/gpu/nvlink=1.8 TB/s",
                             "/platform/gpu/c2c=900 GB/s", "/platform/gpu/peaks/bf16/dense=5000 TFLOPS"}) {
    const std::string text = better;
    const auto eq = text.find('=');
    INFO(text);
    CHECK(step(colocated, {{text.substr(0, eq), text.substr(eq + 1)}}) <= plain * 1.0001);
  }
}

TEST_CASE("More work takes longer, and costs of the framework count") {
  const double plain = step(colocated);
  CHECK(step(colocated, {{"/workload/response/mean", "1600"}}) > 1.1 * plain);
  CHECK(step(colocated, {{"/workload/prompts", "128"}}) > 1.3 * plain);
  CHECK(step(colocated, {{"/workload/epochs", "2"}}) > 1.1 * plain);
  CHECK(step(colocated, {{"/workload/reference_logprobs", "false"}}) < plain);
  CHECK(step(colocated, {{"/workload/costs/step_host", "100 s"}}) > plain + 90);
  CHECK(step(colocated, {{"/workload/costs/rollout_factor", "3"}}) > 1.2 * plain);
  CHECK(step(colocated, {{"/workload/packing", "padded"}}) > 1.1 * plain);
  CHECK(step(colocated, {{"/workload/algorithm", "ppo"}}) > plain);
  CHECK(step(colocated, {{"/workload/reward/time", "20 s"}}) > plain + 15);
}

TEST_CASE("What moves to CPU memory and back takes time; gradients are given up") {
  const result plain = run_loop(colocated);
  const auto change = [](const result& r) {
    return *r.breakdown.at_pointer("/phases/change_of_phase_s")->number();
  };
  const double weights = 2 * 8.03e9, optimizer = 12 * 8.03e9 / 8;  // bytes of a GPU: 8 share the optimizer
  const double link = 450e9, pageable = 5e9, engine = 0;           // the engine gives its weights up
  const auto at = run_loop(colocated, {{"/workload/costs/host_copy_rate", "5 GB/s"},
                                       {"/workload/costs/change_host", "0 s"},
                                       {"/platform/gpu/c2c", "450 GB/s"}});
  CHECK(change(at) == Approx(2 * ((weights + engine) / link + optimizer / pageable)).epsilon(0.02));
  CHECK(change(run_loop(colocated, {{"/workload/offload_training", "false"}})) < change(plain));
  CHECK(change(run_loop(colocated, {{"/workload/sleep", "offload"}})) > change(plain));
  CHECK(change(run_loop(colocated, {{"/workload/costs/host_copy_rate", "1 GB/s"}})) > 2 * change(plain));
}

TEST_CASE("The reference takes the place of the policy on the GPU, and pays for it") {
  const auto logprobs = [](std::vector<override_option> sets) {
    return of(run_loop(colocated, std::move(sets)), "logprobs_s");
  };
  const double weights = 2 * 8.03e9;
  const double without = logprobs({{"/workload/costs/reference_copies", "0"}});
  CHECK(logprobs({{"/workload/costs/reference_copies", "3"}, {"/workload/costs/host_copy_rate", "4 GB/s"}}) ==
        Approx(without + 3 * weights / 4e9).epsilon(0.01));
  CHECK(logprobs({{"/workload/costs/reference_copies", "0"}, {"/workload/costs/logprobs_factor", "2"}}) ==
        Approx(2 * without));
}

TEST_CASE("Dynamic micro-batches cost no padding") {
  CHECK(of(run_loop(colocated, {{"/workload/packing", "dynamic"}}), "update_s") <
        of(run_loop(colocated), "update_s"));
}

TEST_CASE("Staleness hides generation or updates, whichever is shorter") {
  const result on = run_loop(split, {{"/workload/staleness", "0"}}), off = run_loop(split);
  CHECK(of(off, "step_time_s") < 0.9 * of(on, "step_time_s"));
  CHECK(of(on, "mean_staleness") == 0);
  CHECK(of(off, "mean_staleness") > 0);
  CHECK(of(off, "generation_wait_s") < of(on, "generation_wait_s"));
}

TEST_CASE("There is no gain from asynchrony where generation is short") {
  // The longest response is 64 tokens: nearly all of the step is training.
  const std::vector<override_option> brief = {{"/workload/response", R"({"mean": 50, "max": 64})"},
                                              {"/workload/training/workload/seq_length", "4096"},
                                              {"/workload/mini_batch_size", "2048"}};
  auto with = [&](const char* staleness) {
    auto sets = brief;
    sets.push_back({"/workload/staleness", staleness});
    return run_loop(split, sets);
  };
  const result on = with("0"), off = with("1");
  CHECK(of(on, "generation_wait_s") < 0.35 * of(on, "step_time_s"));
  CHECK(of(off, "step_time_s") > 0.6 * of(on, "step_time_s"));
}

TEST_CASE("A broadcast of weights takes the same time for more engines") {
  const std::vector<override_option> path = {{"/workload/transfer", "broadcast"}};
  const double few = of(run_loop(split, path), "weight_transfer_s");
  auto more = path;
  more.push_back({"/workload/rollout/workload/layout/replicas", "32"});
  CHECK(of(run_loop(split, more), "weight_transfer_s") < 1.15 * few);
  CHECK(of(run_loop(split, {{"/workload/rollout/workload/engine/weights", "fp8_block"}}), "weight_transfer_s") >
        of(run_loop(split), "weight_transfer_s"));  // engines requantise
}

TEST_CASE("What does not fit is refused with its reason") {
  const result r = run_loop(colocated, {{"/model", "llama3.1-405b"}});
  CHECK(r.status == run_status::infeasible);
  CHECK_FALSE(r.reasons.empty());
  const result pools = run_loop(colocated, {{"/workload/training/workload/dp", "4"}});
  CHECK(pools.status == run_status::infeasible);
  CHECK(pools.reasons.front().find("colocated pools need equal numbers of GPUs") != std::string::npos);
}

TEST_CASE("All problems of a loop are reported, where they are") {
  const auto all = problems_of(colocated, {{"/workload/staleness", "1"},
                                           {"/workload/framework", "nemo-rll"},
                                           {"/workload/response/mean", "5000"},
                                           {"/workload/algorithm", "grop"},
                                           {"/workload/mini_batch_size", "100"}});
  CHECK(says(all, "/workload/staleness"));
  CHECK(says(all, "/workload/framework: unknown framework"));
  CHECK(says(all, "/workload/response/mean"));
  CHECK(says(all, "/workload/algorithm"));
  CHECK(says(all, "/workload/mini_batch_size"));
  CHECK(says(problems_of(colocated, {{"/workload/rollout/workload/load", R"({"kind": "offline"})"}}),
             "/workload/rollout/workload/load"));
  CHECK(says(problems_of(colocated, {{"/workload/training/workload/global_batch_size", "8"}}),
             "/workload/training/workload/global_batch_size"));
  CHECK(says(problems_of(colocated, {{"/workload/training/workload/seq_length", "100"}}),
             "shorter than the longest"));
  CHECK(says(problems_of(colocated, {{"/workload/costs/rollout_factor", "-1"}}), "rollout_factor"));
}

TEST_CASE("Actors and the queue give the same result") {
  const scenario s = loop_scenario(split);
  const result actors = run_scenario(s, {.explained = false, .simulate = true}).outcome;
  const result queue = run_scenario(s, {.explained = false, .simulate = false}).outcome;
  CHECK(of(actors, "step_time_s") == Approx(of(queue, "step_time_s")).epsilon(1e-9));
}

}  // namespace
}  // namespace nvlsim
