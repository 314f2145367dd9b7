#include "scheduling/cluster_state.hpp"

#include <algorithm>

namespace nvlsim {

cluster_state::cluster_state(const queue_cluster& shape)
    : shape_(shape), held_(static_cast<std::size_t>(shape.nodes())),
      free_(held_.size(), static_cast<std::int16_t>(shape.gpus_per_node)), down_(held_.size()),
      jobs_(held_.size()), nodes_with_(static_cast<std::size_t>(shape.gpus_per_node) + 1),
      busy_in_rack_(static_cast<std::size_t>(shape.racks)), idle_(shape.gpus()), idle_racks_(shape.racks) {
  nodes_with_.back() = shape.nodes();
}

bool cluster_state::has_room(const job_demand& d) const {
  std::int64_t nodes = 0;
  for (std::size_t g = static_cast<std::size_t>(d.gpus_each); g < nodes_with_.size(); ++g) nodes += nodes_with_[g];
  return nodes >= d.nodes;
}

/// Adds a node to the sums or takes it out of them.
void cluster_state::count(int node, int sign) {
  const auto n = static_cast<std::size_t>(node);
  nodes_with_[static_cast<std::size_t>(free_[n])] += sign;
  idle_ += sign * free_[n];
  if (down_[n] > 0) down_gpus_ += sign * (shape_.gpus_per_node - held_[n]);
  if (down_[n] == 0 && held_[n] == 0) return;
  int& busy = busy_in_rack_[n / static_cast<std::size_t>(shape_.nodes_per_rack)];
  const bool was_idle = busy == 0;
  busy += sign;
  idle_racks_ += static_cast<int>(busy == 0) - static_cast<int>(was_idle);
}

void cluster_state::change(int node, int held, int down) {
  const auto n = static_cast<std::size_t>(node);
  count(node, -1);
  held_[n] = static_cast<std::int16_t>(held_[n] + held);
  down_[n] += down;
  free_[n] = static_cast<std::int16_t>(down_[n] > 0 ? 0 : shape_.gpus_per_node - held_[n]);
  count(node, 1);
}

void cluster_state::hold(int job, int gpus_each, std::span<const int> nodes) {
  for (const int n : nodes) {
    change(n, gpus_each, 0);
    jobs_[static_cast<std::size_t>(n)].push_back(job);
  }
}

void cluster_state::release(int job, int gpus_each, std::span<const int> nodes) {
  for (const int n : nodes) {
    change(n, -gpus_each, 0);
    std::erase(jobs_[static_cast<std::size_t>(n)], job);
  }
}

void cluster_state::take_down(int node) { change(node, 0, 1); }
void cluster_state::bring_up(int node) { change(node, 0, -1); }

}  // namespace nvlsim
