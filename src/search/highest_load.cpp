#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <tuple>

#include "nvlsim/search/highest_load.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/mlperf.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

constexpr double closeness = 0.002;   // relative precision of the rate
constexpr double first_step = 0.01;   // from a load that a longer run judges otherwise; then twice as far
constexpr int max_doublings = 40;     // starting from the scenario's load
constexpr double max_loop = 100'000;  // of a closed loop; more clients give no more information
constexpr double alone =
    1e-4;  // mean requests in flight; at lower loads every request already has the server to itself
constexpr double max_rate = 1e9, max_scale = 1e6;  // limits of the scenario format

/// Most requests of a run that is made longer.
constexpr std::int64_t longest_run = 100'000;

bool is_closed(const inference_workload& w) { return w.load == load_kind::closed_loop; }

double load_of(const inference_workload& w) {
  if (is_closed(w)) return static_cast<double>(w.concurrency);
  if (w.load == load_kind::open_loop || !w.replay->timed) return w.arrivals.rate_per_s;
  return w.rate_scale;
}

/// The workload with `load` clients, requests/s, or times the trace's rate, and `longer` times as many requests.
inference_workload with_load(inference_workload w, double load, std::int64_t longer) {
  if (w.load != load_kind::trace) w.requests *= longer;
  if (is_closed(w)) {
    // Keeps the number of requests per client.
    const double each = static_cast<double>(w.requests) / static_cast<double>(w.concurrency);
    w.concurrency = std::llround(load);
    w.requests = std::max<std::int64_t>(w.concurrency, std::llround(each * load));
  } else if (w.load == load_kind::open_loop || !w.replay->timed) {
    w.arrivals.rate_per_s = load;
    if (w.mlperf) w.requests = std::max(w.requests, mlperf_requests(w));
  } else {
    w.rate_scale = load;
  }
  return w;
}

/// Whether completions keep up with arrivals. Without this test, a run that ends before its queue has grown would
/// sustain any rate.
bool keeps_up(const inference_workload& w, const inference_metrics& m) {
  constexpr double min = 0.9;
  return is_closed(w) || m.requests_per_s >= min * m.offered_requests_per_s.value_or(0);
}

/// Median latencies, or means, and their limits: "ttft 121 ms of 1 ms allowed".
std::string beside_limits(const service_objective& o, const inference_metrics& m) {
  std::vector<std::string> out;
  const auto add = [&](const char* name, std::optional<double> limit, std::optional<double> middle) {
    if (limit && middle)
      out.push_back(fmt::format("{} {} of {} allowed", name, format_quantity(seconds::from_base(*middle)),
                                format_quantity(seconds::from_base(*limit))));
  };
  const auto of = [&](const distribution& d) { return o.means ? d.mean : d.p50; };
  add("ttft", o.ttft_s, of(m.ttft_s));
  add("tpot", o.tpot_s, m.tpot_s ? std::optional(of(*m.tpot_s)) : std::nullopt);
  add("e2e", o.e2e_s, of(m.e2e_s));
  return fmt::format("{}", fmt::join(out, ", "));
}

[[noreturn]] void refuse(const scenario& s, const std::string& what) {
  throw input_error({{s.file, "/workload", what, {}}});
}

/// Ends a run under arrivals as soon as too many requests have missed a limit for the rest to make up for it.
class loss_watch {
 public:
  struct lost {};

  loss_watch(const scenario& s, const inference_workload& w) : objective_(w.objective) {
    if (behind_server(w)) front_end_ = s.stack.inference->front_end;
    serving_outcome arrivals;  // what counts follows from them alone
    for (const served_request& r : generate_requests(w, s.model.max_positions).requests)
      arrivals.requests.push_back({.arrival_s = r.arrival_s});
    std::tie(from_, to_) = counted_arrivals(arrivals, w.measured);
    for (const request_record& r : arrivals.requests) counted_ += counts(r) ? 1 : 0;
  }
  /// Whether losses are known before the end: dates of arrivals are, and means are not asked for.
  static bool can_watch(const inference_workload& w) {
    return w.load == load_kind::open_loop && !w.sessions && !w.objective.means;
  }

