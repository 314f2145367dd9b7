#include "nvlsim/serving/server.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "serving/batch_scheduler.hpp"

namespace nvlsim {

/// Iterations of a stretch: few after one that was cut, twice as many after one that was not.
constexpr std::size_t shortest_reach = 8, longest_reach = 1024;

struct server::worker : worker_state {
  worker(const schedule_limits& l, bool prompts_alone) : worker_state(l), prefills(prompts_alone) {}

  bool prefills;
  std::optional<cache_tiers> tiers;
  std::int32_t kind = 0;
  double begin = 0;
  // Iterations scheduled as one stretch: their number, and the cached tokens, time and end of each.
  std::size_t stretch = 0;
  bool settled = false;                ///< its scheduler has passed over the stretch
  int fetching = 0;                    ///< requests for which blocks are fetched
  std::size_t reach = shortest_reach;  ///< most iterations of the next stretch
  std::vector<std::int64_t> contexts;
  std::vector<double> seconds, ends;
  double last_decode = 0;  ///< end of the last iteration with decodes
  std::vector<std::pair<double, std::int64_t>>
      joined;  ///< sequences that joined since, by the time of their last token
};

server::server(const request_list& list, const server_settings& s, const iteration_pricing& price,
               const stretch_pricing* stretches)
    : list_(list), set_(s), price_(price), stretches_(stretches) {
  // A router that looks at caches sees every iteration, and so does a trace.
  const bool looks = (s.prefill || s.prompts_cached ? s.pool_router : s.router) == router_policy::prefix_aware;
  if (s.traced || s.keep_iterations || (looks && s.workers > 1)) stretches_ = nullptr;
  const std::size_t n = list.requests.size();
  out_.requests.resize(n);
  decoding_ = static_cast<std::size_t>(s.workers);
  held_back_ = prompt_router() == router_policy::least_loaded && (s.prefill ? s.prefill->workers : s.workers) > 1;
  all_here_ =
      s.clients == 0 && std::all_of(list.requests.begin(), list.requests.end(),
                                    [](const served_request& r) { return r.after < 0 && r.arrival_s == 0; });
  out_.workers.resize(decoding_ + static_cast<std::size_t>(s.prefill ? s.prefill->workers : 0));
  workers_.reserve(out_.workers.size());
  for (std::size_t i = 0; i < out_.workers.size(); ++i) {
    out_.workers[i].prefills = i >= decoding_;
    workers_.emplace_back(i < decoding_ ? s.worker : s.prefill->worker, i >= decoding_);
  }
  know_hardware();
  std::vector<std::shared_ptr<block_store>> pools;  // by tier; none where each worker has its own
  for (const tier_settings& tier : s.tiers) {
    const auto blocks = static_cast<std::size_t>(tier.capacity_blocks);
    pools.push_back(tier.shared ? std::make_shared<block_store>(blocks) : nullptr);
  }
  for (std::size_t i = s.prefill ? decoding_ : 0; i < workers_.size() && !s.tiers.empty(); ++i) {
    std::vector<std::shared_ptr<block_store>> stores;
    for (std::size_t k = 0; k < pools.size(); ++k)
      stores.push_back(pools[k]
                           ? pools[k]
                           : std::make_shared<block_store>(static_cast<std::size_t>(s.tiers[k].capacity_blocks)));
    workers_[i].tiers.emplace(s.tiers, std::move(stores));
  }
  out_.tier_blocks.resize(s.tiers.size());
  next_turn_.assign(n, -1);
  for (std::size_t i = 0; i < n; ++i) {
    const served_request& r = list.requests[i];
    out_.requests[i].input = static_cast<std::int32_t>(r.input);
    out_.requests[i].output = static_cast<std::int32_t>(r.output);
    if (r.after >= 0) next_turn_[static_cast<std::size_t>(r.after)] = static_cast<std::int32_t>(i);
  }
}

server::~server() = default;

std::size_t server::workers() const { return workers_.size(); }

void server::open() {
  for (std::int64_t c = 0; c < set_.clients; ++c) begin_session(0);
  begin_iterations(0);
}

serving_outcome server::close() && {
  if (ended_ < list_.requests.size()) throw internal_error("server: a request fits no worker");
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    out_.workers[i].peak_kv_tokens = workers_[i].scheduler.peak_kv_tokens();
    out_.limits.add(workers_[i].scheduler.used());
  }
  return std::move(out_);
}

