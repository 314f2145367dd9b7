// Reads a sweep file and its axes. [docs/sweeps.md]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <set>
#include <span>

#include "nvlsim/config/document.hpp"
#include "nvlsim/config/reader.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/sweep/sweep.hpp"
#include "nvlsim/units/random.hpp"

namespace nvlsim {
namespace {

using axis = std::vector<point_settings>;
using config::reader;

const std::array<std::string, 7> axis_kinds = {"grid", "list", "zip", "range", "log_range", "random", "platforms"};

void check_pointer(const reader& r, std::string_view at, std::string_view pointer) {
  if (!pointer.starts_with("/"))
    r.fail(at, fmt::format("\"{}\" is not a JSON pointer such as /workload/tp", pointer));
}

/// Reads an object whose keys are pointers and whose values are arrays.
std::vector<std::pair<std::string, value::array>> value_lists(reader& r) {
  std::vector<std::pair<std::string, value::array>> out;
  for (const std::string& pointer : r.names()) {
    const value* v = r.raw(pointer);
    check_pointer(r, pointer, pointer);
    if (v && v->items() && !v->items()->empty()) out.emplace_back(pointer, *v->items());
    else r.fail(pointer, "expected an array of values");
  }
  return out;
}

axis product(const axis& a, const axis& b) {
  axis out;
  out.reserve(a.size() * b.size());
  for (const point_settings& x : a)
    for (const point_settings& y : b) {
      point_settings both = x;
      both.insert(both.end(), y.begin(), y.end());
      out.push_back(std::move(both));
    }
  return out;
}

bool too_many(const reader& r, std::size_t a, std::size_t b) {
  if (static_cast<double>(a) * static_cast<double>(b) <= static_cast<double>(max_points)) return false;
  r.fail("", fmt::format("more than {} points", max_points));
  return true;
}

axis read_grid(reader r) {
  axis out(1);
  for (const auto& [pointer, values] : value_lists(r)) {
    axis one;
    for (const value& v : values) one.push_back({{pointer, v}});
    if (too_many(r, out.size(), one.size())) break;
    out = product(out, one);
  }
  return out;
}

axis read_zip(reader r) {
  const auto lists = value_lists(r);
  axis out;
  for (const auto& [pointer, values] : lists) {
    if (out.empty()) out.resize(values.size());
    if (values.size() != out.size()) {
      r.fail(pointer,
             fmt::format("{} values, but there are {} of \"{}\"", values.size(), out.size(), lists.front().first));
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i) out[i].emplace_back(pointer, values[i]);
  }
  return out;
}

/// Reads a value. Null, which removes a member, is read as null.
value given(reader& r, const std::string& pointer) {
  const value* v = r.raw(pointer);
  return v ? *v : value{};
}

axis read_list(reader& parent) {
  axis out;
  for (reader r : parent.elements("list")) {
    point_settings p;
    for (const std::string& pointer : r.names()) {
      check_pointer(r, pointer, pointer);
      p.emplace_back(pointer, given(r, pointer));
    }
    out.push_back(std::move(p));
  }
  return out;
}

/// A number with or without a unit: "100 Gb/s".
struct amount {
  double number = 0;
  std::string unit;
};

amount read_amount(reader& r, const char* key) {
  amount a;
  const value* v = r.raw(key);
  if (!v) r.fail(key, "missing");
  else if (output::as_double(*v, a.number)) return a;
  else if (const std::string* s = v->string()) {
    const auto [end, status] = std::from_chars(s->data(), s->data() + s->size(), a.number);
    a.unit.assign(end, s->data() + s->size());
    if (status == std::errc()) return a;
  }
  if (v) r.fail(key, "expected a number, with or without a unit (\"100 Gb/s\")");
  return a;
}

value value_of(double x, const std::string& unit, bool integer) {
  if (!unit.empty()) return fmt::format("{:.12g}{}", x, unit);
  if (integer) return static_cast<std::int64_t>(std::llround(x));
  return x;
}

axis read_range(reader r, bool logarithmic) {
  const std::string pointer = r.string("pointer");
  check_pointer(r, "pointer", pointer);
  const amount from = read_amount(r, "from"), to = read_amount(r, "to");
  const std::int64_t count = r.integer("count", {2, max_points});
  const bool integer = r.boolean_or("integer", false);
  constexpr double max = 1e15;  // larger whole numbers are not exact
  for (const auto& [key, x] : {std::pair{"from", from.number}, {"to", to.number}})
    if (!(std::abs(x) <= max)) r.fail(key, fmt::format("expected a number from {:g} to {:g}", -max, max));
  if (from.unit != to.unit)
    r.fail("to", fmt::format("unit \"{}\" differs from the unit of from, \"{}\"", to.unit, from.unit));
  if (logarithmic && !(from.number > 0 && to.number > 0))
    r.fail("from", "a logarithmic range needs positive numbers");
  r.done();
  axis out;
  for (std::int64_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(count - 1);
    const double x = logarithmic ? from.number * std::pow(to.number / from.number, t)
                                 : from.number + (to.number - from.number) * t;
    value v = value_of(i + 1 == count ? to.number : x, from.unit, integer);
    if (out.empty() || !(out.back().front().second == v)) out.push_back({{pointer, std::move(v)}});
  }
  return out;
}

struct random_setting {
  std::string pointer;
  value::array choices;
  amount low, high;
  bool logarithmic = false, integer = false;

