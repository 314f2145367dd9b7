// The up-links that the classes of several jobs share.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// The GPUs that a class stands for, and the job that it belongs to.
struct class_place {
  std::int32_t job = 0;
  std::vector<std::int64_t> gpus;
};

/// Whether leaves or pods have less towards the other ones than their NICs together.
bool uplinks_limit(const platform& p);

/// The largest share of the NICs of a leaf, or a pod, that a job has. 1 where the level does not limit.
double busiest_group(const platform& p, network::uplink_level level, const std::vector<std::int64_t>& gpus);

/// Up-links by class. All GPUs of a class wait for the slowest, so that its flows pass the up-links of every kind
/// of leaf that it stands under. Under each, the GPUs of a job share the up-links evenly, and classes of different
/// jobs share them with each other, each GPU like every other: a class is listed as often as it has GPUs there, in
/// lowest terms, and the GPU that represents it takes its rate that often. Of leaves with the same classes those
/// are listed that can be the slowest: the fullest, and for each class the one with most of its GPUs. Pods are as
/// leaves, at a level of their own. Up-links that limit nothing are left out. Linear in the GPUs.
/// [docs/network-fidelities.md#jobs]
std::vector<shared_uplink> uplinks_of(const platform& p, const std::vector<class_place>& classes);

}  // namespace nvlsim
