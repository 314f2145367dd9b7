#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"

namespace nvlsim {
namespace {

struct window {
  double from = 0, to = 0;
  bool whole = false;
};

/// First and last time of the counted requests: skips the first `warmup` and the last `tail` fractions.
window window_of(const serving_outcome& o, const measured_part& part, double request_record::*date) {
  std::vector<std::pair<double, std::int64_t>> dates;  // with the number of equal requests
  dates.reserve(o.requests.size());
  std::int64_t all = 0;
  for (const request_record& r : o.requests) {
    dates.emplace_back(r.*date, r.workers);
    all += r.workers;
  }
  const auto n = static_cast<double>(all);
  const double first = std::floor(part.warmup * n);
  const double last = std::max(std::ceil((1 - part.tail) * n), first + 1) - 1;
  if (all == std::ssize(dates)) {  // each by itself: two ranks without sorting the rest
    const auto rank = [&](double r) {
      return dates.begin() + std::min(static_cast<std::ptrdiff_t>(r), std::ssize(dates) - 1);
    };
    std::nth_element(dates.begin(), rank(first), dates.end());
    const double from = rank(first)->first;
    std::nth_element(rank(first), rank(last), dates.end());
    return {from, rank(last)->first, false};
  }
  std::sort(dates.begin(), dates.end());
  const auto at = [&](double rank) {
    double below = 0;
    for (const auto& [t, count] : dates)
      if ((below += static_cast<double>(count)) > rank) return t;
    return dates.back().first;
  };
  return {at(first), at(last), false};
}

/// The steady part of a closed loop, if the run has one: all clients are there, and none is in its first session.
std::optional<window> steady_part(const serving_outcome& o, const measured_part& part) {
  if (!part.steady || o.steady_from_s < 0 || !(o.steady_to_s > o.steady_from_s)) return std::nullopt;
  return window{o.steady_from_s, o.steady_to_s, false};
}

window of_arrivals(const serving_outcome& o, const measured_part& part) {
  if (const auto steady = steady_part(o, part)) return *steady;
  return window_of(o, part, &request_record::arrival_s);
}

/// Whether the server is saturated: at the last arrival, the queue holds more than 2 % of all requests, more than
/// one per replica and ten, and more than 1.5 times as many as halfway. [docs/serving.md#saturation]
bool overwhelmed(const serving_outcome& o, const inference_workload& w) {
  if (w.load != load_kind::open_loop && w.load != load_kind::trace) return false;
  constexpr std::int64_t few = 10;  // a shorter queue says nothing about how it goes on
  const auto workers = static_cast<std::int64_t>(o.workers.size());
  const auto n = static_cast<std::int64_t>(o.requests.size());
  return o.at_last.waiting * 50 > n && o.at_last.waiting > std::max(workers, few) &&
         2 * o.at_last.waiting > 3 * o.at_half.waiting;
}

/// Whether the number of requests in flight is still growing: at the last arrival it exceeds the halfway number by
/// 25 % plus three standard deviations. Traces do not count: their rate changes.
bool still_fills(const serving_outcome& o, const inference_workload& w) {
  if (w.load != load_kind::open_loop) return false;
  const auto half = static_cast<double>(o.at_half.in_flight), last = static_cast<double>(o.at_last.in_flight);
  return last > 1.25 * half + 3 * std::sqrt(half);
}

/// The time that rates cover: from the first to the last counted completion. It is the whole run if all requests
/// count, if the two coincide, or if the server is saturated: by then it has processed prompts of requests that
/// complete later. [docs/serving.md#what-counts]
window of_ends(const serving_outcome& o, const inference_workload& w) {
  const window whole{0, o.end_s, true};
  if (const auto steady = steady_part(o, w.measured)) return *steady;
  if ((w.measured.warmup <= 0 && w.measured.tail <= 0) || overwhelmed(o, w)) return whole;
  const window out = window_of(o, w.measured, &request_record::last_token_s);
  return out.to > out.from ? out : whole;
}

/// Share of [begin, end] between two times.
double inside(double from, double to, double begin, double end) {
  if (!(end > begin)) return begin >= from && begin <= to ? 1 : 0;
  return std::max(0.0, std::min(end, to) - std::max(begin, from)) / (end - begin);
}

/// Sums over requests. Sums that become rates cover the window only.
struct tally {
  std::vector<weighted> ttft, queue, e2e, tpot;
  double inputs = 0, outputs = 0, finished = 0, in_flight_s = 0, cached = 0, prompts = 0;
  std::int64_t counted = 0, good = 0, ttft_kept = 0, tpot_kept = 0, e2e_kept = 0, preemptions = 0;
  std::vector<std::int64_t> percentiles_kept;  ///< by limit
};

/// `alike`: number of equal requests.
void judge(tally& t, const client_view& c, const service_objective& o, std::int64_t alike) {
  const bool ttft = !o.ttft_s || c.ttft_s <= *o.ttft_s, e2e = !o.e2e_s || c.e2e_s <= *o.e2e_s;
  const bool tpot = !o.tpot_s || !c.tpot_s || *c.tpot_s <= *o.tpot_s;
  t.ttft_kept += alike * ttft;
  t.tpot_kept += alike * tpot;
  t.e2e_kept += alike * e2e;
  t.good += alike * c.keeps(o);
  t.percentiles_kept.resize(o.percentiles.size());
  for (std::size_t i = 0; i < o.percentiles.size(); ++i)
    t.percentiles_kept[i] += alike * (c.latency_of(o.percentiles[i].of).value_or(0) <= o.percentiles[i].limit_s);
}

/// Whether so many requests as each limit asks for are within it.
bool shares_keep(const service_objective& o, const tally& t) {
  const auto enough = [&](std::int64_t kept, double share) {
    return service_objective::enough(kept, t.counted, share);
  };
  for (std::size_t i = 0; i < o.percentiles.size(); ++i)
    if (!enough(t.percentiles_kept[i], o.percentiles[i].share)) return false;
  return enough(t.ttft_kept, o.share_of(latency::ttft)) && enough(t.tpot_kept, o.share_of(latency::tpot)) &&
         enough(t.e2e_kept, o.share_of(latency::e2e));
}

double mean_of(const std::vector<weighted>& values) {
  double sum = 0, n = 0;
  for (const weighted& v : values) {
    sum += v.value * static_cast<double>(v.count);
    n += static_cast<double>(v.count);
  }
  return n > 0 ? sum / n : 0;
}

bool means_keep(const service_objective& o, const tally& t) {
  return (!o.ttft_s || mean_of(t.ttft) <= *o.ttft_s) && (!o.tpot_s || mean_of(t.tpot) <= *o.tpot_s) &&
         (!o.e2e_s || mean_of(t.e2e) <= *o.e2e_s);
}

tally count(const serving_run& run, const inference_workload& w, const window& arrivals, const window& ends) {
  tally t;
  for (const request_record& r : run.outcome.requests) {
    const auto alike = static_cast<double>(r.workers);
    const double share = alike * counted_share(r, ends.from, ends.to, ends.whole);
    t.inputs += r.input * share;
    t.outputs += r.output * share;
    t.finished += share;
    t.in_flight_s += alike * time_in_system(r, ends.from, ends.to);
    t.cached += alike * r.cached;
    t.prompts += alike * r.input;
    t.preemptions += std::int64_t{r.workers} * r.preemptions;
    if (r.arrival_s < arrivals.from || r.arrival_s > arrivals.to) continue;
    const client_view c = seen_by_client(r, run.front_end);
    t.counted += r.workers;
    t.ttft.push_back({c.ttft_s, r.workers});
    t.e2e.push_back({c.e2e_s, r.workers});
    t.queue.push_back({r.admitted_s - r.arrival_s, r.workers});
    if (c.tpot_s) t.tpot.push_back({*c.tpot_s, r.workers});
    judge(t, c, w.objective, r.workers);
  }
  return t;
}

}  // namespace

// By the share of its tokens in the window: ends alone come in waves where requests began together.
double counted_share(const request_record& r, double from, double to, bool whole) {
  if (r.last_token_s > r.first_token_s) return inside(from, to, r.first_token_s, r.last_token_s);
  return whole || r.last_token_s > from ? inside(from, to, r.last_token_s, r.last_token_s) : 0;
}

double time_in_system(const request_record& r, double from, double to) {
  return inside(from, to, r.arrival_s, r.last_token_s) * (r.last_token_s - r.arrival_s);
}

bool client_view::keeps(const service_objective& o) const {
  return (!o.ttft_s || ttft_s <= *o.ttft_s) && (!o.e2e_s || e2e_s <= *o.e2e_s) &&
         (!o.tpot_s || !tpot_s || *tpot_s <= *o.tpot_s);
}

std::optional<double> client_view::latency_of(latency l) const {
  return l == latency::ttft ? ttft_s : l == latency::e2e ? e2e_s : tpot_s;
}

client_view seen_by_client(const request_record& r, const front_end_costs& server) {
  client_view out;
  const double first = r.first_token_s - r.arrival_s, gaps = static_cast<double>(r.output) - 1;
  out.e2e_s = r.last_token_s - r.arrival_s;
  if (gaps > 0) out.tpot_s = (out.e2e_s - first) / gaps;
  const double held = server.held_back_s(gaps, out.tpot_s.value_or(0));
  const double way_in = server.way_in(r.input).base();
  out.ttft_s = first + held + way_in;
  out.e2e_s += held + way_in;  // every token is delayed alike
  return out;
}

std::optional<distribution> distribution_of(std::vector<weighted> values) {
  std::int64_t total = 0;
  double sum = 0;
  for (const weighted& w : values) {
    total += w.count;
    sum += w.value * static_cast<double>(w.count);
  }
  if (total == 0) return std::nullopt;
  const auto smaller = [](const weighted& a, const weighted& b) { return a.value < b.value; };
  distribution d{.mean = sum / static_cast<double>(total)};
  struct {
    std::int64_t percent;
    double* at;
  } const wanted[] = {{50, &d.p50}, {90, &d.p90}, {95, &d.p95}, {99, &d.p99}, {100, &d.max}};
  if (total == std::ssize(values)) {  // each by itself: a few ranks without sorting the rest
    auto from = values.begin();
    for (const auto& [percent, at] : wanted) {
      const auto rank = values.begin() + (percent * total + 99) / 100 - 1;
      if (rank >= from) std::nth_element(from, rank, values.end(), smaller);
      *at = rank->value;
      from = rank;
    }
    return d;
  }
  std::sort(values.begin(), values.end(), smaller);
  std::int64_t below = 0;
  std::size_t next = 0;
  for (const weighted& w : values) {
    below += w.count;
    for (; next < std::size(wanted) && below * 100 >= wanted[next].percent * total; ++next)
      *wanted[next].at = w.value;
  }
  return d;
}

std::pair<double, double> counted_time(const serving_outcome& o, const inference_workload& w) {
  const window ends = of_ends(o, w);
  return {ends.from, ends.to};
}

std::vector<std::string> too_short(const serving_outcome& o, const inference_workload& w,
                                   const inference_metrics& m) {
  // In request latencies. In shorter times, ends of requests that began together dominate; a closed loop that has
  // more than its first and last generation has one of at least the time of a request.
  constexpr double few_lives = 2, few_lives_of_clients = 0.5;
  const window ends = of_ends(o, w);
  const double rates_s = ends.to - ends.from;
  std::vector<std::string> out;
  if (w.measured.steady && !steady_part(o, w.measured))
    out.emplace_back(
        "the run is too short: it has no steady part, and rates and latencies include its beginning and end; use "
        "three requests or sessions a client or more");
  const bool steady = w.measured.steady && out.empty();
  if (rates_s < (steady                                     ? few_lives_of_clients
                 : m.offered_requests_per_s.value_or(0) > 0 ? few_lives
                                                            : 0) *
                    m.e2e_s.mean)
    out.push_back(
        fmt::format("the run is too short: rates cover {:.4g} s, but a request takes {:.4g} s; use more requests",
                    rates_s, m.e2e_s.mean));
  return out;
}

std::pair<double, double> counted_arrivals(const serving_outcome& o, const measured_part& part) {
  const window w = of_arrivals(o, part);
  return {w.from, w.to};
}

kv_cache_use cache_use_of(const serving_run& run) {
  kv_cache_use out{0, run.kv_capacity_tokens};
  for (const worker_record& l : run.outcome.workers)
    if (!l.prefills) out.peak_tokens = std::max(out.peak_tokens, l.peak_kv_tokens);
  return out;
}

inference_metrics measure_inference(const serving_run& run, const inference_workload& w) {
  const serving_outcome& o = run.outcome;
  const window arrivals = of_arrivals(o, w.measured), ends = of_ends(o, w);
  tally t = count(run, w, arrivals, ends);
  const double time = ends.to - ends.from, arriving = arrivals.to - arrivals.from;
  const double gpus = static_cast<double>(w.gpus());
  inference_metrics m;
  const auto per_second = [&](double x) { return time > 0 ? x / time : 0; };
  m.output_tokens_per_s = per_second(t.outputs);
  m.output_tokens_per_s_per_gpu = m.output_tokens_per_s / gpus;
  m.total_tokens_per_s = per_second(t.inputs + t.outputs);
  m.total_tokens_per_s_per_gpu = m.total_tokens_per_s / gpus;
  m.requests_per_s = per_second(t.finished);
  const bool arrives = w.load == load_kind::open_loop || w.load == load_kind::trace;
  if (arrives && arriving > 0) m.offered_requests_per_s = static_cast<double>(t.counted - 1) / arriving;
  m.requests_in_flight = per_second(t.in_flight_s);
  m.time_in_system_s = t.finished > 0 ? t.in_flight_s / t.finished : 0;
  m.prefix_cache_hit_fraction = t.cached / t.prompts;
  m.preemptions = t.preemptions;
  m.measured_requests = t.counted;
  const kv_cache_use cache = cache_use_of(run);
  m.kv_cache_used_fraction = static_cast<double>(cache.peak_tokens) / static_cast<double>(cache.capacity_tokens);
  const auto n = static_cast<double>(t.counted);
  if (w.objective.any()) {
    m.slo_attained_fraction = static_cast<double>(t.good) / n;
    m.goodput_requests_per_s = m.requests_per_s * *m.slo_attained_fraction;
    m.objective_met = w.objective.means ? means_keep(w.objective, t) : shares_keep(w.objective, t);
  }
  m.ttft_s = distribution_of(std::move(t.ttft)).value();
  m.queue_s = distribution_of(std::move(t.queue)).value();
  m.e2e_s = distribution_of(std::move(t.e2e)).value();
  m.tpot_s = distribution_of(std::move(t.tpot));
  m.itl_s = distribution_of(o.gaps.values());
  if (m.tpot_s) m.output_tokens_per_s_per_user = 1 / m.tpot_s->mean;
  m.saturated = overwhelmed(o, w);
  m.still_fills = still_fills(o, w);
  return m;
}

}  // namespace nvlsim
