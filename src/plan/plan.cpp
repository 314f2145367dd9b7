#include "nvlsim/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/plan/event_board.hpp"

namespace nvlsim {
namespace {

constexpr std::array<std::string_view, part_kinds> part_kind_names{
    "gemm",      "attention", "memory_bound", "tp",   "pp",      "cp",     "ep",         "dp",
    "optimizer", "host",      "jitter",       "idle", "prefill", "decode", "kv_transfer"};
constexpr std::array<std::string_view, resource_kinds> resource_names{"tensor_cores", "hbm",  "nvlink", "nic",
                                                                      "c2c",          "host", "latency"};
constexpr std::array<std::string_view, 5> stream_names{"compute", "pipeline", "data_parallel", "kv_transfer",
                                                       "background"};

/// The progress of a stream through its operations.
struct cursor {
  const stream* operations;
  std::vector<span>* spans;
  std::uint32_t operation = 0;
  std::uint32_t wait = 0;  ///< index of the next event of this operation to wait for
  double free = 0;         ///< earliest time at which the operation can begin, so far
  bool done() const { return operation == operations->operations.size(); }
};

/// Records the spans of operations if asked to; they take most of the memory.
template <bool keeps_spans>
class longest_path {
 public:
  explicit longest_path(const plan& p) : plan_(p), places_(busy_streams(p)), events_(p, places_.size()) {
    out_.spans.resize(keeps_spans ? p.classes.size() : 0);
    for (std::size_t c = 0; c < out_.spans.size(); ++c) {
      for (const stream& s : p.classes[c].streams) out_.spans[c].emplace_back(s.operations.size());
    }
    for (const stream_position& s : places_) {
      const auto c = static_cast<std::size_t>(s.rank_class), i = static_cast<std::size_t>(s.stream);
      cursors_.push_back({&p.classes[c].streams[i], keeps_spans ? &out_.spans[c][i] : nullptr});
    }
    for (const operation_template& t : p.templates) durations_.push_back(t.duration.base());
  }

  timeline run() {
    // A stack, with the first stream on top.
    for (std::size_t i = cursors_.size(); i-- > 0;) ready_.push_back(static_cast<std::int32_t>(i));
    while (!ready_.empty()) {
      const std::int32_t i = ready_.back();
      ready_.pop_back();
      go_on(i);
    }
    report_stuck();
    double end = 0;
    for (const cursor& c : cursors_) end = std::max(end, c.free);
    out_.makespan = seconds::from_base(end);
    return std::move(out_);
  }

 private:
  /// Runs a stream until it has to wait for an event.
  void go_on(std::int32_t index) {
    cursor& c = cursors_[static_cast<std::size_t>(index)];
    for (; !c.done(); ++c.operation, c.wait = 0) {
      const operation& o = c.operations->operations[c.operation];
      for (; c.wait < o.waits; ++c.wait) {
        const event_id e = plan_.waits[o.first_wait + c.wait];
        if (!events_.happened(e)) return events_.enrol(e, index);
        c.free = std::max(c.free, events_.date(e));
      }
      const double begin = c.free;
      c.free = begin + durations_[static_cast<std::size_t>(o.template_index)];
      if constexpr (keeps_spans) (*c.spans)[c.operation] = {begin, c.free};
      if (o.signals != no_event) events_.arrive(o.signals, c.free, [&](std::int32_t w) { ready_.push_back(w); });
    }
  }

  void report_stuck() {
    std::vector<stream_position> stuck;
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      places_[i].operation = cursors_[i].operation;
      if (!cursors_[i].done()) stuck.push_back(places_[i]);
    }
    if (!stuck.empty()) throw internal_error(deadlock_text(plan_, events_, stuck));
  }

  const plan& plan_;
  std::vector<stream_position> places_;
  std::vector<cursor> cursors_;
  std::vector<std::int32_t> ready_;
  std::vector<double> durations_;  ///< by template
  event_board events_;
  timeline out_;
};

}  // namespace

std::string_view name(part_kind k) { return part_kind_names[static_cast<std::size_t>(k)]; }
std::string_view name(resource r) { return resource_names[static_cast<std::size_t>(r)]; }
std::string_view name(stream_kind k) { return stream_names[static_cast<std::size_t>(k)]; }

event_id plan::new_event(std::int32_t arrivals_needed) {
  arrivals.push_back(arrivals_needed);
  return static_cast<event_id>(arrivals.size() - 1);
}

std::int32_t plan::add_template(operation_template t) {
  t.duration = seconds{};
  for (const operation_part& part : t.parts) t.duration += part.duration * part.repeat;
  templates.push_back(std::move(t));
  return static_cast<std::int32_t>(templates.size() - 1);
}

void plan::append(stream& s, std::int32_t template_index, std::initializer_list<event_id> after, event_id signals,
                  const message_facts& m) {
  append(s, template_index, std::span<const event_id>(after.begin(), after.size()), signals, m);
}

void plan::append(stream& s, std::int32_t template_index, std::span<const event_id> after, event_id signals,
                  const message_facts& m) {
  operation o{.template_index = template_index,
              .micro_batch = m.micro_batch,
              .first_wait = static_cast<std::uint32_t>(waits.size()),
              .signals = signals,
              .peer = m.peer};
  for (event_id e : after) {
    if (e != no_event) waits.push_back(e);
  }
  o.waits = static_cast<std::uint32_t>(waits.size()) - o.first_wait;
  s.operations.push_back(o);
}

timeline evaluate(const plan& p) {
  check_plan(p);
  return longest_path<true>(p).run();
}

seconds makespan_of(const plan& p) { return longest_path<false>(p).run().makespan; }

}  // namespace nvlsim
