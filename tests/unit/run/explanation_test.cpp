// Explanations of what ships: their sums are the numbers, and their constants are all that count.
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/run/explain_scenario.hpp"
#include "nvlsim/run/run.hpp"
#include "support/golden.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;

scenario load(const std::filesystem::path& file, const std::vector<override_option>& sets = {}) {
  return load_scenario(file, sets, folders_under(root));
}

std::vector<std::filesystem::path> shipped() {
  std::vector<std::filesystem::path> out;
  for (const auto& e : std::filesystem::recursive_directory_iterator(root / "scenarios"))
    if (e.path().extension() == ".json" && e.path().parent_path().filename() != "models") out.push_back(e.path());
  return out;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-300; }

/// Whether all parts add up, at every level.
bool adds_up(const cause& c) {
  if (c.parts.empty()) return true;
  double sum = 0;
  for (const cause& p : c.parts) {
    if (!(p.amount >= 0) || !adds_up(p)) return false;
    sum += p.amount;
  }
  return close(sum, c.amount);
}

std::vector<std::string> names_of(const result& r) {
  std::vector<std::string> out;
  for (const std::string& m : explained_metrics(r)) {
    out.push_back(m);
    if (const auto* statistics = r.metrics.find(m)->members())
      for (const auto& [s, v] : *statistics) out.push_back(m + "." + s);
  }
  return out;
}

double number_at(const value& v) { return v.number() ? *v.number() : static_cast<double>(*v.integer()); }

/// What a tree is of: a factor, the metric itself, or a percentile that stands beside.
double whole_of(const explanation& e, const result& r, const cause_tree& t) {
  if (t.whole.name == e.metric) return *e.amount;
  for (const factor& f : e.factors)
    if (f.name == t.whole.name) return f.amount;
  const std::size_t dot = t.whole.name.find('.');
  REQUIRE(dot != std::string::npos);
  return number_at(*r.metrics.find(t.whole.name.substr(0, dot))->find(t.whole.name.substr(dot + 1)));
}

void check_explanation(const explanation& e, const result& r) {
  if (!e.amount) {
    CHECK_FALSE(e.notes.empty());
    return;
  }
  double product = 1;
  for (const factor& f : e.factors) product *= std::pow(f.amount, f.power);
  if (!e.factors.empty()) CHECK(product == Approx(*e.amount).epsilon(1e-9));
  for (const cause_tree& t : e.trees) {
    INFO(t.title);
    CHECK(adds_up(t.whole));
    // Time of an operation and of a loop is taken apart beside any of their metrics.
    if (r.metrics.find("duration_s") || r.metrics.find("generation_wait_s")) continue;
    CHECK(t.whole.amount == Approx(whole_of(e, r, t)).epsilon(1e-9).margin(1e-15));
  }
  for (const time_use& u : e.kernels) CHECK((u.ceiling <= 0 || u.rate <= u.ceiling * 1.0001));
}

/// What makes a long run short: no member of the shipped scenarios counts more than these.
std::vector<override_option> shorter(const std::filesystem::path& file) {
  using group = std::vector<override_option>;
  std::vector<override_option> out;
  for (const group& together :
       {group{{"/workload/load/requests", "256"}},
        {{"/jobs/1/workload/load/requests", "64"}, {"/jobs/1/workload/load/concurrency", "16"}},
        {{"/jobs/1/workload/layout/prefill/workers", "3"}, {"/jobs/1/workload/layout/decode/workers", "1"}},
        {{"/jobs/0/repeat", "1"}},
        {{"/workload/fleet/services/0/workload/load/requests", "256"}},
        {{"/workload/fleet/services/1/workload/load/requests", "256"}},
        {{"/workload/prompts", "32"}, {"/workload/mini_batch_size", "256"}},
        {{"/workload/seeds", "1"}}}) {
    try {
      load(file, together);
      out.insert(out.end(), together.begin(), together.end());
    } catch (const input_error&) {  // a scenario without these members
    }
  }
  return out;
}

TEST_CASE("Every metric of every shipped scenario adds up from its causes") {
  for (const auto& file : shipped()) {
    const scenario s = load(file, shorter(file));
    const run_record run = run_scenario(s, {.explained = true, .simulate = false});
    for (const std::string& metric : names_of(run.outcome)) {
      INFO(s.name << " " << metric);
      const explanation e = explain(s, run, metric);
      CHECK((!e.trees.empty() || !e.factors.empty() || !e.notes.empty() || metric == "gpus"));
      check_explanation(e, run.outcome);
    }
  }
}

