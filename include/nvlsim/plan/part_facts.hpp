// Facts about the parts of operations for explanations, from the costs of kernels and transfers.
// [docs/models-and-assumptions.md#bounds]
#pragma once

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// Facts of a kernel with operands of that format.
part_facts facts_of(const gpu_spec& gpu, precision operands, const kernel_cost& k);
part_facts facts_of(const gpu_spec& gpu, precision operands, const kernel_cost& k, const gemm_shape& s);
part_facts facts_of(const gpu_spec& gpu, const kernel_cost& k, const attention_shape& s);
part_facts facts_of(const gpu_spec& gpu, const kernel_cost& k, const decode_shape& s,
                    precision operands = precision::bf16);

/// Facts of a collective or a message; the part consists of `times` of them, one after the other.
part_facts facts_of(const platform& p, const priced_transfer& t, double times = 1);

/// Facts of a time that only the host or the CPU link takes.
part_facts facts_of_wait(resource r, seconds t);

}  // namespace nvlsim
