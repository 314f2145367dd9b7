// Steps on hardware that is not the same everywhere. [docs/models-and-assumptions.md#degraded]
#pragma once

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// `plan_training` with `w.degraded`: replicas with the same hardware at each of their stages are one class a
/// stage, or every rank is one of its own.
plan plan_degraded(const platform& p, const stack& s, const model& m, const training_workload& w, bool fold);

}  // namespace nvlsim
