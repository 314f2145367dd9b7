#include "scheduling/job_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvlsim {
namespace {}  // namespace

int job_builder::number_of(const std::string& name, std::map<std::string, int>& known,
                           std::vector<std::string>& names) {
  const auto [at, added] = known.try_emplace(name, static_cast<int>(names.size()));
  if (added) names.push_back(name);
  return at->second;
}

void job_builder::add(const read_job& j) {
  if (j.gpus <= 0) return leave_out("without GPUs");
  if (j.gpus > max_gpus || j.nodes > max_gpus) return leave_out("with more than 10,000,000 GPUs");
  if (!(j.run > 0)) return leave_out("without a run");
  batch_job b;
  b.name = j.name;
  b.user = number_of(j.user, users_, out_.users);
  b.queue = number_of(j.queue, queues_, out_.queues);
  b.submit = seconds::from_base(j.submit);
  b.run = seconds::from_base(j.run);
  double limit = j.limit;
  if (limit <= 0 && options_.limit_over_run) limit = j.run * *options_.limit_over_run;
  b.limit = seconds::from_base(limit);
  b.gpus = static_cast<std::int32_t>(j.gpus);
  b.nodes = static_cast<std::int32_t>(j.nodes);
  b.segment = static_cast<std::int32_t>(j.segment);
  b.outcome = j.outcome;
  out_.jobs.push_back(std::move(b));
}

job_list job_builder::finish(bool absolute) {
  std::stable_sort(out_.jobs.begin(), out_.jobs.end(),
                   [](const batch_job& a, const batch_job& b) { return a.submit < b.submit; });
  if (absolute && !out_.jobs.empty()) {
    const seconds first = out_.jobs.front().submit;
    for (batch_job& j : out_.jobs) j.submit = j.submit - first;
  }
  for (const auto& [why, count] : left_out_)
    out_.notes.push_back(fmt::format("{} job{} {} left out", count, count == 1 ? "" : "s", why));
  return std::move(out_);
}

job_outcome outcome_of(std::string_view state) {
  std::string low;
  for (const char c : state) low += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (low.starts_with("cancel") || low.starts_with("kill") || low.starts_with("stop") || low == "5")
    return job_outcome::cancelled;
  if (low.starts_with("fail") || low.starts_with("node_fail") || low.starts_with("out_of_me") ||
      low.starts_with("timeout") || low.starts_with("boot_fail") || low == "0")
    return job_outcome::failed;
  return job_outcome::completed;
}

}  // namespace nvlsim
