#include "nvlsim/stack/engine_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

template <class T>
if_said<T> find(config::reader& r, const config::key& k, const engine_setting<T>& s) {
  if (!r.has(k)) return std::nullopt;
  if constexpr (std::is_same_v<T, bool>) return r.boolean(k);
  else if constexpr (std::is_same_v<T, double>) return r.number(k, s.allowed);
  else if constexpr (std::is_enum_v<T>)
    return static_cast<T>(r.one_of(k, std::vector<std::string>(s.allowed.begin(), s.allowed.end())));
  else return r.integer(k, s.allowed);
}

int read_ranks(config::reader& r, const config::key& k, engine_place place, int otherwise) {
  if (place == engine_place::engine) return static_cast<int>(r.find_integer(k, rank_range).value_or(otherwise));
  return static_cast<int>(r.integer_or(k, otherwise, rank_range));
}

void refuse(config::reader& r, const config::key& k, const std::string& what) {
  const auto check = [&](std::string_view name) {
    // Known only where it is there, so that no typing error is taken for it.
    const std::vector<std::string> given = r.names();
    if (std::find(given.begin(), given.end(), name) != given.end() && r.raw(name)) r.fail(name, what);
  };
  check(k.canonical);
  for (const std::string_view a : k.aliases) check(a);
}

/// What a scenario says of an engine and its server that is no setting.
void refuse_formats(config::reader& r) {
  static const std::vector<config::key> members = {
      {"weights", {"quantization"}},    "attention_weights", "expert_weights",
      {"kv_cache", {"kv_cache_dtype"}}, "speculative",       "front_end",
      {"adapters", {"lora"}},           "state_cache"};
  for (const config::key& k : members) refuse(r, k, "is a member of a scenario's /workload/engine alone");
}

}  // namespace

engine_settings::engine_settings() {
  for (const engine_field& f : engine_fields)
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.otherwise; }) this->*m.value = m.otherwise;
        },
        f.member);
}

std::string_view engine_field::refused_in(engine_place p) const {
  if (p == engine_place::stack) return refused.stack;
  if (p == engine_place::prefill_pool) return refused.prefill_pool;
  if (p == engine_place::decode_pool) return refused.decode_pool;
  return {};
}

config::key engine_field::names() const {
  config::key out(name);
  for (const std::string_view a : aliases)
    if (!a.empty()) out.aliases.push_back(a);
  return out;
}

const engine_field& engine_field_named(std::string_view name) {
  const auto at = std::find_if(engine_fields.begin(), engine_fields.end(),
                               [&](const engine_field& f) { return f.name == name; });
  if (at == engine_fields.end()) throw internal_error(fmt::format("no engine setting is called {}", name));
  return *at;
}

engine_said read_engine(config::reader& r, engine_place place, const rank_counts& ranks) {
  engine_said out{{}, ranks};
  for (const engine_field& f : engine_fields) {
    const config::key k = f.names();
    if (const std::string_view why = f.refused_in(place); !why.empty()) {
      refuse(r, k, fmt::format("has no meaning in {}: {}", engine_places[static_cast<std::size_t>(place)], why));
      continue;
    }
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.said; }) out.settings.*m.said = find(r, k, m);
          else out.ranks.*m = read_ranks(r, k, place, ranks.*m);
        },
        f.member);
  }
  if (place != engine_place::engine) refuse_formats(r);
  return out;
}

engine_overrides merged(const engine_overrides& below, const engine_overrides& above) {
  engine_overrides out = below;
  for (const engine_field& f : engine_fields)
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.said; })
            if (above.*m.said) out.*m.said = above.*m.said;
        },
        f.member);
  return out;
}

engine_settings merged(const engine_settings& below, const engine_overrides& above) {
  engine_settings out = below;
  for (const engine_field& f : engine_fields)
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.said; })
            if (above.*m.said) out.*m.value = *(above.*m.said);
        },
        f.member);
  return out;
}

namespace {

template <class T>
void write_one(value& out, std::string_view name, const in_force<T>& x, const engine_setting<T>& s) {
  if constexpr (std::is_enum_v<T>) out.set(name, s.allowed[static_cast<std::size_t>(x)]);
  else if constexpr (std::is_same_v<T, bool>) out.set(name, x);
  else out.set(name, x.peek());
}

}  // namespace

void write_setting(value& out, const engine_field& f, const engine_members<in_force>& settings) {
  std::visit(
      [&](const auto& m) {
        if constexpr (requires { m.value; }) write_one(out, f.name, settings.*m.value, m);
      },
      f.member);
}

void write_setting(value& out, const engine_field& f, const engine_overrides& said) {
  std::visit(
      [&](const auto& m) {
        if constexpr (requires { m.said; })
          if (const auto& x = said.*m.said) write_one(out, f.name, *x, m);
      },
      f.member);
}

}  // namespace nvlsim
