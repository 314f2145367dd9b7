// New weights on their way from the trainer to the rollout engines. [docs/post-training.md#weight-transfer]
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// `ipc`: trainer and engine share a GPU; each rank gathers its slice and hands it over in memory. `broadcast`:
/// the trainer gathers one tensor after the other, and all engines receive all of them. `reshard`: each rollout
/// rank receives only the slices that it holds, from the trainer ranks that have them (NCCL sends and receives).
/// `rdma`: the same, written by each trainer rank into the engines' memory without a collective.
enum class transfer_path { ipc, broadcast, reshard, rdma };
inline const std::array<std::string, 4> transfer_path_names = {"ipc", "broadcast", "reshard", "rdma"};

/// What a framework's code reaches on a path.
struct transfer_rates {
  bandwidth broadcast;        ///< of the whole model through the chain of gather, broadcast and load
  double port_share = 1;      ///< of the slower port of a rank, by `reshard` and `rdma`, and of NVLink by `ipc`
  seconds fixed;              ///< of a transfer: pause, handshake and flush of the engines
  seconds per_tensor;         ///< of every tensor of the checkpoint
  seconds per_tensor_shared;  ///< the same by `ipc`, where all ranks gather each tensor in turn
  seconds hop;                ///< of a broadcast, for every doubling of the servers that receive
  bandwidth requantise_rate;  ///< of 16-bit weights of one GPU that are cast to a narrower format
};

struct transfer_job {
  transfer_path path = transfer_path::reshard;
  bytes weights;                                    ///< of the model, in the format that travels
  bytes weights_16bit;                              ///< of the model, in 16 bits
  std::int64_t tensors = 0;                         ///< of the checkpoint
  std::int64_t train_ranks = 1, rollout_ranks = 1;  ///< GPUs
  std::int64_t rollout_shards = 1;  ///< GPUs that hold one copy of the model: a rank receives one part in so many
  std::int64_t replicas = 1;        ///< copies of the model in the rollout pool
  std::int64_t servers = 1;         ///< that receive a broadcast
  bandwidth port;                   ///< of one GPU towards the others: NVLink inside a domain, else its NIC
  bool requantise = false;          ///< the engines hold a narrower format than the one that travels
};

struct transfer_time {
  seconds wire, tensors, requantise, fixed;
  seconds total() const { return wire + tensors + requantise + fixed; }
};
transfer_time time_of(const transfer_job& j, const transfer_rates& r);

}  // namespace nvlsim
