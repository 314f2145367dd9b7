// Where the ranks of a job sit.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/layout/layout.hpp"

namespace nvlsim {

/// Reads `"placement"` of a job of `ranks`, of which `together` consecutive ones stay in one domain where they are
/// dealt to domains in turn. `usual` GPUs of each domain are used unless it says otherwise.
placement read_placement(config::reader& r, const platform& p, std::int64_t ranks, std::int64_t together,
                         std::int64_t usual);

}  // namespace nvlsim
