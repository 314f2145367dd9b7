// Serving simulation with a clock: arrivals, router and workers.
#include <algorithm>
#include <array>
#include <limits>
#include <queue>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/serving/serving.hpp"
#include "serving/batch_scheduler.hpp"

namespace nvlsim {
namespace {

/// An event; earlier ones first, then lower numbers.
struct timed_event {
  double at;
  std::int32_t who;
  bool operator>(const timed_event& o) const { return at > o.at || (at == o.at && who > o.who); }
};
using agenda = std::priority_queue<timed_event, std::vector<timed_event>, std::greater<>>;

struct worker : worker_state {
  worker(const schedule_limits& l, bool prompts_alone) : worker_state(l), prefills(prompts_alone) {}

  bool prefills;
  std::int32_t kind = 0;
  double begin = 0, end = 0;
  double last_decode = 0;  ///< end of the last iteration with decodes
  std::vector<std::pair<double, std::int64_t>>
      joined;  ///< sequences that joined since, by the time of their last token
};

class server {
 public:
  server(const request_list& list, const server_settings& s, const iteration_pricing& price)
      : list_(list), set_(s), price_(price) {
    const std::size_t n = list.requests.size();
    out_.requests.resize(n);
    decoding_ = static_cast<std::size_t>(s.workers);
    out_.workers.resize(decoding_ + static_cast<std::size_t>(s.prefill ? s.prefill->workers : 0));
    workers_.reserve(out_.workers.size());
    for (std::size_t i = 0; i < out_.workers.size(); ++i) {
      out_.workers[i].prefills = i >= decoding_;
      workers_.emplace_back(i < decoding_ ? s.worker : s.prefill->worker, i >= decoding_);
    }
    next_turn_.assign(n, -1);
    for (std::size_t i = 0; i < n; ++i) {
      const served_request& r = list.requests[i];
      out_.requests[i].input = static_cast<std::int32_t>(r.input);
      out_.requests[i].output = static_cast<std::int32_t>(r.output);
      if (r.after >= 0) next_turn_[static_cast<std::size_t>(r.after)] = static_cast<std::int32_t>(i);
    }
  }

