// Encoders of images and sound beside a language model. [docs/models.md#towers]
#include <algorithm>
#include <array>

#include "model/families.hpp"

namespace nvlsim {
namespace {

constexpr config::range<std::int64_t> any_size{0, 1 << 22}, any_count{1, 1 << 22};

std::int64_t size_in(config::reader& r, const config::key& k, std::int64_t otherwise = 0) {
  return r.find_integer(k, any_size).value_or(otherwise);
}

/// Towers whose MLP has a gate, by the `model_type` of their config.
constexpr std::array<std::string_view, 3> gated_types = {"pixtral", "qwen2_5_vl", "gemma4_vision"};

/// The projector to the width of the language model. Qwen's joins `merge` x `merge` patches and passes through a
/// layer of their joint width; it is repeated for every layer whose output is passed on.
std::int64_t projector(config::reader& root, config::reader& r, std::int64_t width, const model& m) {
  const std::int64_t out = size_in(r, "out_hidden_size", m.hidden), patches = size_in(r, "spatial_merge_size");
  const value* deep = r.raw("deepstack_visual_indexes");
  const std::int64_t times = 1 + (deep && deep->items() ? std::ssize(*deep->items()) : 0);
  if (patches > 0) {
    const std::int64_t joint = width * patches * patches;
    return times * joint * (joint + out);
  }
  const std::int64_t merged = size_in(root, "spatial_merge_size");  // Mistral's is beside the two configs
  if (merged > 0) return merged * merged * width * width + width * m.hidden + m.hidden * m.hidden;
  return width * m.hidden;
}

tower_spec read_tower(config::reader& root, config::reader& r, std::string name, const model& m) {
  tower_spec out;
  out.name = std::move(name);
  const std::int64_t layers = size_in(r, {"depth", {"num_hidden_layers", "vt_num_hidden_layers"}});
  // Where both widths are given (Qwen2-VL), the second is that of the output.
  const std::int64_t width =
      size_in(r, r.has("embed_dim") ? config::key("embed_dim") : config::key("hidden_size", {"vt_hidden_size"}));
  const std::int64_t ffn =
      size_in(r, {"intermediate_size", {"vt_intermediate_size"}}, width * size_in(r, "mlp_ratio"));
  if (layers == 0 || width == 0 || ffn == 0) return out;
  const std::string type = r.find_string("model_type").value_or("");
  const bool gated = std::find(gated_types.begin(), gated_types.end(), type) != gated_types.end();
  const std::int64_t patch = size_in(r, "patch_size"), frames = size_in(r, "temporal_patch_size", 1);
  const std::int64_t channels = size_in(r, {"in_channels", {"num_channels", "in_chans"}}, 3);
  const std::int64_t positions = size_in(r, {"num_position_embeddings", {"position_embedding_size"}});
  const std::int64_t merged =
      size_in(r, {"spatial_merge_size", {"pooling_kernel_size"}}, size_in(root, "spatial_merge_size"));
  constexpr std::int64_t usual_head = 64;
  out.layers = layers, out.hidden = width, out.ffn_hidden = ffn, out.gated_mlp = gated;
  out.heads = r.find_integer({"num_heads", {"num_attention_heads", "vt_num_attention_heads"}}, any_count)
                  .value_or(std::max<std::int64_t>(1, width / usual_head));
  if (merged > 0) out.patches_per_token = static_cast<double>(merged * merged);
  out.projector = projector(root, r, width, m);
  out.parameters = layers * (4 * width * width + (gated ? 3 : 2) * width * ffn) +
                   width * (channels * patch * patch * frames + positions) + out.projector;
  return out;
}

}  // namespace

std::vector<tower_spec> read_towers(config::reader& root, const model& m) {
  std::vector<tower_spec> out;
  for (const char* name : {"vision", "audio"})
    if (auto r = root.find_child(std::string(name) + "_config")) out.push_back(read_tower(root, *r, name, m));
  return out;
}

}  // namespace nvlsim
