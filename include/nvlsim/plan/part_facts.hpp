// What explanations tell of a part: from what a kernel or a transfer costs to the resource it waits for.
// [docs/models-and-assumptions.md#bounds]
#pragma once

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// Of a kernel whose operands have that format.
part_facts facts_of(const gpu_spec& gpu, precision operands, const kernel_cost& k);
part_facts facts_of(const gpu_spec& gpu, precision operands, const kernel_cost& k, const gemm_shape& s);
part_facts facts_of(const gpu_spec& gpu, const kernel_cost& k, const attention_shape& s);
part_facts facts_of(const gpu_spec& gpu, const kernel_cost& k, const decode_shape& s);

/// Of a collective or a message, of which a part has so many one after the other.
part_facts facts_of(const platform& p, const priced_transfer& t, double times = 1);

/// Of a time that is the host's alone, or the CPU link's.
part_facts facts_of_wait(resource r, seconds t);

}  // namespace nvlsim
