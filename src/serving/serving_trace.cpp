#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/serving/serving.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t max_workers = 64;
constexpr const char *running_name = "running requests", *queued_name = "queued requests",
                     *kv_name = "KV cache used (fraction)";

/// A count that changes by one at the given times.
time_series steps_of(std::vector<std::pair<double, int>> changes) {
  std::sort(changes.begin(), changes.end());
  time_series out;
  double value = 0, since = 0;
  for (const auto& [at, change] : changes) {
    if (at > since) out.add(since, at, value);
    since = std::max(since, at);
    value += change;
  }
  return out;
}

void add_iterations(time_series& out, const std::vector<iteration>& all, const std::vector<span>& spans) {
  for (std::size_t i = 0; i < all.size(); ++i)
    out.add(spans[i].begin_s, spans[i].end_s, static_cast<double>(all[i].decodes + all[i].prompts));
}

/// Waiting intervals of requests, by class.
using waits = std::vector<std::vector<std::pair<double, int>>>;

void add_wait(waits& all, std::size_t at, double from, double to) {
  if (at >= all.size() || !(to > from)) return;
  all[at].emplace_back(from, 1);
  all[at].emplace_back(to, -1);
}

}  // namespace

serving_picture trace_serving(const serving_run& run, const inference_workload& w, bool whole) {
  serving_picture out;
  for (const iteration_use& u : run.uses) out.planned.add_template(u.operation);
  const auto& workers = run.outcome.workers;
  const auto kv = static_cast<double>(run.kv_capacity_tokens);
  for (std::size_t i = 0; i < (whole ? workers.size() : std::min(workers.size(), max_workers)); ++i) {
    const worker_record& l = workers[i];
    stream s;
    std::vector<span> spans;
    for (const traced_iteration& t : l.iterations) {
      out.planned.append(s, t.kind, {}, no_event, {t.decodes});
      spans.push_back({t.begin_s, t.end_s});
    }
    const int gpus = l.prefills ? w.prefill_pool->tp * w.prefill_pool->attention_dp : w.tp * w.attention_dp;
    const char* what = l.prefills ? "prefill worker" : w.pooled() ? "decode worker" : "replica";
    out.planned.classes.push_back({fmt::format("{} {}", what, i), gpus, {std::move(s)}});
    out.times.spans.push_back({std::move(spans)});
    out.counters.push_back({i, running_name, l.running.points()});
    out.counters.push_back({i, queued_name, l.queued.points()});
    auto used = l.kv_tokens.points();
    for (auto& [t, x] : used) x /= kv;
    out.counters.push_back({i, kv_name, std::move(used)});
  }
  out.times.makespan = seconds::from_base(run.outcome.end_s);
  return out;
}

std::vector<trace_counter> count_over_time(const inference_run& run, const timeline& times,
                                           const std::vector<request_record>& requests) {
  const std::size_t classes = std::min(times.spans.size(), max_workers);
  std::vector<time_series> running(classes), held(classes);
  waits queued(classes);
  const auto spans = [&](std::size_t c) -> const std::vector<span>& { return times.spans[c].front(); };
  for (std::size_t c = 0; c < std::min(run.schedules.size(), classes); ++c) {
    const batching_schedule& s = run.schedules[c];
    add_iterations(running[c], s.iterations, spans(c));
    for (std::size_t i = 0; i < s.iterations.size(); ++i)
      held[c].add(spans(c)[i].begin_s, spans(c)[i].end_s,
                  static_cast<double>(s.kv_tokens[i]) / static_cast<double>(run.kv_capacity_tokens));
  }
  if (run.pools) {
    const std::size_t prefills = run.pools->prefill.size();
    for (std::size_t c = 0; c < classes; ++c)
      add_iterations(running[c], c < prefills ? run.pools->prefill[c] : run.pools->decode[c - prefills], spans(c));
  }
  for (const request_record& r : requests)
    add_wait(queued, static_cast<std::size_t>(r.prompt_worker >= 0 ? r.prompt_worker : r.worker), r.arrival_s,
             r.admitted_s);
  std::vector<trace_counter> out;
  for (std::size_t c = 0; c < classes; ++c) {
    out.push_back({c, running_name, running[c].points()});
    out.push_back({c, queued_name, steps_of(std::move(queued[c])).points()});
    if (!run.pools) out.push_back({c, kv_name, held[c].points()});
  }
  return out;
}

}  // namespace nvlsim
