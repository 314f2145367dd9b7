#include "run/used_constants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "nvlsim/collectives/models.hpp"
#include "nvlsim/compute/compute.hpp"

namespace nvlsim {
namespace {

/// Properties of a run that decide which constants it uses.
struct traits {
  std::set<precision> formats;
  std::set<std::string, std::less<>> exchanges;
  bool across_domains = false, cpu_link = false, routed = false, latent = false;
};

traits traits_of(const scenario& s, const run_record& run) {
  traits t;
  for (const work_template& w : run.work.templates)
    for (const work_part& p : w.parts) {
      if (!p.facts) continue;
      const part_facts& f = *p.facts;
      if (const auto* e = std::get_if<exchange_extent>(&f.extent)) {
        t.exchanges.insert(std::string(f.exchange));
        t.across_domains = t.across_domains || e->domains > 1;
      } else {
        t.formats.insert(f.operands);
        t.cpu_link = t.cpu_link || f.limit == resource::c2c;
      }
    }
  for (const layer_spec& l : s.model.layers) {
    t.routed = t.routed || l.routed();
    t.latent = t.latent || l.attention == attention_kind::mla;
  }
  return t;
}

bool under(std::string_view pointer, std::string_view parent) {
  return pointer.starts_with(parent) && (pointer.size() == parent.size() || pointer[parent.size()] == '/');
}

bool under_any(std::string_view pointer, const std::vector<std::string>& parents) {
  return std::any_of(parents.begin(), parents.end(), [&](const std::string& p) { return under(pointer, p); });
}

/// Subtrees whose constants are used. If several entries give the same constant, the first one is used.
struct used_subtrees {
  std::vector<std::string> platform, stack;
  std::vector<std::string> entries;  ///< kernel entries, nearest first
  std::vector<std::string> groups;   ///< kernel groups used in each entry
};

used_subtrees platform_of(const traits& t, bool computes) {
  used_subtrees u;
  auto& p = u.platform;
  if (computes) {
    for (const char* x : {"hbm_usable", "hbm_bandwidth", "hbm_stream", "sm_count", "exponentials", "tdp",
                          "idle_power", "power_cap", "hbm_energy"})
      p.push_back(fmt::format("/platform/gpu/{}", x));
    for (const precision f : t.formats)
      for (const char* x : {"dense", "energy"})
        p.push_back(fmt::format("/platform/gpu/peaks/{}/{}", name(peak_format(f)), x));
    for (const char* x :
         {"power_per_vm_other", "power_per_switch_tray", "power_supply_efficiency", "nvlink_switch_trays", "vms"})
      p.push_back(fmt::format("/platform/rack/{}", x));
    for (const char* x : {"/platform/cpu/max_power", "/platform/cpu/idle_power", "/platform/vm/cpus",
                          "/platform/vm/gpus", "/platform/price"})
      p.emplace_back(x);
    if (t.cpu_link)
      for (const char* x : {"/platform/gpu/c2c", "/platform/cpu/memory"}) p.emplace_back(x);
  }
  if (!t.exchanges.empty()) {
    p.emplace_back("/platform/gpu/nvlink");
    p.emplace_back("/platform/gpu/nvlink_generation");
  }
  if (t.across_domains)
    for (const char* x : {"nic_bandwidth", "gpus_per_nic", "latency", "oversubscription", "leaf", "spine"})
      p.push_back(fmt::format("/platform/fabric/{}", x));
  return u;
}

void add_kernels(used_subtrees& u, const scenario& s, const traits& t, bool inference) {
  const kernel_profile k = kernels_for(s.stack, s.platform.gpu);
  u.entries.push_back(k.gpu);
  u.entries.insert(u.entries.end(), k.like.begin(), k.like.end());
  std::vector<std::string_view> by_format = {"gemm"};
  if (t.latent) by_format.insert(by_format.end(), {"mla_context", "mla_decode", "absorb_keys", "absorb_values"});
  for (const std::string_view table : by_format)
    for (const precision f : t.formats) u.groups.push_back(fmt::format("{}/{}", table, name(f)));
  for (const char* g : {"attention", "stream", "peaks_of_origin", "dynamic_power_of_origin", "ultra_factor"})
    u.groups.emplace_back(g);
  if (inference)
    for (const char* g : {"attention_fp8", "decode", "decode_fp8", "single_decode", "weight_only"})
      u.groups.emplace_back(g);
  if (t.routed) u.groups.emplace_back("moe");
  if (k.measured_on) {
    u.groups.emplace_back("measured_on/dynamic_power");
    for (const precision f : t.formats)
      u.groups.push_back(fmt::format("measured_on/peaks/{}", name(peak_format(f))));
  }
  if (s.platform.gpu.power_cap || k.dynamic_power_of_origin) u.groups.emplace_back("power_exponent");
}

bool known(const scenario& s, const std::string& subtree) {
  return std::any_of(s.constants.begin(), s.constants.end(),
                     [&](const input_constant& c) { return under(c.pointer, subtree); });
}

/// The pointer of the collective-table entry used for a key.
std::string entry_of(const scenario& s, const std::string& table, std::string_view key) {
  const std::string own = fmt::format("{}/{}", table, key);
  return known(s, own) ? own : table + "/default";
}

/// Chooses the fabric entry as collective_time does: this fabric's, then the mirrored collective's, then any
/// fabric's.
std::string fabric_entry(const scenario& s, const std::string& table, const std::string& kind) {
  const std::string own = fmt::format("{}/{}/", table, s.platform.fabric.name);
  if (known(s, own + kind)) return own + kind;
  for (const char* like : {"all_gather", "all_reduce"})
    if (kind != "all_reduce" && known(s, own + like)) return own + like;
  return fmt::format("{}/default/{}", table, kind);
}

void add_collectives(used_subtrees& u, const scenario& s, const traits& t) {
  const std::string at = "/stack/collectives", own = fmt::format("nvlink{}", s.platform.gpu.nvlink_generation);
  const std::string domain = collectives::kind_of_domain(s.stack.collectives, s.platform.gpu).name;
  if (!t.exchanges.empty()) {
    u.stack.push_back(entry_of(s, at + "/tuning", domain));
    for (const std::string& key : {own, domain}) u.stack.push_back(fmt::format("{}/measured_on/{}", at, key));
  }
  if (t.across_domains)
    for (const std::string& key : {s.platform.fabric.name, std::string("default")})
      u.stack.push_back(fmt::format("{}/measured_on/{}", at, key));
  for (const std::string& e : t.exchanges) {
    if (e == "expert_exchange") {
      u.stack.push_back(at + "/expert_exchange");
      continue;
    }
    const auto operation = collective_by_name(e);
    if (!operation) continue;  // an empty transfer has no name
    const std::string kind(name(collectives::measured_kind(*operation)));
    u.stack.push_back(fmt::format("{}/{}", entry_of(s, at + "/domain", domain), kind));
    if (e == "all_reduce")
      for (const std::string& key : {s.platform.gpu.name, domain})
        u.stack.push_back(fmt::format("{}/custom/{}", at, key));
    if (!t.across_domains) continue;
    if (e == "all_to_all") u.stack.push_back(entry_of(s, at + "/all_to_all", s.platform.fabric.name));
    u.stack.push_back(fabric_entry(s, at + "/fabric", kind));
  }
}

/// Whether the constant is a serving-engine cost of another GPU or architecture.
bool of_another_gpu(std::string_view pointer, const gpu_spec& gpu) {
  for (const std::string_view table : {"/stack/inference/gpus/", "/stack/inference/sustained_factor/"}) {
    if (!pointer.starts_with(table)) continue;
    const std::string_view rest = pointer.substr(table.size());
    const std::string_view entry = rest.substr(0, rest.find('/'));
    if (entry != gpu.name && entry != gpu.architecture && entry != "default") return true;
  }
  return false;
}

used_subtrees subtrees_of(const scenario& s, const run_record& run) {
  const traits t = traits_of(s, run);
  const bool training = std::holds_alternative<training_workload>(s.workload);
  const bool inference = std::holds_alternative<inference_workload>(s.workload);
  used_subtrees u = platform_of(t, training || inference);
  if (training || inference) add_kernels(u, s, t, inference);
  add_collectives(u, s, t);
  if (training) u.stack.emplace_back("/stack/training");
  if (inference) u.stack.emplace_back("/stack/inference");
  return u;
}

}  // namespace

std::vector<input_constant> used_constants(const scenario& s, const run_record& run) {
  const used_subtrees u = subtrees_of(s, run);
  const traits t = traits_of(s, run);
  std::vector<input_constant> out;
  std::set<std::string> kernels_seen;
  const auto kernel_entry = [&](const std::string& entry) {
    const std::string prefix = fmt::format("/stack/kernels/{}/", entry);
    for (const input_constant& c : s.constants) {
      if (!c.pointer.starts_with(prefix)) continue;
      const std::string rest = c.pointer.substr(prefix.size());
      if (under_any(rest, u.groups) && kernels_seen.insert(rest).second) out.push_back(c);
    }
  };
  for (const input_constant& c : s.constants) {
    if (!under_any(c.pointer, u.platform) && !under_any(c.pointer, u.stack)) continue;
    if (under_any(c.pointer,
                  {"/stack/inference/band", "/stack/inference/calibration", "/stack/training/residuals"}))
      continue;  // affects bands, not times
    if (of_another_gpu(c.pointer, s.platform.gpu) || (!t.routed && under(c.pointer, "/stack/training/moe")))
      continue;
    out.push_back(c);
  }
  for (const std::string& e : u.entries) kernel_entry(e);
  return out;
}

}  // namespace nvlsim
