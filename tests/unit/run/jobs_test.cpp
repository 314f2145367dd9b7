// Jobs that share a fabric, and the traffic of others beside them.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/job_places.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;

struct temporary {
  std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("jobs-" + std::to_string(::getpid()) + ".json");
  explicit temporary(const std::string& text) { std::ofstream(file) << text; }
  ~temporary() { std::filesystem::remove(file); }
};

scenario read(const std::string& text) {
  const temporary t(text);
  return load_scenario(t.file, {}, folders_under(root));
}

std::vector<std::string> problems_of(const std::string& text) {
  try {
    read(text);
  } catch (const input_error& e) {
    std::vector<std::string> out;
    for (const problem& p : e.problems()) out.push_back(p.pointer + ": " + p.what);
    return out;
  }
  return {};
}

/// An all-reduce of a gigabyte over servers of eight GPUs.
std::string all_reduce(const std::string& name, int gpus, const std::string& racks, const std::string& more = "") {
  return R"({"name": ")" + name + R"(", "workload": {"kind": "collective", "operation": "all_reduce",
    "size": "1 GiB", "algorithm": "ring", "gpus": )" +
         std::to_string(gpus) + R"(}, "placement": {"policy": "racks", "racks": ")" + racks + "\"}" + more + "}";
}

std::string on_fabric(double oversubscription, const std::string& jobs, const std::string& more = "") {
  return R"({"schema": "nvlsim.scenario/1", "stack": "nccl-2.29", "platform": {"use": "hgx-b300", "racks": 64,
    "set": {"/fabric/oversubscription": )" +
         std::to_string(oversubscription) + R"(}}, "jobs": [)" + jobs + "]" + more + "}";
}

struct job_result {
  double time = 0, alone = 0;
  double slowdown() const { return time / alone; }
};

struct shared_result {
  std::vector<job_result> jobs;
  run_record run;
};

shared_result run(const std::string& text) {
  shared_result out;
  out.run = run_scenario(read(text));
  INFO(text);
  REQUIRE(out.run.outcome.reasons.empty());
  for (const value& j : *out.run.outcome.breakdown.find("jobs")->items())
    out.jobs.push_back({*j.find("time_s")->number(), *j.find("alone_s")->number()});
  return out;
}

/// Racks `first`, `first + 2`, ...
std::string every_second(int first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + std::to_string(first + 2 * i);
  return out;
}

/// Llama 3 8B served on servers of eight GPUs: prompts on the first `prefill` GPUs, tokens on the next. All
/// requests come at once, so that no answer decides when others come.
std::string pools(const std::string& name, int prefill, int decode, const std::string& racks,
                  const std::string& requests = "64") {
  return R"({"name": ")" + name +
         R"(", "stack": "vllm-0.12", "model": "llama3-8b", "workload": {"kind": "inference",
    "engine": {"weights": "bf16", "kv_cache": "bf16"}, "load": {"kind": "closed_loop", "requests": )" +
         requests + R"(, "concurrency": 64, "input": {"mean": 7000, "spread": 0.1}, "output": {"mean": 16}},
    "layout": {"prefill": {"workers": )" +
         std::to_string(prefill) + R"(}, "decode": {"workers": )" + std::to_string(decode) +
         R"(}}}, "placement": {"racks": ")" + racks + "\"}}";
}

double member(const shared_result& r, std::size_t job, const char* name) {
  return *r.run.outcome.breakdown.find("jobs")->items()->at(job).find(name)->number();
}

TEST_CASE("Jobs on a non-blocking fabric do not slow each other") {
  const shared_result r = run(
      on_fabric(1, all_reduce("a", 256, every_second(0, 32)) + "," + all_reduce("b", 256, every_second(1, 32))));
  for (const job_result& j : r.jobs) CHECK(j.slowdown() == Approx(1).epsilon(1e-9));
  CHECK(*r.run.outcome.metrics.find("worst_slowdown_fraction")->number() == Approx(0).margin(1e-9));
}

