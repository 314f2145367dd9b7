// Runs the points of a shard, each in its own process. The simulation engine works once a process; a crash loses
// only one point.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "nvlsim/config/document.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/child.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/sweep/sweep_store.hpp"

namespace nvlsim {
namespace {

using clock = std::chrono::steady_clock;

/// A point that runs in a child process.
struct child : child_process {
  const sweep_point* point = nullptr;
  std::string text;
  clock::time_point begin;
  bool timed_out = false;
};

std::string record_line(const sweep_point& p, const std::filesystem::path& file, const data_folders& data) {
  const auto failed = [&](std::vector<std::string> reasons) {
    return to_json(record_of(p.id, "error", std::move(reasons), value::object{}), 0);
  };
  try {
    const scenario s = load_scenario(file, overrides_of(p.set), data);
    const value* digest = s.inputs.find("digest");
    if (digest && digest->string() && *digest->string() != p.id)
      return failed({"the inputs have changed since the sweep was planned; plan the sweep again"});
    const result r = run_scenario(s, {.traced = false, .simulate = false}).outcome;
    return to_json(record_of(p.id, name(r.status), r.reasons, r.metrics), 0);
  } catch (const input_error& e) {
    std::vector<std::string> all;
    for (const problem& x : e.problems()) all.push_back(x.text());
    return failed(std::move(all));
  } catch (const std::exception& e) {
    return failed({e.what()});
  }
}

/// Reads shared files (above all the stack) once in the parent, not again in each child.
void read_before_children(const sweep_point& p, const std::filesystem::path& file, const data_folders& data) {
  try {
    load_scenario(file, overrides_of(p.set), data);
  } catch (const std::exception&) {  // the point's child reports it
  }
}

bool is_error(const value& record) {
  const value* status = record.find("status");
  return status && status->string() && *status->string() == "error";
}

class pool {
 public:
  pool(const sweep_run_options& o, record_file& records, std::filesystem::path file, const data_folders& data)
      : options_(o), records_(records), file_(std::move(file)), data_(data) {}

  /// Runs the points, `jobs` at a time. Calls `after` with the record of each point when it ends; null if it was
  /// interrupted.
  template <class After>
  void run(const std::vector<const sweep_point*>& points, After after) {
    std::size_t next = 0;
    const auto stopped = [&] { return options_.stop && options_.stop(); };
    while (next < points.size() || !running_.empty()) {
      while (next < points.size() && running_.size() < static_cast<std::size_t>(options_.jobs) && !stopped())
        start(*points[next++]);
      if (running_.empty()) return;
      wait_for_any();
      for (std::size_t i = 0; i < running_.size();) {
        if (running_[i].from >= 0) {
          ++i;
          continue;
        }
        const child done = std::move(running_[i]);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
        after(finish(done));
      }
    }
  }

 private:
  void start(const sweep_point& p) {
    running_.push_back({start_child([&] { return record_line(p, file_, data_); }), &p, {}, clock::now(), false});
  }

  /// Reads the children's output and closes the pipes of those that are done.
  void wait_for_any() {
    std::vector<pollfd> fds;
    for (const child& c : running_) fds.push_back({c.from, POLLIN, 0});
    const int left = options_.timeout_s > 0 ? 100 : -1;
    if (::poll(fds.data(), fds.size(), left) < 0 && errno != EINTR)
      throw internal_error(fmt::format("poll: {}", std::strerror(errno)));
    std::array<char, 1 << 16> chunk{};
    for (std::size_t i = 0; i < running_.size(); ++i) {
      child& c = running_[i];
      if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        const ssize_t n = ::read(c.from, chunk.data(), chunk.size());
        if (n > 0) c.text.append(chunk.data(), static_cast<std::size_t>(n));
        if (n == 0 || (n < 0 && errno != EINTR)) ::close(std::exchange(c.from, -1));
      }
      const std::chrono::duration<double> age = clock::now() - c.begin;
      if (options_.timeout_s > 0 && age.count() > options_.timeout_s && !c.timed_out) {
        c.timed_out = true;
        ::kill(c.pid, SIGKILL);
      }
    }
  }

  /// Writes the child's record and returns it.
  value finish(const child& c) {
    const int state = end_of(c);
    value record = config::parse_scalar(c.text);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0 && is_record(record)) {
      records_.append(c.text);
      return record;
    }
    const std::string reason =
        c.timed_out ? fmt::format("took longer than {} s", options_.timeout_s) : silence_reason(state);
    // Ctrl-C, or a scheduler's SIGTERM, reached the whole process group, so this point has not failed.
    const int by = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    if (by == SIGINT || (by == SIGTERM && options_.stop && options_.stop())) return {};
    record = record_of(c.point->id, "error", {reason}, value::object{});
    records_.append(to_json(record, 0));
    return record;
  }

  const sweep_run_options& options_;
  record_file& records_;
  std::filesystem::path file_;
  const data_folders& data_;
  std::vector<child> running_;
};

}  // namespace

sweep_run_counts run_sweep(const std::filesystem::path& folder, const sweep_run_options& o,
                           const scenario_finder& find, const data_folders& data) {
  const sweep_plan plan = read_sweep_plan(folder);
  const bool named = plan.scenario.find('/') == std::string::npos && !plan.scenario.ends_with(".json");
  const std::filesystem::path file = named ? find(plan.scenario) : folder / plan.scenario;
  record_file records(folder, o.shard, o.shards);
  const auto finished = read_records(folder);
  sweep_run_counts counts;
  std::set<std::string> seen;
  std::vector<const sweep_point*> todo;
  std::int64_t number = 0;
  for (const sweep_point& p : plan.points) {
    if (!seen.insert(p.id).second || number++ % o.shards != o.shard) continue;
    ++counts.points;
    const auto it = finished.find(p.id);
    if (it == finished.end() || (o.retry_errors && is_error(it->second))) {
      todo.push_back(&p);
      continue;
    }
    ++counts.before;
    add_reason(counts.reasons, it->second);
  }
  if (o.report) o.report(counts.before, counts.points);
  if (!todo.empty()) read_before_children(*todo.front(), file, data);
  pool(o, records, file, data).run(todo, [&](const value& record) {
    if (record.is_null()) return;
    ++counts.run;
    counts.failed += is_error(record) ? 1 : 0;
    add_reason(counts.reasons, record);
    if (o.report) o.report(counts.before + counts.run, counts.points);
  });
  return counts;
}

}  // namespace nvlsim
