#include <string>
#include <utility>

#include "nvlsim/stack/inference_fields.hpp"
#include "stack/read_parts.hpp"

namespace nvlsim {
namespace {

using config::reader;

const std::array<std::string, 2> kv_rules = {"of_rest", "of_all"};
constexpr config::range<double> factor{config::positive.low, 1e3};

/// "kind" and "source" belong to the whole group and are not names of entries.
bool is_name(const std::string& n) { return n != "kind" && n != "source"; }

void read_table(reader& r, std::string_view key, std::map<precision, double>& out) {
  auto table = r.find_child(key);
  if (!table) return;
  for (const std::string& n : table->names()) {
    if (!is_name(n)) continue;
    const double x = table->number(n, factor);
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

void read_front_end(reader r, front_end_costs& f) {
  f.sequence_host = r.quantity<seconds>("sequence_host");
  f.request_host = r.quantity<seconds>("request_host");
  f.first_token_delay = r.quantity<seconds>("first_token_delay");
  if (const auto q = r.find_quantity<seconds>("prompt_token_delay")) f.prompt_token_delay = *q;
  f.first_token_iterations = r.number("first_token_iterations", config::non_negative);
  r.done();
}

}  // namespace

engine_costs inference_profile::costs(const std::string& gpu, const std::string& architecture) const {
  auto it = gpus.find(gpu);
  if (it == gpus.end()) it = gpus.find(architecture);
  engine_costs c = it == gpus.end() ? static_cast<const engine_costs&>(*this) : it->second;
  for (const engine_time_field& f : engine_time_fields)
    if (f.release) c.*f.member = c.*f.member * release_factor;
  c.launch_factor *= release_factor;
  c.expert_layer_time = c.expert_layer_time * expert_release_factor;
  return c;
}

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
  if (auto f = r.find_child("front_end")) read_front_end(std::move(*f), i.front_end);
  read_settings(r, i.settings);
  i.reserve = r.quantity<bytes>("reserve");
  if (r.has("kv_rule")) i.kv_rule = static_cast<kv_memory_rule>(r.one_of("kv_rule", kv_rules));
  i.kv_block_tokens = static_cast<int>(r.integer("kv_block_tokens", {1, 1024}));
  r.ignore("calibration");  // affects bands of results only [docs/stack-format.md#inference]
  if (auto b = r.find_child("band")) {
    if (const auto x = b->find_number("tpot", config::non_negative)) i.band.tpot = *x;
    if (const auto x = b->find_number("ttft", config::non_negative)) i.band.ttft = *x;
    if (const auto x = b->find_number("throughput", config::non_negative)) i.band.throughput = *x;
    b->done();
  }
  r.done();
  return i;
}

}  // namespace nvlsim
