// Training steps on degraded hardware. [docs/models-and-assumptions.md#degraded]
#pragma once

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// `plan_training` with `w.degraded`. With `fold`, replicas with equal hardware at every stage share one class per
/// stage; without, every rank is a class.
plan plan_degraded(const platform& p, const stack& s, const model& m, const training_workload& w, bool fold);

}  // namespace nvlsim
