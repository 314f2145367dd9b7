#include "analysis/explain_latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/worker_time.hpp"

namespace nvlsim {
namespace {

/// The path of a request: its times at each station and the workers that processed it.
struct way {
  std::size_t prompt_worker = 0, decode_worker = 0;
  double sent = 0, begun = 0, prefilled = 0, delivered = 0, streaming = 0, end = 0;
  double prompt = 0;                             ///< tokens
  double gaps = 0;                               ///< gaps between its tokens
  double weight = 1;                             ///< number of requests it represents
  const operation_template* transfer = nullptr;  ///< transfer of its KV cache

  double held(const front_end_costs& server) const {
    return gaps > 0 ? server.held_back_s(gaps, (end - streaming) / gaps) : 0;
  }
};

/// The transfers of the caches that prefill workers sent, by request: a worker's second stream has them in order
/// of their ends.
std::map<std::pair<std::size_t, double>, const operation_template*> transfers_of(const run_record& run) {
  std::map<std::pair<std::size_t, double>, const operation_template*> out;
  for (std::size_t c = 0; c < run.planned.classes.size(); ++c) {
    if (run.planned.classes[c].streams.size() < 2) continue;
    const std::vector<operation>& sends = run.planned.classes[c].streams[1].operations;
    for (std::size_t k = 0; k < sends.size(); ++k)
      out[{c, run.times.spans[c][1][k].end_s}] =
          &run.planned.templates[static_cast<std::size_t>(sends[k].template_index)];
  }
  return out;
}

/// Paths of the requests that count, or of all.
std::vector<way> ways_of(const run_record& run, bool all = false) {
  const auto transfers = transfers_of(run);
  std::vector<way> out;
  for (const request_record& r : run.requests) {
    if (!all && run.counted_arrivals &&
        (r.arrival_s < run.counted_arrivals->first || r.arrival_s > run.counted_arrivals->second))
      continue;
    way w;
    w.prompt_worker = w.decode_worker = static_cast<std::size_t>(r.worker);
    w.sent = r.arrival_s;
    w.begun = std::clamp(r.admitted_s, r.arrival_s, r.first_token_s);
    w.prefilled = w.delivered = w.streaming = r.first_token_s;
    if (r.delivered_s >= 0) {
      w.prompt_worker = static_cast<std::size_t>(r.prompt_worker);
      w.prefilled = r.prefilled_s;
      w.delivered = std::min(r.delivered_s, r.first_token_s);
      if (const auto t = transfers.find({w.prompt_worker, r.delivered_s}); t != transfers.end())
        w.transfer = t->second;
    }
    w.end = r.last_token_s;
    w.prompt = static_cast<double>(r.input);
    w.gaps = static_cast<double>(r.output) - 1;
    w.weight = r.workers;
    out.push_back(w);
  }
  return out;
}

/// The stages of a path that a latency includes, and the weight of each second.
struct measured_way {
  way w;
  bool to_first_token = false, to_begin = false, decodes = false;
  double decode_share = 1, value_s = 0;
};

measured_way measure(const way& w, metric_parts of, const front_end_costs& server) {
  measured_way m{.w = w};
  if (of == metric_parts::queue_time) {
    m.to_begin = true;
    m.value_s = w.begun - w.sent;
  } else if (of == metric_parts::token_time) {
    m.decodes = true;
    m.decode_share = 1 / w.gaps;
    m.value_s = (w.end - w.streaming) / w.gaps;
  } else if (of == metric_parts::request_time) {
    m.to_begin = m.to_first_token = m.decodes = true;
    m.value_s = w.end - w.sent + w.held(server) + server.way_in(w.prompt).base();
  } else {
    m.to_begin = m.to_first_token = true;
    m.value_s = w.streaming - w.sent + w.held(server) + server.way_in(w.prompt).base();
  }
  return m;
}

void put(latency_parts& out, const char* stage, std::vector<time_slice> slices) {
  if (!slices.empty()) out.stages.emplace_back(stage, std::move(slices));
}

/// A stage of every path: name, begin, end, worker, and the latencies that include it.
struct stretch {
  const char* stage;
  double way::*from;
  double way::*to;
  std::size_t way::*worker;
  bool measured_way::*counts;
};
constexpr stretch to_prompt[] = {
    {"queue", &way::sent, &way::begun, &way::prompt_worker, &measured_way::to_begin},
    {"prefill", &way::begun, &way::prefilled, &way::prompt_worker, &measured_way::to_first_token}};
constexpr stretch to_last_token[] = {
    {"decode queue", &way::delivered, &way::streaming, &way::decode_worker, &measured_way::to_first_token},
    {"decode", &way::streaming, &way::end, &way::decode_worker, &measured_way::decodes}};

void add_stage(latency_parts& out, worker_time& workers, const std::vector<measured_way>& ways, double weights,
               const stretch& s) {
  for (const measured_way& m : ways)
    if (m.*s.counts) workers.add(m.w.*s.worker, m.w.*s.from, m.w.*s.to, m.decode_share * m.w.weight / weights);
  put(out, s.stage, workers.take());
}

std::vector<time_slice> transfer_slices(const std::vector<measured_way>& ways, double weights) {
  std::map<const operation_template*, std::pair<double, double>>
      by_template;  // number of transfers, and time waited for the port
  double sent = 0;
  for (const measured_way& m : ways) {
    if (!m.to_first_token) continue;
    if (!m.w.transfer) {  // beyond the traced workers
      sent += m.w.weight / weights * (m.w.delivered - m.w.prefilled);
      continue;
    }
    auto& [count, waited] = by_template[m.w.transfer];
    count += m.w.weight / weights;
    waited += m.w.weight / weights * std::max(0.0, m.w.delivered - m.w.prefilled - m.w.transfer->duration.base());
  }
  std::vector<time_slice> out;
  double waited = 0;
  if (sent > 0) out.push_back({"transfer", part_kind::kv_transfer, "kv_transfer", nullptr, sent, 0});
  for (const auto& [used, sums] : by_template) {
    for (const operation_part& p : used->parts)
      out.push_back({"transfer", p.kind, p.name, p.facts, p.duration.base() * sums.first, sums.first});
    waited += sums.second;
  }
  if (waited > 0) out.push_back({"transfer", part_kind::idle, "caches sent before", nullptr, waited, 0});
  return out;
}

/// Adds the front end's share of latency: request handling and token streaming delay.
void add_server(latency_parts& out, const std::vector<measured_way>& ways, double weights,
                const front_end_costs& server) {
  double held = 0, way_in = 0;
  for (const measured_way& m : ways) {
    held += m.w.weight / weights * m.w.held(server);
    way_in += m.w.weight / weights * server.way_in(m.w.prompt).base();
  }
  std::vector<time_slice> slices;
  const auto add = [&](const char* name, double time_s) {
    if (time_s > 0) slices.push_back({"server", part_kind::host, name, nullptr, time_s, 0});
  };
  add("first token delay", way_in);
  add("tokens held back", held);
  put(out, "server", std::move(slices));
}

void scale_to(latency_parts& parts, double wanted) {
  double sum = 0;
  for (const auto& [stage, slices] : parts.stages)
    for (const time_slice& s : slices) sum += s.time_s;
  if (!(sum > 0)) return;
  for (auto& [stage, slices] : parts.stages)
    for (time_slice& s : slices) {
      s.time_s *= wanted / sum;
      s.calls *= wanted / sum;
    }
}

/// A gap between two tokens of a sequence on one worker.
struct token_gap {
  std::size_t worker = 0;
  double from = 0, to = 0;
};

/// trace_serving stores the number of decodes as the operation's micro-batch.
std::int64_t decodes_of(const run_record& run, std::size_t worker, std::size_t iteration) {
  return run.planned.classes[worker].streams.front().operations[iteration].micro_batch;
}

/// Finds the gap between tokens whose length is nearest to `wanted`.
token_gap nearest_gap(const run_record& run, double wanted) {
  token_gap best;
  double min = -1;
  for (std::size_t worker = 0; worker < run.planned.classes.size(); ++worker) {
    const std::vector<span>& spans = run.times.spans[worker].front();
    std::size_t decoded = 0;  // index after the last iteration with decodes
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (decodes_of(run, worker, i) == 0) continue;
      const auto consider = [&](double from) {
        const double off = std::abs(spans[i].end_s - from - wanted);
        if (min < 0 || off < min) min = off, best = {worker, from, spans[i].end_s};
      };
      if (decoded > 0) consider(spans[decoded - 1].end_s);
      consider(spans[i].begin_s);  // sequences whose cache was taken up
      for (std::size_t k = decoded; k < i; ++k)
        consider(spans[k].end_s);  // sequences whose first token came at this end
      decoded = i + 1;
    }
  }
  return best;
}

/// The mean gap: the time of all gaps over their number. All gaps of a request together are the time from its
/// first token to its last.
std::vector<time_slice> mean_gap(const run_record& run) {
  worker_time workers(run.planned, run.times);
  const std::vector<way> ways = ways_of(run, true);
  double gaps = 0;
  for (const way& w : ways)
    gaps += w.weight * static_cast<double>(decode_steps(static_cast<std::int64_t>(w.gaps), run.tokens_per_step));
  for (const way& w : ways)
    workers.add(w.decode_worker, w.streaming, w.end, w.weight / (gaps * run.tokens_per_step));
  return workers.take();
}

latency_parts parts_of_gaps(const run_record& run, std::string_view statistic, double wanted) {
  latency_parts out;
  if (statistic == "mean") {
    out.stages.emplace_back("decode", mean_gap(run));
    return out;
  }
  worker_time workers(run.planned, run.times);
  const token_gap g = nearest_gap(run, wanted * run.tokens_per_step);
  workers.add(g.worker, g.from, g.to, 1);
  out.note = fmt::format("of one wait for a token with this value, on {}", run.planned.classes[g.worker].name);
  out.stages.emplace_back("decode", workers.take());
  scale_to(out, wanted);  // a step gives several tokens, and gaps are kept in bins of 0.2 %
  return out;
}

}  // namespace

