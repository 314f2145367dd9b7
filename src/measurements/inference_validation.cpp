#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/measurements/row_runs.hpp"
#include "nvlsim/run/serving_bands.hpp"

namespace nvlsim {
namespace {

/// The width for a metric. What is not known of a throughput is taken from the gap between tokens.
double width_for(const error_widths& w, served_metric what) {
  if (what == served_metric::tpot) return w.tpot;
  if (what == served_metric::ttft) return w.ttft;
  return w.throughput > 0 ? w.throughput : w.tpot;
}

void fill_band(validation_record& out, const error_widths& widths, served_metric what) {
  const double width = width_for(widths, what);
  if (width > 0) out.band = {*out.simulated * std::exp(-width), *out.simulated * std::exp(width)};
}

/// Simulated values. Sets status and reason if the row cannot run.
std::vector<double> simulated_values(inference_row& r) {
  if (r.record.status != record_status::ok) return {};
  try {
    return simulate_row(r, *r.software);
  } catch (const input_error& e) {
    r.record.status = record_status::unsupported;
    r.record.reason = e.what();
  }
  return {};
}

}  // namespace

std::vector<validation_record> validate_inference(const csv_table& t, const data_folders& data,
                                                  const progress& report) {
  input_cache inputs(data);
  return records_by_row(t, report, [&](const csv_row& row) {
    std::vector<validation_record> out;
    inference_row r = read_inference_row(row, t.stem, inputs);
    const std::vector<double> values = simulated_values(r);
    const error_widths widths = values.empty()
                                    ? error_widths{}
                                    : band_of(serving_case{r.hardware, *r.software, *r.net, r.workload}).widths;
    if (r.targets.empty()) {
      r.record.metric = "tpot_ms";
      out.push_back(r.record);
    }
    for (std::size_t i = 0; i < r.targets.size(); ++i) {
      validation_record one = r.record;
      one.metric = r.targets[i].column;
      one.published = r.targets[i].published;
      if (one.status == record_status::ok) {
        one.simulated = values[i];
        fill_band(one, widths, r.targets[i].what);
      }
      out.push_back(std::move(one));
    }
    return out;
  });
}

}  // namespace nvlsim
