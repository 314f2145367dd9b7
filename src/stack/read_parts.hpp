// Readers of the sections of a stack file.
#pragma once

#include "nvlsim/config/reader.hpp"
#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

/// Of errors that bands are made of: measured over simulated time, and a logarithm of it (a factor of 148 at
/// most).
inline constexpr config::range<double> error_ratio{1e-3, 1e3}, log_error{0.0, 5.0};

/// `"kernels"`: GPU or architecture -> profile. `"like"` names the entry that an entry inherits from.
std::map<std::string, kernel_profile> read_kernels(config::reader& r);
/// `"collectives"`.
collective_profile read_collectives(config::reader& r);
/// `"training"`.
training_profile read_training(config::reader& r);
/// `"inference"`.
inference_profile read_inference(config::reader& r);

/// The same sections as their constants would be written.
value write_kernels(const std::map<std::string, kernel_profile>& kernels);
value write_collectives(const collective_profile& c);
value write_training(const training_profile& t);
value write_inference(const inference_profile& i);

}  // namespace nvlsim
