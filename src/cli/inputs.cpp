#include "cli/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/console.hpp"
#include "cli/support.hpp"
#include "config/document.hpp"
#include "nvlsim/output.hpp"
#include "study/explain_scenario.hpp"
#include "study/read_file.hpp"

namespace nvlsim::cli {
namespace {

input_file read_input(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  detail(fmt::format("reads {}", file.string()));
  if (holds_results(config::parse_scalar(text))) return {file, read_results(text, file.string())};
  return {file, {}};
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
  for (const auto& [pointer, v] : defaults_of(s)) detail(fmt::format("{}: {} is not stated: {}", s.name, pointer, text_of(v)));
  return s;
}

std::vector<input_file> input_files(const std::string& what) {
  if (!std::filesystem::is_directory(what)) return {read_input(scenario_file(what))};
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(what))
    if (e.path().extension() == ".json" && !is_trace(e.path())) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw input_error({{what, "", "a folder without results or scenarios (*.json)", {}}});
  std::vector<input_file> out;
  for (const auto& f : files) out.push_back(read_input(f));
  return out;
}

}  // namespace nvlsim::cli
