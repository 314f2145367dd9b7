// What a trace will hold, decided before its first byte: slices, arrows, counters, and what the event limit leaves
// out.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/output/output.hpp"

namespace nvlsim::output {

/// An operation of a plan.
struct op_place {
  std::uint32_t rank_class = 0, stream = 0, operation = 0;
  friend auto operator<=>(const op_place&, const op_place&) = default;
};

/// An event that one class signals and another waits for.
struct arrow {
  op_place from, to;
};

/// A slice inside an operation: it ends at `end` of the operation's length, and begins where the one before ends.
struct inner_slice {
  std::uint32_t label = 0;  ///< index into `labels`
  double end = 0;
};

/// How the operations of one template are drawn. A label is the JSON members `"cat":...,"name":...`.
struct template_slices {
  std::string label;
  std::vector<std::string> labels;
  std::vector<inner_slice> inside;  ///< empty when it would repeat the operation
};

struct trace_contents {
  std::vector<std::size_t> classes;  ///< in order of the plan
  std::vector<template_slices> templates;
  std::vector<arrow> arrows;           ///< by receiver
  std::vector<std::size_t> by_sender;  ///< the same arrows as indices
  bool power = false;
  bool counters = false;
  std::size_t operations_per_stream = 0;  ///< the first ones; the rest is left out
  std::vector<std::string> left_out;      ///< in words, for the metadata
};

/// Throws input_error for a class that the plan has not, internal_error when plan and timeline differ in shape.
trace_contents contents_of(const plan& work, const timeline& times, const trace_options& options);

/// Nanoseconds of a moment. Throws internal_error when it is negative, not finite or beyond 2^53 ns.
std::int64_t nanoseconds(double seconds);

}  // namespace nvlsim::output
