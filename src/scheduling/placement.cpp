#include <algorithm>
#include <queue>

#include "nvlsim/scheduling/policy.hpp"

namespace nvlsim {
namespace {

/// The room that a rack has for nodes of a job.
struct rack_room {
  int rack = 0;
  int nodes = 0;          ///< that have enough free GPUs
  std::int64_t gpus = 0;  ///< free on them
};

bool fuller(const rack_room& a, const rack_room& b) {
  return a.gpus != b.gpus ? a.gpus < b.gpus : a.rack < b.rack;
}

/// Nodes for a job as they are taken from racks.
class taker {
 public:
  taker(const queue_cluster& cluster, const job_demand& demand, std::span<const std::int16_t> free)
      : cluster_(cluster), demand_(demand), free_(free) {
    for (int r = 0; r < cluster.racks; ++r) {
      rack_room room{r, 0, 0};
      for (int n = r * cluster.nodes_per_rack; n < (r + 1) * cluster.nodes_per_rack; ++n)
        if (free[static_cast<std::size_t>(n)] >= demand.gpus_each)
          ++room.nodes, room.gpus += free[static_cast<std::size_t>(n)];
      nodes_ += room.nodes;
      if (room.nodes > 0) rooms_.push_back(room);
    }
  }

  int nodes() const { return nodes_; }
  std::vector<rack_room>& rooms() { return rooms_; }

  /// Takes the nodes with the fewest free GPUs that suffice, the first of equals.
  void take(int rack, int count) {
    std::vector<int> fit;
    for (int n = rack * cluster_.nodes_per_rack; n < (rack + 1) * cluster_.nodes_per_rack; ++n)
      if (free_[static_cast<std::size_t>(n)] >= demand_.gpus_each) fit.push_back(n);
    if (demand_.gpus_each < cluster_.gpus_per_node)
      std::stable_sort(fit.begin(), fit.end(), [this](int a, int b) {
        return free_[static_cast<std::size_t>(a)] < free_[static_cast<std::size_t>(b)];
      });
    taken_.insert(taken_.end(), fit.begin(), fit.begin() + count);
  }

  std::vector<int> taken() {
    std::sort(taken_.begin(), taken_.end());
    return std::move(taken_);
  }

