// Calibrates stacks on published measurements.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/fit_report.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Called with progress messages.
using fit_progress = std::function<void(const std::string&)>;

/// Fits the training stacks of `data` to the rows of training tables that give a complete configuration.
/// `leave_out` is "", "configuration" or "cell" (a twelfth of them at a time), "model", "system", "release",
/// "gpus" or "third". If not empty, refits without each group in turn and reports the errors on it.
fit_report fit_training(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                        const std::string& leave_out, const fit_progress& report = {});

/// Fits the stacks of training frameworks other than Megatron to rows of training tables with a column
/// `framework`: time factor and how much of data-parallel traffic is not hidden, for each framework with five or
/// more complete rows. Run it after `fit_training`. `leave_out` is "" or "configuration".
fit_report fit_frameworks(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                          const std::string& leave_out, const fit_progress& report = {});

/// Fits the costs of post-training loops to steps of NeMo RL (v0.5 and later, on H100) and verl (up to 32 GPUs).
/// Mean responses that a table does not state are inferred with them. Errors on the other steps are always
/// reported; `leave_out` is "" or "model".
fit_report fit_loops(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                     const std::string& leave_out, const fit_progress& report = {});

/// Fits the serving stacks to the closed-loop, static-batch and offline rows of inference tables. For `leave_out`,
/// "third" predicts each random third of the configurations from the others.
fit_report fit_inference(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                         const std::string& leave_out, const fit_progress& report = {});

/// Fits the kernel stacks of `data` to rows of kernel tables, one family and architecture at a time. `only`
/// restricts the fit to families with this prefix ("moe/", "gemm/fp8"). `leave_out` is "", "system" (predicts each
/// GPU from others of its architecture) or "third" (predicts each third of the rows from the other two).
fit_report fit_kernels(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                       const std::string& only, const std::string& leave_out, const fit_progress& report = {});

/// Fits the collective profile of the shipped library stack to rows of collective tables and to the collective
/// rows of kernel tables, one parameter family at a time. `leave_out` is "", "system", "gpus" or "size". When it
/// is set, a fabric with one system is predicted from the other fabrics.
fit_report fit_collectives(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                           const std::string& leave_out, const fit_progress& report = {});

}  // namespace nvlsim
