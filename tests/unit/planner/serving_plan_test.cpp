#include "nvlsim/planner/serving_plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/plan_text.hpp"
#include "nvlsim/planner/launch_commands.hpp"
#include "nvlsim/planner/trace_load.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/serving/inference.hpp"
#include "planner/cut_lengths.hpp"
#include "planner/serving_combinations.hpp"
#include "planner/serving_trials.hpp"
#include "planner/worker_rates.hpp"
#include "support/root.hpp"
#include "unit/planner/plan_fixture.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

double metric(const result& r, const char* name) {
  double x = 0;
  const value* v = r.metrics.find(name);
  REQUIRE(v);
  REQUIRE(output::as_double(*v, x));
  return x;
}

double held(const serving_plan& p) { return p.best() ? p.best()->requests_per_s : 0; }

constexpr double found_to = 0.01;  // a load is found to 0.2 %, and layouts tried differ with the GPUs

TEST_CASE("Plan of a server is what a run of its scenario says, by the queue and by the engine") {
  const serving_question q = test::small_server(2);
  const serving_plan p = plan_serving(q);
  REQUIRE(p.aggregated);
  REQUIRE(p.pooled);
  for (const planned_server* s : {&*p.aggregated, &*p.pooled}) {
    const scenario again = read_base({s->text, q.base.overrides, q.base.data});
    const result r = run_scenario(again).outcome;
    CHECK(r.status == run_status::ok);
    for (const char* name : {"requests_per_s", "output_tokens_per_s_per_gpu", "output_tokens_per_s_per_user"})
      CHECK(metric(r, name) == Approx(metric(s->outcome, name)).epsilon(1e-9));
    CHECK(std::get<inference_workload>(again.workload).gpus() == s->gpus);
    CHECK(s->gpus <= 2);
  }
  CHECK(p.best()->requests_per_s == std::max(p.aggregated->requests_per_s, p.pooled->requests_per_s));
}

TEST_CASE(
    "The load that a plan says a deployment holds keeps the limits, however loose, in the run that it gives") {
  for (const char* tpot : {"20 ms", "1 s"}) {
    serving_question q = test::small_server(2, tpot);
    q.base.text = with_members(q.base.text, {{"/workload/slo/share", 0.99}, {"/workload/load/output/mean", 150}});
    const serving_plan p = plan_serving(q);
    for (const auto* s : {&p.aggregated, &p.pooled}) {
      if (!*s) continue;
      INFO(tpot << " " << layout_text(**s));
      const scenario again = read_base({(*s)->text, q.base.overrides, q.base.data});
      const auto& w = std::get<inference_workload>(again.workload);
      CHECK(measure_inference(serve(again.platform, again.stack, again.model, w), w).objective_met);
    }
  }
}

TEST_CASE("More GPUs never hold less, nor do looser limits") {
  const double one = held(plan_serving(test::small_server(1))), two = held(plan_serving(test::small_server(2))),
               four = held(plan_serving(test::small_server(4)));
  CHECK(one > 0);
  CHECK(two >= (1 - found_to) * one);
  CHECK(four >= (1 - found_to) * two);
  CHECK(four > 1.5 * one);
  CHECK(held(plan_serving(test::small_server(2, "12 ms"))) <= (1 + found_to) * two);
  CHECK(held(plan_serving(test::small_server(2, "40 ms"))) >= (1 - found_to) * two);
}

TEST_CASE("A demand takes the GPUs it needs, and more of it never fewer") {
  serving_question q = test::small_server(0);
  q.requests_per_s = 20;
  const serving_plan few = plan_serving(q);
  REQUIRE(few.best());
  CHECK(few.for_demand);
  CHECK(few.best()->requests_per_s >= 20);
  q.requests_per_s = 80;
  const serving_plan many = plan_serving(q);
  REQUIRE(many.best());
  CHECK(many.best()->requests_per_s >= 80);
  CHECK(many.gpus >= few.gpus);
}

TEST_CASE("A demand beyond one router is met by equal copies, in no more runs") {
  serving_question q = test::small_server(0);
  q.users_of_router = q.users = 100;
  const serving_plan one = plan_serving(q);
  REQUIRE(one.best());
  CHECK(one.best()->copies == 1);
  q.users = 1e6;
  const serving_plan many = plan_serving(q);
  const planned_server* b = many.best();
  REQUIRE(b);
  CHECK(many.enough());
  CHECK(b->copies > 1);
  const auto times = static_cast<double>(b->copies);
  const scenario s = read_base({b->text, q.base.overrides, q.base.data});
  const auto& w = std::get<inference_workload>(s.workload);
  CHECK(b->copies * w.gpus() == b->gpus);
  CHECK(times * w.arrivals.rate_per_s == Approx(b->requests_per_s));
  CHECK(static_cast<double>(b->gpus) / q.users <= 1.05 * static_cast<double>(one.gpus) / one.users_asked);
  CHECK(many.runs < 2 * one.runs);  // a search that begins at all of the demand takes more for more users
}

