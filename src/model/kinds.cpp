#include <algorithm>
#include <array>

#include "nvlsim/model.hpp"

namespace nvlsim {
namespace {

struct feature {
  std::string_view name;
  bool (*in)(const layer_spec&);
};
constexpr std::array features = {
    feature{"latent attention", [](const layer_spec& l) { return l.attention == attention_kind::mla; }},
    feature{"compressed attention", [](const layer_spec& l) { return l.attention == attention_kind::compressed; }},
    feature{"linear attention", [](const layer_spec& l) { return l.attention == attention_kind::linear; }},
    feature{"state-space layers", [](const layer_spec& l) { return l.attention == attention_kind::mamba; }},
    feature{"layers without attention", [](const layer_spec& l) { return l.attention == attention_kind::none; }},
    feature{"layers without an MLP", [](const layer_spec& l) { return !l.routed() && l.ffn_hidden == 0; }},
    feature{"sliding windows", [](const layer_spec& l) { return l.window > 0; }},
    feature{"sparse attention", [](const layer_spec& l) { return l.sparse_keys > 0; }},
    feature{"gated attention", [](const layer_spec& l) { return l.attention_gate; }},
    feature{"routed experts", [](const layer_spec& l) { return l.routed(); }},
    feature{"latent experts", [](const layer_spec& l) { return l.moe.latent > 0; }},
};

}  // namespace

std::vector<std::string_view> beyond_dense(const model& m, std::span<const std::string_view> handled) {
  std::vector<std::string_view> out;
  for (const feature& f : features)
    if (std::any_of(m.layers.begin(), m.layers.end(), f.in)) out.push_back(f.name);
  if (m.mtp_layers > 0) out.emplace_back("multi-token prediction");
  std::erase_if(out, [&](std::string_view name) {
    return std::find(handled.begin(), handled.end(), name) != handled.end();
  });
  return out;
}

bool dense_grouped_query(const model& m) { return beyond_dense(m).empty(); }

}  // namespace nvlsim
