// [docs/collectives.md#inference-collectives]
#include <algorithm>
#include <cmath>

#include "nvlsim/collectives/models.hpp"

namespace nvlsim {

std::optional<collective_cost> custom_all_reduce_time(const collective_profile& profile, const platform& p,
                                                      bytes size, int ranks, std::string_view only) {
  if (ranks <= 1) return collective_cost{{}, "none", false};
  auto it = profile.custom.find(p.gpu.name);
  if (it == profile.custom.end()) it = profile.custom.find(collectives::kind_of_domain(profile, p.gpu).name);
  if (it == profile.custom.end()) return std::nullopt;
  const custom_all_reduce& k = it->second;
  const double peers = ranks - 1.0;
  const bandwidth links = p.gpu.nvlink * collectives::links_reaching(p, ranks);
  const seconds start = k.one_latency + k.per_peer * peers;
  const seconds one = start + size * peers / (links * k.one_share);
  const seconds two =
      start + k.two_extra + size * bus_factor(collective::all_reduce, ranks) / (links * k.two_share);
  if (!only.empty())
    return collective_cost{only == "one_shot" ? one : two, only == "one_shot" ? "one_shot" : "two_shot"};
  return one <= two ? collective_cost{one, "one_shot", false} : collective_cost{two, "two_shot", false};
}

double places_reached(double places, double copies) { return places * (1 - std::pow(1 - 1 / places, copies)); }

double expert_traffic::reach() const {
  const double n = std::max(ranks, 1);
  // Tokens for the own rank, or for the one that received them for the domain, do not use the links.
  const double near = members > 0 ? members : n;
  return (spread ? std::min(topk, n) : places_reached(n, topk)) * (near - 1) / near;
}

std::optional<seconds> expert_exchange_time(const collective_profile& profile, const platform& p,
                                            std::string_view kind, const expert_traffic& t) {
  const auto it = profile.expert.find(std::string(kind));
  if (it == profile.expert.end()) return std::nullopt;
  const expert_exchange& k = it->second;
  const double n = std::max(t.ranks, 1);
  const bytes sent = bytes::from_base(t.reach() * t.skew * t.hidden * k.element_bytes);
  const seconds wire = sent / (p.gpu.nvlink * k.nvlink_share) * (1 + k.per_peer * n);
  // Handling a token overlaps with the transfer of others.
  constexpr double overlap = 4;
  return k.latency * (1 + k.per_doubling * std::log2(n)) +
         collectives::power_sum(k.per_token, wire, overlap) * t.tokens;
}

}  // namespace nvlsim
