#include "nvlsim/output/input_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "nvlsim/output/text.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

using page_rows = std::vector<std::vector<std::string>>;

std::string plural(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string exact(bytes b) { return fmt::format("{:.0f} B", b.base()); }

/// Network rates are given in bits per second.
std::string network_text(bandwidth b) { return fmt::format("{:.4g} Gb/s", b.base() * 8e-9); }

std::string yes_no(bool b) { return b ? "yes" : "no"; }

template <class Q>
std::string or_dash(const std::optional<Q>& q) {
  return q ? format_quantity(*q) : "-";
}

/// Integer formats use OPS, not FLOPS.
std::string peak_text(precision p, const std::optional<flop_rate>& rate) {
  std::string text = or_dash(rate);
  if (p == precision::int8 || p == precision::int4)
    if (const auto at = text.find("FLOPS"); at != std::string::npos) text.erase(at, 2);
  return text;
}

page_rows total_rows(const platform& p, const platform_totals& t) {
  const auto bf16 = p.gpu.dense_peak(precision::bf16);
  return {{"FP4 dense", t.fp4_dense > flop_rate{} ? format_quantity(t.fp4_dense) : "-"},
          {"FP4 with 2:4 sparsity", t.fp4_sparse > flop_rate{} ? format_quantity(t.fp4_sparse) : "-"},
          {"BF16 dense", bf16 ? format_quantity(t.gpus * *bf16) : "-"},
          {"HBM nominal", format_quantity(t.hbm_nominal)},
          {"HBM usable", format_quantity(t.hbm_usable)},
          {"HBM bandwidth", format_quantity(t.gpus * p.gpu.hbm_bandwidth)},
          {"CPU memory", format_quantity(t.lpddr)},
          {"NVMe", format_quantity(t.nvme)},
          {fmt::format("{}, both directions", link_name(p.gpu)), format_quantity(t.nvlink)},
          {"scale-out, one direction", format_quantity(t.gpus * p.fabric.nic_bandwidth)},
          {"maximum power", format_quantity(t.max_power)}};
}

page_rows peak_rows(const gpu_spec& g) {
  page_rows out = {{"precision", "dense", "2:4 sparse", "energy"}};
  for (const precision p : all_precisions)
    if (const auto& peak = g.peaks[static_cast<std::size_t>(p)])
      out.push_back(
          {std::string(name(p)), peak_text(p, peak->dense), peak_text(p, peak->sparse), or_dash(peak->energy)});
  return out;
}

page_rows gpu_rows(const gpu_spec& g) {
  return {{"HBM nominal, data sheet", format_quantity(g.hbm_nominal)},
          {"HBM usable", exact(g.hbm_usable)},
          {"HBM bandwidth, data sheet", format_quantity(g.hbm_bandwidth)},
          {"HBM bandwidth, streaming", format_quantity(g.hbm_stream)},
          {"HBM energy", format_quantity(g.hbm_energy)},
          {"L2", format_quantity(g.l2)},
          {"SMs", std::to_string(g.sm_count)},
          {"exponentials", format_quantity(g.exponentials)}};
}

page_rows link_rows(const platform& p) {
  const gpu_spec& g = p.gpu;
  const int sharing = p.fabric.gpus_per_nic;
  const std::string nic = "NIC of " + network_text(sharing * p.fabric.nic_bandwidth) +
                          (sharing > 1 ? fmt::format(" for {}", plural(sharing, "GPU")) : std::string{});
  const std::string generation = g.nvlink_generation > 0 ? fmt::format(" {}", g.nvlink_generation) : "";
  return {{fmt::format("{}{}, {}", link_name(g), generation, plural(g.nvlink_links, "link")),
           format_quantity(g.nvlink)},
          {"to the CPU", format_quantity(g.c2c)},
          {nic, format_quantity(p.fabric.nic_bandwidth)},
          {"NIC, large messages", format_quantity(p.fabric.nic_bandwidth * p.fabric.nic_efficiency)}};
}

page_rows vm_rows(const platform& p) {
  page_rows out = {{"size", p.vm.size},
                   {"GPUs, CPUs, vCPUs", fmt::format("{}, {}, {}", p.vm.gpus, p.vm.cpus, p.vm.vcpus)},
                   {"guest memory", format_quantity(p.vm.memory)},
                   {"NVMe", format_quantity(p.vm.nvme)},
                   {"NVMe read, write",
                    fmt::format("{}, {}", format_quantity(p.vm.nvme_read), format_quantity(p.vm.nvme_write))},
                   {"front-end Ethernet", network_text(p.vm.front_end)}};
  if (p.vm.cpus == 0) return out;
  out.push_back({"CPU", p.cpu.name});
  out.push_back({"cores per CPU", std::to_string(p.cpu.cores)});
  out.push_back({"memory per CPU", format_quantity(p.cpu.memory)});
  out.push_back({"streaming bandwidth per CPU", format_quantity(p.cpu.memory_stream)});
  return out;
}

page_rows rack_rows(const platform& p) {
  return {{"VMs", std::to_string(p.rack.vms)},
          {"GPUs", std::to_string(p.gpus_per_rack())},
          {fmt::format("{} switch trays", link_name(p.gpu)), std::to_string(p.rack.nvlink_switch_trays)},
          {fmt::format("{} planes", link_name(p.gpu)), std::to_string(p.rack.nvlink_planes)}};
}

std::string level_name(std::size_t level, std::size_t levels) {
  if (levels == 1) return "switches";
  if (level == 0) return "leaf switches";
  if (level + 1 == levels) return "spine switches";
  return levels == 3 ? "middle switches" : fmt::format("switches of level {}", level + 1);
}

page_rows fabric_rows(const fabric_spec& f, const fat_tree& t) {
  page_rows out = {{"switch", f.leaf.name},
                   {"ports", fmt::format("{} of {}", f.leaf.ports, network_text(f.leaf.port_bandwidth))},
                   {"levels", std::to_string(t.levels)}};
  for (std::size_t i = 0; i < t.switches.size(); ++i)
    out.push_back({level_name(i, t.switches.size()), std::to_string(t.switches[i])});
  out.push_back({"cables between switches", std::to_string(t.cables)});
  out.push_back({"oversubscription", fmt::format("{:.4g}", f.oversubscription)});
  if (f.pod_gpus > 0) {
    out.push_back({"GPUs of a pod", std::to_string(f.pod_gpus)});
    out.push_back({"oversubscription of pods", fmt::format("{:.4g}", f.pod_oversubscription)});
  }
  out.push_back({"latency, GPU to GPU", format_quantity(f.latency)});
  out.push_back({"switch latency", format_quantity(f.leaf.latency)});
  out.push_back({"SHARP in the switch", yes_no(f.leaf.sharp)});
  out.push_back({"SHARP used", yes_no(f.sharp)});
  return out;
}

page_rows power_rows(const platform& p, const platform_totals& t) {
  page_rows out = {{"GPU, maximum", format_quantity(p.gpu.tdp)}, {"GPU, idle", format_quantity(p.gpu.idle_power)}};
  if (p.vm.cpus > 0) {
    out.push_back({"CPU, maximum", format_quantity(p.cpu.max_power)});
    out.push_back({"CPU, idle", format_quantity(p.cpu.idle_power)});
  }
  out.push_back({"rest of each VM", format_quantity(p.rack.power_per_vm_other)});
  out.push_back({"switch tray", format_quantity(p.rack.power_per_switch_tray)});
  out.push_back({"power supply efficiency", fmt::format("{:.4g}", p.rack.power_supply_efficiency)});
  out.push_back({"rack, maximum", format_quantity(t.max_power / t.racks)});
  out.push_back({"rack, provisioned", or_dash(p.rack.provisioned_power)});
  return out;
}

page_rows price_rows(const platform& p) {
  if (!p.price.per_gpu) return {{"per GPU", "unknown"}};
  return {{"per GPU", format_quantity(*p.price.per_gpu)},
          {"all GPUs", format_quantity(p.gpus() * *p.price.per_gpu)}};
}

/// The kind of a number's source; "what-if" of a value that the user set over the file.
std::string kind_in(const config::document& doc, const config::provenance& number) {
  return doc.origin_of(number.pointer).overrides ? "what-if" : number.kind;
}

/// Lists each number with the index of its source, then the sources.
std::string provenance_section(const config::document& doc) {
  std::vector<std::string> sources;
  page_rows table = {{"pointer", "value", "kind", "source"}};
  for (const config::provenance& s : doc.sources) {
    auto found = std::find(sources.begin(), sources.end(), s.source);
    if (found == sources.end()) found = sources.insert(sources.end(), s.source);
    table.push_back({s.pointer, s.text, kind_in(doc, s), fmt::format("[{}]", found - sources.begin() + 1)});
  }
  std::string out = "\nProvenance\n" + output::grid(table, 2) + "\nSources\n";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::string label = fmt::format("  {:<5}", fmt::format("[{}]", i + 1));
    for (const std::string& line : output::wrapped(sources[i], output::table_columns - label.size())) {
      out += label + line + "\n";
      label.assign(label.size(), ' ');
    }
  }
  return out;
}

