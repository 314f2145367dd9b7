// Collectives as scenarios, from file to metrics.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/run/run.hpp"
#include "support/shipped.hpp"

using namespace nvlsim;
using Catch::Matchers::Contains;

namespace {

using test::root;

result run(const std::string& name, const std::vector<override_option>& sets = {}) {
  return run_scenario(load_scenario(root / "scenarios/collectives" / (name + ".json"), sets, folders_under(root)))
      .outcome;
}

double metric(const result& r, const std::string& name) { return *r.metrics.find(name)->number(); }
double time_of(const std::string& name, const std::vector<override_option>& sets = {}) {
  return metric(run(name, sets), "time_s");
}

/// A ring all-reduce as ASTRA-sim's analytical backend is asked for it; rates in its GB/s, which are GiB/s.
struct astra_run {
  std::string backend, topology;
  std::int64_t npus, size_bytes;
  double bandwidth_GiBps, latency_ns;
  std::int64_t splits, endpoint_delay_ns;
  double local_memory_GBps;
  std::int64_t finish_ns;
};

std::string text(double x, const char* unit) {
  std::string digits = std::to_string(x);
  return digits + ' ' + unit;
}

/// What its topologies come to for a ring: a switch stores and forwards whole messages in the congestion-aware
/// backend, and adds a second latency in the other; the rest are direct links.
std::vector<override_option> as_scenario(const astra_run& a) {
  const bool through_switch = a.topology == "Switch", aware = a.backend == "congestion_aware";
  return {{"/workload/gpus", std::to_string(a.npus)},
          {"/workload/size", std::to_string(a.size_bytes) + " B"},
          {"/workload/parameters/bandwidth", text(a.bandwidth_GiBps, "GiB/s")},
          {"/workload/parameters/alpha", text(a.latency_ns * (through_switch && !aware ? 2 : 1), "ns")},
          {"/workload/parameters/hops", through_switch && aware ? "2" : "1"},
          {"/workload/parameters/splits", std::to_string(a.splits)},
          {"/workload/parameters/endpoint_delay", std::to_string(a.endpoint_delay_ns) + " ns"},
          {"/workload/parameters/local_bandwidth", text(a.local_memory_GBps, "GB/s")}};
}

void check(const astra_run& a, const char* fidelity = "closed") {
  INFO(a.backend << " " << a.topology << " " << a.npus << " NPUs " << a.size_bytes << " B " << a.bandwidth_GiBps
                 << " GiB/s, " << a.splits << " splits, " << fidelity);
  std::vector<override_option> sets = as_scenario(a);
  sets.push_back({"/simulation/fidelity", fidelity});
  CHECK(std::llround(time_of("ring-all-reduce-72-astra-sim", sets) * 1e9) == a.finish_ns);
}

}  // namespace

TEST_CASE("Collective scenario has the metrics of nccl-tests") {
  const result r = run("all-reduce-gb300-rack");
  CHECK(r.status == run_status::ok);
  const double t = metric(r, "time_s");
  CHECK(metric(r, "algbw_Bps") == Approx(0x1p30 / t));
  CHECK(metric(r, "busbw_Bps") == Approx(0x1p30 / t * 2 * 71 / 72));
  CHECK(*r.breakdown.find("algorithm")->string() == "nvls");
}

TEST_CASE("Fidelities agree on the shipped collectives") {
  for (const char* name : {"all-reduce-gb300-rack", "all-gather-gb300-8-racks-flow", "ring-all-reduce-72-exact"}) {
    INFO(name);
    const double closed = time_of(name, {{"/simulation/fidelity", "closed"}});
    CHECK(time_of(name, {{"/simulation/fidelity", "flow"}}) == Approx(closed).epsilon(1e-9));
    CHECK(time_of(name, {{"/simulation/fidelity", "flow"}, {"/simulation/fold", "false"}}) ==
          Approx(closed).epsilon(1e-9));
  }
  CHECK(time_of("ring-all-reduce-72-exact") ==
        Approx(time_of("ring-all-reduce-72-exact", {{"/simulation/fidelity", "closed"}})).epsilon(1e-9));
}

TEST_CASE("Flow equals closed for every collective, size and placement of a stack") {
  for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                                "send_recv", "reduce", "neighbor_exchange", "barrier"})
    for (const char* size : {"0 B", "8 B", "100 kB", "3 MB", "2 GB"})
      for (const auto& [gpus, a_rack] :
           {std::pair{"2", "72"}, {"72", "72"}, {"144", "72"}, {"9", "1"}, {"500", "64"}}) {
        const std::vector<override_option> sets = {{"/workload/operation", operation},
                                                   {"/workload/size", size},
                                                   {"/workload/gpus", gpus},
                                                   {"/placement/gpus_per_rack", a_rack},
                                                   {"/platform/racks", "9"}};
        std::vector<override_option> flow = sets;
        flow.push_back({"/simulation/fidelity", "flow"});
        INFO(operation << " of " << size << " on " << gpus << " at " << a_rack);
        CHECK(time_of("all-reduce-gb300-rack", flow) ==
              Approx(time_of("all-reduce-gb300-rack", sets)).epsilon(1e-9).margin(0));
      }
}

