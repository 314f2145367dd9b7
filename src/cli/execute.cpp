// Dispatches commands and turns exceptions into messages and exit codes.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.hpp"
#include "cli/support.hpp"

namespace nvlsim::cli {
namespace {

std::string format_of(const request& r) {
  return std::visit([](const auto& a) { return a.format; }, r);
}

}  // namespace

exit_code execute(const prepared_output& a) {
  if (!a.folder.empty()) std::filesystem::create_directories(a.folder);
  for (const auto& [name, content] : a.files) write_file(std::filesystem::path(a.folder) / name, content);
  print(a.text);
  return exit_code::ok;
}

exit_code execute(const request& r) {
  const std::string format = format_of(r);
  const bool json = format == "json";
  print_tables(format == "table");
  try {
    return std::visit([](const auto& a) { return execute(a); }, r);
  } catch (const input_error& e) {
    return report_failure(e.code(), e.what(), e.problems(), json);
  } catch (const io_error& e) {
    return report_failure(exit_code::io, e.what(), {}, json);
  } catch (const std::filesystem::filesystem_error& e) {
    return report_failure(exit_code::io, fmt::format("{}: {}", e.path1().string(), e.code().message()), {}, json);
  } catch (const std::bad_alloc&) {
    return report_failure(exit_code::io, "out of memory", {}, json);
  } catch (const std::exception& e) {
    return report_failure(exit_code::internal, fmt::format("internal error, please report it: {}", e.what()), {},
                          json);
  }
}

}  // namespace nvlsim::cli
