#include "nvlsim/sweep/sweep_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "nvlsim/config/digest.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/config/read_file.hpp"
#include "nvlsim/output/file_writer.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/scenario/scenario_digest.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

namespace fs = std::filesystem;

/// Takes the lock, or waits a second for it: children of a run that was killed end a moment after it, and hold it
/// until then. Not an fcntl lock: a process loses it when it closes any descriptor of the file.
bool is_locked_by_another(int file) {
  for (int i = 0; i < 40; ++i) {
    if (::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return true;
}

/// Calls `use` for every complete line.
template <class Use>
void for_each_line(std::string_view text, Use use) {
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    use(text.substr(0, end));
}

void make_folder(const fs::path& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) throw io_error(fmt::format("{}: cannot be created ({})", folder.string(), ec.message()));
}

value settings_value(const point_settings& set) {
  value out{value::object{}};
  for (const auto& [pointer, v] : set) out.set(pointer, v);
  return out;
}

/// The scenario's path relative to the sweep folder, so that both can move together. Shipped names stay unchanged.
std::string seen_from(const fs::path& folder, const std::string& scenario, const fs::path& file) {
  if (scenario.find('/') == std::string::npos && !scenario.ends_with(".json")) return scenario;
  return fs::proximate(fs::absolute(file), fs::absolute(folder)).string();
}

/// The id of a point, and why it cannot run.
struct point_id {
  std::string text, wrong;
};

point_id id_of(const point_settings& set, const fs::path& file, const data_folders& data) {
  try {
    return {scenario_digest(file, overrides_of(set), data), {}};
  } catch (const input_error& e) {
    if (e.code() == exit_code::io) throw;  // a missing file may appear later and change the plan
    // Running the point reports all problems.
    return {config::digest(settings_value(set)) + "-bad", "error: " + e.problems().front().text()};
  }
}

std::string text_of(const value& line, const char* key) {
  const value* v = line.find(key);
  return v && v->string() ? *v->string() : std::string();
}

[[noreturn]] void no_plan(const fs::path& folder, std::string_view why) {
  throw input_error(
      {{folder.string(), "", fmt::format("no sweep plan ({}); create one with nvlsim sweep plan", why), {}}});
}

}  // namespace

std::vector<override_option> overrides_of(const point_settings& set) {
  std::vector<override_option> out;
  for (const auto& [pointer, v] : set) out.push_back({pointer, to_json(v, 0)});
  return out;
}

value record_of(const std::string& id, std::string_view status, std::vector<std::string> reasons,
                const value& metrics) {
  value out{value::object{}};
  out.set("id", id);
  out.set("status", status);
  value list{value::array{}};
  for (std::string& r : reasons) list.items()->emplace_back(std::move(r));
  out.set("reasons", std::move(list));
  out.set("metrics", metrics);
  return out;
}

sweep_plan write_sweep_plan(const sweep& s, const fs::path& folder, const scenario_finder& find,
                            const data_folders& data, const sweep_report& report) {
  make_folder(folder / "results");
  const fs::path file = find(s.scenario);
  const data_folders kept = keep_files(data);
  output::refuse_inputs(std::array{folder / "plan.json", folder / "points.jsonl"});
  sweep_plan plan{s.name, seen_from(folder, s.scenario, file), {}, {}};
  std::vector<point_id> ids(s.points.size());
  std::mutex reporting;
  std::int64_t done = 0;
  in_parallel(ids.size(), [&](std::size_t i) {
    ids[i] = id_of(s.points[i], file, kept);
    const std::lock_guard lock(reporting);
    if (report) report(++done, static_cast<std::int64_t>(ids.size()));
  });
  std::string lines;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    if (!ids[i].wrong.empty()) ++plan.reasons[ids[i].wrong];
    plan.points.push_back({index, ids[i].text, s.points[i]});
    value line{value::object{{"index", index}, {"id", ids[i].text}}};
    line.set("set", settings_value(s.points[i]));
    lines += to_json(line, 0);
  }
  output::write_whole(folder / "points.jsonl", lines);
  value head{value::object{}};
  head.set("schema", "nvlsim.sweep-plan/1");
  head.set("name", plan.name);
  head.set("scenario", plan.scenario);
  head.set("points", static_cast<std::int64_t>(plan.points.size()));
  output::write_whole(folder / "plan.json", to_json(head));
  return plan;
}

