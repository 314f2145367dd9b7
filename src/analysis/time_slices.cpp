#include "analysis/time_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace nvlsim {
namespace {

/// Sums time by template, and waits by what was waited for.
class collector {
 public:
  explicit collector(const plan& planned) : planned_(planned), weights_(planned.templates.size()) {}

  void add(const operation& o, double weight, double took_s) {
    if (weight == 0) return;
    weights_[static_cast<std::size_t>(o.template_index)] += weight;
    if (const double longer = slowed_by(planned_.templates[static_cast<std::size_t>(o.template_index)], took_s);
        longer > 0)
      slowed_[o.template_index] += weight * longer;
  }
  void wait(part_kind kind, std::string name, std::shared_ptr<const part_facts> facts, double time_s) {
    if (!(time_s > 0)) return;
    waits_[{kind, std::move(name), facts.get()}] += time_s;
    if (facts) kept_.try_emplace(facts.get(), facts);
  }

  std::vector<time_slice> take() {
    std::vector<time_slice> out;
    for (std::size_t t = 0; t < weights_.size(); ++t) {
      if (weights_[t] == 0) continue;
      const operation_template& w = planned_.templates[t];
      for (const operation_part& p : w.parts)
        out.push_back({phase_of(w), p.kind, p.name, p.facts, p.duration.base() * p.repeat * weights_[t],
                       p.repeat * weights_[t]});
    }
    for (const auto& [t, time] : slowed_) {
      const operation_template& w = planned_.templates[static_cast<std::size_t>(t)];
      const operation_part* const part = slowed_part(w);
      out.push_back(
          {phase_of(w), part ? part->kind : part_kind::dp, "contention", part ? part->facts : nullptr, time, 0});
    }
    for (const auto& [key, time] : waits_) {
      const auto& [kind, name, facts] = key;
      const auto kept = kept_.find(facts);
      out.push_back(
          {std::string(waiting_phase), kind, name, kept == kept_.end() ? nullptr : kept->second, time, 0});
    }
    return out;
  }

 private:
  const plan& planned_;
  std::vector<double> weights_;
  std::map<std::int32_t, double> slowed_;
  std::map<std::tuple<part_kind, std::string, const part_facts*>, double> waits_;
  std::map<const part_facts*, std::shared_ptr<const part_facts>> kept_;
};

/// Adds to `sum` the share of a wait from `from_s` to the end of `at` in which the chain of operations that led to
/// its end communicated, and returns it.
double add_communication(const wait_chains& chains, const signal& at, double from_s, double share,
                         collector& sum) {
  double all = 0;
  for (const chain_link& l : chains.chain(at, from_s))
    communication_of(l, [&](const operation_part& p, double time_s) {
      sum.wait(p.kind, l.stream == stream_kind::compute ? p.name : l.what->name, p.facts, time_s * share);
      all += time_s * share;
    });
  return all;
}

double busy_time(const std::vector<span>& spans) {
  double t = 0;
  for (const span& s : spans) t += s.end_s - s.begin_s;
  return t;
}

constexpr std::string_view bubble = "bubble", imbalance_name = "imbalance";

}  // namespace

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

std::string phase_of(const operation_template& t) {
  const std::size_t detail = t.name.rfind(" (");
  return t.name.substr(0, detail == std::string::npos ? t.name.find(' ') : detail);
}

