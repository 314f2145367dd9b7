#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>

#include "nvlsim/measurements/validate.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;

TEST_CASE("Published goodput comes out of the inputs that were published with it") {
  std::map<std::string, validation_record> found;
  for (validation_record& r :
       validate_table(root / "tests/measurements/goodput.csv", folders_under(root), nullptr))
    found.emplace(r.id, std::move(r));
  REQUIRE(found.size() == 50);
  const std::pair<const char*, double> exact[] = {
      {"G02", 0.005},       {"G08", 0.025},     {"G09", 0.06}, {"G14", 0.002}, {"G15", 0.001}, {"G16-stop", 0.001},
      {"G16-delay", 0.001}, {"G06-5min", 0.01}, {"G31", 0.02}, {"G07", 0.04},  {"G21", 0.1}};
  for (const auto& [id, within] : exact) {
    INFO(id);
    REQUIRE(found.at(id).status == record_status::ok);
    CHECK(std::abs(*found.at(id).error()) < within);
  }
  for (const char* bound : {"G01", "G05-2048", "G05-4096", "G10", "G12", "G17"}) {
    INFO(bound);
    CHECK(*found.at(bound).simulated >= *found.at(bound).published);
    CHECK(found.at(bound).notes.find("kept") != std::string::npos);
  }
  // Another simulator's times of jobs whose replicas hold each other's shards.
  for (const char* peer : {"G35", "G36", "G37"})
    for (const char* kind : {"-replication", "-stacked"}) {
      INFO(peer << kind);
      CHECK(std::abs(*found.at(fmt::format("{}{}-time", peer, kind)).error()) < 0.15);
      CHECK(std::abs(*found.at(fmt::format("{}{}-up", peer, kind)).error()) < 0.05);
    }
  for (const char* trap : {"G04", "G33", "G18"}) {
    CHECK(found.at(trap).status == record_status::excluded);
    CHECK_FALSE(found.at(trap).reason.empty());
  }
}

}  // namespace
}  // namespace nvlsim
