#include "nvlsim/analysis/metrics.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <variant>

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/analysis/post_training_metrics.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {
namespace {

template <class T>
metric_value optional(const std::optional<T>& x) {
  return x ? metric_value(*x) : metric_value();
}
metric_value dollars_of(const std::optional<dollars>& x) { return x ? metric_value(x->base()) : metric_value(); }

double gpus(const training_metrics& t) { return static_cast<double>(t.gpus); }
double tokens_per_s(const training_metrics& t) { return t.tokens_per_step / t.step_time.base(); }
double steps(const training_metrics& t) { return t.token_budget.value_or(0) / t.tokens_per_step; }

metric_value speed(const collective_metrics& c, double factor) {
  return c.time > seconds{} ? metric_value(c.size.base() / c.time.base() * factor) : metric_value();
}

/// A figure of the power over a step, where it was worked out.
metric_value of_power(const training_metrics& t, double (*figure)(const power_figures&)) {
  return t.site->power ? metric_value(figure(*t.site->power)) : metric_value();
}

/// Of a whole run, for a million generated tokens.
metric_value per_million(const std::optional<double>& x, const served_metrics& s) {
  return x && s.output_tokens > 0 ? metric_value(*x / s.output_tokens * 1e6) : metric_value();
}

constexpr measured_metric<training_metrics> training_rows[] = {
    {{.name = "step_time_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of one step, from its start to the end of the last GPU.",
      .band = metric_band::with_time,
      .parts = metric_parts::gpu_time,
      .search = search_use::objective,
      .telling = 1,
      .has_curve = true},
     [](const training_metrics& t) -> metric_value { return t.step_time.base(); }},
    {{.name = "tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of the global batch per second.",
      .formula = "tokens_per_step / step_time_s",
      .band = metric_band::against_time},
     [](const training_metrics& t) -> metric_value { return tokens_per_s(t); }},
    {{.name = "tokens_per_s_per_gpu",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of the global batch per second and GPU.",
      .formula = "tokens_per_step / gpus / step_time_s",
      .band = metric_band::against_time,
      .telling = 5,
      .has_curve = true},
     [](const training_metrics& t) -> metric_value { return tokens_per_s(t) / gpus(t); }},
    {{.name = "model_tflops_per_gpu",
      .unit = metric_unit::tflops,
      .direction = better::larger,
      .meaning = "Model FLOPs per second and GPU; causal attention counts once and recomputation does not count.",
      .formula = "model_tflop_per_step / gpus / step_time_s",
      .band = metric_band::against_time},
     [](const training_metrics& t) -> metric_value {
       return t.model_flops_causal / t.step_time.base() / gpus(t) / 1e12;
     }},
    {{.name = "model_tflops_per_gpu_full_attention",
      .unit = metric_unit::tflops,
      .direction = better::larger,
      .meaning = "Model FLOPs per second and GPU with full attention, as older Megatron counts them.",
      .formula = "model_tflop_per_step_full_attention / gpus / step_time_s",
      .band = metric_band::against_time},
     [](const training_metrics& t) -> metric_value {
       return t.model_flops_full / t.step_time.base() / gpus(t) / 1e12;
     }},
    {{.name = "mfu",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning = "`model_tflops_per_gpu` over the dense peak in the precision of the GEMMs.",
      .formula = "model_flop_per_step / dense_peak_flop_per_s / gpus / step_time_s",
      .null_when = "the GPU has no tensor-core peak in that precision",
      .band = metric_band::against_time,
      .telling = 9,
      .has_curve = true},
     [](const training_metrics& t) -> metric_value { return optional(t.mfu); }},
    {{.name = "bubble_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the step in which GPUs wait for other stages to compute, mean over GPUs: (p-1)/(m+p-1) "
                 "for an ideal 1F1B pipeline of p stages and m microbatches. Waits for sends and for other "
                 "stages' collectives are `exposed_communication_s`.",
      .formula = "waiting_for_stages_s / step_time_s",
      .needs_timeline = true},
     [](const training_metrics& t) -> metric_value { return t.bubble_fraction; }},
    {{.name = "exposed_communication_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Waits for communication, mean over GPUs: collectives inside passes, gradients and parameters, "
                 "sends between stages, and the collectives of stages that this one waits for.",
      .needs_timeline = true,
      .parts = metric_parts::communication},
     [](const training_metrics& t) -> metric_value { return t.exposed_communication.base(); }},
    {{.name = "power_W_per_gpu",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Power of a GPU, mean over the step and the GPUs.",
      .formula = "gpus_J / gpus / step_time_s"},
     [](const training_metrics& t) -> metric_value { return (t.mean.energy / t.step_time).base(); }},
    {{.name = "memory_peak_bytes",
      .unit = metric_unit::byte,
      .direction = better::smaller,
      .meaning = "Memory of the fullest GPU.",
      .parts = metric_parts::memory,
      .search = search_use::weighed,
      .telling = 12},
     [](const training_metrics& t) -> metric_value { return t.memory_peak.base(); }},
    {{.name = "energy_per_step_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy of all racks in use during a step, supply losses included.",
      .parts = metric_parts::energy},
     [](const training_metrics& t) -> metric_value { return t.energy.total().base(); }},
    {{.name = "cost_per_step_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "Price of all GPUs for the time of a step.",
      .formula = "price_usd_per_gpu_hour * gpus * step_time_s / seconds_per_hour",
      .null_when = "no price is known",
      .band = metric_band::with_time},
     [](const training_metrics& t) -> metric_value { return dollars_of(t.cost); }},
    {{.name = "time_to_train_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of all steps of the token budget.",
      .formula = "steps * step_time_s",
      .needs = metric_needs::token_budget,
      .band = metric_band::with_time,
      .telling = 10},
     [](const training_metrics& t) -> metric_value { return steps(t) * t.step_time.base(); }},
    {{.name = "steps_to_train",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "Token budget over the tokens of a step.",
      .formula = "token_budget / tokens_per_step",
      .needs = metric_needs::token_budget},
     [](const training_metrics& t) -> metric_value { return steps(t); }},
    {{.name = "energy_to_train_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy of all steps of the token budget.",
      .formula = "steps * energy_per_step_J",
      .needs = metric_needs::token_budget},
     [](const training_metrics& t) -> metric_value { return steps(t) * t.energy.total().base(); }},
    {{.name = "cost_to_train_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "Price of all GPUs for the time of all steps.",
      .formula = "steps * price_usd_per_gpu_hour * gpus * step_time_s / seconds_per_hour",
      .null_when = "no price is known",
      .needs = metric_needs::token_budget,
      .band = metric_band::with_time},
     [](const training_metrics& t) -> metric_value {
       return t.cost ? metric_value(steps(t) * t.cost->base()) : metric_value();
     }},
    {{.name = "rack_power_peak_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Highest power at the supplies of a rack during a step, smoothed as the facility says.",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) {
       return of_power(t, [](const power_figures& p) { return p.rack_peak.base(); });
     }},
    {{.name = "site_power_peak_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Highest power at the site's meter during a step: all racks of the platform, cooling and supply.",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) {
       return of_power(t, [](const power_figures& p) { return p.site_peak.base(); });
     }},
    {{.name = "site_power_swing_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Highest less lowest power at the site's meter during a step.",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) {
       return of_power(t, [](const power_figures& p) { return p.site_swing.base(); });
     }},
    {{.name = "site_power_change_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Largest change of the power at the site's meter within a second.",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) {
       return of_power(t, [](const power_figures& p) { return p.change_in_a_second.base(); });
     }},
    {{.name = "site_power_oscillation_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Root mean square of what oscillates at 0.1 to 20 Hz in the power at the site's meter.",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) {
       return of_power(t, [](const power_figures& p) { return p.oscillation.base(); });
     }},
    {{.name = "burnt_energy_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Energy that racks burn to keep ramp limits and floors, over the energy of their work.",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) { return of_power(t, [](const power_figures& p) { return p.burnt_share; }); }},
    {{.name = "power_cap_slowdown_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "By how much a cap that the facility's limits impose lengthens the step.",
      .null_when = "no limit caps the GPUs",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) -> metric_value {
       return t.site->power ? optional(t.site->power->slowdown) : metric_value();
     }},
    {{.name = "racks_in_site_budget",
      .unit = metric_unit::count,
      .direction = better::larger,
      .meaning = "Racks that the site's budget holds at the peak, if all have the mean power of these.",
      .null_when = "the site has no budget",
      .needs = metric_needs::facility,
      .needs_timeline = true},
     [](const training_metrics& t) -> metric_value {
       return t.site->power ? optional(t.site->power->racks) : metric_value();
     }},
    {{.name = "energy_at_meter_per_step_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy at the site's meter of a step: racks in use, cooling and supply.",
      .null_when = "the facility states no PUE",
      .needs = metric_needs::facility},
     [](const training_metrics& t) -> metric_value {
       return optional(t.site->took.at_meter ? std::optional(t.site->took.at_meter->base()) : std::nullopt);
     }},
    {{.name = "water_per_step_L",
      .unit = metric_unit::litre,
      .direction = better::smaller,
      .meaning = "Water that the site uses of a step.",
      .null_when = "the facility states no WUE",
      .needs = metric_needs::facility},
     [](const training_metrics& t) -> metric_value { return optional(t.site->took.water_L); }},
    {{.name = "carbon_per_step_g",
      .unit = metric_unit::gram,
      .direction = better::smaller,
      .meaning = "Carbon dioxide equivalent of the energy at the meter of a step.",
      .null_when = "the facility states no carbon intensity of its grid",
      .needs = metric_needs::facility},
     [](const training_metrics& t) -> metric_value { return optional(t.site->took.carbon_g); }},
    {{.name = "bill_per_step_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "Cost of a step under the facility's price model, divided by the useful share of time: rent or "
                 "ownership, power of owners, goodput, evictions.",
      .null_when = "the scenario has no /facility/money",
      .needs = metric_needs::facility},
     [](const training_metrics& t) -> metric_value {
       return optional(t.site->bill ? std::optional(t.site->bill->base()) : std::nullopt);
     }},
    {{.name = "gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of the job.",
      .formula = "tp * pp * cp * dp",
      .parts = metric_parts::pools},
     [](const training_metrics& t) -> metric_value { return t.gpus; }},
};

constexpr measured_metric<served_metrics> inference_rows[] = {
    {{.name = "output_tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Generated tokens per second.",
      .formula = "output_tokens / counted_time_s",
      .band = metric_band::throughput},
     [](const served_metrics& s) -> metric_value { return s.seen.output_tokens_per_s; }},
    {{.name = "output_tokens_per_s_per_gpu",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Generated tokens per second and GPU of the layout.",
      .formula = "output_tokens / gpus / counted_time_s",
      .band = metric_band::throughput,
      .search = search_use::objective,
      .telling = 2,
      .has_curve = true},
     [](const served_metrics& s) -> metric_value { return s.seen.output_tokens_per_s_per_gpu; }},
    {{.name = "total_tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Prompt and generated tokens per second.",
      .formula = "total_tokens / counted_time_s",
      .band = metric_band::throughput},
     [](const served_metrics& s) -> metric_value { return s.seen.total_tokens_per_s; }},
    {{.name = "requests_per_s",
      .unit = metric_unit::requests_per_s,
      .direction = better::larger,
      .meaning = "Finished requests per second.",
      .formula = "requests / counted_time_s",
      .band = metric_band::whole_run},
     [](const served_metrics& s) -> metric_value { return s.seen.requests_per_s; }},
    {{.name = "goodput_requests_per_s",
      .unit = metric_unit::requests_per_s,
      .direction = better::larger,
      .meaning = "Finished requests per second that kept every limit of the objective.",
      .formula = "requests_per_s * slo_attained_fraction",
      .null_when = "the scenario states no service-level objective",
      .telling = 11},
     [](const served_metrics& s) -> metric_value { return optional(s.seen.goodput_requests_per_s); }},
    {{.name = "total_tokens_per_s_per_gpu",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Prompt and generated tokens per second and GPU of the layout.",
      .formula = "total_tokens / gpus / counted_time_s",
      .band = metric_band::throughput},
     [](const served_metrics& s) -> metric_value { return s.seen.total_tokens_per_s_per_gpu; }},
    {{.name = "output_tokens_per_s_per_user",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens per second that a user sees: the inverse of the mean `tpot_s`.",
      .formula = "1 / tpot_s.mean",
      .null_when = "every output is one token",
      .band = metric_band::tpot,
      .search = search_use::weighed},
     [](const served_metrics& s) -> metric_value { return optional(s.seen.output_tokens_per_s_per_user); }},
    {{.name = "energy_per_million_tokens_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy of all racks in use for a million generated tokens, supply losses included.",
      .formula = "energy_J / million_output_tokens"},
     [](const served_metrics& s) -> metric_value { return s.energy.total().base() / s.output_tokens * 1e6; }},
    {{.name = "cost_per_million_tokens_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "Price of all GPUs for the time of a million generated tokens.",
      .formula = "price_usd_per_gpu_hour * gpus * makespan_s / seconds_per_hour / million_output_tokens",
      .null_when = "no price is known",
      .band = metric_band::whole_run},
     [](const served_metrics& s) -> metric_value {
       return s.cost ? metric_value(s.cost->base() / s.output_tokens * 1e6) : metric_value();
     }},
    {{.name = "power_W_per_gpu",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Power of a GPU, mean over the run and the GPUs.",
      .formula = "gpus_J / gpus / makespan_s"},
     [](const served_metrics& s) -> metric_value {
       return (s.energy.gpus / s.makespan).base() / static_cast<double>(s.gpus);
     }},
    {{.name = "memory_peak_bytes",
      .unit = metric_unit::byte,
      .direction = better::smaller,
      .meaning = "Memory of the fullest GPU.",
      .parts = metric_parts::memory,
      .telling = 12},
     [](const served_metrics& s) -> metric_value { return s.memory_peak.base(); }},
    {{.name = "kv_cache_used_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the KV cache in use at the peak, of the fullest replica.",
      .formula = "peak_kv_tokens / kv_capacity_tokens"},
     [](const served_metrics& s) -> metric_value { return s.seen.kv_cache_used_fraction; }},
    {{.name = "makespan_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time from the first arrival to the last token.",
      .band = metric_band::whole_run,
      .parts = metric_parts::worker_time,
      .telling = 4},
     [](const served_metrics& s) -> metric_value { return s.makespan.base(); }},
    {{.name = "gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of the layout.",
      .formula = "tp * pp * attention_dp * replicas",
      .parts = metric_parts::pools},
     [](const served_metrics& s) -> metric_value { return s.gpus; }},
    {{.name = "ttft_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time from the arrival of a request to its first token, as its client sees it.",
      .band = metric_band::ttft,
      .is_distribution = true,
      .parts = metric_parts::first_token_time,
      .telling = 7},
     [](const served_metrics& s) -> metric_value { return s.seen.ttft_s; }},
    {{.name = "tpot_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time per output token of a request: (end - first token) / (output tokens - 1), the inter-token "
                 "latency of AIPerf.",
      .null_when = "every output is one token",
      .band = metric_band::tpot,
      .is_distribution = true,
      .parts = metric_parts::token_time,
      .telling = 6,
      .has_curve = true},
     [](const served_metrics& s) -> metric_value { return optional(s.seen.tpot_s); }},
    {{.name = "itl_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Gaps between two tokens of a request, of all requests together, as the engine makes them; `itl` "
                 "of vLLM where `stream_interval` is 1.",
      .null_when = "every output is one token",
      .band = metric_band::tpot,
      .is_distribution = true,
      .parts = metric_parts::token_gap},
     [](const served_metrics& s) -> metric_value { return optional(s.seen.itl_s); }},
    {{.name = "e2e_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time from the arrival of a request to its last token, as its client sees it.",
      .is_distribution = true,
      .parts = metric_parts::request_time},
     [](const served_metrics& s) -> metric_value { return s.seen.e2e_s; }},
    {{.name = "queue_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time from the arrival of a request to the first work on it.",
      .is_distribution = true,
      .parts = metric_parts::queue_time},
     [](const served_metrics& s) -> metric_value { return s.seen.queue_s; }},
    {{.name = "offered_requests_per_s",
      .unit = metric_unit::requests_per_s,
      .direction = better::neither,
      .meaning = "Arrivals per second of the requests that count.",
      .formula = "arrivals_after_first / arrival_time_s",
      .null_when = "no time passes between the first and the last arrival, or clients wait for answers"},
     [](const served_metrics& s) -> metric_value { return optional(s.seen.offered_requests_per_s); }},
    {{.name = "requests_in_flight",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "Requests in the system, queued ones included, mean over the time of the rates.",
      .formula = "requests_per_s * time_in_system_s"},
     [](const served_metrics& s) -> metric_value { return s.seen.requests_in_flight; }},
    {{.name = "time_in_system_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "What requests spent in the system during the time of the rates, for each request of the rates: "
                 "e2e_s.mean where every request counts and no server stands in front of the engine.",
      .formula = "in_system_s / requests",
      .parts = metric_parts::requests_in_system},
     [](const served_metrics& s) -> metric_value { return s.seen.time_in_system_s; }},
    {{.name = "measured_requests",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "Requests that count."},
     [](const served_metrics& s) -> metric_value { return s.seen.measured_requests; }},
    {{.name = "slo_attained_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning = "Share of the requests that count and kept every limit of the objective.",
      .formula = "requests_within_limits / measured_requests",
      .null_when = "the scenario states no service-level objective"},
     [](const served_metrics& s) -> metric_value { return optional(s.seen.slo_attained_fraction); }},
    {{.name = "prefix_cache_hit_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning = "Share of the prompt tokens that the prefix cache had.",
      .formula = "cached_tokens / prompt_tokens"},
     [](const served_metrics& s) -> metric_value { return s.seen.prefix_cache_hit_fraction; }},
    {{.name = "preemptions",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "How often a request lost its KV cache."},
     [](const served_metrics& s) -> metric_value { return s.seen.preemptions; }},
    {{.name = "recomputed_tokens",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "Tokens that were computed again after a preemption."},
     [](const served_metrics& s) -> metric_value { return s.recomputed_tokens; }},
    {{.name = "energy_at_meter_per_million_tokens_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy at the site's meter of a million generated tokens: racks in use, cooling and supply.",
      .null_when = "the facility states no PUE",
      .needs = metric_needs::facility},
     [](const served_metrics& t) -> metric_value {
       return per_million(t.site->took.at_meter ? std::optional(t.site->took.at_meter->base()) : std::nullopt, t);
     }},
    {{.name = "water_per_million_tokens_L",
      .unit = metric_unit::litre,
      .direction = better::smaller,
      .meaning = "Water that the site uses of a million generated tokens.",
      .null_when = "the facility states no WUE",
      .needs = metric_needs::facility},
     [](const served_metrics& t) -> metric_value { return per_million(t.site->took.water_L, t); }},
    {{.name = "carbon_per_million_tokens_g",
      .unit = metric_unit::gram,
      .direction = better::smaller,
      .meaning = "Carbon dioxide equivalent of the energy at the meter of a million generated tokens.",
      .null_when = "the facility states no carbon intensity of its grid",
      .needs = metric_needs::facility},
     [](const served_metrics& t) -> metric_value { return per_million(t.site->took.carbon_g, t); }},
    {{.name = "bill_per_million_tokens_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning =
          "Cost of a million generated tokens under the facility's price model, divided by the useful share of "
          "time: rent or ownership, power of owners, goodput, evictions.",
      .null_when = "the scenario has no /facility/money",
      .needs = metric_needs::facility},
     [](const served_metrics& t) -> metric_value {
       return per_million(t.site->bill ? std::optional(t.site->bill->base()) : std::nullopt, t);
     }},
};

constexpr measured_metric<collective_metrics> collective_rows[] = {
    {{.name = "time_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of the collective.",
      .band = metric_band::with_time,
      .parts = metric_parts::gpu_time,
      .telling = 3,
      .has_curve = true},
     [](const collective_metrics& c) -> metric_value { return c.time.base(); }},
    {{.name = "algbw_Bps",
      .unit = metric_unit::bytes_per_s,
      .direction = better::larger,
      .meaning = "Bytes of the collective over its time.",
      .formula = "size_bytes / time_s",
      .null_when = "the collective takes no time",
      .band = metric_band::against_time},
     [](const collective_metrics& c) -> metric_value { return speed(c, 1); }},
    {{.name = "busbw_Bps",
      .unit = metric_unit::bytes_per_s,
      .direction = better::larger,
      .meaning = "`algbw_Bps` times the factor of nccl-tests, which makes it comparable with the rate of a port.",
      .formula = "size_bytes * bus_factor / time_s",
      .null_when = "the collective takes no time",
      .band = metric_band::against_time,
      .telling = 8,
      .has_curve = true},
     [](const collective_metrics& c) -> metric_value { return speed(c, c.bus_factor); }},
    {{.name = "gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of the communicator.",
      .parts = metric_parts::pools},
     [](const collective_metrics& c) -> metric_value { return c.gpus; }},
};

constexpr measured_metric<shared_metrics> jobs_rows[] = {
    {{.name = "makespan_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time until the last job ends.",
      .telling = 4},
     [](const shared_metrics& s) -> metric_value { return s.makespan.base(); }},
    {{.name = "worst_slowdown_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Largest of the jobs' delays: by how much its time exceeds that alone on the fabric."},
     [](const shared_metrics& s) -> metric_value {
       return *std::max_element(s.slowdowns.begin(), s.slowdowns.end()) - 1;
     }},
    {{.name = "mean_slowdown_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Mean of the jobs' delays."},
     [](const shared_metrics& s) -> metric_value {
       return std::accumulate(s.slowdowns.begin(), s.slowdowns.end(), 0.0) /
                  static_cast<double>(s.slowdowns.size()) -
              1;
     }},
    {{.name = "gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of all jobs.",
      .parts = metric_parts::pools},
     [](const shared_metrics& s) -> metric_value { return s.gpus; }},
};

template <class Record>
std::vector<metric> descriptions(std::span<const measured_metric<Record>> rows) {
  std::vector<metric> out;
  for (const auto& r : rows) out.push_back(r.about);
  return out;
}

value distribution_value(const distribution& d) {
  value out{value::object{}};
  for (const statistic& s : statistics) out.set(s.name, d.*s.of);
  return out;
}

struct to_value_of {
  value operator()(std::monostate) const { return value{}; }
  value operator()(std::int64_t n) const { return value{n}; }
  value operator()(double x) const { return value{x}; }
  value operator()(const distribution& d) const { return distribution_value(d); }
};

template <class Record>
void set_rows(value& out, std::span<const measured_metric<Record>> rows, const Record& record) {
  for (const auto& row : rows)
    if (applies(row.about, record)) out.set(row.about.name, std::visit(to_value_of{}, row.value(record)));
}

template <class Keep>
const metric& first_row(metric_kind k, Keep keep) {
  const auto rows = metrics_of(k);
  const auto at = std::find_if(rows.begin(), rows.end(), keep);
  if (at == rows.end()) throw std::logic_error("no metric of the kind has that role");
  return *at;
}

}  // namespace

std::span<const measured_metric<training_metrics>> training_table() { return training_rows; }
std::span<const measured_metric<served_metrics>> inference_table() { return inference_rows; }
std::span<const measured_metric<collective_metrics>> collective_table() { return collective_rows; }
std::span<const measured_metric<shared_metrics>> jobs_table() { return jobs_rows; }

std::string_view name(metric_kind k) {
  static constexpr std::array<std::string_view, 6> names = {"training", "inference", "collective",
                                                            "jobs",     "operation", "post_training"};
  return names[static_cast<std::size_t>(k)];
}

std::string_view name(metric_unit u) {
  static constexpr std::array<std::string_view, 13> names = {
      "s", "tok/s", "req/s", "TFLOP/s", "B/s", "fraction", "W", "J", "B", "USD", "g", "L", ""};
  return names[static_cast<std::size_t>(u)];
}

std::string_view name(better b) {
  static constexpr std::array<std::string_view, 3> names = {"smaller", "larger", "neither"};
  return names[static_cast<std::size_t>(b)];
}

std::span<const metric> metrics_of(metric_kind k) {
  static const std::array<std::vector<metric>, 6> all = {
      descriptions(training_table()), descriptions(inference_table()), descriptions(collective_table()),
      descriptions(jobs_table()),     descriptions(operation_table()), descriptions(post_training_table())};
  return all[static_cast<std::size_t>(k)];
}

const metric* find_metric(metric_kind k, std::string_view name) {
  const std::string_view stem = name.substr(0, name.find('.'));
  for (const metric& m : metrics_of(k))
    if (m.name == name || (m.is_distribution && m.name == stem)) return &m;
  return nullptr;
}

const metric* find_metric(std::string_view name) {
  for (const metric_kind k : metric_kinds)
    if (const metric* m = find_metric(k, name)) return m;
  return nullptr;
}

metric_kind metric_kind_of(const scenario& s) {
  if (std::holds_alternative<training_workload>(s.workload)) return metric_kind::training;
  if (std::holds_alternative<shared_workload>(s.workload)) return metric_kind::jobs;
  if (std::holds_alternative<operation_case>(s.workload)) return metric_kind::operation;
  if (std::holds_alternative<post_training_case>(s.workload)) return metric_kind::post_training;
  return std::holds_alternative<inference_workload>(s.workload) ? metric_kind::inference : metric_kind::collective;
}

const metric& metric_with(metric_kind k, metric_parts p) {
  return first_row(k, [=](const metric& m) { return m.parts == p; });
}
const metric& metric_with(metric_kind k, search_use u) {
  return first_row(k, [=](const metric& m) { return m.search == u; });
}

std::vector<std::string_view> metric_names(bool (*keep)(const metric&)) {
  std::vector<const metric*> rows;
  for (const metric_kind k : metric_kinds)
    for (const metric& m : metrics_of(k))
      if (keep(m)) rows.push_back(&m);
  const auto rank = [](const metric* m) { return m->telling > 0 ? int{m->telling} : 256; };
  std::stable_sort(rows.begin(), rows.end(), [&](const metric* a, const metric* b) { return rank(a) < rank(b); });
  std::vector<std::string_view> out;
  for (const metric* m : rows)
    if (std::find(out.begin(), out.end(), m->name) == out.end()) out.push_back(m->name);
  return out;
}

std::string scenarios_with(metric_kind k, const metric& m) {
  const std::string kind(name(k));
  switch (m.needs) {
    case metric_needs::token_budget:
      return kind + " with a token budget";
    case metric_needs::training_job:
      return kind + " with jobs that train";
    case metric_needs::lone_job:
      return kind + " with one job";
    case metric_needs::services:
      return kind + " with jobs that serve";
    case metric_needs::queue:
      return kind + " with queued jobs";
    case metric_needs::fleet:
      return kind + " with serving replicas";
    case metric_needs::facility:
      return kind + " with a facility";
    case metric_needs::nothing:
      break;
  }
  return kind;
}

std::vector<std::string> flat_names(const metric& m) {
  if (!m.is_distribution) return {std::string(m.name)};
  std::vector<std::string> out;
  for (const statistic& s : statistics) out.push_back(std::string(m.name) + '.' + std::string(s.name));
  return out;
}

bool applies(const metric& m, const training_metrics& t) {
  if (m.needs == metric_needs::facility) return t.site.has_value();
  return m.needs != metric_needs::token_budget || t.token_budget;
}
bool applies(const metric& m, const served_metrics& s) {
  return m.needs != metric_needs::facility || s.site.has_value();
}
bool applies(const metric&, const collective_metrics&) { return true; }
bool applies(const metric&, const shared_metrics&) { return true; }

void set_metrics(value& out, const training_metrics& t) { set_rows(out, training_table(), t); }
void set_metrics(value& out, const served_metrics& s) { set_rows(out, inference_table(), s); }
void set_metrics(value& out, const collective_metrics& c) { set_rows(out, collective_table(), c); }
void set_metrics(value& out, const shared_metrics& s) { set_rows(out, jobs_table(), s); }
void set_metrics(value& out, const operation_metrics& o) { set_rows(out, operation_table(), o); }
void set_metrics(value& out, const post_training_metrics& p) { set_rows(out, post_training_table(), p); }

std::optional<double> number_of(const metric_value& v) {
  if (const double* x = std::get_if<double>(&v)) return *x;
  if (const std::int64_t* n = std::get_if<std::int64_t>(&v)) return static_cast<double>(*n);
  return std::nullopt;
}

std::vector<formula_term> terms_of(std::string_view formula) {
  std::vector<formula_term> out;
  int power = 1;
  while (!formula.empty()) {
    const std::size_t end = std::min(formula.find(' '), formula.size());
    const std::string_view word = formula.substr(0, end);
    if (word == "*" || word == "/") power = word == "/" ? -1 : 1;
    else if (word != "1") out.push_back({word, power});
    formula.remove_prefix(std::min(end + 1, formula.size()));
  }
  return out;
}

}  // namespace nvlsim