TEST_CASE("Jobs that alternate under the leaves slow each other, and in blocks of leaves they do not") {
  // 8 to 1: a leaf of 128 GPUs, 16 servers.
  const shared_result mixed = run(
      on_fabric(8, all_reduce("a", 256, every_second(0, 32)) + "," + all_reduce("b", 256, every_second(1, 32))));
  const shared_result blocks =
      run(on_fabric(8, all_reduce("a", 256, "0-31") + "," + all_reduce("b", 256, "32-63")));
  for (const job_result& j : mixed.jobs) {
    CHECK(j.slowdown() > 1.5);  // a ring alone does not fill what it has
    CHECK(j.slowdown() <= 2.001);
  }
  for (const job_result& j : blocks.jobs) CHECK(j.slowdown() == Approx(1).epsilon(1e-9));
  // Alone, a job that shares its leaves has twice the up-links. Together, both have what blocks have.
  CHECK(mixed.jobs[0].alone < 0.6 * blocks.jobs[0].alone);
  CHECK(mixed.jobs[0].time <= blocks.jobs[0].time * (1 + 1e-9));
}

TEST_CASE("Jobs that fill leaves together end together, whatever each has of which leaf") {
  // 8 to 1: a leaf of 128 GPUs, 16 servers. Every GPU of a full leaf has the same part of its up-links.
  const auto all_to_all = [](const std::string& name, const std::string& racks) {
    return R"({"name": ")" + name + R"(", "workload": {"kind": "collective", "operation": "all_to_all",
      "size": "1 GiB", "gpus": 256}, "placement": {"policy": "racks", "racks": ")" +
           racks + "\"}}";
  };
  const auto mixed = [&](const std::string& a, const std::string& b) {
    return run(on_fabric(8, all_to_all("a", a) + "," + all_to_all("b", b)));
  };
  const shared_result even = mixed("0-7,16-23,32-39,48-55", "8-15,24-31,40-47,56-63");
  CHECK(even.jobs[0].slowdown() > 1.5);  // an all-to-all alone does not fill what it has
  const std::vector<std::pair<std::string, std::string>> others = {
      {"0-8,16-22,32-40,48-54", "9-15,23-31,41-47,55-63"},    // 9 and 7
      {"0-11,16-19,32-43,48-51", "12-15,20-31,44-47,52-63"},  // 12 and 4
      {"0-7,16-31,32-39", "8-15,40-47,48-63"}};               // two leaves of three are shared
  for (const auto& [a, b] : others) {
    INFO(a << " beside " << b);
    const shared_result r = mixed(a, b);
    for (const job_result& j : r.jobs) {
      CHECK(j.time == Approx(even.jobs[0].time).epsilon(0.01));
      CHECK(j.time >= j.alone * (1 - 1e-9));
    }
    CHECK(r.jobs[0].slowdown() == Approx(r.jobs[1].slowdown()).epsilon(1e-6));
  }
  // Half of each job shares a leaf with half of the other, and the rest has a leaf to itself.
  const shared_result half = mixed("0-7,16-23,48-63", "8-15,24-31,32-47");
  for (const job_result& j : half.jobs) CHECK(j.time == Approx(even.jobs[0].time).epsilon(0.01));
}

TEST_CASE("No port of a job is used beyond what it carries, few or many of its GPUs under a leaf") {
  for (const double ratio : {1.0, 2.0, 8.0})
    for (const char* racks : {"0-3", "0,16,32,48", "0-31"}) {
      const int gpus = racks == std::string("0-31") ? 256 : 32;
      const shared_result r = run(on_fabric(ratio, all_reduce("a", gpus, racks)));
      INFO(ratio << " " << racks);
      for (const link_use& u : r.run.links) CHECK(u.mean <= 1 + 1e-9);
    }
}

TEST_CASE("A job that starts when the other is done has the fabric to itself") {
  const std::string a = all_reduce("a", 256, every_second(0, 32));
  const shared_result r =
      run(on_fabric(8, a + "," + all_reduce("b", 256, every_second(1, 32), R"(, "start": "1 s")")));
  for (const job_result& j : r.jobs) CHECK(j.slowdown() == Approx(1).epsilon(1e-9));
  CHECK(r.run.times.makespan.base() == Approx(1 + r.jobs[1].time).epsilon(1e-9));
}

