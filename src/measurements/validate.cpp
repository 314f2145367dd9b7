#include "nvlsim/measurements/validate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

#include "measurements/cache_tier_rows.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

struct table_kind {
  std::string_view name;
  std::vector<std::string_view> columns;  ///< columns that identify the kind
  std::vector<validation_record> (*run)(const csv_table&, const data_folders&, const progress&);
};
const std::array<table_kind, 11> kinds = {{
    {"memory", {"case", "system", "step_time_ms", "peak_alloc_GiB"}, validate_memory},
    {"models", {"model", "kind", "params_total_derived", "params_active_derived"}, validate_models},
    {"kv-capacity",
     {"id", "engine", "model", "system", "kv_tokens", "kv_tokens_scope", "kv_GiB"},
     validate_kv_capacity},
    {"cache-tiers",
     {"id", "engine", "model", "system", "tier", "hit_rate_with", "ttft_with_ms", "ttft_without_ms"},
     validate_cache_tiers},
    {"pairs",
     {"id", "kind", "engine", "model", "system", "what_changed", "value_a", "value_b", "ratio_b_over_a"},
     validate_pairs},
    {"inference", {"id", "engine", "model", "system", "isl", "osl", "tpot_ms", "ttft_ms"}, validate_inference},
    {"kernels", {"table", "system", "op", "dtype", "latency_ms"}, validate_kernels},
    {"collectives", {"id", "system", "collective", "message_bytes", "time_us"}, validate_collectives},
    {"goodput", {"case", "measured_metric", "measured_value", "usable_as"}, validate_goodput},
    {"posttraining",
     {"id", "system", "model", "sync_mode", "batch_samples", "gen_parallel", "step_s", "weight_sync_s"},
     validate_posttraining},
    {"training", {"id", "model", "system", "seq_len", "global_batch", "tp", "pp"}, validate_training},
}};

/// Names the nearest kind and its missing columns.
std::string unknown_kind(const csv_table& t) {
  const auto lacks = [&](const table_kind& k) {
    std::vector<std::string_view> out;
    for (const std::string_view c : k.columns)
      if (!t.has(c)) out.push_back(c);
    return out;
  };
  const auto has = [&](const table_kind& k) { return k.columns.size() - lacks(k).size(); };
  const auto best = std::max_element(kinds.begin(), kinds.end(), [&](const table_kind& a, const table_kind& b) {
    return has(a) < has(b) || (has(a) == has(b) && lacks(a).size() > lacks(b).size());
  });
  std::vector<std::string_view> names;
  for (const table_kind& k : kinds) names.push_back(k.name);
  std::string out = fmt::format("the header matches no known kind of table ({})", fmt::join(names, ", "));
  if (has(*best) > 1) out += fmt::format("; a {} table also needs {}", best->name, fmt::join(lacks(*best), ", "));
  return out;
}

}  // namespace

validation_record record_of(const csv_row& row, const std::string& table) {
  validation_record r;
  r.table = table;
  r.id = row["id"];
  r.system = row["system"];
  r.model = row["model"];
  r.suspect = row["suspect"];
  r.status = record_status::ok;
  return r;
}

void record_failure(validation_record& r) {
  try {
    throw;
  } catch (const cell_error& e) {
    r.status = record_status::error;
    r.reason = e.what();
  } catch (const input_error& e) {
    r.status = record_status::unsupported;
    r.reason = e.what();
  }
}

std::vector<validation_record> records_by_row(
    const csv_table& t, const progress& report,
    const std::function<std::vector<validation_record>(const csv_row&)>& records_of) {
  std::vector<std::vector<validation_record>> found(t.rows.size());
  std::mutex reporting;
  std::size_t done = 0;
  in_parallel(t.rows.size(), [&](std::size_t i) {
    found[i] = records_of(t.rows[i]);
    const std::lock_guard lock(reporting);
    if (report) report(++done, t.rows.size());
  });
  std::vector<validation_record> out;
  for (std::vector<validation_record>& of_row : found)
    std::move(of_row.begin(), of_row.end(), std::back_inserter(out));
  return out;
}

std::vector<validation_record> validate_rows(const csv_table& t, const progress& report,
                                             const std::function<void(const csv_row&, validation_record&)>& fill) {
  return records_by_row(t, report, [&](const csv_row& row) {
    std::vector<validation_record> out = {record_of(row, t.stem)};
    try {
      fill(row, out.front());
    } catch (const std::exception&) {
      record_failure(out.front());
    }
    return out;
  });
}

/// A row whose cells, each a number by itself, lead the formulas out of the numbers is an error of the row.
static void refuse_no_number(validation_record& r) {
  const auto good = [](const std::optional<double>& x) { return !x || std::isfinite(*x); };
  if (good(r.simulated) && good(r.error()) && (!r.band || (good(r.band->first) && good(r.band->second)))) return;
  r.status = record_status::error;
  r.reason = "the cells of this row together give no number";
  r.simulated.reset();
  r.band.reset();
}

std::vector<validation_record> validate_table(const std::filesystem::path& file, const data_folders& data,
                                              const progress& report) {
  const csv_table t = read_csv(file);
  for (const table_kind& k : kinds)
    if (std::all_of(k.columns.begin(), k.columns.end(), [&](std::string_view c) { return t.has(c); })) {
      std::vector<validation_record> out = k.run(t, data, report);
      for (validation_record& r : out) refuse_no_number(r);
      return out;
    }
  throw input_error({{file.string(), "", unknown_kind(t), {}}});
}

}  // namespace nvlsim
