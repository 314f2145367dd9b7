#include "nvlsim/serving/disaggregation.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "serving/batch_scheduler.hpp"

namespace nvlsim {
namespace {

enum class event_kind { sent, prefill_done, delivered, decode_done };
struct event {
  double at_s;
  std::int64_t order;  ///< of events at the same time: first in, first out
  event_kind what;
  std::int32_t subject;  ///< request or worker
  bool operator>(const event& o) const { return std::tie(at_s, order) > std::tie(o.at_s, o.order); }
};

class pools {
 public:
  pools(const request_lengths& lengths, const pool_setup& s, const pool_prices& prices)
      : setup_(s), prices_(prices) {
    if (!s.prompts_cached)
      prefill_.assign(static_cast<std::size_t>(s.prefill.workers), worker_state(s.prefill.worker));
    decode_.assign(static_cast<std::size_t>(s.decode.workers), worker_state(s.decode.worker));
    for (const auto& [input, output] : lengths) out_.requests.push_back({.input = input, .output = output});
    out_.prefill.resize(prefill_.size());
    out_.prefill_begin_s.resize(prefill_.size());
    out_.prefill_s.resize(prefill_.size());
    out_.decode.resize(decode_.size());
    out_.decode_begin_s.resize(decode_.size());
    out_.decode_s.resize(decode_.size());
  }

  pooled_schedule run() && {
    const std::size_t n = out_.requests.size();
    const std::size_t first =
        setup_.concurrency > 0 ? std::min(n, static_cast<std::size_t>(setup_.concurrency)) : n;
    for (; sent_ < first; ++sent_) add(0, event_kind::sent, static_cast<std::int32_t>(sent_));
    while (!events_.empty()) {
      now_ = events_.top().at_s;
      while (!events_.empty() && events_.top().at_s == now_) {
        const event e = events_.top();
        events_.pop();
        handle(e);
      }
      // Simultaneous events are handled before iterations begin.
      for (std::size_t i = 0; i < prefill_.size(); ++i) begin_prefill(i);
      for (std::size_t i = 0; i < decode_.size(); ++i) begin_decode(i);
    }
    if (ended_ < n) throw internal_error("disaggregation: a request fits no worker");
    out_.makespan_s = now_;
    for (const worker_state& w : decode_)
      out_.peak_kv_tokens = std::max(out_.peak_kv_tokens, w.scheduler.peak_kv_tokens());
    return std::move(out_);
  }

 private:
  pooled_request& request(std::int32_t i) { return out_.requests[static_cast<std::size_t>(i)]; }
  void add(double at_s, event_kind what, std::int32_t subject) { events_.push({at_s, order_++, what, subject}); }

  void handle(const event& e) {
    switch (e.what) {
      case event_kind::sent:
        return send(e.subject);
      case event_kind::prefill_done:
        return end_prefill(static_cast<std::size_t>(e.subject));
      case event_kind::delivered:
        return deliver(e.subject);
      case event_kind::decode_done:
        return end_decode(static_cast<std::size_t>(e.subject));
    }
  }

  void send(std::int32_t i) {
    pooled_request& r = request(i);
    r.sent_s = now_;
    if (prefill_.empty()) {
      r.prefill_begin_s = r.prefill_end_s = now_;
      deliver(i);
      return;
    }
    const std::size_t to =
        least_in_turn(prefill_.size(), prefill_turn_, [&](std::size_t k) { return prefill_[k].load(); });
    r.prefill_worker = static_cast<std::int32_t>(to);
    prefill_[to].scheduler.submit(i, r.input, 1);  // its output is the first token
  }

  void begin_prefill(std::size_t index) {
    worker_state& w = prefill_[index];
    if (w.busy || w.scheduler.idle()) return;
    const auto number = static_cast<std::int32_t>(out_.prefill[index].size());
    const iteration it = w.scheduler.step();
    for (const auto& [i, cached] : w.scheduler.last().admitted) {
      request(i).prefill_begin_s = now_;
      request(i).prefill_first = number;
    }
    for (const std::int32_t i : w.scheduler.last().finished) request(i).prefill_last = number;
    w.now = it;
    w.busy = true;
    const double time = prices_.prefill(it);
    out_.prefill[index].push_back(it);
    out_.prefill_begin_s[index].push_back(now_);
    out_.prefill_s[index].push_back(time);
    add(now_ + time, event_kind::prefill_done, static_cast<std::int32_t>(index));
  }

  void end_prefill(std::size_t index) {
    worker_state& w = prefill_[index];
    w.busy = false;
    for (const std::int32_t i : w.scheduler.last().finished) {
      pooled_request& r = request(i);
      r.prefill_end_s = now_;
      if (r.output == 1) {
        r.delivered_s = r.decode_begin_s = now_;
        end_request(i);
        continue;
      }
      // A worker sends caches one after the other.
      w.port_free = std::max(w.port_free, now_) + prices_.transfer(r.input);
      add(w.port_free, event_kind::delivered, i);
    }
  }

  void deliver(std::int32_t i) {
    pooled_request& r = request(i);
    r.delivered_s = now_;
    const std::size_t to =
        least_in_turn(decode_.size(), decode_turn_, [&](std::size_t k) { return decode_[k].in_hand; });
    r.decode_worker = static_cast<std::int32_t>(to);
    decode_[to].in_hand += 1;
    decode_[to].scheduler.submit_cached(i, r.input, r.output);
  }

  void begin_decode(std::size_t index) {
    worker_state& w = decode_[index];
    if (w.busy || w.scheduler.idle()) return;
    const auto number = static_cast<std::int32_t>(out_.decode[index].size());
    const iteration it = w.scheduler.step();
    for (const std::int32_t i : w.scheduler.last().taken_over) {
      request(i).decode_begin_s = now_;
      request(i).decode_first = number;
    }
    for (const std::int32_t i : w.scheduler.last().finished) request(i).decode_last = number;
    w.busy = true;
    const double time = prices_.decode(it);
    out_.decode[index].push_back(it);
    out_.decode_begin_s[index].push_back(now_);
    out_.decode_s[index].push_back(time);
    add(now_ + time, event_kind::decode_done, static_cast<std::int32_t>(index));
  }

  void end_decode(std::size_t index) {
    worker_state& w = decode_[index];
    w.busy = false;
    for (const std::int32_t i : w.scheduler.last().finished) {
      w.in_hand -= 1;
      end_request(i);
    }
  }

  void end_request(std::int32_t i) {
    request(i).end_s = now_;
    ++ended_;
    if (sent_ == out_.requests.size()) return;
    request(static_cast<std::int32_t>(sent_)).sent_after = i;
    add(now_, event_kind::sent, static_cast<std::int32_t>(sent_++));
  }

  const pool_setup& setup_;
  const pool_prices& prices_;
  std::vector<worker_state> prefill_, decode_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  pooled_schedule out_;
  std::size_t sent_ = 0, ended_ = 0;
  std::size_t prefill_turn_ = 0, decode_turn_ = 0;  ///< next in turn among equally loaded workers
  std::int64_t order_ = 0;
  double now_ = 0;
};

}  // namespace

pooled_schedule schedule_pools(const request_lengths& lengths, const pool_setup& s, const pool_prices& prices) {
  return pools(lengths, s, prices).run();
}

}  // namespace nvlsim
