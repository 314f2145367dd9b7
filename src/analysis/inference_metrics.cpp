#include "nvlsim/inference_metrics.hpp"

#include "analysis/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace nvlsim {
std::optional<distribution> distribution_of(std::vector<weighted> values) {
  std::int64_t total = 0;
  double sum = 0;
  for (const weighted& w : values) {
    total += w.count;
    sum += w.value * static_cast<double>(w.count);
  }
  if (total == 0) return std::nullopt;
  std::sort(values.begin(), values.end(), [](const weighted& a, const weighted& b) { return a.value < b.value; });

  distribution d{.mean = sum / static_cast<double>(total)};
  struct {
    std::int64_t percent;
    double* at;
  } const wanted[] = {{50, &d.p50}, {90, &d.p90}, {95, &d.p95}, {99, &d.p99}, {100, &d.max}};
  std::int64_t below = 0;
  std::size_t next = 0;
  for (const weighted& w : values) {
    below += w.count;
    for (; next < std::size(wanted) && below * 100 >= wanted[next].percent * total; ++next)
      *wanted[next].at = w.value;
  }
  return d;
}

namespace {

struct samples {
  std::vector<weighted> ttft, queue, e2e, tpot, itl;
  double inputs = 0, outputs = 0, requests = 0;
};

// A server holds the first token back for some iterations, and for some time.
// [docs/models-and-assumptions.md#inference-front-end]
void add_requests(samples& out, const batching_schedule& s, const std::vector<span>& spans,
                  const front_end_costs& server, std::int64_t replicas) {
  const auto at = [&](std::int32_t i) { return spans[static_cast<std::size_t>(i)]; };
  for (const request_progress& r : s.requests) {
    const double begin = at(r.arrived).begin_s, e2e = at(r.last_token).end_s - begin;
    const double first = at(r.first_token).end_s - begin, gaps = static_cast<double>(r.output - 1);
    const double held = gaps > 0 ? (e2e - first) * std::min(server.first_token_iterations / gaps, 1.0) : 0;
    const double ttft = first + held + server.first_token_delay.base();
    out.queue.push_back({at(r.admitted).begin_s - begin, replicas});
    out.ttft.push_back({ttft, replicas});
    out.e2e.push_back({e2e, replicas});
    if (gaps > 0) out.tpot.push_back({(e2e - first) / gaps, replicas});
    out.inputs += static_cast<double>(r.input * replicas);
    out.outputs += static_cast<double>(r.output * replicas);
    out.requests += static_cast<double>(replicas);
  }
}

// Each of an iteration's decodes saw the gap since the last iteration that decoded, or, where its first token came
// later, since that. With drafts a step gives several tokens; they count as spread evenly over it.
void add_gaps(samples& out, const batching_schedule& s, const std::vector<span>& spans, std::int64_t replicas, double tokens) {
  std::vector<std::int64_t> begun(s.iterations.size());
  for (const request_progress& r : s.requests)
    if (r.output > 1) ++begun[static_cast<std::size_t>(r.first_token)];
  std::vector<std::pair<double, std::int64_t>> joined;
  double last = 0;
  for (std::size_t i = 0; i < s.iterations.size(); ++i) {
    std::int64_t old = s.iterations[i].decodes;
    const double end = spans[i].end_s;
    if (old > 0) {
      for (const auto& [since, count] : joined) {
        out.itl.push_back({(end - since) / tokens, count * replicas});
        old -= count;
      }
      if (old > 0) out.itl.push_back({(end - last) / tokens, old * replicas});
      joined.clear();
      last = end;
    }
    if (begun[i] > 0) joined.emplace_back(end, begun[i]);
  }
}

// A request streams its first token when the decode worker that has its cache begins with it.
// [docs/models-and-assumptions.md#disaggregation]
void add_pools(samples& out, const inference_run& run, const timeline& t) {
  const pooled_schedule& s = *run.pools;
  const auto at = [&](std::size_t worker, std::int32_t i) { return t.spans[worker].front()[static_cast<std::size_t>(i)]; };
  const std::size_t prefills = s.prefill.size();
  const auto end_of = [&](const pooled_request& r) {
    return r.decode_worker >= 0 ? at(prefills + static_cast<std::size_t>(r.decode_worker), r.decode_last).end_s
                                : at(static_cast<std::size_t>(r.prefill_worker), r.prefill_last).end_s;
  };
  for (const pooled_request& r : s.requests) {
    const double sent = r.sent_after < 0 ? 0 : end_of(s.requests[static_cast<std::size_t>(r.sent_after)]);
    const double end = end_of(r), gaps = static_cast<double>(r.output - 1);
    const double stream = r.decode_worker >= 0 ? at(prefills + static_cast<std::size_t>(r.decode_worker), r.decode_first).begin_s : end;
    const double begin = r.prefill_worker >= 0 ? at(static_cast<std::size_t>(r.prefill_worker), r.prefill_first).begin_s : stream;
    const double held = gaps > 0 ? (end - stream) * std::min(run.front_end.first_token_iterations / gaps, 1.0) : 0;
    out.queue.push_back({begin - sent, 1});
    out.ttft.push_back({stream - sent + held + run.front_end.first_token_delay.base(), 1});
    out.e2e.push_back({end - sent, 1});
    if (gaps > 0) out.tpot.push_back({(end - stream) / gaps, 1});
    out.inputs += static_cast<double>(r.input);
    out.outputs += static_cast<double>(r.output);
    out.requests += 1;
  }
  for (std::size_t w = 0; w < s.decode.size(); ++w)
    for (std::size_t i = 0; i < s.decode[w].size(); ++i) {
      const span& x = t.spans[prefills + w].front()[i];
      out.itl.push_back({(x.end_s - x.begin_s) / run.tokens_per_step, s.decode[w][i].decodes});
    }
}

}  // namespace

