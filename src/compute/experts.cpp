#include <algorithm>
#include <random>
#include <vector>

#include "compute/smooth.hpp"
#include "nvlsim/units/random.hpp"

namespace nvlsim {
namespace {

constexpr double tile_columns = 128;
constexpr double tile_rounding = 0.5;  // of the last round of tiles [docs/kernels.md#expert-kernels]
constexpr double copy_bytes = 4;       // per element, read and written in 16 bits

expert_load load_of(const std::vector<double>& tokens, std::size_t first, std::size_t count) {
  expert_load out;
  for (std::size_t e = first; e < first + count; ++e) {
    if (tokens[e] <= 0) continue;
    out.pairs += tokens[e];
    out.active += 1;
    for (std::size_t t = 0; t < out.tiles.size(); ++t)
      out.tiles[t] += std::ceil(tokens[e] / expert_load::tile_rows[t]);
  }
  return out;
}

/// Popularity between `low` and `high` with density ~ x^-exponent.
double pareto(double u, double low, double high, double exponent) {
  const double one_less = 1 - exponent;
  if (std::abs(one_less) < 1e-9) return low * std::pow(high / low, u);
  const double a = std::pow(low, one_less), b = std::pow(high, one_less);
  return std::pow((b - a) * u + a, 1 / one_less);
}

/// Integer counts in proportion to popularity. A surplus from rounding is taken from the least popular experts, a
/// deficit is added to the most popular ones. No expert gets a token twice.
std::vector<double> counts_of(const std::vector<double>& popularity, double tokens, double pairs) {
  double total = 0, missing = pairs;
  for (const double x : popularity) total += x;
  std::vector<double> load(popularity.size());
  std::vector<std::size_t> order(load.size());
  for (std::size_t i = 0; i < load.size(); ++i) {
    load[i] = std::min(tokens, std::nearbyint(popularity[i] / total * pairs));
    missing -= load[i];
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return popularity[a] > popularity[b]; });
  for (auto e = order.rbegin(); e != order.rend() && missing <= -1; ++e)
    if (load[*e] > 0) load[*e] -= 1, missing += 1;
  while (missing >= 1) {
    double room = 0;
    for (const double n : load) room += n < tokens ? 1 : 0;
    if (room == 0) break;
    const double each = std::max(1.0, std::floor(missing / room));
    for (const std::size_t e : order) {
      const double more = std::min({each, tokens - load[e], missing});
      if (more <= 0) continue;
      load[e] += more;
      missing -= more;
    }
  }
  return load;
}

}  // namespace

// [docs/kernels.md#expert-kernels]
expert_load balanced_load(const expert_routing& r) {
  const double local = std::max(1.0, std::floor(r.experts / r.ranks));
  const double pairs = r.tokens * r.topk / r.ranks;
  if (!(pairs > 0)) return {};
  expert_load out;
  out.active = std::min(local, std::max(1.0, std::nearbyint(pairs)));
  out.mean = r.tokens * r.topk / r.experts;
  const double each = std::max(1.0, pairs / out.active);
  out.pairs = out.active * each;
  for (std::size_t t = 0; t < out.tiles.size(); ++t)
    out.tiles[t] = out.active * std::ceil(each / expert_load::tile_rows[t]);
  return out;
}

expert_load skewed_load(const expert_routing& r, double exponent, int samples, std::uint64_t seed) {
  const double pairs = r.tokens * r.topk;
  if (!(pairs > 0) || !(r.experts >= 1) || samples < 1) return {};
  const auto experts = static_cast<std::size_t>(r.experts);
  const auto ranks = static_cast<std::size_t>(std::clamp(r.ranks, 1.0, r.experts));
  const std::size_t local = std::max<std::size_t>(1, experts / ranks);
  // Few tokens on many experts: samples shares instead of counts.
  const bool sparse = pairs <= r.experts;
  const double low = sparse ? 0.01 : 1, high = sparse ? 2 : std::max(1.001, 0.8 * r.tokens);
  std::mt19937_64 source(seed);
  expert_load sum;
  sum.mean = pairs / r.experts;
  std::vector<double> popularity(experts);
  for (int d = 0; d < samples; ++d) {
    for (double& x : popularity) x = pareto(uniform(source), low, high, exponent);
    const std::vector<double> load = counts_of(popularity, r.tokens, pairs);
    expert_load fullest;
    for (std::size_t k = 0; k < ranks; ++k)
      if (const expert_load x = load_of(load, k * local, local); x.pairs > fullest.pairs) fullest = x;
    sum.pairs += fullest.pairs / samples;
    sum.active += fullest.active / samples;
    for (std::size_t t = 0; t < sum.tiles.size(); ++t) sum.tiles[t] += fullest.tiles[t] / samples;
  }
  return sum;
}

namespace {

/// The mean number of tokens per expert selects the kernel, not the number of each expert.
std::size_t tile_for(const moe_params& p, double mean) {
  std::size_t t = 0;
  while (t + 1 < expert_load::tile_rows.size() && expert_load::tile_rows[t] < p.tile_margin * mean &&
         expert_load::tile_rows[t] < p.tallest_tile)
    ++t;
  return t;
}

}  // namespace

// [docs/kernels.md#expert-kernels]
kernel_cost moe_cost(const gpu_spec& gpu, const moe_params& p, const moe_shape& s) {
  if (!(s.tokens > 0 && s.hidden > 0 && s.inter > 0)) return {};
  const double hbm = gpu.hbm_bandwidth.base() * p.hbm_share;
  const double weight = bytes_per_element(p.weights), activation = bytes_per_element(p.activations);
  double compute_time = 0, memory_time = 0, products = 0, moved = 0, flop = 0;
  const double up = (s.gated ? 2 : 1) * s.inter;
  const std::size_t t = tile_for(p, s.load.mean);
  const double tile = expert_load::tile_rows[t] * tile_columns;
  const double step = compute::smooth_max(p.step_time.base(), 2 * tile * gpu.sm_count / p.tensor_rate.base());
  for (const auto& [n, k] : {std::pair{up, s.hidden}, std::pair{s.hidden, s.inter}}) {
    const double io = s.load.active * n * k * weight + s.load.pairs * (k * activation + 2 * n);
    const double rounds =
        compute::rounds(s.load.tiles[t] * std::ceil(n / tile_columns) / gpu.sm_count, tile_rounding);
    const double one = (k + p.fill_depth) * step, exposed = p.exposed_share * one;
    compute_time += rounds * one;
    memory_time += io / hbm;
    products += exposed + compute::smooth_max(rounds * one - exposed, io / hbm);
    moved += io;
    flop += 2 * s.load.pairs * n * k;
  }
  const double copies = (p.pair_passes * s.load.pairs + p.token_passes * s.tokens) * s.hidden * copy_bytes;
  const double fixed = p.launch.base() + p.expert_time.base() * s.local_experts;
  const double time = fixed + products + copies / hbm;
  return {.time = seconds::from_base(time),
          .flop = flops::from_base(flop),
          .moved = bytes::from_base(moved + copies),
          .limit = compute::limit_of(fixed, compute_time, memory_time + copies / hbm, time),
          .launch = seconds::from_base(fixed)};
}

}  // namespace nvlsim
