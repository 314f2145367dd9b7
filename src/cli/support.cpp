#include "cli/support.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "cli/console.hpp"
#include "nvlsim/output/file_writer.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim::cli {
namespace {

std::atomic<int> interrupt_seen = 0;  ///< also read by threads
static_assert(std::atomic<int>::is_always_lock_free);
bool tables = false;
pid_t at_terminal = 0;  ///< the process that prints the interrupt message; its children do not

void on_interrupt(int) {
  interrupt_seen = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  static constexpr std::string_view what =
      "nvlsim: stopping after the current work; interrupt again to stop now\n";
  if (::getpid() == at_terminal && ::write(STDERR_FILENO, what.data(), what.size()) < 0)
    return;  // only async-signal-safe calls are allowed here
}

bool holds_data(const std::filesystem::path& root) {
  std::error_code ec;
  return std::filesystem::is_directory(root / "platforms", ec) &&
         std::filesystem::is_directory(root / "scenarios", ec);
}

}  // namespace

std::filesystem::path data_root() {
  if (const char* set = std::getenv("NVLSIM_DATA")) {
    if (holds_data(set)) return set;
    throw io_error(fmt::format("NVLSIM_DATA={}: the folder has no platforms and scenarios", set));
  }
  std::error_code ec;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ec);
  const std::filesystem::path installed = program.parent_path().parent_path() / "share" / "nvlsim";
  if (holds_data(installed)) return installed;
  for (std::filesystem::path p = program.parent_path(); p.has_relative_path(); p = p.parent_path())
    if (holds_data(p)) return p;
  throw io_error("cannot find the shipped platforms and scenarios; set NVLSIM_DATA to their folder");
}

std::vector<override_option> parse_sets(const std::vector<std::string>& sets) {
  std::vector<override_option> out;
  diagnostics problems;
  for (const std::string& s : sets) {
    const std::size_t equals = s.find('=');
    if (equals == std::string::npos)
      problems.add("--set", "", fmt::format("\"{}\" is not of the form POINTER=VALUE, such as /workload/tp=4", s));
    else out.push_back({s.substr(0, equals), s.substr(equals + 1)});
  }
  problems.throw_if_any();
  return out;
}

std::vector<override_at> parse_input_sets(const std::vector<std::string>& sets) {
  std::vector<override_at> out;
  for (const override_option& o : parse_sets(sets))
    out.push_back({o.pointer, config::parse_scalar(o.text), {"--set", "--set", true}, {}});
  return out;
}

std::pair<std::vector<override_at>, std::vector<override_at>> platform_and_stack_sets(
    const std::vector<std::string>& sets) {
  constexpr std::array<std::string_view, 5> of_stack = {"/kernels", "/collectives", "/serving", "/training",
                                                        "/inference"};
  std::pair<std::vector<override_at>, std::vector<override_at>> out;
  for (override_at& o : parse_input_sets(sets)) {
    const auto below = [&](std::string_view file) {
      if (!o.pointer.starts_with(file)) return false;
      o.written_at = o.pointer;
      o.pointer.erase(0, file.size() - 1);
      return true;
    };
    const bool software =
        !below("/platform/") &&
        (below("/stack/") || std::any_of(of_stack.begin(), of_stack.end(), [&](std::string_view g) {
           return o.pointer == g || (o.pointer.starts_with(g) && o.pointer[g.size()] == '/');
         }));
    (software ? out.second : out.first).push_back(std::move(o));
  }
  return out;
}

std::vector<std::filesystem::path> shipped_scenarios() {
  const std::filesystem::path root = data_root() / "scenarios";
  std::vector<std::filesystem::path> out;
  for (const auto& e : std::filesystem::recursive_directory_iterator(root)) {
    const std::filesystem::path inside = std::filesystem::relative(e.path(), root);
    if (e.path().extension() == ".json" && *inside.begin() != "models") out.push_back(e.path());
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.filename() < b.filename(); });
  return out;
}

std::filesystem::path scenario_file(const std::string& name_or_path) {
  std::error_code ec;
  if (std::filesystem::exists(name_or_path, ec)) return name_or_path;
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json"))
    throw io_error(fmt::format("{}: no such file", name_or_path));
  std::vector<std::string> names;
  for (const auto& file : shipped_scenarios()) {
    if (file.stem() == name_or_path) return file;
    names.push_back(file.stem().string());
  }
  const std::vector<std::string> models = config::names_in(folders_under(data_root()).models);
  if (std::find(models.begin(), models.end(), name_or_path) != models.end())
    throw input_error(
        {{"",
          "",
          fmt::format("\"{0}\" is a model, not a scenario; give a platform and a layout (nvlsim run "
                      "--model {0} --platform gb300-nvl72 --gpus 64 ...), or have them found (nvlsim "
                      "plan training {0} ..., nvlsim plan serving {0} ...)",
                      name_or_path),
          {}}});
  throw input_error({{"", "", fmt::format("no file and no shipped scenario is called \"{}\"", name_or_path),
                      nearest(name_or_path, names)}});
}

void print_tables(bool on) { tables = on; }

void print(std::string_view what) {
  const std::string text = tables ? for_stdout(what) : std::string(what);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw io_error("cannot write to standard output");
}

void write_file(const std::filesystem::path& file, std::string_view text) {
  output::write_whole(file, text);
  detail(fmt::format("wrote {}", file.string()));
}

void tell_infeasible(std::span<const result> results, std::string_view side) {
  constexpr std::size_t longest = 2000;
  if (::isatty(STDOUT_FILENO) == 1) return;
  for (const result& r : results) {
    if (r.status != run_status::infeasible) continue;
    const std::string why = fmt::format("nvlsim: {}{}{} is infeasible: {}", side, side.empty() ? "" : ": ", r.name,
                                        fmt::join(r.reasons, "; "));
    std::fputs((for_stderr(output::one_line(why, longest)) + '\n').c_str(), stderr);
  }
}

exit_code report_failure(exit_code code, std::string_view message, std::span<const problem> problems, bool json) {
  constexpr std::size_t max_shown = 100, longest = 2000;
  std::string text;
  if (problems.empty()) text = for_stderr("nvlsim: " + output::one_line(message, longest)) + '\n';
  std::map<std::string, std::size_t> of_file;  // a file that is not a table at all has a problem in every line
  for (const problem& p : problems)
    if (++of_file[p.file] <= max_shown) text += for_stderr(output::one_line(p.text(), longest)) + '\n';
  for (const auto& [file, count] : of_file)
    if (const std::size_t more = count > max_shown ? count - max_shown : 0; more > 0)
      text += for_stderr(fmt::format("{}: and {} more problem{}", output::one_line(file, longest), more,
                                     more == 1 ? "" : "s")) +
              '\n';
  std::fputs(text.c_str(), stderr);
  if (json) {
    std::fputs(to_json(error_value(code, message, problems)).c_str(), stdout);
    std::fflush(stdout);
  }
  return code;
}

void catch_interrupts() {
  if (::isatty(STDERR_FILENO) == 1) at_terminal = ::getpid();
  std::signal(SIGINT, on_interrupt);
}
void catch_termination() {
  catch_interrupts();
  std::signal(SIGTERM, on_interrupt);
}
bool interrupted() { return interrupt_seen != 0; }

}  // namespace nvlsim::cli
