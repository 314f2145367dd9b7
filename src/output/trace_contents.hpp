// Decides the contents of a trace before writing it: slices, arrows, counters, and what the event limit leaves
// out.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/output/output.hpp"

namespace nvlsim::output {

/// The position of an operation in a plan.
struct op_place {
  std::uint32_t rank_class = 0, stream = 0, operation = 0;
  friend auto operator<=>(const op_place&, const op_place&) = default;
};

/// An event that one class signals and another waits for.
struct arrow {
  op_place from, to;
};

/// A slice inside an operation. It ends at fraction `end` of the operation and begins at the end of the previous
/// slice.
struct inner_slice {
  std::uint32_t label = 0;  ///< index into `labels`
  double end = 0;
};

/// The slices of one template's operations. A label holds the JSON members `"cat":...,"name":...`.
struct template_slices {
  std::string label;
  std::vector<std::string> labels;
  std::vector<inner_slice> inside;  ///< empty if it would only repeat the operation
};

struct trace_contents {
  std::vector<std::size_t> classes;  ///< in plan order
  std::vector<template_slices> templates;
  std::vector<arrow> arrows;           ///< sorted by receiver
  std::vector<std::size_t> by_sender;  ///< indices of `arrows`, sorted by sender
  bool power = false;
  bool counters = false;
  std::size_t operations_per_stream = 0;  ///< number of operations kept per stream
  std::size_t requests = 0;               ///< number of requests kept
  std::vector<std::string> left_out;      ///< descriptions for the metadata
};

/// Events of a request at most: begin and end of itself and of five phases.
inline constexpr std::size_t events_per_request = 12;

/// Throws input_error for a class that the plan does not have, internal_error if plan and timeline differ in
/// shape.
trace_contents contents_of(const plan& planned, const timeline& times, const trace_options& options);

/// Converts to nanoseconds. Throws internal_error if the time is negative, not finite or beyond 2^53 ns.
std::int64_t nanoseconds(double seconds);

}  // namespace nvlsim::output