TEST_CASE("Storage traffic takes its share of the NICs, and no more") {
  const std::string a = all_reduce("a", 256, "0-31");
  const auto beside = [&](const std::string& rate) {
    return run(on_fabric(1, a,
                         R"(, "background": [{"pattern": "storage", "gpus": "0-255", "rate": ")" + rate + "\"}]"))
        .jobs.front()
        .slowdown();
  };
  const double little = beside("1 MB/s"), half = beside("50 GB/s"), full = beside("100 GB/s");
  CHECK(little == Approx(1).epsilon(1e-3));
  CHECK(half > 1.03);
  CHECK(half < full);
  CHECK(full < 2.05);  // an even share of the port
}

TEST_CASE("An incast takes the port as often as it has senders") {
  const std::string a = all_reduce("a", 64, "0-7");
  const auto beside = [&](int senders) {
    return run(on_fabric(1, a,
                         R"(, "background": [{"pattern": "incast", "gpus": "0", "senders": )" +
                             std::to_string(senders) + "}]"))
        .jobs.front()
        .slowdown();
  };
  const double one = beside(1), three = beside(3);
  CHECK(one > 1.03);
  CHECK(three > 1.6 * one);
  CHECK(three < 4.1);
}

TEST_CASE("An incast into one GPU takes of the up-links what its NIC carries") {
  // By hand: the ring has a seventeenth of that NIC, which is less than its part of the up-links.
  const auto time = [&](double ratio) {
    return run(on_fabric(ratio, all_reduce("a", 256, "0-31"),
                         R"(, "background": [{"pattern": "incast", "gpus": "0", "senders": 16}])"))
        .jobs.front();
  };
  const job_result whole = time(1), cut = time(4);
  CHECK(cut.alone > 1.5 * whole.alone);
  CHECK(whole.slowdown() > 6);
  CHECK(cut.time == Approx(whole.time).epsilon(0.01));
}

TEST_CASE("Of background traffic the rate counts, not the number of its partners") {
  for (const double ratio : {1.0, 4.0})
    for (const char* rate : {"10 GB/s", "40 GB/s", "100 GB/s"}) {
      INFO(ratio << " to 1, " << rate);
      const auto beside = [&](const char* pattern) {
        return run(on_fabric(ratio, all_reduce("a", 256, every_second(0, 32)),
                             std::string(R"(, "background": [{"gpus": "0-511", "pattern": ")") + pattern +
                                 R"(", "rate": ")" + rate + "\"}]"))
            .jobs.front()
            .slowdown();
      };
      CHECK(beside("all_to_all") == Approx(beside("permutation")).epsilon(1e-6));
      CHECK(beside("permutation") <= 2.01 * ratio);
    }
}

TEST_CASE("No link is used beyond its capacity by traffic that outlasts the jobs") {
  for (const double ratio : {1.0, 4.0})
    for (const char* pattern : {"incast", "permutation", "all_to_all", "storage"}) {
      INFO(ratio << " " << pattern);
      const shared_result r =
          run(on_fabric(ratio, all_reduce("a", 256, every_second(0, 32)),
                        std::string(R"(, "background": [{"gpus": "0-255", "pattern": ")") + pattern + "\"}]"));
      CHECK_FALSE(r.run.links.empty());
      for (const link_use& u : r.run.links) {
        INFO(u.name);
        CHECK(u.mean <= 1 + 1e-9);
      }
    }
}

TEST_CASE("Background with an end of its own ends") {
  const std::string a = all_reduce("a", 64, "0-7");
  const shared_result r = run(on_fabric(
      1, a, R"(, "background": [{"pattern": "storage", "gpus": "0-63", "bytes": "64 GB", "rate": "100 GB/s"}])"));
  const job_result j = r.jobs.front();
  // A gigabyte of each NIC's in 10 ms: what the ring loses is what the port had to carry as well.
  CHECK(j.time - j.alone > 1e-4);
  CHECK(j.time - j.alone < 11e-3);
}

