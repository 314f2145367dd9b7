// Readers of Hugging Face's config.json, by family. Each adds problems to those of the file.
#pragma once

#include "model/fields.hpp"

namespace nvlsim {

// dense_families.cpp
model read_llama(const model_file& f);
model read_qwen3(const model_file& f);
model read_bloom(const model_file& f);
// expert_families.cpp
model read_mixtral(const model_file& f);
model read_qwen3_moe(const model_file& f);
model read_llama4(const model_file& f);
model read_gpt_oss(const model_file& f);
model read_minimax_m2(const model_file& f);
// latent_families.cpp
model read_deepseek_v3(const model_file& f);
model read_deepseek_v32(const model_file& f);
model read_deepseek_v4(const model_file& f);
// hybrid_families.cpp
model read_qwen3_5(const model_file& f);
model read_qwen3_5_moe(const model_file& f);
model read_nemotron_h(const model_file& f);

/// The native form (native.cpp), strict.
model read_native(config::reader& r, const diagnostics& problems);
inline constexpr std::string_view native_schema = "nvlsim.model/1";

}  // namespace nvlsim
