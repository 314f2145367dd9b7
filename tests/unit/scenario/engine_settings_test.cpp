// The table of engine settings, walked: every name in every place, and the merge. Their page and schemas are
// in tests/unit/output.
#include "nvlsim/stack/engine_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/pools.hpp"

namespace nvlsim {
namespace {

const std::filesystem::path source{NVLSIM_SOURCE_DIR};

/// A value of a field, as text that --set takes.
using field_value = std::string;

struct described {
  engine_settings settings;
  rank_counts ranks;
};

field_value value_of(const engine_field& f, const described& d) {
  return std::visit(
      [&](const auto& m) -> field_value {
        if constexpr (requires { m.value; }) {
          const std::decay_t<decltype(m.otherwise)> x = d.settings.*m.value;
          if constexpr (std::is_enum_v<std::decay_t<decltype(x)>>)
            return std::string(m.allowed[static_cast<std::size_t>(x)]);
          else return fmt::format("{}", x);
        } else {
          return fmt::format("{}", d.ranks.*m);
        }
      },
      f.member);
}

/// Another value that the field may have.
field_value another(const engine_field& f, const described& d) {
  return std::visit(
      [&](const auto& m) -> field_value {
        if constexpr (requires { m.value; }) {
          const std::decay_t<decltype(m.otherwise)> x = d.settings.*m.value;
          using type = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<type, bool>) return x ? "false" : "true";
          else if constexpr (std::is_enum_v<type>)
            return std::string(m.allowed[(static_cast<std::size_t>(x) + 1) % m.allowed.size()]);
          else if constexpr (std::is_same_v<type, double>) return x == 0.5 ? "0.25" : "0.5";
          else return fmt::format("{}", x < m.allowed.high ? x + 1 : x - 1);
        } else {
          return fmt::format("{}", d.ranks.*m + 1);
        }
      },
      f.member);
}

struct place_case {
  engine_place place;
  std::string scenario, pointer;
};
const std::vector<place_case> place_cases = {
    {engine_place::stack, "llama2-70b-offline-gb300-rack", "/stack/inference/settings"},
    {engine_place::engine, "llama2-70b-offline-gb300-rack", "/workload/engine"},
    {engine_place::layout, "llama2-70b-offline-gb300-rack", "/workload/layout"},
    {engine_place::prefill_pool, "deepseek-r1-gb300-prefill-decode", "/workload/layout/prefill"},
    {engine_place::decode_pool, "deepseek-r1-gb300-prefill-decode", "/workload/layout/decode"}};

described load(const place_case& c, const std::vector<override_option>& sets) {
  const scenario s =
      load_scenario(source / "scenarios/inference" / (c.scenario + ".json"), sets, folders_under(source));
  const auto& all = std::get<inference_workload>(s.workload);
  const inference_workload w = c.place == engine_place::prefill_pool ? prefill_workload(all) : all;
  return {settings_of(*s.stack.inference, w), w};
}

std::vector<std::string> problems_of(const place_case& c, const std::vector<override_option>& sets) {
  std::vector<std::string> out;
  try {
    load(c, sets);
  } catch (const input_error& e) {
    for (const problem& p : e.problems()) out.push_back(p.text());
  }
  return out;
}

std::vector<std::string> names_of(const engine_field& f) {
  std::vector<std::string> out = {std::string(f.name)};
  for (const std::string_view a : f.aliases)
    if (!a.empty()) out.emplace_back(a);
  return out;
}

/// What other places and other names say of the field, taken back.
std::vector<override_option> silenced(const engine_field& f, const place_case& c) {
  std::vector<override_option> out;
  const bool elsewhere = c.place == engine_place::stack || c.place == engine_place::engine;
  const std::string engine = "/workload/engine", layout = "/workload/layout";
  std::vector<std::string> objects = {c.pointer};
  if (elsewhere) objects.insert(objects.end(), {engine, layout});
  for (const std::string& object : objects)
    for (const std::string& n : names_of(f)) out.push_back({object + '/' + n, "null"});
  if (f.name == "kv_fraction" && c.place == engine_place::stack)
    out.push_back({"/stack/inference/kv_fraction", "null"});
  return out;
}

TEST_CASE("An engine setting acts by each of its names in each place, or is refused with the reason") {
  for (const place_case& c : place_cases) {
    const described before = load(c, {});
    for (const engine_field& f : engine_fields) {
      const field_value wanted = another(f, before);
      for (const std::string& name : names_of(f)) {
        INFO(name << " in " << engine_places[static_cast<std::size_t>(c.place)]);
        std::vector<override_option> sets = silenced(f, c);
        sets.push_back({c.pointer + '/' + name, wanted});
        if (const std::string_view why = f.refused_in(c.place); !why.empty()) {
          const auto problems = problems_of(c, sets);
          REQUIRE(problems.size() == 1);
          CHECK(problems[0].find(fmt::format("has no meaning in {}: {}",
                                             engine_places[static_cast<std::size_t>(c.place)], why)) !=
                std::string::npos);
          continue;
        }
        const described after = load(c, sets);
        for (const engine_field& other : engine_fields)
          CHECK(value_of(other, after) == (&other == &f ? wanted : value_of(other, before)));
      }
    }
  }
}

TEST_CASE("An engine setting under two of its names is a problem in each place") {
  for (const place_case& c : place_cases) {
    const described before = load(c, {});
    for (const engine_field& f : engine_fields) {
      const std::vector<std::string> names = names_of(f);
      if (names.size() == 1 || !f.refused_in(c.place).empty()) continue;
      INFO(f.name << " in " << engine_places[static_cast<std::size_t>(c.place)]);
      std::vector<override_option> sets = silenced(f, c);
      for (const std::string& n : names) sets.push_back({c.pointer + '/' + n, value_of(f, before)});
      CHECK(problems_of(c, sets).size() == names.size() - 1);
    }
  }
}

TEST_CASE("A pool goes before the engine, and the engine before the stack") {
  const place_case &prefill = place_cases[3], &decode = place_cases[4];
  std::vector<override_option> sets = {{"/stack/inference/settings/max_batch_size", "11"},
                                       {"/workload/engine/max_batch_size", "null"},
                                       {"/workload/layout/prefill/max_batch_size", "null"},
                                       {"/workload/layout/decode/max_batch_size", "null"}};
  CHECK(load(prefill, sets).settings.max_batch_size == 11);
  CHECK(load(decode, sets).settings.max_batch_size == 11);
  sets.push_back({"/workload/engine/max_num_seqs", "22"});
  sets.push_back({"/workload/engine/pp", "2"});
  CHECK(load(prefill, sets).settings.max_batch_size == 22);
  CHECK(load(decode, sets).settings.max_batch_size == 22);
  CHECK(load(decode, sets).ranks.pp == 2);
  sets.push_back({"/workload/layout/decode/max_running_requests", "33"});
  sets.push_back({"/workload/layout/decode/pipeline_parallel_size", "4"});
  CHECK(load(prefill, sets).settings.max_batch_size == 22);
  CHECK(load(prefill, sets).ranks.pp == 2);
  CHECK(load(decode, sets).settings.max_batch_size == 33);
  CHECK(load(decode, sets).ranks.pp == 4);
}

TEST_CASE("An engine setting that everything below it replaces is refused") {
  const override_option engine{"/workload/engine/max_batch_size", "22"},
      pooled{"/workload/layout/prefill/max_batch_size", "11"},
      decoding{"/workload/layout/decode/max_num_seqs", "12"}, laid_out{"/workload/layout/max_num_seqs", "12"};
  const auto problems = [](int place, const std::vector<override_option>& sets) {
    const auto all = problems_of(place_cases[static_cast<std::size_t>(place)], sets);
    return all.empty() ? std::string() : all[0];
  };
  CHECK(problems(3, {engine, pooled, decoding}).find("max_batch_size: has no effect: each pool sets it") !=
        std::string::npos);
  CHECK(problems(2, {engine, laid_out}).find("max_batch_size: has no effect: the layout sets it") !=
        std::string::npos);
  CHECK(load(place_cases[2], {laid_out}).settings.max_batch_size == 12);  // the file's own may be replaced
  const override_option no_decoding{"/workload/layout/decode/max_batch_size", "null"};
  CHECK(problems(3, {engine, pooled, no_decoding}) == "");
}

TEST_CASE("What an engine has beside its settings is refused in other places") {
  for (const place_case& c : place_cases) {
    if (c.place == engine_place::engine) continue;
    const auto problems = problems_of(c, {{c.pointer + "/quantization", "fp8"}});
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].find("/workload/engine") != std::string::npos);
  }
  const auto beside = problems_of(place_cases[4], {{"/workload/layout/tensor_parallel_size", "2"}});
  REQUIRE(beside.size() == 1);
  CHECK(beside[0].find("is a member of each pool, or of the engine for both") != std::string::npos);
}

TEST_CASE("A typing error is told the nearest engine setting that its place takes") {
  const auto in_pool = problems_of(place_cases[3], {{"/workload/layout/prefill/max_num_seq", "2"}});
  REQUIRE(in_pool.size() == 1);
  CHECK(in_pool[0].find("did you mean \"max_num_seqs\"") != std::string::npos);
  const auto refused = problems_of(place_cases[3], {{"/workload/layout/prefill/poll_intervall", "2"}});
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].find("poll_interval\"") == std::string::npos);
}

}  // namespace
}  // namespace nvlsim
