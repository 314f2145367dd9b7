// How a published checkpoint stores its weights.
#pragma once

#include <string_view>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// Where a document carries the content of the hf_quant_config.json beside its file.
inline constexpr std::string_view quant_file_member = "hf_quant_config";

/// Reads ModelOpt's hf_quant_config.json where there is one, else `quantization_config` (of the language model or
/// beside it) in the forms of ModelOpt, compressed-tensors and transformers. Adds what is wrong to the problems.
/// [docs/models.md#checkpoints]
checkpoint_spec read_checkpoint(config::reader& root, config::reader& text, const model& m);

}  // namespace nvlsim
