#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "study/inference_rows.hpp"
#include "study/pooled_rows.hpp"
#include "workload/inference_memory.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t no_limit = std::int64_t{1} << 40;

std::vector<double> class_times(const inference_row& r, const stack& s, const schedule_summary& schedule) {
  iteration_costs costs(r.hardware, s, *r.net, r.work);
  std::vector<double> out;
  out.reserve(schedule.classes.size());
  for (const iteration_class& c : schedule.classes) out.push_back(costs.time(c.mean).base());
  return out;
}

}  // namespace

std::vector<std::string> capacity_problems(const inference_row& r, std::int64_t kv_capacity_tokens) {
  const inference_workload& w = r.work;
  const double longest = w.input.mean * (1 + w.input.spread) + w.output.mean * (1 + w.output.spread);
  if (longest + r.software->inference->kv_block_tokens <= static_cast<double>(kv_capacity_tokens)) return {};
  return {fmt::format("the longest request needs {:.0f} KV tokens, the memory has room for {}", longest,
                      kv_capacity_tokens)};
}

std::shared_ptr<const schedule_summary> schedule_cache::schedule_of(const inference_row& r,
                                                                    std::int64_t kv_capacity_tokens) {
  const inference_workload& w = r.work;
  schedule_limits l{settings_of(*r.software->inference, w), kv_capacity_tokens,
                    r.software->inference->kv_block_tokens, 0, w.drafts.tokens_per_step};
  engine_settings& set = l.settings;
  if (w.load == load_kind::static_batch) {
    set.prefill = prefill_policy::exclusive;
    set.max_num_tokens = set.max_batch_size = no_limit;
  }
  set.max_num_tokens *= w.attention_dp;  // of each rank
  set.max_batch_size *= w.attention_dp;
  std::int64_t requests = w.requests / r.lanes();
  l.concurrency = w.load == load_kind::closed_loop ? w.concurrency / r.lanes() : 0;
  if (r.steady) {
    const double held = w.input.mean + w.output.mean / 2;
    const double batch =
        std::min(static_cast<double>(set.max_batch_size), static_cast<double>(kv_capacity_tokens) / held + 1);
    requests = std::min(requests, static_cast<std::int64_t>(4 * batch) + 1);
  }
  // A cache that never fills is like any other.
  const std::int64_t in_flight = l.concurrency > 0 ? l.concurrency : std::min(requests, set.max_batch_size);
  const double most =
      static_cast<double>(in_flight) *
      (w.input.mean * (1 + w.input.spread) + w.output.mean * (1 + w.output.spread) + l.kv_block_tokens + 2);
  if (most < static_cast<double>(kv_capacity_tokens)) l.kv_capacity_tokens = no_limit;

  const std::vector<double> key = {w.input.mean,
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
                                   static_cast<double>(l.kv_capacity_tokens),
                                   static_cast<double>(l.kv_block_tokens),
                                   l.tokens_per_step};
  auto& known = known_[key];
  if (!known) {
    schedule_summary s = summarise(schedule_requests(draw_lengths(w, requests), l), l.tokens_per_step);
    if (std::none_of(r.targets.begin(), r.targets.end(), [](const metric_target& t) { return t.median; })) {
      s.class_of = {};
      s.requests = {};
    }
    known = std::make_shared<schedule_summary>(std::move(s));
  }
  return known;
}

std::vector<double> simulate_row(const inference_row& r, const stack& s, const schedule_summary& schedule) {
  const std::vector<double> times = class_times(r, s, schedule);
  const front_end_costs server =
      r.work.load == load_kind::closed_loop ? s.inference->front_end : front_end_costs{};
  const client_times mean = mean_times(schedule, times, server);
  const double lane = r.steady ? mean.steady_tokens_per_s : schedule.output_tokens / mean.makespan_s;
  std::vector<double> out;
  for (const metric_target& t : r.targets) {
    const bool median = t.median && !schedule.class_of.empty();
    out.push_back(in_column(t, median ? median_times(schedule, times, server) : mean, lane * r.lanes(), r.gpus));
  }
  return out;
}

// Requests that arrive at a rate lambda keep lambda (O - 1) T sequences decoding when an iteration takes T.
// [docs/models-and-assumptions.md#inference-open-loop]
std::optional<std::vector<double>> simulate_open_loop(const inference_row& r, const stack& s) {
  const inference_workload& w = r.work;
  iteration_costs costs(r.hardware, s, *r.net, w);
  const engine_settings set = settings_of(*s.inference, w);
  const double arrivals = *r.request_rate / r.lanes(),
               budget = static_cast<double>(set.max_num_tokens * w.attention_dp);
  const double input = w.input.mean, output = w.output.mean;
  constexpr double longest_s = 5;
  double step = 0.02, first = 0;
  for (int i = 0; i < 60; ++i) {
    const double decodes = std::max(arrivals * (output - 1) / w.drafts.tokens_per_step * step, 0.3),
                 arriving = arrivals * input * step;
    const iteration_content alone{decodes, decodes * (input + output / 2), 0, 0, 0, 0};
    iteration_content busy = alone;
    busy.prompt_tokens = std::min(std::max(arriving, input), budget);
    busy.prompts = busy.finished_prompts = std::max(1.0, busy.prompt_tokens / input);
    busy.prompt_pairs = busy.prompt_tokens * std::min(input, busy.prompt_tokens) / 2;
    const double share = std::min(arriving / busy.prompt_tokens, 1.0);
    first = costs.time(busy).base();
    step = 0.5 * step + 0.5 * ((1 - share) * costs.time(alone).base() + share * first);
    if (step > longest_s) return std::nullopt;
  }
  client_times c;
  c.tpot_s = step / w.drafts.tokens_per_step;
  c.ttft_s = first * std::max(1.0, input / budget) + 0.5 * step +
             s.inference->front_end.first_token_iterations * step +
             s.inference->front_end.first_token_delay.base();
  std::vector<double> out;
  for (const metric_target& t : r.targets) out.push_back(in_column(t, c, *r.request_rate * output, r.gpus));
  return out;
}

namespace {

void fill_band(validation_record& out, const inference_profile& engine, served_metric what) {
  const double width = what == served_metric::tpot   ? engine.band.tpot
                       : what == served_metric::ttft ? engine.band.ttft
                                                     : engine.band.throughput;
  if (width > 0) out.band = {*out.simulated * std::exp(-width), *out.simulated * std::exp(width)};
}

/// Sets status and reason of rows that cannot run.
std::vector<double> simulated_values(inference_row& r, schedule_cache& schedules) {
  validation_record& record = r.record;
  if (record.status != record_status::ok) return {};
  try {
    if (r.request_rate) {
      auto values =
          r.work.prefill_pool ? simulate_pooled_open_loop(r, *r.software) : simulate_open_loop(r, *r.software);
      if (values) return *std::move(values);
      record.status = record_status::infeasible;
      record.reason = "saturated at the published rate";
      return {};
    }
    if (r.work.pooled()) return simulate_pooled_row(r, *r.software);
    auto memory = plan_serving_memory(r.hardware, *r.software, *r.net, r.work);
    const auto problems = capacity_problems(r, memory.kv_capacity_tokens);
    if (!problems.empty()) {
      // What was published did run.
      record.notes += (record.notes.empty() ? "" : "; ") + ("modelled memory is too small: " + problems.front());
      memory.kv_capacity_tokens = no_limit;
    }
    return simulate_row(r, *r.software, *schedules.schedule_of(r, memory.kv_capacity_tokens));
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