TEST_CASE("Loose limits divide no demand whose requests in flight are few for one router") {
  for (const char* tpot : {"20 ms", "10 s"}) {
    serving_question q = test::small_server(0, tpot);
    q.requests_per_s = 60;
    q.users_of_router = 250;  // 60/s stay for 1.7 s at most
    const serving_plan p = plan_serving(q);
    REQUIRE(p.best());
    INFO(tpot << " " << p.best()->users);
    CHECK(p.enough());
    CHECK(p.best()->copies == 1);
  }
}

TEST_CASE("More GPUs than one router serves get equal copies, hold as much a GPU, and cost no more runs") {
  serving_question q = test::small_server(2);
  q.users_of_router = 100;
  const serving_plan few = plan_serving(q);
  q.gpus = 2000;
  const serving_plan many = plan_serving(q);
  REQUIRE(few.best());
  REQUIRE(many.best());
  CHECK(many.best()->copies > 1);
  CHECK(many.best()->gpus <= 2000);
  CHECK(many.best()->requests_per_s / 2000 >= 0.8 * few.best()->requests_per_s / 2);
  CHECK(many.runs < 3 * few.runs);
  const auto of_one = static_cast<int>(many.best()->gpus / many.best()->copies);
  for (const serving_point& point : many.points)  // "N x tp 1": of a copy
    CHECK(std::stoi(point.layout) <= of_one);
}

TEST_CASE("Copies hold the demand in the arithmetic by which a plan is enough, and one fewer does not") {
  CHECK(copies_for(21551.145, 615.747) * 615.747 >= 21551.145);
  for (int copies = 1; copies < 3000; ++copies)
    for (const double one : {0.1, 7.7, 615.747, 1234.567}) {
      for (const double demand : {copies * one, std::nextafter(copies * one, 1e9), copies * one - 0.01}) {
        const auto n = copies_for(demand, one);
        if (static_cast<double>(n) * one < demand || static_cast<double>(n - 1) * one >= demand)
          FAIL(one << " " << demand << " " << n);
      }
    }
}

TEST_CASE("How GPUs are split between pools does not depend on trying every way") {
  const auto worker = [](int tp, double rate) {
    rated_worker w;
    w.shape = {tp, 1, 1, 1, 1};
    w.requests_per_s = rate;
    return w;
  };
  for (const auto& [gp, gd] : {std::pair{1, 1}, {2, 4}, {8, 3}, {4, 8}})
    for (const double rate : {0.1, 0.7, 1.0, 1.9, 12.0})
      for (std::int64_t gpus = 1; gpus <= 200; gpus += gpus < 40 ? 1 : 23) {
        rated_shapes r;
        r.domain = 8;
        r.prefill = {worker(gp, rate)};
        r.decode = {worker(gd, 1)};
        double best = 0;
        for (std::int64_t x = 1; x * gp + gd <= gpus; ++x)
          best =
              std::max(best, std::min(static_cast<double>(x) * rate, static_cast<double>((gpus - x * gp) / gd)));
        const std::vector<server_trial> found = combinations(r, true, gpus, 1);
        INFO(gp << " " << gd << " " << rate << " " << gpus);
        REQUIRE(found.empty() == (best == 0));
        if (best > 0) CHECK(found.front().guess >= (1 - 1e-9) * best);
        if (best > 0) CHECK(found.front().gpus() <= gpus);
      }
}

TEST_CASE("Limits that nothing keeps give no deployment, and the reasons") {
  const serving_plan none = plan_serving(test::small_server(1, "1 us"));
  CHECK_FALSE(none.best());
  CHECK_FALSE(none.refused.empty());
  CHECK(serving_plans_text({{none, {}, {}, {}, {}}}).find("no deployment holds any load") != std::string::npos);
}

TEST_CASE("A worker is rated without MLPerf's rules, which are of other loads than clients") {
  scenario s;
  s.platform = test::small_machine();
  s.stack = test::small_stack();
  s.model = test::small_model();
  inference_workload w = test::small_workload();
  w.mlperf = mlperf_rules{mlperf_scenario::server, "llama2-70b"};
  s.workload = w;
  for (const worker_role role : {worker_role::combined, worker_role::prefill, worker_role::decode})
    CHECK_FALSE(alone(s, {1, 1, 1, 1, 1}, role, 8).mlperf);
}

