// What the engine runs: streams of operations with known closed times, tied together by events.
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

/// What a slice of time was spent on; breakdowns and traces group by it.
enum class work_kind {
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
std::string_view name(work_kind k);
inline constexpr int work_kinds = 15;

/// What a part would end sooner with more of. `latency` is launches, hops and other fixed times.
enum class resource { tensor_cores, hbm, nvlink, nic, c2c, host, latency };
std::string_view name(resource r);
inline constexpr int resource_kinds = 7;

struct gemm_extent {
  double m = 0, n = 0, k = 0, groups = 1;
  friend bool operator==(const gemm_extent&, const gemm_extent&) = default;
};
/// Queries and keys are those of a sequence.
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

/// What a part does, for explanations: the work behind its duration and what holds it back.
struct part_facts {
  /// None of them for other kernels and for waits.
  std::variant<std::monostate, gemm_extent, attention_extent, decode_extent, exchange_extent> extent;
  precision operands = precision::bf16;
  resource limit = resource::latency;
  seconds alone;    ///< of the kernel or transfer by itself; more than the duration where some of it is hidden
  seconds latency;  ///< of `alone`, what passes before `limit` counts
  flops work;
  bytes moved;         ///< of a kernel through HBM, of a transfer through the port that limits it
  double ceiling = 0;  ///< of `limit`: FLOP/s or B/s of the data sheet; 0 where there is none
  std::string_view exchange, algorithm;  ///< "all_gather", "ring"
  network_traffic traffic;               ///< of one exchange, where it may meet other traffic
  double times = 1;                      ///< how many exchanges a part has, one after the other; `alone` is of one

  friend bool operator==(const part_facts&, const part_facts&) = default;
};

/// A part of an operation, in order, on the same stream.
struct work_part {
  work_kind kind = work_kind::gemm;
  std::string name;  ///< "qkv", "mlp.up"
  seconds duration;
  int repeat = 1;                                ///< times in a row (equal layers)
  std::shared_ptr<const part_facts> facts = {};  ///< where somebody may ask
};

/// One exchange of an operation. Alone it lasts from `start` to `end`, counted from the beginning of the
/// operation, and its bytes flow evenly once `latency` of that is over.
struct network_demand {
  network_traffic traffic;
  seconds latency;
  seconds end, start = {};
};

/// An operation that recurs: its parts add up to its duration.
struct work_template {
  std::string name;  ///< "forward 3", "grad reduce-scatter 0"
  std::vector<work_part> parts;
  seconds duration;  ///< of all parts
  watts power;       ///< of one GPU while it runs; zero when it runs beside other work
  /// Of operations that other traffic can slow down: one after the other, none before its own start. What one is
  /// late delays those after it, and the end of the operation.
  std::vector<network_demand> network = {};
};

using event_id = std::int32_t;
inline constexpr event_id no_event = -1;
inline constexpr std::int32_t no_peer = -1;

/// One operation of a stream. It starts when the stream is free and every event in `waits` has happened, takes its
/// template's duration, then arrives at `signals`.
struct operation {
  std::int32_t work = 0;                    ///< index of its template
  std::int32_t micro_batch = -1;            ///< for names and colours; -1 when it has none
  std::uint32_t first_wait = 0, waits = 0;  ///< slice of plan::waits
  event_id signals = no_event;
  /// Class whose port receives what this one sends. None: ranks elsewhere do the same at the same time, so that
  /// what goes out of the port comes in as well.
  std::int32_t peer = no_peer;
};

enum class stream_kind { compute, pipeline, data_parallel, kv_transfer };
std::string_view name(stream_kind k);

struct stream {
  stream_kind kind = stream_kind::compute;
  std::vector<operation> operations;
};

/// Ranks whose behaviour is identical; one of them is simulated.
struct rank_class {
  std::string name;               ///< "stage 0"
  std::int64_t multiplicity = 1;  ///< GPUs it stands for
  std::vector<stream> streams;    ///< one of each kind at most; the first is the compute stream
};

/// What an operation is about, where it is about one micro-batch or one receiver.
struct message_facts {
  std::int32_t micro_batch = -1, peer = no_peer;  ///< as of `operation`
};

/// A whole simulation: acyclic for valid inputs (the engine reports a deadlock otherwise).
struct plan {
  std::vector<work_template> templates;
  std::vector<rank_class> classes;
  std::vector<event_id> waits;         ///< pool that operations slice
  std::vector<std::int32_t> arrivals;  ///< by event: arrivals that make it happen (1 unless it is a rendezvous)

  /// A new event that happens at the `arrivals_needed`-th arrival.
  event_id new_event(std::int32_t arrivals_needed = 1);
  /// A new template; its duration is the sum of its parts.
  std::int32_t add_template(work_template t);
  /// Appends an operation; no_event entries of `after` are skipped.
  void append(stream& s, std::int32_t work, std::initializer_list<event_id> after, event_id signals = no_event,
              const message_facts& m = {});
  void append(stream& s, std::int32_t work, std::span<const event_id> after, event_id signals = no_event,
              const message_facts& m = {});
};

/// When each operation of each stream ran; same shape as the plan.
struct span {
  double begin_s = 0, end_s = 0;
};
struct timeline {
  std::vector<std::vector<std::vector<span>>> spans;  ///< [class][stream][operation]
  seconds makespan;
  std::int64_t activities = 0;  ///< engine activities it took
};

/// A number that changes with time, of one class: drawn as a counter track.
struct trace_counter {
  std::size_t rank_class = 0;
  std::string name;                               ///< "memory (GB)"
  std::vector<std::pair<double, double>> points;  ///< seconds, value; in order of time
};

/// The timeline by longest path, without an engine: what `closed` fidelity must give, and fast. Throws
/// internal_error on a cycle.
timeline evaluate(const plan& p);
/// Its makespan alone, in less time and memory. Requires a plan of one of our planners: it is not checked.
seconds makespan_of(const plan& p);

}  // namespace nvlsim
