// The table of metrics. Everything that names a metric reads it: results, bands, explanations, comparisons,
// searches, shell completion, the JSON schema and the reference page. [docs/architecture.md#add-a-metric]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/config/value.hpp"

namespace nvlsim {

/// The kind of scenario that a metric belongs to.
enum class metric_kind { training, inference, collective, jobs, operation, post_training };
inline constexpr std::array metric_kinds = {metric_kind::training,   metric_kind::inference,
                                            metric_kind::collective, metric_kind::jobs,
                                            metric_kind::operation,  metric_kind::post_training};
std::string_view name(metric_kind k);

enum class metric_unit {
  second,
  tokens_per_s,
  requests_per_s,
  tflops,
  bytes_per_s,
  fraction,
  watt,
  joule,
  byte,
  usd,
  gram,
  litre,
  count
};
/// "s", "tok/s", "W"; "" for a count.
std::string_view name(metric_unit u);

enum class better { smaller, larger, neither };
std::string_view name(better b);

/// What a scenario of the metric's kind must have as well.
enum class metric_needs {
  nothing,
  token_budget,  ///< a training run with a number of tokens
  training_job,  ///< an operation with jobs that train
  lone_job,      ///< an operation with one job that trains, which has the cluster
  services,      ///< an operation whose jobs share the cluster, some of which serve
  queue,         ///< an operation with queued jobs
  fleet,         ///< an operation with serving replicas
  facility       ///< a site with power, cooling, a grid or money
};

/// The error that the band of a metric comes from, and how the metric follows it.
enum class metric_band {
  none,
  with_time,     ///< proportional to the time of the step or the collective
  against_time,  ///< proportional to the inverse of that time
  ttft,          ///< error of the time to the first token
  tpot,          ///< error of the time per output token
  throughput,    ///< error of the throughput
  whole_run      ///< the same, of requests, cost and time of the whole run
};

/// What `explain` takes a metric apart into, where it is not the product of factors that have parts.
enum class metric_parts {
  none,                ///< counted directly
  gpu_time,            ///< time of all GPUs, by phase and by limiting resource
  worker_time,         ///< the same of the workers of a served load
  communication,       ///< waits for communication
  energy,              ///< by consumer
  memory,              ///< by use
  pools,               ///< GPUs, by pool where a layout has pools
  requests_in_system,  ///< by Little's law
  queue_time,          ///< of a request, up to the first work on it
  first_token_time,    ///< up to its first token
  token_time,          ///< from its first token to its last, for each token
  token_gap,           ///< between two tokens
  request_time         ///< from its arrival to its last token
};

/// What a search does with a metric if its options name none.
enum class search_use {
  offered,    ///< takes it as objective or constraint where an option names it
  objective,  ///< ranks by it
  weighed,    ///< weighs it against the objective
  refused     ///< has no value of it
};

/// One row of the table.
struct metric {
  std::string_view name;  ///< ends with its unit
  metric_unit unit = metric_unit::count;
  better direction = better::neither;
  std::string_view meaning;  ///< one sentence
  /// The factors whose product it is, "output_tokens / counted_time_s / gpus": names of what `explain` counts in
  /// the run. Empty for a metric that is measured or counted directly.
  std::string_view formula = {};
  std::string_view null_when = {};  ///< when a result has null; empty: never
  metric_needs needs = metric_needs::nothing;
  metric_band band = metric_band::none;
  bool needs_timeline = false;  ///< `measure_training_totals` does not know it
  bool is_distribution = false;
  metric_parts parts = metric_parts::none;
  search_use search = search_use::offered;
  /// Rank among the metrics that short tables show, 1 the most telling; 0: they do not show it.
  std::uint8_t telling = 0;
  bool has_curve = false;    ///< reports draw it over the settings of a sweep
  bool is_headline = false;  ///< reports lead with it where a result has it, whatever row is first
};

/// Nothing, a count, a number or a distribution.
using metric_value = std::variant<std::monostate, std::int64_t, double, distribution>;

/// A row with the accessor of the value in what a run measured.
template <class Record>
struct measured_metric {
  metric about;
  metric_value (*value)(const Record&);
};

struct collective_metrics {
  seconds time;
  bytes size;
  double bus_factor = 1;  ///< busbw over algbw
  std::int64_t gpus = 0;
};

/// Several jobs that share a fabric.
struct shared_metrics {
  seconds makespan;
  std::vector<double> slowdowns;  ///< by job: time over that of the job alone on the fabric
  std::int64_t gpus = 0;
};

struct scenario;               // nvlsim/scenario/scenario.hpp
struct operation_metrics;      // nvlsim/analysis/operation_metrics.hpp
struct post_training_metrics;  // nvlsim/analysis/post_training_metrics.hpp

/// Rows in the order in which results list them.
std::span<const measured_metric<training_metrics>> training_table();
std::span<const measured_metric<served_metrics>> inference_table();
std::span<const measured_metric<collective_metrics>> collective_table();
std::span<const measured_metric<shared_metrics>> jobs_table();
std::span<const measured_metric<operation_metrics>> operation_table();
std::span<const measured_metric<post_training_metrics>> post_training_table();

/// The rows of a kind without their accessors.
std::span<const metric> metrics_of(metric_kind k);
/// The row of a metric, or of the distribution that `name` is a statistic of ("ttft_s.p99"); null for no metric.
const metric* find_metric(metric_kind k, std::string_view name);
/// The same of the first kind that has one. Rows of one name have one unit and direction.
const metric* find_metric(std::string_view name);

/// The kind of metrics that runs of a scenario have.
metric_kind metric_kind_of(const scenario& s);

/// The first row of a kind with these parts, or with this use. Requires that there is one.
const metric& metric_with(metric_kind k, metric_parts p);
const metric& metric_with(metric_kind k, search_use u);
/// Names of the metrics that `keep` chooses, of all kinds: the most telling first, then in the order of results. A
/// name that several kinds have is there once.
std::vector<std::string_view> metric_names(bool (*keep)(const metric&));

/// The scenarios that have a metric: "training with a token budget".
std::string scenarios_with(metric_kind k, const metric& m);

/// Statistics of a distribution, in the order of results.
struct statistic {
  std::string_view name;
  double distribution::*of;
};
inline constexpr std::array<statistic, 6> statistics = {{{"mean", &distribution::mean},
                                                         {"p50", &distribution::p50},
                                                         {"p90", &distribution::p90},
                                                         {"p95", &distribution::p95},
                                                         {"p99", &distribution::p99},
                                                         {"max", &distribution::max}}};

/// The name itself, or "NAME.STATISTIC" of every statistic of a distribution.
std::vector<std::string> flat_names(const metric& m);

/// Whether a run has the metric.
bool applies(const metric& m, const training_metrics& t);
bool applies(const metric& m, const served_metrics& s);
bool applies(const metric& m, const collective_metrics& c);
bool applies(const metric& m, const shared_metrics& s);
bool applies(const metric& m, const operation_metrics& o);
bool applies(const metric& m, const post_training_metrics& p);

/// Sets a member of `out` for every row that applies.
void set_metrics(value& out, const training_metrics& t);
void set_metrics(value& out, const served_metrics& s);
void set_metrics(value& out, const collective_metrics& c);
void set_metrics(value& out, const shared_metrics& s);
void set_metrics(value& out, const operation_metrics& o);
void set_metrics(value& out, const post_training_metrics& p);

/// The number of a value; nothing of null and of a distribution.
std::optional<double> number_of(const metric_value& v);

/// A factor of a formula: a name, and -1 for a divisor.
struct formula_term {
  std::string_view name;
  int power = 1;
};
/// The terms of "a * b / c", in order.
std::vector<formula_term> terms_of(std::string_view formula);

}  // namespace nvlsim
