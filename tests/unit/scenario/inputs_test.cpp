#include "nvlsim/scenario/inputs.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

#include "nvlsim/scenario/scenario_digest.hpp"
#include "support/root.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;
using nvlsim::config::test::scratch_folder;
using nvlsim::config::test::text_of;

namespace {

/// A folder with one framework of one library.
struct small_stacks : scratch_folder {
  small_stacks() {
    std::filesystem::create_directory(path() / "kernels");
    write("kernels/lib.json", R"({"schema": "nvlsim.stack/1", "description": "lib", "kernels": {}})");
    write("engine.json", R"({"schema": "nvlsim.stack/1", "description": "engine", "kernels": "lib"})");
    data.stacks = path();
  }
  data_folders data;
};

}  // namespace

TEST_CASE("Shared stack is read again when a library of it changes") {
  const small_stacks folder;
  diagnostics problems;
  const auto read = [&] { return share_stack({"engine"}, folder.data, problems); };
  const auto first = read();
  CHECK(text_of(problems) == "");
  CHECK(read() == first);
  folder.write("kernels/lib.json",
               R"({"schema": "nvlsim.stack/1", "description": "lib", "kernels": {"h100": 1}})");
  CHECK(read() != first);
  CHECK(text_of(problems).find("kernels/lib.json#/kernels/h100: ") != std::string::npos);
}

TEST_CASE("Stack of a path is found with the libraries beside it, then with those that ship") {
  const small_stacks folder, own;
  own.write("mine.json",
            R"({"schema": "nvlsim.stack/1", "description": "mine", "base": "engine", "kernels": "other"})");
  std::filesystem::remove(own.path() / "engine.json");
  std::filesystem::remove(own.path() / "kernels/lib.json");
  diagnostics problems;
  const std::string path = (own.path() / "mine.json").string();
  load_stack({path}, folder.data, problems);
  CHECK(text_of(problems) == path + "#/kernels: unknown kernels library \"other\"; known: lib\n");
  own.write("kernels/other.json", R"({"schema": "nvlsim.stack/1", "description": "other", "kernels": {}})");
  diagnostics none;
  CHECK(load_stack({path}, folder.data, none).content.description == "mine");
  CHECK(text_of(none) == "");
}

namespace {

struct overridden {
  const char* stack;
  std::vector<override_at> sets;
};

override_at set(const char* pointer, value v) { return {pointer, std::move(v), {"--set", "--set", true}, {}}; }

/// What a document says of itself, as text.
std::vector<std::string> origins_of(const config::document& d) {
  std::vector<std::string> out = {d.self.label, d.self.where};
  for (const auto& [pointer, o] : d.origins) out.push_back(pointer + " " + o.label + " " + o.where + " " + o.at);
  for (const config::provenance& p : d.sources)
    out.push_back(p.pointer + " " + p.text + " " + p.kind + " " + p.source);
  for (const auto& [pointer, v] : d.defaults) out.push_back(pointer);
  for (const auto& [pointer, other] : d.spelled) out.push_back(pointer + " " + other);
  return out;
}

}  // namespace

TEST_CASE("A stack with overrides is the same whether its other sections are read again or kept") {
  const overridden cases[] = {
      {"vllm", {set("/inference/step_host", "123 us")}},
      {"sglang", {set("/inference/gpus/ampere/step_host", "1 us"), set("/inference/kv_fraction", 0.5)}},
      {"megatron-bridge", {set("/training/moe/time_factor", 1.5), set("/collectives/expert_nic_share", 0.5)}},
      {"megatron-bridge", {set("/kernels/hopper/gemm/bf16/hbm_share", 0.5)}},
      {"megatron-bridge", {set("/training/fragmentation", value{})}},
      {"vllm", {set("/kernels", "training-kernels"), set("/inference/step_host", "123 us")}},
      {"vllm", {set("/kernels", "training-kernels")}},
      {"vllm", {set("/description", "mine"), set("/inference/step_host", "1 us")}},
      {"vllm", {set("/inference/stpe_host", "123 us")}},
      {"vllm", {set("/inference", value{})}},
      {"vllm", {set("/nothing/here", 1)}},
      {"vllm", {set("/kernels/gb300/like", "nothing")}}};
  const data_folders data = folders_under(nvlsim::test::root);
  std::size_t good = 0;
  for (const auto& [name, sets] : cases)
    for (const data_folders& folders : {data, keep_files(data)}) {
      INFO(name << " " << sets.front().pointer);
      diagnostics of_whole, of_parts;
      const loaded<stack> file = load_stack({name, sets}, data, of_whole);
      const auto found = share_stack({name, sets}, folders, of_parts);
      CHECK(text_of(of_parts) == text_of(of_whole));
      if (!of_whole.empty()) continue;
      ++good;
      const known_stack whole = with_digests(file);
      CHECK(found->file.content == whole.file.content);
      CHECK(found->file.source.root == whole.file.source.root);
      CHECK(origins_of(found->file.source) == origins_of(whole.file.source));
      CHECK(found->resolved == whole.resolved);
      CHECK(found->digest == whole.digest);
      CHECK(share_stack({name, sets, {}, true}, folders, of_parts)->digest == whole.digest);
      CHECK(share_stack({name}, folders, of_parts)->digest != whole.digest);
    }
  CHECK(good >= 14);
}

TEST_CASE("A stack is read without the library of its collectives where nothing asks for them") {
  const data_folders data = folders_under(nvlsim::test::root);
  const auto load = [&](std::vector<override_at> sets, bool lean, diagnostics& problems) {
    return load_stack({"tensorrt-llm-1.3-kernels", std::move(sets), {}, false, "/stack", lean}, data, problems);
  };
  diagnostics problems;
  const loaded<stack> whole = load({}, false, problems), lean = load({}, true, problems);
  CHECK(problems.empty());
  CHECK(lean.content.kernels == whole.content.kernels);
  CHECK(whole.source.root.find("collectives"));
  CHECK_FALSE(lean.source.root.find("collectives"));
  CHECK(load({set("/collectives/expert_nic_share", 0.5)}, true, problems).source.root.find("collectives"));
  CHECK(problems.empty());
  for (const bool without : {false, true}) {
    diagnostics wrong;
    load({set("/kernls/x", 1)}, without, wrong);
    CHECK_FALSE(wrong.empty());
  }
}
