#include "nvlsim/facility/capping.hpp"

#include <catch2/catch.hpp>

namespace nvlsim {
namespace {

watts power_of(double x) { return watts::from_base(x); }

/// Draws 200 W more than its cap with the share of the rack, and slows by a half at half of its 1,000 W.
power_asker asker(double gpus, int tier) {
  return {gpus,
          tier,
          {{power_of(500), power_of(700), 0.5},
           {power_of(750), power_of(950), 0.8},
           {power_of(1000), power_of(1200), 1}}};
}

TEST_CASE("A budget that holds all caps none, whatever the policy") {
  const auto policy =
      GENERATE(capping_policy::rack, capping_policy::uniform, capping_policy::priority, capping_policy::admission);
  const power_shares s =
      share_power(policy, {asker(10, 0), asker(20, 1)}, {power_of(36000), power_of(1200), power_of(300)});
  CHECK(s.fits);
  CHECK(s.speed == Approx(1));
  CHECK(s.drawn.base() == Approx(36000));
}

TEST_CASE("Each policy keeps the budget and gives its own jobs the power") {
  const std::vector<power_asker> jobs = {asker(10, 0), asker(20, 1)};
  // 28.5 kW for 30 GPUs is 950 W for each: 750 W caps.
  const shared_budget b{power_of(28500), power_of(900), power_of(300)};
  const power_shares alike = share_power(capping_policy::uniform, jobs, b);
  CHECK(alike.jobs[0].cap.base() == Approx(750));
  CHECK(alike.jobs[1].cap.base() == Approx(750));
  CHECK(alike.speed == Approx(0.8));
  // The first tier keeps 24 kW of its 24 and leaves 4.5: below the lowest draw of the other, 7 kW. It gives way
  // to 21.5 kW, 1,075 W for a GPU.
  const power_shares first = share_power(capping_policy::priority, jobs, b);
  CHECK(first.fits);
  CHECK(first.jobs[0].speed == Approx(0.5));
  CHECK(first.jobs[1].drawn.base() == Approx(1075));
  CHECK(first.jobs[1].speed == Approx(0.9));
  // Racks of their own have 900 W a GPU each, of which nobody has more.
  const power_shares racks = share_power(capping_policy::rack, jobs, b);
  for (const power_share& x : racks.jobs) CHECK(x.drawn.base() == Approx(900));
  // Without caps the lower tier does not run: its GPUs idle at 300 W.
  const power_shares admitted = share_power(capping_policy::admission, jobs, b);
  CHECK_FALSE(admitted.jobs[0].runs);
  CHECK(admitted.jobs[1].speed == Approx(1));
  CHECK(admitted.drawn.base() == Approx(24000 + 3000));
  CHECK(admitted.speed == Approx(20.0 / 30));
  for (const power_shares* s : {&alike, &first, &racks, &admitted}) {
    CHECK(s->fits);
    CHECK(s->drawn.base() <= 28500 * (1 + 1e-8));
  }
}

TEST_CASE("A budget below the lowest caps is not kept, and says so; admission runs what fits") {
  const std::vector<power_asker> jobs = {asker(10, 0), asker(20, 1)};
  const shared_budget b{power_of(15000), power_of(500), power_of(300)};
  for (const capping_policy p : {capping_policy::rack, capping_policy::uniform, capping_policy::priority}) {
    const power_shares s = share_power(p, jobs, b);
    CHECK_FALSE(s.fits);
    CHECK(s.speed == Approx(0.5));
  }
  const power_shares s = share_power(capping_policy::admission, jobs, b);
  CHECK_FALSE(s.fits == (s.drawn.base() > 15000 * (1 + 1e-8)));
  CHECK_FALSE(s.jobs[1].runs);  // 24 kW
}

}  // namespace
}  // namespace nvlsim