/// Skips requests that wait for others.
void server::find_start() {
  while (next_start_ < list_.requests.size() && list_.requests[next_start_].after >= 0) ++next_start_;
}

double server::next_arrival() {
  find_start();
  const double t = expected_.empty() ? never : expected_.top().at;
  return set_.clients == 0 && next_start_ < list_.requests.size()
             ? std::min(t, list_.requests[next_start_].arrival_s)
             : t;
}

void server::arrive(double t) {
  while (next_arrival() <= t) {
    if (!expected_.empty() && expected_.top().at <= t) {
      const std::int32_t i = expected_.top().who;
      expected_.pop();
      submit(i, t);
    } else {
      submit(static_cast<std::int32_t>(next_start_++), t);
    }
  }
}

/// A client of a closed loop sends its next request, or the first of its next session.
void server::begin_session(double t) {
  find_start();
  if (next_start_ < list_.requests.size()) submit(static_cast<std::int32_t>(next_start_++), t);
  else if (out_.steady_to_s < 0) out_.steady_to_s = t;
}

void server::count_in_flight(double t, std::int64_t change) {
  out_.requests_times_s += static_cast<double>(in_flight_) * (t - counted_at_);
  counted_at_ = t;
  in_flight_ += change;
}

void server::submit(std::int32_t i, double t) {
  count_in_flight(t, 1);
  const served_request& r = request(i);
  record(i).arrival_s = t;
  ++waiting_;
  if (set_.prompts_cached) {
    const std::size_t to = choose(r, cache_router(), 0, decoding_);
    cut_stretch(to, t);
    hand(i, to);
    take_up(i, to);
  } else if (held_back_) {
    backlog_.push_back(i);
    if (backlog_.size() == 1) hand_out(t);
  } else {
    const auto [first, end] = prompt_workers();
    prefill(i, choose(r, prompt_router(), first, end), t);
  }
  ++arrived_;
  if (arrived_ == (list_.requests.size() + 1) / 2) out_.at_half = {waiting_, in_flight_};
  if (arrived_ == list_.requests.size()) out_.at_last = {waiting_, in_flight_};
}

router_policy server::prompt_router() const {
  return set_.prefill ? set_.pool_router.value_or(router_policy::prefix_aware) : set_.router;
}

router_policy server::cache_router() const { return set_.pool_router.value_or(router_policy::least_loaded); }

std::pair<std::size_t, std::size_t> server::prompt_workers() const {
  return set_.prefill ? std::pair(decoding_, workers_.size()) : std::pair(std::size_t{0}, decoding_);
}

bool server::has_room(std::size_t i, const served_request& r) {
  worker& w = workers_[i];
  if (w.in_hand == 0) return true;
  // While blocks come for one request, those of the next can be ordered.
  constexpr int fetches = 2;
  return w.fetching < fetches && w.scheduler.has_room(names_of(r), r.input, w.prefills ? 1 : r.output);
}

/// Times of requests tell how fast workers are where their hardware differs. Those of equal workers differ by
/// chance.
void server::know_hardware() {
  const auto [first, end] = prompt_workers();
  const std::vector<std::size_t>& of = set_.hardware;
  if (!held_back_ || !all_here_ || of.size() < end) return;
  const auto from = of.begin() + static_cast<std::ptrdiff_t>(first),
             to = of.begin() + static_cast<std::ptrdiff_t>(end);
  if (std::adjacent_find(from, to, std::not_equal_to<>()) != to) services_.resize(*std::max_element(from, to) + 1);
}

/// A worker ended a request, on which it began `took_s` ago.
void server::count_service(std::size_t i, double took_s) {
  const auto [first, end] = prompt_workers();
  if (services_.empty() || i < first || i >= end) return;
  service_times& s = services_[set_.hardware[i]];
  const double before = s.served > 0 ? s.mean() : never;
  ++served_;
  ++s.served;
  s.sum_s += took_s;
  s.squares += took_s * took_s;
  const auto mean = [&](const service_times& x) { return x.served > 0 ? x.mean() : never; };
  if (set_.hardware[i] != fastest_) {
    if (s.mean() < mean(services_[fastest_])) fastest_ = set_.hardware[i];
  } else if (s.mean() > before) {
    const auto least = std::min_element(services_.begin(), services_.end(),
                                        [&](const auto& x, const auto& y) { return mean(x) < mean(y); });
    fastest_ = static_cast<std::size_t>(least - services_.begin());
  }
}