value total_json(const platform& p) {
  const platform_totals t = totals(p);
  const auto whole = [](bytes b) { return static_cast<std::int64_t>(b.base()); };
  return value::object{{"racks", t.racks},
                       {"vms", t.vms},
                       {"gpus", t.gpus},
                       {"cpus", t.cpus},
                       {"nvlink_bandwidth_Bps", t.nvlink.base()},
                       {"hbm_nominal_bytes", whole(t.hbm_nominal)},
                       {"hbm_usable_bytes", whole(t.hbm_usable)},
                       {"lpddr_bytes", whole(t.lpddr)},
                       {"fp4_dense_flops", t.fp4_dense.base()},
                       {"fp4_sparse_flops", t.fp4_sparse.base()},
                       {"scale_out_bandwidth_Bps_per_gpu", p.fabric.nic_bandwidth.base()},
                       {"nvme_bytes", whole(t.nvme)},
                       {"max_power_W", t.max_power.base()}};
}

value gpu_json(const gpu_spec& g) {
  value::object dense, sparse, energy;
  for (const precision p : all_precisions) {
    const auto& peak = g.peaks[static_cast<std::size_t>(p)];
    if (!peak) continue;
    dense.emplace_back(name(p), peak->dense.base());
    if (peak->sparse) sparse.emplace_back(name(p), peak->sparse->base());
    if (peak->energy) energy.emplace_back(name(p), peak->energy->base());
  }
  return value::object{{"name", g.name},
                       {"architecture", g.architecture},
                       {"dense_flops", std::move(dense)},
                       {"sparse_flops", std::move(sparse)},
                       {"energy_J_per_flop", std::move(energy)},
                       {"hbm_nominal_bytes", static_cast<std::int64_t>(g.hbm_nominal.base())},
                       {"hbm_usable_bytes", static_cast<std::int64_t>(g.hbm_usable.base())},
                       {"hbm_bandwidth_Bps", g.hbm_bandwidth.base()},
                       {"hbm_stream_Bps", g.hbm_stream.base()},
                       {"hbm_energy_J_per_byte", g.hbm_energy.base()},
                       {"l2_bytes", static_cast<std::int64_t>(g.l2.base())},
                       {"sm_count", g.sm_count.peek()},
                       {"exponentials_per_s", g.exponentials.base()},
                       {"tdp_W", g.tdp.base()},
                       {"idle_power_W", g.idle_power.base()},
                       {"nvlink_Bps", g.nvlink.base()},
                       {"nvlink_generation", g.nvlink_generation.peek()},
                       {"nvlink_links", g.nvlink_links.peek()},
                       {"c2c_Bps", g.c2c.base()}};
}

