// Requests of a served load: arrivals, lengths and shared prefixes.
// [docs/models-and-assumptions.md#inference-load]
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/layers/token_lengths.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

enum class arrival_process {
  poisson,
  gamma,  ///< gaps with coefficient of variation `variation`: above 1 bursty, below 1 more regular than Poisson
  fixed   ///< constant gaps of 1 / rate
};

struct arrival_settings {
  arrival_process process = arrival_process::poisson;
  double rate_per_s = 0;  ///< requests, or sessions if there are any, over all replicas
  double variation = 1;
};

/// Multi-turn conversations or agents: each turn sends the whole history and new input.
struct session_settings {
  token_lengths turns;
  double wait_mean_s =
      0;  ///< mean time between an answer and the next turn (user or tools); exponentially distributed
  std::int64_t shared_prompt = 0;                 ///< tokens of a prefix common to all sessions
  std::optional<token_lengths> first_input = {};  ///< new input of first turns, if it differs from that of others
};

/// The encoder of images: a transformer that works on patches, before the prompt is prefilled.
struct vision_tower {
  double parameters = 0;
  std::int64_t hidden = 0, layers = 0;
  double patches_per_token = 4;  ///< patches that are merged into a token of the prompt
};

/// Images per request, which add tokens to the prompt.
struct image_settings {
  token_lengths count;
  std::int64_t tokens_each = 0;
  std::optional<vision_tower> tower;
};

enum class cache_write {
  through,  ///< a tier gets every block as it is computed
  back      ///< a tier gets the blocks that the faster one gives up
};
enum class tier_kind {
  cpu,   ///< memory of the CPUs beside a worker's GPUs
  nvme,  ///< disks of its VMs
  pool   ///< memory or storage that all workers share, over the fabric
};
/// A store of KV blocks beyond HBM. What is not given follows from the platform.
struct cache_tier {
  tier_kind kind = tier_kind::cpu;
  std::optional<bytes> capacity;  ///< of a worker's GPU; of a pool: in all
  std::optional<bandwidth> rate;  ///< of one GPU
  seconds latency;                ///< before the first byte
  cache_write write = cache_write::through;
};

/// What distributions and rates cover.
struct measured_part {
  double warmup = 0, tail = 0;  ///< shares of the requests, in order of arrival, that they leave out
  bool steady = false;          ///< of a closed loop: only its steady part, as the run finds it
};

enum class latency { ttft, tpot, e2e };

/// A limit on a latency at a percentile of its own.
struct percentile_limit {
  latency of = latency::ttft;
  double limit_s = 0, share = 0;
};

/// Latency limits, and the share of requests that must meet each, or whether their means must. A request counts as
/// good if it is within `ttft_s`, `tpot_s` and `e2e_s`.
struct service_objective {
  std::optional<double> ttft_s, tpot_s, e2e_s;  ///< where percentiles are given, the limit of the highest
  double share = 0.99;
  bool means = false;
  std::vector<percentile_limit> percentiles = {};  ///< limits with shares of their own

  /// Share of the requests that must be within the limit on `l`.
  double share_of(latency l) const;
  /// The largest of these shares.
  double largest_share() const;
  bool any() const { return ttft_s || tpot_s || e2e_s; }
  /// Whether `kept` of `counted` requests are the share; 999 of 1,000 are 0.999, however it was rounded.
  static bool enough(std::int64_t kept, std::int64_t counted, double share) {
    return static_cast<double>(kept) >= (share - 1e-9) * static_cast<double>(counted);
  }
};

/// One request. Times in seconds.
struct served_request {
  double arrival_s = 0;  ///< if it waits for no other request
  std::int64_t input = 0, output = 0;
  std::int32_t after = -1;       ///< earlier request whose end it waits for
  double wait_s = 0;             ///< from that end to this arrival
  std::size_t first_prefix = 0;  ///< start of its slice of request_list::prefixes
  std::uint32_t prefixes = 0;
};

struct request_list {
  std::vector<served_request> requests;  ///< by arrival, except those that wait for others
  /// Names of blocks of `prefix_tokens` tokens. Equal names mean equal prompts up to the end of the block.
  std::vector<std::uint64_t> prefixes;
  std::int64_t prefix_tokens = 512;
};

/// Orders requests by arrival, those of equal times as they were. `after` keeps naming the same request.
void sort_by_arrival(std::vector<served_request>& all);

/// Content of a request file.
struct request_trace {
  std::string format;  ///< "Azure 2023", "Mooncake"
  std::string digest;  ///< of the file
  bool timed = false;  ///< has arrival times; otherwise the load defines arrivals
  request_list list;
  std::int64_t empty_outputs = 0;    ///< requests without output tokens, simulated with one
  std::int64_t shared_arrivals = 0;  ///< requests that arrive at the same time as the previous one
};

}  // namespace nvlsim
