// Reading lengths of prompts, outputs and packed sequences.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/serving/requests.hpp"

namespace nvlsim {

/// A mean with `spread` or `distribution`, or a range from `min` to `max`.
token_lengths read_lengths(config::reader r);

}  // namespace nvlsim
