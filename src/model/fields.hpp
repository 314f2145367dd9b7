// Fields that all readers of model files share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// A model file. `r` reads the language model. `root` reads the object that contains its `text_config`, or the
/// same one.
struct model_file {
  config::reader& root;
  config::reader& r;
  const diagnostics& problems;
};

/// Bounds far above any model, within which no count overflows 64 bits.
inline constexpr config::range<std::int64_t> layer_range{1, 1 << 13};
inline constexpr config::range<std::int64_t> hidden_range{1, 1 << 18};
inline constexpr config::range<std::int64_t> head_range{1, 1 << 13};
inline constexpr config::range<std::int64_t> lora_rank_range{1, 1 << 16};
inline constexpr config::range<std::int64_t> group_range{1, 1 << 10};
inline constexpr config::range<std::int64_t> ffn_range{1, 1 << 22};
inline constexpr config::range<std::int64_t> expert_range{1, 1 << 13};
inline constexpr config::range<std::int64_t> expert_ffn_range{1, 1 << 17};
inline constexpr config::range<std::int64_t> shared_range{0, 1 << 5};
inline constexpr config::range<std::int64_t> vocab_range{1, 1 << 26};
inline constexpr config::range<std::int64_t> positions_range{1, 1 << 30};
inline constexpr config::range<std::int64_t> mtp_range{0, 1 << 6};

/// An integer, and whether it was read without a problem. Only valid integers are compared with others.
struct checked {
  std::int64_t value = 0;
  bool sound = false;
};
/// An integer, which is required if there is no default (0).
std::int64_t read_or(const model_file& f, const config::key& k, std::int64_t otherwise,
                     config::range<std::int64_t> allowed);
checked read_integer(const model_file& f, const config::key& k, config::range<std::int64_t> allowed);

/// The names of the dimensions in a form of model file.
struct spelling {
  config::key layers, hidden, heads, kv_heads, head_dim;
  bool derived = false;  ///< KV heads and head size are optional, and follow from the others
};
const spelling& hugging_face();          ///< all dimensions are required
const spelling& hugging_face_derived();  ///< like the config of Llama

/// Values of absent members, where the published files rely on them; 0: the member is required.
struct dimension_defaults {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, positions = 0;
};

/// The common dimensions of transformers files. `layer` has its attention; the reader of the family adds the MLP.
struct outline {
  model m;
  checked layers, hidden;
  layer_spec layer;

  /// `count` equal layers.
  void repeat() { m.layers.assign(static_cast<std::size_t>(layers.value), layer); }
};
/// Layers, hidden size, vocabulary and the longest sequence.
outline read_sizes(const model_file& f, const spelling& s, const dimension_defaults& d = {});
/// Heads, KV heads and head size of attention over `hidden`.
void read_heads(const model_file& f, const spelling& s, checked hidden, layer_spec& l);
/// Sizes and heads.
outline read_outline(const model_file& f, const spelling& s, const dimension_defaults& d = {});

/// In a composite config, this is outside the text_config.
bool read_tied(const model_file& f, bool otherwise = false);

/// Number of experts (under any of its three names), experts per token, width of an expert.
moe_spec read_experts(const model_file& f, const char* width);
/// The groups of experts to which a router limits a token, from the members `count` and `chosen`; without them
/// none.
void read_expert_groups(const model_file& f, const char* count, const char* chosen, moe_spec& e);
/// Adds the modules, each of which has `block`.
void read_mtp(const model_file& f, const char* count, model& m, std::vector<layer_spec> block);

/// One name per layer, as indices into `allowed`. Empty if the member is absent, or wrong, which is reported.
std::vector<std::size_t> read_names(const model_file& f, const char* key,
                                    std::span<const std::string_view> allowed, checked layers);
/// Whether a layer slides a window, from `layer_types`; without it all but every `full_every`-th do, or (0) empty.
std::vector<bool> read_sliding(const model_file& f, checked layers, std::int64_t full_every);
/// Which layers have routed experts, from a list of 0 and 1. Empty if the member is absent or no list.
std::vector<bool> read_digits(const model_file& f, const char* key, checked layers);
/// The integers of a list. Empty if the member is absent, or wrong, which is reported.
std::vector<std::int64_t> read_integers(const model_file& f, const char* key, config::range<std::int64_t> allowed);

}  // namespace nvlsim
