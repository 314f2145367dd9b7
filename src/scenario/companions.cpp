#include "scenario/companions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

struct companion {
  std::string_view leader, follower;
  std::optional<dimension> of;  ///< nothing: counts
};
constexpr std::array<companion, 3> companions = {
    {{"/gpu/hbm_bandwidth", "/gpu/hbm_stream", bandwidth::dim_type::value},
     {"/gpu/hbm_nominal", "/gpu/hbm_usable", bytes::dim_type::value},
     {"/rack/vms", "/rack/nvlink_switch_trays", std::nullopt}}};

/// The positive amount of a member, which may be an object with its source.
std::optional<double> amount_of(const value* v, std::optional<dimension> of) {
  if (v && v->members()) v = v->find("value");
  if (v && !of && v->integer() && *v->integer() > 0) return static_cast<double>(*v->integer());
  const std::string* text = v ? v->string() : nullptr;
  if (!text || !of) return std::nullopt;
  const parsed_quantity q = parse_quantity(*text, *of);
  return q.ok() && q.base > 0 ? std::optional(q.base) : std::nullopt;
}

/// What the follower becomes. A GPU has a link to each plane however few GPUs there are, so that switch trays only
/// become more.
value scaled(double follows, double factor, std::optional<dimension> of) {
  if (of) return exact_quantity(follows * factor, *of);
  return static_cast<std::int64_t>(std::ceil(follows * std::max(factor, 1.0) - 1e-9));
}

/// The last override of a member.
const override_at* last_of(const std::vector<override_at>& sets, std::string_view pointer) {
  const auto it = std::find_if(sets.rbegin(), sets.rend(), [&](const auto& o) { return o.pointer == pointer; });
  return it == sets.rend() ? nullptr : &*it;
}

}  // namespace

std::vector<override_at> with_companions(const config::document& doc, const std::vector<override_at>& sets) {
  std::vector<override_at> out = sets;
  for (const companion& c : companions) {
    const override_at* leader = last_of(sets, c.leader);
    if (!leader || last_of(sets, c.follower)) continue;
    const auto before = amount_of(doc.root.at_pointer(c.leader), c.of), after = amount_of(&leader->v, c.of),
               follows = amount_of(doc.root.at_pointer(c.follower), c.of);
    if (!before || !after || !follows) continue;  // the reader reports what is wrong
    out.push_back({std::string(c.follower),
                   scaled(*follows, *after / *before, c.of),
                   {fmt::format("{}, with {}", leader->by.label, c.leader), leader->by.where, true},
                   leader->written_at});
  }
  return out;
}

}  // namespace nvlsim
