// From a sweep file to points, records and a table.
#include "nvlsim/sweep/sweep.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/scenario_digest.hpp"
#include "nvlsim/sweep/sweep_store.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

using test::root;

/// A folder of its own, gone with the test.
struct bench {
  fs::path folder;

  bench() {
    static int number = 0;
    folder = fs::temp_directory_path() / fmt::format("nvlsim-sweep-{}-{}", ::getpid(), number++);
    fs::create_directories(folder);
  }
  ~bench() { fs::remove_all(folder); }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  sweep read(const std::string& axes) const {
    const fs::path scenario = fs::absolute(root / "scenarios/collectives/all-reduce-gb300-rack.json");
    std::ofstream(folder / "s.json") << fmt::format(
        R"({{"schema": "nvlsim.sweep/1", "scenario": "{}", "axes": {}}})", scenario.string(), axes);
    return load_sweep(folder / "s.json");
  }
  sweep_plan plan(const std::string& axes) const {
    return write_sweep_plan(read(axes), folder / "out", find, folders_under(root));
  }
  sweep_run_counts run(sweep_run_options o = {}) const {
    return run_sweep(folder / "out", o, find, folders_under(root));
  }
  fs::path records(int shard = 0, int shards = 1) const {
    return folder / "out" / "results" / fmt::format("shard-{}-of-{}.jsonl", shard, shards);
  }

  static fs::path find(const std::string& name) { return name; }
};

std::vector<std::string> settings(const sweep& s) {
  std::vector<std::string> out;
  for (const point_settings& p : s.points) {
    std::string line;
    for (const auto& [pointer, v] : p) {
      std::string text = to_json(v, 0);
      text.erase(text.find_last_not_of('\n') + 1);
      line += (line.empty() ? "" : " ") + pointer + '=' + text;
    }
    out.push_back(line);
  }
  return out;
}

TEST_CASE("Axes of a sweep multiply, the last runs fastest") {
  const bench b;
  CHECK(settings(b.read(R"([{"grid": {"/a": [1, 2], "/b": ["x"]}}, {"zip": {"/c": [3, 4], "/d": [5, 6]}}])")) ==
        std::vector<std::string>{R"(/a=1 /b="x" /c=3 /d=5)", R"(/a=1 /b="x" /c=4 /d=6)",
                                 R"(/a=2 /b="x" /c=3 /d=5)", R"(/a=2 /b="x" /c=4 /d=6)"});
  CHECK(settings(b.read(R"([{"list": [{"/a": 1}, {"/a": 2, "/b": null}]}])")) ==
        std::vector<std::string>{"/a=1", "/a=2 /b=null"});
  CHECK(settings(b.read(R"([{"platforms": ["gb200-nvl72", "gb300-nvl72"]}])")).size() == 2);
}

TEST_CASE("Ranges of a sweep are even, by steps or by factors") {
  const bench b;
  CHECK(settings(b.read(R"([{"range": {"pointer": "/a", "from": 1, "to": 4, "count": 4, "integer": true}}])")) ==
        std::vector<std::string>{"/a=1", "/a=2", "/a=3", "/a=4"});
  CHECK(settings(b.read(R"([{"log_range": {"pointer": "/a", "from": "1 GB/s", "to": "16 GB/s", "count": 3}}])")) ==
        std::vector<std::string>{R"(/a="1 GB/s")", R"(/a="4 GB/s")", R"(/a="16 GB/s")"});
}

TEST_CASE("Random points of a sweep repeat with their seed and keep to their bounds") {
  const bench b;
  const auto sampled = [&](int seed) {
    return settings(b.read(fmt::format(R"([{{"random": {{"count": 40, "seed": {}, "draw": {{
      "/a": {{"from": 1, "to": 1000, "logarithmic": true, "integer": true}}, "/b": {{"choice": ["x", "y"]}}}}}}}}])",
                                       seed)));
  };
  const auto one = sampled(1);
  CHECK(one == sampled(1));
  CHECK(one != sampled(2));
  REQUIRE(one.size() == 40);
  std::set<std::string> choices;
  for (const std::string& p : one) {
    const int a = std::stoi(p.substr(3));
    CHECK((a >= 1 && a <= 1000));
    choices.insert(p.substr(p.find("/b")));
  }
  CHECK(choices.size() == 2);
}

