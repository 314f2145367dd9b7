// Layouts of a server under many numbers of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "nvlsim/analysis/pareto_study.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Closed loops of each number of clients on each layout of `gpus` GPUs (0: as many as the scenario's layout has):
/// tensor parallel sizes that are powers of two, with experts spread over them or not, and attention data
/// parallelism with experts over all ranks.
pareto_study study_pareto(scenario s, std::int64_t gpus, const std::vector<std::int64_t>& clients,
                          const std::function<void(std::size_t, std::size_t)>& report = {});

}  // namespace nvlsim
