#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/measurements/row_runs.hpp"

namespace nvlsim {
namespace {

void fill_band(validation_record& out, const inference_profile& engine, served_metric what) {
  const double width = what == served_metric::tpot   ? engine.band.tpot
                       : what == served_metric::ttft ? engine.band.ttft
                                                     : engine.band.throughput;
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
        fill_band(one, *r.software->inference, r.targets[i].what);
      }
      out.push_back(std::move(one));
    }
    return out;
  });
}

}  // namespace nvlsim
