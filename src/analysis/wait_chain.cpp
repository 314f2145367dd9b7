#include "analysis/wait_chain.hpp"

#include <algorithm>

namespace nvlsim {

wait_chains::wait_chains(const plan& planned, const timeline& times)
    : planned_(planned), times_(times), signals_(planned.arrivals.size()) {
  for (std::size_t c = 0; c < planned.classes.size(); ++c)
    for (std::size_t s = 0; s < planned.classes[c].streams.size(); ++s) {
      const auto& operations = planned.classes[c].streams[s].operations;
      for (std::size_t i = 0; i < operations.size(); ++i) {
        if (operations[i].signals == no_event) continue;
        signal& last = signals_[static_cast<std::size_t>(operations[i].signals)];
        const double end = times.spans[c][s][i].end_s;
        if (end >= last.at_s)
          last = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(s), static_cast<std::uint32_t>(i), end};
      }
    }
}

std::optional<signal> wait_chains::last_wait(const operation& o) const {
  std::optional<signal> last;
  for (std::uint32_t k = 0; k < o.waits; ++k) {
    const signal& s = signals_[static_cast<std::size_t>(planned_.waits[o.first_wait + k])];
    if (s.rank_class >= 0 && (!last || s.at_s >= last->at_s)) last = s;
  }
  return last;
}

const stream& wait_chains::stream_of(const signal& s) const {
  return planned_.classes[static_cast<std::size_t>(s.rank_class)].streams[static_cast<std::size_t>(s.stream)];
}

const std::vector<span>& wait_chains::spans_of(const signal& s) const {
  return times_.spans[static_cast<std::size_t>(s.rank_class)][static_cast<std::size_t>(s.stream)];
}

signal wait_chains::cause_of(const signal& at) const {
  signal before;
  if (at.operation > 0)
    before = {at.rank_class, at.stream, at.operation - 1, spans_of(at)[at.operation - 1].end_s};
  if (const auto last = last_wait(stream_of(at).operations[at.operation]); last && last->at_s > before.at_s)
    before = *last;
  return before;
}

signal wait_chains::last_compute() const {
  signal last;
  for (std::size_t c = 0; c < times_.spans.size(); ++c)
    if (const std::vector<span>& all = times_.spans[c].front();
        !all.empty() && (last.rank_class < 0 || all.back().end_s > last.at_s))
      last = {static_cast<std::int32_t>(c), 0, static_cast<std::uint32_t>(all.size() - 1), all.back().end_s};
  return last;
}

std::vector<chain_link> wait_chains::chain(signal at, double from_s) const {
  std::vector<chain_link> out;
  for (; at.rank_class >= 0 && at.at_s > from_s; at = cause_of(at)) {
    const span& ran = spans_of(at)[at.operation];
    const double within = ran.end_s - std::max(from_s, ran.begin_s);
    if (!(within > 0)) continue;
    const stream& here = stream_of(at);
    out.push_back({&template_of(here.operations[at.operation]), here.kind, ran.end_s - ran.begin_s, within});
  }
  return out;
}

bool is_communication(part_kind k) {
  return k == part_kind::tp || k == part_kind::cp || k == part_kind::ep || k == part_kind::pp ||
         k == part_kind::dp;
}

double slowed_by(const operation_template& t, double took_s) {
  const double longer = took_s - t.duration.base();
  return longer > 1e-9 ? longer : 0;  // resolution of SimGrid's clock
}

const operation_part* slowed_part(const operation_template& t) {
  const operation_part* longest = nullptr;
  for (const operation_part& p : t.parts)
    if (p.facts && p.facts->traffic != network_traffic{} &&
        (!longest || p.duration * p.repeat > longest->duration * longest->repeat))
      longest = &p;
  return longest || t.parts.empty() ? longest : &t.parts.front();
}

}  // namespace nvlsim