  void see(const request_record& r) {
    if (!counts(r)) return;
    const client_view c = seen_by_client(r, front_end_);
    lose(ttft_, objective_.ttft_s && c.ttft_s > *objective_.ttft_s, objective_.share_of(latency::ttft));
    lose(tpot_, objective_.tpot_s && c.tpot_s && *c.tpot_s > *objective_.tpot_s,
         objective_.share_of(latency::tpot));
    lose(e2e_, objective_.e2e_s && c.e2e_s > *objective_.e2e_s, objective_.share_of(latency::e2e));
  }

 private:
  bool counts(const request_record& r) const { return r.arrival_s >= from_ && r.arrival_s <= to_; }
  void lose(std::int64_t& count, bool missed, double share) const {
    count += missed ? 1 : 0;
    if (!service_objective::enough(counted_ - count, counted_, share)) throw lost{};
  }

  const service_objective& objective_;
  front_end_costs front_end_;
  double from_ = 0, to_ = 0;
  std::int64_t counted_ = 0, ttft_ = 0, tpot_ = 0, e2e_ = 0;  ///< requests that count, and that missed each limit
};

class load_search {
 public:
  load_search(const scenario& s, const std::function<void(std::int64_t, std::int64_t)>& report,
              const std::function<bool()>& stop)
      : s_(s), workload_(std::get<inference_workload>(s.workload)), report_(report), stop_(stop),
        shared_(runs_of_layout({s.platform, s.stack, s.model, workload_})) {}

  highest_load run() && {
    try {
      search();
    } catch (const stopped&) {
      out_.stopped = true;
    }
    if (good_ > 0) tell();
    return std::move(out_);
  }

 private:
  struct stopped {};

  void search() {
    const double min = is_closed(workload_) ? static_cast<double>(workload_.replicas) * workload_.pp : 0;
    double at = std::max(std::min(load_of(workload_), highest_load_tried(workload_)), min);
    for (int i = 0; i < max_doublings && (good_ == 0 || bad_ == 0); ++i) {
      try_load(at);
      watched_ = good_ > 0;  // of a lower load that is not held, more is told
      if (bad_ == 0 && is_closed(workload_) && 2 * at * requests_of_client() > max_loop) break;
      if (bad_ == 0 && at >= highest_load_tried(workload_)) break;
      if (bad_ == 0) at = std::min(2 * at, highest_load_tried(workload_));
      else if (good_ == 0 && at > min && in_flight_ > alone) at = std::max(at / 2, min);
      else break;
    }
    for (;;) {
      if (good_ > 0 && shown_longer_ < longer_) judge_again(true, min);
      else if (good_ > 0 && bad_ > 0 && missed_longer_ < longer_) judge_again(false, min);
      else if (good_ > 0 && bad_ > 0 && (is_closed(workload_) ? bad_ - good_ > 1.5 : bad_ / good_ - 1 > closeness))
        try_load(is_closed(workload_) ? std::floor((good_ + bad_) / 2) : (good_ + bad_) / 2);
      else break;
    }
  }

  /// The load that was sustained (`held`) or missed in a shorter run than those that followed is run as long as
  /// they. If it is judged otherwise now, others are, ever further down to `min` or up, until one is judged as it
  /// was.
  void judge_again(bool held, double min) {
    double &same = held ? good_ : bad_, &other = held ? bad_ : good_;
    const double from = same, most = highest_load_tried(workload_), end = held ? min : most;
    watched_ = !held || from > min;
    try_load(from);
    if (other != from) return;
    same = 0;
    const auto is_enough = [&] {
      return held ? in_flight_ <= alone : is_closed(workload_) && good_ * requests_of_client() > max_loop;
    };
    for (double step = first_step; same == 0 && other != end && !is_enough(); step *= 2) {
      watched_ = !held || step < 0.5;
      double next = held && step >= 1 ? other / 2 : from * (held ? 1 - step : 1 + step);
      if (is_closed(workload_))
        next = held ? std::min(std::floor(next), other - 1) : std::max(std::ceil(next), other + 1);
      try_load(held ? std::max(next, min) : std::min(next, most));
    }
    watched_ = true;
  }

  void try_load(double load) {
    if (!holds(load)) {
      bad_ = load;
      missed_longer_ = longer_;
      return;
    }
    good_ = load;
    shown_longer_ = longer_;
    out_.in_flight = in_flight_;
  }