sweep_plan read_sweep_plan(const fs::path& folder) {
  if (!fs::exists(folder / "plan.json")) no_plan(folder, "plan.json is missing");
  const value head = config::parse_scalar(read_own_file(folder / "plan.json"));
  if (text_of(head, "schema") != "nvlsim.sweep-plan/1")
    no_plan(folder, "plan.json has no schema nvlsim.sweep-plan/1");
  sweep_plan plan{text_of(head, "name"), text_of(head, "scenario"), {}, {}};
  for_each_line(read_own_file(folder / "points.jsonl"), [&](std::string_view text) {
    const value line = config::parse_scalar(text);
    const value* set = line.find("set");
    const value* index = line.find("index");
    if (!set || !set->members() || !index || !index->integer()) no_plan(folder, "points.jsonl is damaged");
    plan.points.push_back({*index->integer(), text_of(line, "id"), *set->members()});
  });
  const value* count = head.find("points");
  if (!count || !count->integer() || *count->integer() != static_cast<std::int64_t>(plan.points.size()))
    no_plan(folder, "points.jsonl is incomplete");
  return plan;
}

bool is_record(const value& v) {
  const value *status = v.find("status"), *reasons = v.find("reasons"), *metrics = v.find("metrics");
  const auto all_text = [](const value::array& a) {
    return std::all_of(a.begin(), a.end(), [](const value& x) { return x.string() != nullptr; });
  };
  return !text_of(v, "id").empty() && status && status->string() && reasons && reasons->items() &&
         all_text(*reasons->items()) && metrics && metrics->members();
}

void add_reason(sweep_reasons& to, const value& record) {
  const std::string status = text_of(record, "status");
  if (status == "ok" || status == "saturated") return;
  const value::array& all = *record.find("reasons")->items();
  ++to[fmt::format("{}: {}", status, all.empty() ? "" : *all.front().string())];
}

std::map<std::string, value> read_records(const fs::path& folder) {
  std::map<std::string, value> out;
  std::error_code ec;
  std::vector<fs::path> files;
  for (const auto& e : fs::directory_iterator(folder / "results", ec))
    if (e.path().extension() == ".jsonl") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& f : files)
    for_each_line(read_own_file(f), [&](std::string_view text) {
      value record = config::parse_scalar(text);
      if (!is_record(record)) return;
      // Runs with another number of shards have their own files. A point that failed in one may have been rerun in
      // another.
      value& known = out[text_of(record, "id")];
      const bool failed = text_of(record, "status") == "error";
      if (!failed || !known.members() || text_of(known, "status") == "error") known = std::move(record);
    });
  return out;
}

record_file::record_file(const fs::path& folder, std::int64_t shard, std::int64_t shards) {
  make_folder(folder / "results");
  name_ = (folder / "results" / fmt::format("shard-{}-of-{}.jsonl", shard, shards)).string();
  fd_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw io_error(fmt::format("{}: cannot be written ({})", name_, std::strerror(errno)));
  if (is_locked_by_another(fd_)) {
    ::close(fd_);
    throw io_error(fmt::format("{}: another process is running this shard", name_));
  }
  const std::string text = read_own_file(name_);
  const std::size_t complete = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (complete < text.size() && ::ftruncate(fd_, static_cast<off_t>(complete)) != 0)
    throw io_error(fmt::format("{}: cannot be written", name_));
}

record_file::~record_file() { ::close(fd_); }

void record_file::append(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw io_error(fmt::format("{}: cannot be written ({})", name_, std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace nvlsim
