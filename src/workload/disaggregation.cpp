#include "workload/disaggregation.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <tuple>

#include "nvlsim/diagnostics.hpp"
#include "workload/lane.hpp"

namespace nvlsim {
namespace {

enum class happening { sent, prefill_done, delivered, decode_done };
struct event {
  double at_s;
  std::int64_t order;  ///< of those at the same time: first come
  happening what;
  std::int32_t subject;  ///< request or worker
  bool operator>(const event& o) const { return std::tie(at_s, order) > std::tie(o.at_s, o.order); }
};

struct prefill_worker {
  std::deque<std::int32_t> queue;
  std::int64_t tokens_ahead = 0;  ///< not worked on yet
  std::int64_t front_done = 0;    ///< of the first in the queue
  std::vector<std::int32_t> finishing;
  bool busy = false;
};

struct decode_worker {
  std::deque<std::int32_t> queue;
  std::int64_t running = 0, inputs = 0, steps = 0, kv_tokens = 0;
  std::int64_t decoded = 0;                                  ///< iterations so far
  std::map<std::int64_t, std::vector<std::int32_t>> ending;  ///< by the iteration they end with
  bool busy = false;
  std::int64_t load() const { return running + static_cast<std::int64_t>(queue.size()); }
};

class pools {
 public:
  pools(const request_lengths& lengths, const pool_setup& s, const pool_prices& prices)
      : setup_(s), prices_(prices), prefill_(static_cast<std::size_t>(s.prefill.workers)),
        decode_(static_cast<std::size_t>(s.decode.workers)) {
    if (s.prompts_cached) prefill_.clear();
    for (const auto& [input, output] : lengths) out_.requests.push_back({.input = input, .output = output});
    out_.prefill.resize(prefill_.size());
    out_.prefill_begin_s.resize(prefill_.size());
    out_.prefill_s.resize(prefill_.size());
    out_.decode.resize(decode_.size());
    out_.decode_begin_s.resize(decode_.size());
    out_.decode_s.resize(decode_.size());
    port_free_.assign(prefill_.size(), 0);
  }

  pooled_schedule run() && {
    const std::size_t n = out_.requests.size();
    const std::size_t first =
        setup_.concurrency > 0 ? std::min(n, static_cast<std::size_t>(setup_.concurrency)) : n;
    for (; sent_ < first; ++sent_) add(0, happening::sent, static_cast<std::int32_t>(sent_));
    while (!events_.empty()) {
      now_ = events_.top().at_s;
      while (!events_.empty() && events_.top().at_s == now_) {
        const event e = events_.top();
        events_.pop();
        handle(e);
      }
      // What came at one time is seen together.
      for (std::size_t i = 0; i < prefill_.size(); ++i) begin_prefill(i);
      for (std::size_t i = 0; i < decode_.size(); ++i) begin_decode(i);
    }
    if (ended_ < n) throw internal_error("disaggregation: a request fits no worker");
    out_.makespan_s = now_;
    return std::move(out_);
  }

 private:
  pooled_request& request(std::int32_t i) { return out_.requests[static_cast<std::size_t>(i)]; }
  void add(double at_s, happening what, std::int32_t subject) { events_.push({at_s, order_++, what, subject}); }

