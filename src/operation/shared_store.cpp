#include "nvlsim/operation/shared_store.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nvlsim/units/max_min.hpp"

namespace nvlsim {
namespace {

/// A writer under way.
struct copying {
  double left = 0;   ///< bytes; 0: it waits for its next copy
  double begin = 0;  ///< of this copy, or of the next
  double rate = 0;
  double sum = 0;  ///< of times of copies
  int copies = 0;
};

/// The rates of those that write.
void share(std::vector<copying>& all, const std::vector<store_writer>& writers, double together) {
  std::vector<double> most;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].left > 0) most.push_back(writers[i].max_rate.base());
  const std::vector<double> rates = max_min_shares(most, together);
  auto rate = rates.begin();
  for (copying& c : all)
    if (c.left > 0) c.rate = *rate++;
}

}  // namespace

std::vector<seconds> copy_times_together(const std::vector<store_writer>& writers, bandwidth together) {
  constexpr int copies_each = 400, copies_between_stops = 4;  // a stop shifts a writer against the others
  constexpr double golden = 0.6180339887498949;               // phases that spread evenly, however many
  std::vector<copying> all(writers.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].begin = std::fmod(golden * static_cast<double>(i), 1) * writers[i].cycle.base();
  double now = 0;
  const auto few = [](const copying& c) { return c.copies < copies_each; };
  while (std::any_of(all.begin(), all.end(), few)) {
    share(all, writers, together.base());
    double next = std::numeric_limits<double>::infinity();
    for (const copying& c : all)
      next = std::min(next, c.left > 0 ? now + c.left / c.rate : std::max(now, c.begin));
    for (std::size_t i = 0; i < all.size(); ++i) {
      copying& c = all[i];
      if (c.left > 0) {
        const double end = now + c.left / c.rate;
        c.left -= c.rate * (next - now);
        if (end > next * (1 + 1e-12)) continue;  // what is left is rounding
        c.left = 0;
        c.sum += next - c.begin;
        ++c.copies;
        c.begin = std::max(next, c.begin + writers[i].cycle.base());
        if (c.copies % copies_between_stops == 0)
          c.begin += std::fmod(golden * static_cast<double>((i + 1) * static_cast<std::size_t>(c.copies)), 1) *
                     writers[i].cycle.base();
      } else if (c.begin <= next) {
        c.begin = next;
        c.left = writers[i].state.base();
      }
    }
    now = next;
  }
  std::vector<seconds> out;
  for (const copying& c : all) out.push_back(seconds::from_base(c.sum / c.copies));
  return out;
}

}  // namespace nvlsim
