// Results and timelines as text, for `--format`, `-o` and `--trace`.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/serving/server.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

inline constexpr std::string_view result_schema = "nvlsim.result/1";

/// The result as JSON, sections in order, `schema` first.
value to_value(const result& r);

/// JSON text that ends with a newline. Doubles have 12 significant digits and stay recognisable as doubles.
/// Invalid UTF-8 becomes U+FFFD. An array of numbers is on one line; with `indent` 0 everything is. Throws
/// internal_error with the JSON pointer of a number that is not finite.
std::string to_json(const value& v, int indent = 2);

/// One result as an object, several as an array.
std::string results_json(std::span<const result> results);

/// The document for a failed run: `nvlsim.error/1` with every problem.
value error_value(exit_code code, std::string_view message, std::span<const problem> problems);

/// Whether a parsed JSON document is an object with a `nvlsim.result/...` schema, or an array of such objects.
bool holds_results(const value& root);

/// Parses the output of `results_json` strictly. `file` is the name used in messages. Throws input_error with
/// every problem found.
std::vector<result> read_results(std::string_view text, std::string_view file);

enum class result_format { table, json, csv, megatron_log };
/// "table", "json", "csv", "megatron-log", in enumerator order.
std::span<const std::string> result_format_names();

/// Formats any number of results.
std::string render(std::span<const result> results, result_format format);

/// Text for a terminal of 80 columns: one result with its sections, or several side by side.
std::string result_table(std::span<const result> results);
/// CSV with one row per result: name, status, scalar metrics (distributions as `ttft_s.p99`), reasons. RFC 4180
/// quoting.
std::string result_csv(std::span<const result> results);
/// One Megatron-LM iteration log line per training result; a `#` comment for other results.
std::string megatron_log(std::span<const result> results);

/// Writes one line of JSON per request. Throws io_error if the stream fails.
void write_requests(std::ostream& out, std::span<const request_record> requests, const front_end_costs& server);

/// The explanation as JSON, `nvlsim.explanation/1`.
value to_value(const explanation& e);
/// The explanation as text for a terminal of 80 columns.
std::string explanation_table(const explanation& e);

enum class trace_detail {
  operations,  ///< inside an operation, one slice per run of parts of one kind
  layers,      ///< every part and each of its repetitions
};

struct trace_options {
  trace_detail detail = trace_detail::operations;
  std::vector<std::size_t> classes;    ///< only these classes; empty: all
  std::size_t max_events = 1'000'000;  ///< detail beyond it is left out; the metadata say which
  bool flows = true;                   ///< draw arrows for events between classes
  bool power = true;                   ///< write a counter with the power of one GPU of each class
  watts idle_power;                    ///< power of one GPU while no operation draws power
  std::vector<trace_counter> counters;
  std::span<const std::vector<iteration_batch>> batches;  ///< of iterations: by class and operation
  std::span<const request_record> requests;  ///< drawn as tracks of their own, in as many events as are left
  std::span<const state_track> tracks;       ///< processes of their own, a thread a lane, after the classes
  std::vector<std::string> left_out;         ///< what the timeline lacks, for the metadata
  value metadata = value::object{};          ///< trace metadata: version, scenario, digest, seed
};

/// Writes a timeline as Chrome trace JSON (docs/result-format.md). Streams: memory use grows with the number of
/// arrows, not of slices. Requires `times` to match the shape of `planned`. Throws io_error if the stream fails,
/// internal_error if a time is negative or not finite or an operation ends before it begins.
void write_trace(std::ostream& out, const plan& planned, const timeline& times, const trace_options& options = {});

}  // namespace nvlsim
