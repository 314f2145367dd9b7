// A collective on an ideal network, every message of every rank.
#pragma once

#include "nvlsim/plan/collective_workload.hpp"

namespace nvlsim {

/// One class a rank. Messages demand the NVLink ports of `hardware`, which are those of `net`.
plan plan_messages(const platform& hardware, const ideal_network& net, collective c, std::string_view algorithm,
                   bytes size, int ranks);

}  // namespace nvlsim
