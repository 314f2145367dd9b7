#include "model/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

std::int64_t read_kv_heads(const model_file& f, const spelling& s, checked heads) {
  if (s.derived && !f.r.has(s.kv_heads)) return f.r.integer_or(s.kv_heads, heads.value);
  const checked kv = read_integer(f, s.kv_heads, head_range);
  if (heads.sound && kv.sound && heads.value % kv.value != 0)
    f.r.fail(s.kv_heads.canonical,
             fmt::format("{} {} is not a multiple of {}", s.heads.canonical, heads.value, kv.value));
  return kv.value;
}

std::int64_t read_head_dim(const model_file& f, const spelling& s, checked hidden, checked heads) {
  if (!s.derived || f.r.has(s.head_dim)) return f.r.integer(s.head_dim, head_range);
  if (hidden.sound && heads.sound && hidden.value % heads.value != 0)
    f.r.fail(s.heads.canonical, fmt::format("{} {} is not a multiple of {}, so \"{}\" must be given",
                                            s.hidden.canonical, hidden.value, heads.value, s.head_dim.canonical));
  return f.r.integer_or(s.head_dim, hidden.value / heads.value);
}

/// The elements of the list `key`. nullptr if it is absent, or not a list, which is reported.
const value::array* read_list(const model_file& f, const char* key) {
  const value* v = f.r.raw(key);
  if (!v || v->is_null()) return nullptr;
  if (!v->items()) f.r.fail(key, fmt::format("expected an array, found {}", v->type_name()));
  return v->items();
}

checked read_expert_count(const model_file& f) {
  constexpr std::array names = {"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"};
  checked found;
  const char* used = nullptr;
  for (const char* name : names) {
    if (!f.r.has(name)) continue;
    const checked here = read_integer(f, name, expert_range);
    if (used && found.sound && here.sound && here.value != found.value)
      f.r.fail(name, fmt::format("{} differs from \"{}\" {}", here.value, used, found.value));
    if (!used) found = here, used = name;
  }
  if (!used)
    f.r.fail("", fmt::format("required member \"{}\" is missing (nor \"{}\", \"{}\", \"{}\")", names[0], names[1],
                             names[2], names[3]));
  return found;
}

}  // namespace

const spelling& hugging_face() {
  static const spelling names = {"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
                                 "head_dim"};
  return names;
}

const spelling& hugging_face_derived() {
  static const spelling names = [] {
    spelling s = hugging_face();
    s.derived = true;
    return s;
  }();
  return names;
}

std::int64_t read_or(const model_file& f, const config::key& k, std::int64_t otherwise,
                     config::range<std::int64_t> allowed) {
  return otherwise > 0 ? f.r.integer_or(k, otherwise, allowed) : f.r.integer(k, allowed);
}

checked read_integer(const model_file& f, const config::key& k, config::range<std::int64_t> allowed) {
  const std::size_t before = f.problems.sorted().size();
  const std::int64_t v = f.r.integer(k, allowed);
  return {v, f.problems.sorted().size() == before};
}

void read_heads(const model_file& f, const spelling& s, checked hidden, layer_spec& l) {
  const checked heads = read_integer(f, s.heads, head_range);
  l.heads = heads.value;
  l.kv_heads = read_kv_heads(f, s, heads);
  l.head_dim = read_head_dim(f, s, hidden, heads);
}

outline read_sizes(const model_file& f, const spelling& s, const dimension_defaults& d) {
  outline o;
  o.layers = read_integer(f, s.layers, layer_range);
  o.hidden = read_integer(f, s.hidden, hidden_range);
  o.m.hidden = o.hidden.value;
  o.m.vocab = read_or(f, "vocab_size", d.vocab, vocab_range);
  o.m.max_positions = d.positions > 0 ? f.r.integer_or("max_position_embeddings", d.positions, positions_range)
                                      : f.r.find_integer("max_position_embeddings", positions_range).value_or(0);
  return o;
}

outline read_outline(const model_file& f, const spelling& s, const dimension_defaults& d) {
  outline o = read_sizes(f, s, d);
  if (d.heads > 0) {
    o.layer.heads = f.r.integer_or(s.heads, d.heads, head_range);
    o.layer.kv_heads = f.r.integer_or(s.kv_heads, d.kv_heads, head_range);
    o.layer.head_dim = f.r.integer_or(s.head_dim, d.head_dim, head_range);
  } else {
    read_heads(f, s, o.hidden, o.layer);
  }
  return o;
}

bool read_tied(const model_file& f, bool otherwise) {
  config::reader& with_tie = f.r.has("tie_word_embeddings") ? f.r : f.root;
  return with_tie.boolean_or("tie_word_embeddings", otherwise);
}

