#include "nvlsim/output/report_page.hpp"

#include <fmt/format.h>
#include <embedded/report.hpp>

#include <algorithm>
#include <cmath>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/units/version.hpp"
#include "output/lists.hpp"

namespace nvlsim::output {
namespace {

value timeline_value(const report_timeline& t) {
  const auto pairs = [](const std::vector<std::pair<double, double>>& points) {
    return list_of(points, [](const auto& p) { return value{value::array{p.first, p.second}}; });
  };
  const auto slice = [](const report_timeline::slice& s) {
    return value{value::array{static_cast<std::int64_t>(s.name), s.begin_s, s.length_s,
                              static_cast<std::int64_t>(s.micro_batch)}};
  };
  const auto track = [&](const report_timeline::track& l) {
    return value{value::object{{"name", l.name}, {"slices", list_of(l.slices, slice)}}};
  };
  const auto curve = [&](const time_curve& c) {
    return value{value::object{{"name", c.name}, {"points", pairs(c.points)}}};
  };
  const auto memory = [&](const memory_curve& m) {
    return value{value::object{{"name", m.name}, {"points", pairs(m.points)}}};
  };
  const auto latency = [&](const auto& l) {
    return value{value::object{{"metric", l.metric}, {"points", pairs(l.points)}}};
  };
  value out{value::object{{"scenario", t.scenario},
                          {"names", list_of(t.names)},
                          {"lanes", list_of(t.tracks, track)},
                          {"memory", list_of(t.memory, memory)},
                          {"latencies", list_of(t.latencies, latency)}}};
  if (!t.power.empty()) out.set("power", list_of(t.power, curve));
  if (!t.over_seeds.empty()) out.set("over_seeds", list_of(t.over_seeds, curve));
  if (!t.services.empty())
    out.set("services", list_of(t.services, [&](const report_timeline::service& s) {
              return value{value::object{{"name", s.name}, {"curves", list_of(s.curves, curve)}}};
            }));
  if (t.cluster) {
    const auto block = [](const cluster_picture::block& b) {
      return value{value::array{std::int64_t{b.rack}, std::int64_t{b.tray}, std::int64_t{b.trays},
                                std::int64_t{b.job}, b.begin_s, b.end_s - b.begin_s}};
    };
    value cluster{value::object{{"racks", t.cluster->racks}, {"trays_per_rack", t.cluster->trays_per_rack}}};
    cluster.set("end_s", t.cluster->end_s);
    cluster.set("jobs", list_of(t.cluster->jobs));
    cluster.set("blocks", list_of(t.cluster->blocks, block));
    cluster.set("left_out", t.cluster->left_out);
    if (t.cluster->counted) cluster.set("counted", true);
    out.set("cluster", std::move(cluster));
  }
  return out;
}

/// Escapes "<" so that a JSON string cannot end the HTML element.
std::string without_markup(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json)
    if (c == '<') out += "\\u003c";
    else out += c;
  return out;
}

/// Unit and better direction of each metric by kind and name, in the order of results.
value metric_table() {
  const auto text_or_null = [](std::string_view text) { return text.empty() ? value{} : value{text}; };
  value out{value::object{}};
  for (const metric_kind k : metric_kinds) {
    value rows{value::object{}};
    for (const metric& m : metrics_of(k))
      rows.set(std::string(m.name),
               value::object{{"unit", text_or_null(name(m.unit))},
                             {"better", m.direction == better::neither ? value{} : value{name(m.direction)}}});
    out.set(std::string(name(k)), std::move(rows));
  }
  return out;
}

bool is_client_latency(const metric& m) {
  return m.parts == metric_parts::first_token_time || m.parts == metric_parts::token_time ||
         m.parts == metric_parts::token_gap;
}

/// Names of the metrics that the page leads with, draws over sweeps, and draws as distributions.
value shown_metrics() {
  const auto names = [](bool (*keep)(const metric&)) {
    value out{value::array{}};
    for (const std::string_view n : metric_names(keep)) out.items()->push_back(value{n});
    return out;
  };
  value out{value::object{}};
  out.set("headlines", names([](const metric& m) { return m.is_headline; }));
  out.set("curves", names([](const metric& m) { return m.has_curve; }));
  value latencies{value::array{}};
  for (const metric& m : metrics_of(metric_kind::inference))
    if (is_client_latency(m)) latencies.items()->push_back(value{m.name});
  out.set("latencies", std::move(latencies));
  return out;
}

/// Cumulative distribution of a metric over the requests. Empty if the records do not match the counted requests:
/// replicas of different classes represent different numbers of replicas.
report_timeline::latency_curve shares_of(const run_record& run, metric_parts parts, std::vector<double> values) {
  report_timeline::latency_curve out{std::string(metric_with(metric_kind::inference, parts).name), {}};
  const value* known = run.outcome.metrics.find(out.metric);
  const value* median = known && known->members() ? known->find("p50") : nullptr;
  double p50 = 0;
  if (values.empty() || !median || !as_double(*median, p50)) return out;
  std::sort(values.begin(), values.end());
  const auto at = [&](std::size_t share, std::size_t of) {
    return values[std::max<std::size_t>((values.size() * share + of - 1) / of, 1) - 1];
  };
  if (std::abs(at(1, 2) - p50) > 0.01 * p50) return out;
  const std::size_t shares = std::min<std::size_t>(100, values.size());
  for (std::size_t i = 1; i <= shares; ++i)
    out.points.emplace_back(at(i, shares), static_cast<double>(i) / static_cast<double>(shares));
  return out;
}

std::vector<report_timeline::latency_curve> latencies_of(const run_record& run) {
  std::vector<double> ttft, tpot;
  for (const request_record& r : run.requests) {
    if (const auto& a = run.counted_arrivals; a && (r.arrival_s < a->first || r.arrival_s > a->second)) continue;
    const client_view c = seen_by_client(r, run.front_end);
    ttft.push_back(c.ttft_s);
    if (c.tpot_s) tpot.push_back(*c.tpot_s);
  }
  std::vector<report_timeline::latency_curve> out;
  for (auto& curve : {shares_of(run, metric_parts::first_token_time, std::move(ttft)),
                      shares_of(run, metric_parts::token_time, std::move(tpot))})
    if (!curve.points.empty()) out.push_back(curve);
  return out;
}

}  // namespace

