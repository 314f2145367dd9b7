#include "scenario/degraded_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenario/ranges_reader.hpp"

namespace nvlsim {
namespace {

constexpr config::range<double> share{1e-6, 1.0};

degradation read_one(config::reader& r, const platform& p) {
  degradation d;
  d.gpus = read_ranges(r, "gpus", p.gpus(), "GPU");
  d.racks = read_ranges(r, "racks", p.racks, "rack");
  if (r.has("gpus") == r.has("racks")) r.fail("", "give either \"gpus\" or \"racks\"");
  d.health.speed = r.number_or("speed", 1, share);
  d.health.nvlink = r.number_or("nvlink_share", 1, share);
  d.health.nic = r.number_or("nic_share", 1, share);
  const std::int64_t trays = p.rack.nvlink_switch_trays;
  const std::int64_t lost = r.integer_or("failed_switch_trays", 0, {0, std::max<std::int64_t>(0, trays - 1)});
  if (lost > 0) d.health.nvlink *= static_cast<double>(trays - lost) / static_cast<double>(trays);
  if (lost > 0 && r.has("gpus")) r.fail("failed_switch_trays", "switch trays belong to racks; use \"racks\"");
  const auto says = [&](const char* member) { return r.has(member); };
  constexpr std::array members = {"speed", "nvlink_share", "nic_share", "failed_switch_trays"};
  if (std::none_of(members.begin(), members.end(), says))
    r.fail("", "has no effect; give speed, nvlink_share, nic_share or failed_switch_trays");
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

namespace {

std::string text_of(const std::vector<degradation::range>& ranges) {
  std::string out;
  for (const degradation::range& x : ranges)
    out += fmt::format("{}{}{}", out.empty() ? "" : ",", x.first,
                       x.last == x.first ? std::string() : fmt::format("-{}", x.last));
  return out;
}

}  // namespace

value write_degraded(const std::vector<degradation>& list) {
  value out{value::array{}};
  for (const degradation& d : list) {
    value one{value::object{}};
    if (!d.gpus.empty()) one.set("gpus", text_of(d.gpus));
    if (!d.racks.empty()) one.set("racks", text_of(d.racks));
    one.set("speed", d.health.speed);
    one.set("nvlink_share", d.health.nvlink);
    one.set("nic_share", d.health.nic);
    out.items()->push_back(std::move(one));
  }
  return out;
}

}  // namespace nvlsim