TEST_CASE("Flow names the links that a collective fills") {
  const result r = run("all-reduce-gb300-rack", {{"/simulation/fidelity", "flow"}, {"/workload/size", "4 GiB"}});
  const value* links = r.breakdown.find("links");
  REQUIRE(links);
  REQUIRE(links->items()->size() == 2);
  const value& busiest = links->items()->front();
  CHECK(*busiest.find("name")->string() == "rank: nvlink out");
  CHECK(*busiest.find("busiest")->string() == "all_reduce");
  CHECK(*busiest.find("mean_share")->number() > 0.4);
  CHECK(*busiest.find("peak_share")->number() <= 1 + 1e-9);
  CHECK_FALSE(run("all-reduce-gb300-rack").breakdown.find("links"));
}

TEST_CASE("Flow names the links that exchanges of experts fill beside KV caches") {
  const std::vector<override_option> sets = {{"/simulation/fidelity", "flow"}};
  const scenario s =
      load_scenario(root / "scenarios/inference/deepseek-r1-gb300-prefill-decode.json", sets, folders_under(root));
  const result r = run_scenario(s).outcome;
  const value* links = r.breakdown.find("links");
  REQUIRE(links);
  const value& busiest = links->items()->front();
  CHECK(busiest.find("name")->string()->starts_with("prefill worker "));
  CHECK(*busiest.find("busiest")->string() == "ep.exchange");
  CHECK(*busiest.find("mean_share")->number() > 0.01);
}

TEST_CASE("A lost switch tray costs every port of the rack its share") {
  const std::vector<override_option> size = {{"/workload/size", "16 GiB"}};
  std::vector<override_option> lost = size;
  lost.push_back({"/platform/rack/failed_switch_trays", "1"});
  CHECK(time_of("all-reduce-gb300-rack", lost) / time_of("all-reduce-gb300-rack", size) ==
        Approx(9.0 / 8).epsilon(0.01));
}

TEST_CASE("Collective of more racks than there are is infeasible") {
  const result r = run("all-reduce-gb300-rack", {{"/workload/gpus", "73"}});
  CHECK(r.status == run_status::infeasible);
  CHECK(r.reasons.size() == 1);
}

TEST_CASE("Fidelities that a workload cannot show are named") {
  const auto refusal = [](const std::string& file, std::vector<override_option> sets) {
    try {
      test::shipped_scenario(file, sets);
    } catch (const input_error& e) {
      return e.problems().front().text();
    }
    return std::string("no problem");
  };
  const override_option exact{"/simulation/fidelity", "exact"}, flow{"/simulation/fidelity", "flow"};
  CHECK_THAT(refusal("collectives/all-reduce-gb300-rack", {exact}), Contains("at most 72 GPUs"));
  CHECK_THAT(refusal("collectives/ring-all-reduce-72-exact", {{"/workload/gpus", "73"}}), Contains("at most 72"));
  CHECK_THAT(refusal("training/llama3.1-405b-gb300-512", {exact}), Contains("use closed or flow"));
  CHECK_THAT(refusal("inference/llama2-70b-offline-gb300-rack", {flow}), Contains("use closed"));
}

// Rows of a run of ASTRA-sim 2.x (superproject a5a3ce2, analytical backend, LIFO, one active chunk a dimension).
TEST_CASE("Ring all-reduce takes the nanoseconds of ASTRA-sim") {
  const std::array runs = {
      astra_run{"congestion_aware", "Ring", 8, 1 << 20, 50, 500, 4, 10, 1600, 64'440},
      astra_run{"congestion_aware", "Ring", 64, 1 << 20, 50, 500, 4, 10, 1600, 296'896},
      astra_run{"congestion_aware", "Ring", 8, 1 << 20, 400, 936.25, 4, 10, 1600, 58'952},
      astra_run{"congestion_aware", "Ring", 8, 1 << 24, 50, 500, 1, 10, 1600, 581'528},
      astra_run{"congestion_aware", "Switch", 8, 1 << 24, 50, 500, 1, 10, 1600, 1'135'396},
      astra_run{"congestion_aware", "Ring", 8, 1 << 24, 50, 500, 16, 10, 1600, 688'400},
      astra_run{"congestion_aware", "Ring", 72, 1 << 30, 900, 500, 4, 10, 1600, 4'466'224},
      astra_run{"congestion_aware", "Switch", 72, 1 << 30, 900, 500, 4, 10, 1600, 6'941'568},
      astra_run{"congestion_unaware", "Switch", 72, 1 << 30, 900, 500, 4, 10, 1600, 4'750'224},
  };
  for (const astra_run& a : runs) check(a);
  check(runs[0], "exact");
  check(runs[4], "exact");
  check(runs[6], "flow");
}

TEST_CASE("Ring all-reduce takes the nanoseconds of every such run of ASTRA-sim") {
  const std::filesystem::path file = root / "../shared/data/astra-golden.csv";
  if (!std::filesystem::exists(file)) return;
  int checked = 0;
  for (const csv_row& row : read_csv(file).rows) {
    if (row["collective"] != "ar" || row["algorithm"] != "ring" || row["active_chunks"] != "1") continue;
    if (row["status"] != "ok") continue;
    ++checked;
    check({row["backend"], row["topology"], *row.integer("npus"), *row.integer("size_bytes"),
           *row.number("bandwidth_GBps"), *row.number("latency_ns"), *row.integer("splits"),
           *row.integer("endpoint_delay_ns"), *row.number("local_mem_GBps"), *row.integer("finish_ns_max")});
  }
  CHECK(checked == 144);
}