value cpu_json(const platform& p) {
  if (p.vm.cpus == 0) return {};
  return value::object{{"name", p.cpu.name},
                       {"cores", p.cpu.cores.peek()},
                       {"memory_bytes", static_cast<std::int64_t>(p.cpu.memory.base())},
                       {"memory_stream_Bps", p.cpu.memory_stream.base()},
                       {"max_power_W", p.cpu.max_power.base()},
                       {"idle_power_W", p.cpu.idle_power.base()}};
}

value vm_json(const vm_spec& v) {
  return value::object{{"size", v.size},
                       {"gpus", v.gpus.peek()},
                       {"cpus", v.cpus.peek()},
                       {"vcpus", v.vcpus.peek()},
                       {"memory_bytes", static_cast<std::int64_t>(v.memory.base())},
                       {"nvme_bytes", static_cast<std::int64_t>(v.nvme.base())},
                       {"nvme_read_Bps", v.nvme_read.base()},
                       {"nvme_write_Bps", v.nvme_write.base()},
                       {"front_end_Bps", v.front_end.base()}};
}

value rack_json(const platform& p) {
  const rack_spec& r = p.rack;
  return value::object{
      {"vms", r.vms.peek()},
      {"gpus", p.gpus_per_rack()},
      {"nvlink_switch_trays", r.nvlink_switch_trays.peek()},
      {"nvlink_planes", r.nvlink_planes.peek()},
      {"power_per_vm_other_W", r.power_per_vm_other.base()},
      {"power_per_switch_tray_W", r.power_per_switch_tray.base()},
      {"power_supply_efficiency", r.power_supply_efficiency.peek()},
      {"provisioned_power_W", r.provisioned_power ? value{r.provisioned_power->base()} : value{}}};
}

