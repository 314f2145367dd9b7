// Published measurements against the simulator.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/scenario.hpp"
#include "nvlsim/value.hpp"

namespace nvlsim {

enum class record_status { ok, infeasible, unsupported, error, excluded };
std::string_view name(record_status s);

/// One published number and what the simulator says.
struct validation_record {
  std::string table, id, metric;            ///< together the key
  std::optional<double> published, simulated;  ///< in the unit of the column
  record_status status = record_status::error;
  std::string reason;                       ///< empty when ok
  std::string suspect, notes;
  std::optional<std::pair<double, double>> band;  ///< 90 %, in the same unit
  // Summaries group by these; blank ones are left out.
  std::string system, model, precision, kind, release, scenario;

  /// simulated/published - 1 when ok.
  std::optional<double> error() const;
};

/// Called with rows done and rows in all.
using progress = std::function<void(std::size_t, std::size_t)>;

/// Runs every row of a table; its header tells the kind. Throws io_error, or input_error for a table of unknown kind.
std::vector<validation_record> validate_table(const std::filesystem::path& file, const data_folders& data,
                                              const progress& report = {});

/// `{"rows": [...], "summary": {...}}` over all tables together, with `by` groups and the same for each table.
value validation_json(const std::vector<validation_record>& records);
/// For a terminal: the worst rows and the summary, 80 columns.
std::string validation_text(const std::vector<validation_record>& records, bool all_rows);

}  // namespace nvlsim
