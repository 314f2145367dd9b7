// A collective on an ideal network, with every message of every rank.
#pragma once

#include "nvlsim/plan/collective_workload.hpp"

namespace nvlsim {

/// A collective on ideal parameters, by one of its algorithms.
struct ideal_call {
  collective kind = collective::all_reduce;
  std::string_view algorithm;
  bytes size;
  int ranks = 1;
};

/// Has one class per rank. Messages use the NVLink ports of `hardware`, which are the ports of `net`.
plan plan_messages(const platform& hardware, const ideal_network& net, const ideal_call& c);

}  // namespace nvlsim
