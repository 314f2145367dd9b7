#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>

#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/requests.hpp"
#include "nvlsim/units/random.hpp"

namespace nvlsim {
namespace {

constexpr std::uint64_t arrival_stream =
    0x9e3779b97f4a7c15;                     // separates random samples of arrivals from those of lengths
constexpr std::int64_t session_block = 64;  // tokens per prefix block of a conversation

/// Gamma with the given shape and mean 1 (Marsaglia and Tsang, 2000).
double gamma(std::mt19937_64& g, double shape) {
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(g), t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    if (std::log(1 - uniform(g)) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    const double boost = shape < 1 ? std::pow(1 - uniform(g), 1 / shape) : 1;
    return d * v * boost / shape;
  }
}

std::int64_t sample(std::mt19937_64& g, const token_lengths& l) {
  double length = l.mean;
  if (l.shape == length_shape::uniform) {
    length *= 1 + l.spread * (2 * uniform(g) - 1);
  } else if (l.shape == length_shape::exponential) {
    length *= exponential(g);
  } else {
    const double variance = std::log1p(l.variation * l.variation);
    length *= std::exp(std::sqrt(variance) * normal(g) - variance / 2);
  }
  return std::llround(std::clamp(length, static_cast<double>(l.min), static_cast<double>(l.max)));
}

/// Arrival times, with a mean gap of 1 / rate.
class arrival_clock {
 public:
  arrival_clock(const arrival_settings& a, std::uint64_t seed) : arrivals_(a), random_(seed ^ arrival_stream) {}

  /// The first arrival is one gap after the start.
  double next() {
    switch (arrivals_.process) {
      case arrival_process::poisson:
        now_ += exponential(random_) / arrivals_.rate_per_s;
        break;
      case arrival_process::gamma:
        now_ += gamma(random_, 1 / (arrivals_.variation * arrivals_.variation)) / arrivals_.rate_per_s;
        break;
      case arrival_process::fixed:
        now_ += 1 / arrivals_.rate_per_s;
        break;
    }
    return now_;
  }

 private:
  arrival_settings arrivals_;
  std::mt19937_64 random_;
  double now_ = 0;
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Appends the turns of conversations.
class session_writer {
 public:
  session_writer(const inference_workload& w, request_list& out) : workload_(w), random_(w.seed), out_(out) {
    out_.prefix_tokens = session_block;
  }

  void add(double arrival_s, std::int64_t room, std::int64_t max) {
    const session_settings& s = *workload_.sessions;
    const std::int64_t turns = std::min(sample(random_, s.turns), room);
    const std::size_t first = out_.requests.size(), names = out_.prefixes.size();
    std::int64_t said = s.shared_prompt;
    for (std::int64_t t = 0; t < turns; ++t) {
      served_request r;
      r.arrival_s = arrival_s;
      r.input =
          said + sample(random_, t == 0 ? s.first_input.value_or(workload_.input) : workload_.input) + images();
      r.output = sample(random_, workload_.output);
      if (t > 0) {
        r.after = static_cast<std::int32_t>(out_.requests.size()) - 1;
        r.wait_s = s.wait_mean_s * exponential(random_);
        if (max > 0 && r.input + r.output > max) break;
      }
      said = r.input + r.output;
      r.first_prefix = names;
      r.prefixes = static_cast<std::uint32_t>(said / session_block);
      out_.requests.push_back(r);
    }
    const std::uint32_t longest = out_.requests.back().prefixes;
    for (std::uint32_t b = 0; b < longest; ++b) {
      const bool shared = (b + 1) * session_block <= s.shared_prompt;
      out_.prefixes.push_back(mixed(shared ? 0 : first + 1, b));
    }
  }

 private:
  std::int64_t images() {
    return workload_.images ? sample(random_, workload_.images->count) * workload_.images->tokens_each : 0;
  }

