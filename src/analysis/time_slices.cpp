#include "analysis/time_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace nvlsim {
namespace {

/// The operation whose end triggered an event.
struct signal {
  std::int32_t rank_class = -1, stream = 0;
  std::uint32_t operation = 0;
  double at_s = -1;
};

std::vector<signal> signals_of(const plan& planned, const timeline& times) {
  std::vector<signal> out(planned.arrivals.size());
  for (std::size_t c = 0; c < planned.classes.size(); ++c)
    for (std::size_t s = 0; s < planned.classes[c].streams.size(); ++s) {
      const auto& operations = planned.classes[c].streams[s].operations;
      for (std::size_t i = 0; i < operations.size(); ++i) {
        if (operations[i].signals == no_event) continue;
        signal& last = out[static_cast<std::size_t>(operations[i].signals)];
        const double end = times.spans[c][s][i].end_s;
        if (end >= last.at_s)
          last = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(s), static_cast<std::uint32_t>(i), end};
      }
    }
  return out;
}

/// The last of the events that an operation waits for.
std::optional<signal> last_wait(const plan& planned, const operation& o, const std::vector<signal>& signals) {
  std::optional<signal> last;
  for (std::uint32_t k = 0; k < o.waits; ++k) {
    const signal& s = signals[static_cast<std::size_t>(planned.waits[o.first_wait + k])];
    if (s.rank_class >= 0 && (!last || s.at_s >= last->at_s)) last = s;
  }
  return last;
}

const stream& stream_of(const plan& planned, const signal& s) {
  return planned.classes[static_cast<std::size_t>(s.rank_class)].streams[static_cast<std::size_t>(s.stream)];
}

const operation_template& template_of(const plan& planned, const operation& o) {
  return planned.templates[static_cast<std::size_t>(o.template_index)];
}

/// Sums time by template, and waits by what was waited for.
class collector {
 public:
  explicit collector(const plan& planned) : planned_(planned), weights_(planned.templates.size()) {}

  void add(const operation& o, double weight, double took_s) {
    if (weight == 0) return;
    weights_[static_cast<std::size_t>(o.template_index)] += weight;
    if (const double longer = slowed_by(template_of(planned_, o), took_s); longer > 0)
      slowed_[o.template_index] += weight * longer;
  }
  void wait(part_kind kind, std::string name, std::shared_ptr<const part_facts> facts, double time_s) {
    if (!(time_s > 0)) return;
    waits_[{kind, std::move(name), facts.get()}] += time_s;
    if (facts) kept_.push_back(std::move(facts));
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
      const auto kept =
          std::find_if(kept_.begin(), kept_.end(), [f = facts](const auto& k) { return k.get() == f; });
      out.push_back({std::string(waiting_phase), kind, name, kept == kept_.end() ? nullptr : *kept, time, 0});
    }
    return out;
  }

 private:
  const plan& planned_;
  std::vector<double> weights_;
  std::map<std::int32_t, double> slowed_;
  std::map<std::tuple<part_kind, std::string, const part_facts*>, double> waits_;
  std::vector<std::shared_ptr<const part_facts>> kept_;
};

/// The operation that the start of `at` depended on: its predecessor on the stream or the last one it waited for.
/// Class -1 if there is none.
signal cause_of(const plan& planned, const timeline& times, const std::vector<signal>& signals, const signal& at) {
  signal before;
  if (at.operation > 0)
    before = {
        at.rank_class, at.stream, at.operation - 1,
        times.spans[static_cast<std::size_t>(at.rank_class)][static_cast<std::size_t>(at.stream)][at.operation - 1]
            .end_s};
  if (const auto last = last_wait(planned, stream_of(planned, at).operations[at.operation], signals);
      last && last->at_s > before.at_s)
    before = *last;
  return before;
}

/// A wait from `from_s` to the end of `at`, of a class with a share of the GPUs.
struct shared_wait {
  signal at;
  double from_s = 0, share = 1;
};

