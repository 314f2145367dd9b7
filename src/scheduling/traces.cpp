#include "nvlsim/scheduling/traces.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "nvlsim/config/csv_records.hpp"
#include "nvlsim/config/date_time.hpp"
#include "scheduling/job_builder.hpp"

namespace nvlsim {
namespace {

constexpr int max_problems = 20;
constexpr double longest = 1e12;  // seconds

/// How a format writes how long a job ran, and the limit that it asked for.
enum class run_text { seconds, from_start_to_end };
enum class limit_text { none, seconds, minutes };
enum class gpus_text { count, tres, thousandths, per_worker };

/// Columns of a format; "" where it has none.
struct job_format {
  const char* name;
  char separator = ',';
  const char* id = "";
  const char* user = "";
  const char* queue = "";
  const char* submit = "";
  const char* run = "";    ///< or the time when it ended
  const char* start = "";  ///< where `run` is the time when it ended
  const char* limit = "";
  const char* gpus = "";
  const char* nodes = "";
  const char* segment = "";
  const char* state = "";
  const char* mark = "";  ///< column that tells the format from others
  run_text ran = run_text::seconds;
  limit_text asked = limit_text::none;
  gpus_text gpu_form = gpus_text::count;
  bool calendar = true;  ///< times are not from the start of the simulation
};

// Sources: docs/scheduling.md#traces
constexpr std::array<job_format, 6> tables = {{
    {.name = "nvlsim",
     .id = "job",
     .user = "user",
     .queue = "queue",
     .submit = "submit_s",
     .run = "run_s",
     .limit = "limit_s",
     .gpus = "gpus",
     .nodes = "nodes",
     .segment = "segment",
     .state = "state",
     .mark = "submit_s",
     .asked = limit_text::seconds,
     .calendar = false},
    {.name = "slurm",
     .separator = '|',
     .id = "JobID",
     .user = "User",
     .queue = "Partition",
     .submit = "Submit",
     .run = "ElapsedRaw",
     .limit = "TimelimitRaw",
     .gpus = "AllocTRES",
     .nodes = "NNodes",
     .state = "State",
     .mark = "JobID",
     .asked = limit_text::minutes,
     .gpu_form = gpus_text::tres},
    {.name = "helios",
     .id = "job_id",
     .user = "user",
     .queue = "vc",
     .submit = "submit_time",
     .run = "duration",
     .gpus = "gpu_num",
     .state = "state",
     .mark = "vc"},
    {.name = "acme",
     .id = "job_id",
     .user = "user",
     .queue = "type",
     .submit = "submit_time",
     .run = "duration",
     .gpus = "gpu_num",
     .state = "state",
     .mark = "gpu_num"},
    {.name = "openb",
     .id = "name",
     .queue = "qos",
     .submit = "creation_time",
     .run = "deletion_time",
     .start = "scheduled_time",
     .gpus = "num_gpu",
     .state = "pod_phase",
     .mark = "gpu_milli",
     .ran = run_text::from_start_to_end,
     .gpu_form = gpus_text::thousandths},
    {.name = "spot",
     .id = "job_name",
     .user = "organization",
     .queue = "job_type",
     .submit = "submit_time",
     .run = "duration",
     .gpus = "gpu_request",
     .nodes = "worker_num",
     .mark = "worker_num",
     .gpu_form = gpus_text::per_worker},
}};

/// GPUs in Slurm's "billing=4,cpu=8,gres/gpu=4,gres/gpu:h100=4,node=1".
long gpus_of_tres(std::string_view text) {
  long typed = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const long n = config::whole_text<long>(part.substr(equals + 1)).value_or(0);
    if (part.substr(0, equals) == "gres/gpu") return n;
    if (part.starts_with("gres/gpu:")) typed += n;
  }
  return typed;
}

std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == separator) out.emplace_back();
    else if (c != '\r') out.back() += c;
  }
  return out;
}