TEST_CASE("A wrong sweep file is told in full") {
  const bench b;
  CHECK_THROWS_WITH(b.read(R"([{"grid": {"/a": [1]}}, {"grid": {"/a": [2]}}])"), Contains("two axes set \"/a\""));
  CHECK_THROWS_WITH(b.read(R"([{"zip": {"/a": [1, 2], "/b": [1]}}])"), Contains("1 values, but there are 2"));
  CHECK_THROWS_WITH(b.read(R"([{"grd": {}}])"), Contains("did you mean \"grid\""));
}

TEST_CASE("Null in a sweep takes a member away") {
  const bench b;
  std::ofstream(b.folder / "n.json") << R"({"schema": "nvlsim.sweep/1", "scenario": "x", "set": {"/c": null},
    "axes": [{"list": [{"/b": null}]}, {"grid": {"/a": [null, 1]}}]})";
  CHECK(settings(load_sweep(b.folder / "n.json")) ==
        std::vector<std::string>{"/c=null /b=null /a=null", "/c=null /b=null /a=1"});
}

TEST_CASE("A plan reads each file once, and its ids are those of scenarios that are read one by one") {
  const auto resolved = [](const fs::path& file, const point_settings& set) {
    return *load_scenario(file, overrides_of(set), folders_under(root)).inputs.find("digest")->string();
  };
  const std::pair<const char*, std::vector<point_settings>> cases[] = {
      {"collectives/all-reduce-gb300-rack",
       {{{"/workload/size", "3 MB"}},
        {{"/platform/gpu/nvlink", "800 GB/s"}},
        {{"/platform/use", "gb200-nvl72"}},
        {{"/platform/racks", 3}},
        {{"/platform/set", value{value::object{{"/gpu/nvlink", "700 GB/s"}}}}},
        {{"/stack/collectives", "nccl-2.29"}}}},
      {"training/llama3.1-405b-gb300-rack",
       {{{"/model", "llama3.1-70b"}}, {{"/model/num_hidden_layers", 120}}, {{"/workload/micro_batch_size", 2}}}},
      {"inference/deepseek-r1-gb300-rack",
       {{{"/stack", "vllm"}},
        {{"/stack/inference/step_host", "123 us"}},
        {{"/workload/engine/speculative", value{value::object{{"draft_tokens", 2}, {"acceptance", 0.7}}}}}}},
      {"inference/llama3.3-70b-trace-gb300-rack", {{{"/workload/load/rate_scale", 2}}}},
      {"post-training/llama3.1-8b-grpo-gb200-8", {{{"/simulation/seed", 7}}}}};
  for (const auto& [name, points] : cases) {
    const fs::path file = root / "scenarios" / (std::string(name) + ".json");
    if (!fs::exists(file)) FAIL(file);
    const data_folders kept = keep_files(folders_under(root));
    std::set<std::string> different;
    for (int again = 0; again < 2; ++again)  // what an override changed does not stay in what is kept
      for (const point_settings& set : points) {
        INFO(name << " " << overrides_of(set).front().pointer);
        const std::string id = scenario_digest(file, overrides_of(set), kept);
        CHECK(id == resolved(file, set));
        different.insert(id);
      }
    CHECK(different.size() == points.size());
    CHECK(scenario_digest(file, {}, kept) == resolved(file, {}));
    CHECK_THROWS_AS(scenario_digest(file, {{"/platform/gpu/nvlnk", "1 GB/s"}}, kept), input_error);
    CHECK_THROWS_AS(scenario_digest(file, {{"/platform/gpu/nvlnk", "1 GB/s"}}, kept), input_error);
  }
}