/// Adds to `sum` the time in which the chain of operations leading to the end of a wait was sending or queued to
/// send, and returns it.
double add_transfers(const plan& planned, const timeline& times, const std::vector<signal>& signals,
                     const shared_wait& w, collector& sum) {
  signal at = w.at;
  const double from_s = w.from_s, share = w.share;
  double all = 0;
  while (at.rank_class >= 0 && at.at_s > from_s) {
    const stream& here = stream_of(planned, at);
    const span& ran =
        times.spans[static_cast<std::size_t>(at.rank_class)][static_cast<std::size_t>(at.stream)][at.operation];
    if (const double sent = ran.end_s - std::max(from_s, ran.begin_s);
        here.kind == stream_kind::pipeline && sent > 0) {
      const operation_template& t = template_of(planned, here.operations[at.operation]);
      sum.wait(part_kind::pp, t.name, t.parts.empty() ? nullptr : t.parts.front().facts, sent * share);
      all += sent * share;
    }
    at = cause_of(planned, times, signals, at);
  }
  return all;
}

double busy_time(const std::vector<span>& spans) {
  double t = 0;
  for (const span& s : spans) t += s.end_s - s.begin_s;
  return t;
}

/// The compute operation that ends last.
signal last_of(const timeline& times) {
  signal last;
  for (std::size_t c = 0; c < times.spans.size(); ++c)
    if (const std::vector<span>& all = times.spans[c].front();
        !all.empty() && (last.rank_class < 0 || all.back().end_s > last.at_s))
      last = {static_cast<std::int32_t>(c), 0, static_cast<std::uint32_t>(all.size() - 1), all.back().end_s};
  return last;
}

constexpr std::string_view bubble = "bubble", imbalance_name = "imbalance";

}  // namespace

std::string phase_of(const operation_template& t) {
  const std::size_t detail = t.name.rfind(" (");
  return t.name.substr(0, detail == std::string::npos ? t.name.find(' ') : detail);
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

std::vector<time_slice> slices_of_gpus(const plan& planned, const timeline& times) {
  double gpus = 0;
  for (const rank_class& c : planned.classes) gpus += static_cast<double>(c.multiplicity);
  const std::vector<signal> signals = signals_of(planned, times);
  collector sum(planned);
  const signal end = last_of(times);
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
      const auto last = last_wait(planned, operations[i], signals);
      any_wait = any_wait || last;
      if (last && stream_of(planned, *last).kind == stream_kind::data_parallel) {
        const operation_template& t = template_of(planned, stream_of(planned, *last).operations[last->operation]);
        sum.wait(part_kind::dp, t.name, t.parts.empty() ? nullptr : t.parts.front().facts, gap);
      } else if (last) {
        for_stages += gap;
        if (gap > 0) for_stages -= add_transfers(planned, times, signals, {*last, now, share}, sum);
      } else {
        sum.wait(part_kind::idle, std::string(no_work), nullptr, gap);
      }
      sum.add(operations[i], share, spans[i].end_s - spans[i].begin_s);
      now = spans[i].end_s;
    }
    const double tail = std::max(0.0, times.makespan.base() - now) * share;
    if (any_wait) for_stages += tail - add_transfers(planned, times, signals, {end, now, share}, sum);
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
  const std::vector<signal> signals = signals_of(planned, times);
  signal at;
  for (std::size_t c = 0; c < planned.classes.size(); ++c)
    for (std::size_t s = 0; s < planned.classes[c].streams.size(); ++s)
      if (const auto& spans = times.spans[c][s]; !spans.empty() && spans.back().end_s > at.at_s)
        at = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(s),
              static_cast<std::uint32_t>(spans.size() - 1), spans.back().end_s};
  std::map<std::string, collector> by_class;
  while (at.rank_class >= 0) {
    const auto c = static_cast<std::size_t>(at.rank_class), s = static_cast<std::size_t>(at.stream);
    const stream& here = stream_of(planned, at);
    const operation& o = here.operations[at.operation];
    const span& ran = times.spans[c][s][at.operation];
    const std::string place = here.kind == stream_kind::compute
                                  ? planned.classes[c].name
                                  : fmt::format("{}, {}", planned.classes[c].name, name(here.kind));
    collector& sum = by_class.try_emplace(place, planned).first->second;
    sum.add(o, 1, ran.end_s - ran.begin_s);
    const signal before = cause_of(planned, times, signals, at);
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
