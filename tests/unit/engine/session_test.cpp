#include "engine/session.hpp"

#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"

using namespace nvlsim;

TEST_CASE("Session sees a setting that changed") {
  engine::session s;
  CHECK(engine::wrong_settings().empty());
  engine::compat::sg4::Engine::set_config("network/crosstraffic", true);
  CHECK(engine::wrong_settings() == std::vector<std::string>{"network/crosstraffic=true"});
  engine::compat::sg4::Engine::set_config("network/crosstraffic", false);
  CHECK(engine::wrong_settings().empty());
}

TEST_CASE("Session refuses a second engine at a time") {
  engine::session s;
  REQUIRE_THROWS_AS(engine::session(), internal_error);
}

TEST_CASE("Session leaves Ctrl-C to the program") {
  std::signal(SIGINT, SIG_IGN);
  engine::session s;
  CHECK(std::signal(SIGINT, SIG_DFL) == SIG_IGN);
}
