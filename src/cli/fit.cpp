// nvlsim fit
#include "nvlsim/calibration/fit.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"

namespace nvlsim::cli {
exit_code execute(const fit_arguments& a) {
  const data_folders data = folders_under(data_root());
  const std::vector<std::filesystem::path> tables(a.tables.begin(), a.tables.end());
  std::filesystem::create_directories(a.output);  // fail early, before minutes of work
  if (std::filesystem::equivalent(a.output, data.stacks))
    throw input_error(
        {{"-o",
          "",
          fmt::format("{} holds the stacks that the fit starts from; the fit would overwrite them", a.output),
          {}}});
  for (const std::string& t : a.tables) detail("reads " + t);
  const auto report = [](const std::string& line) { note("fit: " + line); };
  const auto fit = a.kind == fit_kind::training     ? fit_training
                   : a.kind == fit_kind::frameworks ? fit_frameworks
                   : a.kind == fit_kind::inference  ? fit_inference
                   : a.kind == fit_kind::loops      ? fit_loops
                                                    : fit_collectives;
  const fit_report f = a.kind == fit_kind::kernels ? fit_kernels(tables, data, a.only, a.leave_out, report)
                                                   : fit(tables, data, a.leave_out, report);
  for (const auto& [file, text] : f.files) {
    const std::filesystem::path path = std::filesystem::path(a.output) / file;
    std::filesystem::create_directories(path.parent_path());
    write_file(path, text);
  }
  print(fit_text(f));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
