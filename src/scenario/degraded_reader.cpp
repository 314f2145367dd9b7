#include "scenario/degraded_reader.hpp"

#include <fmt/format.h>

#include <charconv>

namespace nvlsim {
namespace {

constexpr config::range<double> share{1e-6, 1.0};

/// "17", "0-127" or "3,5,8-9"; nothing when it is none of them.
std::optional<std::vector<degradation::range>> parse_ranges(std::string_view text) {
  std::vector<degradation::range> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::int64_t& n) {
    const auto [stop, status] = std::from_chars(at, end, n);
    at = stop;
    return status == std::errc() && n >= 0;
  };
  for (;;) {
    degradation::range r;
    if (!number(r.first)) return std::nullopt;
    r.last = r.first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(r.last) || r.last < r.first) return std::nullopt;
    }
    out.push_back(r);
    if (at == end) return out;
    if (*at++ != ',') return std::nullopt;
  }
}

std::vector<degradation::range> read_ranges(config::reader& r, const char* key, std::int64_t count,
                                            const char* what) {
  const value* v = r.raw(key);
  if (!v) return {};
  const std::string text = v->integer()  ? std::to_string(*v->integer())
                           : v->string() ? *v->string()
                                         : std::string();
  const auto ranges = parse_ranges(text);
  if (!ranges) {
    r.fail(key, "expected a number, or text such as \"0-127\" or \"3,5,8-9\"");
    return {};
  }
  for (const degradation::range& x : *ranges)
    if (x.last >= count) r.fail(key, fmt::format("there is no {} {}: the platform has {}", what, x.last, count));
  return *ranges;
}

degradation read_one(config::reader& r, const platform& p) {
  degradation d;
  d.gpus = read_ranges(r, "gpus", p.gpus(), "GPU");
  d.racks = read_ranges(r, "racks", p.racks, "rack");
  if (r.has("gpus") == r.has("racks")) r.fail("", "say which GPUs by \"gpus\" or by \"racks\"");
  d.health.speed = r.number_or("speed", 1, share);
  d.health.nvlink = r.number_or("nvlink_share", 1, share);
  d.health.nic = r.number_or("nic_share", 1, share);
  const std::int64_t trays = p.rack.nvlink_switch_trays;
  const std::int64_t lost = r.integer_or("failed_switch_trays", 0, {0, std::max<std::int64_t>(0, trays - 1)});
  if (lost > 0) d.health.nvlink *= static_cast<double>(trays - lost) / static_cast<double>(trays);
  if (lost > 0 && r.has("gpus")) r.fail("failed_switch_trays", "a switch tray belongs to a rack; use \"racks\"");
  if (d.health == hardware_health{})
    r.fail("", "says nothing: give speed, nvlink_share, nic_share or failed_switch_trays");
  r.done();
  return d;
}

}  // namespace

std::vector<degradation> read_degraded(config::reader& r, const platform& p) {
  std::vector<degradation> out;
  if (!r.has("degraded")) return out;
  for (config::reader one : r.elements("degraded")) out.push_back(read_one(one, p));
  return out;
}

}  // namespace nvlsim