/// Calls `f` with each line that is not empty and its number.
template <class F>
void for_lines(std::string_view text, F f) {
  for (long number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !f(line, number)) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

class table_reader {
 public:
  table_reader(const std::string& file, const job_format& format, job_builder& out, diagnostics& problems)
      : file_(file), format_(format), out_(out), problems_(problems) {}

  /// Whether all columns are there that must be.
  bool header(const std::vector<std::string>& names) {
    for (const char* needed : {format_.submit, format_.run, format_.start, format_.gpus})
      if (*needed != '\0' && std::find(names.begin(), names.end(), needed) == names.end()) {
        problems_.add(file_, "",
                      fmt::format("{} files have a column {}; this one has {}", format_.name, needed,
                                  fmt::join(names, ", ")));
        return false;
      }
    names_ = names;
    return true;
  }

  bool line(std::string_view text, long number) {
    number_ = number;
    const std::vector<std::string> cells =
        format_.separator == ',' ? config::csv_records(text, file_).front() : split(text, format_.separator);
    if (cells.size() != names_.size())
      return fail(fmt::format("{} cells, and the header has {} columns", cells.size(), names_.size()));
    const auto cell = [&](const char* column) -> std::string {
      const auto at = std::find(names_.begin(), names_.end(), column);
      return *column == '\0' || at == names_.end() ? std::string()
                                                   : cells[static_cast<std::size_t>(at - names_.begin())];
    };
    read_job j{cell(format_.id), cell(format_.user), cell(format_.queue)};
    // A step of a Slurm job is part of it.
    if (format_.gpu_form == gpus_text::tres && j.name.find('.') != std::string::npos) return true;
    j.outcome = outcome_of(cell(format_.state));
    if (!read_times(j, cell) || !read_size(j, cell)) return found_ < max_problems;
    out_.add(j);
    return true;
  }

 private:
  bool fail(const std::string& what) {
    problems_.add(file_, "", fmt::format("line {}: {}", number_, what));
    if (++found_ < max_problems) return true;
    problems_.add(file_, "", "too many problems; the rest of the file is not read");
    return false;
  }
  /// A problem, and no job.
  bool bad(const char* column, const std::string& text, const char* what) {
    fail(fmt::format("{}: \"{}\" is not {}", column, text, what));
    return false;
  }
  bool skip(const char* why) {
    out_.leave_out(why);
    return false;
  }

  static std::optional<double> time_of(std::string_view text) {
    if (const auto x = config::whole_text<double>(text))
      return std::isfinite(*x) && std::abs(*x) < longest ? x : std::nullopt;
    const std::optional<double> ahead = config::take_offset(text);
    const std::optional<double> t = config::date_and_time(text);
    return t ? std::optional(*t - ahead.value_or(0)) : std::nullopt;
  }

  static bool is_unknown(const std::string& text) {
    return text.empty() || text == "Unknown" || text == "None" || text == "nan" || text == "NaN" || text == "-1" ||
           text == "-1.0";
  }

  template <class Cell>
  bool read_times(read_job& j, const Cell& cell) {
    const std::string submit = cell(format_.submit), run = cell(format_.run);
    if (is_unknown(submit)) return skip("without a time of submission");
    if (is_unknown(run)) return skip("without a run");
    const auto submitted = time_of(submit), ran = time_of(run);
    if (!submitted) return bad(format_.submit, submit, "a time");
    if (!ran || (format_.ran == run_text::seconds && *ran < 0)) return bad(format_.run, run, "a time");
    if (!format_.calendar && *submitted < 0) return bad(format_.submit, submit, "a time of the simulation");
    j.submit = *submitted;
    j.run = *ran;
    if (format_.ran == run_text::from_start_to_end) {
      const std::string start = cell(format_.start);
      if (is_unknown(start)) return skip("without a run");
      const auto started = time_of(start);
      if (!started) return bad(format_.start, start, "a time");
      j.run -= *started;
    }
    const std::string limit = cell(format_.limit);
    if (is_unknown(limit) || limit == "UNLIMITED" || limit == "Partition_Limit") return true;
    const auto asked = time_of(limit);
    if (!asked || *asked < 0) return bad(format_.limit, limit, "a limit");
    j.limit = *asked * (format_.asked == limit_text::minutes ? 60 : 1);
    return true;
  }

  template <class Cell>
  bool read_size(read_job& j, const Cell& cell) {
    const std::string gpus = cell(format_.gpus), nodes = cell(format_.nodes), segment = cell(format_.segment);
    if (format_.gpu_form == gpus_text::tres) {
      j.gpus = gpus_of_tres(gpus);
    } else {
      if (is_unknown(gpus)) return skip("without GPUs");
      const auto n = config::whole_text<double>(gpus);
      if (!n || !(*n >= 0 && *n <= max_gpus)) return bad(format_.gpus, gpus, "a number of GPUs");
      j.gpus = static_cast<long>(std::ceil(*n));  // a share of a GPU takes one
    }
    for (auto [column, text, into] :
         {std::tuple(format_.nodes, &nodes, &j.nodes), std::tuple(format_.segment, &segment, &j.segment)}) {
      if (is_unknown(*text)) continue;
      const auto n = config::whole_text<double>(*text);
      if (!n || !(*n >= 0 && *n <= max_gpus) || *n != std::floor(*n))
        return bad(column, *text, "a number of nodes");
      *into = static_cast<long>(*n);
    }
    if (format_.gpu_form == gpus_text::per_worker) j.gpus *= j.nodes;
    if (j.gpus > max_gpus) return bad(format_.gpus, gpus, "a number of GPUs");
    if (j.gpus > 0 && j.nodes > j.gpus) return skip("with nodes without GPUs");
    return true;
  }

  const std::string& file_;
  const job_format& format_;
  job_builder& out_;
  diagnostics& problems_;
  std::vector<std::string> names_;
  long number_ = 0;
  int found_ = 0;
};

const job_format* format_named(std::string_view name) {
  for (const job_format& f : tables)
    if (name == f.name) return &f;
  return nullptr;
}

/// The first format whose mark is a column of the file.
const job_format* format_of(const std::vector<std::string>& columns) {
  for (const job_format& f : tables)
    if (std::find(columns.begin(), columns.end(), f.mark) != columns.end()) return &f;
  return nullptr;
}

/// Standard Workload Format 2.2: 18 numbers a line, -1 for unknown, comments after ";".
void read_swf(std::string_view text, const std::string& file, job_builder& out, diagnostics& problems) {
  constexpr std::size_t fields = 18;
  enum field {
    job,
    submitted,
    wait,
    ran,
    used,
    cpu,
    memory,
    asked,
    limit,
    asked_memory,
    status,
    user,
    group,
    program,
    queue
  };
  int found = 0;
  for_lines(text, [&](std::string_view line, long number) {
    if (line.front() == ';') return true;
    std::vector<double> x;
    for (const std::string& cell : split(line, ' '))
      for (const std::string& c : split(cell, '\t'))
        if (!c.empty())
          x.push_back(config::whole_text<double>(c).value_or(std::numeric_limits<double>::quiet_NaN()));
    const bool good =
        x.size() == fields && std::all_of(x.begin(), x.end(), [](double v) { return std::abs(v) < longest; });
    if (!good) {
      problems.add(file, "", fmt::format("line {}: an SWF job needs 18 numbers", number));
      return ++found < max_problems;
    }
    const auto id = [&](field f) { return fmt::format("{}", static_cast<long>(x[f])); };
    const double size = x[asked] > 0 ? x[asked] : x[used];
    read_job j{
        id(job), id(user), id(queue), x[submitted], x[ran], std::max(0.0, x[limit]), static_cast<long>(size)};
    j.outcome = outcome_of(id(status));
    out.add(j);
    return true;
  });
}

void read_table(std::string_view text, const std::string& file, const job_format* format, job_builder& out,
                diagnostics& problems) {
  std::optional<table_reader> reader;
  for_lines(text, [&](std::string_view line, long number) {
    if (reader) return reader->line(line, number);
    const bool pipes = line.find('|') != std::string_view::npos;
    const std::vector<std::string> columns = split(line, format ? format->separator : pipes ? '|' : ',');
    const job_format* found = format ? format : format_of(columns);
    if (!found) {
      problems.add(file, "",
                   fmt::format("unknown job file with columns {}; the formats are {}", fmt::join(columns, ", "),
                               fmt::join(job_formats(), ", ")));
      return false;
    }
    reader.emplace(file, *found, out, problems);
    return reader->header(columns);
  });
}

}  // namespace

const std::vector<std::string>& job_formats() {
  static const std::vector<std::string> names = {"nvlsim", "slurm", "swf",   "philly",
                                                 "helios", "acme",  "openb", "spot"};
  return names;
}

job_list read_jobs_text(std::string_view text, const std::string& file, const job_file_options& options,
                        diagnostics& problems) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  job_builder out(options);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const char begins = first == std::string_view::npos ? '\0' : text[first];
  const bool digits = begins == ';' || (begins >= '0' && begins <= '9');
  const job_format* format = format_named(options.format);
  bool calendar = true;
  if (options.format == "philly" || (options.format.empty() && (begins == '[' || begins == '{'))) {
    read_philly(text, file, out, problems);
  } else if (options.format == "swf" || (options.format.empty() && digits)) {
    read_swf(text, file, out, problems);
  } else {
    read_table(text, file, format, out, problems);
    const std::string_view head = text.substr(0, text.find('\n'));
    calendar = format ? format->calendar : head.find("submit_s") == std::string_view::npos;
  }
  if (out.empty() && problems.empty()) problems.add(file, "", "no jobs");
  return out.finish(calendar);
}

}  // namespace nvlsim