TEST_CASE("Jobs are read as scenarios of their own, with all of their problems at their pointers") {
  const std::string good = all_reduce("a", 64, "0-7");
  const std::vector<std::string> found = problems_of(on_fabric(
      1,
      good + "," +
          R"({"name": "a", "workload": {"kind": "collective", "operation": "all_redduce", "size": 3, "gpus": 8}},
      {"name": "c", "wrokload": {}})",
      R"(, "background": [{"pattern": "sideways", "gpus": "0-9999"}])"));
  const auto has = [&](const std::string& text) {
    return std::any_of(found.begin(), found.end(), [&](const std::string& p) { return p.find(text) != p.npos; });
  };
  for (const std::string& p : found) INFO(p);
  CHECK(has("/jobs/1/name: two jobs are named"));
  CHECK(has("/jobs/1/workload/operation"));
  CHECK(has("/jobs/1/workload/size"));
  CHECK(has("/jobs/2"));
  CHECK(has("/background/0/pattern"));
  CHECK(has("/background/0/gpus: GPU 9999 does not exist"));
}

TEST_CASE("Jobs on the same GPUs, or on more racks than there are, are problems") {
  const std::vector<std::string> same =
      problems_of(on_fabric(1, all_reduce("a", 64, "0-7") + "," + all_reduce("b", 64, "7-14")));
  REQUIRE(same.size() == 1);
  CHECK(same.front() == "/jobs/1/placement: jobs a and b are both on GPU 56");
  CHECK_FALSE(problems_of(on_fabric(1, all_reduce("a", 64, "0-3"))).empty());
  CHECK_FALSE(problems_of(on_fabric(1, all_reduce("a", 64, "60-67"))).empty());
}

TEST_CASE("Fidelities that leave the others out are refused") {
  for (const std::string f : {"closed", "exact"}) {
    const std::vector<std::string> found =
        problems_of(on_fabric(1, all_reduce("a", 64, "0-7"), R"(, "simulation": {"fidelity": ")" + f + "\"}"));
    REQUIRE(found.size() == 1);
    CHECK(found.front().find("/simulation/fidelity: jobs meet on the network, which " + f) == 0);
  }
}

TEST_CASE("By default each job takes the racks after those of the one before") {
  const scenario s =
      read(on_fabric(1, all_reduce("a", 64, "8-15") + R"(, {"name": "b", "workload": {"kind": "collective",
    "operation": "all_reduce", "size": "1 MiB", "gpus": 16}})"));
  const auto& w = std::get<shared_workload>(s.workload);
  CHECK(w.jobs[1].racks == std::vector<std::int64_t>{16, 17});
  CHECK(gpus_of(w.jobs[1], s.platform).front() == 128);
}

TEST_CASE("A job alone in the list runs as it does as a scenario of its own") {
  const scenario s = load_scenario(root / "scenarios/training/llama3.1-405b-gb300-512.json",
                                   {{"/simulation/fidelity", "flow"}}, folders_under(root));
  const temporary t(R"({"schema": "nvlsim.scenario/1", "platform": {"use": "gb300-nvl72", "racks": 8},
    "stack": "megatron-bridge-26.06", "model": "llama3.1-405b", "jobs": [{"workload": {"kind": "training",
    "seq_length": 8192, "global_batch_size": 896, "micro_batch_size": 1, "precision": "nvfp4", "tp": 2, "pp": 8,
    "vp": 8, "cp": 2, "dp": 16, "sequence_parallel": true, "schedule": "interleaved",
    "data_parallel_sharding": "distributed_optimizer"}, "placement": {"gpus_per_rack": 64}}]})");
  const run_record shared = run_scenario(load_scenario(t.file, {}, folders_under(root)));
  CHECK(*shared.outcome.metrics.find("makespan_s")->number() ==
        Approx(*run_scenario(s).outcome.metrics.find("step_time_s")->number()).epsilon(1e-9));
}