bool is_latency(metric_parts p) {
  return p == metric_parts::queue_time || p == metric_parts::first_token_time || p == metric_parts::token_time ||
         p == metric_parts::token_gap || p == metric_parts::request_time;
}

std::vector<time_slice> latency_parts::slices() const {
  std::vector<time_slice> out;
  for (const auto& [stage, slices] : stages) out.insert(out.end(), slices.begin(), slices.end());
  return out;
}

latency_parts parts_of_latency(const run_record& run, metric_parts of, std::string_view statistic, double wanted) {
  if (of == metric_parts::token_gap) return parts_of_gaps(run, statistic, wanted);
  std::vector<measured_way> ways;
  for (const way& w : ways_of(run))
    if (of != metric_parts::token_time || w.gaps > 0) ways.push_back(measure(w, of, run.front_end));
  latency_parts out;
  if (ways.empty()) return out;
  if (statistic != "mean") {
    const auto nearest =
        std::min_element(ways.begin(), ways.end(), [&](const measured_way& a, const measured_way& b) {
          return std::abs(a.value_s - wanted) < std::abs(b.value_s - wanted);
        });
    ways = {*nearest};
    ways.front().w.weight = 1;
    out.note = fmt::format("breakdown of one request with this value, on {}",
                           run.planned.classes[ways.front().w.decode_worker].name);
  }
  double weights = 0;
  for (const measured_way& m : ways) weights += m.w.weight;
  worker_time workers(run.planned, run.times);
  for (const stretch& x : to_prompt) add_stage(out, workers, ways, weights, x);
  put(out, "transfer", transfer_slices(ways, weights));
  for (const stretch& x : to_last_token) add_stage(out, workers, ways, weights, x);
  if (of == metric_parts::first_token_time || of == metric_parts::request_time)
    add_server(out, ways, weights, run.front_end);
  return out;
}

cause by_stage(const latency_parts& parts, std::string name) {
  cause whole{std::move(name), 0, {}, {}};
  for (const auto& [stage, slices] : parts.stages) {
    cause c = by_phase(slices, stage);
    whole.amount += c.amount;
    // A stage with a single phase of the same name is shown as that phase.
    if (c.parts.size() == 1 && c.parts.front().name == stage) c = cause(std::move(c.parts.front()));
    whole.parts.push_back(std::move(c));
  }
  return whole;
}

}  // namespace nvlsim