  void tell() {
    out_.found = true;
    out_.bounded = bad_ > 0;
    out_.load = good_;
    out_.workload = with_load(workload_, good_, shown_longer_);
    std::int64_t all = out_.workload.requests;
    if (workload_.load == load_kind::trace) {  // part of the trace or all of it
      const auto in_file = static_cast<std::int64_t>(workload_.replay->list.requests.size());
      all = all > 0 ? std::min(all, in_file) : in_file;
    }
    out_.counted = static_cast<double>(all) * (1 - workload_.measured.warmup - workload_.measured.tail);
  }

  double requests_of_client() const {
    return static_cast<double>(workload_.requests) / static_cast<double>(workload_.concurrency);
  }

  /// Whether the load is sustained. A run that is over before it shows is run again, longer, and so are all that
  /// follow.
  bool holds(double load) {
    for (;;) {
      const inference_workload w = with_load(workload_, load, longer_);
      if (stop_ && stop_()) throw stopped{};
      if (report_) report_(out_.runs, 0);
      ++out_.runs;
      const std::optional<serving_run> played = play(w);
      if (!played) {
        ++out_.cut;
        out_.short_run = false;
        return false;
      }
      const serving_run& run = *played;
      if (!run.reasons.empty()) refuse(s_, run.reasons.front());
      const inference_metrics m = measure_inference(run, w);
      in_flight_ = m.requests_in_flight;
      const bool kept = m.objective_met && !m.saturated;
      const std::vector<std::string> short_for = too_short(run.outcome, w, m);
      if (kept && !m.still_fills && keeps_up(w, m) && short_for.empty()) return true;
      if (kept && w.load != load_kind::trace && 4 * w.requests <= longest_run) {
        longer_ *= 4;
        continue;
      }
      out_.short_run = kept;
      out_.missed = kept && !short_for.empty() ? short_for.front() : beside_limits(w.objective, m);
      return false;
    }
  }

  /// Nothing if too many requests missed a limit.
  std::optional<serving_run> play(const inference_workload& w) {
    serving_options o{.traced = false, .shared = shared_.get()};
    std::optional<loss_watch> watch;
    if (watched_ && loss_watch::can_watch(w)) watch.emplace(s_, w);
    if (watch || stop_)
      o.seen = [&](const request_record& r) {
        if (stop_ && stop_()) throw stopped{};
        if (watch) watch->see(r);
      };
    try {
      return serve(s_.platform, s_.stack, s_.model, w, o);
    } catch (const loss_watch::lost&) {
      return std::nullopt;
    }
  }

  const scenario& s_;
  const inference_workload& workload_;
  const std::function<void(std::int64_t, std::int64_t)>& report_;
  const std::function<bool()>& stop_;
  std::shared_ptr<shared_runs> shared_;  ///< they differ in the load alone
  highest_load out_;
  double good_ = 0, bad_ = 0;  ///< highest load that is sustained, lowest that is not; 0: none yet
  double in_flight_ = 0;       ///< in the last run
  std::int64_t longer_ = 1;    ///< number of requests over that of the scenario
  std::int64_t shown_longer_ = 1, missed_longer_ = 1;  ///< in the runs that judged `good_` and `bad_`
  bool watched_ = false;                               ///< runs end once they are lost
};

}  // namespace

double highest_load_tried(const inference_workload& w) {
  if (w.load == load_kind::trace && w.replay->timed) return max_scale;
  return w.mlperf ? std::floor(static_cast<double>(max_requests) / mlperf_run_s) : max_rate;
}

highest_load find_highest_load(const scenario& s,
                               const std::function<void(std::int64_t runs, std::int64_t all)>& report,
                               const std::function<bool()>& stop) {
  const auto* w = std::get_if<inference_workload>(&s.workload);
  if (!w || (!is_closed(*w) && w->load != load_kind::open_loop && w->load != load_kind::trace))
    refuse(s, "the highest load needs a closed_loop, open_loop or trace workload");
  if (!w->objective.any()) refuse(s, "the highest load needs an objective (slo)");
  return load_search(s, report, stop).run();
}

}  // namespace nvlsim
