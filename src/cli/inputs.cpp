#include "cli/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/support.hpp"
#include "config/document.hpp"
#include "nvlsim/output.hpp"

namespace nvlsim::cli {
namespace {

input_file read_input(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw io_error(fmt::format("{}: cannot be read", file.string()));
  if (holds_results(config::parse_scalar(text.str()))) return {file, read_results(text.str(), file.string())};
  return {file, {}};
}

bool is_trace(const std::filesystem::path& file) { return file.filename().string().ends_with(".trace.json"); }

}  // namespace

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
