// Model files.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// Reads a model document and adds all problems to `problems`. Accepts a published Hugging Face config.json with a
/// supported `model_type`, in which unknown members are ignored, and the native form (schema "nvlsim.model/1"), in
/// which they are problems.
model read_model(config::document& doc, std::string name, diagnostics& problems);

/// All that is simulated of a model, for digests: equal models, equal content.
value content_of(const model& m);

/// Hugging Face's `model_type`s that `read_model` accepts.
const std::vector<std::string>& supported_model_types();

}  // namespace nvlsim
