// The shipped platforms and kernel parameters, as tests of formulas and of measured errors use them.
#pragma once

#include <filesystem>
#include <string>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/platform/load.hpp"
#include "stack/read_parts.hpp"
#include "support/root.hpp"

namespace nvlsim::test {

inline gpu_spec shipped_gpu(const std::string& platform_name) {
  diagnostics problems;
  config::document doc =
      config::load_named(root / "platforms", {"platform", platform_name, {"test", "", {}, {}}}, problems);
  platform p = read_platform(doc, platform_name, problems);
  problems.throw_if_any();
  return p.gpu;
}

/// The `"kernels"` of the TensorRT-LLM stack, without what it is based on.
inline const stack& shipped_kernels() {
  static const stack s = [] {
    diagnostics problems;
    config::document doc = config::load(root / "platforms/stacks/kernels/tensorrt-llm-1.3-kernels.json",
                                        {"stack", "stack"}, problems);
    config::reader r(doc, problems);
    r.require_sources();
    stack out;
    out.name = "tensorrt-llm-1.3-kernels";
    out.kernels = read_kernels(r);
    problems.throw_if_any();
    return out;
  }();
  return s;
}

inline const gpu_spec& gb200() {
  static const gpu_spec gpu = shipped_gpu("gb200-nvl72");
  return gpu;
}
inline const kernel_profile& blackwell() {
  static const kernel_profile k = kernels_for(shipped_kernels(), gb200());
  return k;
}

}  // namespace nvlsim::test
