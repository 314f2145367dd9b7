// Reading lengths of prompts, outputs and packed sequences.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// A mean with `spread` or `distribution`, or a range from `min` to `max`.
token_lengths read_lengths(config::reader r);
/// Reads as these lengths.
value write_lengths(const token_lengths& l);

}  // namespace nvlsim
