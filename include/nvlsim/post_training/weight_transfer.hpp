// Transfer of new weights from the trainer to the rollout engines. [docs/post-training.md#weight-transfer]
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// How weights travel. `ipc`: trainer and engine share a GPU; each rank gathers its slice and passes it on in
/// memory. `broadcast`: the trainer gathers the tensors one by one, and all engines receive all of them.
/// `reshard`: each rollout rank receives only its slices, from the trainer ranks that have them (NCCL sends and
/// receives). `rdma`: writes into the engines' memory, or reads from the trainer's, without a collective; all
/// engines receive all tensors, as by `broadcast`.
enum class transfer_path { ipc, broadcast, reshard, rdma };
inline const std::array<std::string, 4> transfer_path_names = {"ipc", "broadcast", "reshard", "rdma"};

/// Rates and delays that a framework's code achieves.
struct transfer_rates {
  bandwidth broadcast;        ///< rate of the whole model through gather, broadcast and load
  bandwidth rdma;             ///< the same through RDMA
  double port_share = 1;      ///< used share: of a rank's slower port by `reshard`, of NVLink by `ipc`
  seconds fixed;              ///< per transfer: pause, handshake and flush of the engines
  seconds rdma_fixed;         ///< the same by `rdma`, with registration of memory
  seconds per_tensor;         ///< per tensor of the checkpoint, where not part of a rate (`rdma`)
  seconds per_tensor_shared;  ///< the same by `ipc`, where all ranks gather each tensor in turn
  double growth = 0;          ///< share of a broadcast's wire time per doubling of the servers that receive it
  bandwidth requantise_rate;  ///< rate per GPU of casting 16-bit weights to a narrower format
};

/// A transfer of weights.
struct transfer_job {
  transfer_path path = transfer_path::reshard;
  bytes weights;                                    ///< of the model, in the transferred format
  bytes weights_16bit;                              ///< of the model, in 16 bits
  std::int64_t tensors = 0;                         ///< of the checkpoint
  std::int64_t train_ranks = 1, rollout_ranks = 1;  ///< GPUs
  std::int64_t rollout_shards = 1;                  ///< GPUs per copy of the model: a rank receives 1 / this of it
  std::int64_t replicas = 1;                        ///< copies of the model in the rollout pool
  std::int64_t servers = 1;                         ///< servers that receive a broadcast
  bandwidth port;           ///< of one GPU to the others: NVLink inside a domain, else its NIC
  bool requantise = false;  ///< the engines use a narrower format than the transferred one
};

/// Time of a transfer by part.
struct transfer_time {
  seconds wire, tensors, requantise, fixed;
  seconds total() const { return wire + tensors + requantise + fixed; }
};
/// Time of one transfer.
transfer_time time_of(const transfer_job& j, const transfer_rates& r);

}  // namespace nvlsim
