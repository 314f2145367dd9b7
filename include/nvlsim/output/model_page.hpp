// The output of `model show`.
#pragma once

#include <string>

#include "nvlsim/config/value.hpp"
#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// Shape, parameters by part, training FLOPs and bytes by precision, as text for a terminal of 80 columns.
std::string model_page(const model& m);

/// The same as JSON (schema "nvlsim.model_page/1").
value model_json(const model& m);

}  // namespace nvlsim