report_timeline timeline_of(const run_record& run, std::size_t max_tracks, std::size_t max_slices) {
  report_timeline out;
  out.scenario = run.outcome.name;
  const auto index = [&](const std::string& n) {
    const auto at = static_cast<std::size_t>(std::find(out.names.begin(), out.names.end(), n) - out.names.begin());
    if (at == out.names.size()) out.names.push_back(n);
    return at;
  };
  const std::size_t tracks = std::min(max_tracks, run.planned.classes.size());
  const std::size_t max_each = std::max<std::size_t>(1, max_slices / std::max<std::size_t>(1, tracks));
  for (std::size_t c = 0; c < tracks; ++c) {
    const rank_class& rank = run.planned.classes[c];
    const auto& operations = rank.streams.front().operations;
    const auto& spans = run.times.spans[c].front();
    report_timeline::track& track = out.tracks.emplace_back();
    track.name = rank.multiplicity == 1 ? rank.name : fmt::format("{} (x{})", rank.name, rank.multiplicity);
    const std::size_t stride = (operations.size() + max_each - 1) / max_each;
    for (std::size_t i = 0; i < operations.size(); i += stride) {
      const std::size_t last = std::min(operations.size(), i + stride) - 1;
      const std::string& name = run.planned.templates[static_cast<std::size_t>(operations[i].template_index)].name;
      if (spans[last].end_s > spans[i].begin_s)
        track.slices.push_back(
            {index(name), spans[i].begin_s, spans[last].end_s - spans[i].begin_s, operations[i].micro_batch});
    }
  }
  out.memory = memory_over_time(run, 1500);
  out.power = run.power;
  out.over_seeds = run.over_seeds;
  out.cluster = run.stays;
  for (const state_track& s : run.services) out.services.push_back({s.name, s.counters});
  out.latencies = latencies_of(run);
  return out;
}

std::string report_page(const report_contents& r) {
  value data{value::object{{"schema", "nvlsim.report/1"}, {"version", version}}};
  data.set("metrics", metric_table());
  data.set("shown", shown_metrics());
  data.set("results", list_of(r.results, [](result x) {
             x.simulation = value{value::object{}};  // describes the simulator run, not reproducible
             return to_value(x);
           }));
  data.set("explanations", list_of(r.explanations, [](const explanation& x) { return to_value(x); }));
  data.set("timelines", list_of(r.timelines, timeline_value));
  data.set("sweeps", list_of(r.sweeps, [](const report_sweep& s) {
             return value{value::object{{"name", s.name}, {"points", s.points}}};
           }));
  data.set("searches", list_of(r.searches, [](const value& s) { return s; }));
  data.set("plans", list_of(r.plans, [](const value& p) { return p; }));
  const std::string json = without_markup(to_json(data, 0));
  const std::pair<std::string_view, std::string_view> parts[] = {{"@UPLOT_CSS@", embedded::uPlot_min_css},
                                                                 {"@PAGE_CSS@", embedded::page_css},
                                                                 {"@DATA@", json},
                                                                 {"@UPLOT_JS@", embedded::uPlot_iife_min_js},
                                                                 {"@ELEMENTS_JS@", embedded::elements_js},
                                                                 {"@CHARTS_JS@", embedded::charts_js},
                                                                 {"@RUNS_JS@", embedded::runs_js},
                                                                 {"@CLUSTERS_JS@", embedded::clusters_js},
                                                                 {"@PLANS_JS@", embedded::plans_js},
                                                                 {"@PAGE_JS@", embedded::page_js}};
  std::string out;
  std::string_view rest = embedded::page_html;
  for (const auto& [mark, text] : parts) {  // in page order
    const std::size_t at = rest.find(mark);
    out += rest.substr(0, at);
    out += text;
    rest.remove_prefix(at + mark.size());
  }
  return out += rest;
}

}  // namespace nvlsim::output
