#include "steps.hpp"

namespace {

std::int64_t steps = 0;

}  // namespace

/// The compiler calls this at every basic block of sources built with -fsanitize-coverage=trace-pc.
extern "C" void __sanitizer_cov_trace_pc();              // NOLINT(bugprone-reserved-identifier)
extern "C" void __sanitizer_cov_trace_pc() { ++steps; }  // NOLINT(bugprone-reserved-identifier)

std::int64_t nvlsim::test::steps_so_far() { return steps; }
