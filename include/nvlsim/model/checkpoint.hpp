// Storage formats of the weights of a published checkpoint.
#pragma once

#include <string_view>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// The member of a document that holds the content of the hf_quant_config.json next to its file.
inline constexpr std::string_view quant_file_member = "hf_quant_config";

/// Reads ModelOpt's hf_quant_config.json if there is one, else `quantization_config` (inside or next to the
/// language model) in the forms of ModelOpt, compressed-tensors and transformers. Collects problems.
/// [docs/models.md#checkpoints]
checkpoint_spec read_checkpoint(config::reader& root, config::reader& text, const model& m);

}  // namespace nvlsim
