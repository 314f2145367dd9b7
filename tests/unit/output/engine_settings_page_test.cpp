// What the table of engine settings makes of the page on scenarios and of the schemas.
#include "nvlsim/stack/engine_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/output.hpp"

namespace nvlsim::settings_page {

const std::filesystem::path source{NVLSIM_SOURCE_DIR};

std::string default_of(const engine_field& f) {
  return std::visit(
      [](const auto& m) -> std::string {
        if constexpr (requires { m.value; }) {
          if constexpr (std::is_enum_v<std::decay_t<decltype(m.otherwise)>>)
            return std::string(m.allowed[static_cast<std::size_t>(m.otherwise)]);
          else return fmt::format("{}", m.otherwise);
        } else {
          return fmt::format("{}", rank_counts{}.*m);
        }
      },
      f.member);
}

std::vector<std::string> names_of(const engine_field& f) {
  std::vector<std::string> out = {std::string(f.name)};
  for (const std::string_view a : f.aliases)
    if (!a.empty()) out.emplace_back(a);
  return out;
}

std::string power(std::int64_t x) {
  for (int i = 20; i < 63; ++i)
    if (x == std::int64_t{1} << i) return fmt::format("2^{}", i);
  return fmt::format("{}", x);
}

std::string type_text(const engine_field& f) {
  const auto range = [](const auto& r) {
    if (static_cast<double>(r.high) > 1e12) return fmt::format("{} or more", r.low);
    if constexpr (std::is_same_v<std::decay_t<decltype(r.low)>, double>)
      return fmt::format("{} to {}", r.low, r.high);
    else return fmt::format("{} to {}", r.low, power(r.high));
  };
  return std::visit(
      [&](const auto& m) -> std::string {
        if constexpr (requires { m.allowed.low; }) return range(m.allowed);
        else if constexpr (requires { m.allowed.size(); })
          return fmt::format("`{}`", fmt::join(m.allowed, "`, `"));
        else if constexpr (requires { m.value; }) return "true, false";
        else return range(rank_range);
      },
      f.member);
}

std::string default_text(const engine_field& f) {
  const std::string x = default_of(f);
  const bool number = x.find_first_not_of("0123456789") == std::string::npos;
  if (number) return power(std::stoll(x));
  return x == "false" || x.find('.') != std::string::npos ? x : '`' + x + '`';
}

std::string row_of(const engine_field& f) {
  std::vector<std::string> aliases = names_of(f), not_in;
  aliases.erase(aliases.begin());
  for (const auto place : {engine_place::stack, engine_place::prefill_pool, engine_place::decode_pool})
    if (!f.refused_in(place).empty())
      not_in.emplace_back(place == engine_place::stack ? "stacks"
                                                       : engine_places[static_cast<std::size_t>(place)].substr(2));
  return fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", f.name,
                     aliases.empty() ? "" : fmt::format("`{}`", fmt::join(aliases, "`, `")), type_text(f),
                     default_text(f), fmt::join(not_in, ", "), f.meaning);
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Compares a file with what the table makes of it. With NVLSIM_APPROVE=1 it is written instead.
void check_file(const std::filesystem::path& file, const std::string& before, const std::string& after) {
  if (std::getenv("NVLSIM_APPROVE") && before != after) std::ofstream(file) << after;
  else {
    INFO(file.filename().string() << " is not what the table of engine settings says; "
                                  << "NVLSIM_APPROVE=1 ctest --preset ci -R \"engine settings\" renews it");
    CHECK((before == after));
  }
}

TEST_CASE("The page on scenarios lists the engine settings as the table has them") {
  const std::string head =
      "| member | also accepted | type | default | not in | meaning |\n|---|---|---|---|---|---|\n";
  std::string table = head;
  for (const engine_field& f : engine_fields) table += row_of(f);
  const std::filesystem::path file = source / "docs/scenario-format.md";
  const std::string before = text_of(file);
  const std::size_t from = before.find(head), to = before.find("\n\n", from);
  REQUIRE(to != std::string::npos);
  check_file(file, before, before.substr(0, from) + table + before.substr(to + 1));
}

value& schema_at(value& root, const std::string& pointer) {
  value* at = &root;
  for (const std::string& token : split_pointer(pointer)) {
    INFO(pointer);
    at = at->items() ? &at->items()->at(std::stoul(token)) : at->find(token);
    REQUIRE(at);
  }
  return *at;
}

value number_schema(const char* type, double low, double high) {
  const auto whole = [](double x) { return value{static_cast<std::int64_t>(x)}; };
  value out{value::object{{"type", type}, {"minimum", whole(low)}}};
  if (high <= 1e12) out.set("maximum", whole(high));
  return out;
}

value type_schema(const engine_field& f) {
  return std::visit(
      [](const auto& m) -> value {
        if constexpr (requires { m.allowed.low; }) {
          const char* type = std::is_same_v<std::decay_t<decltype(m.otherwise)>, double> ? "number" : "integer";
          return number_schema(type, static_cast<double>(m.allowed.low), static_cast<double>(m.allowed.high));
        } else if constexpr (requires { m.allowed.size(); }) {
          value names{value::array{}};
          for (const std::string_view n : m.allowed) names.items()->push_back(value{n});
          return value{value::object{{"enum", std::move(names)}}};
        } else if constexpr (requires { m.value; }) {
          return value{value::object{{"type", "boolean"}}};
        } else {
          return number_schema("integer", static_cast<double>(rank_range.low),
                               static_cast<double>(rank_range.high));
        }
      },
      f.member);
}

const value null_schema{value::object{{"type", "null"}}};

/// One name alone says a setting.
value not_both(const std::string& a, const std::string& b) {
  const value said{value::object{{"not", null_schema}}};
  value both{value::object{{"required", value::array{a, b}}}};
  both.set("properties", value::object{{a, said}, {b, said}});
  return value{value::object{{"not", std::move(both)}}};
}

TEST_CASE("The schemas have the engine settings as the table has them") {
  diagnostics problems;
  const std::filesystem::path file = source / "docs/schemas/scenario.schema.json",
                              stacks_file = source / "docs/schemas/stack.schema.json";
  value scenarios = config::load(file, {}, problems).root, stacks = config::load(stacks_file, {}, problems).root;
  REQUIRE(problems.empty());
  const value scenarios_before = scenarios, stacks_before = stacks;
  value members{value::object{}}, prefill{value::object{}}, decode{value::object{}};
  value in_stacks{value::array{"kind", "source"}}, once{value::array{}};
  for (const engine_field& f : engine_fields) {
    const std::vector<std::string> names = names_of(f);
    for (const std::string& n : names) {
      const std::string about = n == f.name ? std::string(f.meaning) : fmt::format("`{}`", f.name);
      members.set(n, value::object{{"description", about}, {"anyOf", value::array{type_schema(f), null_schema}}});
      if (f.refused.stack.empty()) in_stacks.items()->push_back(value{n});
      if (!f.refused.prefill_pool.empty()) prefill.set(n, null_schema);
      if (!f.refused.decode_pool.empty()) decode.set(n, null_schema);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      for (std::size_t k = i + 1; k < names.size(); ++k) once.items()->push_back(not_both(names[i], names[k]));
  }
  schema_at(scenarios, "/$defs/settings/properties") = members;
  schema_at(scenarios, "/$defs/settings/allOf") = once;
  schema_at(scenarios, "/$defs/prefill_pool/properties") = prefill;
  schema_at(scenarios, "/$defs/decode_pool/properties") = decode;
  schema_at(stacks, "/$defs/engine/properties/settings/anyOf/0/allOf/1/propertyNames/enum") = in_stacks;
  check_file(file, to_json(scenarios_before), to_json(scenarios));
  check_file(stacks_file, to_json(stacks_before), to_json(stacks));
}

}  // namespace nvlsim::settings_page