TEST_CASE("Explanations add up where stages, racks and replicas differ") {
  const auto training = root / "scenarios/training/llama3.1-405b-gb300-512.json";
  const auto inference = root / "scenarios/inference/llama2-70b-offline-gb300-rack.json";
  const auto pools = root / "scenarios/inference/deepseek-r1-gb300-prefill-decode.json";
  const auto agents = root / "scenarios/inference/gpt-oss-120b-agents-gb300-vm.json";
  const auto trace = root / "scenarios/inference/llama3.3-70b-trace-gb300-rack.json";
  const override_option one_pool{"/workload/layout", R"({"attention_dp": 8, "ep": 8})"};
  const override_option drafts{"/workload/engine/speculative", R"({"draft_tokens": 3, "acceptance": 0.7})"};
  const std::vector<std::pair<std::filesystem::path, std::vector<override_option>>> cases = {
      {training,
       {{"/workload/data_parallel_sharding", "replicated"}, {"/workload/tp", "8"}, {"/workload/dp", "4"}}},
      {training,
       {{"/workload/pp", "16"}, {"/workload/dp", "8"}, {"/workload/vp", "1"}, {"/workload/schedule", "1f1b"}}},
      {training, {{"/simulation/fidelity", "flow"}}},
      {inference, {{"/workload/load/requests", "1001"}, {"/workload/layout/replicas", "10"}}},
      {inference,
       {{"/workload/layout/tp", "4"}, {"/workload/layout/replicas", "18"}, {"/workload/load/requests", "900"}}},
      {inference,
       {{"/workload/load/kind", "closed_loop"},
        {"/workload/load/concurrency", "144"},
        {"/workload/load/requests", "1000"}}},
      {training,
       {{"/workload/schedule", "dualpipe"}, {"/workload/vp", "1"}, {"/workload/pp", "16"}, {"/workload/dp", "8"}}},
      {training, {{"/workload/schedule", "zb_h1"}, {"/workload/vp", "1"}}},
      {training, {{"/degraded", R"([{"gpus": 17, "speed": 0.8}])"}}},
      {inference, {{"/degraded", R"([{"gpus": 9, "speed": 0.8, "nvlink_share": 0.5}])"}}},
      {trace, {{"/workload/load/warmup", "0.2"}, {"/workload/load/tail", "0.1"}}},
      {pools, {drafts, one_pool, {"/workload/load/requests", "300"}, {"/workload/load/concurrency", "64"}}},
      {pools,
       {drafts,
        one_pool,
        {"/workload/load/requests", "300"},
        {"/workload/load/concurrency", "64"},
        {"/workload/slo", R"({"e2e": "60 s"})"}}},
      {pools, {drafts, {"/workload/load/requests", "300"}, {"/workload/load/concurrency", "64"}}},
      {agents,
       {{"/workload/engine/preemption", "swap"},
        {"/workload/engine/kv_fraction", "0.27"},
        {"/workload/load/concurrency", "800"},
        {"/workload/load/requests", "1600"}}},
      {agents,
       {{"/workload/engine/preemption", "recompute"},
        {"/workload/engine/kv_fraction", "0.27"},
        {"/workload/load/concurrency", "800"},
        {"/workload/load/requests", "1600"}}},
  };
  for (const auto& [file, sets] : cases) {
    const scenario s = load(file, sets);
    const run_record run =
        run_scenario(s, {.explained = true, .simulate = s.simulation.network != fidelity::closed});
    INFO(s.name << " " << sets.front().pointer << "=" << sets.front().text);
    REQUIRE(run.outcome.status != run_status::infeasible);
    for (const std::string& metric : names_of(run.outcome)) {
      INFO(metric);
      check_explanation(explain(s, run, metric), run.outcome);
    }
  }
}

