// Model files.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// Reads a model document, adding everything wrong with it to `problems`: a Hugging Face config.json of a
/// supported `model_type` as published (other members are ignored), or the native form (schema "nvlsim.model/1",
/// strict).
model read_model(config::document& doc, std::string name, diagnostics& problems);

/// All that is simulated of a model, for digests: equal models, equal content.
value content_of(const model& m);

/// Hugging Face's `model_type`s that `read_model` accepts.
const std::vector<std::string>& supported_model_types();

}  // namespace nvlsim
