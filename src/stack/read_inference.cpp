#include <string>
#include <utility>

#include "nvlsim/config/fields.hpp"
#include "nvlsim/stack/inference_fields.hpp"
#include "stack/read_parts.hpp"

namespace nvlsim {
namespace {

using config::absent;
using config::reader;

const std::array<std::string, 3> kv_rules = {"of_rest", "of_all", "of_free"};
const std::array<std::string, 2> latent_formats = {"plain", "scaled"};
const std::array<std::string, 2> sparse_kernels = {"padded", "small_blocks"};
constexpr config::range<double> factor{config::positive.low, 1e3};

/// "kind" and "source" belong to the whole group and are not names of entries.
bool is_name(const std::string& n) { return n != "kind" && n != "source"; }

void read_table(reader& r, std::string_view key, std::map<precision, constant<double>>& out) {
  auto table = r.find_child(key);
  if (!table) return;
  for (const std::string& n : table->names()) {
    if (!is_name(n)) continue;
    const constant<double> x = table->number(n, factor);
    if (const auto p = precision_by_name(n)) out[*p] = x;
    else r.fail(key, "unknown number format \"" + n + "\"");
  }
  table->done();
}

void read_costs(reader& r, engine_costs& c, bool common) {
  for (const engine_time_field& f : engine_time_fields) {
    if (common && f.required) c.*f.member = r.quantity<seconds>(f.name);
    else if (const auto q = r.find_quantity<seconds>(f.name)) c.*f.member = *q;
  }
  for (const engine_factor_field& f : engine_factor_fields)
    if (const auto x = r.find_number(f.name, f.divides ? factor : config::non_negative)) c.*f.member = *x;
  for (const engine_table_field& f : engine_table_fields) read_table(r, f.name, c.*f.member);
}

/// The share of memory for the cache may stand beside the settings, as a release's other settings replace it
/// there.
void read_settings(reader& r, engine_settings& s) {
  engine_overrides said;
  if (auto settings = r.find_child("settings")) {
    said = read_engine(*settings, engine_place::stack).settings;
    settings->done();
  }
  s = merged(s, said);
  if (said.kv_fraction && r.has("kv_fraction"))
    r.fail("kv_fraction", "says the same as the one of \"settings\"; give one of them");
  else if (!said.kv_fraction) s.kv_fraction = r.number("kv_fraction", config::fraction);
}

template <class F, class E>
void list_front_end(F f, E& e) {
  f("sequence_host", e.sequence_host);
  f("request_host", e.request_host);
  f("first_token_delay", e.first_token_delay);
  f("prompt_token_delay", e.prompt_token_delay, config::non_negative, absent::kept);
  f("first_token_iterations", e.first_token_iterations, config::non_negative);
}

/// Half-widths of logarithms. Absent: not known, 0.
error_widths widths_of(config::reader& r) {
  const auto width = [&](const char* metric) {
    const value* v = r.raw(metric);
    const double x = !v ? 0 : v->number() ? *v->number() : v->integer() ? static_cast<double>(*v->integer()) : -1;
    if (x >= log_error.low && x <= log_error.high) return x;
    r.fail(metric, fmt::format("must be the logarithm of an error, from 0 to {}", log_error.high));
    return 0.0;
  };
  return {width("tpot"), width("ttft"), width("throughput")};
}

/// As a fit wrote it; what it has besides is not read.
serving_calibration calibration_of(config::reader& r) {
  serving_calibration c;
  for (const char* kind : {"dense", "experts", "pools", "release"})
    if (auto widths = r.find_child(kind)) c.kinds.emplace(kind, widths_of(*widths));
  if (auto widths = r.find_child("elsewhere")) c.elsewhere = widths_of(*widths);
  for (const char* group : {"architectures", "cells"})
    if (r.has(group))
      for (auto& [name, widths] : r.children(group)) c.kinds.emplace(name, widths_of(widths));
  const value* measured = r.raw("measured");
  if (!measured || !measured->members()) return c;
  c.measured.emplace();
  for (const auto& [gpu, formats] : *measured->members()) {
    if (!formats.items()) continue;
    std::vector<precision>& out = (*c.measured)[gpu];
    for (const value& f : *formats.items())
      if (const auto p = f.string() ? precision_by_name(*f.string()) : std::nullopt) out.push_back(*p);
  }
  return c;
}

}  // namespace

engine_costs inference_profile::costs(const std::string& gpu, const std::string& architecture) const {
  auto it = gpus.find(gpu);
  if (it == gpus.end()) it = gpus.find(architecture);
  engine_costs c = it == gpus.end() ? static_cast<const engine_costs&>(*this) : it->second;
  for (const engine_time_field& f : engine_time_fields)
    if (f.release) (c.*f.member).derive([&, now = c.*f.member] { return now * release_factor; });
  c.expert_layer_time.derive([&, now = c.expert_layer_time] { return now * expert_release_factor; });
  return c;
}

namespace {

/// Named entries; each says for which GPU, model type or both it is.
std::vector<usual_settings> read_usual(reader& r) {
  std::vector<usual_settings> out;
  for (auto& [name, entry] : r.children("usual")) {
    usual_settings u;
    u.name = name;
    if (entry.has("gpu")) u.gpu = entry.string("gpu");
    if (entry.has("model_type")) u.model_type = entry.string("model_type");
    if (entry.has("of_replica")) u.of_replica = entry.boolean("of_replica");
    u.settings = read_engine(entry, engine_place::stack).settings;
    entry.done();
    out.push_back(std::move(u));
  }
  return out;
}

value written_usual(const std::vector<usual_settings>& all) {
  value out{value::object{}};
  for (const usual_settings& u : all) {
    value x{value::object{}};
    if (!u.gpu.empty()) x.set("gpu", u.gpu);
    if (!u.model_type.empty()) x.set("model_type", u.model_type);
    if (u.of_replica) x.set("of_replica", true);
    for (const engine_field& f : engine_fields) write_setting(x, f, u.settings);
    out.set(u.name, std::move(x));
  }
  return out;
}

template <class F, class E>
void list_memory(F f, E& i) {
  f("reserve", i.reserve);
  f("group_reserve", i.group_reserve, config::non_negative, absent::kept);
  f("graph_reserve", i.graph_reserve, config::non_negative, absent::kept);
  f("sampling_bytes", i.sampling_bytes, config::non_negative, absent::kept);
  f("window_pool_share", i.window_pool_share, config::non_negative, absent::kept);
  f("state_pool_share", i.state_pool_share, config::non_negative, absent::kept);
  f("paged_states", i.paged_states, absent::kept);
}

}  // namespace

inference_profile read_inference(reader& r) {
  inference_profile i;
  read_costs(r, i, true);
  if (auto table = r.find_child("gpus")) {
    for (const std::string& n : table->names()) {
      if (!is_name(n)) continue;
      reader entry = table->child(n);
      engine_costs c = i;
      read_costs(entry, c, false);
      entry.done();
      i.gpus.emplace(n, std::move(c));
    }
    table->done();
  }
  if (auto table = r.find_child("sustained_factor")) {
    for (const std::string& n : table->names())
      if (is_name(n)) i.sustained_factor[n] = table->number(n, factor);
    table->done();
  }
  if (const auto x = r.find_number("release_factor", factor)) i.release_factor = *x;
  if (const auto x = r.find_number("expert_release_factor", factor)) i.expert_release_factor = *x;
  if (auto f = r.find_child("front_end")) {
    list_front_end(config::field_reader(*f), i.front_end);
    f->done();
  }
  read_settings(r, i.settings);
  list_memory(config::field_reader(r), i);
  if (r.has("latents")) i.latents = static_cast<latent_format>(r.one_of("latents", latent_formats));
  if (r.has("sparse_prompts"))
    i.sparse_prompts = static_cast<sparse_kernel>(r.one_of("sparse_prompts", sparse_kernels));
  if (r.has("kv_rule")) i.kv_rule = static_cast<kv_memory_rule>(r.one_of("kv_rule", kv_rules));
  if (const auto x = r.find_number("host_copy_share", {1e-3, 1})) i.host_copy_share = *x;
  if (r.raw("usual")) i.usual = read_usual(r);
  if (auto c = r.find_child("calibration")) i.calibration = calibration_of(*c);
  if (auto b = r.find_child("band")) {
    for (const auto& [metric, width] : {std::pair("tpot", &i.band.tpot), std::pair("ttft", &i.band.ttft),
                                        std::pair("throughput", &i.band.throughput)})
      if (const auto x = b->find_number(metric, log_error)) *width = *x;
    b->done();
  }
  r.done();
  return i;
}

namespace {

value written_costs(const engine_costs& c) {
  value out{value::object{}};
  const config::field_writer f(out);
  for (const engine_time_field& x : engine_time_fields) f(x.name, c.*x.member);
  for (const engine_factor_field& x : engine_factor_fields) f(x.name, c.*x.member);
  for (const engine_table_field& x : engine_table_fields) {
    value table{value::object{}};
    for (const auto& [p, factor_of] : c.*x.member) table.set(name(p), factor_of.peek());
    if (!table.members()->empty()) out.set(x.name, std::move(table));
  }
  return out;
}

/// The share of memory for the cache stands beside the other settings, too.
void write_settings(value& out, value& beside, const engine_settings& s) {
  for (const engine_field& x : engine_fields) write_setting(out, x, s);
  write_setting(beside, engine_field_named("kv_fraction"), s);
}

}  // namespace

value write_inference(const inference_profile& i) {
  value out = written_costs(i), gpus{value::object{}}, sustained{value::object{}};
  for (const auto& [gpu, costs] : i.gpus) gpus.set(gpu, written_costs(costs));
  out.set("gpus", std::move(gpus));
  for (const auto& [gpu, x] : i.sustained_factor) sustained.set(gpu, x.peek());
  out.set("sustained_factor", std::move(sustained));
  value settings{value::object{}}, front_end{value::object{}};
  write_settings(settings, out, i.settings);
  list_front_end(config::field_writer(front_end), i.front_end);
  out.set("settings", std::move(settings));
  out.set("front_end", std::move(front_end));
  const config::field_writer f(out);
  f("release_factor", i.release_factor);
  f("expert_release_factor", i.expert_release_factor);
  list_memory(f, i);
  f("latents", i.latents, latent_formats);
  f("sparse_prompts", i.sparse_prompts, sparse_kernels);
  f("kv_rule", i.kv_rule, kv_rules);
  f("host_copy_share", i.host_copy_share);
  if (!i.usual.empty()) out.set("usual", written_usual(i.usual));
  out.set("band", value::object{{"tpot", i.band.tpot}, {"ttft", i.band.ttft}, {"throughput", i.band.throughput}});
  return out;
}

}  // namespace nvlsim