value fabric_json(const fabric_spec& f, const fat_tree& t) {
  value::array switches;
  for (const std::int64_t n : t.switches) switches.emplace_back(n);
  return value::object{{"name", f.name},
                       {"nic_bandwidth_Bps", f.nic_bandwidth.base()},
                       {"nic_efficiency", f.nic_efficiency.peek()},
                       {"latency_s", f.latency.base()},
                       {"switch", value::object{{"name", f.leaf.name},
                                                {"ports", f.leaf.ports.peek()},
                                                {"port_bandwidth_Bps", f.leaf.port_bandwidth.base()},
                                                {"latency_s", f.leaf.latency.base()},
                                                {"sharp", f.leaf.sharp}}},
                       {"oversubscription", f.oversubscription.peek()},
                       {"sharp", f.sharp},
                       {"levels", t.levels},
                       {"switches", std::move(switches)},
                       {"cables", t.cables}};
}

value provenance_json(const config::document& doc) {
  value::array out;
  for (const config::provenance& s : doc.sources)
    out.push_back(
        value::object{{"pointer", s.pointer}, {"value", s.text}, {"kind", kind_in(doc, s)}, {"source", s.source}});
  return out;
}

}  // namespace

std::string platform_page(const platform& p, const config::document& doc) {
  const platform_totals t = totals(p);
  std::string out;
  const auto lines = [&](std::string_view text, std::size_t indent) {
    for (const std::string& line : output::wrapped(text, output::table_columns - indent))
      out += std::string(indent, ' ') + line + "\n";
  };
  const auto section = [&](std::string_view title, const page_rows& r) {
    out += fmt::format("\n{}\n", title) + output::grid(r, 2);
  };
  lines(fmt::format("{}: {}", p.name, p.description), 0);
  section(fmt::format("{}, {}, {}, {}", plural(t.racks, "rack"), plural(t.vms, "VM"), plural(t.gpus, "GPU"),
                      plural(t.cpus, "CPU")),
          total_rows(p, t));
  section(fmt::format("Peak rates per GPU, {}", p.gpu.name), peak_rows(p.gpu));
  section("GPU memory and cores", gpu_rows(p.gpu));
  section("Links per GPU, one direction", link_rows(p));
  section("VM", vm_rows(p));
  section(fmt::format("Rack ({} domain)", link_name(p.gpu)), rack_rows(p));
  section(fmt::format("Scale-out fabric, {}, for {}", p.fabric.name, plural(t.gpus, "GPU")),
          fabric_rows(p.fabric, size_fat_tree(p.fabric, t.gpus)));
  section("Power", power_rows(p, t));
  section("Price", price_rows(p));
  lines(p.price.note, 2);
  return out + provenance_section(doc);
}

value platform_json(const platform& p, const config::document& doc) {
  const value price = p.price.per_gpu ? value{p.price.per_gpu->base() * 3600} : value{};
  return value::object{{"schema", "nvlsim.platform_page/1"},
                       {"name", p.name},
                       {"description", p.description},
                       {"totals", total_json(p)},
                       {"gpu", gpu_json(p.gpu)},
                       {"cpu", cpu_json(p)},
                       {"vm", vm_json(p.vm)},
                       {"rack", rack_json(p)},
                       {"fabric", fabric_json(p.fabric, size_fat_tree(p.fabric, p.gpus()))},
                       {"price", value::object{{"usd_per_gpu_hour", price}, {"note", p.price.note}}},
                       {"provenance", provenance_json(doc)}};
}

}  // namespace nvlsim
