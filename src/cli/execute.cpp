// Dispatch and the one place where exceptions become messages and exit codes.
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.hpp"
#include "cli/support.hpp"
#include "nvlsim/output.hpp"

namespace nvlsim::cli {
namespace {

bool wants_json(const request& r) {
  return std::visit([](const auto& a) { return a.format == "json"; }, r);
}

exit_code failed(const request& r, exit_code code, std::string_view message, std::span<const problem> problems) {
  if (wants_json(r)) print(to_json(error_value(code, message, problems)));
  if (problems.empty()) fmt::print(stderr, "nvlsim: {}\n", message);
  for (const problem& p : problems) fmt::print(stderr, "{}\n", p.text());
  return code;
}

}  // namespace

exit_code execute(const request& r) {
  try {
    return std::visit([](const auto& a) { return execute(a); }, r);
  } catch (const input_error& e) {
    return failed(r, exit_code::bad_input, e.what(), e.problems());
  } catch (const io_error& e) {
    return failed(r, exit_code::io, e.what(), {});
  } catch (const std::exception& e) {
    return failed(r, exit_code::internal, fmt::format("internal error, please report it: {}", e.what()), {});
  }
}

}  // namespace nvlsim::cli