TEST_CASE("Metrics of queued jobs have the uses of the cluster's GPU-hours") {
  for (const char* name : {"gb300-8-racks-queue", "gb300-14-racks-shared"}) {
    const scenario s =
        load(root / "scenarios/operation" / (std::string(name) + ".json"), {{"/workload/seeds", "1"}});
    const run_record run = run_scenario(s, {.explained = true, .simulate = false});
    const explanation e = explain(s, run, "queue_utilisation_fraction");
    INFO(name);
    REQUIRE_FALSE(e.trees.empty());
    double sum = 0;
    for (const cause& c : e.trees.front().whole.parts) sum += c.amount;
    const auto& o = std::get<operation_case>(s.workload);
    CHECK(sum == Approx(static_cast<double>(s.platform.gpus()) * o.cluster->duration.base() / 3600));
  }
}

TEST_CASE("A service that never starts has no availability, and a note says why") {
  const auto file = root / "scenarios/operation/gb300-14-racks-shared.json";
  const result r =
      run_scenario(load(file, {{"/jobs/2/replicas", "600"}, {"/workload/seeds", "1"}}), {.simulate = false})
          .outcome;
  CHECK(r.metrics.find("serving_availability_fraction")->is_null());
  CHECK(std::count_if(r.notes.begin(), r.notes.end(),
                      [](const std::string& n) { return n.starts_with("agents never starts"); }) == 1);
}

TEST_CASE("The critical path is a path through the whole step") {
  const scenario s = load(root / "scenarios/training/llama3.1-405b-gb300-512.json");
  const explanation e = explain(s, run_scenario(s, {.explained = true, .simulate = false}), "step_time_s");
  std::set<std::string> titles;
  for (const cause_tree& t : e.trees) {
    titles.insert(t.title);
    if (t.title != "critical path") continue;
    CHECK(t.whole.parts.size() > 8);  // forward through the stages and back
    for (const cause& p : t.whole.parts) CHECK(p.name.find("no work") == std::string::npos);
  }
  CHECK(titles == std::set<std::string>{"by phase", "by bound", "critical path"});
}

TEST_CASE("What a slow NIC costs a pipeline is time of the NIC and no bubble") {
  const auto file = root / "scenarios/training/llama3.1-405b-gb300-512.json";
  const auto bounds = [&](const char* nic, const char* fold) {
    run_status status = run_status::ok;
    const explanation e = explain_scenario(
        load(file, {{"/platform/fabric/nic_bandwidth", nic}, {"/simulation/fold", fold}}), "step_time_s", status);
    std::map<std::string, double> out = {{"step", *e.amount}};
    for (const cause_tree& t : e.trees)
      if (t.title == "by bound")
        for (const cause& p : t.whole.parts) out[p.name] = p.amount;
    return out;
  };
  auto fast = bounds("800 Gb/s", "true"), slow = bounds("50 Gb/s", "true"), unfolded = bounds("50 Gb/s", "false");
  CHECK(slow["step"] > 1.3 * fast["step"]);
  // What the last stage puts off to the end fills the bubble of a fast NIC and not the longer one of a slow NIC.
  CHECK(slow["nic"] - fast["nic"] == Approx(slow["step"] - fast["step"]).epsilon(0.1));
  CHECK(slow["bubble"] - fast["bubble"] < 0.1 * (slow["nic"] - fast["nic"]));
  for (const auto& [name, amount] : slow) CHECK(unfolded[name] == Approx(amount).epsilon(1e-9));
}

TEST_CASE("Bands are told in words") {
  const auto file = root / "scenarios/training/llama3.1-405b-gb300-512.json";
  run_status status = run_status::ok;
  for (const char* metric : {"step_time_s", "tokens_per_s", "mfu"}) {
    const explanation e = explain_scenario(load(file), metric, status);
    REQUIRE(e.band);
    CHECK(e.band->first < *e.amount);
    CHECK(e.band->second > *e.amount);
    REQUIRE(e.band_reasons.size() == 1);
    CHECK(e.band_reasons.front().find("% of the simulated step time") != std::string::npos);
  }
  const explanation other = explain_scenario(load(file), "memory_peak_bytes", status);
  CHECK_FALSE(other.band);
  CHECK(other.band_reasons.front().starts_with("no band"));
  const explanation foreign =
      explain_scenario(load(file, {{"/workload/precision", "fp16"}}), "step_time_s", status);
  REQUIRE(foreign.band_reasons.size() == 2);
  CHECK(foreign.band_reasons.front().find(" are within half of -") != std::string::npos);
  CHECK(foreign.band_reasons.back() == "no measurement of gb300 at fp16: the rate is assumed");
}

