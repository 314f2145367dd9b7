#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nvlsim/serving/serving.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t max_workers = 64;
constexpr const char *running_name = "running requests", *queued_name = "queued requests";

/// Caches that a prefill worker sent, one after the other.
void add_transfers(std::size_t worker, std::size_t shown, const serving_run& run, serving_picture& out) {
  std::vector<const request_record*> sent;
  for (const request_record& r : run.outcome.requests)
    if (r.prompt_worker == static_cast<std::int32_t>(worker) && r.delivered_s >= 0) sent.push_back(&r);
  std::stable_sort(sent.begin(), sent.end(), [](const request_record* a, const request_record* b) {
    return a->delivered_s < b->delivered_s;
  });
  stream s{stream_kind::kv_transfer, {}};
  std::vector<span> spans;
  std::map<std::int64_t, std::int32_t> templates;
  double free = 0;
  for (const request_record* r : sent) {
    const auto to = static_cast<std::size_t>(r->worker);
    const auto [at, is_new] = templates.try_emplace(r->input);
    if (is_new) at->second = out.planned.add_template(run.transfers.at(r->input));
    out.planned.append(s, at->second, {}, no_event, {-1, to < shown ? r->worker : no_peer});
    spans.push_back({std::max(free, r->prefilled_s), r->delivered_s});
    free = r->delivered_s;
  }
  out.planned.classes.back().streams.push_back(std::move(s));
  out.times.spans.back().push_back(std::move(spans));
}

}  // namespace

serving_picture trace_serving(const serving_run& run, const inference_workload& w, bool whole) {
  serving_picture out;
  for (const iteration_use& u : run.uses) out.planned.add_template(u.operation);
  const auto& workers = run.outcome.workers;
  const auto kv = static_cast<double>(run.kv_capacity_tokens);
  const std::size_t shown = whole ? workers.size() : std::min(workers.size(), max_workers);
  for (std::size_t i = 0; i < shown; ++i) {
    const worker_record& l = workers[i];
    stream s;
    std::vector<span> spans;
    std::vector<iteration_batch> batches;
    for (const traced_iteration& t : l.iterations) {
      out.planned.append(s, t.kind, {}, no_event, {t.batch.decodes});
      spans.push_back({t.begin_s, t.end_s});
      batches.push_back(t.batch);
    }
    out.batches.push_back(std::move(batches));
    const int gpus = l.prefills ? w.prefill_pool->tp * w.prefill_pool->attention_dp : w.tp * w.attention_dp;
    const char* what = l.prefills ? "prefill worker" : w.pooled() ? "decode worker" : "replica";
    out.planned.classes.push_back({fmt::format("{} {}", what, i), gpus * l.workers, {std::move(s)}});
    out.times.spans.push_back({std::move(spans)});
    if (l.prefills) add_transfers(i, shown, run, out);
    out.counters.push_back({i, running_name, l.running.points()});
    out.counters.push_back({i, queued_name, l.queued.points()});
    auto used = l.kv_tokens.points();
    for (auto& [t, x] : used) x /= kv;
    out.counters.push_back({i, kv_used_counter, std::move(used)});
  }
  out.times.makespan = seconds::from_base(run.outcome.end_s);
  return out;
}

}  // namespace nvlsim
