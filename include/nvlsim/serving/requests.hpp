// Requests of a served load: when they arrive, how long they are, what they share with each other.
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
  gamma,  ///< gaps of coefficient of variation `variation`: above 1 in bursts, below 1 more regular than Poisson
  fixed   ///< one every 1 / rate
};

struct arrival_settings {
  arrival_process process = arrival_process::poisson;
  double rate_per_s = 0;  ///< requests over all replicas; sessions, where there are some
  double variation = 1;
};

/// A conversation, or an agent at work: each turn sends all that was said before and something new.
struct session_settings {
  token_lengths turns;
  double wait_mean_s = 0;  ///< between an answer and the next turn: thinking, or tools at work; exponential
  std::int64_t shared_prompt = 0;  ///< tokens that begin every prompt of every session
};

/// Images of a request enter the prompt as tokens.
struct image_settings {
  token_lengths count;
  std::int64_t tokens_each = 0;
};

/// Not counted in distributions and rates: shares of the requests, in the order of their arrival.
struct measured_part {
  double warmup = 0, tail = 0;
};

/// Limits that a request must keep, and the share of requests that must keep each.
struct service_objective {
  std::optional<double> ttft_s, tpot_s, e2e_s;
  double share = 0.99;
  bool any() const { return ttft_s || tpot_s || e2e_s; }
};

/// A request by itself. Times in seconds.
struct served_request {
  double arrival_s = 0;  ///< of one that waits for no other
  std::int64_t input = 0, output = 0;
  std::int32_t after = -1;       ///< the earlier request whose end this one waits for
  double wait_s = 0;             ///< from that end to this arrival
  std::size_t first_prefix = 0;  ///< slice of request_list::prefixes
  std::uint32_t prefixes = 0;
};

struct request_list {
  std::vector<served_request> requests;  ///< by arrival, but for those that wait for others
  /// Names of blocks of `prefix_tokens` tokens: equal names mean equal text up to the end of the block.
  std::vector<std::uint64_t> prefixes;
  std::int64_t prefix_tokens = 512;
};

/// A file of requests as it was read.
struct request_trace {
  std::string format;  ///< "Azure 2023", "Mooncake"
  std::string digest;  ///< of the file
  bool timed = false;  ///< without arrival times the load says when requests arrive
  request_list list;
  std::int64_t empty_outputs = 0;    ///< requests without an output token, taken as one
  std::int64_t shared_arrivals = 0;  ///< requests that arrive at the very time of the one before
};

}  // namespace nvlsim