TEST_CASE("What has a band does not say that it has none") {
  run_status status = run_status::ok;
  std::set<bool> seen;
  for (const char* name : {"collectives/all-reduce-gb300-rack", "collectives/ring-all-reduce-72-exact",
                           "training/llama3.1-405b-gb300-rack", "inference/llama3.3-70b-trace-gb300-rack"}) {
    const scenario s = load(root / "scenarios" / (std::string(name) + ".json"));
    const run_record run = run_scenario(s, {.explained = true, .simulate = false});
    for (const auto& [metric, x] : *run.outcome.metrics.members()) {
      const explanation e = explain_scenario(s, metric, status);
      INFO(name << " " << metric);
      const bool none = std::any_of(e.band_reasons.begin(), e.band_reasons.end(),
                                    [](const std::string& r) { return r.starts_with("no band"); });
      CHECK(none == (e.amount && !e.band));
      seen.insert(e.band.has_value());
    }
  }
  CHECK(seen.size() == 2);
}

/// With as many of the overrides as inputs may take.
scenario load_allowed(const std::filesystem::path& file, std::vector<override_option> sets) {
  try {
    return load(file, sets);
  } catch (const input_error& e) {
    for (const problem& p : e.problems())
      std::erase_if(sets, [&](const override_option& o) { return o.pointer == p.pointer; });
    REQUIRE(sets.size() > 100);
    return load(file, sets);
  }
}

TEST_CASE("No constant counts but those an explanation lists") {
  for (const auto& file : shipped()) {
    const std::vector<override_option> fewer = shorter(file);
    const scenario s = load(file, fewer);
    const std::vector<input_constant> all = constants_of(s);
    if (all.empty() || s.simulation.network != fidelity::closed) continue;
    const run_record before = run_scenario(s, {.explained = true, .simulate = false});
    if (before.outcome.status == run_status::infeasible) continue;
    std::set<std::string> used;
    for (const input_constant& c : used_constants(s, before)) used.insert(c.pointer);
    std::vector<override_option> others = fewer;
    for (const input_constant& c : all) {
      const std::size_t digits = c.text.find_first_not_of("0123456789.");
      const std::string number = c.text.substr(0, digits),
                        unit = digits == std::string::npos ? "" : c.text.substr(digits);
      // Whole numbers are counts, and what is beyond a limit is refused.
      if (used.contains(c.pointer) || number.find('.') == std::string::npos || std::stod(number) == 0) continue;
      others.push_back({c.pointer, std::to_string(std::stod(number) * 0.98) + unit});
    }
    INFO(s.name);
    const bool has_stack = std::any_of(all.begin(), all.end(), [](const input_constant& c) {
      return c.pointer.find("/stack/") != std::string::npos;
    });
    if (has_stack) REQUIRE(others.size() > 100);
    const run_record after = run_scenario(load_allowed(file, others), {.explained = false, .simulate = false});
    CHECK(after.outcome.metrics == before.outcome.metrics);
  }
}

/// A shipped scenario, the constants that its run reads, and what it costs to run.
struct reader {
  std::filesystem::path file;
  std::vector<override_option> fewer;
  std::vector<input_constant> listed;
  value outputs;
  std::clock_t cost;
};

reader reader_of(const std::filesystem::path& file) {
  reader r{file, shorter(file), {}, {}, std::clock()};
  const scenario s = load(file, r.fewer);
  const run_record run = run_scenario(s, {.explained = true, .simulate = false});
  r.listed = used_constants(s, run);
  r.outputs = outputs_of(run.outcome);
  r.cost = std::clock() - r.cost;
  return r;
}

/// Where a constant is written, whichever part of a scenario reads it.
std::string place(const input_constant& c) {
  std::size_t at = std::string::npos;
  for (const char* section : {"/platform/", "/stack/"}) at = std::min(at, c.pointer.find(section));
  return c.from + " " + c.pointer.substr(at == std::string::npos ? 0 : at);
}
std::string identity(const input_constant& c) { return place(c) + " = " + c.text; }

constexpr const char* idle_file = "idle_constants.txt";

/// The scenarios that the golden file lists, cheapest first: each tries the constants that none before it reads.
std::vector<std::string> known_order() {
  std::vector<std::string> out;
  std::ifstream in(std::string(NVLSIM_SOURCE_DIR "/tests/golden/") + idle_file);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line.front() != ' ' && line.front() != '#') out.push_back(line);
  return out;
}

