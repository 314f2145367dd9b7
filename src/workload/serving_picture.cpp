#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/serving.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t most_lanes = 64;

}  // namespace

void draw_serving(const serving_run& run, const inference_workload& w, plan& work, timeline& times,
                  std::vector<trace_counter>& counters, bool whole) {
  for (const iteration_use& u : run.uses) work.add_template(u.work);
  const auto& lanes = run.outcome.lanes;
  const auto kv = static_cast<double>(run.kv_capacity_tokens);
  for (std::size_t i = 0; i < (whole ? lanes.size() : std::min(lanes.size(), most_lanes)); ++i) {
    const lane_record& l = lanes[i];
    stream s;
    std::vector<span> spans;
    for (const traced_iteration& t : l.iterations) {
      work.append(s, t.kind, {}, no_event, t.decodes);
      spans.push_back({t.begin_s, t.end_s});
    }
    const int gpus = l.prefills ? w.prefill_pool->tp * w.prefill_pool->attention_dp : w.tp * w.attention_dp;
    const char* what = l.prefills ? "prefill worker" : w.pooled() ? "decode worker" : "replica";
    work.classes.push_back({fmt::format("{} {}", what, i), gpus, {std::move(s)}});
    times.spans.push_back({std::move(spans)});
    counters.push_back({i, "running requests", l.running.points()});
    counters.push_back({i, "queued requests", l.queued.points()});
    auto used = l.kv_tokens.points();
    for (auto& [t, x] : used) x /= kv;
    counters.push_back({i, "KV cache used (fraction)", std::move(used)});
  }
  times.makespan = seconds::from_base(run.outcome.end_s);
  for (const lane_record& l : lanes) times.activities += l.iterations_in_all;
}

}  // namespace nvlsim
