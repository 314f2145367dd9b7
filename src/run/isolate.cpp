#include "nvlsim/run/isolate.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>

#include "nvlsim/output/file_writer.hpp"
#include "nvlsim/run/child.hpp"
#include "nvlsim/run/queue_jobs.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/units/version.hpp"

namespace nvlsim {
namespace {

// A child's message: one letter for its kind, then text.
constexpr char sends_result = 'R', sends_problems = 'P', sends_io = 'F', sends_limit = 'M', sends_defect = 'D';

std::string read_all(int fd) {
  std::string out;
  std::array<char, 1 << 16> chunk{};
  for (;;) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

void write_trace_file(const std::filesystem::path& file, const scenario& s, const run_record& run,
                      trace_options options) {
  output::file_writer out(file);
  options.metadata.set("tool", "nvlsim");
  options.metadata.set("version", version);
  options.metadata.set("scenario", run.outcome.name);
  options.metadata.set("seed", static_cast<std::int64_t>(s.simulation.seed));
  if (const value* digest = run.outcome.inputs.find("digest")) options.metadata.set("digest", *digest);
  if (has_queue(s)) {
    write_queue_trace(out.stream(), s, options.metadata);
    return out.close();
  }
  if (!run.left_out.empty()) options.left_out.push_back(run.left_out);
  if (!std::holds_alternative<collective_workload>(s.workload)) options.idle_power = s.platform.gpu.idle_power;
  for (const link_use& u : run.links)
    options.counters.push_back(
        {static_cast<std::size_t>(u.rank_class < 0 ? u.by_class.front().first : u.rank_class), u.name + " (share)",
         u.points});
  options.counters.insert(options.counters.end(), run.counters.begin(), run.counters.end());
  options.requests = run.requests;
  options.batches = run.batches;
  options.tracks = run.services.empty() ? run.racks : run.services;
  try {
    write_trace(out.stream(), run.planned, run.times, options);
  } catch (const io_error&) {
    throw io_error(fmt::format("{}: cannot write the trace", file.string()));
  }
  out.close();
}

void write_request_file(const std::filesystem::path& file, const run_record& run) {
  output::file_writer out(file);
  try {
    write_requests(out.stream(), run.requests, run.front_end);
  } catch (const io_error&) {
    throw io_error(fmt::format("{}: cannot write the requests", file.string()));
  }
  out.close();
}

void write_jobs_file(const std::filesystem::path& file, const scenario& s) {
  output::file_writer out(file);
  try {
    write_queue_jobs(out.stream(), s);
  } catch (const io_error&) {
    throw io_error(fmt::format("{}: cannot write the jobs", file.string()));
  }
  out.close();
}

/// Separates fields with the ASCII unit separator and problems with the record separator.
std::string packed(const std::vector<problem>& problems) {
  std::string out;
  for (const problem& p : problems)
    out += p.file + '\x1f' + p.pointer + '\x1f' + p.what + '\x1f' + p.hint + '\x1f' + (p.unreadable ? "1" : "") +
           '\x1e';
  return out;
}

std::vector<problem> unpacked(std::string_view text) {
  std::vector<problem> out;
  while (!text.empty()) {
    const std::string_view record = text.substr(0, text.find('\x1e'));
    text.remove_prefix(std::min(text.size(), record.size() + 1));
    std::array<std::string, 5> fields;
    std::size_t at = 0;
    for (std::string& f : fields) {
      const std::size_t end = std::min(record.find('\x1f', at), record.size());
      f = record.substr(at, end - at);
      at = std::min(end + 1, record.size());
    }
    out.push_back({fields[0], fields[1], fields[2], fields[3], !fields[4].empty()});
  }
  return out;
}

std::string child_message(const scenario& s, const std::filesystem::path& trace_file, const trace_options& trace,
                          const std::filesystem::path& requests_file, const std::filesystem::path& jobs_file) {
  try {
    const run_record run = run_scenario(s);
    if (!trace_file.empty() && run.outcome.status != run_status::infeasible)
      write_trace_file(trace_file, s, run, trace);
    if (!requests_file.empty() && run.outcome.status != run_status::infeasible)
      write_request_file(requests_file, run);
    if (!jobs_file.empty() && run.outcome.status != run_status::infeasible) write_jobs_file(jobs_file, s);
    return sends_result + results_json(std::array{run.outcome});
  } catch (const input_error& e) {
    return sends_problems + packed(e.problems());
  } catch (const io_error& e) {
    return sends_io + std::string(e.what());
  } catch (const std::bad_alloc&) {
    return {sends_limit};
  } catch (const std::exception& e) {
    return sends_defect + std::string(e.what());
  }
}

}  // namespace

result run_isolated(const scenario& s, const std::filesystem::path& trace_file, const trace_options& trace,
                    const std::filesystem::path& requests_file, const std::filesystem::path& jobs_file) {
  const child_process child =
      start_child([&] { return child_message(s, trace_file, trace, requests_file, jobs_file); });
  const std::string message = read_all(child.from);
  ::close(child.from);
  const int state = end_of(child);
  if (message.empty() && was_ended(state))
    throw limit_error(fmt::format("scenario {}: {}", s.name, silence_reason(state)));
  if (message.empty()) throw internal_error(fmt::format("scenario {}: {}", s.name, silence_reason(state)));
  const std::string rest = message.substr(1);
  switch (message.front()) {
    case sends_result:
      return read_results(rest, s.name).front();
    case sends_problems:
      throw input_error(unpacked(rest));
    case sends_io:
      throw io_error(rest);
    case sends_limit:
      throw limit_error(fmt::format("scenario {}: out of memory", s.name));
    default:
      throw internal_error(rest);
  }
}

}  // namespace nvlsim
