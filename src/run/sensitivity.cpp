// Sensitivity of a metric to the constants of its run. [docs/models-and-assumptions.md#sensitivity]
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/run/explain_scenario.hpp"
#include "nvlsim/run/run.hpp"

namespace nvlsim {
namespace {

constexpr double step = 0.1;                  // relative change of each constant
constexpr double lowest = 0.25, highest = 4;  // factors between which turning points are searched
constexpr int bisections = 12;
constexpr std::size_t most_turning_points = 5;
// A table key, not a quantity.
constexpr std::string_view generation = "/platform/gpu/nvlink_generation";
// Faster memory also streams faster, so both change together under the first name.
constexpr std::string_view memory_rate = "/platform/gpu/hbm_bandwidth", stream_rate = "/platform/gpu/hbm_stream";

/// Multiplies a number with a unit by `factor`. Empty if the text is not a number or is zero.
std::string scaled_text(const std::string& text, double factor) {
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc{} || x == 0) return {};
  return fmt::format("{:.17g}{}", x * factor, std::string_view(end, text.data() + text.size()));
}

struct outcome {
  double amount = 0;
  std::string bottleneck;
};

/// Runs a scenario. Returns the metric and the resource that takes most of its time.
std::optional<outcome> outcome_of(const scenario& s, const std::string& metric) {
  const run_record run = run_scenario(s, {.explained = true, .engine = false});
  if (run.outcome.status == run_status::infeasible) return std::nullopt;
  const explanation e = explain(s, run, metric);
  if (!e.amount) return std::nullopt;
  outcome out{*e.amount, {}};
  for (const cause_tree& t : e.trees)
    if (t.title == "by bound" && !t.whole.parts.empty()) out.bottleneck = t.whole.parts.front().name;
  return out;
}

class prober {
 public:
  prober(const explanation& e, const changed_scenario& change) : metric_(e.metric), change_(change) {
    for (const input_constant& c : e.constants)
      if (c.pointer == stream_rate) stream_ = c.text;
  }

  std::optional<outcome> at(const input_constant& c, double factor) const {
    std::vector<override_option> sets = {{c.pointer, scaled_text(c.text, factor)}};
    if (sets.front().text.empty()) return std::nullopt;
    if (c.pointer == memory_rate && !stream_.empty())
      sets.push_back({std::string(stream_rate), scaled_text(stream_, factor)});
    if (const auto found = with(sets)) return found;
    const bool count = c.text.find_first_not_of("0123456789") == std::string::npos;
    return count ? with({{c.pointer, fmt::format("{:.0f}", std::stod(c.text) * factor)}}) : std::nullopt;
  }

 private:
  /// Empty if the changed input is out of range.
  std::optional<outcome> with(const std::vector<override_option>& sets) const {
    try {
      return outcome_of(change_(sets), metric_);
    } catch (const input_error&) {
      return std::nullopt;
    }
  }

  std::string metric_, stream_;
  const changed_scenario& change_;
};

double effect(const sensitivity& s) {
  return std::max(std::abs(s.less.value_or(0)), std::abs(s.more.value_or(0)));
}

/// Finds the factor between `inside` and `outside` at which the bottleneck stops being `from`.
std::optional<turning_point> turning_point_of(const prober& p, const input_constant& c, const std::string& from,
                                              double outside) {
  const auto far = p.at(c, outside);
  if (!far || far->bottleneck.empty() || far->bottleneck == from) return std::nullopt;
  double same = 1, other = outside;
  std::string to = far->bottleneck;
  for (int i = 0; i < bisections; ++i) {
    const double middle = std::sqrt(same * other);
    const auto x = p.at(c, middle);
    if (!x) return std::nullopt;
    if (x->bottleneck == from) {
      same = middle;
    } else {
      other = middle;
      to = x->bottleneck;
    }
  }
  return turning_point{c, other, from, to};
}

std::string bottleneck_of(const explanation& e) {
  for (const cause_tree& t : e.trees)
    if (t.title == "by bound" && !t.whole.parts.empty()) return t.whole.parts.front().name;
  return {};
}

}  // namespace

void add_sensitivity(explanation& e, const changed_scenario& change,
                     const std::function<void(std::size_t, std::size_t)>& report) {
  if (!e.amount || *e.amount == 0) return;
  const prober p(e, change);
  const std::size_t all = e.constants.size();
  for (std::size_t i = 0; i < all; ++i) {
    report(i, all);
    if (e.constants[i].pointer == stream_rate || e.constants[i].pointer == generation) continue;
    sensitivity s{e.constants[i], {}, {}};
    if (const auto x = p.at(s.what, 1 - step)) s.less = x->amount / *e.amount - 1;
    if (const auto x = p.at(s.what, 1 + step)) s.more = x->amount / *e.amount - 1;
    if (effect(s) > 1e-6) e.sensitivities.push_back(std::move(s));
  }
  std::stable_sort(e.sensitivities.begin(), e.sensitivities.end(),
                   [](const auto& a, const auto& b) { return effect(a) > effect(b); });
  const std::string now = bottleneck_of(e);
  for (std::size_t i = 0; i < std::min(most_turning_points, e.sensitivities.size()) && !now.empty(); ++i)
    for (const double outside : {lowest, highest})
      if (auto t = turning_point_of(p, e.sensitivities[i].what, now, outside))
        e.turning_points.push_back(std::move(*t));
  report(all, all);
}

}  // namespace nvlsim
