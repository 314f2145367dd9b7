#include "nvlsim/measurements/pooled_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/serving/pooled_plan.hpp"
#include "nvlsim/serving/summary.hpp"
#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t no_limit = std::int64_t{1} << 40;

/// All whole numbers in a text, in order.
std::vector<int> numbers_in(std::string_view text) {
  std::vector<int> out;
  bool inside = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) out.push_back(0);
    if (digit && out.back() < 100'000) out.back() = 10 * out.back() + (c - '0');
    inside = digit;
  }
  return out;
}

/// A pool of workers with `ranks` GPUs each. With attention data parallelism each rank has its own sequences.
rank_counts pool_of(int workers, int ranks, int ep, bool attention_dp, bool routed) {
  rank_counts out;
  out.replicas = std::max(workers, 1);
  (attention_dp && routed ? out.attention_dp : out.tp) = std::max(ranks, 1);
  out.ep = routed ? std::clamp(ep, 1, std::max(ranks, 1)) : 1;
  return out;
}

struct both_pools {
  rank_counts prefill, decode;
};

/// Parses "prefill 2x(tp1,dp4,ep4), decode 5x(tp8,dp1,ep8)". Worker sizes follow from the numbers of GPUs.
std::optional<both_pools> pools_in_notes(const std::string& notes, int prefill_gpus, int decode_gpus,
                                         bool routed) {
  const std::size_t from = notes.find("prefill ");
  const std::size_t to = from == std::string::npos ? from : notes.find("), decode ", from);
  if (to == std::string::npos) return std::nullopt;
  const auto n = numbers_in(std::string_view(notes).substr(from, notes.find(')', to + 1) - from));
  if (n.size() != 8 || n[0] < 1 || n[4] < 1) return std::nullopt;
  constexpr int wide = 8;  // from this many ranks SGLang uses expert parallelism, whatever the layout column says
  const auto one = [&](int workers, int gpus, int dp, int ep) {
    const int ranks = std::max(gpus / workers, 1);
    return pool_of(workers, ranks, dp > 1 && ep <= 1 && ranks > wide ? ranks : ep, dp > 1, routed);
  };
  return both_pools{one(n[0], prefill_gpus, n[2], n[3]), one(n[4], decode_gpus, n[6], n[7])};
}

/// Parses "2 prefill workers x 4 GPU, 4 decode workers x 16 GPU" or "1 prefill + 1 decode instance".
std::optional<both_pools> workers_in_notes(const std::string& notes, bool routed) {
  const std::size_t end = notes.find(" decode workers x ");
  const std::size_t begin = notes.find("disaggregation: ");
  if (end == std::string::npos || begin == std::string::npos) return std::nullopt;
  const auto n = numbers_in(std::string_view(notes).substr(begin, notes.find(';', end) - begin));
  if (n.size() != 4) return std::nullopt;
  return both_pools{pool_of(n[0], n[1], n[1], n[1] > 1, routed), pool_of(n[2], n[3], n[3], n[3] > 1, routed)};
}

/// Number of racks (or servers) needed: small workers are not split, large ones take whole racks.
int domains_for(const rank_counts& l, int domain) {
  const int each = l.gpus_per_replica();
  return each >= domain ? (each + domain - 1) / domain * l.replicas
                        : (l.replicas + domain / each - 1) / (domain / each);
}

double mean_in_column(const metric_target& t, const std::vector<double>& ttft, const std::vector<double>& tpot) {
  std::vector<double> v = t.what == served_metric::ttft ? ttft : tpot;
  if (v.empty()) return 0;
  if (t.median) return median_of(std::move(v));
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

}  // namespace

double in_column(const metric_target& t, const client_times& c, double tokens_per_s, double gpus) {
  switch (t.what) {
    case served_metric::tpot:
      return c.tpot_s * 1e3;
    case served_metric::ttft:
      return c.ttft_s * 1e3;
    case served_metric::throughput:
      return tokens_per_s;
    case served_metric::throughput_per_gpu:
      return tokens_per_s / gpus;
  }
  return 0;
}

