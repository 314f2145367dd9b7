#include "nvlsim/serving/cache_format.hpp"

#include <algorithm>
#include <cmath>

namespace nvlsim {
namespace {

// The formats of the engines' kernels: FlashMLA's `fp8_ds_mla`, and the index keys of DeepGEMM.
constexpr double scale_block = 128, scale_bytes = 4;  // an FP32 scale for 128 elements
constexpr double rotary_bytes = 2;                    // 16-bit rotary part
constexpr double compressed_rotary = 64;              // rotary elements of DeepSeek-V4's one vector
constexpr double compressed_scales = 8;               // seven 8-bit scales for 64 elements each, and padding

double scaled(double elements) { return elements + std::ceil(elements / scale_block) * scale_bytes; }

/// Index keys are stored in 8 bits with their scales, whatever the format of the cache.
double index_bytes(const layer_spec& l) { return l.index_dim > 0 ? scaled(static_cast<double>(l.index_dim)) : 0; }

cached_token latent_bytes(const layer_spec& l, double element, bool with_scales) {
  const auto latent = static_cast<double>(l.mla.kv_lora_rank), rotary = static_cast<double>(l.mla.qk_rope_dim);
  const double keys =
      with_scales && l.sparse_keys > 0 ? scaled(latent) + rotary * rotary_bytes : (latent + rotary) * element;
  return {.keys = keys, .index = index_bytes(l)};
}

cached_token compressed_bytes(const layer_slice& l, double element, bool with_scales) {
  const double vector = with_scales
                            ? l.head_dim - compressed_rotary + compressed_rotary * rotary_bytes + compressed_scales
                            : l.head_dim * element;
  const auto ratio = static_cast<double>(l.spec.compressed.ratio);
  if (l.spec.kv == kv_source::shared)  // keys of another layer; its own index alone
    return {.index = ratio > 0 ? index_bytes(l.spec) / ratio : 0};
  if (ratio <= 0) return {.window = vector};
  return {.keys = vector / ratio, .index = index_bytes(l.spec) / ratio, .window = vector};
}

}  // namespace

cached_token cached_bytes(const layer_slice& l, precision cache, latent_format latents) {
  const double element = bytes_per_element(cache);
  const bool with_scales = latents == latent_format::scaled && element <= 1;
  if (l.spec.attention == attention_kind::mla) return latent_bytes(l.spec, element, with_scales);
  if (l.spec.attention == attention_kind::compressed) return compressed_bytes(l, element, with_scales);
  const auto index = static_cast<double>(l.spec.index_dim);
  return {.keys = std::max(0.0, l.kv_values() - index) * element,
          .index = l.kv_values() > 0 ? index_bytes(l.spec) : 0};
}

}  // namespace nvlsim
