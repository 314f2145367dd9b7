#include "nvlsim/operation/machine.hpp"

#include <catch2/catch.hpp>

namespace nvlsim {
namespace {

/// 4 racks of 18 trays; a job on 16 trays of 3 of them.
machine_state four_racks() { return whole_machine({4, 18, 4, 2}, {48, 16}); }

TEST_CASE("A broken tray is replaced by a spare of its rack") {
  machine_state m = four_racks();
  break_trays(m, {3, 1});
  CHECK(m.hurt == std::vector<std::int32_t>{3});
  CHECK(move_hurt(m) == 1);
  CHECK(m.hurt.empty());
  CHECK(m.tray_of[3] == 16);
  CHECK(m.slot_of[3] == -1);
  CHECK(m.free_racks == std::vector<std::int32_t>{3});
}

TEST_CASE("A rack that has too few trays moves to a free one as a whole") {
  machine_state m = four_racks();
  break_trays(m, {18, 3});
  CHECK(move_hurt(m) > 0);
  CHECK(m.hurt.empty());
  CHECK(m.job_rack_on[3] == 1);
  CHECK(m.free_racks == std::vector<std::int32_t>{1});
  break_trays(m, {0, 18});
  CHECK(move_hurt(m) == 0);  // the free rack has 15 trays up
  CHECK(m.hurt.size() == 16);
  mend_trays(m, {18, 1});
  CHECK(move_hurt(m) == 16);
  CHECK(m.hurt.empty());
}

TEST_CASE("A tray that waits for two repairs is back after the second") {
  machine_state m = four_racks();
  break_trays(m, {5, 1});
  break_trays(m, {0, 18});
  CHECK(m.broken == 18);
  mend_trays(m, {0, 18});
  CHECK(m.broken == 1);
  CHECK(m.hurt == std::vector<std::int32_t>{5});
  mend_trays(m, {5, 1});
  CHECK(m.hurt.empty());
}

TEST_CASE("A repair of what is up changes nothing") {
  machine_state m = four_racks();
  break_trays(m, {3, 1});
  mend_trays(m, {0, 18});
  mend_trays(m, {0, 18});
  CHECK(m.broken == 0);
  CHECK(m.causes == std::vector<std::uint16_t>(m.causes.size(), 0));
}

TEST_CASE("A job can leave trays if all its slots on them find others") {
  const machine_state m = four_racks();
  const auto can_leave = [&](const tray_range& r) {
    machine_state trial = m;
    return leaves(trial, r);
  };
  CHECK(uses(m, {0, 1}));
  CHECK_FALSE(uses(m, {17, 1}));
  CHECK(can_leave({0, 1}));
  CHECK(can_leave({0, 2}));
  CHECK(can_leave({0, 18}));        // to the free rack
  CHECK_FALSE(can_leave({0, 36}));  // two racks to one
}

TEST_CASE("Replicas take the trays of a job in order") {
  const machine_state m = four_racks();
  CHECK(replicas_of(m, 0, 12).first == 0);
  CHECK(replicas_of(m, 3, 12).last == 0);
  CHECK(replicas_of(m, 4, 12).first == 1);
  CHECK(replicas_of(m, 47, 12).last == 11);
  CHECK(replicas_of(m, 1, 96).first == 2);  // two replicas on a tray
  CHECK(replicas_of(m, 1, 96).last == 3);
  CHECK(replicas_of(m, 0, 32).last == 0);  // a tray and a half each: the second tray has two
  CHECK(replicas_of(m, 1, 32).first == 0);
  CHECK(replicas_of(m, 1, 32).last == 1);
}

}  // namespace
}  // namespace nvlsim