TEST_CASE("A plan that is stopped gives what it has") {
  plan_watch watch;
  watch.stop = [] { return true; };
  const serving_plan p = plan_serving(test::small_server(2), watch);
  CHECK(p.interrupted);
  CHECK_FALSE(p.best());
}

TEST_CASE("Points on the front are beaten by none") {
  const serving_plan p = plan_serving(test::small_server(2));
  bool any = false;
  for (const serving_point& a : p.points) {
    if (!a.efficient) continue;
    any = true;
    for (const serving_point& b : p.points) CHECK_FALSE((b.per_user > a.per_user && b.per_gpu >= a.per_gpu));
  }
  CHECK(any);
}

TEST_CASE("Launch commands have the ranks of the deployment, for every engine") {
  const serving_question q = test::small_server(4);
  const value pools{value::object{{"prefill", value::object{{"workers", 3}, {"tp", 1}}},
                                  {"decode", value::object{{"workers", 1}, {"tp", 2}, {"max_batch_size", 96}}}}};
  const scenario s = read_base(q.base, {{"/workload/layout", pools}});
  for (const char* engine : launched_engines) {
    const launch_commands c = launch_of(s, engine, "vllm");
    std::string all;
    for (const std::string& l : c.lines) all += l + "\n";
    CAPTURE(engine, all);
    CHECK(all.find("# 3x prefill worker of 1 GPU\n") != std::string::npos);
    CHECK(all.find("# 1x decode worker of 2 GPUs\n") != std::string::npos);
    CHECK(all.find("96") != std::string::npos);
  }
}

/// Whether a line has these words, each whole.
bool has(const launch_commands& c, const std::string& words) {
  return std::any_of(c.lines.begin(), c.lines.end(),
                     [&](const std::string& l) { return (l + ' ').find(' ' + words + ' ') != std::string::npos; });
}

TEST_CASE("Launch commands have every engine setting that a plan says and the framework takes") {
  const serving_question q = test::small_server(4);
  const std::pair<const char*, std::string_view launch_flags::*> frameworks[] = {
      {"vllm", &launch_flags::vllm},
      {"sglang", &launch_flags::sglang},
      {"tensorrt-llm", &launch_flags::tensorrt_llm}};
  for (const engine_field& f : engine_fields)
    for (const auto& [engine, of] : frameworks) {
      const std::string flag(f.flags.*of);
      if (flag.empty()) continue;
      const bool count = std::holds_alternative<engine_setting<std::int64_t>>(f.member);
      const std::string at = fmt::format("/workload/engine/{}", f.name);
      if (std::holds_alternative<engine_setting<bool>>(f.member)) {
        CHECK(has(launch_of(read_base(q.base, {{at, true}}), engine, "vllm"), flag));
        CHECK_FALSE(has(launch_of(read_base(q.base, {{at, false}}), engine, "vllm"), flag));
        continue;
      }
      const bool divides = f.name == "decode_context_parallel";  // the one rank of the deployment
      const std::string number = divides ? "1" : count ? "7" : "0.5";
      const scenario s = read_base(q.base, {{at, count ? value{divides ? 1 : 7} : value{0.5}}});
      const bool whole = f.name == "cpu_offload_gb" && engine == std::string_view("sglang");
      const bool own = f.name != "kv_fraction" || engine == engine_of(s);
      INFO(engine << " " << flag);
      CHECK(has(launch_of(s, engine, "vllm"), fmt::format("{} {}", flag, whole ? "0" : number)) == own);
    }
  const scenario s = read_base(q.base, {{"/workload/engine/cuda_graph_max_batch_size", value{0}}});
  CHECK(has(launch_of(s, "sglang", "vllm"), "--disable-cuda-graph"));
  CHECK_FALSE(has(launch_of(s, "sglang", "vllm"), "--cuda-graph-max-bs 0"));
  CHECK(has(launch_of(s, "vllm", "vllm"), "--enforce-eager"));
}

/// Whether a launch of TensorRT-LLM writes these words into its file of options.
bool in_file(const scenario& s, const std::string& words) {
  for (const std::string& l : launch_of(s, "tensorrt-llm", "").lines)
    if (l.starts_with("printf '") && l.find(words) != std::string::npos) return true;
  return false;
}

