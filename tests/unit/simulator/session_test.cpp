#include "simulator/session.hpp"

#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"

using namespace nvlsim;

TEST_CASE("Session sees a setting that changed") {
  simulator::session s;
  CHECK(simulator::wrong_settings().empty());
  simulator::compat::sg4::Engine::set_config("network/crosstraffic", true);
  CHECK(simulator::wrong_settings() == std::vector<std::string>{"network/crosstraffic=true"});
  simulator::compat::sg4::Engine::set_config("network/crosstraffic", false);
  CHECK(simulator::wrong_settings().empty());
}

TEST_CASE("Session refuses a second engine at a time") {
  simulator::session s;
  REQUIRE_THROWS_AS(simulator::session(), internal_error);
}

TEST_CASE("Session leaves Ctrl-C to the program") {
  std::signal(SIGINT, SIG_IGN);
  simulator::session s;
  CHECK(std::signal(SIGINT, SIG_DFL) == SIG_IGN);
}
