#include "nvlsim/post_training/weight_transfer.hpp"

#include <algorithm>
#include <cmath>

namespace nvlsim {

transfer_time time_of(const transfer_job& j, const transfer_rates& r) {
  transfer_time out;
  out.fixed = r.fixed;
  const auto shards = static_cast<double>(std::max<std::int64_t>(1, j.rollout_shards));
  const bytes in = j.weights / shards;  // of one rollout rank
  if (j.path == transfer_path::broadcast) {
    const double doublings = std::log2(static_cast<double>(std::max<std::int64_t>(1, j.servers)));
    out.wire = j.weights / r.broadcast * (1 + r.growth * doublings);
    out.tensors = r.per_tensor * static_cast<double>(j.tensors);
  } else if (j.path == transfer_path::rdma) {
    out.fixed = r.rdma_fixed;
    out.wire = j.weights / r.rdma;
  } else {
    // All copies leave the trainer; each of its ranks sends the same share.
    const bytes sent = j.weights * (static_cast<double>(j.replicas) / static_cast<double>(j.train_ranks));
    const bytes through = j.path == transfer_path::ipc ? in : std::max(in, sent);
    out.wire = through / (j.port * r.port_share);
    out.tensors =
        (j.path == transfer_path::ipc ? r.per_tensor_shared : r.per_tensor) * static_cast<double>(j.tensors);
  }
  if (j.requantise) out.requantise = j.weights_16bit / shards / r.requantise_rate;
  return out;
}

}  // namespace nvlsim
