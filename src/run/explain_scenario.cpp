#include "nvlsim/run/explain_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/run/serving_bands.hpp"
#include "nvlsim/run/step_bands.hpp"

namespace nvlsim {

std::vector<value::member> defaults_of(const scenario& s) {
  std::vector<value::member> out;
  const value* origins = s.inputs.find("origins");
  const value* text = s.inputs.find("scenario");
  if (!origins || !origins->members() || !text) return out;
  for (const auto& [pointer, label] : *origins->members())
    if (label.string() && *label.string() == "default")
      if (const value* v = text->at_pointer(pointer)) out.emplace_back(pointer, *v);
  return out;
}

namespace {

void add_band(explanation& e, const result& r) {
  const value* band = r.bands.find(e.metric);
  if (!band || !band->items() || band->items()->size() != 2) return;
  const double* low = band->items()->front().number();
  const double* high = band->items()->back().number();
  if (low && high) e.band = {*low, *high};
}

/// Says which GEMM formats have no rate measured on this GPU, in the scenario's stack and in those of its parts.
std::vector<std::string> unmeasured_formats(const scenario& s, const std::vector<input_constant>& used) {
  constexpr std::string_view table = "/stack/kernels/";
  std::vector<std::string> out;
  for (const input_constant& c : used) {
    const std::size_t at = c.pointer.find(table);
    if (at == std::string::npos) continue;
    const std::vector<std::string> tokens = split_pointer(c.pointer.substr(at));
    if (tokens.size() != 6 || tokens[3] != "gemm" || tokens[5] != "tensor_rate") continue;
    std::string gap;
    if (tokens[2] != s.platform.gpu.name)
      gap = fmt::format("no measurement of {} at {}: the rate comes from entry \"{}\"", s.platform.gpu.name,
                        tokens[4], tokens[2]);
    else if (c.kind == "assumed")
      gap = fmt::format("no measurement of {} at {}: the rate is assumed", s.platform.gpu.name, tokens[4]);
    if (!gap.empty() && std::find(out.begin(), out.end(), gap) == out.end()) out.push_back(std::move(gap));
  }
  return out;
}

std::string percent_of(double log_width) {
  return fmt::format("-{:.0f} .. +{:.0f} %", -100 * std::expm1(-log_width), 100 * std::expm1(log_width));
}

void add_step_band_reasons(explanation& e, const scenario& s) {
  const step_band error = step_band_of(s);
  if (e.band) {
    e.band_reasons.push_back(fmt::format(
        "90 % of published steps of this kind are within {}{:+.0f} to {:+.0f} % of the simulated step time "
        "(cross-validation over GPUs, stack {})",
        error_beyond_fit(s) > 1 ? "half of " : "", 100 * (error.low - 1), 100 * (error.high - 1), s.stack.name));
  } else if (!error.known()) {
    e.band_reasons.push_back(fmt::format(
        "no band: stack {} was not fitted to published steps, or its errors are unknown", s.stack.name));
  } else {
    e.band_reasons.emplace_back("no band: errors on this metric were not measured");
  }
}

void add_served_band_reasons(explanation& e, const scenario& s) {
  const served_band b = band_of(s);
  if (e.band) {
    const char* kind = b.kind == "pools"     ? "prefill and decode pools"
                       : b.kind == "experts" ? "models with experts"
                                             : "dense models";
    const std::string of = !b.gap.empty() ? "on systems left out of the fit"
                           : b.by_kind    ? fmt::format("of {} on stack {}", kind, s.stack.name)
                                          : fmt::format("on stack {}", s.stack.name);
    e.band_reasons.push_back(fmt::format("90 % of published values {} are within {}", of,
                                         percent_of(std::log(e.band->second / *e.amount))));
  } else {
    e.band_reasons.emplace_back("no band: errors on this metric were not measured");
  }
  if (!b.gap.empty()) e.band_reasons.push_back(b.gap);
}

/// Of kinds whose bands no fit gives: seeds of an operation, the framework of a loop, spread of a collective.
void add_other_band_reasons(explanation& e, const scenario& s) {
  const bool operation = std::holds_alternative<operation_case>(s.workload);
  const bool loop = std::holds_alternative<post_training_case>(s.workload);
  if (!e.band) {
    e.band_reasons.emplace_back(operation ? "no band: bands need at least ten seeds and exist only for metrics "
                                            "that depend on failures"
                                : loop    ? "no band: errors on this metric were not measured"
                                          : "no band: no similar collective was measured");
    return;
  }
  const std::string within = fmt::format("{:+.0f} to {:+.0f} %", 100 * (e.band->first / *e.amount - 1),
                                         100 * (e.band->second / *e.amount - 1));
  e.band_reasons.push_back(
      operation ? fmt::format("90 % of the seeds are within {}; errors of the step time and of failure "
                              "rates are not included",
                              within)
      : loop    ? fmt::format("90 % of published steps of the framework are within {}", within)
                : fmt::format("90 % of similar measured collectives are within {} (cross-validation over rows and "
                                 "systems, stack {})",
                              within, s.stack.name));
}

/// Says where the band comes from, or why there is none.
void add_band_reasons(explanation& e, const scenario& s) {
  if (!e.band && !e.amount) return;
  if (std::holds_alternative<training_workload>(s.workload)) add_step_band_reasons(e, s);
  else if (std::holds_alternative<inference_workload>(s.workload)) add_served_band_reasons(e, s);
  else add_other_band_reasons(e, s);
  std::vector<std::string> gaps = unmeasured_formats(s, e.constants);
  // GEMMs of a format without a rate of its own read the constants of another format.
  const auto* training = std::get_if<training_workload>(&s.workload);
  if (gaps.empty() && training && error_beyond_fit(s) > 1)
    gaps.push_back(fmt::format("no measurement of {} at {}: the rate is assumed", s.platform.gpu.name,
                               name(training->gemm_precision)));
  for (std::string& line : gaps) e.band_reasons.push_back(std::move(line));
}

}  // namespace

std::vector<input_constant> used_constants(const scenario& s, const run_record& run) {
  std::vector<input_constant> out;
  for (input_constant& c : constants_of(s))
    if (std::binary_search(run.constants_read.begin(), run.constants_read.end(), c.pointer))
      out.push_back(std::move(c));
  return out;
}

explanation explain_run(const scenario& s, const run_record& run, const std::string& metric) {
  explanation e = explain(s, run, metric.empty() ? main_metric(run.outcome) : metric);
  add_band(e, run.outcome);
  e.constants = used_constants(s, run);
  add_band_reasons(e, s);
  e.defaults = defaults_of(s);
  e.assumptions = run.outcome.notes;
  return e;
}

explanation explain_scenario(const scenario& given, const std::string& metric, run_status& status) {
  const std::optional<scenario> changed = told(given);
  const scenario& s = changed ? *changed : given;
  const run_record run = run_scenario(s, {.explained = true, .simulate = false});
  status = run.outcome.status;
  if (status != run_status::infeasible) return explain_run(s, run, metric);
  explanation e;
  e.scenario = s.name;
  e.notes = run.outcome.reasons;
  return e;
}

}  // namespace nvlsim
