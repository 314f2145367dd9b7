#include <algorithm>

#include "compute/smooth.hpp"
#include "nvlsim/compute/elementwise.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

// What each kernel must move: 2 B for a 16-bit value, 4 for FP32. [docs/kernels.md#memory-bound-kernels]
constexpr std::array<elementwise_kernel, 19> all_elementwise = {{
    {"residual", 6, "of the hidden state", "reads two, writes one in 16 bit"},
    {"norm", 4, "of the hidden state", "reads and writes 16 bit, one pass (the row stays on chip)"},
    {"residual_norm", 8, "of the hidden state", "reads two, writes the sum and its norm"},
    {"norm_backward", 8, "of the hidden state",
     "reads input and gradient, adds to and writes the input's gradient"},
    {"rotary", 4, "of queries and keys", "reads and writes 16 bit"},
    {"activation", 6, "of the inner width", "gate and up in, their product out, 16 bit"},
    {"activation_backward", 10, "of the inner width", "reads gate, up and gradient, writes two gradients"},
    {"router", 24, "token and expert", "softmax, top-k and its mask over FP32 logits: six passes"},
    {"permute", 4, "of the hidden state, token copy and expert", "reads and writes 16 bit"},
    {"embedding", 4, "of the hidden state", "gathers a 16-bit row and writes it"},
    {"embedding_backward", 10, "of the hidden state", "reads a 16-bit gradient, adds to an FP32 row"},
    {"cross_entropy", 16, "of the logits", "FP32 copy, maximum, sum, gradient: reads 2 + 4 + 4, writes 4 + 2"},
    {"cross_entropy_fused", 4, "of the logits", "reads 16 bit once, writes the gradient in place"},
    {"optimizer", 30, "parameter",
     "Adam: FP32 gradient, master, two moments in; master, moments, 16-bit weight out"},
    {"gradient_accumulation", 10, "parameter", "reads a 16-bit gradient, adds to the FP32 sum"},
    {"cast_fp8", 3, "of the tensor", "reads 16 bit, writes 8"},
    {"cast_nvfp4", 2.5625, "of the tensor", "reads 16 bit, writes 4 and block scales"},
    {"amax", 2, "of the tensor", "reads 16 bit"},
    {"transpose_fp8", 2, "of the tensor", "reads and writes 8 bit"},
}};

}  // namespace

std::span<const elementwise_kernel> elementwise_kernels() { return all_elementwise; }

double compute::elementwise_bytes(std::string_view name) {
  for (const elementwise_kernel& k : all_elementwise)
    if (k.name == name) return k.bytes;
  throw internal_error("no elementwise kernel called " + std::string(name));
}

// [docs/models-and-assumptions.md#memory-bound]
kernel_cost stream_cost(const gpu_spec& gpu, const stream_params& p, bytes moved, bool repeated) {
  if (!(moved.base() > 0)) return {};
  const bool in_l2 = repeated && moved < gpu.l2 * 0.5;
  const seconds memory = moved / (gpu.hbm_stream * (p.hbm_share * (in_l2 ? p.l2_speedup.read() : 1)));
  return {.time = p.launch + memory,
          .flop = {},
          .moved = moved,
          .limit = p.launch >= memory ? kernel_resource::launch : kernel_resource::memory,
          .launch = p.launch};
}

// [docs/kernels.md#copies]
kernel_cost copy_cost(const platform& machine, const stream_params& p, copy_path path, bytes size) {
  if (!(size.base() > 0)) return {};
  if (path == copy_path::hbm) return stream_cost(machine.gpu, p, size * 2);
  const double sharers = std::max<int>(1, machine.vm.gpus);
  const std::array<bandwidth, copy_path_names.size()> rates = {machine.gpu.hbm_stream, machine.gpu.c2c,
                                                               machine.gpu.c2c, machine.vm.nvme_read / sharers,
                                                               machine.vm.nvme_write / sharers};
  const bandwidth path_rate = rates[static_cast<std::size_t>(path)];
  if (!(path_rate.base() > 0)) return {};
  const seconds time = size / path_rate;
  return {.time = p.launch + time,
          .flop = {},
          .moved = size,
          .limit = p.launch >= time ? kernel_resource::launch : kernel_resource::memory,
          .launch = p.launch};
}

}  // namespace nvlsim