TEST_CASE("The file of TensorRT-LLM has every engine setting that a plan says and the file takes") {
  const serving_question q = test::small_server(4);
  for (const engine_field& f : engine_fields) {
    if (f.flags.tensorrt_llm_file.empty()) continue;
    const bool count = std::holds_alternative<engine_setting<std::int64_t>>(f.member);
    const bool share = std::holds_alternative<engine_setting<double>>(f.member);
    const value said = count ? value{7} : share ? value{0.5} : value{false};
    const scenario s = read_base(q.base, {{fmt::format("/workload/engine/{}", f.name), said}});
    const std::vector<std::string> at = split_pointer(f.flags.tensorrt_llm_file);
    const std::string words = fmt::format("{}: {}", at.back(), count ? "7" : share ? "0.5" : "false");
    INFO(f.name << ": " << words);
    CHECK(in_file(s, words) == (!f.flags.own || engine_of(s) == "tensorrt-llm"));
    if (at.size() > 1 && !f.flags.own) CHECK(in_file(s, at[0] + ": {"));
  }
  const auto with = [&](const char* pointer, value v) { return read_base(q.base, {{pointer, std::move(v)}}); };
  CHECK(in_file(with("/workload/engine/rank_wait_iterations", 7), "enable_balance: true"));
  CHECK(in_file(with("/workload/engine/cuda_graph_max_batch_size", 0), "cuda_graph_config: null"));
  CHECK(in_file(with("/workload/engine/preemption", "recompute"), "capacity_scheduler_policy: MAX_UTILIZATION"));
  CHECK(in_file(with("/workload/engine/schedule_ahead", false), "disable_overlap_scheduler: true"));
  CHECK(in_file(with("/workload/engine/rank_wait_iterations", 0), "attention_dp_config: null"));
  const scenario no_cache = with("/workload/engine/prefix_cache", false);
  CHECK(has(launch_of(no_cache, "vllm", ""), "--no-enable-prefix-caching"));
  CHECK(has(launch_of(no_cache, "sglang", ""), "--disable-radix-cache"));
}

struct spread_of {
  double mean = 0, deviation = 0;
};
spread_of spread(const std::vector<double>& all) {
  double sum = 0, squares = 0;
  for (const double x : all) sum += x, squares += x * x;
  const auto count = static_cast<double>(all.size());
  return {sum / count, std::sqrt(squares / count - sum * sum / count / count)};
}