 private:
  const queue_cluster& cluster_;
  const job_demand& demand_;
  std::span<const std::int16_t> free_;
  std::vector<rack_room> rooms_;
  int nodes_ = 0;
  std::vector<int> taken_;
};

/// The fullest rack that has room for `count` nodes, or null.
const rack_room* fullest_with(const std::vector<rack_room>& rooms, int count) {
  const rack_room* best = nullptr;
  for (const rack_room& r : rooms)
    if (r.nodes >= count && (!best || fuller(r, *best))) best = &r;
  return best;
}

std::vector<int> from_racks_in_order(taker& t, int count) {
  for (const rack_room& r : t.rooms()) {
    const int here = std::min(count, r.nodes);
    t.take(r.rack, here);
    count -= here;
    if (count == 0) break;
  }
  return t.taken();
}

std::vector<int> place_packed(taker& t, int count) {
  std::sort(t.rooms().begin(), t.rooms().end(), fuller);
  return from_racks_in_order(t, count);
}

std::vector<int> place_in_few(taker& t, int count) {
  std::sort(t.rooms().begin(), t.rooms().end(), [](const rack_room& a, const rack_room& b) {
    return a.nodes != b.nodes ? a.nodes > b.nodes : fuller(a, b);
  });
  std::vector<rack_room>& rooms = t.rooms();
  std::size_t i = 0;
  for (; rooms[i].nodes < count; ++i) {
    t.take(rooms[i].rack, rooms[i].nodes);
    count -= rooms[i].nodes;
  }
  // The last rack is the fullest of those that have room for the rest.
  rooms.erase(rooms.begin(), rooms.begin() + static_cast<std::ptrdiff_t>(i));
  if (count > 0) t.take(fullest_with(rooms, count)->rack, count);
  return t.taken();
}

std::vector<int> place_spread(taker& t, int count) {
  struct by_room {
    bool operator()(const rack_room& a, const rack_room& b) const {
      return a.gpus != b.gpus ? a.gpus < b.gpus : a.rack > b.rack;
    }
  };
  std::priority_queue<rack_room, std::vector<rack_room>, by_room> rooms(by_room(), t.rooms());
  std::vector<int> of_rack(t.rooms().empty() ? 0 : static_cast<std::size_t>(t.rooms().back().rack) + 1);
  for (; count > 0; --count) {
    rack_room r = rooms.top();
    rooms.pop();
    ++of_rack[static_cast<std::size_t>(r.rack)];
    r.gpus -= r.gpus / r.nodes;
    if (--r.nodes > 0) rooms.push(r);
  }
  for (std::size_t r = 0; r < of_rack.size(); ++r)
    if (of_rack[r] > 0) t.take(static_cast<int>(r), of_rack[r]);
  return t.taken();
}

/// Segments of `size` nodes and one of the nodes that are left over, each within a rack, in few racks.
std::vector<int> place_segments(taker& t, int count, int size) {
  int whole = count / size;
  const int rest = count % size;
  std::vector<rack_room>& rooms = t.rooms();
  // Each rack takes a segment at least, so no more racks than segments have to be in order.
  const auto most = static_cast<std::ptrdiff_t>(std::min(rooms.size(), static_cast<std::size_t>(whole) + 1));
  std::partial_sort(rooms.begin(), rooms.begin() + most, rooms.end(),
                    [size](const rack_room& a, const rack_room& b) {
                      const int in_a = a.nodes / size, in_b = b.nodes / size;
                      return in_a != in_b ? in_a > in_b : fuller(a, b);
                    });
  std::vector<int> used(rooms.size());
  for (std::size_t i = 0; whole > 0; ++i) {
    if (i == rooms.size()) return {};
    // The last rack is the fullest of those that have room for all that is left.
    std::size_t at = i;
    const int left = whole * size + rest;
    for (std::size_t j = i; j < rooms.size() && rooms[i].nodes / size >= whole; ++j)
      if (rooms[j].nodes >= left && (rooms[at].nodes < left || fuller(rooms[j], rooms[at]))) at = j;
    std::swap(rooms[i], rooms[at]);
    const int here = std::min(whole, rooms[i].nodes / size);
    if (here == 0) return {};
    used[i] = here * size;
    whole -= here;
  }
  if (rest > 0) {
    std::size_t at = rooms.size();
    for (std::size_t j = 0; j < rooms.size(); ++j) {
      if (rooms[j].nodes - used[j] < rest) continue;
      const bool shared = used[j] > 0, best_shared = at < rooms.size() && used[at] > 0;
      if (at == rooms.size() || shared > best_shared || (shared == best_shared && fuller(rooms[j], rooms[at])))
        at = j;
    }
    if (at == rooms.size()) return {};
    used[at] += rest;
  }
  for (std::size_t j = 0; j < rooms.size(); ++j)
    if (used[j] > 0) t.take(rooms[j].rack, used[j]);
  return t.taken();
}

}  // namespace

job_demand demand_of(const batch_job& job, const queue_cluster& cluster, const placement_policy& policy) {
  job_demand d;
  const int per = cluster.gpus_per_node;
  d.nodes = job.nodes > 0 ? job.nodes : (job.gpus + per - 1) / per;
  d.gpus_each =
      policy.whole_nodes || (job.nodes == 0 && job.gpus > per) ? per : (job.gpus + d.nodes - 1) / d.nodes;
  d.segment = job.segment;
  if (d.segment == 0)
    for (const segment_rule& s : policy.segments)
      if (job.gpus >= s.from_gpus) d.segment = s.nodes;
  return d;
}

std::vector<int> place_job(const queue_cluster& cluster, placement_kind kind, const job_demand& demand,
                           std::span<const std::int16_t> free) {
  taker t(cluster, demand, free);
  if (t.nodes() < demand.nodes) return {};
  switch (kind) {
    case placement_kind::pack:
      return place_packed(t, demand.nodes);
    case placement_kind::spread:
      return place_spread(t, demand.nodes);
    case placement_kind::block: {
      const int size = demand.segment > 0 ? demand.segment : cluster.nodes_per_rack;
      return place_segments(t, demand.nodes, std::min(size, demand.nodes));
    }
    case placement_kind::tree:
    case placement_kind::kueue_required:
    case placement_kind::kueue_preferred:
      break;
  }
  if (const rack_room* one = fullest_with(t.rooms(), demand.nodes)) {
    t.take(one->rack, demand.nodes);
    return t.taken();
  }
  if (kind == placement_kind::kueue_required) return {};
  return kind == placement_kind::tree ? place_packed(t, demand.nodes) : place_in_few(t, demand.nodes);
}

bool can_ever_run(const queue_cluster& cluster, placement_kind kind, const job_demand& demand) {
  if (demand.gpus_each > cluster.gpus_per_node || demand.nodes > cluster.nodes()) return false;
  const std::vector<std::int16_t> empty(static_cast<std::size_t>(cluster.nodes()),
                                        static_cast<std::int16_t>(cluster.gpus_per_node));
  return !place_job(cluster, kind, demand, empty).empty();
}

}  // namespace nvlsim
