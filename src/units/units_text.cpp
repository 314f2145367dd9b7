#include "nvlsim/units/units_text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace nvlsim {
namespace {

struct unit {
  std::string_view symbol;
  dimension dims;
  double factor;  // to base units
  bool prefixed;  // takes SI prefixes
};

constexpr dimension of_bytes{1, 0};
constexpr dimension of_seconds{0, 1};

// Longest symbol first where one ends with another.
constexpr std::array units = {
    unit{"FLOPS", flop_rate::dim_type::value, 1, true},
    unit{"FLOP", flops::dim_type::value, 1, true},
    unit{"OPS", flop_rate::dim_type::value, 1, true},
    unit{"exp", dimension{}, 1, true},
    unit{"min", of_seconds, 60, false},
    unit{"day", of_seconds, 86400, false},
    unit{"d", of_seconds, 86400, false},
    unit{"tokens", token_count::dim_type::value, 1, true},
    unit{"USD", dollars::dim_type::value, 1, false},
    unit{"Wh", joules::dim_type::value, 3600, true},
    unit{"B", of_bytes, 1, true},
    unit{"b", of_bytes, 0.125, true},
    unit{"s", of_seconds, 1, true},
    unit{"h", of_seconds, 3600, false},
    unit{"W", watts::dim_type::value, 1, true},
    unit{"J", joules::dim_type::value, 1, true},
};

struct prefix {
  std::string_view symbol;
  double factor;
};
constexpr std::array prefixes = {
    prefix{"", 1},        prefix{"k", 1e3},     prefix{"M", 1e6},     prefix{"G", 1e9},
    prefix{"T", 1e12},    prefix{"P", 1e15},    prefix{"E", 1e18},    prefix{"m", 1e-3},
    prefix{"u", 1e-6},    prefix{"n", 1e-9},    prefix{"p", 1e-12},   prefix{"Ki", 0x1p10},
    prefix{"Mi", 0x1p20}, prefix{"Gi", 0x1p30}, prefix{"Ti", 0x1p40}, prefix{"Pi", 0x1p50},
};

struct scale {
  dimension dims;
  double factor;
};

std::optional<scale> simple_unit(std::string_view text) {
  for (const unit& u : units) {
    if (!text.ends_with(u.symbol)) continue;
    const std::string_view head = text.substr(0, text.size() - u.symbol.size());
    for (const prefix& p : prefixes) {
      if (head != p.symbol) continue;
      const bool binary = p.symbol.ends_with('i');
      const bool small = p.factor < 1;
      if (!p.symbol.empty() && !u.prefixed) continue;
      if ((binary && u.dims != of_bytes) || (small && u.dims == of_bytes)) continue;
      return scale{u.dims, p.factor * u.factor};
    }
  }
  return std::nullopt;
}

std::optional<scale> compound_unit(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto over = simple_unit(text.substr(0, slash));
  if (!over || slash == std::string_view::npos) return over;
  const auto under = simple_unit(text.substr(slash + 1));
  if (!under) return std::nullopt;
  const dimension a = over->dims, b = under->dims;
  return scale{
      {a.byte - b.byte, a.second - b.second, a.flop - b.flop, a.joule - b.joule, a.token - b.token, a.usd - b.usd},
      over->factor / under->factor};
}

struct shown {
  dimension dims;
  std::string_view noun;
  std::string_view example;
  std::string_view symbol;
};
constexpr std::array shown_units = {
    shown{bytes::dim_type::value, "a size", "288 GB", "B"},
    shown{seconds::dim_type::value, "a time", "2.5 us", "s"},
    shown{bandwidth::dim_type::value, "a bandwidth", "900 GB/s", "B/s"},
    shown{flops::dim_type::value, "an amount of work", "2 TFLOP", "FLOP"},
    shown{flop_rate::dim_type::value, "a compute rate", "15 PFLOPS", "FLOPS"},
    shown{joules::dim_type::value, "an energy", "3 kWh", "J"},
    shown{watts::dim_type::value, "a power", "1.4 kW", "W"},
    shown{dollars::dim_type::value, "a price", "98.32 USD", "USD"},
    shown{dollar_rate::dim_type::value, "a price per time", "27.04 USD/h", "USD/s"},
    shown{rate::dim_type::value, "a rate of exponentials", "10.7 Texp/s", "exp/s"},
    shown{energy_per_byte::dim_type::value, "an energy per byte", "125 pJ/B", "J/B"},
    shown{energy_per_flop::dim_type::value, "an energy per operation", "0.53 pJ/FLOP", "J/FLOP"},
    shown{token_count::dim_type::value, "a number of tokens", "15 Ttokens", "tokens"},
    shown{token_rate::dim_type::value, "a token rate", "2.5 ktokens/s", "tokens/s"},
};

const shown* find_shown(dimension d) {
  for (const shown& s : shown_units)
    if (s.dims == d) return &s;
  return nullptr;
}

}  // namespace

