// nvlsim validate
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>

#include "cli/commands.hpp"
#include "cli/support.hpp"
#include "nvlsim/output.hpp"
#include "nvlsim/validate.hpp"

namespace nvlsim::cli {
namespace {

void show_progress(std::size_t done, std::size_t all) {
  if (::isatty(STDERR_FILENO) == 0) return;
  if (done == all) fmt::print(stderr, "\r\033[K");
  else if (done % 16 == 0) fmt::print(stderr, "\rvalidate: {} of {} rows", done, all);
  std::fflush(stderr);
}

}  // namespace

exit_code execute(const validate_arguments& a) {
  const data_folders data = folders_under(data_root());
  std::vector<validation_record> records;
  for (const std::string& table : a.tables) {
    auto rows = validate_table(table, data, show_progress);
    std::move(rows.begin(), rows.end(), std::back_inserter(records));
  }
  print(a.format == "json" ? to_json(validation_json(records)) : validation_text(records, a.all_rows));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