std::vector<request_record> records_of(const inference_run& run, const timeline& t) {
  std::vector<request_record> out;
  for (std::size_t c = 0; c < run.schedules.size(); ++c) {
    const std::vector<span>& spans = t.spans[c].front();
    const auto at = [&](std::int32_t i) { return spans[static_cast<std::size_t>(i)]; };
    for (const request_progress& r : run.schedules[c].requests)
      out.push_back({at(r.arrived).begin_s, at(r.admitted).begin_s, at(r.first_token).end_s, at(r.last_token).end_s,
                     static_cast<std::int32_t>(r.input), static_cast<std::int32_t>(r.output), 0,
                     static_cast<std::int32_t>(c), 0});
  }
  return out;
}

inference_metrics measure_inference(const inference_run& run, const timeline& t) {
  samples all;
  inference_metrics m;
  double gpus = 0;
  for (std::size_t c = 0; c < run.schedules.size(); ++c) {
    const batching_schedule& s = run.schedules[c];
    const std::vector<span>& spans = t.spans[c].front();
    add_requests(all, s, spans, run.front_end, run.lanes[c]);
    add_gaps(all, s, spans, run.lanes[c], run.tokens_per_step);
    gpus += static_cast<double>(run.work.classes[c].multiplicity);
    m.kv_cache_used_fraction = std::max(m.kv_cache_used_fraction, static_cast<double>(s.peak_kv_tokens) /
                                                                      static_cast<double>(run.kv_capacity_tokens));
  }
  if (run.pools) {
    add_pools(all, run, t);
    for (const rank_class& c : run.work.classes) gpus += static_cast<double>(c.multiplicity);
    m.kv_cache_used_fraction = static_cast<double>(run.pools->peak_kv_tokens) / static_cast<double>(run.kv_capacity_tokens);
  }
  const double time = t.makespan.base();
  m.output_tokens_per_s = all.outputs / time;
  m.output_tokens_per_s_per_gpu = m.output_tokens_per_s / gpus;
  m.total_tokens_per_s = (all.inputs + all.outputs) / time;
  m.total_tokens_per_s_per_gpu = m.total_tokens_per_s / gpus;
  m.requests_per_s = all.requests / time;
  m.ttft_s = distribution_of(std::move(all.ttft)).value();
  m.queue_s = distribution_of(std::move(all.queue)).value();
  m.e2e_s = distribution_of(std::move(all.e2e)).value();
  m.tpot_s = distribution_of(std::move(all.tpot));
  m.itl_s = distribution_of(std::move(all.itl));
  if (m.tpot_s) m.output_tokens_per_s_per_user = 1 / m.tpot_s->mean;
  return m;
}

}  // namespace nvlsim
