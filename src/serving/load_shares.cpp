#include "serving/load_shares.hpp"

#include <algorithm>

#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/worker_health.hpp"

namespace nvlsim {
namespace {

/// Distributes requests over workers in turn, so some workers may have one more. In a closed loop requests go to
/// clients, and clients to workers; workers without a client get no requests.
std::vector<load_share> deal(const inference_workload& w) {
  const bool closed = w.load == load_kind::closed_loop;
  const std::int64_t all = std::int64_t{w.replicas} * w.pp, workers = closed ? std::min(all, w.concurrency) : all;
  const std::int64_t of_client = closed ? w.requests / w.concurrency : 0,
                     rest = w.requests - of_client * w.concurrency * closed;
  const std::int64_t each = rest / workers, more = rest % workers;
  const std::int64_t clients = closed ? w.concurrency / workers : 0;
  const std::int64_t more_clients = closed ? w.concurrency % workers : 0;
  std::vector<load_share> out;
  const std::vector<std::int64_t> cuts = {0, std::min(more, more_clients), std::max(more, more_clients), workers};
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i + 1] == cuts[i]) continue;
    const std::int64_t first = cuts[i];
    const std::int64_t here = clients + (first < more_clients ? 1 : 0);
    const std::int64_t requests = here * of_client + each + (first < more ? 1 : 0);
    if (requests > 0) out.push_back({first, cuts[i + 1] - first, requests, here, {}});
  }
  return out;
}

}  // namespace

bool dealt(const inference_workload& w) {
  const auto random = [](const token_lengths& l) { return l.shape != length_shape::uniform; };
  const bool waits =
      w.load == load_kind::offline || w.load == load_kind::closed_loop || w.load == load_kind::static_batch;
  return waits && !w.pooled() && !w.sessions && w.router == router_policy::round_robin && !random(w.input) &&
         !random(w.output);
}

std::vector<load_share> shares_of(const platform& p, const inference_workload& w, bool fold) {
  std::vector<load_share> out;
  for (const load_share& group : deal(w)) {
    std::vector<load_share> kinds;
    if (fold && w.degraded.empty()) kinds.push_back(group);
    else
      for (std::int64_t i = group.first; i < group.first + group.workers; ++i) {
        const hardware_health h = health_of(i, false, p, w);
        const auto like =
            std::find_if(kinds.begin(), kinds.end(), [&](const load_share& k) { return fold && k.health == h; });
        if (like == kinds.end()) kinds.push_back({i, 1, group.requests, group.clients, h});
        else ++like->workers;
      }
    out.insert(out.end(), kinds.begin(), kinds.end());
  }
  return out;
}

}  // namespace nvlsim
