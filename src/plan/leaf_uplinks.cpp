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

/// GPUs under a leaf, by class.
using leaf_content = std::map<std::int32_t, std::int64_t>;

bool has_uplinks(platform p) {
  p.fabric.busy = 1;
  return network::uplink_of(p) < p.fabric.nic_bandwidth;
}

/// The up-links of a whole leaf, in each direction.
bandwidth of_leaf(platform p) {
  p.fabric.busy = 1;
  return network::uplink_of(p) * network::gpus_per_leaf(p);
}

/// Leaves with equal contents, and how many there are.
std::map<leaf_content, std::int64_t> kinds_of_leaves(const platform& p, const std::vector<class_place>& classes) {
  std::map<std::int64_t, leaf_content> by_leaf;
  for (std::size_t c = 0; c < classes.size(); ++c)
    for (const std::int64_t gpu : classes[c].gpus)
      ++by_leaf[network::leaf_of(p, gpu)][static_cast<std::int32_t>(c)];
  std::map<leaf_content, std::int64_t> out;
  for (auto& [leaf, content] : by_leaf) ++out[std::move(content)];
  return out;
}

/// The kind of leaf that holds most GPUs of each class.
std::vector<const leaf_content*> usual_leaves(const std::map<leaf_content, std::int64_t>& kinds,
                                              std::size_t classes) {
  std::vector<const leaf_content*> out(classes, nullptr);
  std::vector<std::int64_t> held(classes, 0);
  for (const auto& [content, leaves] : kinds)
    for (const auto& [c, gpus] : content)
      if (const auto i = static_cast<std::size_t>(c); gpus * leaves > held[i])
        held[i] = gpus * leaves, out[i] = &content;
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

}  // namespace

double busiest_leaf(const platform& p, const std::vector<std::int64_t>& gpus) {
  if (!has_uplinks(p)) return 1;
  std::map<std::int64_t, std::int64_t> by_leaf;
  std::int64_t most = 0;
  for (const std::int64_t gpu : gpus) most = std::max(most, ++by_leaf[network::leaf_of(p, gpu)]);
  return std::min(1.0, static_cast<double>(most) / network::gpus_per_leaf(p));
}

std::vector<shared_uplink> uplinks_of(const platform& p, const std::vector<class_place>& classes) {
  std::vector<shared_uplink> out;
  if (!has_uplinks(p)) return out;
  const bandwidth nic = p.fabric.nic_bandwidth, leaf = of_leaf(p);
  const std::map<leaf_content, std::int64_t> kinds = kinds_of_leaves(p, classes);
  const std::vector<const leaf_content*> usual = usual_leaves(kinds, classes.size());
  const auto job_of = [&](std::int32_t c) { return classes[static_cast<std::size_t>(c)].job; };
  std::map<const leaf_content*, std::vector<std::int32_t>> together;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (!usual[i]) continue;
    const auto c = static_cast<std::int32_t>(i);
    double of_job = 0;
    for (const auto& [other, gpus] : *usual[i])
      if (job_of(other) == job_of(c)) of_job += static_cast<double>(gpus);
    out.push_back({fmt::format("up-links of class {}", i), std::min(leaf / of_job, nic), {c}});
    together[usual[i]].push_back(c);
  }
  std::map<std::vector<std::int32_t>, bandwidth> joint;  // in the order of classes
  for (const auto& [content, members] : together) {
    std::set<std::int32_t> jobs;
    double gpus = 0;
    for (const std::int32_t c : members) jobs.insert(job_of(c)), gpus += static_cast<double>(content->at(c));
    if (jobs.size() < 2 || !(leaf / gpus < nic)) continue;
    const std::vector<std::int32_t> counted = by_gpus(members, *content);
    joint[counted] = leaf * (static_cast<double>(counted.size()) / gpus);
  }
  // What is alone under its leaf and has as much as its NIC needs none; the others meet there whatever they have.
  std::set<std::int32_t> meet;
  for (const auto& [members, capacity] : joint) meet.insert(members.begin(), members.end());
  std::erase_if(out,
                [&](const shared_uplink& u) { return !(u.capacity < nic) && !meet.contains(u.classes.front()); });
  std::size_t number = 0;
  for (const auto& [members, capacity] : joint)
    out.push_back({fmt::format("shared up-links {}", number++), capacity, members});
  return out;
}

}  // namespace nvlsim
