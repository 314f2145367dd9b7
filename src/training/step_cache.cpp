#include "nvlsim/training/step_cache.hpp"

#include <algorithm>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/plan/event_board.hpp"

namespace nvlsim {
namespace {

/// Calls `visit(stream, position, operation)` for each operation in topological order. Throws internal_error on a
/// cycle.
template <class Visit>
void visit_in_order(const plan& p, Visit visit) {
  std::vector<stream_position> at = busy_streams(p);
  event_board events(p, at.size());
  std::vector<std::uint32_t> waited(at.size());  // by stream: events of its next operation that have happened
  std::vector<std::int32_t> ready;
  for (std::size_t i = at.size(); i-- > 0;) ready.push_back(static_cast<std::int32_t>(i));
  const auto operations_of = [&](const stream_position& s) -> const std::vector<operation>& {
    return p.classes[static_cast<std::size_t>(s.rank_class)]
        .streams[static_cast<std::size_t>(s.stream)]
        .operations;
  };
  const auto may_begin = [&](const operation& o, std::int32_t stream) {
    std::uint32_t& seen = waited[static_cast<std::size_t>(stream)];
    for (; seen < o.waits; ++seen) {
      const event_id e = p.waits[o.first_wait + seen];
      if (!events.happened(e)) return events.enrol(e, stream), false;
    }
    seen = 0;
    return true;
  };
  while (!ready.empty()) {
    const std::int32_t stream = ready.back();
    ready.pop_back();
    stream_position& s = at[static_cast<std::size_t>(stream)];
    const std::vector<operation>& all = operations_of(s);
    for (; s.operation < all.size() && may_begin(all[s.operation], stream); ++s.operation) {
      const operation& o = all[s.operation];
      visit(stream, s, o);
      if (o.signals != no_event) events.arrive(o.signals, 0, [&](std::int32_t w) { ready.push_back(w); });
    }
  }
  std::erase_if(at, [&](const stream_position& s) { return s.operation == operations_of(s).size(); });
  if (!at.empty()) throw internal_error(deadlock_text(p, events, at));
}

}  // namespace

step_structure::step_structure(const plan& p, std::vector<step_recipe> recipes)
    : recipes_(std::move(recipes)), events_(p.arrivals.size()) {
  using kind = step_recipe::kind;
  runs_.assign(p.classes.size(), std::vector<std::int32_t>(recipes_.size()));
  std::size_t all = 0;
  for (const rank_class& c : p.classes)
    for (const stream& x : c.streams) all += x.operations.size();
  steps_.reserve(all);
  waits_.reserve(p.waits.size());
  std::vector<char> by_bucket(events_);  // events that happen at a different time for each bucket
  visit_in_order(p, [&](std::int32_t stream, const stream_position& at, const operation& o) {
    const auto c = static_cast<std::size_t>(at.rank_class);
    const stream_kind where = p.classes[c].streams[static_cast<std::size_t>(at.stream)].kind;
    const step_recipe& r = recipes_[static_cast<std::size_t>(o.template_index)];
    streams_ = std::max(streams_, static_cast<std::size_t>(stream) + 1);
    if (where == stream_kind::compute) ++runs_[c][static_cast<std::size_t>(o.template_index)];
    const bool meeting = where == stream_kind::data_parallel && r.of == kind::ready;
    const bool last = r.data_parallel && r.what != pass_kind::forward;
    if (o.signals != no_event && (meeting || last || r.of == kind::gather))
      by_bucket[static_cast<std::size_t>(o.signals)] = 1;
    if (meeting) return;  // folded ranks arrive at the same time
    step s{o.template_index, stream, no_event, static_cast<std::int32_t>(r.at), 0, form::plain};
    if (r.of == kind::gather) s.what = form::gather;
    else if (r.of == kind::reduce) s.what = form::reduce;
    else if (r.data_parallel) s.what = last ? form::last_pass : form::first_pass;
    if (o.signals != no_event && !by_bucket[static_cast<std::size_t>(o.signals)]) s.signals = o.signals;
    for (std::uint32_t i = 0; i < o.waits; ++i) {
      const event_id e = p.waits[o.first_wait + i];
      if (by_bucket[static_cast<std::size_t>(e)]) continue;
      waits_.push_back(e);
      ++s.waits;
    }
    steps_.push_back(s);
  });
}

double step_structure::makespan(const step_prices& cost) const {
  std::vector<double> free(streams_), event_times(events_);
  std::vector<std::uint32_t> first_bucket(1);  // by chunk
  for (const std::uint32_t n : cost.buckets) first_bucket.push_back(first_bucket.back() + n);
  std::vector<double> gathered(first_bucket.back()), computed(first_bucket.back());  // by bucket: when
  const event_id* wait = waits_.data();
  for (const step& s : steps_) {
    double& now = free[static_cast<std::size_t>(s.stream)];
    for (const event_id* const end = wait + s.waits; wait != end; ++wait)
      now = std::max(now, event_times[static_cast<std::size_t>(*wait)]);
    const double* const takes = cost.seconds.data() + cost.first[static_cast<std::size_t>(s.template_index)];
    if (s.what == form::plain) {
      now += *takes;
    } else {
      const auto chunk = static_cast<std::size_t>(s.chunk);
      const std::size_t n = cost.buckets[chunk], at = first_bucket[chunk];
      switch (s.what) {
        case form::gather:
          for (std::size_t i = 0; i < n; ++i) gathered[at + i] = now += takes[i];
          break;
        case form::first_pass:
          for (std::size_t i = 0; i < n; ++i) now = std::max(now, gathered[at + i]) + takes[i];
          break;
        case form::last_pass:
          for (std::size_t i = n; i-- > 0;) now += takes[i], computed[at + i] = std::max(computed[at + i], now);
          break;
        case form::reduce:
          for (std::size_t i = n; i-- > 0;) now = std::max(now, computed[at + i]) + takes[i];
          break;
        case form::plain:
          break;
      }
    }
    if (s.signals == no_event) continue;
    double& date = event_times[static_cast<std::size_t>(s.signals)];
    date = std::max(date, now);
  }
  return free.empty() ? 0 : *std::max_element(free.begin(), free.end());
}

}  // namespace nvlsim
