// One server: replicas or pools of workers behind a router, and the decisions that they take. Time is kept by
// whoever plays it: SimGrid's actors or an event queue. [docs/serving.md#one-simulator]
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// Times of one request, in seconds since the start of the run as seen by the engine; negative if not reached.
struct request_record {
  double arrival_s = -1, admitted_s = -1, first_token_s = -1, last_token_s = -1;
  std::int32_t input = 0, output = 0;
  std::int32_t cached = 0;   ///< prompt tokens found in the prefix cache, or fetched from a tier
  std::int32_t fetched = 0;  ///< of those, from tiers
  std::int32_t worker = -1;  ///< worker that decodes
  std::int32_t preemptions = 0;
  std::int32_t workers = 1;  ///< number of equal workers that it represents
  // With pools: prefill worker, end of prefill and arrival of the cache.
  std::int32_t prompt_worker = -1;
  double prefilled_s = -1, delivered_s = -1;
};

/// A value that occurs `count` times.
struct weighted {
  double value = 0;
  std::int64_t count = 0;
};

/// Histogram with bins of 0.2 %. Each bin is represented by its mean.
class value_histogram {
 public:
  void add(double value, std::int64_t count);
  /// Adds all values of another histogram, each `times` times.
  void add(const value_histogram& other, std::int64_t times);
  std::vector<weighted> values() const;

 private:
  std::size_t bin_of(double value);

  struct bin {
    double sum = 0;
    std::int64_t count = 0;
  };
  std::vector<bin> bins_;
  std::size_t last_ = 0;       ///< bin of the last value
  double low_ = 0, high_ = 0;  ///< values between them are in it, too
};

/// A quantity over time, as means over at most 1,024 equal intervals.
class time_series {
 public:
  void add(double from, double to, double value);
  std::vector<std::pair<double, double>> points() const;

 private:
  static constexpr std::size_t max = 1024;
  double width_ = 1e-3;
  std::vector<double> areas_;
};

/// Time of an iteration, and the pricing's class that it belongs to.
struct iteration_price {
  double seconds = 0;
  std::int32_t kind = 0;
  /// Its traffic, for players that share the network. None if it has none, or if nobody asked for it.
  std::shared_ptr<const operation_template> operation = {};
};
/// Prices an iteration of a worker. Prefill workers follow the others.
using iteration_pricing = std::function<iteration_price(std::size_t worker, const iteration&)>;

/// Prices iterations that follow each other and only decode the same sequences, as `iteration_pricing` does one by
/// one. Players that pass over such iterations at once use it.
struct stretch_pricing {
  /// Seconds of each iteration, by the cached tokens of its sequences. They need not run.
  std::function<void(std::size_t worker, std::int64_t decodes, std::span<const std::int64_t> contexts,
                     std::vector<double>& took)>
      price;
  /// They ran, in that time.
  std::function<void(std::size_t worker, std::int64_t decodes, std::span<const std::int64_t> contexts,
                     std::span<const double> took)>
      count;
};

/// The transfer of a KV cache. `operation` has its traffic, for players that share the network.
struct cache_transfer {
  double seconds = 0;
  const operation_template* operation = nullptr;
};

/// Workers that only prefill. Each sends its caches to the decode workers one after the other.
struct prefill_settings {
  schedule_limits worker;
  std::int64_t workers = 1;
  /// Of the KV cache of a prompt with that many tokens, from a prefill worker to a decode worker.
  std::function<cache_transfer(std::int64_t tokens, std::size_t from, std::size_t to)> transfer;
};

/// A store of KV blocks beyond HBM, as one worker sees it.
struct tier_settings {
  std::int64_t capacity_blocks = 0;   ///< of one worker, or of all if `shared`
  double block_s = 0, latency_s = 0;  ///< to fetch a block, and once for each request
  cache_write write = cache_write::back;
  bool shared = false;  ///< one store for all workers
};

struct server_settings {
  schedule_limits worker;
  std::int64_t workers = 1;
  /// With `least_loaded`, a request waits at the router until a worker has room for it.
  router_policy router = router_policy::round_robin;
  /// Of the workers of pools. Nothing: prompts go to the prefill worker with the fewest tokens to compute, caches
  /// to the decode worker with the fewest unfinished requests.
  std::optional<router_policy> pool_router = {};
  std::int64_t clients = 0;  ///< of a closed loop; 0: requests arrive at their arrival times
  /// With prefill workers, a request goes to one of them, and its cache to a decode worker when its prompt is
  /// done.
  std::optional<prefill_settings> prefill;
  bool prompts_cached = false;  ///< requests arrive with their KV caches
  /// Of workers that prefill, the fastest first. A request that finds more of its prompt there than in HBM has it
  /// fetched before the worker takes it up. A worker fetches for one request at a time.
  std::vector<tier_settings> tiers;
  bool keep_iterations = false;  ///< keeps all iterations, not only the first
  bool traced = true;            ///< keeps what traces show: the first iterations, and counts over time
  /// Called as each request ends. What it throws ends the run.
  std::function<void(const request_record&)> seen = {};
  /// Hardware of each worker, by a number of its own. None: all are alike.
  std::vector<std::size_t> hardware = {};
};