TEST_CASE("However many points a plan has, it reads the files that they share once") {
  const bench b;
  fs::copy(root / "platforms", b.folder / "platforms", fs::copy_options::recursive);
  fs::copy(root / "scenarios", b.folder / "scenarios", fs::copy_options::recursive);
  const data_folders kept = keep_files(folders_under(b.folder));
  const fs::path file = b.folder / "scenarios/inference/deepseek-r1-gb300-rack.json";
  const auto id_of = [&](const point_settings& set) { return scenario_digest(file, overrides_of(set), kept); };
  std::set<std::string> ids = {id_of({}), id_of({{"/stack/kernels", "training-kernels"}})};
  for (const char* folder : {"platforms", "scenarios"}) fs::remove_all(b.folder / folder);
  for (int i = 1; i <= 50; ++i) {
    ids.insert(id_of({{"/workload/load/requests_per_s", i}}));
    ids.insert(id_of({{"/platform/gpu/hbm_bandwidth", fmt::format("{} TB/s", i)}}));
    ids.insert(id_of({{"/stack/inference/step_host", fmt::format("{} us", 1000 + i)}}));
    ids.insert(id_of({{"/stack/kernels", "training-kernels"}, {"/stack/inference/kv_fraction", 0.01 * i}}));
    ids.insert(id_of({{"/model/num_hidden_layers", 3 + i}}));
  }
  CHECK(ids.size() > 200);
}

TEST_CASE("A point's id is the digest of what it resolves to") {
  const bench b;
  const sweep_plan p = b.plan(
      R"([{"list": [{"/workload/gpus": 8}, {"/workload/gpus": 16}, {"/workload/gpus": 8}, {"/workload/gpsu": 1}]}])");
  REQUIRE(p.points.size() == 4);
  REQUIRE(p.reasons.size() == 1);
  CHECK(p.reasons.begin()->first == "error: --set#/workload/gpsu: unknown member; did you mean \"gpus\"?");
  CHECK(p.points[0].id == p.points[2].id);
  CHECK(p.points[0].id != p.points[1].id);
  const scenario s =
      load_scenario(b.folder / "out" / p.scenario, overrides_of(p.points[1].set), folders_under(root));
  CHECK(p.points[1].id == *s.inputs.find("digest")->string());
  CHECK_FALSE(p.points[3].id.empty());
  const sweep_plan again = read_sweep_plan(b.folder / "out");
  for (std::size_t i = 0; i < 4; ++i) CHECK(again.points[i].id == p.points[i].id);
}

TEST_CASE("A sweep runs each point once, goes on after a torn line and keeps what a longer one shares") {
  const bench b;
  b.plan(R"([{"grid": {"/workload/gpus": [2, 4, 100]}}])");
  CHECK(b.run().run == 3);
  CHECK(b.run().before == 3);
  std::ofstream(b.records(), std::ios::app) << R"({"id": "012)";
  b.plan(R"([{"grid": {"/workload/gpus": [2, 3, 4, 100]}}])");
  const sweep_run_counts more = b.run();
  CHECK(more.before == 3);
  CHECK(more.run == 1);
  CHECK(read_records(b.folder / "out").size() == 4);
  const sweep_merge m = merge_sweep(b.folder / "out");
  CHECK((m.points == 4 && m.ok == 3 && m.infeasible == 1 && m.missing == 0));
}

/// Counts how often files below some folders are opened, by this process and its children.
class opened_files {
 public:
  explicit opened_files(const std::vector<fs::path>& folders) {
    REQUIRE(inotify_ >= 0);
    for (const fs::path& f : folders) {
      watch(f);
      for (const fs::directory_entry& e : fs::recursive_directory_iterator(f))
        if (e.is_directory()) watch(e.path());
    }
  }
  ~opened_files() { ::close(inotify_); }
  opened_files(const opened_files&) = delete;
  opened_files& operator=(const opened_files&) = delete;

