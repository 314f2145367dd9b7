// Collectives on an ideal network, message by message, as in simulators without protocols. All fidelities must
// agree on them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Ports on one crossbar. [docs/network-fidelities.md#ideal-collectives]
struct ideal_network {
  seconds alpha;          ///< time of a message besides its bytes over `rate`
  bandwidth rate;         ///< of a port, in each direction
  int hops = 1;           ///< links on the path; each forwards a message after receiving all of it
  seconds endpoint = {};  ///< delay of a rank before its first message and after each message
  std::optional<bandwidth> local_rate =
      {};                ///< of memory passes over a received message; nothing: they take no time
  int splits = 1;        ///< parts of the array, which are sent one after the other
  bool integer = false;  ///< round messages down to whole bytes and times to whole nanoseconds
};

/// Equal rounds. In each, a rank sends at most one message and receives at most one.
struct message_rounds {
  bytes message;
  int count = 1;
  bool reduces = false;  ///< received data are added to local data
};

/// "ring", "halving_doubling" or "pairwise": `asked`, or the usual one if it is empty. Throws input_error if the
/// algorithm cannot run this collective on `ranks` ranks.
std::string_view ideal_algorithm(collective c, std::string_view asked, int ranks);

/// The rounds of one split, in order. `size` is the nccl-tests size of the whole array.
std::vector<message_rounds> ideal_rounds(const ideal_network& net, collective c, std::string_view algorithm,
                                         bytes size, int ranks);
seconds message_time(const ideal_network& net, bytes message);
/// Time of a rank after each round: the endpoint delay and the memory passes (two to reduce, one to copy).
seconds after_message(const ideal_network& net, const message_rounds& r);

/// All rounds of all splits, one after the other.
seconds ideal_time(const ideal_network& net, collective c, std::string_view algorithm, bytes size, int ranks);

}  // namespace nvlsim
