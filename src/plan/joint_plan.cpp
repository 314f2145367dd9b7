#include "nvlsim/plan/joint_plan.hpp"

#include <algorithm>
#include <utility>

namespace nvlsim {
namespace {

std::int32_t waiting_template(plan& p, seconds t) {
  return p.add_template({"not started", {{part_kind::idle, "not started", t, 1}}, {}, {}});
}

}  // namespace

std::int32_t add_plan(plan& all, const plan& one, const std::string& prefix, seconds start) {
  const auto first_class = static_cast<std::int32_t>(all.classes.size());
  const auto first_template = static_cast<std::int32_t>(all.templates.size());
  const auto first_event = static_cast<event_id>(all.arrivals.size());
  const auto first_wait = static_cast<std::uint32_t>(all.waits.size());
  all.templates.insert(all.templates.end(), one.templates.begin(), one.templates.end());
  all.arrivals.insert(all.arrivals.end(), one.arrivals.begin(), one.arrivals.end());
  for (const event_id e : one.waits) all.waits.push_back(first_event + e);
  const std::int32_t before = start > seconds{} ? waiting_template(all, start) : -1;
  for (rank_class c : one.classes) {
    c.name = prefix + c.name;
    for (stream& s : c.streams) {
      for (operation& o : s.operations) {
        o.template_index += first_template;
        o.first_wait += first_wait;
        if (o.signals != no_event) o.signals += first_event;
        if (o.peer != no_peer) o.peer += first_class;
      }
      if (before >= 0 && !s.operations.empty())
        s.operations.insert(s.operations.begin(), operation{.template_index = before});
    }
    all.classes.push_back(std::move(c));
  }
  return first_class;
}

timeline times_of(const timeline& all, const plan& one, std::int32_t first, seconds start) {
  timeline out;
  double end = 0;
  for (std::size_t c = 0; c < one.classes.size(); ++c) {
    auto& streams = out.spans.emplace_back();
    for (std::size_t s = 0; s < one.classes[c].streams.size(); ++s) {
      std::vector<span> spans = all.spans[static_cast<std::size_t>(first) + c][s];
      if (start > seconds{} && !spans.empty()) spans.erase(spans.begin());
      for (span& x : spans) x.begin_s -= start.base(), x.end_s -= start.base();
      if (!spans.empty()) end = std::max(end, spans.back().end_s);
      streams.push_back(std::move(spans));
    }
  }
  out.makespan = seconds::from_base(end);
  return out;
}

void add_traffic(plan& all, std::int32_t c, const steady_traffic& t) {
  operation_template w{t.name, {{part_kind::idle, t.name, t.duration, 1}}, {}, {}};
  w.network = {network_demand{t.each, {}, t.duration}};
  const std::int32_t sends = all.add_template(std::move(w));
  const std::int32_t before = t.start > seconds{} ? waiting_template(all, t.start) : -1;
  for (std::int64_t i = 0; i < t.flows; ++i) {
    stream s{stream_kind::background, {}};
    if (before >= 0) all.append(s, before, {});
    all.append(s, sends, {});
    all.classes[static_cast<std::size_t>(c)].streams.push_back(std::move(s));
  }
}

}  // namespace nvlsim