moe_spec read_experts(const model_file& f, const char* width) {
  moe_spec e;
  static const config::key top_k = {"num_experts_per_tok",
                                    {"num_experts_per_token", "top_k_experts", "moe_top_k", "moe_k"}};
  const checked count = read_expert_count(f), chosen = read_integer(f, top_k, expert_range);
  if (count.sound && chosen.sound && chosen.value > count.value)
    f.r.fail("num_experts_per_tok", fmt::format("{} is more than the {} experts", chosen.value, count.value));
  e.experts = count.value;
  e.top_k = chosen.value;
  e.expert_ffn = f.r.integer(width, expert_ffn_range);
  return e;
}

void read_expert_groups(const model_file& f, const char* count, const char* chosen, moe_spec& e) {
  e.groups = f.r.find_integer(count, expert_range).value_or(1);
  e.top_groups = f.r.find_integer(chosen, expert_range).value_or(e.groups);
  if (e.groups <= 1 || e.top_groups < 1 || e.experts < 1) return;  // none, or reported
  if (e.experts % e.groups != 0)
    f.r.fail(count, fmt::format("{} does not divide {} experts", e.groups, e.experts));
  else if (e.top_groups > e.groups)
    f.r.fail(chosen, fmt::format("{} is more than the {} groups of experts", e.top_groups, e.groups));
  else if (e.top_groups * (e.experts / e.groups) < e.top_k)
    f.r.fail(chosen, fmt::format("{} groups have {} experts, fewer than the {} of a token", e.top_groups,
                                 e.top_groups * (e.experts / e.groups), e.top_k));
}

void read_mtp(const model_file& f, const char* count, model& m, std::vector<layer_spec> block) {
  m.mtp_layers = f.r.integer_or(count, 0, mtp_range);
  if (m.mtp_layers > 0) m.mtp_block = std::move(block);
}

std::vector<std::size_t> read_names(const model_file& f, const char* key,
                                    std::span<const std::string_view> allowed, checked layers) {
  const value::array* list = read_list(f, key);
  if (!list) return {};
  std::vector<std::size_t> out;
  for (const value& v : *list) {
    const std::string* s = v.string();
    const auto at = s ? std::find(allowed.begin(), allowed.end(), *s) : allowed.end();
    if (at == allowed.end()) {
      f.r.fail(key, fmt::format("element {}: expected one of {}, found {}", out.size(), fmt::join(allowed, ", "),
                                s ? in_quotes(*s) : std::string(v.type_name())));
      return {};
    }
    out.push_back(static_cast<std::size_t>(at - allowed.begin()));
  }
  if (!layers.sound) return {};
  if (out.size() == static_cast<std::size_t>(layers.value)) return out;
  f.r.fail(key, fmt::format("has {} elements for {} layers", out.size(), layers.value));
  return {};
}

std::vector<bool> read_sliding(const model_file& f, checked layers, std::int64_t full_every) {
  constexpr std::array<std::string_view, 2> names = {"full_attention", "sliding_attention"};
  std::vector<bool> out;
  for (const std::size_t name : read_names(f, "layer_types", names, layers)) out.push_back(name == 1);
  if (full_every > 0) {
    static const config::key pattern = {"sliding_window_pattern", {"_sliding_window_pattern"}};
    const std::int64_t every = f.r.integer_or(pattern, full_every, layer_range);
    for (std::int64_t i = std::ssize(out); i < layers.value; ++i) out.push_back((i + 1) % every != 0);
  }
  return out;
}

std::vector<bool> read_digits(const model_file& f, const char* key, checked layers) {
  const value* v = f.r.has(key) ? f.r.raw(key) : nullptr;
  if (!v || !v->items()) return {};
  const auto digits = read_integers(f, key, {0, 1});
  const auto n = static_cast<std::size_t>(layers.value);
  if (layers.sound && !digits.empty() && digits.size() != n)
    f.r.fail(key, fmt::format("has {} elements for {} layers", digits.size(), n));
  std::vector<bool> out(n, true);
  for (std::size_t i = 0; i < std::min(n, digits.size()); ++i) out[i] = digits[i] == 1;
  return out;
}

std::vector<std::int64_t> read_integers(const model_file& f, const char* key,
                                        config::range<std::int64_t> allowed) {
  const value::array* list = read_list(f, key);
  if (!list) return {};
  std::vector<std::int64_t> out;
  for (const value& v : *list) {
    const std::int64_t* i = v.integer();
    if (!i || *i < allowed.low || *i > allowed.high) {
      f.r.fail(key, fmt::format("element {}: expected an integer from {} to {}", out.size(), allowed.low,
                                allowed.high));
      return {};
    }
    out.push_back(*i);
  }
  return out;
}

}  // namespace nvlsim
