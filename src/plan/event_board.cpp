#include "nvlsim/plan/event_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

const stream& stream_at(const plan& p, const stream_position& s) {
  return p.classes[static_cast<std::size_t>(s.rank_class)].streams[static_cast<std::size_t>(s.stream)];
}

std::string operation_name(const plan& p, const operation& o) {
  std::string text = fmt::format("\"{}\"", p.templates[static_cast<std::size_t>(o.template_index)].name);
  if (o.micro_batch >= 0) text += fmt::format(" of micro-batch {}", o.micro_batch);
  return text;
}

/// Whether a demand lies within its operation, and its latency within the demand, apart from rounding errors.
bool possible(const network_demand& d, seconds duration) {
  const auto amount = [](bytes b) { return std::isfinite(b.base()) && b >= bytes{}; };
  const network_traffic& t = d.traffic;
  const auto amounts = [&](const port_bytes& b) { return amount(b.out) && amount(b.in); };
  const auto within = [](const port_bytes& b, const port_bytes& all) {
    return b.out <= all.out && b.in <= all.in;
  };
  return amounts(t.nvlink) && amounts(t.nic) && amounts(t.uplink) && amounts(t.pod) && within(t.uplink, t.nic) &&
         within(t.pod, t.nic) && (t.uplink == port_bytes{} || within(t.pod, t.uplink)) && d.start >= seconds{} &&
         d.latency >= seconds{} && d.start + d.latency <= d.end * (1 + 1e-12) && d.end <= duration * (1 + 1e-12);
}

void check_templates(const plan& p) {
  for (const operation_template& t : p.templates) {
    const double d = t.duration.base();
    if (!std::isfinite(d) || d < 0) {
      throw internal_error(fmt::format("plan: \"{}\" takes {} s, which is not a valid duration", t.name, d));
    }
  }
  for (const operation_template& t : p.templates) {
    if (!std::all_of(t.network.begin(), t.network.end(), [&](const auto& d) { return possible(d, t.duration); })) {
      throw internal_error(fmt::format("plan: \"{}\" has an impossible demand on the network", t.name));
    }
  }
  for (std::size_t e = 0; e < p.arrivals.size(); ++e) {
    if (p.arrivals[e] < 1) {
      throw internal_error(fmt::format("plan: event {} needs {} arrivals", e, p.arrivals[e]));
    }
  }
}

bool in_range(const plan& p, const operation& o) {
  const auto below = [](std::int32_t i, std::size_t n) { return i >= 0 && static_cast<std::size_t>(i) < n; };
  if (!below(o.template_index, p.templates.size())) return false;
  if (o.signals != no_event && !below(o.signals, p.arrivals.size())) return false;
  if (o.peer != no_peer && !below(o.peer, p.classes.size())) return false;
  if (std::size_t{o.first_wait} + o.waits > p.waits.size()) return false;
  for (event_id e : std::span(p.waits).subspan(o.first_wait, o.waits)) {
    if (!below(e, p.arrivals.size())) return false;
  }
  return true;
}

}  // namespace

std::vector<stream_position> busy_streams(const plan& p) {
  std::vector<stream_position> out;
  for (std::size_t c = 0; c < p.classes.size(); ++c) {
    for (std::size_t s = 0; s < p.classes[c].streams.size(); ++s) {
      if (p.classes[c].streams[s].operations.empty()) continue;
      out.push_back({static_cast<std::int32_t>(c), static_cast<std::int32_t>(s), 0});
    }
  }
  return out;
}

std::string stream_name(const plan& p, const stream_position& s) {
  return fmt::format("{}.{}", p.classes[static_cast<std::size_t>(s.rank_class)].name, name(stream_at(p, s).kind));
}

void check_plan(const plan& p) {
  check_templates(p);
  std::vector<std::int32_t> open = p.arrivals;  // arrivals without a signalling operation so far
  for (const stream_position& s : busy_streams(p)) {
    const std::vector<operation>& operations = stream_at(p, s).operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const operation& o = operations[i];
      if (!in_range(p, o)) {
        throw internal_error(
            fmt::format("plan: operation {} of {} has an index out of range", i, stream_name(p, s)));
      }
      if (o.signals != no_event && --open[static_cast<std::size_t>(o.signals)] < 0) {
        throw internal_error(fmt::format("plan: event {} needs {} arrivals; {} at {} is one too many", o.signals,
                                         p.arrivals[static_cast<std::size_t>(o.signals)], operation_name(p, o),
                                         stream_name(p, s)));
      }
    }
  }
}

event_board::event_board(const plan& p, std::size_t waiters) : events_(p.arrivals.size()), next_(waiters, none) {
  for (std::size_t e = 0; e < events_.size(); ++e) events_[e].missing = p.arrivals[e];
}

std::string deadlock_text(const plan& p, const event_board& events, const std::vector<stream_position>& stuck) {
  constexpr std::size_t shown = 8;
  std::string text = fmt::format("deadlock: {} stream{} cannot go on", stuck.size(), stuck.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < stuck.size() && i < shown; ++i) {
    const stream_position& s = stuck[i];
    const operation& o = stream_at(p, s).operations[s.operation];
    text +=
        fmt::format("\n  {}: operation {}, {}, waits for", stream_name(p, s), s.operation, operation_name(p, o));
    const char* separator = " ";
    for (event_id e : std::span(p.waits).subspan(o.first_wait, o.waits)) {
      if (events.happened(e)) continue;
      const std::int32_t needed = p.arrivals[static_cast<std::size_t>(e)];
      text += fmt::format("{}event {} ({} of {} arrived)", separator, e, needed - events.missing(e), needed);
      separator = ", ";
    }
  }
  if (stuck.size() > shown) text += fmt::format("\n  and {} more", stuck.size() - shown);
  return text;
}

}  // namespace nvlsim
