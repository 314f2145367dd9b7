// Calibrating stacks on published measurements.
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

/// Called with a sentence now and then.
using fit_progress = std::function<void(const std::string&)>;

/// Fits the training stacks of `data` to rows of training tables with a complete configuration. `leave_out` is "",
/// "model", "system", "release", "gpus" or "third": refits without each in turn and reports its error.
fit_report fit_training(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                        const std::string& leave_out, const fit_progress& report = {});

/// The same for serving stacks, on the closed-loop, static-batch and offline rows of inference tables; `leave_out`
/// may also be "third", each random third of the configurations from the others.
fit_report fit_inference(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                         const std::string& leave_out, const fit_progress& report = {});

/// Fits the kernel stacks of `data` to rows of kernel tables, one family and architecture at a time; `only`
/// restricts it to families that start so ("moe/", "gemm/fp8"). `leave_out` is "", "system": each GPU from the
/// others of its architecture, or "third": each third of the rows from the other two.
fit_report fit_kernels(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                       const std::string& only, const std::string& leave_out, const fit_progress& report = {});

/// Fits the collective profile of the shipped library stack to rows of collective tables, and of the collective
/// parts of kernel tables, one family of parameters at a time. `leave_out` is "", "system", "gpus" or "size"; a
/// fabric with one system is then predicted from the others.
fit_report fit_collectives(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                           const std::string& leave_out, const fit_progress& report = {});

}  // namespace nvlsim
