#include "nvlsim/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace nvlsim {
namespace {

/// Of all groups of `count` ranks `stride` apart, the one that spans the most domains.
communicator worst_group(const placement& place, std::int64_t world, std::int64_t stride, std::int64_t count) {
  if (place.table) return place.table->worst_group(stride, count);
  const std::int64_t domain = place.gpus_per_domain, block = stride * count;
  communicator worst = strided_group(place, 0, stride, count);
  // Groups repeat once block starts align with domains again, so one period of blocks contains all of them. Within
  // a block, a group spans one more domain if its first rank is on one of the last `rest` GPUs of a domain.
  const std::int64_t period = domain / std::gcd(domain, block), rest = stride * (count - 1) % domain;
  for (std::int64_t b = 0; b < std::min(period, world / block); ++b) {
    const std::int64_t offset = std::clamp<std::int64_t>(domain - rest - b * block % domain, 0, stride - 1);
    const communicator g = strided_group(place, b * block + offset, stride, count);
    if (g.domains > worst.domains) worst = g;
  }
  return worst;
}

/// The problems of a placement by table.
void add_table_problems(std::vector<std::string>& out, const parallelism& par, const rank_table& table,
                        const platform& p) {
  if (table.ranks() != par.gpus()) {
    out.push_back(fmt::format("tp {} x pp {} x cp {} x dp {} = {} ranks, but the placement has {} GPUs", par.tp,
                              par.pp, par.cp, par.dp, par.gpus(), table.ranks()));
    return;
  }
  for (std::int64_t first = 0; first < par.gpus(); first += par.tp) {
    if (table.group(first, 1, par.tp).domains == 1) continue;
    out.push_back(fmt::format("tensor parallelism must stay inside one {} domain, but ranks {} to {} do not",
                              link_name(p.gpu), first, first + par.tp - 1));
    break;
  }
  std::int64_t last = 0;
  for (std::int64_t r = 0; r < par.gpus(); ++r) last = std::max(last, table.domain_of(r));
  if (last >= p.racks)
    out.push_back(fmt::format("the placement needs {} {} domains; the platform has {}", last + 1, link_name(p.gpu),
                              p.racks));
}

}  // namespace

communicator rank_table::group(std::int64_t first, std::int64_t stride, std::int64_t count) const {
  std::vector<std::int64_t> domains;
  for (std::int64_t i = 0; i < count; ++i) domains.push_back(domain_of(first + i * stride));
  std::sort(domains.begin(), domains.end());
  communicator g{static_cast<int>(count), 0};
  for (auto from = domains.begin(); from != domains.end();) {
    const auto to = std::upper_bound(from, domains.end(), *from);
    const int members = static_cast<int>(to - from);
    g.fullest = std::max(g.fullest, members);
    g.emptiest = g.domains == 0 ? members : std::min(g.emptiest, members);
    ++g.domains;
    from = to;
  }
  return g;
}

communicator rank_table::worst_group(std::int64_t stride, std::int64_t count) const {
  const std::lock_guard<std::mutex> held(lock_);
  const auto [it, fresh] = worst_.try_emplace({stride, count}, communicator{static_cast<int>(count), 0});
  if (!fresh) return it->second;
  for (std::int64_t block = 0; block + stride * count <= ranks(); block += stride * count)
    for (std::int64_t first = block; first < block + stride; ++first) {
      const communicator g = group(first, stride, count);
      if (g.domains > it->second.domains) it->second = g;
    }
  return it->second;
}

