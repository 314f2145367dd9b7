// Results and timelines as text: what `--format`, `-o` and `--trace` write.
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
#include "nvlsim/units/units.hpp"

namespace nvlsim {

inline constexpr std::string_view result_schema = "nvlsim.result/1";

/// The result in the order of its sections, `schema` first.
value to_value(const result& r);

/// JSON text that ends with a newline. Doubles have 12 significant digits and stay recognisable as such, invalid
/// UTF-8 becomes U+FFFD, an array of numbers stands on one line; `indent` 0 is one line for all. Throws
/// internal_error that names the JSON pointer of a number that is not finite.
std::string to_json(const value& v, int indent = 2);

/// One result as an object, several as an array.
std::string results_json(std::span<const result> results);

/// The document of a run that failed: `nvlsim.error/1` with every problem.
value error_value(exit_code code, std::string_view message, std::span<const problem> problems);

/// Whether a parsed JSON document claims to hold results: an object with a `nvlsim.result/...` schema or an array
/// of such objects.
bool holds_results(const value& root);

/// Reads back what `results_json` wrote, strictly. `file` is the name for messages. Throws input_error with every
/// problem found.
std::vector<result> read_results(std::string_view text, std::string_view file);

enum class result_format { table, json, csv, megatron_log };
/// "table", "json", "csv", "megatron-log", in the order of the enumerators.
std::span<const std::string> result_format_names();

/// Any number of results in one of the formats.
std::string render(std::span<const result> results, result_format format);

/// For a terminal of 80 columns: one result with its sections, several side by side.
std::string result_table(std::span<const result> results);
/// One row a result: name, status, scalar metrics (distributions as `ttft_s.p99`), reasons. RFC 4180 quoting.
std::string result_csv(std::span<const result> results);
/// Megatron-LM's log line of one iteration for each training result; a `#` comment for any other.
std::string megatron_log(std::span<const result> results);

/// One JSON object a line for each request. Throws io_error when the stream fails.
void write_requests(std::ostream& out, std::span<const request_record> requests, const front_end_costs& server);

/// `nvlsim.explanation/1`.
value to_value(const explanation& e);
/// For a terminal of 80 columns.
std::string explanation_table(const explanation& e);

enum class trace_detail {
  operations,  ///< inside an operation one slice for each run of parts of one kind
  layers,      ///< every part, and each repetition of it
};

struct trace_options {
  trace_detail detail = trace_detail::operations;
  std::vector<std::size_t> classes;    ///< only these classes; all when empty
  std::size_t max_events = 1'000'000;  ///< beyond it detail is left out, and the metadata say which
  bool flows = true;                   ///< arrows for events between classes
  bool power = true;                   ///< a counter of the power of one GPU of each class
  watts idle_power;                    ///< of one GPU, shown while none of its operations draws power
  std::vector<trace_counter> counters;
  std::vector<std::string> left_out;  ///< what the timeline lacks, said in the metadata
  value metadata = value::object{};   ///< goes into the trace: version, scenario, digest, seed
};

/// Writes a timeline as Chrome trace JSON (docs/result-format.md). Streams: memory grows with the arrows, not with
/// the slices. Requires `times` to have the shape of `work`. Throws io_error when the stream fails, internal_error
/// on a time that is negative, not finite or ends before it begins.
void write_trace(std::ostream& out, const plan& work, const timeline& times, const trace_options& options = {});

}  // namespace nvlsim