double server::service_times::error_of_mean() const {
  const auto n = static_cast<double>(served);
  return std::sqrt(std::max(squares / n - mean() * mean(), 0.0) / (n - 1));
}

/// Whether a worker would end a request after one with faster hardware has ended all that waits at the router, if
/// times and rates are as so far. No more requests come. A work queue ends first if such a worker takes none of
/// the last.
bool server::ends_later(std::size_t i, double t) const {
  constexpr std::int64_t least = 10;  // so many times tell how far they spread (assumed)
  constexpr double sure = 2;          // standard errors: by chance in 1 of 40 cases
  if (services_.empty()) return false;
  const service_times &own = services_[set_.hardware[i]], &best = services_[fastest_];
  if (&own == &best || own.served < least || best.served < least) return false;
  const double slower = own.mean() - best.mean(), error = std::hypot(own.error_of_mean(), best.error_of_mean());
  const double to_the_last = static_cast<double>(backlog_.size()) * t / static_cast<double>(served_);
  return slower > sure * error && slower > to_the_last;
}

/// The oldest request that waits at the router goes to the worker with the fewest unfinished requests of those
/// that have room.
void server::hand_out(double t) {
  const std::int32_t i = backlog_.front();
  const auto [first, end] = prompt_workers();
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t>& hands = hands_;
  hands.clear();
  for (std::size_t k = first; k < end; ++k) {
    const worker& w = workers_[k];
    hands.push_back((w.in_hand > 0 && w.scheduler.refuses()) || ends_later(k, t) ? none : w.in_hand);
  }
  for (;;) {
    const std::size_t best =
        least_in_turn(hands.size(), turn_[first > 0 ? 1 : 0], [&](std::size_t k) { return hands[k]; });
    if (hands[best] == none) return;
    cut_stretch(first + best, t);
    if (has_room(first + best, request(i))) {
      backlog_.pop_front();
      return prefill(i, first + best, t);
    }
    hands[best] = none;
  }
}

/// A worker takes what it has room for of what waits at the router.
void server::pull(std::size_t i, double t) {
  const auto [first, end] = prompt_workers();
  if (i < first || i >= end) return;
  while (!backlog_.empty() && has_room(i, request(backlog_.front()))) {
    if (ends_later(i, t)) return;  // faster workers are busy: they refuse none for which they have room
    const std::int32_t next = backlog_.front();
    backlog_.pop_front();
    prefill(next, i, t);
  }
}

/// Tokens of a prompt that tiers have beyond those in HBM.
std::int64_t server::fetchable(std::size_t to, const served_request& r) const {
  const worker& w = workers_[to];
  if (!w.tiers) return 0;
  const std::int64_t block = set_.worker.prefix_tokens,
                     here = w.scheduler.cached_tokens(names_of(r), r.input) / block;
  const std::int64_t whole = std::min<std::int64_t>((r.input - 1) / block, r.prefixes);
  const auto beyond = names_of(r).subspan(static_cast<std::size_t>(here), static_cast<std::size_t>(whole - here));
  return static_cast<std::int64_t>(w.tiers->hits(beyond)) * block;
}

/// A worker gets a prompt, once what tiers have of it has been fetched.
void server::prefill(std::int32_t i, std::size_t to, double t) {
  const served_request& r = request(i);
  if (set_.prefill) record(i).prompt_worker = static_cast<std::int32_t>(to);
  hand(i, to);
  const std::int64_t tokens = fetchable(to, r);
  if (tokens == 0) return begin_prompt(i, t, 0, 0);
  const std::int64_t block = set_.worker.prefix_tokens,
                     here = workers_[to].scheduler.cached_tokens(names_of(r), r.input) / block;
  record(i).fetched = static_cast<std::int32_t>(tokens);
  fetched_from_.resize(list_.requests.size());
  fetched_from_[static_cast<std::size_t>(i)] = here * block;
  ++workers_[to].fetching;
  const auto names = names_of(r).subspan(static_cast<std::size_t>(here), static_cast<std::size_t>(tokens / block));
  orders_.fetches.push_back({i, to, workers_[to].tiers->fetch(names, out_.tier_blocks)});
}