std::optional<std::string> read_pools(const csv_row& row, inference_row& out) {
  inference_workload& w = out.workload;
  const bool routed = has_routed_experts(*out.net);
  const auto prefill_gpus = static_cast<int>(row.integer("prefill_gpus").value_or(0));
  const auto decode_gpus = static_cast<int>(row.integer("decode_gpus").value_or(0));
  if (prefill_gpus < 1 || decode_gpus < 1) return std::nullopt;
  std::string assumed;
  std::optional<both_pools> pools = pools_in_notes(row["notes"], prefill_gpus, decode_gpus, routed);
  if (!pools) pools = workers_in_notes(row["notes"], routed);
  if (!pools) {
    constexpr int usual_worker = 4;
    constexpr std::int64_t busy = 16;  // requests per GPU from which attention data parallelism pays off
    const int ep = std::max(static_cast<int>(row.integer("ep").value_or(1)), 1);
    const int size = ep > 1 ? std::min(ep, decode_gpus) : decode_gpus;
    const bool apart = row.integer("concurrency").value_or(0) / decode_gpus >= busy || size > 8;
    const int prefill_size = std::min(usual_worker, prefill_gpus);
    pools = both_pools{pool_of(prefill_gpus / prefill_size, prefill_size, prefill_size, true, routed),
                       pool_of(decode_gpus / size, size, size, apart, routed)};
    assumed =
        fmt::format("pools assumed: prefill {} x {} GPUs, decode {} x {} GPUs{}", pools->prefill.replicas,
                    prefill_size, pools->decode.replicas, size, apart ? " with attention data parallelism" : "");
  }
  w.prefill_pool = pool_layout{pools->prefill, {}};
  static_cast<rank_counts&>(w) = pools->decode;
  out.gpus = w.gpus();
  const int domain = static_cast<int>(out.hardware.gpus_per_rack());
  const int racks =
      w.gpus() <= domain ? 1 : domains_for(pools->prefill, domain) + domains_for(pools->decode, domain);
  out.hardware.racks = std::max(out.hardware.racks, racks);
  return assumed;
}

pooled_schedule schedule_pooled_row(const inference_row& r, const stack& s) {
  const inference_workload& w = r.workload;
  std::vector<std::string> reasons;
  const request_lengths lengths = draw_lengths(w, w.requests);
  pool_setup setup = setup_pools({r.hardware, s, *r.net, w}, extent_of(lengths), reasons);
  // The published run did fit.
  if (!reasons.empty())
    setup.decode.worker.kv_capacity_tokens = setup.prefill.worker.kv_capacity_tokens = no_limit;
  iteration_costs decode(r.hardware, s, *r.net, decode_workload(w));
  std::optional<iteration_costs> prefill;
  if (w.prefill_pool) prefill.emplace(r.hardware, s, *r.net, prefill_workload(w));
  pool_prices prices;
  prices.decode = [&](const iteration& it) { return decode.time(content_of(it)).base(); };
  prices.prefill = [&](const iteration& it) { return prefill->time(content_of(it)).base(); };
  priced_transfer idle, one;
  if (w.prefill_pool) {
    idle = kv_transfer(r.hardware, s, *r.net, w, 0);
    one = kv_transfer(r.hardware, s, *r.net, w, w.input.mean);
  }
  prices.transfer = [&](std::int64_t tokens) {
    return (idle.time + (one.time - idle.time) * (static_cast<double>(tokens) / w.input.mean)).base();
  };
  return schedule_pools(lengths, setup, prices);
}

std::vector<double> simulate_pooled_row(const inference_row& r, const stack& s) {
  const inference_workload& w = r.workload;
  const pooled_schedule run = schedule_pooled_row(r, s);
  const front_end_costs& server = s.inference->front_end;
  std::vector<double> ttft, tpot;
  double outputs = 0;
  for (const pooled_request& q : run.requests) {
    const double gaps = static_cast<double>(q.output - 1),
                 each = gaps > 0 ? (q.end_s - q.decode_begin_s) / gaps : 0;
    if (gaps > 0) tpot.push_back(each);
    ttft.push_back(q.decode_begin_s - q.sent_s + server.held_back_s(gaps, each) +
                   server.way_in(static_cast<double>(q.input)).base());
    outputs += static_cast<double>(q.output);
  }
  std::vector<double> out;
  for (const metric_target& t : r.targets) {
    client_times c;
    c.tpot_s = mean_in_column(t, ttft, tpot);
    c.ttft_s = c.tpot_s;
    // Decode-only workers are measured while full.
    const double per_second = w.prompts_cached ? static_cast<double>(w.concurrency) /
                                                     mean_in_column({served_metric::tpot, "", 0}, ttft, tpot)
                                               : outputs / run.makespan_s;
    out.push_back(in_column(t, c, per_second, r.gpus));
  }
  return out;
}

std::vector<double> simulate_pooled_row(const inference_row& r, const stack& s, const pooled_summary& schedule) {
  const auto times = [&](const inference_workload& w, const schedule_summary& of) {
    std::vector<double> out;
    if (of.classes.empty()) return out;
    iteration_costs costs(r.hardware, s, *r.net, w);
    for (const iteration_class& c : of.classes) out.push_back(costs.time(c.mean).base());
    return out;
  };
  client_times c =
      mean_times(schedule.decode, times(decode_workload(r.workload), schedule.decode), s.inference->front_end);
  if (r.workload.prefill_pool)
    c.ttft_s += mean_times(schedule.prefill, times(prefill_workload(r.workload), schedule.prefill), {}).ttft_s;
  c.ttft_s += schedule.between_s;
  std::vector<double> out;
  for (const metric_target& t : r.targets)
    out.push_back(in_column(t, c, static_cast<double>(r.workload.concurrency) / c.tpot_s, r.gpus));
  return out;
}

}  // namespace nvlsim