TEST_CASE("A server alone in the list serves as it does as a scenario of its own") {
  const std::string serving = R"("stack": "vllm-0.12", "model": "llama3.3-70b", "workload": {"kind": "inference",
    "engine": {"weights": "fp8", "kv_cache": "fp8"}, "load": {"kind": "open_loop", "requests": 60,
    "requests_per_s": 20, "warmup": 0, "tail": 0, "input": {"mean": 2000, "spread": 0.5}, "output": {"mean": 50, "spread": 0.5}},
    "layout": {"tp": 8, "replicas": 2}})";
  const shared_result shared = run(on_fabric(4, R"({"name": "chat", )" + serving + R"(, "start": "3 s"})"));
  const temporary t(R"({"schema": "nvlsim.scenario/1", "platform": {"use": "hgx-b300", "racks": 2}, )" + serving +
                    "}");
  const run_record own = run_scenario(load_scenario(t.file, {}, folders_under(root)));
  REQUIRE(own.outcome.reasons.empty());
  for (const char* name : {"ttft_s", "tpot_s", "e2e_s"})
    CHECK(member(shared, 0, name) ==
          Approx(*own.outcome.metrics.find(name)->find("mean")->number()).epsilon(1e-6));
  // It has every metric of a served scenario, with the same values.
  const value* metrics = shared.run.outcome.breakdown.find("jobs")->items()->front().find("metrics");
  REQUIRE(metrics);
  const auto check = [](const std::string& name, const value& here, const value& there) {
    INFO(name);
    REQUIRE((here.number() == nullptr) == (there.number() == nullptr));
    if (here.number()) CHECK(*here.number() == Approx(*there.number()).epsilon(1e-6));
  };
  CHECK(metrics->members()->size() == own.outcome.metrics.members()->size());
  for (const auto& [name, v] : *own.outcome.metrics.members()) {
    const value* here = metrics->find(name);
    INFO(name);
    REQUIRE(here);
    if (!v.members()) check(name, *here, v);
    else
      for (const auto& [part, x] : *v.members()) check(name + "." + part, *here->find(part), x);
  }
  CHECK(shared.jobs[0].time == Approx(shared.jobs[0].alone).epsilon(1e-9));
  CHECK(shared.run.times.makespan.base() == Approx(3 + shared.jobs[0].time).epsilon(1e-9));
}

TEST_CASE("Caches and a collective at the same up-links slow each other, the more the fewer there are") {
  const std::string both = all_reduce("a", 256, every_second(0, 32), R"(, "repeat": 60)") + "," +
                           pools("chat", 32, 32, "1,3,5,7,33,35,37,39");
  double last = 0;
  for (const double ratio : {1.0, 4.0, 16.0, 64.0}) {
    INFO(ratio);
    const shared_result r = run(on_fabric(ratio, both));
    const double request = member(r, 1, "e2e_s");
    CHECK(request >= member(r, 1, "e2e_alone_s") * (1 - 1e-9));
    CHECK(r.jobs[0].slowdown() >= 1 - 1e-9);
    CHECK(request >= last * (1 - 1e-9));
    last = request;
    if (ratio < 2) CHECK(member(r, 1, "slowdown") == Approx(1).epsilon(1e-6));
    if (ratio > 8) CHECK(member(r, 1, "slowdown") > 1.01);
  }
}

TEST_CASE("Equal servers that alternate under a leaf slow each other alike") {
  const shared_result r = run(on_fabric(32, pools("a", 8, 8, "0,32") + "," + pools("b", 8, 8, "1,33")));
  CHECK(member(r, 0, "e2e_s") == Approx(member(r, 1, "e2e_s")).epsilon(1e-6));
  CHECK(member(r, 0, "slowdown") > 1.01);
}

TEST_CASE("A collective that runs many times takes as long each time") {
  const shared_result r = run(on_fabric(4, all_reduce("a", 64, "0-7", R"(, "repeat": 5)")));
  CHECK(r.jobs[0].time == Approx(r.jobs[0].alone).epsilon(1e-9));
  CHECK(r.run.times.makespan.base() == Approx(5 * r.jobs[0].alone).epsilon(1e-9));
}

TEST_CASE("A server's placement has only its racks, and it serves once") {
  const std::vector<std::string> found = problems_of(on_fabric(
      1,
      R"({"stack": "vllm-0.12", "model": "llama3-8b", "repeat": 2, "placement": {"racks": "0-63", "policy": "rails"},
    "workload": {"kind": "inference", "load": {"kind": "offline", "requests": 4, "input": {"mean": 100},
    "output": {"mean": 10}}}})"));
  const auto has = [&](const std::string& text) {
    return std::any_of(found.begin(), found.end(), [&](const std::string& p) { return p.find(text) != p.npos; });
  };
  for (const std::string& p : found) UNSCOPED_INFO(p);
  CHECK((has("/jobs/0/repeat: has no effect") || has("/jobs/0/placement")));
}

}  // namespace
}  // namespace nvlsim
