#include "cli/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/console.hpp"
#include "cli/support.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/config/read_file.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/explain_scenario.hpp"

namespace nvlsim::cli {
namespace {

input_contents read_input(const std::filesystem::path& file, const std::vector<override_option>& sets,
                          const data_folders& data) {
  const std::string text = read_file(file);
  if (!holds_results(config::parse_scalar(text))) return {file, {}, read_scenario(file, sets, data)};
  detail(fmt::format("reads {}", file.string()));
  return {file, read_results(text, file.string()), {}};
}

std::string text_of(const value& v) {
  if (v.string()) return *v.string();
  std::string json = to_json(v, 0);
  while (json.ends_with('\n')) json.pop_back();
  return json;
}

bool is_trace(const std::filesystem::path& file) { return file.filename().string().ends_with(".trace.json"); }

}  // namespace

scenario read_scenario(const std::filesystem::path& file, const std::vector<override_option>& sets,
                       const data_folders& data) {
  detail(fmt::format("reads {}", file.string()));
  scenario s = load_scenario(file, sets, data);
  detail(fmt::format("{}: platform {}, stack {}, model {}", s.name, s.platform.name, s.stack.name, s.model.name));
  for (const auto& [pointer, v] : defaults_of(s))
    detail(fmt::format("{}: {} is not given; default: {}", s.name, pointer, text_of(v)));
  return s;
}

std::vector<input_contents> read_inputs(const std::string& what, const std::vector<override_option>& sets,
                                        const data_folders& data) {
  std::vector<input_contents> out;
  if (!std::filesystem::is_directory(what)) {
    out.push_back(read_input(scenario_file(what), sets, data));
    return out;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(what))
    if (e.path().extension() == ".json" && !is_trace(e.path())) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw input_error({{what, "", "the folder has no results or scenarios (*.json)", {}}});
  diagnostics problems;
  for (const auto& f : files) gather(problems, [&] { out.push_back(read_input(f, sets, data)); });
  problems.throw_if_any();
  return out;
}

}  // namespace nvlsim::cli
