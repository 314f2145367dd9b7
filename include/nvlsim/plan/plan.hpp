// The input of the simulation engine: streams of operations with known `closed` times, connected by events.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// The kind of a part of an operation. Breakdowns and traces group by it.
enum class part_kind {
  gemm,
  attention,
  memory_bound,
  tp,
  pp,
  cp,
  ep,
  dp,
  optimizer,
  host,
  jitter,
  idle,
  prefill,
  decode,
  kv_transfer
};
std::string_view name(part_kind k);
inline constexpr int part_kinds = 15;

/// The resource that limits a part: with more of it, the part would end sooner. `latency` stands for launches,
/// hops and other fixed times.
enum class resource { tensor_cores, hbm, nvlink, nic, c2c, host, latency };
std::string_view name(resource r);
inline constexpr int resource_kinds = 7;

struct gemm_extent {
  double m = 0, n = 0, k = 0, groups = 1;
  friend bool operator==(const gemm_extent&, const gemm_extent&) = default;
};
/// Queries and keys per sequence.
struct attention_extent {
  double sequences = 0, heads = 0, queries = 0, keys = 0;
  friend bool operator==(const attention_extent&, const attention_extent&) = default;
};
struct decode_extent {
  double sequences = 0, heads = 0, cached = 0;
  friend bool operator==(const decode_extent&, const decode_extent&) = default;
};
struct exchange_extent {
  double bytes = 0, ranks = 0, domains = 0;
  friend bool operator==(const exchange_extent&, const exchange_extent&) = default;
};

/// Facts about a part for explanations: what it does, and which resource limits it.
struct part_facts {
  /// Empty for other kernels and for waits.
  std::variant<std::monostate, gemm_extent, attention_extent, decode_extent, exchange_extent> extent;
  precision operands = precision::bf16;
  resource limit = resource::latency;
  seconds alone;    ///< time of the kernel or transfer by itself; more than the duration if some of it is hidden
  seconds latency;  ///< part of `alone` before `limit` applies
  flops flop;
  bytes moved;         ///< by a kernel through HBM, by a transfer through the port that limits it
  double ceiling = 0;  ///< data-sheet rate of `limit`, in FLOP/s or B/s; 0 if there is none
  std::string_view exchange, algorithm;  ///< "all_gather", "ring"
  network_traffic traffic;               ///< of one exchange, if it can meet other traffic
  double times = 1;  ///< number of consecutive exchanges of the part; `alone` is the time of one

  friend bool operator==(const part_facts&, const part_facts&) = default;
};

/// A part of an operation. The parts of an operation run in order.
struct operation_part {
  part_kind kind = part_kind::gemm;
  std::string name;  ///< "qkv", "mlp.up"
  seconds duration;
  int repeat = 1;                                ///< consecutive repetitions (equal layers)
  std::shared_ptr<const part_facts> facts = {};  ///< only if the run is to be explained
};

/// One exchange of an operation. Without other traffic it lasts from `start` to `end`, relative to the beginning
/// of the operation, and its bytes flow evenly after the first `latency` of that time.
struct network_demand {
  network_traffic traffic;
  seconds latency;
  seconds end, start = {};
};

/// A recurring operation. Its duration is the sum of its parts.
struct operation_template {
  std::string name;  ///< "forward 3", "grad reduce-scatter 0"
  std::vector<operation_part> parts;
  seconds duration;  ///< of all parts
  watts power;       ///< of one GPU while it runs; zero if it runs beside a compute operation
  /// Exchanges that other traffic can slow down. They run in order, each not before its own start. The delay of an
  /// exchange delays later exchanges and the end of the operation.
  std::vector<network_demand> network = {};
};

using event_id = std::int32_t;
inline constexpr event_id no_event = -1;
inline constexpr std::int32_t no_peer = -1;

/// One operation of a stream. It starts when the stream is free and every event in `waits` has happened, takes the
/// duration of its template, and then signals the event `signals`.
struct operation {
  std::int32_t template_index = 0;          ///< index of its template
  std::int32_t micro_batch = -1;            ///< for names and colours; -1 if it has none
  std::uint32_t first_wait = 0, waits = 0;  ///< slice of plan::waits
  event_id signals = no_event;
  /// The class that receives what this operation sends. None: other ranks send the same at the same time, so that
  /// the port receives as much as it sends.
  std::int32_t peer = no_peer;
};

/// `background`: traffic of others through the ports of a class.
enum class stream_kind { compute, pipeline, data_parallel, kv_transfer, background };
std::string_view name(stream_kind k);

struct stream {
  stream_kind kind = stream_kind::compute;
  std::vector<operation> operations;
};

/// Ranks with identical behaviour, of which one is simulated.
struct rank_class {
  std::string name;               ///< "stage 0"
  std::int64_t multiplicity = 1;  ///< number of GPUs that it represents
  std::vector<stream> streams;    ///< at most one of each kind but background; the first is the compute stream
};

/// What an operation is about, where it is about one micro-batch or one receiver.
struct message_facts {
  std::int32_t micro_batch = -1, peer = no_peer;  ///< as of `operation`
};

/// Up-links of a leaf or a pod that the NICs of one or more classes share, in each direction: the part of one GPU
/// for one class; for several, of as many GPUs as there are classes.
struct shared_uplink {
  std::string name;
  bandwidth capacity;
  std::vector<std::int32_t> classes;
  network::uplink_level level = network::uplink_level::leaves;
};

/// A whole simulation. It is acyclic for valid inputs; otherwise, the simulation engine reports a deadlock.
struct plan {
  std::vector<operation_template> templates;
  std::vector<rank_class> classes;
  std::vector<event_id> waits;  ///< the waits of all operations; each operation has a slice
  std::vector<std::int32_t>
      arrivals;  ///< by event: number of arrivals until it happens (1 unless it is a rendezvous)
  /// If none are given, each class has the share of a GPU in a leaf of which all GPUs do the same.
  std::vector<shared_uplink> uplinks = {};

  /// Adds an event that happens at the `arrivals_needed`-th arrival.
  event_id new_event(std::int32_t arrivals_needed = 1);
  /// Adds a template, with the sum of its parts as its duration.
  std::int32_t add_template(operation_template t);
  /// Appends an operation; ignores entries of `after` that are no_event.
  void append(stream& s, std::int32_t template_index, std::initializer_list<event_id> after,
              event_id signals = no_event, const message_facts& m = {});
  void append(stream& s, std::int32_t template_index, std::span<const event_id> after, event_id signals = no_event,
              const message_facts& m = {});
};

/// The time of one operation.
struct span {
  double begin_s = 0, end_s = 0;
};
struct timeline {
  std::vector<std::vector<std::vector<span>>> spans;  ///< [class][stream][operation]
  seconds makespan;
  std::int64_t activities = 0;  ///< number of SimGrid activities
};

/// A number that changes over time, of one class. Traces show it as a counter track.
struct trace_counter {
  std::size_t rank_class = 0;
  std::string name;                               ///< "memory (GB)"
  std::vector<std::pair<double, double>> points;  ///< seconds, value; in order of time
};

/// The timeline by longest path, without the simulation engine. It equals the result of `closed`, and takes much
/// less time. Throws internal_error on a cycle.
timeline evaluate(const plan& p);
/// Only the makespan, in less time and memory. Requires a valid plan, which is not checked.
seconds makespan_of(const plan& p);

}  // namespace nvlsim
