// Training settings without effect, and work that is not priced, for the notes of a result.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// One sentence for each part of a step whose time is not counted or was never compared with a published step:
/// towers, deterministic kernels, a frozen language model.
std::vector<std::string> unpriced_work(const model& m, const training_workload& w);

/// One sentence per setting without effect: recomputed modules that no layer has, expert settings of a dense
/// model, more offloaded layers than a GPU holds, adapters whose rank is not stated.
std::vector<std::string> idle_settings(const model& m, const training_workload& w);

/// Whether layers have norms in kernels of their own, before experts and in latent and compressed attention; in
/// others they are part of the next projection's kernel, and computing them again saves nothing.
bool has_norm_kernels(const model& m);

}  // namespace nvlsim