  /// By name, since the last call.
  std::map<std::string, int> counts() {
    std::map<std::string, int> out;
    alignas(inotify_event) std::array<char, 1 << 16> told{};
    for (ssize_t n = 0; (n = ::read(inotify_, told.data(), told.size())) > 0;)
      for (ssize_t at = 0; at < n;) {
        inotify_event e{};
        std::memcpy(&e, told.data() + at, sizeof e);
        CHECK((e.mask & IN_Q_OVERFLOW) == 0);
        if ((e.mask & IN_ISDIR) == 0 && e.len > 0) ++out[told.data() + at + sizeof e];
        at += static_cast<ssize_t>(sizeof e + e.len);
      }
    return out;
  }

 private:
  void watch(const fs::path& folder) { REQUIRE(::inotify_add_watch(inotify_, folder.c_str(), IN_OPEN) >= 0); }

  int inotify_ = ::inotify_init1(IN_NONBLOCK);
};

TEST_CASE("However many points run, they read their own files once each and those of the sweep once in all") {
  const bench b;
  const data_folders copied = folders_under(b.folder);
  for (const char* folder : {"platforms", "scenarios"})
    fs::copy(root / folder, b.folder / folder, fs::copy_options::recursive);
  const fs::path scenario = b.folder / "scenarios/collectives/all-reduce-gb300-rack.json";
  for (const std::size_t n : {std::size_t{4}, std::size_t{32}}) {
    std::string sizes;
    for (std::size_t i = 1; i <= n; ++i) sizes += fmt::format("{}\"{} MB\"", i > 1 ? ", " : "", n + i);
    std::ofstream(b.folder / "s.json") << fmt::format(
        R"({{"schema": "nvlsim.sweep/1", "scenario": "{}", "axes": [{{"grid": {{"/workload/size": [{}]}}}}]}})",
        scenario.string(), sizes);
    const fs::path out = b.folder / fmt::format("out-{}", n);
    write_sweep_plan(load_sweep(b.folder / "s.json"), out, bench::find, copied);
    opened_files data({b.folder / "platforms", b.folder / "scenarios"}), own({out});
    CHECK(run_sweep(out, {}, bench::find, copied).run == static_cast<std::int64_t>(n));
    const auto most_of = [&](opened_files& files) {
      int most = 0;
      for (const auto& [name, times] : files.counts()) most = std::max(most, times);
      return most;
    };
    CHECK(most_of(data) == static_cast<int>(n) + 1);  // what is shared is read before the first point begins
    CHECK(most_of(own) == 2);                         // records: those of before, and to write more
  }
}

TEST_CASE("Reasons are those of the points that are planned, as often as they are, and of the shard that ran") {
  const bench b;
  b.plan(R"([{"list": [{"/workload/gpus": 100}, {"/workload/gpus": 99}, {"/workload/gpus": 2}]}])");
  CHECK(b.run().reasons.size() == 2);
  b.plan(R"([{"list": [{"/workload/gpus": 100}, {"/workload/gpus": 2}, {"/workload/gpus": 100}]}])");
  const sweep_reasons merged = merge_sweep(b.folder / "out").reasons;
  REQUIRE(merged.size() == 1);
  CHECK(merged.begin()->first.starts_with("infeasible: "));
  CHECK(merged.begin()->second == 2);
  sweep_run_options o;
  o.shards = 2;
  CHECK(b.run(o).reasons.size() == 1);
  o.shard = 1;
  CHECK(b.run(o).reasons.empty());
}

TEST_CASE("Shards of a sweep share its points out and errors are run again when asked") {
  const bench b;
  b.plan(R"([{"list": [{"/workload/gpus": 2}, {"/workload/gqus": 2}, {"/workload/gpus": 4}]}])");
  sweep_run_options second;
  second.shard = 1, second.shards = 2;
  CHECK(b.run(second).failed == 1);
  CHECK(merge_sweep(b.folder / "out").missing == 2);
  sweep_run_options first = second;
  first.shard = 0;
  CHECK(b.run(first).run == 2);
  second.retry_errors = true;
  CHECK(b.run(second).run == 1);
  CHECK(merge_sweep(b.folder / "out").error == 1);
}

}  // namespace
}  // namespace nvlsim
