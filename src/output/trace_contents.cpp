#include "output/trace_contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim::output {
namespace {

std::string label(std::string_view category, std::string_view slice_name) {
  std::string out = "\"cat\":";
  append_json_string(out, category);
  out += ",\"name\":";
  append_json_string(out, slice_name);
  return out;
}

double length(const operation_part& p) { return p.duration.base() * p.repeat; }

/// The kind of work that takes the most time.
std::string_view main_kind(const operation_template& t) {
  std::array<double, part_kinds> by_kind{};
  for (const operation_part& p : t.parts) by_kind[static_cast<std::size_t>(p.kind)] += length(p);
  if (t.parts.empty()) return "other";
  return name(static_cast<part_kind>(std::max_element(by_kind.begin(), by_kind.end()) - by_kind.begin()));
}

/// Adds one slice per run of parts of one kind.
void add_runs(const operation_template& t, template_slices& out) {
  double end = 0;
  for (std::size_t first = 0; first < t.parts.size();) {
    std::size_t last = first;
    for (; last < t.parts.size() && t.parts[last].kind == t.parts[first].kind; ++last)
      end += length(t.parts[last]);
    const operation_part& p = t.parts[first];
    std::string text(name(p.kind));
    if (last == first + 1) text = p.repeat > 1 ? fmt::format("{} x{}", p.name, p.repeat) : p.name;
    out.inside.push_back({static_cast<std::uint32_t>(out.labels.size()), end});
    out.labels.push_back(label(name(p.kind), text));
    first = last;
  }
}

void add_layers(const operation_template& t, template_slices& out) {
  double end = 0;
  for (const operation_part& p : t.parts) {
    const auto index = static_cast<std::uint32_t>(out.labels.size());
    out.labels.push_back(label(name(p.kind), p.name));
    for (int i = 0; i < p.repeat; ++i) out.inside.push_back({index, end += p.duration.base()});
  }
}

template_slices slices_of(const operation_template& t, const trace_detail* detail) {
  template_slices out;
  out.label = label(main_kind(t), t.name);
  if (!detail) return out;
  if (*detail == trace_detail::layers) add_layers(t, out);
  else add_runs(t, out);
  const double all = out.inside.empty() ? 0 : out.inside.back().end;
  if (out.inside.size() < 2 || !(all > 0)) out.inside.clear();
  for (inner_slice& s : out.inside) s.end /= all;
  return out;
}

void slice_templates(const plan& planned, const trace_detail* detail, trace_contents& out) {
  out.templates.clear();
  for (const operation_template& t : planned.templates) out.templates.push_back(slices_of(t, detail));
}

template <class Visit>
void for_each_operation(const plan& planned, Visit visit) {
  for (std::uint32_t c = 0; c < planned.classes.size(); ++c)
    for (std::uint32_t s = 0; s < planned.classes[c].streams.size(); ++s) {
      const auto& operations = planned.classes[c].streams[s].operations;
      for (std::uint32_t o = 0; o < operations.size(); ++o) visit(op_place{c, s, o}, operations[o]);
    }
}

const span& span_of(const timeline& times, const op_place& p) {
  return times.spans[p.rank_class][p.stream][p.operation];
}

/// Finds arrows between shown classes, from the arrival that triggered each event. Skips slices of zero length,
/// which viewers cannot bind arrows to. Returns the number of arrows; stores them if there are at most `max`.
std::size_t find_arrows(const plan& planned, const timeline& times, std::size_t max, trace_contents& out) {
  struct source {
    op_place place;
    double end_s = -1;
  };
  std::vector<source> sources(planned.arrivals.size());
  for_each_operation(planned, [&](const op_place& p, const operation& o) {
    if (o.signals == no_event) return;
    source& s = sources[static_cast<std::size_t>(o.signals)];
    if (span_of(times, p).end_s > s.end_s) s = {p, span_of(times, p).end_s};
  });
  const auto shown = [&](const op_place& p) {
    const span& t = span_of(times, p);
    return std::binary_search(out.classes.begin(), out.classes.end(), p.rank_class) &&
           p.operation < out.operations_per_stream && nanoseconds(t.end_s) > nanoseconds(t.begin_s);
  };
  std::size_t found = 0;
  for_each_operation(planned, [&](const op_place& p, const operation& o) {
    for (std::uint32_t i = 0; i < o.waits; ++i) {
      const source& s = sources[static_cast<std::size_t>(planned.waits[o.first_wait + i])];
      if (s.end_s < 0 || s.place.rank_class == p.rank_class || !shown(p) || !shown(s.place)) continue;
      if (++found <= max) out.arrows.push_back({s.place, p});
    }
  });
  if (found > max) out.arrows = {};
  out.by_sender.resize(out.arrows.size());
  std::iota(out.by_sender.begin(), out.by_sender.end(), std::size_t{0});
  std::stable_sort(out.by_sender.begin(), out.by_sender.end(),
                   [&](std::size_t a, std::size_t b) { return out.arrows[a].from < out.arrows[b].from; });
  return found;
}

/// Upper bounds on the number of events of each type.
struct event_counts {
  std::size_t metadata = 0, operations = 0, inside = 0, streams = 0;
};

event_counts count(const plan& planned, const trace_contents& contents) {
  event_counts n;
  for (const std::size_t c : contents.classes) {
    n.metadata += 2;
    for (const stream& s : planned.classes[c].streams) {
      n.metadata += 2;
      n.streams += 1;
      n.operations += s.operations.size();
      for (const operation& o : s.operations)
        n.inside += contents.templates[static_cast<std::size_t>(o.template_index)].inside.size();
    }
  }
  return n;
}

/// Leaves out one type of detail after another until the events fit.
void fit(const plan& planned, const timeline& times, const trace_options& options, trace_contents& out) {
  trace_detail detail = options.detail;
  slice_templates(planned, &detail, out);
  if (options.flows) {
    const event_counts n = count(planned, out);
    const std::size_t taken = n.metadata + n.operations;
    const std::size_t room = options.max_events > taken ? (options.max_events - taken) / 2 : 0;
    if (find_arrows(planned, times, room, out) > room) out.left_out.emplace_back("arrows");
  }
  std::size_t points = 0;
  for (const trace_counter& c : options.counters) points += c.points.size();
  const auto used = [&] {
    const event_counts n = count(planned, out);
    const std::size_t power = out.power ? 2 * n.operations + out.classes.size() : 0;
    return n.metadata + n.operations + n.inside + 2 * out.arrows.size() + power + (out.counters ? points : 0);
  };
  const auto over = [&] { return used() > options.max_events; };
  if (detail == trace_detail::layers && over()) {
    detail = trace_detail::operations;
    slice_templates(planned, &detail, out);
    out.left_out.emplace_back("layers");
  }
  if (over()) {
    slice_templates(planned, nullptr, out);
    out.left_out.emplace_back("parts of operations");
  }
  if ((out.power || out.counters) && over()) {
    out.power = out.counters = false;
    out.left_out.emplace_back("counters");
  }
  if (!out.arrows.empty() && over()) {
    out.arrows.clear();
    out.by_sender.clear();
    out.left_out.emplace_back("arrows");
  }
  if (over()) {
    const event_counts n = count(planned, out);
    const std::size_t left = options.max_events > n.metadata ? options.max_events - n.metadata : 0;
    out.operations_per_stream = left / std::max<std::size_t>(n.streams, 1);
    out.left_out.push_back(fmt::format("operations after the first {} of a stream", out.operations_per_stream));
    if (!options.requests.empty()) out.left_out.emplace_back("requests");
    return;
  }
  // The process that holds the requests has a name and a place.
  const std::size_t left = options.max_events - used();
  out.requests = std::min(options.requests.size(), left < 2 ? 0 : (left - 2) / events_per_request);
  if (out.requests < options.requests.size())
    out.left_out.push_back(fmt::format("requests after the first {}", out.requests));
}

void check_shape(const plan& planned, const timeline& times) {
  bool same = times.spans.size() == planned.classes.size();
  for (std::size_t c = 0; same && c < planned.classes.size(); ++c) {
    const auto& streams = planned.classes[c].streams;
    same = times.spans[c].size() == streams.size();
    for (std::size_t s = 0; same && s < streams.size(); ++s)
      same = times.spans[c][s].size() == streams[s].operations.size();
  }
  if (!same) throw internal_error("trace: timeline and plan differ in shape");
}

}  // namespace

