#include "nvlsim/analysis/inference_metrics.hpp"

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

void add_request(samples& out, const request_record& r, const front_end_costs& server, std::int64_t replicas) {
  const client_view c = seen_by_client(r, server);
  out.queue.push_back({r.admitted_s - r.arrival_s, replicas});
  out.ttft.push_back({c.ttft_s, replicas});
  out.e2e.push_back({c.e2e_s, replicas});
  if (c.tpot_s) out.tpot.push_back({*c.tpot_s, replicas});
  out.inputs += static_cast<double>(r.input * replicas);
  out.outputs += static_cast<double>(r.output * replicas);
  out.requests += static_cast<double>(replicas);
}

request_record record_of(const request_progress& r, const std::vector<span>& spans, std::size_t worker) {
  const auto at = [&](std::int32_t i) { return spans[static_cast<std::size_t>(i)]; };
  return {at(r.arrived).begin_s,
          at(r.admitted).begin_s,
          at(r.first_token).end_s,
          at(r.last_token).end_s,
          static_cast<std::int32_t>(r.input),
          static_cast<std::int32_t>(r.output),
          0,
          static_cast<std::int32_t>(worker),
          0};
}

// Adds the gaps between tokens. The gap of a decode starts at the previous iteration that decoded, or at its first
// token if that came later. With speculative decoding a step yields several tokens, which count as evenly spaced.
void add_gaps(samples& out, const batching_schedule& s, const std::vector<span>& spans, std::int64_t replicas,
              double tokens) {
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

// A request streams its first token when the decode worker starts on it.
// [docs/models-and-assumptions.md#disaggregation]
std::vector<request_record> pool_records(const pooled_schedule& s, const timeline& t) {
  const auto prefills = static_cast<std::int32_t>(s.prefill.size());
  const auto at = [&](std::int32_t worker, std::int32_t i) {
    return t.spans[static_cast<std::size_t>(worker)].front()[static_cast<std::size_t>(i)];
  };
  const auto end_of = [&](const pooled_request& r) {
    return r.decode_worker >= 0 ? at(prefills + r.decode_worker, r.decode_last).end_s
                                : at(r.prefill_worker, r.prefill_last).end_s;
  };
  std::vector<request_record> out;
  for (const pooled_request& r : s.requests) {
    request_record& x = out.emplace_back();
    x.input = static_cast<std::int32_t>(r.input);
    x.output = static_cast<std::int32_t>(r.output);
    x.arrival_s = r.sent_after < 0 ? 0 : end_of(s.requests[static_cast<std::size_t>(r.sent_after)]);
    x.last_token_s = end_of(r);
    x.worker = r.decode_worker >= 0 ? prefills + r.decode_worker : r.prefill_worker;
    x.first_token_s = r.decode_worker >= 0 ? at(x.worker, r.decode_first).begin_s : x.last_token_s;
    x.prompt_worker = r.prefill_worker;
    x.admitted_s = r.prefill_worker >= 0 ? at(r.prefill_worker, r.prefill_first).begin_s : x.first_token_s;
  }
  return out;
}

void add_pools(samples& out, const inference_run& run, const timeline& t) {
  const pooled_schedule& s = *run.pools;
  for (const request_record& r : pool_records(s, t)) add_request(out, r, run.front_end, 1);
  for (std::size_t w = 0; w < s.decode.size(); ++w)
    for (std::size_t i = 0; i < s.decode[w].size(); ++i) {
      const span& x = t.spans[s.prefill.size() + w].front()[i];
      out.itl.push_back({(x.end_s - x.begin_s) / run.tokens_per_step, s.decode[w][i].decodes});
    }
}

}  // namespace

std::vector<request_record> records_of(const inference_run& run, const timeline& t) {
  if (run.pools) return pool_records(*run.pools, t);
  std::vector<request_record> out;
  for (std::size_t c = 0; c < run.schedules.size(); ++c)
    for (const request_progress& r : run.schedules[c].requests) {
      out.push_back(record_of(r, t.spans[c].front(), c));
      out.back().workers = static_cast<std::int32_t>(run.workers[c]);
    }
  return out;
}

kv_cache_use cache_use_of(const inference_run& run) {
  kv_cache_use out{run.pools ? run.pools->peak_kv_tokens : 0, run.kv_capacity_tokens};
  for (const batching_schedule& s : run.schedules) out.peak_tokens = std::max(out.peak_tokens, s.peak_kv_tokens);
  return out;
}

inference_metrics measure_inference(const inference_run& run, const timeline& t) {
  samples all;
  inference_metrics m;
  double gpus = 0;
  for (std::size_t c = 0; c < run.schedules.size(); ++c) {
    const batching_schedule& s = run.schedules[c];
    const std::vector<span>& spans = t.spans[c].front();
    for (const request_progress& r : s.requests)
      add_request(all, record_of(r, spans, c), run.front_end, run.workers[c]);
    add_gaps(all, s, spans, run.workers[c], run.tokens_per_step);
    gpus += static_cast<double>(run.planned.classes[c].multiplicity);
  }
  if (run.pools) {
    add_pools(all, run, t);
    for (const rank_class& c : run.planned.classes) gpus += static_cast<double>(c.multiplicity);
  }
  const kv_cache_use cache = cache_use_of(run);
  m.kv_cache_used_fraction = static_cast<double>(cache.peak_tokens) / static_cast<double>(cache.capacity_tokens);
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
