#include "nvlsim/run/plausibility.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim {
namespace {

constexpr double longest_s = 100 * 365.25 * 86400;

/// Why a metric cannot have the value; empty if it can.
std::string_view impossible(const metric& m, double x) {
  if (m.name == "mfu" && x > 1)
    return "cannot be above 1: the stack's kernels are faster than the platform's peaks";
  if (m.unit != metric_unit::second) return {};
  if (x < 0) return "cannot be below zero";
  if (x > longest_s) return "implausible: more than a hundred years";
  return {};
}

/// The first number of a metric that cannot be, with the reason.
std::string note_of(const metric& m, const value& v) {
  const auto note = [&](const value& number, std::string_view of) -> std::string {
    const double* x = number.number();
    const std::string_view why = x ? impossible(m, *x) : std::string_view();
    return why.empty() ? std::string() : fmt::format("{}{} is {:.4g} and {}", m.name, of, *x, why);
  };
  if (!v.members()) return note(v, "");
  for (const auto& [statistic, x] : *v.members())
    if (std::string found = note(x, "." + statistic); !found.empty()) return found;
  return {};
}

/// Removes the bands of a metric and of its statistics ("ttft_s.mean").
void drop_bands(value& bands, std::string_view metric) {
  if (!bands.members()) return;
  std::erase_if(*bands.members(), [&](const value::member& b) {
    return b.first.starts_with(metric) && (b.first.size() == metric.size() || b.first[metric.size()] == '.');
  });
}

}  // namespace

void mark_impossible(result& r) {
  if (!r.metrics.members()) return;
  std::vector<std::string> notes;
  for (const auto& [name, v] : *r.metrics.members())
    if (const metric* m = find_metric(name))
      if (std::string note = note_of(*m, v); !note.empty()) {
        notes.push_back(std::move(note));
        drop_bands(r.bands, name);
      }
  r.notes.insert(r.notes.begin(), notes.begin(), notes.end());
}

}  // namespace nvlsim