/// Brings the readers into the order of the golden file, those that it lacks last by name; by cost where a new
/// file is wanted.
void put_in_order(std::vector<reader>& readers) {
  const std::vector<std::string> order = known_order();
  const bool anew = std::getenv("NVLSIM_APPROVE") || order.empty();
  const auto rank = [&](const reader& r) {
    return std::find(order.begin(), order.end(), r.file.stem()) - order.begin();
  };
  std::sort(readers.begin(), readers.end(), [&](const reader& a, const reader& b) {
    return anew ? a.cost < b.cost : std::pair(rank(a), a.file) < std::pair(rank(b), b.file);
  });
}

TEST_CASE("Every listed constant of the shipped scenarios changes an output, but for those named as idle") {
  std::vector<reader> readers;
  for (const auto& file : shipped()) readers.push_back(reader_of(file));
  put_in_order(readers);
  std::set<std::string> tried;
  std::string idle =
      "# Constants that are read and change no output, by the first scenario that reads them, cheapest first. A "
      "new\n"
      "# one is either bound by a scenario, or not listed by explanations, or named here with NVLSIM_APPROVE=1.\n";
  for (const reader& r : readers) {
    const auto changed = [&](std::vector<override_option> sets) {
      sets.insert(sets.begin(), r.fewer.begin(), r.fewer.end());
      return load(r.file, sets);
    };
    std::set<std::string> here;
    for (const input_constant& c : r.listed)
      if (tried.insert(identity(c)).second && !binds(c, r.outputs, changed)) here.insert(place(c));
    idle += r.file.stem().string() + "\n";
    for (const std::string& constant : here) idle += "  " + constant + "\n";
  }
  CHECK(tried.size() > 500);
  test::check_golden(idle_file, idle);
}

TEST_CASE("Sensitivity marks what is read and binds nothing") {
  const auto file = root / "scenarios/training/llama3.1-405b-gb300-512.json";
  run_status status = run_status::ok;
  explanation e = explain_scenario(load(file), "step_time_s", status);
  CHECK_FALSE(e.not_binding);
  std::erase_if(e.constants, [](const input_constant& c) {
    return c.pointer != "/platform/gpu/tdp" && c.pointer != "/platform/gpu/hbm_usable";
  });
  REQUIRE(e.constants.size() == 2);
  e.constants.push_back({"/platform/gpu/nvlink_links", "18", "vendor", "nobody reads it", "platform"});
  add_sensitivity(
      e, [&](const std::vector<override_option>& sets) { return load(file, sets); },
      [](std::size_t, std::size_t) {});
  CHECK(e.not_binding == std::vector<std::string>{"/platform/gpu/nvlink_links"});
}

TEST_CASE("Sensitivity runs a scenario a few times for each constant, however many there are") {
  const scenario s = load(root / "scenarios/collectives/all-reduce-gb300-rack.json");
  run_status status = run_status::ok;
  const explanation one = explain_scenario(s, "", status);
  REQUIRE_FALSE(one.constants.empty());
  const auto runs = [&](std::size_t constants) {
    explanation e = one;
    e.constants.clear();
    for (std::size_t i = 0; i < constants; ++i)
      e.constants.push_back({fmt::format("/platform/gpu/constant_{}", i), "2", "vendor", "nobody reads it", ""});
    std::atomic<std::int64_t> out = 0;
    add_sensitivity(
        e,
        [&](const std::vector<override_option>&) {
          ++out;
          return s;
        },
        [](std::size_t, std::size_t) {});
    return out.load();
  };
  const std::int64_t few = runs(8), many = runs(64);
  CHECK(few > 8);
  CHECK(many <= 8 * few);
}

