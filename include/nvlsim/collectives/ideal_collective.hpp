// Collectives on an ideal network, message by message: what simulators without protocols compute, and the common
// ground on which the fidelities must agree.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Ports on one crossbar. [docs/network-fidelities.md#ideal-collectives]
struct ideal_network {
  seconds alpha;          ///< of a message, besides its bytes over `rate`
  bandwidth rate;         ///< of a port, each way
  int hops = 1;           ///< links on the way that pass on a message only once they have all of it
  seconds endpoint = {};  ///< of a rank before its first message and after each
  std::optional<bandwidth> local_rate = {};  ///< of memory passes over a message that came in; free when not given
  int splits = 1;                            ///< the array in so many parts, one after the other
  bool integer = false;  ///< messages of whole bytes, times of whole nanoseconds, both rounded down
};

/// Rounds in which every rank sends at most one message of that size, and receives at most one.
struct message_rounds {
  bytes message;
  int count = 1;
  bool reduces = false;  ///< what comes in is added to what is there
};

/// "ring", "halving_doubling" or "pairwise": the one asked for, or the usual one when `asked` is empty. Throws
/// input_error when it cannot run this collective on so many ranks.
std::string_view ideal_algorithm(collective c, std::string_view asked, int ranks);

/// The rounds of one split, in order. `size` is nccl-tests' size of the whole array.
std::vector<message_rounds> ideal_rounds(const ideal_network& net, collective c, std::string_view algorithm,
                                         bytes size, int ranks);
seconds message_time(const ideal_network& net, bytes message);
/// What a rank does after each round: its endpoint's delay, and memory passes (two to reduce, one to copy).
seconds after_message(const ideal_network& net, const message_rounds& r);

/// All rounds of all splits, one after the other.
seconds ideal_time(const ideal_network& net, collective c, std::string_view algorithm, bytes size, int ranks);

}  // namespace nvlsim
