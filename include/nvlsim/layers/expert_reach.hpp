// Where the experts of a token are. [docs/models-and-assumptions.md#expert-reach]
#pragma once

#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// How the experts of a token are chosen. `random`: `top_k` of all experts, or of those in the router's best
/// groups where it limits a token to some of them (DeepSeek-V3). `in_turn`: benchmarks that deal the experts out
/// in order, so that those of a token stand beside each other (the fake balanced gate of NeMo Automodel).
enum class expert_choice { random, in_turn };

/// Probability that a token goes to any of consecutive experts which are a `share` (0 to 1) of all: those of a
/// rank, or of all ranks of a domain. `kept`: share of its choices that experts' capacities leave.
double reach_of(const moe_spec& experts, expert_choice choice, double share, double kept = 1);

}  // namespace nvlsim
