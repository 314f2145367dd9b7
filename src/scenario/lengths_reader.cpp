#include "scenario/lengths_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <tuple>

namespace nvlsim {
namespace {

constexpr config::range<std::int64_t> length_range{1, std::int64_t{1} << 30};
constexpr config::range<double> token_mean{1.0, double{1 << 30}};
const std::array<std::string, 3> length_shapes = {"uniform", "lognormal", "exponential"};

}  // namespace

token_lengths read_lengths(config::reader r) {
  token_lengths l;
  const auto min = r.find_integer("min", length_range), max = r.find_integer("max", length_range);
  if (min && max && *min > *max) r.fail("min", fmt::format("min {} exceeds max {}", *min, *max));
  if (min) l.min = *min;
  if (max) l.max = *max;
  if (min && max && !r.has("mean")) {
    l.mean = static_cast<double>(*min + *max) / 2;
    l.spread = static_cast<double>(*max - *min) / 2 / l.mean;
  } else {
    l.mean = r.number("mean", token_mean);
    for (const auto& [bound, limit, beyond] : {std::tuple{"min", min, -1}, std::tuple{"max", max, 1}})
      if (limit && beyond * (l.mean - static_cast<double>(*limit)) > 0)
        r.fail("mean",
               fmt::format("mean {:.6g} is {} {} {}", l.mean, beyond > 0 ? "above" : "below", bound, *limit));
    l.shape = static_cast<length_shape>(r.one_of_or("distribution", length_shapes, 0));
    if (l.shape == length_shape::uniform) {
      l.spread = r.number_or("spread", 0, config::fraction);
      const auto says_more = [&](const std::optional<std::int64_t>& bound) {
        return bound && static_cast<double>(*bound) != l.mean;
      };
      if (l.spread == 0 && (says_more(min) || says_more(max)))
        r.fail(min ? "min" : "max",
               "equal lengths have no bounds: for lengths uniform between min and max leave out mean; otherwise "
               "give spread, or distribution lognormal or exponential");
    }
    if (l.shape == length_shape::lognormal) l.variation = r.number("variation", {0, 100});
  }
  r.done();
  return l;
}

value write_lengths(const token_lengths& l) {
  value out{value::object{{"mean", l.mean}, {"distribution", length_shapes[static_cast<std::size_t>(l.shape)]}}};
  if (l.shape == length_shape::uniform) out.set("spread", l.spread);
  if (l.shape == length_shape::lognormal) out.set("variation", l.variation);
  if (l.min > token_lengths{}.min) out.set("min", l.min);
  if (l.max < token_lengths{}.max) out.set("max", l.max);
  return out;
}

}  // namespace nvlsim