/// Most iterations that a run keeps for its trace, over all workers, unless `keep_iterations`.
inline constexpr std::int64_t traced_iterations = 100'000;
/// What a worker had in an iteration.
struct iteration_batch {
  std::int32_t decodes = 0, prompt_tokens = 0;
  std::int64_t kv_tokens = 0;  ///< of its cache, when the iteration ended
};
struct traced_iteration {
  double begin_s = 0, end_s = 0;
  std::int32_t kind = 0;
  iteration_batch batch;
};

/// One worker's part of a run.
struct worker_record {
  bool prefills = false;     ///< prefills only; such workers follow the others
  std::int64_t workers = 1;  ///< number of equal workers that it represents
  time_series running, queued, kv_tokens;
  std::vector<traced_iteration> iterations;  ///< the first iterations
  std::int64_t iterations_in_all = 0;
  std::int64_t peak_kv_tokens = 0;
  double busy_s = 0;
};

struct serving_outcome {
  std::vector<request_record> requests;
  std::vector<worker_record> workers;
  value_histogram gaps;            ///< between consecutive tokens of a request
  double end_s = 0;                ///< time of the last token
  std::int64_t prompt_tokens = 0;  ///< computed, including recomputed ones
  std::int64_t output_tokens = 0;
  std::int64_t recomputed_tokens = 0, swapped_tokens = 0;
  std::vector<std::int64_t> tier_blocks;  ///< fetched, by tier
  double requests_times_s = 0;            ///< integral of the requests in flight over time
  struct load_seen {
    std::int64_t waiting = 0;    ///< not yet admitted by a worker: requests, prompts and delivered caches
    std::int64_t in_flight = 0;  ///< arrived but not finished
  };
  load_seen at_half, at_last;  ///< when half and when all requests have arrived
  /// Of a closed loop: from when as many sessions as there are clients have ended, to when a client finds no
  /// further one to begin. Negative if that never came.
  double steady_from_s = -1, steady_to_s = -1;
  limits_use limits;  ///< of all workers
};

/// The decisions of one server, in order of time. Whoever keeps the time calls `arrive`, `deliver` and
/// `end_iteration` when their dates come, and carries out the orders. Throws internal_error if a request fits no
/// iteration or no cache.
class server {
 public:
  /// Iterations of a worker. A later order of a worker that has not ended replaces the one before: its iterations
  /// end earlier.
  struct started {
    std::size_t worker;
    double begin_s, end_s;
    std::shared_ptr<const operation_template> operation;  ///< as of `iteration_price`
  };
  /// A KV cache to send. Each worker sends one at a time, in order.
  struct sending {
    std::int32_t request;
    std::size_t from, to;
    cache_transfer transfer;
  };
  /// Blocks of a prompt to fetch from tiers. Each worker fetches for one request at a time, in order.
  struct fetching {
    std::int32_t request;
    std::size_t worker;
    double seconds;
  };
  struct orders {
    std::vector<started> iterations;
    std::vector<sending> caches;
    std::vector<fetching> fetches;
  };

  /// All arguments must outlive it. With `stretches`, iterations that only decode the same sequences are ordered
  /// as one. The records are the same but for the order in which times are added up.
  server(const request_list& list, const server_settings& settings, const iteration_pricing& price,
         const stretch_pricing* stretches = nullptr);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  std::size_t workers() const;
  /// Clients send their first requests and workers begin.
  void open();
  /// Date of the next request that waits for nobody's answer; infinity if none is known.
  double next_arrival();
  /// Requests come that arrive by `t`.
  void arrive(double t);
  /// What a request had in tiers is there.
  void fetched(std::int32_t request, double t);
  /// The KV cache of a request arrives.
  void deliver(std::int32_t request, double t);
  /// Idle workers with work begin.
  void begin_iterations(double t);
  /// An iteration ends, and what follows from it begins.
  void end_iteration(std::size_t worker, double t);
  /// Orders given since the last call, in place of those there.
  void take_orders(orders& into);
  /// The records, when nothing is left to do. Throws internal_error if a request did not end.
  serving_outcome close() &&;

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  /// An event; earlier ones first, then lower numbers.
  struct timed_event {
    double at;
    std::int32_t who;
    bool operator>(const timed_event& o) const { return at > o.at || (at == o.at && who > o.who); }
  };
  struct worker;
  /// Requests that workers of a kind of hardware have ended, and the times that they took.
  struct service_times {
    std::int64_t served = 0;
    double sum_s = 0, squares = 0;

    double mean() const { return sum_s / static_cast<double>(served); }
    double error_of_mean() const;
  };

