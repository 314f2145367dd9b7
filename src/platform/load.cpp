#include "nvlsim/platform/load.hpp"

#include <fmt/format.h>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/units/units_text.hpp"
#include "platform/checks.hpp"

namespace nvlsim {
namespace {

using config::fraction;
using config::non_negative;
using config::positive;
using config::range;
using config::reader;

constexpr range<double> share{1e-6, 1.0};
constexpr range<double> at_least_one{1.0, 1e6};

int count(reader& r, const char* k, int low, int high = 1'000'000) {
  return static_cast<int>(r.integer(k, {low, high}));
}

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

void read_peaks(reader& r, gpu_spec& gpu) {
  std::vector<std::string> known;
  for (const precision p : all_precisions) known.emplace_back(name(p));
  auto entries = r.children("peaks");
  if (entries.empty() && r.has("peaks")) r.fail("peaks", "a GPU needs a peak for at least one precision");
  for (auto& [text, e] : entries) {
    const auto p = precision_by_name(text);
    if (!p) {
      e.fail("", fmt::format("unknown precision {}", in_quotes(text)), nearest(text, known));
      continue;
    }
    peak_rate peak;
    peak.dense = e.quantity<flop_rate>("dense", positive);
    peak.sparse = e.find_quantity<flop_rate>("sparse", positive);
    peak.energy = e.find_quantity<energy_per_flop>("energy", positive);
    e.done();
    gpu.peaks[static_cast<std::size_t>(*p)] = peak;
  }
}

gpu_spec read_gpu(reader r) {
  gpu_spec g;
  g.name = r.string("name");
  g.architecture = r.string("architecture");
  if (r.has("ultra")) g.ultra = r.boolean("ultra");
  read_peaks(r, g);
  g.hbm_nominal = r.quantity<bytes>("hbm_nominal", positive);
  g.hbm_usable = r.quantity<bytes>("hbm_usable", positive);
  g.hbm_bandwidth = r.quantity<bandwidth>("hbm_bandwidth", positive);
  g.hbm_stream = r.quantity<bandwidth>("hbm_stream", positive);
  g.l2 = r.quantity<bytes>("l2");
  g.sm_count = count(r, "sm_count", 1);
  g.exponentials = r.quantity<rate>("exponentials", positive);
  g.tdp = r.quantity<watts>("tdp", positive);
  g.idle_power = r.quantity<watts>("idle_power");
  g.power_cap = r.find_quantity<watts>("power_cap", positive);
  g.hbm_energy = r.quantity<energy_per_byte>("hbm_energy");
  g.nvlink = r.quantity<bandwidth>("nvlink");
  g.nvlink_generation = count(r, "nvlink_generation", 0, 100);
  g.nvlink_links = count(r, "nvlink_links", 0, 1024);
  g.c2c = r.quantity<bandwidth>("c2c");
  r.done();
  return g;
}

cpu_spec read_cpu(reader r) {
  cpu_spec c;
  c.name = r.string("name");
  c.cores = count(r, "cores", 1);
  c.memory = r.quantity<bytes>("memory", positive);
  c.memory_stream = r.quantity<bandwidth>("memory_stream", positive);
  c.max_power = r.quantity<watts>("max_power", positive);
  c.idle_power = r.quantity<watts>("idle_power");
  r.done();
  return c;
}

vm_spec read_vm(reader r) {
  vm_spec v;
  v.size = r.string("size");
  v.gpus = count(r, "gpus", 1, 1024);
  v.cpus = count(r, "cpus", 0, 1024);
  v.vcpus = count(r, "vcpus", 0);
  v.memory = r.quantity<bytes>("memory");
  v.nvme = r.quantity<bytes>("nvme");
  v.nvme_read = r.quantity<bandwidth>("nvme_read");
  v.nvme_write = r.quantity<bandwidth>("nvme_write");
  v.front_end = r.quantity<bandwidth>("front_end");
  r.done();
  return v;
}

rack_spec read_rack(reader r) {
  rack_spec k;
  k.vms = count(r, "vms", 1, 4096);
  k.nvlink_switch_trays = count(r, "nvlink_switch_trays", 0, 4096);
  k.nvlink_planes = count(r, "nvlink_planes", 0, 1024);
  k.failed_switch_trays = static_cast<int>(r.integer_or("failed_switch_trays", 0, {0, 4096}));
  k.power_per_vm_other = r.quantity<watts>("power_per_vm_other");
  k.power_per_switch_tray = r.quantity<watts>("power_per_switch_tray");
  k.power_supply_efficiency = r.number("power_supply_efficiency", share);
  k.provisioned_power = r.find_quantity<watts>("provisioned_power", positive);
  k.power_cap = r.find_quantity<watts>("power_cap", positive);
  r.done();
  return k;
}

fabric_spec read_fabric(reader r) {
  fabric_spec f;
  f.name = r.string("name");
  f.nic_bandwidth = r.quantity<bandwidth>("nic_bandwidth", positive);
  f.gpus_per_nic = static_cast<int>(r.integer_or("gpus_per_nic", 1, {1, 1024}));
  f.nic_efficiency = r.number("nic_efficiency", share);
  f.latency = r.quantity<seconds>("latency");
  reader leaf = r.child("leaf");
  f.leaf.name = leaf.string("name");
  f.leaf.ports = count(leaf, "ports", 4, 65536);
  f.leaf.port_bandwidth = leaf.quantity<bandwidth>("port_bandwidth", positive);
  f.leaf.latency = leaf.quantity<seconds>("latency");
  f.leaf.sharp = leaf.boolean_or("sharp", false);
  leaf.done();
  f.oversubscription = r.number_or("oversubscription", 1.0, at_least_one);
  f.sharp = r.boolean_or("sharp", false);
  f.host_driven = r.boolean_or("host_driven", false);
  static const std::array<std::string, 3> routings = {"adaptive", "fixed", "hashed"};
  f.routing = static_cast<fabric_routing>(r.one_of_or("routing", routings, 0));
  f.rails = static_cast<int>(r.integer_or("rails", 1, {1, 1024}));
  f.connections = static_cast<int>(r.integer_or("connections", 1, {1, 64}));
  f.failed_spines = static_cast<int>(r.integer_or("failed_spines", 0, {0, 65536}));
  f.failed_cables = static_cast<int>(r.integer_or("failed_cables", 0, {0, 65536}));
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

}  // namespace

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
  p.racks = static_cast<int>(r.integer_or("racks", 1, {1, 1'000'000}));
  r.require_sources();
  p.gpu = read_gpu(r.child("gpu"));
  if (auto cpu = r.find_child("cpu")) p.cpu = read_cpu(*cpu);
  p.vm = read_vm(r.child("vm"));
  p.rack = read_rack(r.child("rack"));
  p.fabric = read_fabric(r.child("fabric"));
  if (auto price = r.find_child("price")) p.price = read_price(*price);
  r.done();
  if (p.rack.power_cap)
    if (const watts share = gpu_share_of(p, *p.rack.power_cap); share < p.gpu.cap() && share > p.gpu.idle_power)
      p.gpu.power_cap = share;
  check_platform(p, doc, reading, problems);
  // Every GPU has the same number of links to each tray.
  if (const int trays = p.rack.nvlink_switch_trays; trays > 0)
    p.gpu.nvlink = p.gpu.nvlink * (static_cast<double>(std::max(trays - p.rack.failed_switch_trays, 0)) / trays);
  for (const problem& x : reading.sorted()) problems.add(x);
  return p;
}

}  // namespace nvlsim