  serving_outcome run() && {
    for (std::int64_t c = 0; c < set_.clients; ++c) begin_session(0);
    begin_iterations(0);
    for (;;) {
      const double coming = next_arrival(), ending = ends_.empty() ? never : ends_.top().at;
      if (coming == never && ending == never) break;
      if (coming <= ending) {
        arrive(coming);
        begin_iterations(coming);
      } else {
        end_iteration(static_cast<std::size_t>(ends_.top().who));
      }
    }
    for (std::size_t i = 0; i < workers_.size(); ++i)
      out_.workers[i].peak_kv_tokens = workers_[i].scheduler.peak_kv_tokens();
    return std::move(out_);
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  const served_request& request(std::int32_t i) const { return list_.requests[static_cast<std::size_t>(i)]; }
  request_record& record(std::int32_t i) { return out_.requests[static_cast<std::size_t>(i)]; }
  batch_scheduler::names names_of(const served_request& r) const {
    return {list_.prefixes.data() + r.first_prefix, r.prefixes};
  }

  /// Skips requests that wait for others.
  void find_start() {
    while (next_start_ < list_.requests.size() && list_.requests[next_start_].after >= 0) ++next_start_;
  }

  double next_arrival() {
    find_start();
    double t = expected_.empty() ? never : expected_.top().at;
    if (!deliveries_.empty()) t = std::min(t, deliveries_.top().at);
    if (set_.clients == 0 && next_start_ < list_.requests.size())
      t = std::min(t, list_.requests[next_start_].arrival_s);
    return t;
  }

  /// Handles all arrivals up to `t`, before iterations begin.
  void arrive(double t) {
    while (next_arrival() <= t) {
      if (!deliveries_.empty() && deliveries_.top().at <= t) {
        const std::int32_t i = deliveries_.top().who;
        deliveries_.pop();
        deliver(i);
      } else if (!expected_.empty() && expected_.top().at <= t) {
        const std::int32_t i = expected_.top().who;
        expected_.pop();
        submit(i, t);
      } else {
        submit(static_cast<std::int32_t>(next_start_++), t);
      }
    }
  }

  /// A client of a closed loop sends its next request, or the first of its next session.
  void begin_session(double t) {
    find_start();
    if (next_start_ < list_.requests.size()) submit(static_cast<std::int32_t>(next_start_++), t);
  }

  void count_in_flight(double t, std::int64_t change) {
    out_.requests_times_s += static_cast<double>(in_flight_) * (t - counted_at_);
    counted_at_ = t;
    in_flight_ += change;
  }

  void submit(std::int32_t i, double t) {
    count_in_flight(t, 1);
    const served_request& r = request(i);
    record(i).arrival_s = t;
    if (set_.prompts_cached) {
      deliver(i);
    } else if (set_.prefill) {  // its output is the first token
      const std::size_t to = choose(r, router_policy::prefix_aware, decoding_, workers_.size());
      workers_[to].scheduler.submit(i, r.input, 1, names_of(r));
      record(i).prompt_worker = static_cast<std::int32_t>(to);
      hand(i, to);
    } else {
      const std::size_t to = choose(r, set_.router, 0, decoding_);
      workers_[to].scheduler.submit(i, r.input, r.output, names_of(r));
      hand(i, to);
    }
    ++arrived_;
    if (arrived_ == (list_.requests.size() + 1) / 2) out_.at_half = {waiting_, in_flight_};
    if (arrived_ == list_.requests.size()) out_.at_last = {waiting_, in_flight_};
  }

  /// A KV cache arrives at its decode worker.
  void deliver(std::int32_t i) {
    const served_request& r = request(i);
    const std::size_t to = choose(r, router_policy::least_loaded, 0, decoding_);
    workers_[to].scheduler.submit_cached(i, r.input, r.output);
    hand(i, to);
  }

  void hand(std::int32_t i, std::size_t to) {
    record(i).worker = static_cast<std::int32_t>(to);
    workers_[to].in_hand += 1;
    ++waiting_;
    if (!workers_[to].busy) woken_.push_back(to);
  }

  void begin_iterations(double t) {
    for (const std::size_t i : woken_)
      if (!workers_[i].busy && !workers_[i].scheduler.idle()) begin_iteration(i, t);
    woken_.clear();
  }

  /// Picks one of the workers in [`first`, `end`).
  std::size_t choose(const served_request& r, router_policy how, std::size_t first, std::size_t end) {
    const std::size_t workers = end - first;
    if (workers == 1) return first;
    std::size_t& turn = turn_[first > 0 ? 1 : 0];
    if (how == router_policy::round_robin) return first + turn++ % workers;
    return first + least_in_turn(workers, turn, [&](std::size_t i) {
             const worker& w = workers_[first + i];
             return how == router_policy::least_loaded
                        ? w.in_hand
                        : w.load() - w.scheduler.cached_tokens(names_of(r), r.input);
           });
  }

  void begin_iteration(std::size_t i, double t) {
    worker& w = workers_[i];
    w.now = w.scheduler.step();
    const iteration_price p = w.prefills ? set_.prefill->price(w.now) : price_(w.now);
    w.busy = true;
    w.kind = p.kind;
    w.begin = t;
    w.end = t + p.seconds;
    for (const auto& [q, cached] : w.scheduler.last().admitted) {
      record(q).cached = static_cast<std::int32_t>(cached);
      if (record(q).admitted_s >= 0) continue;  // readmitted after a preemption
      record(q).admitted_s = t;
      --waiting_;
    }
    // The first token is streamed when the decode worker starts on the request.
    for (const std::int32_t q : w.scheduler.last().taken_over) {
      record(q).first_token_s = t;
      w.joined.emplace_back(t, 1);
      --waiting_;
      if (record(q).admitted_s < 0) record(q).admitted_s = t;
    }
    for (const std::int32_t q : w.scheduler.last().preempted) {
      record(q).preemptions += 1;
      held_up_.emplace_back(q, std::max(w.last_decode, record(q).first_token_s));
    }
    ends_.push({w.end, static_cast<std::int32_t>(i)});
  }

  /// Token gaps of sequences that got a token: those that also decoded last time, those that joined since, and
  /// those delayed by a preemption.
  void count_gaps(worker& w, double t) {
    const batch_scheduler::events& e = w.scheduler.last();
    std::int64_t old = w.now.decodes;
    for (const std::int32_t q : e.resumed) out_.gaps.add(t - held_since(q), 1);
    for (const std::int32_t q : e.returned) w.joined.emplace_back(held_since(q), 1);
    if (w.now.decodes > 0) {
      for (const auto& [since, count] : w.joined) {
        add_gap(t - since, std::min(count, old));
        old -= std::min(count, old);
      }
      add_gap(t - w.last_decode, old);
      w.joined.clear();
      w.last_decode = t;
    }
    std::int64_t join = 0;
    const auto goes_on = [&](std::int32_t q) {
      return std::find(e.finished.begin(), e.finished.end(), q) == e.finished.end();
    };
    for (const std::int32_t q : e.first_tokens) join += record(q).output > 1 ? 1 : 0;
    for (const std::int32_t q : e.resumed) join += goes_on(q) ? 1 : 0;
    if (join > 0) w.joined.emplace_back(t, join);
  }

  /// With drafts a step yields several tokens, counted as evenly spaced.
  void add_gap(double gap, std::int64_t count) { out_.gaps.add(gap / set_.worker.tokens_per_step, count); }

  /// Time of the last token of a preempted request that now resumes.
  double held_since(std::int32_t q) {
    const auto at = std::find_if(held_up_.begin(), held_up_.end(), [&](const auto& h) { return h.first == q; });
    const double t = at->second;
    held_up_.erase(at);
    return t;
  }

  void add_samples(std::size_t i, const worker& w) {
    worker_record& l = out_.workers[i];
    l.running.add(w.begin, w.end, static_cast<double>(w.now.decodes + w.now.prompts));
    l.queued.add(w.begin, w.end, static_cast<double>(w.scheduler.queued()));
    l.kv_tokens.add(w.begin, w.end, static_cast<double>(w.scheduler.kv_tokens()));
    l.busy_s += w.end - w.begin;
    ++l.iterations_in_all;
    if (traced_ >= traced_iterations && !set_.keep_iterations) return;
    ++traced_;
    l.iterations.push_back({w.begin, w.end, w.kind, static_cast<std::int32_t>(w.now.decodes)});
  }

  void end_iteration(std::size_t i) {
    ends_.pop();
    worker& w = workers_[i];
    const double t = w.end;
    add_samples(i, w);
    const batch_scheduler::events& e = w.scheduler.last();
    if (!w.prefills) count_gaps(w, t);
    out_.prompt_tokens += w.now.prompt_tokens;
    out_.recomputed_tokens += e.recomputed_tokens;
    out_.swapped_tokens += w.now.swapped_tokens;
    for (const std::int32_t q : e.first_tokens) record(q).first_token_s = t;
    out_.end_s = std::max(out_.end_s, t);
    w.busy = false;
    for (const std::int32_t q : e.finished) {
      w.in_hand -= 1;
      if (w.prefills && request(q).output > 1) send_cache(q, w, t);
      else finish(q, t);
    }
    arrive(t);  // requests sent now are ready for the next iteration
    woken_.push_back(i);
    begin_iterations(t);
    // Clients send their next request after the next iteration has begun.
    for (; returning_ > 0; --returning_) begin_session(t);
    begin_iterations(t);
  }

  void send_cache(std::int32_t q, worker& w, double t) {
    w.port_free = std::max(w.port_free, t) + set_.prefill->transfer(request(q).input);
    record(q).prefilled_s = t;
    record(q).delivered_s = w.port_free;
    deliveries_.push({w.port_free, q});
  }

  void finish(std::int32_t q, double t) {
    record(q).last_token_s = t;
    out_.output_tokens += record(q).output;
    count_in_flight(t, -1);
    const std::int32_t next = next_turn_[static_cast<std::size_t>(q)];
    if (next < 0 && set_.clients > 0) {
      if (set_.prompts_cached) begin_session(t);
      else ++returning_;
    }
    if (next >= 0) expected_.push({t + request(next).wait_s, next});
  }

  const request_list& list_;
  const server_settings& set_;
  const iteration_pricing& price_;
  serving_outcome out_;
  std::vector<worker> workers_;
  std::vector<std::int32_t> next_turn_;  ///< by request: the request that waits for it
  agenda ends_, expected_,
      deliveries_;  ///< ends of iterations by worker; arrivals of later turns; arrivals of caches
  std::array<std::size_t, 2> turn_{};  ///< next worker in turn: decode workers, prefill workers
  std::size_t decoding_ = 0;           ///< number of decode workers, which come first
  std::size_t next_start_ = 0, arrived_ = 0;
  std::int64_t traced_ = 0;
  std::int64_t waiting_ = 0, in_flight_ = 0;
  double counted_at_ = 0;
  std::int64_t returning_ = 0;  ///< number of clients whose request has just ended
  std::vector<std::size_t> woken_;
  std::vector<std::pair<std::int32_t, double>>
      held_up_;  ///< preempted requests, with the time of their last token
};

}  // namespace

serving_outcome serve_requests(const request_list& list, const server_settings& settings,
                               const iteration_pricing& price) {
  return server(list, settings, price).run();
}

}  // namespace nvlsim