  const served_request& request(std::int32_t i) const { return list_.requests[static_cast<std::size_t>(i)]; }
  request_record& record(std::int32_t i) { return out_.requests[static_cast<std::size_t>(i)]; }
  std::span<const std::uint64_t> names_of(const served_request& r) const {
    return {list_.prefixes.data() + r.first_prefix, r.prefixes};
  }
  void find_start();
  void begin_session(double t);
  void count_in_flight(double t, std::int64_t change);
  void submit(std::int32_t i, double t);
  router_policy prompt_router() const;
  router_policy cache_router() const;
  void know_hardware();
  void count_service(std::size_t i, double took_s);
  bool ends_later(std::size_t i, double t) const;
  std::pair<std::size_t, std::size_t> prompt_workers() const;
  bool has_room(std::size_t i, const served_request& r);
  void hand_out(double t);
  void pull(std::size_t i, double t);
  void prefill(std::int32_t i, std::size_t to, double t);
  void begin_prompt(std::int32_t i, double t, std::int64_t fetched_from, std::int64_t fetched_to);
  void send_cache(std::int32_t q, std::size_t from, double t);
  std::int64_t fetchable(std::size_t worker, const served_request& r) const;
  void take_up(std::int32_t i, std::size_t to);
  void hand(std::int32_t i, std::size_t to);
  std::size_t choose(const served_request& r, router_policy how, std::size_t first, std::size_t end);
  void begin_iteration(std::size_t i, double t);
  bool begin_stretch(std::size_t i, double t);
  void cut_stretch(std::size_t i, double t);
  static void settle(worker& w);
  void pass_over(std::size_t i);
  void count_gaps(worker& w, double t);
  void add_gap(double gap, std::int64_t count);
  double held_since(std::int32_t q);
  void add_samples(std::size_t i, double t);
  void finish(std::int32_t q, double t);

  const request_list& list_;
  const server_settings& set_;
  const iteration_pricing& price_;
  const stretch_pricing* stretches_;  ///< none: every iteration is an order
  serving_outcome out_;
  std::vector<worker> workers_;
  orders orders_;
  std::vector<std::int32_t> next_turn_;  ///< by request: the request that waits for it
  std::priority_queue<timed_event, std::vector<timed_event>, std::greater<>> expected_;  ///< later turns
  std::array<std::size_t, 2> turn_{};  ///< next worker in turn: decode workers, prefill workers
  std::size_t decoding_ = 0;           ///< number of decode workers, which come first
  std::size_t next_start_ = 0, arrived_ = 0, ended_ = 0;
  std::size_t ending_ = 0;  ///< worker whose iteration ends now, plus one; 0: none
  std::int64_t traced_ = 0;
  std::int64_t waiting_ = 0, in_flight_ = 0;
  double counted_at_ = 0;
  std::int64_t sessions_ended_ = 0;
  std::int64_t returning_ = 0;  ///< number of clients whose request has just ended
  std::vector<std::size_t> woken_;
  bool held_back_ = false;                  ///< requests wait at the router until a worker has room
  bool all_here_ = false;                   ///< all requests come at the start
  std::deque<std::int32_t> backlog_;        ///< those that do
  std::vector<service_times> services_;     ///< by hardware; none: workers are alike, or requests still come
  std::size_t fastest_ = 0;                 ///< hardware with the least mean
  std::int64_t served_ = 0;                 ///< requests of all hardware
  std::vector<std::int64_t> hands_;         ///< unfinished requests by worker, while one is chosen
  std::vector<std::int64_t> fetched_from_;  ///< by request: where what is fetched of its prompt begins
  std::vector<std::pair<std::int32_t, double>>
      held_up_;  ///< preempted requests, with the time of their last token
};

/// What happens at one server at a date. At equal dates caches arrive first, then what was fetched, then requests,
/// and iterations end last, by the number of the worker.
struct server_event {
  enum class kind { delivery, fetch, arrival, end };
  double at_s;
  kind what;
  std::int32_t who;  ///< request, or worker

  friend auto operator<=>(const server_event&, const server_event&) = default;
};
/// Tells the server the events of one or more dates, in any order, and leaves none.
void tell(server& s, std::vector<server_event>& events);

/// A server with what it serves. All are independent of each other.
struct server_case {
  request_list list;
  server_settings settings;
  iteration_pricing price;
  std::int64_t times = 1;  ///< number of equal servers that it represents
  stretch_pricing stretches = {};
};
struct served_cases {
  std::vector<serving_outcome> outcomes;  ///< by case
  std::int64_t activities = 0;            ///< of SimGrid
};
/// Plays servers: SimGrid's actors (`serve_by_actors`), or an event queue.
using server_player = std::function<served_cases(const std::vector<server_case>&)>;
/// Nothing is shared between iterations and transfers, so every one takes its own time.
served_cases serve_by_queue(const std::vector<server_case>& cases);

}  // namespace nvlsim