  void handle(const event& e) {
    switch (e.what) {
      case happening::sent:
        return send(e.subject);
      case happening::prefill_done:
        return end_prefill(static_cast<std::size_t>(e.subject));
      case happening::delivered:
        return deliver(e.subject);
      case happening::decode_done:
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
    const auto least = std::min_element(prefill_.begin(), prefill_.end(), [](const auto& a, const auto& b) {
      return a.tokens_ahead < b.tokens_ahead;
    });
    r.prefill_worker = static_cast<std::int32_t>(least - prefill_.begin());
    least->queue.push_back(i);
    least->tokens_ahead += r.input;
  }

  /// Fills an iteration with prompts in order; the last one may be cut where the engine cuts prompts, or has to.
  void begin_prefill(std::size_t index) {
    prefill_worker& w = prefill_[index];
    if (w.busy || w.queue.empty()) return;
    const engine_settings& set = setup_.prefill.settings;
    const auto number = static_cast<std::int32_t>(out_.prefill[index].size());
    iteration it;
    std::int64_t room = set.max_num_tokens;
    while (!w.queue.empty() && it.prompts < set.max_batch_size) {
      pooled_request& r = request(w.queue.front());
      const std::int64_t left = r.input - w.front_done;
      if (left > room && it.prompts > 0 && set.prefill != prefill_policy::chunked) break;
      const std::int64_t take = std::min(left, room);
      if (take == 0) break;
      if (w.front_done == 0) {
        r.prefill_begin_s = now_;
        r.prefill_first = number;
      }
      add_prompt(it, take, w.front_done);
      room -= take;
      w.front_done += take;
      if (w.front_done < r.input) break;
      r.prefill_last = number;
      it.finished_prompts += 1;
      w.finishing.push_back(w.queue.front());
      w.queue.pop_front();
      w.front_done = 0;
    }
    w.busy = true;
    w.tokens_ahead -= it.prompt_tokens;
    const double time = prices_.prefill(it);
    out_.prefill[index].push_back(it);
    out_.prefill_begin_s[index].push_back(now_);
    out_.prefill_s[index].push_back(time);
    add(now_ + time, happening::prefill_done, static_cast<std::int32_t>(index));
  }

  void end_prefill(std::size_t index) {
    prefill_worker& w = prefill_[index];
    w.busy = false;
    for (const std::int32_t i : w.finishing) {
      pooled_request& r = request(i);
      r.prefill_end_s = now_;
      if (r.output == 1) {
        r.delivered_s = r.decode_begin_s = now_;
        end_request(i);
        continue;
      }
      // A worker sends one cache after the other.
      port_free_[index] = std::max(port_free_[index], now_) + prices_.transfer(r.input);
      add(port_free_[index], happening::delivered, i);
    }
    w.finishing.clear();
  }

  void deliver(std::int32_t i) {
    pooled_request& r = request(i);
    r.delivered_s = now_;
    const auto least = std::min_element(decode_.begin(), decode_.end(),
                                        [](const auto& a, const auto& b) { return a.load() < b.load(); });
    r.decode_worker = static_cast<std::int32_t>(least - decode_.begin());
    least->queue.push_back(i);
  }

  std::int64_t steps_of(const pooled_request& r) const {
    return std::max<std::int64_t>(1, decode_steps(r.output - 1, setup_.tokens_per_step));
  }
  std::int64_t reservation(const pooled_request& r) const {
    const double tokens =
        static_cast<double>(r.input) + setup_.decode.settings.kv_reserve * static_cast<double>(r.output);
    const std::int64_t block = setup_.decode.kv_block_tokens;
    return (static_cast<std::int64_t>(std::ceil(tokens)) + block - 1) / block * block;
  }

  void begin_decode(std::size_t index) {
    decode_worker& w = decode_[index];
    if (w.busy) return;
    const std::int64_t most =
        std::min(setup_.decode.settings.max_batch_size, setup_.decode.settings.max_num_tokens);
    while (!w.queue.empty() && w.running < most) {
      pooled_request& r = request(w.queue.front());
      const std::int64_t need = reservation(r);
      if (w.kv_tokens + need > setup_.decode.kv_capacity_tokens) break;
      w.kv_tokens += need;
      w.running += 1;
      w.inputs += r.input;
      r.decode_begin_s = now_;
      r.decode_first = static_cast<std::int32_t>(w.decoded);
      w.ending[w.decoded + steps_of(r) - 1].push_back(w.queue.front());
      w.queue.pop_front();
    }
    out_.peak_kv_tokens = std::max(out_.peak_kv_tokens, w.kv_tokens);
    if (w.running == 0) return;
    w.steps += w.running;
    iteration it;
    it.decodes = w.running;
    it.context = w.inputs + std::llround(setup_.tokens_per_step * static_cast<double>(w.steps));
    w.busy = true;
    const double time = prices_.decode(it);
    out_.decode[index].push_back(it);
    out_.decode_begin_s[index].push_back(now_);
    out_.decode_s[index].push_back(time);
    add(now_ + time, happening::decode_done, static_cast<std::int32_t>(index));
  }

  void end_decode(std::size_t index) {
    decode_worker& w = decode_[index];
    w.busy = false;
    const auto done = w.ending.find(w.decoded);
    if (done != w.ending.end()) {
      for (const std::int32_t i : done->second) {
        pooled_request& r = request(i);
        r.decode_last = static_cast<std::int32_t>(w.decoded);
        w.running -= 1;
        w.inputs -= r.input;
        w.steps -= steps_of(r);
        w.kv_tokens -= reservation(r);
        end_request(i);
      }
      w.ending.erase(done);
    }
    w.decoded += 1;
  }

  void end_request(std::int32_t i) {
    request(i).end_s = now_;
    ++ended_;
    if (sent_ == out_.requests.size()) return;
    request(static_cast<std::int32_t>(sent_)).sent_after = i;
    add(now_, happening::sent, static_cast<std::int32_t>(sent_++));
  }

  const pool_setup& setup_;
  const pool_prices& prices_;
  std::vector<prefill_worker> prefill_;
  std::vector<decode_worker> decode_;
  std::vector<double> port_free_;  ///< by prefill worker
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  pooled_schedule out_;
  std::size_t sent_ = 0, ended_ = 0;
  std::int64_t order_ = 0;
  double now_ = 0;
};

}  // namespace

pooled_schedule schedule_pools(const request_lengths& lengths, const pool_setup& s, const pool_prices& prices) {
  return pools(lengths, s, prices).run();
}

}  // namespace nvlsim
