#include "scenario/collective_reader.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/config/document.hpp"

namespace nvlsim {
namespace {

struct collective_read {
  collective_workload workload;
  config::document document;
  std::vector<std::string> problems;
};

collective_read read_collective(const std::string& text) {
  collective_read out;
  diagnostics problems;
  out.document = config::parse(text, {"scenario", "s.json"}, problems);
  config::reader r(out.document, problems);
  out.workload = read_collective_workload(r);
  for (const problem& p : problems.sorted()) out.problems.push_back(p.text());
  return out;
}

TEST_CASE("Collective reader takes the stack's parameters by default") {
  const collective_read r =
      read_collective(R"({"kind": "collective", "operation": "all_gather", "size": "64 MiB", "gpus": 72})");
  CHECK(r.problems.empty());
  CHECK(r.workload.operation == collective::all_gather);
  CHECK(r.workload.size.base() == 0x1p26);
  CHECK(r.workload.gpus == 72);
  CHECK(r.workload.algorithm.empty());
  CHECK(!r.workload.ideal);
  const value resolved = r.document.resolved();
  CHECK(*resolved.at_pointer("/parameters")->string() == "stack");
  CHECK(*resolved.at_pointer("/algorithm")->string() == "auto");
}

TEST_CASE("Collective reader reads every ideal parameter") {
  const collective_read r =
      read_collective(R"({"operation": "all_reduce", "size": "1 GB", "gpus": 8, "algorithm": "halving_doubling",
    "parameters": {"alpha": "0.5 us", "bandwidth": "900 GB/s", "hops": 2, "endpoint_delay": "10 ns",
                   "local_bandwidth": "1600 GB/s", "splits": 4, "rounding": "integer"}})");
  CHECK(r.problems.empty());
  REQUIRE(r.workload.ideal);
  const ideal_network& net = *r.workload.ideal;
  CHECK(net.alpha == 0.5_us);
  CHECK(net.rate == 900.0_GBps);
  CHECK(net.hops == 2);
  CHECK(net.endpoint.base() == Approx(10e-9));
  CHECK(net.local_rate == 1600.0_GBps);
  CHECK(net.splits == 4);
  CHECK(net.integer);
  CHECK(r.workload.algorithm == "halving_doubling");
}

TEST_CASE("Collective reader names every problem") {
  CHECK(read_collective(
            R"({"operation": "all_reduse", "size": 12, "gpus": 0, "parameters": "stak", "algorithm": "trees"})")
            .problems ==
        std::vector<std::string>{
            "s.json#/algorithm: expected one of auto, ring, tree, halving_doubling, pairwise, hierarchical, nvls, "
            "nvls_tree, "
            "sharp, one_shot, two_shot, found \"trees\"; did you mean \"tree\"?",
            "s.json#/gpus: 0 is less than 1",
            "s.json#/operation: expected one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
            "send_recv, reduce, neighbor_exchange, barrier, found \"all_reduse\"; did you mean \"all_reduce\"?",
            "s.json#/parameters: expected stack, found \"stak\"; did you mean \"stack\"?",
            "s.json#/size: expected a size such as \"288 GB\", found integer 12"});
  CHECK(read_collective(R"({"operation": "all_to_all", "size": "1 GB", "gpus": 8, "algorithm": "ring",
                 "parameters": {"alpha": "1 us", "bandwith": "900 GB/s"}})")
            .problems == std::vector<std::string>{
                             "s.json#/algorithm: all_to_all on an ideal network runs by pairwise, not by \"ring\"",
                             "s.json#/parameters: required member \"bandwidth\" is missing",
                             "s.json#/parameters/bandwith: unknown member; did you mean \"bandwidth\"?"});
}

TEST_CASE("Kind of workload and of parameters is told before it is read") {
  diagnostics problems;
  const auto parsed = [&](const char* text) { return config::parse(text, {"scenario", "s.json"}, problems).root; };
  const value ideal = parsed(R"({"kind": "collective", "parameters": {}})");
  CHECK(is_collective(&ideal));
  CHECK(has_ideal_parameters(&ideal));
  const value library = parsed(R"({"kind": "collective", "parameters": "stack"})");
  CHECK(!has_ideal_parameters(&library));
  const value training = parsed(R"({"kind": "training"})");
  CHECK(!is_collective(&training));
  CHECK(!is_collective(nullptr));
}

}  // namespace
}  // namespace nvlsim
