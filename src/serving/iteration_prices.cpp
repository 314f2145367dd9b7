#include "nvlsim/serving/iteration_prices.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/plan/part_facts.hpp"

namespace nvlsim {
namespace {

constexpr int points_per_doubling = 8;

/// Point `i` of the grid of cache lengths, which starts at 1.
double grid(int i) {
  return std::ldexp(1 + static_cast<double>(i % points_per_doubling) / points_per_doubling,
                    i / points_per_doubling);
}

void add(iteration_content& to, const iteration& it, double times) {
  to.decodes += times * static_cast<double>(it.decodes);
  to.context += times * static_cast<double>(it.context);
  to.prompt_tokens += times * static_cast<double>(it.prompt_tokens);
  to.prompt_pairs += times * it.prompt_pairs;
  to.prompts += times * static_cast<double>(it.prompts);
  to.finished_prompts += times * static_cast<double>(it.finished_prompts);
}

}  // namespace

/// The time at a point of the grid.
double iteration_prices::decode_time_at(std::int64_t decodes, std::size_t point) {
  const auto d = static_cast<std::size_t>(decodes);
  if (decode_times_.size() <= d) decode_times_.resize(d + 1);
  std::vector<double>& known = decode_times_[d];
  if (known.size() <= point) known.resize(point + 1);
  double& t = known[point];
  if (t == 0) {
    const auto n = static_cast<double>(decodes);
    t = costs_.time({.decodes = n, .context = n * grid(static_cast<int>(point))}).base();
  }
  return t;
}

double iteration_prices::decode_time(std::int64_t decodes, std::int64_t context) {
  const double each = std::max(1.0, static_cast<double>(context) / static_cast<double>(decodes));
  int doublings = 0;
  const double part = (2 * std::frexp(each, &doublings) - 1) * points_per_doubling;
  const auto i = static_cast<std::size_t>((doublings - 1) * points_per_doubling + static_cast<int>(part));
  const double share = part - std::floor(part);
  const double after = decode_time_at(decodes, i + 1);
  return (1 - share) * decode_time_at(decodes, i) + share * after;
}

// The same arithmetic as in `decode_time`, to the last bit: points of the grid are looked up only where they
// change.
void iteration_prices::price_decodes(std::int64_t decodes, std::span<const std::int64_t> contexts,
                                     std::vector<double>& took) {
  kind_of({.decodes = decodes});  // kinds are numbered in the order in which they begin
  took.clear();
  double low = 0, high = 0, scale = 0;  // of the doubling
  std::int64_t first = 0, point = -1;
  double begin = 0, end = 0;
  for (const std::int64_t context : contexts) {
    const double each = std::max(1.0, static_cast<double>(context) / static_cast<double>(decodes));
    if (!(each >= low && each < high)) {
      const int doublings = std::ilogb(each);
      low = std::ldexp(1.0, doublings);
      high = 2 * low;
      scale = 1 / low;
      first = std::int64_t{doublings} * points_per_doubling;
    }
    const double part = (each * scale - 1) * points_per_doubling;
    const auto whole = static_cast<std::int64_t>(part);
    if (first + whole != point) {
      point = first + whole;
      end = decode_time_at(decodes, static_cast<std::size_t>(point) + 1);
      begin = decode_time_at(decodes, static_cast<std::size_t>(point));
    }
    const double share = part - static_cast<double>(whole);
    took.push_back((1 - share) * begin + share * end);
  }
}

void iteration_prices::count_decodes(std::int64_t decodes, std::span<const std::int64_t> contexts,
                                     std::span<const double> took, std::int64_t workers) {
  use& u = uses_[static_cast<std::size_t>(kind_of({.decodes = decodes}))];
  const auto times = static_cast<double>(workers), n = static_cast<double>(contexts.size());
  u.sum.decodes += times * n * static_cast<double>(decodes);
  u.sum.context += times * static_cast<double>(std::accumulate(contexts.begin(), contexts.end(), std::int64_t{0}));
  u.count += times * n;
  for (const double t : took) u.seconds += times * t;
}

void iteration_prices::begin_run(const inference_workload& w) {
  if (costs_.run_under(w)) decode_times_.clear();
  kinds_.clear();
  uses_.clear();
  exchanges_.clear();
}

/// Eight classes per doubling of decodes and of prompt tokens.
std::int32_t iteration_prices::kind_of(const iteration& it) {
  const auto bin = [&](std::int64_t n) -> std::uint32_t {
    constexpr double per_doubling = 8;
    constexpr std::int64_t tabled = 1 << 14;
    if (n >= tabled) return static_cast<std::uint32_t>(per_doubling * std::log2(static_cast<double>(n) + 1));
    while (static_cast<std::int64_t>(bins_.size()) <= n)
      bins_.push_back(static_cast<std::uint16_t>(per_doubling * std::log2(static_cast<double>(bins_.size()) + 1)));
    return bins_[static_cast<std::size_t>(n)];
  };
  const auto [at, is_new] =
      kinds_.try_emplace(bin(it.decodes) << 16 | bin(it.prompt_tokens), static_cast<std::int32_t>(uses_.size()));
  if (is_new) uses_.emplace_back();
  return at->second;
}

/// The parts of an iteration that have traffic, which what is cached does not change.
const operation_template& iteration_prices::exchanges_of(const iteration& it) {
  iteration key = it;
  key.context = key.swapped_tokens = 0;
  key.prompt_pairs = 0;
  const auto [at, is_new] = exchanges_.try_emplace(key);
  if (is_new) {
    at->second = costs_.price(it, true);
    std::erase_if(at->second.parts,
                  [](const operation_part& p) { return !p.facts || p.facts->traffic == network_traffic{}; });
  }
  return at->second;
}

iteration_price iteration_prices::price(const iteration& it, std::int64_t workers) {
  const std::int32_t kind = kind_of(it);
  const double swap = it.swapped_tokens > 0 ? static_cast<double>(it.swapped_tokens) / swap_rate_ : 0;
  const double time =
      swap + (it.prompt_tokens == 0 ? decode_time(it.decodes, it.context) : costs_.time(content_of(it)).base());
  use& u = uses_[static_cast<std::size_t>(kind)];
  const auto times = static_cast<double>(workers);
  add(u.sum, it, times);
  u.swapped += times * swap;
  u.count += times;
  u.seconds += times * time;
  if (!traffic_) return {time, kind};
  const operation_template& exchanges = exchanges_of(it);
  if (exchanges.parts.empty()) return {time, kind};
  auto o = std::make_shared<operation_template>();
  o->name = exchanges.name;
  o->duration = seconds::from_base(time);
  o->network = demands_within(costs_.hardware(), exchanges.parts, o->duration);
  return {time, kind, std::move(o)};
}

std::vector<iteration_use> iteration_prices::uses(bool explained) {
  std::vector<iteration_use> out;
  for (const use& u : uses_) {
    const auto mean = [&](double x) { return std::llround(x / u.count); };
    iteration it{.decodes = mean(u.sum.decodes),
                 .context = mean(u.sum.context),
                 .prompt_tokens = mean(u.sum.prompt_tokens),
                 .prompt_pairs = u.sum.prompt_pairs / u.count,
                 .prompts = mean(u.sum.prompts),
                 .finished_prompts = mean(u.sum.finished_prompts)};
    if (it.prompt_tokens > 0) it.prompts = std::max<std::int64_t>(1, it.prompts);
    iteration_use one{costs_.price(it, explained || traffic_), u.count, u.seconds};
    if (traffic_)
      one.operation.network = demands_within(costs_.hardware(), one.operation.parts, one.operation.duration);
    if (u.swapped > 0) {
      const seconds each = seconds::from_base(u.swapped / u.count);
      one.operation.parts.push_back({part_kind::memory_bound, "kv_offload", each, 1,
                                     std::make_shared<part_facts>(facts_of_wait(resource::c2c, each))});
      one.operation.duration += each;
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace nvlsim
