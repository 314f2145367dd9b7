// [docs/collectives.md#collectives-in-a-domain]
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "nvlsim/collectives/models.hpp"

namespace nvlsim::collectives {
namespace {

constexpr seconds never = seconds::from_base(std::numeric_limits<double>::infinity());
constexpr bytes nowhere = bytes::from_base(std::numeric_limits<double>::infinity());

/// The library reduces in the switch from five ranks up, and gathers and scatters there above sixteen.
constexpr int nvls_reduce_ranks = 5, nvls_gather_ranks = 17;

seconds line(const protocol_params& p, const call& c, bytes size) {
  return p.latency + p.hop * c.hops() + size * (bus_factor(c.kind, c.ranks) * c.options.skew) / p.rate;
}

bool copies_own_share(const call& c) {
  return !c.options.in_place && (c.kind == collective::all_reduce || c.kind == collective::all_gather ||
                                 c.kind == collective::reduce_scatter || c.kind == collective::all_to_all);
}

bool forced(const call& c, std::string_view algorithm) { return c.options.algorithm == algorithm; }

bool nvls_possible(const call& c, const domain_collective& d) {
  const bool reduces = c.kind == collective::all_reduce;
  const bool gathers = c.kind == collective::all_gather || c.kind == collective::reduce_scatter;
  if (!d.nvls_rate || !(reduces || gathers)) return false;
  if (!c.options.algorithm.empty()) return forced(c, "nvls");
  return c.ranks >= (reduces ? nvls_reduce_ranks : nvls_gather_ranks);
}

/// In the order in which the library uses them as messages grow.
enum protocol : std::size_t { ll, ll128, simple, nvls, protocols };
constexpr std::array<std::string_view, protocols> protocol_names = {"ll", "ll128", "simple", "nvls"};

seconds simple_time(const domain_collective& d, const call& c, bytes size) {
  seconds transfer = size * (bus_factor(c.kind, c.ranks) * c.options.skew) / d.simple.rate;
  if (copies_own_share(c)) transfer += size / static_cast<double>(c.ranks) / d.local_copy;
  const seconds t =
      power_sum(d.simple.latency + d.simple.hop * c.hops(), pipe(transfer, d.pipeline), d.simple_power);
  return d.simple_few ? std::min(t, line(*d.simple_few, c, size)) : t;
}

seconds protocol_time(const domain_collective& d, const call& c, protocol p, bytes size) {
  switch (p) {
    case ll:
      return d.ll_few ? std::min(line(*d.ll_few, c, size), line(d.ll, c, size)) : line(d.ll, c, size);
    case ll128:
      return d.ll128 ? line(*d.ll128, c, size) : never;
    case simple:
      return simple_time(d, c, size);
    default:
      break;
  }
  const double factor = c.kind == collective::all_reduce ? 1 : bus_factor(c.kind, c.ranks);
  return d.nvls_latency + chunked_pipe(size * factor, *d.nvls_rate, d.nvls_pipeline_per_rank * c.ranks,
                                       d.nvls_pipeline_limit * c.ranks);
}

/// The size from which the library uses each protocol.
using first_sizes = std::array<bytes, protocols>;

/// Sizes at which the estimates of the library cross. A protocol that it never prefers has no start.
first_sizes ring_zones(const call& c, const protocol_tuning& t, bool with_nvls) {
  const double factor = bus_factor(c.kind, c.ranks);
  struct believed {
    double latency, per_byte;
  };
  const auto belief = [&](const protocol_params& p, double f) {
    return believed{(p.latency + p.hop * c.hops()).base(), f / p.rate.base()};
  };
  std::array<std::optional<believed>, protocols> lines = {belief(t.ll, factor), belief(t.ll128, factor),
                                                          belief(t.simple, factor), std::nullopt};
  if (with_nvls && t.nvls) {
    lines[nvls] = belief(*t.nvls, 1);
    // In gather and scatter the switch saves hops, not bytes.
    if (c.kind != collective::all_reduce) lines[nvls]->per_byte = lines[simple]->per_byte;
  }
  first_sizes first;
  first.fill(nowhere);
  for (std::size_t j = 0; j < protocols; ++j) {
    if (!lines[j]) continue;
    double from = 0;
    for (std::size_t i = 0; i < j; ++i) {
      if (!lines[i]) continue;
      const double later = lines[j]->latency - lines[i]->latency;
      const double cheaper = lines[i]->per_byte - lines[j]->per_byte;
      if (later <= 0 && cheaper >= 0) continue;
      from = cheaper > 0 ? std::max(from, later / cheaper) : nowhere.base();
    }
    first[j] = bytes::from_base(from);
  }
  // A protocol that starts after a later one is never used.
  for (std::size_t j = protocols - 1; j-- > 0;)
    if (lines[j] && first[j] >= *std::min_element(first.begin() + static_cast<std::ptrdiff_t>(j) + 1, first.end()))
      first[j] = nowhere;
  return first;
}

first_sizes zones(const call& c, const protocol_tuning* t, bool with_nvls) {
  const bytes zero;
  if (forced(c, "nvls")) return {nowhere, nowhere, nowhere, zero};
  if (!t) return {zero, zero, zero, with_nvls ? zero : nowhere};
  if (c.kind != collective::all_to_all) return ring_zones(c, *t, with_nvls);
  return {zero, nowhere, t->p2p_ll_limit * static_cast<double>(c.ranks), nowhere};
}

estimate by_protocol(const call& c, const domain_collective& d) {
  for (std::size_t j = 0; j < nvls; ++j) {
    if (protocol_names[j] != c.options.protocol) continue;
    if (const seconds t = protocol_time(d, c, static_cast<protocol>(j), c.size); t < never)
      return {t, protocol_names[j]};
  }
  no_such_algorithm(c, "in one domain");
}

}  // namespace

seconds chunked_pipe(bytes size, bandwidth rate, seconds rho, bytes limit) {
  const bytes cut = std::min(size, limit);
  return pipe(cut / rate, rho) + (size - cut) / rate;
}

estimate in_domain(const call& c, const domain_collective& d, const protocol_tuning* tuning) {
  const bool with_nvls = nvls_possible(c, d);
  const bool natural = forced(c, c.kind == collective::all_to_all ? "pairwise" : "ring");
  // Algorithms other than rings and pairs run with Simple.
  const bool by_simple = !c.options.algorithm.empty() && !natural;
  if (by_simple && !c.options.protocol.empty() && c.options.protocol != "simple")
    no_such_algorithm(c, "in one domain");
  if (by_simple && !with_nvls) return derived_in_domain(c, d);
  if (!c.options.protocol.empty() && !forced(c, "nvls")) return by_protocol(c, d);
  const first_sizes first = zones(c, tuning, with_nvls);

  // The library uses the last protocol that has started. Later ones count at the size at which they start, so that
  // a message never takes longer than a larger one.
  std::size_t chosen = 0;
  // Collectives that were not measured use rates and hops of others, which do not fit the crossing points of the
  // library's estimates.
  const bool measured = c.kind != collective::broadcast && c.kind != collective::reduce;
  for (std::size_t j = 0; measured && j < protocols; ++j)
    if (first[j] < c.size || first[j] == bytes{}) chosen = tuning || forced(c, "nvls") ? j : chosen;
  estimate best{never, protocol_names[chosen]};
  for (std::size_t j = chosen; j < protocols; ++j) {
    if (first[j] == nowhere) continue;
    const seconds t = protocol_time(d, c, static_cast<protocol>(j), std::max(c.size, first[j]));
    if (t < best.time) best = {t, protocol_names[j]};
  }
  // A library that prefers a protocol which the domain lacks falls back to those that every domain has.
  if (best.time == never)
    for (const protocol p : {ll, simple})
      if (const seconds t = protocol_time(d, c, p, c.size); t < best.time) best = {t, protocol_names[p]};
  // No published sweep shows the switch gathering or scattering.
  best.derived = best.algorithm == protocol_names[nvls] && c.kind != collective::all_reduce;
  return best;
}

estimate derived_in_domain(const call& c, const domain_collective& d) {
  const double n = c.ranks, doublings = std::log2(n);
  const bool reduces = c.kind == collective::all_reduce;
  const bool halves = c.kind == collective::all_gather || c.kind == collective::reduce_scatter;
  const auto time = [&](double hops, double factor) {
    return d.simple.latency + d.simple.hop * hops + pipe(c.size * factor / d.simple.rate, d.pipeline);
  };
  // Every rank is an inner node of one of the two trees and a leaf of the other: it sends and receives half of the
  // array three times and once.
  if (reduces && forced(c, "tree")) return {time(2 * doublings, 2), "tree", true};
  const bool powers = (c.ranks & (c.ranks - 1)) == 0;
  if ((reduces || halves) && powers && forced(c, "halving_doubling"))
    return {time(reduces ? 2 * doublings : doublings, bus_factor(c.kind, c.ranks)), "halving_doubling", true};
  no_such_algorithm(c, "in one domain");
}

}  // namespace nvlsim::collectives
