#include <fmt/format.h>

#include "nvlsim/config/date_time.hpp"
#include "nvlsim/config/document.hpp"
#include "scheduling/job_builder.hpp"

namespace nvlsim {
namespace {

std::string text_of(const value& job, const char* member) {
  const value* v = job.find(member);
  return v && v->string() ? *v->string() : std::string();
}

/// "2017-10-09 07:02:57"; nothing of "None" and null.
std::optional<double> time_of(const value& v, const char* member) {
  return config::date_and_time(text_of(v, member));
}

/// The job runs as long as its attempts together, on the GPUs of the first that had any.
void add_job(const value& job, job_builder& out) {
  const auto submit = time_of(job, "submitted_time");
  if (!submit) return out.leave_out("without a time of submission");
  read_job j{text_of(job, "jobid"), text_of(job, "user"), text_of(job, "vc"), *submit};
  j.outcome = outcome_of(text_of(job, "status"));
  const value* attempts = job.find("attempts");
  if (attempts && attempts->items())
    for (const value& a : *attempts->items()) {
      const auto start = time_of(a, "start_time"), end = time_of(a, "end_time");
      if (start && end && *end > *start) j.run += *end - *start;
      const value* detail = a.find("detail");
      if (j.gpus > 0 || !detail || !detail->items()) continue;
      for (const value& machine : *detail->items())
        if (const value* gpus = machine.find("gpus"); gpus && gpus->items())
          j.gpus += static_cast<long>(gpus->items()->size());
    }
  out.add(j);
}

/// The end of the object that begins at `text[at]`, or npos.
std::size_t end_of_object(std::string_view text, std::size_t at) {
  int depth = 0;
  for (bool quoted = false; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

void read_philly(std::string_view text, const std::string& file, job_builder& out, diagnostics& problems) {
  // An object at a time: the log of 117,325 jobs would be a large document.
  long number = 0;
  for (std::size_t at = text.find('{'); at != std::string_view::npos;) {
    ++number;
    const std::size_t end = end_of_object(text, at);
    const value job = end == std::string_view::npos ? value() : config::parse_scalar(text.substr(at, end - at));
    if (!job.members()) {
      problems.add(file, "", fmt::format("job {}: not a JSON object", number));
      return;
    }
    add_job(job, out);
    at = text.find('{', end);
  }
}

}  // namespace nvlsim
