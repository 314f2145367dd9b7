#include "engine/session.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <xbt/config.hpp>

#include <variant>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::engine {
namespace {

struct setting {
  const char* name;
  std::variant<bool, int, double, std::string> wanted;
};

// Bandwidth and latency exactly as specified. SimGrid's defaults model TCP over Ethernet, and would be wrong by 3
// to 8 % in bandwidth and by a factor of 13 in latency. [docs/models-and-assumptions.md#engine]
const std::vector<setting>& settings() {
  static const std::vector<setting> all{
      {"network/model", std::string("CM02")},
      {"network/crosstraffic", false},
      {"network/TCP-gamma", 1e30},
      {"network/optim", std::string("Lazy")},
      {"cpu/optim", std::string("Lazy")},
      {compat::timing_precision, clock_resolution_s},
      {compat::work_precision, 1e-5},
      {"contexts/factory", std::string("raw")},
      {"contexts/stack-size", 256},
      {"contexts/guard-size", 1},
  };
  return all;
}

std::vector<std::string> arguments() {
  // Silences SimGrid's report of deadlocks, because ours is more detailed.
  std::vector<std::string> out{"nvlsim", "--log=root.threshold:critical", "--log=ker_engine.app:file:/dev/null"};
  for (const setting& s : settings()) {
    out.push_back(std::visit([&](const auto& v) { return fmt::format("--cfg={}:{}", s.name, v); }, s.wanted));
  }
  return out;
}

std::unique_ptr<compat::sg4::Engine> start_engine() {
  if (compat::sg4::Engine::is_initialized())
    throw internal_error("a simulation engine already exists in this process");
  std::vector<std::string> text = arguments();
  std::vector<char*> argv;
  for (std::string& a : text) argv.push_back(a.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);

  struct sigaction on_interrupt {};
  sigaction(SIGINT, nullptr, &on_interrupt);
  auto engine = std::make_unique<compat::sg4::Engine>(&argc, argv.data());
  sigaction(SIGINT, &on_interrupt, nullptr);
  return engine;
}

}  // namespace

std::vector<std::string> wrong_settings() {
  std::vector<std::string> wrong;
  for (const setting& s : settings()) {
    std::visit(
        [&]<class T>(const T& wanted) {
          const T& actual = simgrid::config::get_value<T>(s.name);
          if (actual != wanted) wrong.push_back(fmt::format("{}={}", s.name, actual));
        },
        s.wanted);
  }
  return wrong;
}

session::session() : engine_(start_engine()), start_(compat::sg4::Engine::get_clock()) {
  const std::vector<std::string> wrong = wrong_settings();
  if (!wrong.empty()) throw internal_error(fmt::format("SimGrid settings are wrong: {}", fmt::join(wrong, ", ")));
}

session::~session() = default;

bool session::sleep_until(double date) const {
  const double left = date - now();
  if (left < clock_resolution_s) return false;
  compat::sg4::this_actor::sleep_for(left);
  return true;
}

double session::tolerance() const {
  return 2 * clock_resolution_s + 1e-15 * compat::sg4::Engine::get_clock();  // a few units in the last place
}

}  // namespace nvlsim::engine
