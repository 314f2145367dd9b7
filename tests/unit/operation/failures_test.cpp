#include "nvlsim/operation/failures.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "unit/operation/setups.hpp"

namespace nvlsim {
namespace {

using namespace test;

TEST_CASE("Rates of components add up to the stops that are asked for") {
  const cluster_shape s{64, 18, 4, 8};
  failure_model m;
  component shelf = stopper("shelf", cluster_part::rack, 100 * day, hour);
  shelf.of = cluster_part::rack;
  shelf.each = 8;
  shelf.tolerated = 4;  // does not stop a job by itself
  m.components = {stopper("gpu", cluster_part::tray, 4000 * day, hour), shelf};
  CHECK(failures_per_day(m.components[0], s, 4096) == Approx(4608 / 4000.0));
  CHECK(failures_per_day(m.components[1], s, 4096) == Approx(64 * 8 / 100.0));
  CHECK(stops_per_1000_gpu_days(m.components, s) == Approx(0.25));
  m.stops_per_1000_gpu_days = 0.5;
  const failure_model twice = scaled(m, s);
  CHECK(twice.components[0].mtbf.base() == Approx(2000 * day));
  CHECK(twice.components[1].mtbf.base() == Approx(50 * day));
}

TEST_CASE("New parts fail more often at first") {
  failure_model m;
  CHECK(early_rate(m, secs(0)) == 1);
  m.early_factor = 5;
  m.early_period = secs(10 * day);
  CHECK(early_rate(m, secs(0)) == Approx(5));
  CHECK(early_rate(m, secs(100 * day)) == Approx(1).margin(1e-3));
}

operation_setup only(const component& c) {
  operation_setup s = plain_setup(8, 8, 16);
  s.failures.components = {c};
  return s;
}

double failures_of(const operation_setup& s, int seeds = 20) {
  double out = 0;
  for (int i = 1; i <= seeds; ++i)
    out += static_cast<double>(run_by_queue(s, static_cast<std::uint64_t>(i)).failures) / seeds;
  return out;
}

TEST_CASE("Every distribution keeps its mean time between failures") {
  component c = stopper("program", cluster_part::process, 512 * 6 * hour, 0);
  for (const double shape : {0.7, 1.0, 2.0}) {
    c.shape = shape;
    INFO("shape " << shape);
    CHECK(failures_of(only(c)) == Approx(60 * 4).epsilon(0.05));
  }
  c.shape = 1;
  operation_setup early = only(c);
  early.failures.early_factor = 3;
  early.failures.early_period = secs(10 * day);
  // Two more a rate at first: 60 days and 2 x 10 (1 - e^-6) days of rates.
  CHECK(failures_of(early) == Approx(4 * (60 + 2 * 10 * (1 - std::exp(-6)))).epsilon(0.05));
}

TEST_CASE("Parts that are off do not fail, and redundancy hides single losses") {
  component shelf = stopper("shelf", cluster_part::rack, 30 * day, 2 * hour);
  shelf.of = cluster_part::rack;
  shelf.each = 8;
  shelf.tolerated = 4;
  const operation_outcome o = run_by_queue(only(shelf), 1);
  CHECK(o.failures > 80);
  CHECK(o.stops == 0);
  shelf.tolerated = 0;
  CHECK(run_by_queue(only(shelf), 1).stops > 50);
}

TEST_CASE("Lemons have their share of the failures, until they are replaced") {
  component c = stopper("tray", cluster_part::tray, 20 * day, hour);
  c.of = cluster_part::tray;
  operation_setup s = only(c);
  const double all = failures_of(s);
  s.failures.lemons = {0.02, 0.5, 0};
  CHECK(failures_of(s) == Approx(all).epsilon(0.06));
  s.failures.lemons.removed_after = 2;
  CHECK(failures_of(s) == Approx(all / 2).epsilon(0.1));
}

TEST_CASE("A leaf takes down the trays whose NICs it has, whatever racks they are in") {
  cluster_shape s{4, 18, 4, 2};
  component c = stopper("leaf", cluster_part::leaf, 100 * day, hour);
  c.of = cluster_part::leaf;
  CHECK(count_of(c, s, 0) == 4);  // a rack each, if nothing else is known
  CHECK(part_lost(cluster_part::leaf, s) == cluster_part::rack);
  s.trays_per_leaf = 27;
  s.rails = 4;
  CHECK(count_of(c, s, 0) == 12);
  CHECK(part_lost(cluster_part::leaf, s) == cluster_part::leaf);
  CHECK(trays_of(cluster_part::leaf, 30, s).first == 27);
  CHECK(trays_of(cluster_part::leaf, 30, s).count == 27);
  CHECK(trays_of(cluster_part::leaf, 71, s).first == 54);
  CHECK(trays_of(cluster_part::leaf, 71, s).count == 18);  // the last is not full
  s.trays_per_leaf = 9;
  CHECK(part_lost(cluster_part::leaf, s) == cluster_part::rack);
}

TEST_CASE(
    "A failing leaf stops the job, takes its trays to repair and leaves no copy in their neighbours' memory") {
  // The job is on two of four racks, whose trays share one leaf, so that spares are two racks on.
  operation_setup s = plain_setup(4, 2, 18);
  component leaf = stopper("leaf", cluster_part::leaf, 10 * day, hour);
  leaf.of = cluster_part::leaf;
  leaf.repair_is_fixed = true;
  s.failures.components = {leaf};
  s.save.pause = secs(1);
  save_tier neighbour = s.save.tiers.front();
  neighbour.to = save_place::neighbour;
  s.save.tiers.front().every = 10;
  s.save.tiers.insert(s.save.tiers.begin(), neighbour);
  const auto redone_a_stop = [&] {
    double redone = 0, stops = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const operation_outcome o = run_by_queue(s, seed);
      redone += spent(o, gpu_use::redone);
      stops += static_cast<double>(o.stops);
      CHECK(o.min_trays_up <= static_cast<double>(72 - std::max<std::int64_t>(18, s.cluster.trays_per_leaf)));
    }
    return redone / stops / 144;
  };
  const double of_a_rack = redone_a_stop();
  CHECK(of_a_rack == Approx(hour / 2).epsilon(0.2));
  s.cluster.trays_per_leaf = 36;
  CHECK(redone_a_stop() == Approx(5 * hour).epsilon(0.2));
}

TEST_CASE("A share of failures takes another tray of the rack, the leaf or the row") {
  const cluster_part part = GENERATE(cluster_part::rack, cluster_part::leaf, cluster_part::row);
  operation_setup s = plain_setup(8, 8, 16);
  s.cluster.racks_per_row = 4;
  s.cluster.trays_per_leaf = 36;
  s.failures.components = {stopper("tray", cluster_part::tray, 200 * day, 1e-3)};
  s.failures.components.front().of = cluster_part::tray;
  s.notes_racks = true;
  (part == cluster_part::rack   ? s.failures.together
   : part == cluster_part::leaf ? s.failures.together_leaf
                                : s.failures.together_row) = 1;
  const operation_outcome o = run_by_queue(s, 1);
  std::int64_t alike = 0, others = 0;
  std::map<double, std::vector<std::int32_t>> broken;
  for (const rack_stretch& x : o.racks.over)
    for (std::int32_t i = 0; i < x.broken; ++i) broken[x.begin].push_back(x.rack);
  for (const auto& [begin, racks] : broken) {
    if (racks.size() < 2) continue;
    ++(racks[0] == racks[1] ? alike : others);
    CHECK(trays_of(part, racks[0] * 18, s.cluster).first == trays_of(part, racks[1] * 18, s.cluster).first);
  }
  CHECK(alike > 0);
  CHECK((others > 0) == (part != cluster_part::rack));
}

}  // namespace
}  // namespace nvlsim
