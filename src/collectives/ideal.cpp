// [docs/network-fidelities.md#ideal-collectives]
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "nvlsim/collectives/ideal_collective.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

constexpr std::string_view ring = "ring", halving_doubling = "halving_doubling", pairwise = "pairwise";

bool reduces_or_gathers(collective c) {
  return c == collective::all_reduce || c == collective::all_gather || c == collective::reduce_scatter;
}

bool can_run(collective c, std::string_view algorithm) {
  if (algorithm == ring) return reduces_or_gathers(c) || c == collective::broadcast;
  if (algorithm == halving_doubling) return reduces_or_gathers(c);
  return algorithm == pairwise && (c == collective::all_to_all || c == collective::send_recv);
}

/// Rounds down like integer arithmetic. A product of decimals may lie slightly below the intended integer.
double whole(double x) { return std::floor(x * (1 + 1e-12)); }
seconds rounded(const ideal_network& net, seconds t) {
  return net.integer ? seconds::from_base(whole(t.base() * 1e9) * 1e-9) : t;
}
bytes rounded(const ideal_network& net, bytes b) { return net.integer ? bytes::from_base(whole(b.base())) : b; }

}  // namespace

std::string_view ideal_algorithm(collective c, std::string_view asked, int ranks) {
  std::string possible;
  for (std::string_view a : std::array{ring, halving_doubling, pairwise}) {
    if (!can_run(c, a)) continue;
    if (a == asked || asked.empty()) {
      if (a != halving_doubling || std::has_single_bit(static_cast<unsigned>(ranks))) return a;
      throw input_error(
          {{"", "", fmt::format("halving_doubling needs a power of two of ranks, not {}", ranks), {}}});
    }
    possible += (possible.empty() ? "" : " or ") + std::string(a);
  }
  if (possible.empty())
    throw input_error(
        {{"",
          "",
          fmt::format("{} cannot run on ideal parameters, only through a collective library", name(c)),
          {}}});
  throw input_error(
      {{"", "", fmt::format("{} on an ideal network runs by {}, not by \"{}\"", name(c), possible, asked), {}}});
}

std::vector<message_rounds> ideal_rounds(const ideal_network& net, collective c, std::string_view algorithm,
                                         bytes size, int ranks) {
  if (ranks <= 1) return {};
  const bytes part = size / static_cast<double>(net.splits);
  std::vector<message_rounds> out;
  const auto add = [&](double share, int count, bool reduces) {
    out.push_back({rounded(net, part * share), count, reduces});
  };
  const bool reduces = c == collective::all_reduce || c == collective::reduce_scatter;
  const bool gathers = c == collective::all_reduce || c == collective::all_gather;
  if (algorithm == halving_doubling) {
    const int doublings = std::countr_zero(static_cast<unsigned>(ranks));
    for (int j = 1; reduces && j <= doublings; ++j) add(std::exp2(-j), 1, true);
    for (int j = doublings; gathers && j >= 1; --j) add(std::exp2(-j), 1, false);
  } else if (c == collective::send_recv) {
    add(1, 1, false);
  } else if (reduces_or_gathers(c)) {
    if (reduces) add(1.0 / ranks, ranks - 1, true);
    if (gathers) add(1.0 / ranks, ranks - 1, false);
  } else {
    // All-to-all sends a message to every other rank. A broadcast passes one chunk per rank down a line of ranks.
    add(1.0 / ranks, c == collective::broadcast ? 2 * (ranks - 1) : ranks - 1, false);
  }
  return out;
}

seconds message_time(const ideal_network& net, bytes message) {
  return rounded(net, net.alpha + message / net.rate) * static_cast<double>(net.hops);
}

seconds after_message(const ideal_network& net, const message_rounds& r) {
  if (!net.local_rate) return net.endpoint;
  return net.endpoint + rounded(net, r.message / *net.local_rate) * (r.reduces ? 2.0 : 1.0);
}

seconds ideal_time(const ideal_network& net, collective c, std::string_view algorithm, bytes size, int ranks) {
  if (ranks <= 1) return {};
  seconds t = net.endpoint;
  for (const message_rounds& r : ideal_rounds(net, c, algorithm, size, ranks))
    t += (message_time(net, r.message) + after_message(net, r)) * static_cast<double>(r.count);
  return t * static_cast<double>(net.splits);
}

}  // namespace nvlsim
