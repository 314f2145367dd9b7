#include "nvlsim/platform/load.hpp"

#include <fmt/format.h>

#include "nvlsim/config/fields.hpp"
#include "nvlsim/config/reader.hpp"
#include "nvlsim/units/units_text.hpp"
#include "platform/checks.hpp"

namespace nvlsim {
namespace {

using config::absent;
using config::field_reader;
using config::positive;
using config::range;
using config::reader;

constexpr range<double> share{1e-6, 1.0};
constexpr range<double> at_least_one{1.0, 1e6};

constexpr range<std::int64_t> count(std::int64_t low, std::int64_t high = 1'000'000) { return {low, high}; }

void read_sources(reader& r) {
  const value* table = r.raw("sources");
  if (!table) return;
  if (!table->members()) {
    r.fail("sources", fmt::format("expected an object, found {}", table->type_name()));
    return;
  }
  reader entries = r.child("sources");
  for (const std::string& k : entries.names()) entries.string(k);
}

/// The precision of that name in "peaks".
std::optional<precision> peak_name(reader& e, const std::string& text) {
  std::vector<std::string> known;
  for (const precision p : all_precisions) known.emplace_back(name(p));
  const auto p = precision_by_name(text);
  if (!p) e.fail("", fmt::format("unknown precision {}", in_quotes(text)), nearest(text, known));
  return p;
}

template <class F, class P>
void list_peak(F f, P& p) {
  f("dense", p.dense, positive);
  f("sparse", p.sparse, positive);
  f("energy", p.energy, positive);
}

template <class F, class G>
void list_gpu_rates(F f, G& g) {
  f("hbm_nominal", g.hbm_nominal, positive);
  f("hbm_usable", g.hbm_usable, positive);
  f("hbm_bandwidth", g.hbm_bandwidth, positive);
  f("hbm_stream", g.hbm_stream, positive);
  f("l2", g.l2);
  f("sm_count", g.sm_count, count(1));
  f("exponentials", g.exponentials, positive);
  f("tdp", g.tdp, positive);
  f("idle_power", g.idle_power);
  f("power_cap", g.power_cap, positive);
  f("hbm_energy", g.hbm_energy);
  f("nvlink", g.nvlink);
  f("nvlink_generation", g.nvlink_generation, count(0, 100));
  f("nvlink_links", g.nvlink_links, count(0, 1024));
  f("c2c", g.c2c, positive);
}

template <class F, class G>
void list_gpu_names(F f, G& g) {
  f("name", g.name);
  f("architecture", g.architecture);
  f("ultra", g.ultra, absent::kept);
}

template <class F, class C>
void list_cpu(F f, C& c) {
  f("name", c.name);
  f("cores", c.cores, count(1));
  f("memory", c.memory, positive);
  f("memory_stream", c.memory_stream, positive);
  f("max_power", c.max_power, positive);
  f("idle_power", c.idle_power);
}

template <class F, class V>
void list_vm(F f, V& v) {
  f("size", v.size);
  f("gpus", v.gpus, count(1, 1024));
  f("cpus", v.cpus, count(0, 1024));
  f("vcpus", v.vcpus, count(0));
  f("memory", v.memory);
  f("nvme", v.nvme);
  f("nvme_read", v.nvme_read);
  f("nvme_write", v.nvme_write);
  f("front_end", v.front_end);
}

template <class F, class K>
void list_rack(F f, K& k) {
  f("vms", k.vms, count(1, 4096));
  f("nvlink_switch_trays", k.nvlink_switch_trays, count(0, 4096));
  f("nvlink_planes", k.nvlink_planes, count(0, 1024));
  f("nvlink_levels", k.nvlink_levels, count(1, 2), absent::kept);
  f("nvlink_switch_ports", k.nvlink_switch_ports, count(0, 4096), absent::kept);
  f("nvlink_switch_latency", k.nvlink_switch_latency, config::non_negative, absent::kept);
  f("mesh_peers", k.mesh_peers, count(0, 1024), absent::kept);
  f("failed_switch_trays", k.failed_switch_trays, count(0, 4096), absent::told);
  f("power_per_vm_other", k.power_per_vm_other);
  f("power_per_switch_tray", k.power_per_switch_tray);
  f("power_supply_efficiency", k.power_supply_efficiency, share);
  f("provisioned_power", k.provisioned_power, positive);
  f("power_cap", k.power_cap, positive);
}

template <class F, class S>
void list_switch(F f, S& s) {
  f("name", s.name);
  f("ports", s.ports, count(4, 65536));
  f("port_bandwidth", s.port_bandwidth, positive);
  f("latency", s.latency);
  f("sharp", s.sharp, absent::told);
}

template <class F, class N>
void list_nic(F f, N& n) {
  f("name", n.name);
  f("nic_bandwidth", n.nic_bandwidth, positive);
  f("gpus_per_nic", n.gpus_per_nic, count(1, 1024), absent::told);
  f("nic_efficiency", n.nic_efficiency, share);
  f("latency", n.latency);
}

template <class F, class N>
void list_fabric(F f, N& n) {
  static const std::array<std::string, 3> routings = {"adaptive", "fixed", "hashed"};
  f("oversubscription", n.oversubscription, at_least_one, absent::told);
  f("pod_gpus", n.pod_gpus, count(0, 1'000'000'000), absent::kept);
  f("pod_oversubscription", n.pod_oversubscription, at_least_one, absent::kept);
  f("sharp", n.sharp, absent::told);
  f("host_driven", n.host_driven, absent::told);
  f("routing", n.routing, routings, absent::told);
  f("rails", n.rails, count(1, 1024), absent::told);
  f("connections", n.connections, count(1, 64), absent::told);
  f("failed_spines", n.failed_spines, count(0, 65536), absent::told);
  f("failed_cables", n.failed_cables, count(0, 65536), absent::told);
}

gpu_spec read_gpu(reader r) {
  gpu_spec g;
  list_gpu_names(field_reader(r), g);
  auto entries = r.children("peaks");
  if (entries.empty() && r.has("peaks")) r.fail("peaks", "a GPU needs the peak of at least one precision");
  for (auto& [text, e] : entries) {
    const auto p = peak_name(e, text);
    if (!p) continue;
    list_peak(field_reader(e), g.peaks[static_cast<std::size_t>(*p)].emplace());
    e.done();
  }
  list_gpu_rates(field_reader(r), g);
  r.done();
  return g;
}

fabric_spec read_fabric(reader r) {
  fabric_spec f;
  list_nic(field_reader(r), f);
  reader leaf = r.child("leaf");
  list_switch(field_reader(leaf), f.leaf);
  leaf.done();
  list_fabric(field_reader(r), f);
  r.done();
  return f;
}

price_spec read_price(reader r) {
  price_spec p;
  p.per_gpu = r.find_quantity<dollar_rate>("per_gpu");
  p.note = r.find_string("note").value_or("");
  r.done();
  return p;
}

/// A struct whose members are all in one list.
template <class T, class List>
T read_all(reader r, List list) {
  T out;
  list(field_reader(r), out);
  r.done();
  return out;
}

/// An object of what `list` has.
template <class T, class List>
value written(const T& x, List list) {
  value out{value::object{}};
  list(config::field_writer(out), x);
  return out;
}

}  // namespace

value write_platform(const platform& p) {
  value gpu{value::object{}}, peaks{value::object{}}, fabric{value::object{}}, out{value::object{}};
  list_gpu_names(config::field_writer(gpu), p.gpu);
  for (const precision x : all_precisions)
    if (const auto& peak = p.gpu.peaks[static_cast<std::size_t>(x)])
      peaks.set(name(x), written(*peak, [](auto f, auto& m) { list_peak(f, m); }));
  gpu.set("peaks", std::move(peaks));
  list_gpu_rates(config::field_writer(gpu), p.gpu);
  list_nic(config::field_writer(fabric), p.fabric);
  fabric.set("leaf", written(p.fabric.leaf, [](auto f, auto& m) { list_switch(f, m); }));
  list_fabric(config::field_writer(fabric), p.fabric);
  out.set("gpu", std::move(gpu));
  if (p.cpu.cores.peek() > 0) out.set("cpu", written(p.cpu, [](auto f, auto& m) { list_cpu(f, m); }));
  out.set("vm", written(p.vm, [](auto f, auto& m) { list_vm(f, m); }));
  out.set("rack", written(p.rack, [](auto f, auto& m) { list_rack(f, m); }));
  out.set("fabric", std::move(fabric));
  if (p.price.per_gpu)
    out.set(
        "price",
        value::object{{"per_gpu", exact_quantity(p.price.per_gpu->peek().base(), dollar_rate::dim_type::value)}});
  return out;
}

platform read_platform(config::document& doc, std::string name, diagnostics& problems) {
  diagnostics reading;
  reader r(doc, reading);
  platform p;
  p.name = std::move(name);
  if (const std::string schema = r.string("schema"); schema != "nvlsim.platform/1" && !schema.empty())
    r.fail("schema", fmt::format("expected \"nvlsim.platform/1\", found {}", in_quotes(schema)));
  r.ignore("base");
  read_sources(r);
  p.description = r.string("description");
  p.racks = r.integer_or("racks", 1, {1, 1'000'000}).as<int>();
  r.require_sources("/platform");
  p.gpu = read_gpu(r.child("gpu"));
  if (auto cpu = r.find_child("cpu")) p.cpu = read_all<cpu_spec>(*cpu, [](auto f, auto& m) { list_cpu(f, m); });
  p.vm = read_all<vm_spec>(r.child("vm"), [](auto f, auto& m) { list_vm(f, m); });
  p.rack = read_all<rack_spec>(r.child("rack"), [](auto f, auto& m) { list_rack(f, m); });
  p.fabric = read_fabric(r.child("fabric"));
  if (auto price = r.find_child("price")) p.price = read_price(*price);
  r.done();
  const constant_recorder derived_ones;  // so that they know their sources
  if (p.rack.power_cap)
    if (const watts share = gpu_share_of(p, *p.rack.power_cap); share < p.gpu.cap() && share > p.gpu.idle_power) {
      if (!p.gpu.power_cap) p.gpu.power_cap.emplace();
      p.gpu.power_cap->derive([&] { return gpu_share_of(p, *p.rack.power_cap); });
    }
  check_platform(p, doc, reading, problems);
  // Every GPU has as many links to each tray.
  if (p.rack.nvlink_switch_trays.peek() > 0)
    p.gpu.nvlink.derive([&] {
      const int trays = p.rack.nvlink_switch_trays;
      return p.gpu.nvlink * (static_cast<double>(std::max(trays - p.rack.failed_switch_trays, 0)) / trays);
    });
  for (const problem& x : reading.sorted()) problems.add(x);
  return p;
}

}  // namespace nvlsim
