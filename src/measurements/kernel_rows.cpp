// Reads rows of kernels.csv and kernels-more.csv. [docs/kernels.md#tables]
#include "nvlsim/measurements/kernel_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "nvlsim/measurements/collective_rows.hpp"

namespace nvlsim {
namespace {

constexpr const char* kernel_stack = "tensorrt-llm-1.3-kernels";

/// Rows measured with another release, identified by their source.
struct release_of_source {
  std::string_view text, stack;
};
constexpr std::array<release_of_source, 2> other_releases = {
    {{"trtllm/1.3.0rc17", "tensorrt-llm-1.3rc17-kernels"}, {"vidur", "vidur-kernels"}}};

std::string stack_of_kernels(const csv_row& row) {
  for (const release_of_source& r : other_releases)
    if (row["source"].find(r.text) != std::string::npos) return std::string(r.stack);
  return kernel_stack;
}

/// Reads the power from "power_W 1166.2 power_limit_W 1200".
std::optional<double> power_of(const csv_row& row) {
  static constexpr std::string_view word = "power_W ";
  const std::string& note = row["note"];
  if (!note.starts_with(word)) return {};
  double watts = 0;
  const auto [end, status] = std::from_chars(note.data() + word.size(), note.data() + note.size(), watts);
  if (status != std::errc() || !(watts > 0)) return {};
  return watts;
}

/// Thrown for a valid row that no formula covers.
class uncovered : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct named_format {
  std::string_view text;
  precision format;
};
constexpr std::array<named_format, 9> formats = {{{"bfloat16", precision::bf16},
                                                  {"float16", precision::fp16},
                                                  {"half", precision::fp16},
                                                  {"fp16", precision::fp16},
                                                  {"fp8", precision::fp8},
                                                  {"fp8_block", precision::fp8_block},
                                                  {"mxfp8", precision::mxfp8},
                                                  {"nvfp4", precision::nvfp4},
                                                  {"sq", precision::int8}}};

precision format_of(const csv_row& row, std::string_view text) {
  for (const named_format& f : formats)
    if (f.text == text) return f.format;
  throw uncovered(fmt::format("no parameters for {} kernels of type \"{}\"", row["table"], text));
}

/// "q bfloat16 kv fp8" -> fp8
precision cache_format(const csv_row& row) {
  const std::string& text = row["dtype"];
  const auto at = text.rfind("kv ");
  return format_of(row, at == std::string::npos ? std::string_view(text) : std::string_view(text).substr(at + 3));
}

using price_function = decltype(kernel_row::price);

void read_gemm(const csv_row& row, kernel_row& out) {
  gemm_shape s{.m = need(row, "m"), .n = need(row, "n"), .k = need(row, "k")};
  const std::string& type = row["dtype"];
  if (type == "int8_wo" || type == "int4_wo") {
    const precision weights = type == "int8_wo" ? precision::int8 : precision::int4;
    s.weight_element_bytes = bytes_per_element(weights);
    out.family = fmt::format("weight_only/{}", name(weights));
    out.price = [s, weights](const gpu_spec& g, const kernel_profile& k) {
      return gemm_cost(g, k.weight_only.at(weights), precision::bf16, s);
    };
    return;
  }
  const precision p = format_of(row, type);
  out.operands = p;
  out.family = fmt::format("gemm/{}", name(p));
  out.price = [s, p](const gpu_spec& g, const kernel_profile& k) { return gemm_cost(g, k.gemm.at(p), p, s); };
}

void read_prefill(const csv_row& row, kernel_row& out) {
  const double length = need(row, "seq"), dim = need(row, "head_dim");
  const attention_shape s{.batch = need(row, "batch"),
                          .heads = need(row, "heads"),
                          .kv_heads = need(row, "kv_heads"),
                          .qk_dim = dim,
                          .v_dim = dim,
                          .queries = length,
                          .pairs = length * length / 2,
                          .fp8 = cache_format(row) == precision::fp8};
  out.family = s.fp8 ? "attention/fp8" : "attention/bf16";
  if (s.fp8) out.operands = precision::fp8;
  out.price = [s](const gpu_spec& g, const kernel_profile& k) { return attention_forward_cost(g, k, s); };
}

constexpr double max_grouped_heads = 32;  // query heads per KV head; see ungrouped_decode in the stack

void read_decode(const csv_row& row, kernel_row& out) {
  const decode_shape s{.batch = need(row, "batch"),
                       .context = need(row, "seq"),
                       .heads = need(row, "heads"),
                       .kv_heads = need(row, "kv_heads"),
                       .head_dim = need(row, "head_dim"),
                       .kv_element_bytes = bytes_per_element(cache_format(row)),
                       .repeated = true};
  out.family = s.kv_element_bytes < 2 ? "decode/fp8" : "decode/bf16";
  if (s.heads <= s.kv_heads) out.family = "single_" + out.family;
  if (s.heads > max_grouped_heads * s.kv_heads) out.family = "ungrouped_decode";
  out.price = [s](const gpu_spec& g, const kernel_profile& k) { return decode_attention_cost(g, k, s); };
}

/// Tokens already in the cache: 4095 for "isl 256 step 4095 tp 2".
double cached_tokens(const csv_row& row) {
  const std::string& note = row["note"];
  const auto at = note.find(" step ");
  if (at == std::string::npos) return 0;
  double v = 0;
  for (std::size_t i = at + 6; i < note.size() && note[i] >= '0' && note[i] <= '9'; ++i)
    v = v * 10 + (note[i] - '0');
  return v;
}

// DeepSeek's MLA: key size 128 + 64, value size 128, latent size 512 + 64.
constexpr double mla_key = 192, mla_value = 128, mla_latent = 512, mla_rope = 64;

void read_mla(const csv_row& row, kernel_row& out) {
  const precision cache = cache_format(row);
  const double length = need(row, "seq"), batch = need(row, "batch"), heads = need(row, "heads");
  if (row["op"].starts_with("context")) {
    const double cached = std::min(cached_tokens(row), length - 1), queries = length - cached;
    const attention_shape s{.batch = batch,
                            .heads = heads,
                            .kv_heads = heads,
                            .qk_dim = mla_key,
                            .v_dim = mla_value,
                            .queries = queries,
                            .pairs = queries * (cached + queries / 2),
                            .fp8 = cache == precision::fp8};
    out.family = fmt::format("mla_context/{}", name(cache));
    out.price = [s, cache](const gpu_spec& g, const kernel_profile& k) {
      return attention_forward_cost(g, k.mla_context.at(cache), s);
    };
    return;
  }
  const mla_decode_shape s{.batch = batch,
                           .context = length,
                           .heads = heads,
                           .latent_dim = mla_latent + mla_rope,
                           .value_dim = mla_latent,
                           .kv_element_bytes = bytes_per_element(cache)};
  out.family = fmt::format("mla_decode/{}", name(cache));
  out.price = [s, cache](const gpu_spec& g, const kernel_profile& k) {
    return mla_decode_cost(g, k.mla_decode.at(cache), s);
  };
}

/// MLA weight absorption: one product per head, before or after decode attention.
void read_mla_products(const csv_row& row, kernel_row& out) {
  const precision p = format_of(row, row["dtype"]);
  const bool before = row["op"].ends_with("_pre");
  const gemm_shape s{.m = need(row, "m"),
                     .n = before ? mla_latent : mla_value,
                     .k = before ? mla_value : mla_latent,
                     .groups = need(row, "heads"),
                     .repeated = true};
  out.family = fmt::format("{}/{}", before ? "absorb_keys" : "absorb_values", name(p));
  out.price = [s, p, before](const gpu_spec& g, const kernel_profile& k) {
    return gemm_cost(g, (before ? k.absorb_keys : k.absorb_values).at(p), p, s);
  };
}

struct moe_family {
  std::string_view kernel, dtype, family;
};
constexpr std::array<moe_family, 11> moe_families = {{
    {"deepgemm", "fp8_block", "deepgemm_fp8_block"},
    {"moe_torch_flow_cutlass", "nvfp4", "cutlass_nvfp4"},
    {"moe_torch_flow_cutlass", "bfloat16", "cutlass_bf16"},
    {"moe_torch_flow_cutlass", "fp8", "cutlass_fp8"},
    {"moe_torch_flow_cutlass", "fp8_block", "cutlass_fp8_block"},
    {"moe_torch_flow", "w4a8_mxfp4_mxfp8", "mxfp4_mxfp8"},
    {"moe_torch_flow", "w4a16_mxfp4", "mxfp4_bf16"},
    {"moe_torch_flow_nongated", "nvfp4", "nongated_nvfp4"},
    {"moe_torch_flow_nongated", "bfloat16", "nongated_bf16"},
    {"moe_torch_flow_nongated", "fp8", "nongated_fp8"},
    {"moe_torch_flow_min_latency", "nvfp4", "min_latency_nvfp4"},
}};

/// The expert load called "balanced" or "power_law_1.2".
expert_load load_of(const std::string& word, const expert_routing& r, load_cache& loads) {
  const std::string key = fmt::format("{} {} {} {} {}", word, r.tokens, r.topk, r.experts, r.ranks);
  if (const auto it = loads.find(key); it != loads.end()) return it->second;
  static constexpr std::string_view skewed = "power_law_";
  expert_load load;
  if (word == "balanced") {
    load = balanced_load(r);
  } else if (word.starts_with(skewed)) {
    double exponent = 0;
    const auto [end, status] = std::from_chars(word.data() + skewed.size(), word.data() + word.size(), exponent);
    if (status != std::errc() || end != word.data() + word.size())
      throw cell_error(fmt::format("op: no exponent in \"{}\"", word));
    load = skewed_load(r, exponent);
  } else {
    throw uncovered(fmt::format("no formula for expert loads called \"{}\"", word));
  }
  return loads.emplace(key, load).first->second;
}

void read_moe(const csv_row& row, kernel_row& out, load_cache& loads) {
  const std::string& op = row["op"];  // "moe KERNEL LOAD"
  const auto first = op.find(' '), last = op.rfind(' ');
  if (first == std::string::npos || last == first)
    throw cell_error(fmt::format("op: \"{}\" does not name a kernel and a load", op));
  const std::string kernel = op.substr(first + 1, last - first - 1), word = op.substr(last + 1);
  out.record.scenario = fmt::format("{} {}", kernel, word);
  if (kernel.find("min_latency") != std::string::npos && word == "balanced")
    throw uncovered(
        "balanced min_latency rows imply reading weights at up to twice the HBM bandwidth, which no load "
        "explains");
  const auto it = std::find_if(moe_families.begin(), moe_families.end(),
                               [&](const moe_family& f) { return f.kernel == kernel && f.dtype == row["dtype"]; });
  if (it == moe_families.end())
    throw uncovered(fmt::format("no parameters for expert kernels \"{}\" of type \"{}\"", kernel, row["dtype"]));
  const double ranks = static_cast<double>(row.integer("ep").value_or(1)), tp = row.number("moe_tp").value_or(1);
  const expert_routing r{.tokens = need(row, "m"),
                         .topk = static_cast<double>(need_count(row, "topk")),
                         .experts = static_cast<double>(need_count(row, "experts")),
                         .ranks = ranks};
  const moe_shape s{.tokens = r.tokens,
                    .local_experts = std::max(1.0, r.experts / ranks),
                    .hidden = need(row, "hidden"),
                    .inter = need(row, "inter") / tp,
                    .gated = kernel.find("nongated") == std::string::npos,
                    .load = load_of(word, r, loads)};
  out.family = fmt::format("moe/{}", it->family);
  out.price = [s, family = std::string(it->family)](const gpu_spec& g, const kernel_profile& k) {
    return moe_cost(g, k.moe.at(family), s);
  };
}

/// A static cast reads 16 bits and writes 8 bits. A dynamic scale costs one more read of the tensor.
void read_cast(const csv_row& row, kernel_row& out) {
  const bool scale = row["op"] == "computescale";
  if (!scale && row["op"] != "scale_matrix") throw uncovered(fmt::format("no formula for \"{}\"", row["op"]));
  const bytes moved = bytes::from_base((scale ? 2 : 3) * need(row, "m") * need(row, "k"));
  out.family = scale ? "amax" : "stream";
  out.price = [moved, scale](const gpu_spec& g, const kernel_profile& k) {
    return stream_cost(g, scale ? *k.amax : k.stream, moved, true);
  };
}

struct table_reader {
  std::string_view table;
  void (*read)(const csv_row&, kernel_row&);
};
constexpr std::array<table_reader, 9> readers = {{{"gemm", read_gemm},
                                                  {"gemm_power", read_gemm},
                                                  {"context_attention", read_prefill},
                                                  {"context_attention_power", read_prefill},
                                                  {"generation_attention", read_decode},
                                                  {"generation_attention_power", read_decode},
                                                  {"mla", read_mla},
                                                  {"mla_bmm", read_mla_products},
                                                  {"quantize", read_cast}}};

void read_kind(const csv_row& row, kernel_row& out, input_cache& inputs, load_cache& loads) {
  const std::string& table = row["table"];
  const std::string_view where = platform_of_kernel_system(out.record.system);
  if (where.empty()) throw uncovered(fmt::format("system: \"{}\" is unknown", out.record.system));
  const platform& p = inputs.platform_named(std::string(where));
  if (table == "moe") return read_moe(row, out, loads);
  if (table == "alltoall" || table == "allreduce" || table == "nccl") {
    out.record.scenario = row["op"];
    collective_row c;
    read_collective_kernel(row, p, c);
    const collective_profile& profile = inputs.stack_named(kernel_stack).collectives;
    out.record.simulated = c.price(profile).base() * 1e3;
    set_band(c, profile, out.record);
    return;
  }
  const auto it =
      std::find_if(readers.begin(), readers.end(), [&](const table_reader& r) { return r.table == table; });
  if (it == readers.end()) throw uncovered(fmt::format("no formula for table \"{}\"", table));
  out.record.scenario = row["op"];
  it->read(row, out);
}

void price(kernel_row& r, input_cache& inputs) {
  if (r.record.status != record_status::ok || !r.price) return;
  const platform& p = inputs.platform_named(std::string(platform_of_kernel_system(r.record.system)));
  const kernel_profile k = kernels_for(inputs.stack_named(r.stack), p.gpu);
  if (!has_family(k, r.family)) {
    r.record.status = record_status::unsupported;
    r.record.reason = fmt::format("no parameters \"{}\" for {}", r.family, p.gpu.name);
    return;
  }
  const kernel_cost c = r.price(p.gpu, k);
  r.record.simulated = c.time.base() * 1e3;
  if (const kernel_spread* s = spread_of(inputs.stack_named(r.stack), p.gpu, r.family))
    r.record.band = {*r.record.simulated * s->low, *r.record.simulated * s->high};
  if (r.power)
    r.record.notes = fmt::format("power {:.0f} W measured, {:.0f} W computed", *r.power,
                                 kernel_power(p.gpu, r.operands, c).base());
}

}  // namespace

// "a100" in the tables is the 80 GB variant.
std::string_view platform_of_kernel_system(std::string_view system) {
  return platform_of_system(system == "a100" ? "a100-80g" : system);
}

std::string parameter_group(const kernel_profile& k, const std::string& family) {
  if (family.starts_with("attention/"))
    return family.ends_with("fp8") && k.attention_fp8 ? "attention_fp8" : "attention";
  if (family.starts_with("single_decode/"))
    if (const auto p = precision_by_name(family.substr(family.find('/') + 1)); !p || !k.single_decode.contains(*p))
      return parameter_group(k, family.substr(family.find("decode/")));
  if (family.starts_with("decode/")) return family.ends_with("fp8") && k.decode_fp8 ? "decode_fp8" : "decode";
  return family;
}

bool has_family(const kernel_profile& k, const std::string& family) {
  const auto slash = family.find('/');
  const std::string group = family.substr(0, slash),
                    member = slash == std::string::npos ? "" : family.substr(slash + 1);
  const auto format = precision_by_name(member);
  const auto holds = [&](const auto& m) { return format && m.contains(*format); };
  if (group == "gemm") return holds(k.gemm);
  if (group == "weight_only") return holds(k.weight_only);
  if (group == "absorb_keys") return holds(k.absorb_keys);
  if (group == "absorb_values") return holds(k.absorb_values);
  if (group == "attention_fp8") return k.attention_fp8.has_value();
  if (group == "decode_fp8") return k.decode_fp8.has_value();
  if (group == "ungrouped_decode") return k.ungrouped_decode.has_value();
  if (group == "single_decode") return true;  // falls back to the parameters of decode
  if (group == "mla_context") return holds(k.mla_context);
  if (group == "mla_decode") return holds(k.mla_decode);
  if (group == "moe") return k.moe.contains(member);
  return group != "amax" || k.amax.has_value();
}

kernel_row read_kernel_row(const csv_row& row, const std::string& id, const std::string& table,
                           input_cache& inputs, load_cache& loads) {
  kernel_row out;
  validation_record& r = out.record;
  r = record_of(row, table);
  r.id = id;
  r.metric = "latency_ms";
  r.precision = row["dtype"];
  r.kind = row["table"];
  out.stack = stack_of_kernels(row);
  out.power = power_of(row);
  try {
    r.published = published_value(row, "latency_ms");
    if (r.suspect.starts_with("exclude:") || !r.published) {
      r.status = record_status::excluded;
      r.reason = r.published ? r.suspect : "nothing to compare";
      return out;
    }
    read_kind(row, out, inputs, loads);
  } catch (const uncovered& e) {
    r.status = record_status::unsupported;
    r.reason = e.what();
  } catch (const std::exception&) {
    record_failure(r);
  }
  return out;
}

std::vector<validation_record> validate_kernels(const csv_table& t, const data_folders& data,
                                                const progress& report) {
  input_cache inputs(data);
  load_cache loads;
  std::vector<validation_record> out;
  out.reserve(t.rows.size());
  for (const csv_row& row : t.rows) {
    kernel_row r = read_kernel_row(row, fmt::format("{}:{}", t.stem, out.size() + 1), t.stem, inputs, loads);
    try {
      price(r, inputs);
    } catch (const input_error& e) {
      r.record.status = record_status::unsupported;
      r.record.reason = e.what();
    }
    out.push_back(std::move(r.record));
    if (report) report(out.size(), t.rows.size());
  }
  return out;
}

}  // namespace nvlsim
