#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/measurements/pooled_rows.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t no_limit = std::int64_t{1} << 40;

std::vector<double> class_times(const inference_row& r, const stack& s, const schedule_summary& schedule) {
  iteration_costs costs(r.hardware, s, *r.net, r.workload);
  std::vector<double> out;
  out.reserve(schedule.classes.size());
  for (const iteration_class& c : schedule.classes) out.push_back(costs.time(c.mean).base());
  return out;
}

/// Tokens/s of one replica in a long run, dominated by its steady middle. An MLPerf run lasts ten minutes and
/// sends each sample. Ramp-up and drain take as long as in a short run.
double long_run(const inference_row& r, const schedule_summary& schedule, const client_times& mean) {
  constexpr double min_s = 600;
  const double steady = mean.steady_tokens_per_s,
               ends = std::max(0.0, mean.makespan_s - schedule.output_tokens / steady);
  const double middle = std::max(min_s, r.samples / r.workers() * schedule.mean_output / steady);
  return steady * middle / (middle + ends);
}

}  // namespace

std::vector<std::string> capacity_problems(const inference_row& r, const serving_memory& memory) {
  const inference_workload& w = r.workload;
  const double longest = w.input.mean * (1 + w.input.spread) + w.output.mean * (1 + w.output.spread);
  const std::int64_t needed = held_tokens(limits_of(*r.software->inference, w, memory), std::llround(longest) + 1);
  if (needed <= memory.kv_capacity_tokens) return {};
  return {fmt::format("the longest request needs {} KV-cache tokens; memory holds {}", needed,
                      memory.kv_capacity_tokens)};
}

std::shared_ptr<const schedule_summary> schedule_cache::schedule_of(const inference_row& r,
                                                                    const serving_memory& memory) {
  const inference_workload& w = r.workload;
  schedule_limits l = limits_of(*r.software->inference, w, memory);
  const engine_settings& set = l.settings;
  std::int64_t requests = w.requests / r.workers();
  l.concurrency = w.load == load_kind::closed_loop ? w.concurrency / r.workers() : 0;
  if (r.steady) {
    const double held = w.input.mean + w.output.mean / 2 +
                        static_cast<double>(l.sequence.beside(std::llround(w.input.mean + w.output.mean)));
    const double batch = std::min(static_cast<double>(set.max_batch_size),
                                  static_cast<double>(memory.kv_capacity_tokens) / held + 1);
    requests = std::min(requests, static_cast<std::int64_t>(4 * batch) + 1);
  }
  // All caches that never fill are equivalent.
  const std::int64_t in_flight = l.concurrency > 0 ? l.concurrency : std::min(requests, set.max_batch_size.read());
  const double longest = w.input.mean * (1 + w.input.spread) + w.output.mean * (1 + w.output.spread);
  const std::int64_t max = in_flight * held_tokens(l, std::llround(longest) + 2);
  if (max < memory.kv_capacity_tokens) l.kv_capacity_tokens = no_limit, l.sequence = {};

  std::vector<double> key = {w.input.mean,
                             w.input.spread,
                             w.output.mean,
                             w.output.spread,
                             static_cast<double>(requests),
                             static_cast<double>(l.concurrency),
                             static_cast<double>(set.prefill),
                             static_cast<double>(set.max_num_tokens),
                             static_cast<double>(set.max_batch_size),
                             set.kv_reserve,
                             static_cast<double>(set.batch_wait_iterations),
                             set.batch_wait_ratio,
                             static_cast<double>(set.poll_interval),
                             static_cast<double>(set.rank_wait_iterations),
                             static_cast<double>(l.ranks),
                             static_cast<double>(l.kv_capacity_tokens),
                             static_cast<double>(l.kv_block_tokens),
                             l.tokens_per_step};
  key.push_back(l.sequence.states);
  for (const auto& [window, share] : l.sequence.windowed)
    key.insert(key.end(), {static_cast<double>(window), share});
  const bool medians =
      std::any_of(r.targets.begin(), r.targets.end(), [](const metric_target& t) { return t.median; });
  key.push_back(medians ? 1 : 0);
  auto& known = known_[key];
  if (!known) {
    schedule_summary s = summarise(schedule_requests(draw_lengths(w, requests), l), l.tokens_per_step);
    if (!medians) {
      s.class_of = {};
      s.requests = {};
    }
    known = std::make_shared<schedule_summary>(std::move(s));
  }
  return known;
}

std::vector<double> simulate_row(const inference_row& r, const stack& s, const schedule_summary& schedule) {
  const std::vector<double> times = class_times(r, s, schedule);
  const front_end_costs server = behind_server(r.workload) ? s.inference->front_end : front_end_costs{};
  const client_times mean = mean_times(schedule, times, server);
  const double worker = r.steady ? long_run(r, schedule, mean) : schedule.output_tokens / mean.makespan_s;
  const double counted = r.counts_prompts ? r.workload.input.mean : 1;  // tokens counted per request
  std::vector<double> out;
  for (const metric_target& t : r.targets) {
    out.push_back(in_column(t, t.median ? median_times(schedule, times, server) : mean,
                            counted * worker * r.workers(), r.gpus));
  }
  return out;
}

namespace {

void fill_band(validation_record& out, const inference_profile& engine, served_metric what) {
  const double width = what == served_metric::tpot   ? engine.band.tpot
                       : what == served_metric::ttft ? engine.band.ttft
                                                     : engine.band.throughput;
  if (width > 0) out.band = {*out.simulated * std::exp(-width), *out.simulated * std::exp(width)};
}

/// Simulated values. Sets status and reason if the row cannot run.
std::vector<double> simulated_values(inference_row& r, schedule_cache& schedules) {
  validation_record& record = r.record;
  if (record.status != record_status::ok) return {};
  try {
    if (r.request_rate) return simulate_open_loop(r, *r.software);
    if (r.workload.pooled()) return simulate_pooled_row(r, *r.software);
    auto memory = plan_serving_memory(r.hardware, *r.software, *r.net, r.workload);
    const auto problems = capacity_problems(r, memory);
    if (!problems.empty()) {
      // The published run did fit.
      record.notes += (record.notes.empty() ? "" : "; ") +
                      ("modelled memory is too small and was ignored: " + problems.front());
      memory.kv_capacity_tokens = no_limit;
    }
    return simulate_row(r, *r.software, *schedules.schedule_of(r, memory));
  } catch (const input_error& e) {
    record.status = record_status::unsupported;
    record.reason = e.what();
  }
  return {};
}

}  // namespace

std::vector<validation_record> validate_inference(const csv_table& t, const data_folders& data,
                                                  const progress& report) {
  input_cache inputs(data);
  schedule_cache schedules;
  std::vector<validation_record> out;
  std::size_t done = 0;
  for (const csv_row& row : t.rows) {
    inference_row r = read_inference_row(row, t.stem, inputs);
    const std::vector<double> values = simulated_values(r, schedules);
    if (r.targets.empty()) {
      r.record.metric = "tpot_ms";
      out.push_back(r.record);
    }
    for (std::size_t i = 0; i < r.targets.size(); ++i) {
      validation_record one = r.record;
      one.metric = r.targets[i].column;
      one.published = r.targets[i].published;
      if (one.status == record_status::ok) {
        one.simulated = values[i];
        fill_band(one, *r.software->inference, r.targets[i].what);
      }
      out.push_back(std::move(one));
    }
    if (report) report(++done, t.rows.size());
  }
  return out;
}

}  // namespace nvlsim