std::vector<time_slice> slices_of_gpus(const plan& planned, const timeline& times) {
  double gpus = 0;
  for (const rank_class& c : planned.classes) gpus += static_cast<double>(c.multiplicity);
  const wait_chains chains(planned, times);
  collector sum(planned);
  const signal end = chains.last_compute();
  double busiest = 0;
  for (const auto& c : times.spans) busiest = std::max(busiest, busy_time(c.front()));
  for (std::size_t c = 0; c < planned.classes.size(); ++c) {
    const auto& operations = planned.classes[c].streams.front().operations;
    const std::vector<span>& spans = times.spans[c].front();
    const double share = static_cast<double>(planned.classes[c].multiplicity) / gpus;
    double now = 0, for_stages = 0;
    bool any_wait = false;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const double gap = std::max(0.0, spans[i].begin_s - now) * share;
      const auto last = chains.last_wait(operations[i]);
      any_wait = any_wait || last;
      if (last && chains.stream_of(*last).kind == stream_kind::data_parallel) {
        const operation_template& t = chains.template_of(chains.stream_of(*last).operations[last->operation]);
        sum.wait(part_kind::dp, t.name, t.parts.empty() ? nullptr : t.parts.front().facts, gap);
      } else if (last) {
        for_stages += gap;
        if (gap > 0) for_stages -= add_communication(chains, *last, now, share, sum);
      } else {
        sum.wait(part_kind::idle, std::string(no_work), nullptr, gap);
      }
      sum.add(operations[i], share, spans[i].end_s - spans[i].begin_s);
      now = spans[i].end_s;
    }
    const double tail = std::max(0.0, times.makespan.base() - now) * share;
    if (any_wait) for_stages += tail - add_communication(chains, end, now, share, sum);
    else sum.wait(part_kind::idle, std::string(imbalance_name), nullptr, tail);
    for_stages = std::max(0.0, for_stages);  // rounding may make it negative
    const double uneven = std::clamp((busiest - busy_time(spans)) * share, 0.0, for_stages);
    sum.wait(part_kind::idle, std::string(imbalance_name), nullptr, uneven);
    sum.wait(part_kind::idle, std::string(bubble), nullptr, for_stages - uneven);
  }
  return sum.take();
}

std::vector<time_slice> side_slices(const plan& planned) {
  collector sum(planned);
  double gpus = 0;
  for (const rank_class& c : planned.classes) gpus += static_cast<double>(c.multiplicity);
  for (const rank_class& c : planned.classes)
    for (std::size_t s = 1; s < c.streams.size(); ++s)
      for (const operation& o : c.streams[s].operations) sum.add(o, static_cast<double>(c.multiplicity) / gpus, 0);
  std::vector<time_slice> out = sum.take();
  for (time_slice& s : out) s.phase = "beside compute";
  return out;
}

std::vector<time_slice> critical_path(const plan& planned, const timeline& times) {
  const wait_chains chains(planned, times);
  signal at;
  for (std::size_t c = 0; c < planned.classes.size(); ++c)
    for (std::size_t s = 0; s < planned.classes[c].streams.size(); ++s)
      if (const auto& spans = times.spans[c][s]; !spans.empty() && spans.back().end_s > at.at_s)
        at = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(s),
              static_cast<std::uint32_t>(spans.size() - 1), spans.back().end_s};
  std::map<std::string, collector> by_class;
  while (at.rank_class >= 0) {
    const auto c = static_cast<std::size_t>(at.rank_class), s = static_cast<std::size_t>(at.stream);
    const stream& here = chains.stream_of(at);
    const operation& o = here.operations[at.operation];
    const span& ran = times.spans[c][s][at.operation];
    const std::string place = here.kind == stream_kind::compute
                                  ? planned.classes[c].name
                                  : fmt::format("{}, {}", planned.classes[c].name, name(here.kind));
    collector& sum = by_class.try_emplace(place, planned).first->second;
    sum.add(o, 1, ran.end_s - ran.begin_s);
    const signal before = chains.cause_of(at);
    sum.wait(part_kind::idle, std::string(no_work), nullptr, ran.begin_s - std::max(0.0, before.at_s));
    at = before;
  }
  std::vector<time_slice> out;
  for (auto& [place, sum] : by_class)
    for (time_slice& s : sum.take()) {
      s.phase = fmt::format("{}: {}", place, s.phase);
      out.push_back(std::move(s));
    }
  return out;
}

}  // namespace nvlsim