std::int64_t nanoseconds(double seconds) {
  const double ns = seconds * 1e9;
  if (!(ns >= 0)) throw internal_error(fmt::format("trace: invalid time {} s", seconds));
  if (ns > 0x1p53)
    throw input_error({{"",
                        "",
                        fmt::format("a trace holds times up to 104 days, but this run takes {:.0f} s; use fewer "
                                    "requests or a higher rate",
                                    seconds),
                        {}}});
  return std::llround(ns);
}

trace_contents contents_of(const plan& planned, const timeline& times, const trace_options& options) {
  check_shape(planned, times);
  trace_contents out;
  out.left_out = options.left_out;
  out.classes = options.classes;
  if (out.classes.empty()) {
    out.classes.resize(planned.classes.size());
    std::iota(out.classes.begin(), out.classes.end(), std::size_t{0});
  }
  std::sort(out.classes.begin(), out.classes.end());
  out.classes.erase(std::unique(out.classes.begin(), out.classes.end()), out.classes.end());
  diagnostics problems;
  for (const std::size_t c : out.classes)
    if (c >= planned.classes.size())
      problems.add("--trace-ranks", "", fmt::format("no class {}; the run has {}", c, planned.classes.size()));
  problems.throw_if_any();
  out.power = options.power;
  out.counters = !options.counters.empty();
  out.operations_per_stream = SIZE_MAX;
  fit(planned, times, options, out);
  return out;
}

}  // namespace nvlsim::output