std::string describe(dimension d) {
  const shown* s = find_shown(d);
  if (!s) return "a quantity";
  return fmt::format("{} such as \"{}\"", s->noun, s->example);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  if (text.size() <= longest) return fmt::format("\"{}\"", text);
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return fmt::format("\"{}...\"", text.substr(0, end));
}

parsed_quantity parse_quantity(std::string_view text, dimension wanted) {
  const auto fail = [](std::string why) { return parsed_quantity{0, std::move(why)}; };
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc::result_out_of_range) return fail(fmt::format("{} is out of range", in_quotes(text)));
  if (status != std::errc() || !std::isfinite(number))
    return fail(fmt::format("expected {}, found {}", describe(wanted), in_quotes(text)));
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.empty()) return fail(fmt::format("{} has no unit; expected {}", in_quotes(text), describe(wanted)));
  const auto unit = compound_unit(rest);
  if (!unit) return fail(fmt::format("unknown unit {}; expected {}", in_quotes(rest), describe(wanted)));
  if (unit->dims != wanted) {
    const shown* found = find_shown(unit->dims);
    return fail(fmt::format("{} is {}; expected {}", in_quotes(text), found ? found->noun : "another quantity",
                            describe(wanted)));
  }
  const double base = number * unit->factor;
  if (!std::isfinite(base)) return fail(fmt::format("{} is out of range", in_quotes(text)));
  return {base, {}};
}

std::string short_quantity(std::string_view text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const auto unit = status == std::errc() ? compound_unit(rest) : std::nullopt;
  if (!unit) return std::string(text);
  if (std::abs(number) >= 1 && std::abs(number) < 9999.5) return fmt::format("{:.4g} {}", number, rest);
  return format_quantity(number * unit->factor, unit->dims);
}

std::string exact_quantity(double base, dimension d) {
  const shown* s = find_shown(d);
  const std::string_view symbol = s ? s->symbol : std::string_view();
  std::string best = fmt::format("{} {}", base, symbol);
  const auto offer = [&](double factor, std::string_view unit) {
    std::string text = fmt::format("{} {}", base / factor, unit);
    const parsed_quantity back = parse_quantity(text, d);
    if (back.ok() && back.base == base && text.size() < best.size()) best = std::move(text);
  };
  if (d == dollar_rate::dim_type::value) offer(1.0 / 3600, "USD/h");
  for (const prefix& p : prefixes)
    if (!p.symbol.ends_with('i') && d != dollars::dim_type::value && d != dollar_rate::dim_type::value)
      offer(p.factor, fmt::format("{}{}", p.symbol, symbol));
  return best;
}

std::string format_quantity(double base, dimension d) {
  static constexpr std::array<std::pair<double, std::string_view>, 11> steps = {{{1e18, "E"},
                                                                                 {1e15, "P"},
                                                                                 {1e12, "T"},
                                                                                 {1e9, "G"},
                                                                                 {1e6, "M"},
                                                                                 {1e3, "k"},
                                                                                 {1, ""},
                                                                                 {1e-3, "m"},
                                                                                 {1e-6, "u"},
                                                                                 {1e-9, "n"},
                                                                                 {1e-12, "p"}}};
  const shown* s = find_shown(d);
  if (!s) return fmt::format("{:.4g}", base);
  if (d == dollar_rate::dim_type::value) return fmt::format("{:.4g} USD/h", base * 3600);
  if (base == 0) return fmt::format("0 {}", s->symbol);
  if (d == dollars::dim_type::value || !std::isfinite(base)) return fmt::format("{:.4g} {}", base, s->symbol);
  const double smallest = d.second > 0 || d.joule > 0 ? 1e-12 : 1.0;
  for (const auto& [factor, letter] : steps)
    if (std::abs(base) >= factor * 0.99995 || factor == smallest)
      return fmt::format("{:.4g} {}{}", base / factor, letter, s->symbol);
  return fmt::format("{:.4g} {}", base, s->symbol);
}

}  // namespace nvlsim
