#include "engine/executor.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

#include "nvlsim/diagnostics.hpp"

namespace nvlsim::engine {
namespace {

/// Every operation sleeps for its closed time.
class closed_executor final : public executor {
 public:
  explicit closed_executor(const session& s) : session_(s) {}

  double run(const work_template& w, double begin) override {
    const double end = begin + w.duration.base();
    // Up to the end, not for the duration: what the clock lacks in resolution must not add up along a chain. Less
    // than the resolution is no sleep at all, since SimGrid would stretch it.
    // [docs/models-and-assumptions.md#engine]
    const double left = end - session_.now();
    if (left >= clock_resolution_s) {
      compat::sg4::this_actor::sleep_for(left);
      ++activities_;
    }
    check_clock(w, end);
    return end;
  }

 private:
  void check_clock(const work_template& w, double end) const {
    const double rounding = 1e-15 * compat::sg4::Engine::get_clock();  // a few units in the last place
    const double off = session_.now() - end;
    if (!(std::abs(off) <= 2 * clock_resolution_s + rounding)) {
      throw internal_error(fmt::format("\"{}\" ended {} s off the engine's clock", w.name, off));
    }
  }

  const session& session_;
};

}  // namespace

std::unique_ptr<executor> make_executor(fidelity f, const session& s) {
  if (f == fidelity::closed) return std::make_unique<closed_executor>(s);
  problem unavailable;
  unavailable.what = fmt::format("fidelity \"{}\" is not available yet; use closed",
                                 fidelity_names.at(static_cast<std::size_t>(f)));
  throw input_error({unavailable});
}

}  // namespace nvlsim::engine
