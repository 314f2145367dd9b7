#include "nvlsim/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace nvlsim {
namespace {

/// Of all groups of `count` ranks `stride` apart, the one that spans most domains.
comm_group worst_group(const placement& place, std::int64_t world, std::int64_t stride, std::int64_t count) {
  const std::int64_t domain = place.gpus_per_domain, block = stride * count;
  comm_group worst = strided_group(place, 0, stride, count);
  // Groups repeat once block starts realign with domains, so one period of blocks shows them all. Within a block a
  // group spans one domain more if its first rank sits in the last `rest` GPUs of a domain.
  const std::int64_t period = domain / std::gcd(domain, block), rest = stride * (count - 1) % domain;
  for (std::int64_t b = 0; b < std::min(period, world / block); ++b) {
    const std::int64_t offset = std::clamp<std::int64_t>(domain - rest - b * block % domain, 0, stride - 1);
    const comm_group g = strided_group(place, b * block + offset, stride, count);
    if (g.domains > worst.domains) worst = g;
  }
  return worst;
}

}  // namespace

hardware_health worse(const hardware_health& a, const hardware_health& b) {
  return {std::min(a.speed, b.speed), std::min(a.nvlink, b.nvlink), std::min(a.nic, b.nic)};
}

std::int64_t default_segment(const platform& p, std::int64_t gpus) {
  const std::int64_t domain = p.gpus_per_rack();
  if (gpus <= domain) return domain;
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(domain)));
}

std::vector<std::string> placement_problems(const parallelism& par, const placement& place, const platform& p) {
  std::vector<std::string> out;
  const std::int64_t domain = p.gpus_per_rack();
  const std::int64_t world = par.gpus();
  if (place.gpus_per_domain > domain)
    out.push_back(fmt::format("placement fills {} GPUs of an NVLink domain that has {}", place.gpus_per_domain, domain));
  if (par.tp > place.gpus_per_domain)
    out.push_back(fmt::format("tensor parallelism of {} exceeds the {} GPUs used in one NVLink domain", par.tp,
                              place.gpus_per_domain));
  const std::int64_t domains = (world + place.gpus_per_domain - 1) / place.gpus_per_domain;
  if (domains > p.racks)
    out.push_back(fmt::format("tp {} x pp {} x cp {} x dp {} = {} GPUs need {} NVLink domains at {} GPUs each; the platform has {}",
                              par.tp, par.pp, par.cp, par.dp, world, domains, place.gpus_per_domain, p.racks));
  return out;
}

comm_group strided_group(const placement& place, std::int64_t first, std::int64_t stride, std::int64_t count) {
  comm_group g;
  g.ranks = static_cast<int>(count);
  const std::int64_t domain = place.gpus_per_domain, last = first + stride * (count - 1);
  const std::int64_t span = place.domain_of(last) - place.domain_of(first) + 1;
  g.domains = static_cast<int>(std::min(count, span));
  if (g.domains == 1 || stride >= domain) return g;  // all of them in one, or one in each
  const std::int64_t in_first = (domain - first % domain + stride - 1) / stride, in_last = last % domain / stride + 1;
  std::int64_t most = std::max(in_first, in_last), least = std::min(in_first, in_last);
  if (span > 2) {  // a domain in the middle holds one rank a stride
    most = std::max(most, (domain + stride - 1) / stride);
    least = std::min(least, domain / stride);
  }
  g.fullest = static_cast<int>(most);
  g.fewest = static_cast<int>(least);
  return g;
}

comm_group tensor_group(const parallelism& par, const placement& place) {
  return worst_group(place, par.gpus(), 1, par.tp);
}

comm_group context_group(const parallelism& par, const placement& place) {
  return worst_group(place, par.gpus(), par.tp, par.cp);
}

comm_group data_group(const parallelism& par, const placement& place) {
  return worst_group(place, par.gpus(), par.tp, par.cp * par.dp);
}

comm_group expert_group(const parallelism& par, const placement& place) {
  return worst_group(place, par.gpus(), par.etp, par.ep);
}

comm_group expert_data_group(const parallelism& par, const placement& place) {
  const std::int64_t block = par.ep * par.etp;
  return worst_group(place, par.gpus(), block, std::max<std::int64_t>(1, par.tp * par.cp * par.dp / block));
}

bool pipeline_crosses(const parallelism& par, const placement& place, std::int64_t stage) {
  const std::int64_t stride = par.tp * par.cp * par.dp;
  return place.domain_of(stage * stride) != place.domain_of((stage + 1) * stride) ||
         place.domain_of((stage + 1) * stride - 1) != place.domain_of((stage + 2) * stride - 1);
}

}  // namespace nvlsim
