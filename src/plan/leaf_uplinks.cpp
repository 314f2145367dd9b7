#include "nvlsim/plan/leaf_uplinks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "nvlsim/network/fabric_path.hpp"

namespace nvlsim {
namespace {

/// GPUs under a leaf, or a pod, by class.
using leaf_content = std::map<std::int32_t, std::int64_t>;

platform with_all_sending(platform p) {
  p.fabric.busy = p.fabric.busy_of_pod = 1;
  return p;
}

/// The up-links of a whole leaf, or pod, in each direction.
bandwidth of_leaf(const platform& p, network::uplink_level level) {
  return network::uplink_of(with_all_sending(p), level) * network::gpus_per_uplink_group(p, level);
}

/// Leaves with different contents.
std::set<leaf_content> kinds_of_leaves(const platform& p, network::uplink_level level,
                                       const std::vector<class_place>& classes) {
  std::map<std::int64_t, leaf_content> by_leaf;
  for (std::size_t c = 0; c < classes.size(); ++c)
    for (const std::int64_t gpu : classes[c].gpus)
      ++by_leaf[network::uplink_group_of(p, level, gpu)][static_cast<std::int32_t>(c)];
  std::set<leaf_content> out;
  for (auto& [leaf, content] : by_leaf) out.insert(std::move(content));
  return out;
}

std::int64_t gpus_of(const leaf_content& content) {
  std::int64_t out = 0;
  for (const auto& [c, gpus] : content) out += gpus;
  return out;
}

std::vector<std::int32_t> classes_of(const leaf_content& content) {
  std::vector<std::int32_t> out;
  for (const auto& [c, gpus] : content) out.push_back(c);
  return out;
}

/// GPUs under the leaf, by job.
std::map<std::int32_t, std::int64_t> by_job(const leaf_content& content, const std::vector<class_place>& classes) {
  std::map<std::int32_t, std::int64_t> out;
  for (const auto& [c, gpus] : content) out[classes[static_cast<std::size_t>(c)].job] += gpus;
  return out;
}

/// The leaves that can be the slowest: among those with the same classes, the one that holds most GPUs, and for
/// each class the one that holds most of its own.
std::set<const leaf_content*> slowest_leaves(const std::set<leaf_content>& kinds) {
  struct extremes {
    const leaf_content* fullest = nullptr;
    std::vector<const leaf_content*> by_class;
  };
  std::map<std::vector<std::int32_t>, extremes> found;
  for (const leaf_content& content : kinds) {
    extremes& e = found[classes_of(content)];
    if (!e.fullest || gpus_of(content) > gpus_of(*e.fullest)) e.fullest = &content;
    e.by_class.resize(content.size(), &content);
    std::size_t i = 0;
    for (const auto& [c, gpus] : content) {
      if (gpus > e.by_class[i]->at(c)) e.by_class[i] = &content;
      ++i;
    }
  }
  std::set<const leaf_content*> out;
  for (const auto& [classes, e] : found) {
    out.insert(e.fullest);
    out.insert(e.by_class.begin(), e.by_class.end());
  }
  return out;
}

/// Each class as often as it has GPUs under the leaf, in lowest terms. Above `most` times, the nearest ratio.
std::vector<std::int32_t> by_gpus(const std::vector<std::int32_t>& classes, const leaf_content& content) {
  constexpr std::int64_t most = 64;  // each is a flow more
  std::int64_t divisor = 0, largest = 0;
  for (const std::int32_t c : classes) {
    divisor = std::gcd(divisor, content.at(c));
    largest = std::max(largest, content.at(c));
  }
  const double times = std::min(1.0 / static_cast<double>(divisor), most / static_cast<double>(largest));
  std::vector<std::int32_t> out;
  for (const std::int32_t c : classes)
    out.insert(out.end(), std::max<std::size_t>(1, std::lround(times * static_cast<double>(content.at(c)))), c);
  return out;
}

/// The up-links of one level, which limits.
std::vector<shared_uplink> uplinks_at(const platform& p, network::uplink_level level,
                                      const std::vector<class_place>& classes) {
  std::vector<shared_uplink> out;
  const char* const whose = level == network::uplink_level::pods ? "pod up-links" : "up-links";
  const bandwidth nic = p.fabric.nic_bandwidth, leaf = of_leaf(p, level);
  const std::set<leaf_content> kinds = kinds_of_leaves(p, level, classes);
  std::vector<std::int64_t> most(classes.size(), 0);     // GPUs of its job under a leaf, by class
  std::map<std::vector<std::int32_t>, bandwidth> joint;  // in the order of classes
  for (const leaf_content& content : kinds) {
    const std::map<std::int32_t, std::int64_t> jobs = by_job(content, classes);
    for (const auto& [c, gpus] : content) {
      std::int64_t& n = most[static_cast<std::size_t>(c)];
      n = std::max(n, jobs.at(classes[static_cast<std::size_t>(c)].job));
    }
  }
  for (const leaf_content* content : slowest_leaves(kinds)) {
    const auto gpus = static_cast<double>(gpus_of(*content));
    if (by_job(*content, classes).size() < 2 || !(leaf / gpus < nic)) continue;
    const std::vector<std::int32_t> counted = by_gpus(classes_of(*content), *content);
    const bandwidth capacity = leaf * (static_cast<double>(counted.size()) / gpus);
    const auto [known, added] = joint.emplace(counted, capacity);
    if (!added) known->second = std::min(known->second, capacity);
  }
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (most[i] > 0)
      out.push_back({fmt::format("{} of class {}", whose, i),
                     std::min(leaf / static_cast<double>(most[i]), nic),
                     {static_cast<std::int32_t>(i)},
                     level});
  // What is alone under its leaf and has as much as its NIC needs none; the others meet there whatever they have.
  std::set<std::int32_t> meet;
  for (const auto& [members, capacity] : joint) meet.insert(members.begin(), members.end());
  std::erase_if(out,
                [&](const shared_uplink& u) { return !(u.capacity < nic) && !meet.contains(u.classes.front()); });
  std::size_t number = 0;
  for (const auto& [members, capacity] : joint)
    out.push_back({fmt::format("shared {} {}", whose, number++), capacity, members, level});
  return out;
}

}  // namespace

bool uplinks_limit(const platform& p) {
  const platform all = with_all_sending(p);
  return network::uplink_of(all) < p.fabric.nic_bandwidth;
}

double busiest_group(const platform& p, network::uplink_level level, const std::vector<std::int64_t>& gpus) {
  if (!network::limits(p, level)) return 1;
  std::map<std::int64_t, std::int64_t> by_group;
  std::int64_t most = 0;
  for (const std::int64_t gpu : gpus) most = std::max(most, ++by_group[network::uplink_group_of(p, level, gpu)]);
  return std::min(1.0, static_cast<double>(most) / network::gpus_per_uplink_group(p, level));
}

std::vector<shared_uplink> uplinks_of(const platform& p, const std::vector<class_place>& classes) {
  std::vector<shared_uplink> out;
  for (const network::uplink_level level : network::uplink_levels)
    if (network::limits(with_all_sending(p), level))
      for (shared_uplink& u : uplinks_at(p, level, classes)) out.push_back(std::move(u));
  return out;
}

}  // namespace nvlsim
