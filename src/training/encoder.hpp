// The encoder of images in front of a language model, as a model of its own.
#pragma once

#include <optional>

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// What a GPU of the first stage encodes for one micro-batch: layers without vocabulary, and images as sequences
/// that are packed side by side, undivided by tensor and context parallelism, in 16 bits.
/// [docs/models-and-assumptions.md#towers-in-training]
struct image_encoder {
  model net;
  training_workload work;
  double tokens = 0;     ///< of the images, in the sequences of the language model
  double projector = 0;  ///< parameters of the projector to the width of the language model
  double joint = 0;      ///< width of the patches that it merges into a token
};

/// Empty if the workload states no images, or the model no sizes of an encoder of images.
std::optional<image_encoder> image_encoder_of(const model& m, const training_workload& w);

/// Whether encoders are trained, so that gradients pass through them.
bool trains_towers(const training_workload& w);

}  // namespace nvlsim
