#include <catch2/catch.hpp>
#include <vector>

#include "unit/operation/setups.hpp"

namespace nvlsim {
namespace {

using test::all_modes, test::day, test::spent;

operation_outcome noted(operation_setup s, std::uint64_t seed) {
  s.notes_racks = true;
  return run_by_queue(s, seed);
}

TEST_CASE("What racks do covers their time, and broken trays of all of it are those in repair") {
  for (const recovery_mode mode : all_modes) {
    const operation_setup s = test::eventful(mode);
    const operation_outcome with = noted(s, 3), without = run_by_queue(s, 3);
    CHECK(with.gpu_seconds == without.gpu_seconds);
    CHECK(without.racks.over.empty());
    CHECK(with.racks.left_out == 0);
    std::vector<double> until(10, 0);
    double broken = 0;
    for (const rack_stretch& x : with.racks.over) {
      CHECK(x.begin == until[static_cast<std::size_t>(x.rack)]);
      CHECK(x.end > x.begin);
      CHECK((x.broken > 0) == (x.component >= 0));
      CHECK((x.use == rack_use::down) == (x.broken == 18));
      CHECK(x.held + x.broken <= 18);
      if (x.held > 0) CHECK((x.use == rack_use::works || x.use == rack_use::lent));
      until[static_cast<std::size_t>(x.rack)] = x.end;
      broken += x.broken * (x.end - x.begin);
    }
    for (const double t : until) CHECK(t == s.duration.base());
    CHECK(broken * 4 == Approx(spent(with, gpu_use::repair) + spent(with, gpu_use::reclaimed)));
  }
}

TEST_CASE("A rack that fails lends the job to another, and its trace says which component did it") {
  operation_setup s = test::plain_setup(3, 1, 18);
  component rack = test::stopper("switch", cluster_part::rack, 20 * day, 6 * 3600);
  rack.of = cluster_part::rack;
  s.failures.components = {test::stopper("program", cluster_part::process, 1e6 * day, 0), rack};
  const operation_outcome o = noted(s, 1);
  int down = 0, lent = 0;
  for (const rack_stretch& x : o.racks.over) {
    down += x.use == rack_use::down;
    lent += x.use == rack_use::lent;
    if (x.use == rack_use::down) CHECK(x.component == 1);
    if (x.use == rack_use::lent) CHECK(x.rack != 0);
  }
  CHECK(down == o.failures);
  CHECK(lent > 0);
}

TEST_CASE("States of racks are bounded, and say so") {
  operation_setup s = test::plain_setup(4, 1, 10);
  s.failures.components = {test::stopper("tray", cluster_part::tray, 0.5 * day, 600)};
  const operation_outcome o = noted(s, 1);
  CHECK(o.racks.left_out > 0);
  CHECK(o.racks.over.size() <= max_rack_stretches + 4);
}

}  // namespace
}  // namespace nvlsim
