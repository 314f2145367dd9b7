// Bytes of the KV cache as an engine stores them. [docs/models-and-assumptions.md#inference-memory]
#pragma once

#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/stack/inference_profile.hpp"
#include "nvlsim/units/precision.hpp"

namespace nvlsim {

/// What one rank keeps of a token in one layer, in bytes. Compressed attention keeps `keys` and `index` once for
/// every `ratio` tokens; the figures are per token.
struct cached_token {
  double keys = 0;    ///< keys and values, or latent vectors
  double index = 0;   ///< keys of an indexer
  double window = 0;  ///< of compressed attention: a token in the window beside the pooled keys

  double all() const { return keys + index; }
};

cached_token cached_bytes(const layer_slice& l, precision cache, latent_format latents);

}  // namespace nvlsim
