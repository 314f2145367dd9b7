// Notes of what each rack does, as things happen.
#pragma once

#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim {

/// Begins with the racks as they are. From then on the machine keeps what changes.
void begin_rack_notes(operation_state& s);
/// Notes the racks of trays that broke, came back, were left or taken since the last call. `component`: of the
/// event that did it.
void note_racks(operation_state& s, std::int32_t component);
/// Ends every rack's last stretch.
void close_rack_notes(operation_state& s, double end);

}  // namespace nvlsim
