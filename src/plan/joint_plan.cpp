#include "nvlsim/plan/joint_plan.hpp"

#include <algorithm>
#include <utility>

namespace nvlsim {
namespace {

std::int32_t waiting_template(plan& p, seconds t) {
  return p.add_template({"not started", {{part_kind::idle, "not started", t, 1}}, {}, {}});
}

}  // namespace

std::int32_t add_plan(plan& all, const plan& one, const std::string& prefix, const repetition& r) {
  const auto first_class = static_cast<std::int32_t>(all.classes.size());
  const auto first_template = static_cast<std::int32_t>(all.templates.size());
  all.templates.insert(all.templates.end(), one.templates.begin(), one.templates.end());
  const std::int32_t before = r.start > seconds{} ? waiting_template(all, r.start) : -1;
  const std::int32_t next = r.times > 1 ? waiting_template(all, {}) : -1;
  std::int32_t streams = 0;
  for (const rank_class& c : one.classes) {
    rank_class named{prefix + c.name, c.multiplicity, {}};
    for (const stream& s : c.streams) {
      named.streams.push_back({s.kind, {}});
      if (s.operations.empty()) continue;
      ++streams;
      if (before >= 0) all.append(named.streams.back(), before, {});
    }
    all.classes.push_back(std::move(named));
  }
  event_id over = no_event;  // when all streams have done the last time
  for (std::int64_t k = 0; k < r.times; ++k) {
    const event_id begun = over;
    const auto first_event = static_cast<event_id>(all.arrivals.size());
    const auto first_wait = static_cast<std::uint32_t>(all.waits.size());
    all.arrivals.insert(all.arrivals.end(), one.arrivals.begin(), one.arrivals.end());
    for (const event_id e : one.waits) all.waits.push_back(first_event + e);
    if (k + 1 < r.times) over = all.new_event(streams);
    for (std::size_t c = 0; c < one.classes.size(); ++c)
      for (std::size_t s = 0; s < one.classes[c].streams.size(); ++s) {
        const std::vector<operation>& operations = one.classes[c].streams[s].operations;
        stream& to = all.classes[static_cast<std::size_t>(first_class) + c].streams[s];
        if (operations.empty()) continue;
        if (k > 0) all.append(to, next, {begun});
        for (operation o : operations) {
          o.template_index += first_template;
          o.first_wait += first_wait;
          if (o.signals != no_event) o.signals += first_event;
          if (o.peer != no_peer) o.peer += first_class;
          to.operations.push_back(o);
        }
        if (k + 1 < r.times) all.append(to, next, {}, over);
      }
  }
  return first_class;
}

timeline times_of(const timeline& all, const plan& one, std::int32_t first, const repetition& r) {
  timeline out;
  double begin = r.start.base(), end = begin;
  for (std::size_t c = 0; c < one.classes.size(); ++c) {
    auto& streams = out.spans.emplace_back();
    for (std::size_t s = 0; s < one.classes[c].streams.size(); ++s) {
      const std::vector<span>& spans = all.spans[static_cast<std::size_t>(first) + c][s];
      const auto count = static_cast<std::ptrdiff_t>(one.classes[c].streams[s].operations.size());
      streams.emplace_back(spans.end() - count, spans.end());
      if (count == 0) continue;
      end = std::max(end, spans.back().end_s);
      if (r.times > 1) begin = std::max(begin, (spans.end() - count - 1)->end_s);
    }
  }
  for (auto& streams : out.spans)
    for (std::vector<span>& spans : streams)
      for (span& x : spans) x.begin_s -= begin, x.end_s -= begin;
  out.makespan = seconds::from_base(end - begin);
  return out;
}

void add_traffic(plan& all, std::int32_t c, const steady_traffic& t) {
  const auto pieces = static_cast<double>(t.pieces);
  const auto piece = [&](const port_bytes& b) { return port_bytes{b.out / pieces, b.in / pieces}; };
  const seconds duration = t.duration / pieces;
  operation_template w{t.name, {{part_kind::idle, t.name, duration, 1}}, {}, {}};
  w.network = {network_demand{
      {piece(t.each.nvlink), piece(t.each.nic), piece(t.each.uplink), piece(t.each.pod)}, {}, duration}};
  const std::int32_t sends = all.add_template(std::move(w));
  const std::int32_t before = t.start > seconds{} ? waiting_template(all, t.start) : -1;
  for (std::int64_t i = 0; i < t.flows; ++i) {
    stream s{stream_kind::background, {}};
    if (before >= 0) all.append(s, before, {});
    for (std::int64_t k = 0; k < t.pieces; ++k) all.append(s, sends, {});
    all.classes[static_cast<std::size_t>(c)].streams.push_back(std::move(s));
  }
}

}  // namespace nvlsim