/// Prompts, or answers, of requests and of what a load draws.
std::vector<double> lengths_in(const std::vector<served_request>& requests, bool prompts) {
  std::vector<double> out;
  for (const served_request& r : requests) out.push_back(static_cast<double>(prompts ? r.input : r.output));
  return out;
}
std::vector<double> sampled_of(const inference_workload& w, bool prompts) {
  std::vector<double> out;
  for (const auto& [input, output] : sample_lengths(w, 400'000))
    out.push_back(static_cast<double>(prompts ? input : output));
  return out;
}

struct temporary_folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("nvlsim-traces-" + std::to_string(::getpid()));
  temporary_folder() { std::filesystem::create_directories(path); }
  ~temporary_folder() { std::filesystem::remove_all(path); }
};

/// A file of requests, without times of arrival unless `timed`. Every seventh prompt is as long as can be.
std::string request_file(const temporary_folder& folder, bool timed) {
  std::string text = timed ? "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                           : "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n";
  for (int i = 0; i < 210; ++i) {
    const int input = i % 7 == 0 ? 8000 : 150 + i, output = 20 + i % 50;
    if (timed) text += fmt::format("2024-01-01 12:{:02}:{:02}.0,{},{}\n", i / 60, i % 60, input, output);
    else text += fmt::format("{},{},{},{}\n", input, output, input + output, 1.0 * input / output);
  }
  const auto file = folder.path / (timed ? "timed.csv" : "untimed.csv");
  std::ofstream(file) << text;
  return file.string();
}

const inference_workload& serving_of(const scenario& s) { return std::get<inference_workload>(s.workload); }

TEST_CASE("What a plan draws in the place of a trace has the mean and the deviation of its requests") {
  plan_base base = test::small_server(1).base;
  const std::vector<std::string> nothing;
  std::vector<std::string> assumed;
  CHECK(with_lengths_of_trace(base, assumed).text == base.text);
  CHECK(assumed == nothing);
  const temporary_folder folder;
  const std::string shipped = (test::root / "scenarios/traces/conversation-azure-format.csv").string();
  for (const std::string& file : {shipped, request_file(folder, true)}) {
    INFO(file);
    const plan_base traced_base = with_trace(base, file, {});
    const scenario traced = read_base(traced_base);
    const scenario planned = read_base(with_lengths_of_trace(traced_base, assumed));
    const inference_workload& w = serving_of(planned);
    CHECK(w.load == load_kind::open_loop);
    for (const bool prompts : {true, false}) {
      const spread_of own = spread(lengths_in(serving_of(traced).replay->list.requests, prompts)),
                      sampled = spread(sampled_of(w, prompts));
      CHECK(sampled.mean == Approx(own.mean).epsilon(0.01));
      if (file == shipped) CHECK(sampled.deviation == Approx(own.deviation).epsilon(0.02));
      CHECK(sampled.deviation < 1.02 * own.deviation);  // a log-normal has no second peak at its bound
    }
  }
  CHECK(assumed.size() == 2);
  serving_question q{with_lengths_of_trace(with_trace(base, shipped, {}), assumed), 1, 0, 0};
  CHECK(plan_serving(q).runs > 0);
}

TEST_CASE("Lengths that spread less within their bounds than was asked keep their mean") {
  for (const auto& [mean, deviation] : {std::pair{1000.0, 2000.0}, {1000.0, 1e9}, {7990.0, 300.0}, {12.0, 1.0}}) {
    inference_workload w;
    w.input = w.output = cut_lognormal(mean, deviation, 10, 8000);
    CHECK(w.input.mean <= 8000);
    CHECK(w.input.variation <= 100);
    CHECK(sampled_mean(w.input) == Approx(mean).epsilon(1e-6));
    const spread_of sampled = spread(sampled_of(w, true));
    CHECK(sampled.mean == Approx(mean).epsilon(0.02));
    CHECK(sampled.deviation < 1.05 * deviation);
  }
}

TEST_CASE("A plan takes the lengths of the requests that a run of the trace replays") {
  const plan_base base = with_trace(test::small_server(1).base,
                                    (test::root / "scenarios/traces/conversation-azure-format.csv").string(),
                                    {{"/workload/load/requests", "50"},
                                     {"/workload/load/images/count/mean", "1"},
                                     {"/workload/load/images/tokens", "1000"}});
  const scenario traced = read_base(base);
  const std::vector<served_request> replayed = generate_requests(serving_of(traced), 0).requests;
  REQUIRE(replayed.size() == 50);
  std::vector<std::string> assumed;
  const scenario planned = read_base(with_lengths_of_trace(base, assumed));
  for (const bool prompts : {true, false})
    CHECK(spread(sampled_of(serving_of(planned), prompts)).mean ==
          Approx(spread(lengths_in(replayed, prompts)).mean).epsilon(0.01));
  REQUIRE(assumed.size() == 1);
  CHECK(assumed[0].find("the first 50 requests") != std::string::npos);
}

TEST_CASE("Every override of a trace's load is of the trace or of the load in its place") {
  const trace_sets split = split_sets({{"/workload/load/file", "x.csv"},
                                       {"/workload/load/rate_scale", "2"},
                                       {"/workload/load/requests", "300"},
                                       {"/workload/load/arrivals", "fixed"},
                                       {"/workload/load/input/mean", "500"},
                                       {"/workload/engine/max_batch_tokens", "8192"}});
  std::string of_trace, of_load;
  for (const override_option& o : split.of_trace) of_trace += o.pointer.substr(o.pointer.rfind('/') + 1) + ' ';
  for (const override_option& o : split.of_load) of_load += o.pointer.substr(o.pointer.rfind('/') + 1) + ' ';
  CHECK(of_trace == "file rate_scale requests max_batch_tokens ");
  CHECK(of_load == "arrivals mean ");
}

TEST_CASE("A trace without times gets a rate, and what else is wrong is told without problems of that rate") {
  const plan_base base = test::small_server(1).base;
  plan_base wrong = base;
  wrong.text = with_members(base.text, {{"/workload/slo/ttft", "1 parsec"}});
  const temporary_folder folder;
  for (const bool timed : {true, false}) {
    const std::string file = request_file(folder, timed);
    const scenario traced = read_base(with_trace(base, file, {}));
    CHECK(serving_of(traced).arrivals.rate_per_s == (timed ? 0 : 1));
    try {
      with_trace(wrong, file, {});
      FAIL("a wrong limit is accepted");
    } catch (const input_error& e) {
      REQUIRE(e.problems().size() == 1);
      CHECK(e.problems()[0].pointer == "/workload/slo/ttft");
    }
  }
}

}  // namespace
}  // namespace nvlsim
