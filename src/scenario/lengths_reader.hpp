// Lengths of prompts, outputs and packed sequences.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// A mean with what is around it (`mean`, `spread` or `distribution`), or a range (`min`, `max`).
token_lengths read_lengths(config::reader r);

}  // namespace nvlsim