  value one(std::mt19937_64& g) const {
    const double t = uniform(g);
    if (!choices.empty()) return choices[static_cast<std::size_t>(t * static_cast<double>(choices.size()))];
    const double x = logarithmic ? low.number * std::pow(high.number / low.number, t)
                                 : low.number + (high.number - low.number) * t;
    return value_of(x, low.unit, integer);
  }
};

random_setting read_random_setting(const std::string& pointer, reader r) {
  random_setting d;
  d.pointer = pointer;
  check_pointer(r, "", pointer);
  if (const value* choice = r.raw("choice")) {
    if (choice->items() && !choice->items()->empty()) d.choices = *choice->items();
    else r.fail("choice", "expected an array of values");
  } else {
    d.low = read_amount(r, "from");
    d.high = read_amount(r, "to");
    d.logarithmic = r.boolean_or("logarithmic", false);
    d.integer = r.boolean_or("integer", false);
    if (d.low.unit != d.high.unit) r.fail("to", "the unit differs from the unit of from");
    if (d.logarithmic && !(d.low.number > 0 && d.high.number > 0))
      r.fail("from", "\"from\" and \"to\" must be positive with \"logarithmic\": true");
  }
  r.done();
  return d;
}

axis read_random(reader r) {
  const std::int64_t count = r.integer("count", {1, max_points});
  std::mt19937_64 g(static_cast<std::uint64_t>(r.integer_or("seed", 1, config::non_negative_int)));
  std::vector<random_setting> settings;
  for (auto& [pointer, d] : r.children("draw")) settings.push_back(read_random_setting(pointer, d));
  r.done();
  axis out(static_cast<std::size_t>(count));
  for (point_settings& p : out)
    for (const random_setting& d : settings) p.emplace_back(d.pointer, d.one(g));
  return out;
}

/// A name replaces the platform's name; an object replaces the scenario's whole platform.
axis read_platforms(reader& parent) {
  axis out;
  const value* v = parent.raw("platforms");
  if (!v->items() || v->items()->empty()) {
    parent.fail("platforms", "expected an array of platform names or objects");
    return out;
  }
  for (const value& p : *v->items()) {
    if (p.string()) out.push_back({{"/platform/use", p}});
    else if (p.members()) out.push_back({{"/platform", p}});
    else parent.fail("platforms", fmt::format("expected a platform name or an object, found {}", p.type_name()));
  }
  return out;
}

axis read_axis(reader& r) {
  const std::vector<std::string> names = r.names();
  const bool known =
      names.size() == 1 && std::find(axis_kinds.begin(), axis_kinds.end(), names.front()) != axis_kinds.end();
  if (!known) {
    for (const std::string& n : names) r.ignore(n);
    r.fail("", fmt::format("an axis must have exactly one member: {}", fmt::join(axis_kinds, ", ")),
           names.size() == 1 ? nearest(names.front(), axis_kinds) : "");
    return {};
  }
  const std::string& kind = names.front();
  if (kind == "grid") return read_grid(r.child("grid"));
  if (kind == "list") return read_list(r);
  if (kind == "zip") return read_zip(r.child("zip"));
  if (kind == "range") return read_range(r.child("range"), false);
  if (kind == "log_range") return read_range(r.child("log_range"), true);
  if (kind == "random") return read_random(r.child("random"));
  return read_platforms(r);
}

/// Rejects axes that set the same value: one would hide the other.
void check_axes(const reader& r, std::span<const axis> axes) {
  std::set<std::string> seen;
  for (const axis& a : axes) {
    std::set<std::string> own;
    for (const point_settings& p : a)
      for (const auto& [pointer, v] : p) own.insert(pointer);
    for (const std::string& pointer : own)
      if (!seen.insert(pointer).second) r.fail("axes", fmt::format("two axes set \"{}\"", pointer));
  }
}

}  // namespace

sweep load_sweep(const std::filesystem::path& file) {
  diagnostics problems;
  config::document doc = config::load(file, {"sweep", file.string()}, problems);
  problems.throw_if_any();
  reader r(doc, problems);
  static const std::array<std::string, 1> schemas = {"nvlsim.sweep/1"};
  r.one_of("schema", schemas);
  sweep s;
  s.name = r.string_or("name", file.stem().string());
  r.ignore("description");
  s.scenario = r.string("scenario");
  if (s.scenario.find('/') != std::string::npos || s.scenario.ends_with(".json"))
    s.scenario = (file.parent_path() / s.scenario).lexically_normal().string();
  point_settings all;
  if (std::optional<reader> set = r.find_child("set"))
    for (const std::string& pointer : set->names()) {
      check_pointer(*set, pointer, pointer);
      all.emplace_back(pointer, given(*set, pointer));
    }
  std::vector<axis> axes = {{all}};
  s.points = axes.front();
  for (reader a : r.elements("axes")) {
    axes.push_back(read_axis(a));
    a.done();
    if (axes.back().empty() || too_many(a, s.points.size(), axes.back().size())) continue;
    s.points = product(s.points, axes.back());
  }
  r.done();
  if (axes.size() == 1 && r.has("axes")) r.fail("axes", "a sweep needs at least one axis");
  check_axes(r, std::span(axes).subspan(1));
  problems.throw_if_any();
  return s;
}

}  // namespace nvlsim
