// Measures server layouts at several numbers of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "nvlsim/analysis/pareto_study.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Runs a closed loop for each number of clients on each layout of `gpus` GPUs (0: the scenario's number). Layouts
/// use power-of-two tensor parallel sizes with experts either tensor parallel or expert parallel, and attention
/// data parallelism with expert parallelism over all ranks.
pareto_study study_pareto(scenario s, std::int64_t gpus, const std::vector<std::int64_t>& clients,
                          const std::function<void(std::size_t, std::size_t)>& report = {});

}  // namespace nvlsim
