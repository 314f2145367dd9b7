#include "scenario/placement_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenario/ranges_reader.hpp"

namespace nvlsim {
namespace {

enum class policy { segments, racks, rails, list };
const std::array<std::string, 4> policies = {"segments", "racks", "rails", "list"};

/// GPUs in rank order.
placement read_list(config::reader& r, const platform& p, std::int64_t gpus_per_domain) {
  placement place{gpus_per_domain};
  if (!r.has("gpus")) r.fail("gpus", "policy list needs the GPUs in rank order, such as \"0-63,72-135\"");
  std::vector<std::int64_t> gpus;
  for (const degradation::range& x : read_ranges(r, "gpus", p.gpus(), "GPU")) {
    if (x.last >= p.gpus()) return place;  // already reported
    for (std::int64_t g = x.first; g <= x.last; ++g) gpus.push_back(g);
    if (static_cast<std::int64_t>(gpus.size()) > p.gpus()) break;
  }
  std::vector<std::int64_t> sorted = gpus;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    r.fail("gpus", fmt::format("GPU {} is listed twice", *twice));
  else if (!gpus.empty()) place.table = std::make_shared<const rank_table>(std::move(gpus), p.gpus_per_rack());
  return place;
}

}  // namespace

placement read_placement(config::reader& r, const platform& p, std::int64_t ranks, std::int64_t together,
                         std::int64_t usual) {
  placement place{usual};
  std::optional<config::reader> s = r.find_child("placement");
  if (!s) return place;
  const auto how = static_cast<policy>(s->one_of_or("policy", policies, 0));
  const std::int64_t domain = std::max(1, p.gpus_per_rack());
  if (how == policy::segments || how == policy::rails)
    place.gpus_per_domain = s->integer_or("gpus_per_rack", usual, config::positive_int);
  else if (s->has("gpus_per_rack")) {
    s->ignore("gpus_per_rack");
    s->fail("gpus_per_rack", fmt::format("has no effect with policy {}", policies[static_cast<std::size_t>(how)]));
  }
  if (how == policy::racks) place.gpus_per_domain = domain;
  if (how == policy::rails) {
    const std::int64_t each = std::min(place.gpus_per_domain, domain);
    const std::int64_t block = s->integer_or("ranks_per_turn", std::min(together, each), config::positive_int);
    if (block > each)
      s->fail("ranks_per_turn", fmt::format("{} ranks do not fit in the {} GPUs used per rack", block, each));
    else if (ranks <= p.gpus()) place = placed_by_rail(ranks, block, each, p);
  }
  if (how == policy::list) place = read_list(*s, p, domain);
  s->done();
  return place;
}

}  // namespace nvlsim