  const inference_workload& workload_;
  std::mt19937_64 random_;
  request_list& out_;
};

request_list conversations(const inference_workload& w, std::int64_t max) {
  request_list out;
  session_writer sessions(w, out);
  arrival_clock clock(w.arrivals, w.seed);
  const bool timed = w.load == load_kind::open_loop;
  while (static_cast<std::int64_t>(out.requests.size()) < w.requests)
    sessions.add(timed ? clock.next() : 0, w.requests - static_cast<std::int64_t>(out.requests.size()), max);
  return out;
}

/// Requests of a trace, with scaled rate and arrivals spread over ticks.
request_list replayed(const inference_workload& w) {
  request_list out = w.replay->list;
  if (w.requests > 0 && static_cast<std::size_t>(w.requests) < out.requests.size())
    out.requests.resize(static_cast<std::size_t>(w.requests));
  std::mt19937_64 g(w.seed);
  // Turns of a conversation come with its first one.
  const auto leader = [&](const served_request& r) -> const served_request& {
    return out.requests[static_cast<std::size_t>(r.after)];
  };
  if (!w.replay->timed) {
    arrival_clock clock(w.arrivals, w.seed);
    for (served_request& r : out.requests) r.arrival_s = r.after >= 0 ? leader(r).arrival_s : clock.next();
  }
  for (served_request& r : out.requests) {
    if (w.tick_s > 0 && r.after < 0) r.arrival_s += w.tick_s * uniform(g);
    r.arrival_s = r.after >= 0 ? leader(r).arrival_s : r.arrival_s / w.rate_scale;
  }
  if (w.tick_s > 0) sort_by_arrival(out.requests);
  if (w.images)
    for (served_request& r : out.requests) r.input += sample(g, w.images->count) * w.images->tokens_each;
  return out;
}

/// Clients of decode workers alone are met midway, as in a run that has long gone on: their first requests have
/// made evenly spread parts of their outputs. Otherwise all caches of equal requests would be full at the same
/// time.
void begin_midway(const inference_workload& w, std::vector<served_request>& requests) {
  constexpr double golden = 0.6180339887498949;  // spreads any number of first requests, on any worker
  const auto first = std::min(requests.size(), static_cast<std::size_t>(std::max<std::int64_t>(w.concurrency, 0)));
  for (std::size_t i = 0; i < first; ++i) {
    served_request& r = requests[i];
    const double at = golden * (static_cast<double>(i) + 0.5), part = at - std::floor(at);
    const auto made = static_cast<std::int64_t>(part * static_cast<double>(r.output - 1));
    r.input += made;
    r.output -= made;
  }
}

}  // namespace

double service_objective::share_of(latency l) const {
  double out = 0;
  for (const percentile_limit& p : percentiles)
    if (p.of == l) out = std::max(out, p.share);
  return out > 0 ? out : share;
}

double service_objective::largest_share() const {
  double out = 0;
  for (const auto& [limit, of] :
       {std::pair(ttft_s, latency::ttft), {tpot_s, latency::tpot}, {e2e_s, latency::e2e}})
    if (limit) out = std::max(out, share_of(of));
  return out;
}

void sort_by_arrival(std::vector<served_request>& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].arrival_s < all[b].arrival_s; });
  std::vector<std::int32_t> now_at(all.size());
  std::vector<served_request> sorted;
  sorted.reserve(all.size());
  for (const std::size_t i : order) {
    now_at[i] = static_cast<std::int32_t>(sorted.size());
    sorted.push_back(all[i]);
  }
  for (served_request& r : sorted)
    if (r.after >= 0) r.after = now_at[static_cast<std::size_t>(r.after)];
  all = std::move(sorted);
}

request_lengths sample_lengths(const inference_workload& w, std::int64_t count) {
  std::mt19937_64 g(w.seed);
  request_lengths out;
  out.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t input = sample(g, w.input);
    if (w.images) input += sample(g, w.images->count) * w.images->tokens_each;
    out.emplace_back(input, sample(g, w.output));
  }
  return out;
}

request_list generate_requests(const inference_workload& w, std::int64_t longest) {
  if (w.load == load_kind::trace) return replayed(w);
  if (w.sessions) return conversations(w, longest);
  request_list out;
  arrival_clock clock(w.arrivals, w.seed);
  for (const auto& [input, output] : sample_lengths(w, w.requests)) {
    served_request r;
    r.arrival_s = w.load == load_kind::open_loop ? clock.next() : 0;
    r.input = input;
    r.output = output;
    out.requests.push_back(r);
  }
  if (w.prompts_cached && w.load == load_kind::closed_loop) begin_midway(w, out.requests);
  return out;
}

}  // namespace nvlsim
