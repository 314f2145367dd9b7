#include "simulator/session.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>
#include <xbt/config.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::simulator {
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

std::unique_ptr<compat::sg4::Engine> start_simgrid() {
  if (compat::sg4::Engine::is_initialized())
    throw internal_error("a simulation engine already exists in this process");
  std::vector<std::string> text = arguments();
  std::vector<char*> argv;
  for (std::string& a : text) argv.push_back(a.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);

  // SimGrid takes SIGINT for itself. One that comes meanwhile waits for our handler.
  sigset_t interrupt, masked;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &masked);
  struct sigaction on_interrupt {};
  sigaction(SIGINT, nullptr, &on_interrupt);
  auto simgrid = std::make_unique<compat::sg4::Engine>(&argc, argv.data());
  sigaction(SIGINT, &on_interrupt, nullptr);
  pthread_sigmask(SIG_SETMASK, &masked, nullptr);
  return simgrid;
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

// Each stack beside a guard page takes two memory mappings, and Linux allows 65,530. More actors have stacks
// without guards, which lie side by side in one mapping. Mapped afresh, not taken from the heap, they cost the
// pages that an actor touches.
void session::expect_actors(std::size_t count) {
  constexpr std::size_t max_guarded = 20'000;
  constexpr double touched = 16e3;  // bytes: 13.5 kB measured, and the objects of an actor
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (static_cast<double>(count) * touched > memory / 2)
    throw input_error(
        {{"",
          "",
          fmt::format("the simulation needs {} actors, and their stacks {:.3g} GB; the machine has {:.3g} "
                      "GB; fold equal ranks",
                      count, static_cast<double>(count) * touched / 1e9, memory / 1e9),
          {}}});
  if (count <= max_guarded) return;
  simgrid::config::set_value<int>("contexts/guard-size", 0);
  constexpr int above = 128 * 1024;  // glibc's threshold, which would otherwise rise with what is freed
  ::mallopt(M_MMAP_THRESHOLD, above);
  ::mallopt(M_MMAP_MAX, std::numeric_limits<int>::max());
}

session::session() : simgrid_(start_simgrid()), start_(compat::sg4::Engine::get_clock()) {
  simgrid::config::set_value<int>("contexts/guard-size", 1);  // an earlier session may have done without
  const std::vector<std::string> wrong = wrong_settings();
  if (!wrong.empty()) throw internal_error(fmt::format("SimGrid settings are wrong: {}", fmt::join(wrong, ", ")));
}

session::~session() = default;

bool session::sleep_until(double date) const {
  const double left = date - now();
  if (left < resolution()) return false;
  compat::sg4::this_actor::sleep_for(left);
  return true;
}

double session::resolution() const {
  const double clock = compat::sg4::Engine::get_clock();
  return std::max(clock_resolution_s, 4 * (std::nextafter(clock, HUGE_VAL) - clock));
}

double session::tolerance() const {
  return 2 * clock_resolution_s + 1e-15 * compat::sg4::Engine::get_clock();  // a few units in the last place
}

}  // namespace nvlsim::simulator
