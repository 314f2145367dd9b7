#include "simulator/executor.hpp"

#include <fmt/format.h>

#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::simulator {
namespace {

class closed_executor final : public executor {
 public:
  explicit closed_executor(const session& s) : session_(s) {}

  double run(const operation_template& w, endpoints, double begin) override {
    const double end = begin + w.duration.base();
    if (sleep_to_end(session_, w, end)) ++activities_;
    return end;
  }

 private:
  const session& session_;
};

}  // namespace

bool sleep_to_end(const session& s, const operation_template& w, double end) {
  // Sleeps until the end, not for the duration, so that rounding by the clock does not add up along a chain.
  // [docs/models-and-assumptions.md#engine]
  const bool slept = s.sleep_until(end);
  const double off = s.now() - end;
  if (!(std::abs(off) <= s.tolerance())) {
    throw internal_error(fmt::format("\"{}\" ended {} s off the clock of the simulation engine", w.name, off));
  }
  return slept;
}

std::unique_ptr<executor> make_closed_executor(const session& s) { return std::make_unique<closed_executor>(s); }

}  // namespace nvlsim::simulator
