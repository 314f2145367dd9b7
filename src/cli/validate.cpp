// nvlsim validate
#include "nvlsim/measurements/validate.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"

namespace nvlsim::cli {

exit_code execute(const validate_arguments& a) {
  const data_folders data = folders_under(data_root());
  std::vector<validation_record> records;
  for (const std::string& table : a.tables) {
    detail("reads " + table);
    auto rows = validate_table(table, data, [](std::size_t done, std::size_t all) {
      if (done == all || done % 16 == 0) show_progress("validate", done, all, "rows");
    });
    std::move(rows.begin(), rows.end(), std::back_inserter(records));
  }
  print(a.format == "json" ? to_json(validation_json(records)) : validation_text(records, a.all_rows));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