void server::fetched(std::int32_t i, double t) {
  const auto to = static_cast<std::size_t>(record(i).worker);
  const std::int64_t from = fetched_from_[static_cast<std::size_t>(i)];
  --workers_[to].fetching;
  begin_prompt(i, t, from, from + record(i).fetched);
  pull(to, t);
}

void server::begin_prompt(std::int32_t i, double t, std::int64_t fetched_from, std::int64_t fetched_to) {
  const auto to = static_cast<std::size_t>(record(i).worker);
  cut_stretch(to, t);
  const served_request& r = request(i);
  workers_[to].scheduler.submit(i, r.input, workers_[to].prefills ? 1 : r.output,
                                {names_of(r), fetched_from, fetched_to, record(i).arrival_s < t});
  if (!workers_[to].busy) woken_.push_back(to);
}

void server::deliver(std::int32_t i, double t) {
  ++waiting_;
  record(i).delivered_s = t;
  cut_stretch(static_cast<std::size_t>(record(i).worker), t);
  take_up(i, static_cast<std::size_t>(record(i).worker));
}

/// A KV cache is at its decode worker.
void server::take_up(std::int32_t i, std::size_t to) {
  const served_request& r = request(i);
  workers_[to].scheduler.submit_cached(i, r.input, r.output);
  if (!workers_[to].busy) woken_.push_back(to);
}

/// A worker becomes responsible for a request.
void server::hand(std::int32_t i, std::size_t to) {
  record(i).worker = static_cast<std::int32_t>(to);
  workers_[to].in_hand += 1;
  if (!workers_[to].busy) woken_.push_back(to);
}

void server::begin_iterations(double t) {
  for (const std::size_t i : woken_)
    if (!workers_[i].busy && !workers_[i].scheduler.idle()) begin_iteration(i, t);
  woken_.clear();
}

/// Picks one of the workers in [`first`, `end`).
std::size_t server::choose(const served_request& r, router_policy how, std::size_t first, std::size_t end) {
  const std::size_t workers = end - first;
  if (workers == 1) return first;
  std::size_t& turn = turn_[first > 0 ? 1 : 0];
  if (how == router_policy::round_robin) return first + turn++ % workers;
  return first + least_in_turn(workers, turn, [&](std::size_t i) {
           const worker& w = workers_[first + i];
           return how == router_policy::least_loaded
                      ? w.in_hand
                      : w.load() - w.scheduler.cached_tokens(names_of(r), r.input) - fetchable(first + i, r);
         });
}

/// Orders calm iterations as one.
bool server::begin_stretch(std::size_t i, double t) {
  worker& w = workers_[i];
  const std::int64_t n = w.scheduler.calm(static_cast<std::int64_t>(w.reach));
  if (n < 2) return false;
  w.scheduler.contexts(n, w.contexts);
  stretches_->price(i, w.scheduler.decodes(), w.contexts, w.seconds);
  w.ends.clear();
  double end = t;
  for (const double each : w.seconds) w.ends.push_back(end += each);
  w.stretch = w.ends.size();
  w.now = {.decodes = w.scheduler.decodes()};
  w.busy = true;
  w.begin = t;
  orders_.iterations.push_back({i, t, end, {}});
  return true;
}

/// A request reaches a worker: iterations that have not begun by then are simulated singly again. One that
/// ends at that date has not ended yet, unless its worker comes before the one whose iteration ends now.
void server::cut_stretch(std::size_t i, double t) {
  worker& w = workers_[i];
  if (w.stretch == 0) return;
  const auto from = w.ends.begin(), to = from + static_cast<std::ptrdiff_t>(w.stretch);
  const auto last = ending_ > i + 1 ? std::upper_bound(from, to, t) : std::lower_bound(from, to, t);
  const auto left = static_cast<std::size_t>(last - from) + 1;
  if (left < w.stretch) {
    w.stretch = left;
    w.reach = std::max(shortest_reach, 2 * left);
    orders_.iterations.push_back({i, w.begin, w.ends[left - 1], {}});
  }
  settle(w);
}

/// The scheduler of a worker is as it is in the last iteration of its stretch.
void server::settle(worker& w) {
  if (!w.settled) w.scheduler.pass_over(static_cast<std::int64_t>(w.stretch));
  w.settled = true;
}

