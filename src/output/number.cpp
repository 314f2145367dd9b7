#include "nvlsim/output/number.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/units/units.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim::output {
namespace {

using formatter = std::string (*)(double);

/// Groups thousands ("1,100,948") from 1,000 on; below, four significant digits.
std::string grouped(double v) {
  if (!(std::abs(v) >= 1000) || std::abs(v) >= 1e15) return fmt::format("{:.4g}", v);
  std::string digits = fmt::format("{:.0f}", v);
  const std::size_t first = v < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

/// Tokens/s; in millions if large.
std::string token_rate(double v) {
  return std::abs(v) < 1e7 ? grouped(v) + " tok/s" : fmt::format("{:.4g} Mtok/s", v / 1e6);
}

template <class Quantity>
std::string si(double v) {
  return format_quantity(v, Quantity::dim_type::value);
}

/// SI seconds below two minutes, then minutes, hours and days.
std::string duration(double v) {
  const double a = std::abs(v);
  if (a < 120) return si<seconds>(v);
  if (a < 7200) return fmt::format("{:.4g} min", v / 60);
  if (a < 172800) return fmt::format("{:.4g} h", v / 3600);
  return fmt::format("{:.4g} days", v / 86400);
}

std::string percent(double v) { return fmt::format("{:.4g} %", v * 100); }

/// How numbers of a unit are written, and what is put after them.
struct unit_format {
  formatter text;
  std::string_view after;
};

const unit_format* format_of(metric_unit u) {
  static constexpr std::array<unit_format, 13> formats = {{{duration, ""},
                                                           {token_rate, ""},
                                                           {grouped, " req/s"},
                                                           {grouped, " TFLOP/s"},
                                                           {si<bandwidth>, ""},
                                                           {percent, ""},
                                                           {si<watts>, ""},
                                                           {si<joules>, ""},
                                                           {si<bytes>, ""},
                                                           {grouped, " USD"},
                                                           {grouped, " g"},
                                                           {grouped, " L"},
                                                           {nullptr, ""}}};
  const unit_format& f = formats[static_cast<std::size_t>(u)];
  return f.text ? &f : nullptr;
}

struct rule {
  std::string_view suffix;  ///< of the key, or the whole key
  unit_format format;
};

// Of keys that are no metric: the first suffix that matches decides, so "_per_s" stands before "_s".
constexpr std::array rules = {
    rule{"_per_s", {grouped, " /s"}},    rule{"fraction", {percent, ""}}, rule{"share", {percent, ""}},
    rule{"utilization", {percent, ""}},  rule{"bytes", {si<bytes>, ""}},  rule{"_Bps", {si<bandwidth>, ""}},
    rule{"_flops", {si<flop_rate>, ""}}, rule{"_usd", {grouped, " USD"}}, rule{"_usd_per_h", {grouped, " USD/h"}},
    rule{"_W", {si<watts>, ""}},         rule{"_J", {si<joules>, ""}},    rule{"_ms", {grouped, " ms"}},
    rule{"_s", {duration, ""}},
};

const unit_format* find_format(std::string_view key) {
  if (const metric* m = find_metric(key)) return format_of(m->unit);
  for (const rule& r : rules)
    if (key.ends_with(r.suffix)) return &r.format;
  return nullptr;
}

}  // namespace

void append_number(std::string& out, double d) {
  const std::size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("{:.12g}"), d == 0 ? 0.0 : d);  // no -0
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

std::string number_text(double d) {
  std::string out;
  append_number(out, d);
  return out;
}

bool as_double(const value& v, double& out) {
  if (const double* d = v.number()) out = *d;
  else if (const std::int64_t* i = v.integer()) out = static_cast<double>(*i);
  else return false;
  return true;
}

std::string scaled(std::string_view key, double v) {
  const unit_format* f = find_format(key);
  return f ? f->text(v) + std::string(f->after) : fmt::format("{:.6g}", v);
}

std::string scaled(std::string_view key, const value& v) {
  if (v.integer() && !find_format(key)) return fmt::format("{}", *v.integer());
  double d = 0;
  if (as_double(v, d)) return scaled(key, d);
  if (const std::string* s = v.string()) return valid_utf8(*s);
  if (const bool* b = v.boolean()) return *b ? "yes" : "no";
  return v.is_null() ? "-" : fmt::format("({})", v.type_name());
}

std::string counted(double v, std::string_view unit) {
  constexpr std::array<std::string_view, 7> prefixes = {"M", "G", "T", "P", "E", "Z", "Y"};
  if (!(std::abs(v) >= 1e7)) return unit.empty() ? grouped(v) : fmt::format("{} {}", grouped(v), unit);
  double scale = 1e6;
  std::size_t i = 0;
  for (; i + 1 < prefixes.size() && std::abs(v) >= 999.95 * scale; ++i) scale *= 1000;
  return fmt::format("{:.4g} {}{}", v / scale, prefixes[i], unit);
}

std::string percent_change(double fraction) {
  if (fraction == 0) return "0 %";
  return std::abs(fraction) < 10 ? fmt::format("{:+.2f} %", fraction * 100)
                                 : fmt::format("{:+.4g} %", fraction * 100);
}

}  // namespace nvlsim::output
