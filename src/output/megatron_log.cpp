// Writes the log line of Megatron-LM's training loop, so that existing scrapers can read simulated steps.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

std::optional<double> metric_of(const result& r, std::string_view key) {
  const value* v = r.metrics.find(key);
  double d = 0;
  if (v && output::as_double(*v, d)) return d;
  return std::nullopt;
}

/// Finds the first integer member with this name anywhere in the inputs.
std::optional<std::int64_t> find_integer(const value& v, std::string_view key) {
  const auto* o = v.members();
  if (!o) return std::nullopt;
  for (const auto& [name, inner] : *o) {
    if (name == key && inner.integer()) return *inner.integer();
    if (const auto deeper = find_integer(inner, key)) return deeper;
  }
  return std::nullopt;
}

std::string line(const result& r, double step_time_s) {
  const auto batch = find_integer(r.inputs, "global_batch_size");
  std::string out = fmt::format(" iteration {:8d}/{:8d} |", 1, 1);
  if (batch) out += fmt::format(" consumed samples: {:12d} |", *batch);
  out += fmt::format(" elapsed time per iteration (ms): {:.1f} |", step_time_s * 1e3);
  if (const auto tflops = metric_of(r, "model_tflops_per_gpu"))
    out += fmt::format(" throughput per GPU (TFLOP/s/GPU): {:.1f} |", *tflops);
  if (const auto power = metric_of(r, "power_W_per_gpu")) {
    out += fmt::format(" energy per GPU (J/iter/GPU): {:.1f} |", *power * step_time_s);
    out += fmt::format(" power per GPU (W/GPU): {:.1f} |", *power);
  }
  if (batch) out += fmt::format(" global batch size: {:5d} |", *batch);
  return out + '\n';
}

}  // namespace

std::string megatron_log(std::span<const result> results) {
  std::string out;
  for (const result& r : results) {
    const std::string who = output::one_line(r.name, std::string::npos);
    const auto step_time_s = metric_of(r, "step_time_s");
    out += fmt::format("# {}: {}\n", who, step_time_s ? "simulated by nvlsim" : "no training step");
    for (const std::string& why : r.reasons)
      out += fmt::format("#   {}\n", output::one_line(why, std::string::npos));
    if (step_time_s) out += line(r, *step_time_s);
  }
  return out;
}

}  // namespace nvlsim
