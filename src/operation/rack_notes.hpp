// Records what each rack does during a run.
#pragma once

#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim {

/// Records the initial state of the racks. From then on the machine keeps its changes.
void begin_rack_notes(operation_state& s);
/// Records racks whose trays broke, were repaired, or were left or taken since the last call. `component`: of the
/// event that caused the change.
void note_racks(operation_state& s, std::int32_t component);
/// Ends the last stretch of every rack.
void close_rack_notes(operation_state& s, double end);

}  // namespace nvlsim