/// The iterations of a stretch have ended.
void server::pass_over(std::size_t i) {
  worker& w = workers_[i];
  worker_record& l = out_.workers[i];
  const std::size_t n = w.stretch;
  settle(w);
  w.settled = false;
  stretches_->count(i, w.now.decodes, {w.contexts.data(), n}, {w.seconds.data(), n});
  count_gaps(w, w.ends[0]);
  for (std::size_t k = 1; k < n; ++k) add_gap(w.ends[k] - w.ends[k - 1], w.now.decodes);
  w.last_decode = w.ends[n - 1];
  for (std::size_t k = 0; k < n; ++k) l.busy_s += w.ends[k] - (k == 0 ? w.begin : w.ends[k - 1]);
  l.iterations_in_all += static_cast<std::int64_t>(n);
  if (n == w.reach) w.reach = std::min(2 * n, longest_reach);
  w.stretch = 0;
}

void server::begin_iteration(std::size_t i, double t) {
  if (stretches_ && begin_stretch(i, t)) return;
  worker& w = workers_[i];
  w.now = w.scheduler.step();
  iteration_price p = price_(i, w.now);
  w.busy = true;
  w.kind = p.kind;
  w.begin = t;
  if (w.tiers) {
    for (const std::uint64_t n : w.scheduler.last().computed) w.tiers->computed(n);
    for (const std::uint64_t n : w.scheduler.last().evicted) w.tiers->evicted(n);
  }
  for (const auto& [q, cached, fetched] : w.scheduler.last().admitted) {
    record(q).cached = static_cast<std::int32_t>(cached);
    record(q).fetched = static_cast<std::int32_t>(fetched);
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
  orders_.iterations.push_back({i, t, t + p.seconds, std::move(p.operation)});
}

/// Token gaps of sequences that got a token: those that also decoded last time, those that joined since, and those
/// delayed by a preemption.
void server::count_gaps(worker& w, double t) {
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
void server::add_gap(double gap, std::int64_t count) { out_.gaps.add(gap / set_.worker.tokens_per_step, count); }

/// Time of the last token of a preempted request that now resumes.
double server::held_since(std::int32_t q) {
  const auto at = std::find_if(held_up_.begin(), held_up_.end(), [&](const auto& h) { return h.first == q; });
  const double t = at->second;
  held_up_.erase(at);
  return t;
}

void server::add_samples(std::size_t i, double t) {
  const worker& w = workers_[i];
  worker_record& l = out_.workers[i];
  l.busy_s += t - w.begin;
  ++l.iterations_in_all;
  if (!set_.traced) return;
  l.running.add(w.begin, t, static_cast<double>(w.now.decodes + w.now.prompts));
  l.queued.add(w.begin, t, static_cast<double>(w.scheduler.queued()));
  l.kv_tokens.add(w.begin, t, static_cast<double>(w.scheduler.kv_tokens()));
  if (traced_ >= traced_iterations && !set_.keep_iterations) return;
  ++traced_;
  l.iterations.push_back({w.begin,
                          t,
                          w.kind,
                          {static_cast<std::int32_t>(w.now.decodes),
                           static_cast<std::int32_t>(w.now.prompt_tokens), w.scheduler.kv_tokens()}});
}

void server::end_iteration(std::size_t i, double t) {
  worker& w = workers_[i];
  ending_ = i + 1;
  const batch_scheduler::events& e = w.scheduler.last();
  if (w.stretch > 0) {
    pass_over(i);
  } else {
    add_samples(i, t);
    if (!w.prefills) count_gaps(w, t);
  }
  out_.prompt_tokens += w.now.prompt_tokens;
  out_.recomputed_tokens += e.recomputed_tokens;
  out_.swapped_tokens += w.now.swapped_tokens;
  for (const std::int32_t q : e.first_tokens) record(q).first_token_s = t;
  out_.end_s = std::max(out_.end_s, t);
  w.busy = false;
  for (const std::int32_t q : e.finished) {
    w.in_hand -= 1;
    count_service(i, t - record(q).admitted_s);
    if (w.prefills && request(q).output > 1) send_cache(q, i, t);
    else finish(q, t);
  }
  pull(i, t);
  arrive(t);  // requests sent now are ready for the next iteration
  woken_.push_back(i);
  begin_iterations(t);
  // Clients send their next request after the next iteration has begun.
  for (; returning_ > 0; --returning_) begin_session(t);
  begin_iterations(t);
  ending_ = 0;
}

void server::send_cache(std::int32_t q, std::size_t from, double t) {
  record(q).prefilled_s = t;
  const std::size_t to = choose(request(q), cache_router(), 0, decoding_);
  record(q).worker = static_cast<std::int32_t>(to);
  workers_[to].in_hand += 1;
  orders_.caches.push_back({q, from, to, set_.prefill->transfer(request(q).input, from, to)});
}

void server::finish(std::int32_t q, double t) {
  ++ended_;
  record(q).last_token_s = t;
  out_.output_tokens += record(q).output;
  count_in_flight(t, -1);
  if (set_.seen) set_.seen(record(q));
  const std::int32_t next = next_turn_[static_cast<std::size_t>(q)];
  if (next < 0 && set_.clients > 0) {
    if (++sessions_ended_ == set_.clients) out_.steady_from_s = t;
    if (set_.prompts_cached) begin_session(t);
    else ++returning_;
  }
  if (next >= 0) expected_.push({t + request(next).wait_s, next});
}

void server::take_orders(orders& into) {
  into.iterations.clear();
  into.caches.clear();
  into.fetches.clear();
  std::swap(into, orders_);
}

void tell(server& s, std::vector<server_event>& events) {
  std::sort(events.begin(), events.end());
  for (auto e = events.begin(); e != events.end();) {
    const double now = e->at_s;
    bool came = false;
    for (; e != events.end() && e->at_s == now && e->what != server_event::kind::end; ++e) {
      came = true;
      if (e->what == server_event::kind::delivery) s.deliver(e->who, now);
      else if (e->what == server_event::kind::fetch) s.fetched(e->who, now);
      else s.arrive(now);
    }
    if (came) s.begin_iterations(now);
    for (; e != events.end() && e->at_s == now; ++e) s.end_iteration(static_cast<std::size_t>(e->who), now);
  }
  events.clear();
}

namespace {

/// Plays one server by an event queue.
serving_outcome play(const server_case& c) {
  using later = std::greater<>;
  server s(c.list, c.settings, c.price, c.stretches.price ? &c.stretches : nullptr);
  std::priority_queue<server_event, std::vector<server_event>, later> agenda;  // ends and deliveries
  std::vector<double> due(s.workers(),
                          -1);  // end of each worker's iterations; others in the agenda are of the past
  std::vector<double> sends_free(s.workers()), fetches_free(s.workers());
  server::orders orders;
  const auto obey = [&](double now) {
    s.take_orders(orders);
    for (const server::started& i : orders.iterations) {
      agenda.push({i.end_s, server_event::kind::end, static_cast<std::int32_t>(i.worker)});
      due[i.worker] = i.end_s;
    }
    for (const server::sending& x : orders.caches) {
      double& free = sends_free[x.from];
      free = std::max(free, now) + x.transfer.seconds;
      agenda.push({free, server_event::kind::delivery, x.request});
    }
    for (const server::fetching& x : orders.fetches) {
      double& free = fetches_free[x.worker];
      free = std::max(free, now) + x.seconds;
      agenda.push({free, server_event::kind::fetch, x.request});
    }
  };
  s.open();
  obey(0);
  const auto is_past = [&](const server_event& e) {
    return e.what == server_event::kind::end && due[static_cast<std::size_t>(e.who)] != e.at_s;
  };
  for (std::vector<server_event> events;;) {
    while (!agenda.empty() && is_past(agenda.top())) agenda.pop();
    const double coming = s.next_arrival();
    const double now = agenda.empty() ? coming : std::min(coming, agenda.top().at_s);
    if (now == std::numeric_limits<double>::infinity()) break;
    // Caches and requests of a date come together, iterations end one by one.
    const auto pop = [&] {
      events.push_back(agenda.top());
      agenda.pop();
    };
    while (!agenda.empty() && agenda.top().at_s == now && agenda.top().what != server_event::kind::end) pop();
    if (coming == now) events.push_back({now, server_event::kind::arrival, 0});
    if (events.empty()) {
      due[static_cast<std::size_t>(agenda.top().who)] = -1;
      pop();
    }
    tell(s, events);
    obey(now);
  }
  return std::move(s).close();
}

}  // namespace

served_cases serve_by_queue(const std::vector<server_case>& cases) {
  served_cases out;
  for (const server_case& c : cases) out.outcomes.push_back(play(c));
  return out;
}

}  // namespace nvlsim