TEST_CASE("Sensitivities of runs that need the engine come from several processes, and are those of one") {
  const auto file = root / "scenarios/training/llama3.1-405b-gb300-512.json";
  const std::vector<override_option> in_flow = {{"/simulation/fidelity", "flow"}};
  run_status status = run_status::ok;
  const auto four_of = [&](const scenario& s) {
    explanation e = explain_scenario(s, "step_time_s", status);
    std::erase_if(e.constants, [](const input_constant& c) {
      return c.pointer != "/platform/gpu/hbm_bandwidth" && c.pointer != "/platform/gpu/hbm_usable" &&
             c.pointer != "/platform/gpu/tdp" && c.pointer != "/stack/training/step_host";
    });
    REQUIRE(e.constants.size() == 4);
    return e;
  };
  explanation e = four_of(load(file, in_flow)), closed = four_of(load(file));
  const std::filesystem::path pids =
      std::filesystem::temp_directory_path() / ("nvlsim-sensitivity-" + std::to_string(::getpid()));
  std::size_t told = 0;
  add_sensitivity(
      e,
      [&](std::vector<override_option> sets) {
        std::ofstream(pids, std::ios::app) << ::getpid() << '\n';
        sets.insert(sets.begin(), in_flow.begin(), in_flow.end());
        return load(file, sets);
      },
      [&](std::size_t done, std::size_t) { told = done; });
  add_sensitivity(
      closed, [&](const std::vector<override_option>& sets) { return load(file, sets); },
      [](std::size_t, std::size_t) {});
  CHECK(told == 4);
  std::set<std::string> seen;
  std::ifstream in(pids);
  for (std::string pid; std::getline(in, pid);) seen.insert(pid);
  CHECK(seen.size() >= 4);
  std::filesystem::remove(pids);
  CHECK(e.not_binding == closed.not_binding);
  REQUIRE(e.sensitivities.size() == closed.sensitivities.size());
  for (std::size_t i = 0; i < e.sensitivities.size(); ++i) {
    CHECK(e.sensitivities[i].what.pointer == closed.sensitivities[i].what.pointer);
    CHECK(*e.sensitivities[i].less == Approx(*closed.sensitivities[i].less).epsilon(0.05));
  }
}

TEST_CASE("A metric that a result lacks is refused with the nearest name") {
  run_status status = run_status::ok;
  const scenario s = load(root / "scenarios/training/llama3.1-405b-gb300-512.json");
  try {
    explain_scenario(s, "step_time", status);
    FAIL("step_time is no metric");
  } catch (const input_error& e) {
    CHECK(e.problems().front().hint == "step_time_s");
  }
  CHECK_THROWS_AS(explain_scenario(s, "step_time_s.p99", status), input_error);
}

TEST_CASE("A scenario that does not fit is explained by its reasons") {
  run_status status = run_status::ok;
  const scenario s = load(root / "scenarios/training/llama3.1-405b-gb300-512.json",
                          {{"/workload/micro_batch_size", "7"}, {"/workload/global_batch_size", "1792"}});
  const explanation e = explain_scenario(s, "", status);
  CHECK(status == run_status::infeasible);
  CHECK_FALSE(e.amount);
  CHECK_FALSE(e.notes.empty());
}

TEST_CASE("Sensitivity ranks what a step hangs on") {
  const auto file = root / "scenarios/training/llama3.1-405b-gb300-512.json";
  const scenario s = load(file);
  run_status status = run_status::ok;
  explanation e = explain_scenario(s, "step_time_s", status);
  std::erase_if(e.constants, [](const input_constant& c) {
    return !c.pointer.starts_with("/platform/gpu/hbm_") && !c.pointer.ends_with("gb300/gemm/nvfp4/tensor_rate") &&
           c.pointer != "/platform/gpu/tdp";
  });
  add_sensitivity(
      e, [&](const std::vector<override_option>& sets) { return load(file, sets); },
      [](std::size_t, std::size_t) {});
  REQUIRE(e.sensitivities.size() ==
          3);  // capacity does not count; memory streams as it is fast, rates follow power
  const auto weight = [](const sensitivity& x) { return std::max(std::abs(*x.less), std::abs(*x.more)); };
  CHECK(std::is_sorted(e.sensitivities.begin(), e.sensitivities.end(),
                       [&](const sensitivity& a, const sensitivity& b) { return weight(a) > weight(b); }));
  CHECK(e.sensitivities.front().what.pointer.ends_with("gb300/gemm/nvfp4/tensor_rate"));
  for (const sensitivity& x : e.sensitivities) {
    INFO(x.what.pointer);
    CHECK(*x.less > 0);
    CHECK(*x.more < 0);
  }
  REQUIRE_FALSE(e.turning_points.empty());
  CHECK(e.turning_points.front().from == "tensor_cores");
}

}  // namespace
}  // namespace nvlsim