placement placed_by_rail(std::int64_t ranks, std::int64_t block, std::int64_t gpus_per_domain, const platform& p) {
  const std::int64_t blocks = (ranks + block - 1) / block, each = gpus_per_domain / block;
  const std::int64_t domains = (blocks + each - 1) / each;
  std::vector<std::int64_t> gpus;
  gpus.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t r = 0; r < ranks; ++r)
    gpus.push_back(r / block % domains * p.gpus_per_rack() + r / block / domains * block + r % block);
  return {gpus_per_domain, std::make_shared<const rank_table>(std::move(gpus), p.gpus_per_rack())};
}

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
  if (place.table) {
    add_table_problems(out, par, *place.table, p);
    return out;
  }
  if (place.gpus_per_domain > domain)
    out.push_back(fmt::format("the placement uses {} GPUs of {}, which has only {}", place.gpus_per_domain,
                              a_domain(p.gpu), domain));
  if (par.tp > place.gpus_per_domain)
    out.push_back(fmt::format("tensor parallelism of {} exceeds the {} GPUs used in one {} domain", par.tp,
                              place.gpus_per_domain, link_name(p.gpu)));
  const std::int64_t domains = (world + place.gpus_per_domain - 1) / place.gpus_per_domain;
  if (domains > p.racks)
    out.push_back(fmt::format(
        "tp {} x pp {} x cp {} x dp {} = {} GPUs need {} {} domains at {} GPUs each; the platform has {}", par.tp,
        par.pp, par.cp, par.dp, world, domains, link_name(p.gpu), place.gpus_per_domain, p.racks));
  return out;
}

communicator strided_group(const placement& place, std::int64_t first, std::int64_t stride, std::int64_t count) {
  if (place.table) return place.table->group(first, stride, count);
  communicator g;
  g.ranks = static_cast<int>(count);
  const std::int64_t domain = place.gpus_per_domain, last = first + stride * (count - 1);
  const std::int64_t span = place.domain_of(last) - place.domain_of(first) + 1;
  g.domains = static_cast<int>(std::min(count, span));
  if (g.domains == 1 || stride >= domain) return g;  // one domain, or one rank per domain
  const std::int64_t in_first = (domain - first % domain + stride - 1) / stride,
                     in_last = last % domain / stride + 1;
  std::int64_t max = std::max(in_first, in_last), min = std::min(in_first, in_last);
  if (span > 2) {  // a domain in the middle holds one rank per stride
    max = std::max(max, (domain + stride - 1) / stride);
    min = std::min(min, domain / stride);
  }
  g.fullest = static_cast<int>(max);
  g.emptiest = static_cast<int>(min);
  return g;
}

communicator tensor_group(const parallelism& par, const placement& place) {
  return worst_group(place, par.gpus(), 1, par.tp);
}

communicator context_group(const parallelism& par, const placement& place) {
  return worst_group(place, par.gpus(), par.tp, par.cp);
}

communicator data_group(const parallelism& par, const placement& place, std::int64_t parts) {
  return worst_group(place, par.gpus(), par.tp, par.cp * par.dp / parts);
}

communicator data_parts_group(const parallelism& par, const placement& place, std::int64_t parts) {
  return worst_group(place, par.gpus(), par.tp * par.cp * par.dp / parts, parts);
}

communicator expert_group(const parallelism& par, const placement& place) {
  return worst_group(place, par.gpus(), par.etp, par.ep);
}

communicator expert_data_group(const parallelism& par, const placement& place, std::int64_t parts) {
  const std::int64_t block = par.ep * par.etp;
  return worst_group(place, par.gpus(), block,
                     std::max<std::int64_t>(1, par.tp * par.cp * par.dp / block / parts));
}

communicator expert_parts_group(const parallelism& par, const placement& place, std::int64_t parts) {
  return worst_group(place, par.gpus(), par.tp * par.cp * par.dp / parts, parts);
}

bool spans_domains(const parallelism& par, const placement& place) {
  return place.table ? place.table->group(0, 1, par.gpus()).domains > 1 : par.gpus() > place.gpus_per_domain;
}

bool stages_cross(const parallelism& par, const placement& place, std::int64_t from, std::int64_t to) {
  const std::int64_t stride = par.tp * par.cp * par.dp;
  const auto apart = [&](std::int64_t rank) {
    return place.domain_of(from * stride + rank) != place.domain_of(to * stride + rank);
  };
  if (!place.table) return apart(0) || apart(stride - 1);
  for (std::int64_t rank = 0; rank < stride; ++rank)
    if (apart(rank)) return true;
  return false;
}

}  // namespace nvlsim
