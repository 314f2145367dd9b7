// Reading the placement of a job's ranks.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/layout/layout.hpp"

namespace nvlsim {

/// Reads `"placement"` of a job with `ranks` ranks. Policies that deal ranks to domains in turn keep `together`
/// consecutive ones in a domain by default. `usual` is the default number of GPUs used per domain.
placement read_placement(config::reader& r, const platform& p, std::int64_t ranks, std::int64_t together,
                         std::int64_t usual);

}  // namespace nvlsim
