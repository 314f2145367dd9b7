// nvlsim validate
#include "nvlsim/measurements/validate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/measurements/row_scenarios.hpp"
#include "nvlsim/output/file_writer.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"

namespace nvlsim::cli {

namespace {

/// Writes one file a row. Names of rows become names of files.
void write_scenarios(const validate_arguments& a, const data_folders& data) {
  std::error_code ec;
  std::filesystem::create_directories(a.scenarios_folder, ec);
  if (ec) throw io_error(fmt::format("{}: cannot be created ({})", a.scenarios_folder, ec.message()));
  std::size_t written = 0;
  for (const std::string& table : a.tables)
    for (auto& [id, scenario, figures] : row_scenarios(table, data)) {
      std::string name = id;
      std::replace(name.begin(), name.end(), '/', '_');
      output::write_whole(std::filesystem::path(a.scenarios_folder) / (name + ".json"), to_json(scenario));
      ++written;
    }
  detail(fmt::format("{}: {} scenarios", a.scenarios_folder, written));
}

}  // namespace

exit_code execute(const validate_arguments& a) {
  const data_folders data = folders_under(data_root());
  if (!a.scenarios_folder.empty()) {
    write_scenarios(a, data);
    return exit_code::ok;
  }
  std::vector<validation_record> records;
  for (const std::string& table : a.tables) {
    detail("reads " + table);
    progress_line line("validate", "rows");
    auto rows = validate_table(table, data, std::ref(line));
    std::move(rows.begin(), rows.end(), std::back_inserter(records));
  }
  print(a.format == "json" ? to_json(validation_json(records)) : validation_text(records, a.all_rows));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
