#include "platform/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

struct check {
  bool wrong = false;
  std::string pointer;  // the field to blame
  std::string other;    // the field it contradicts, or ""
  std::string what;
};

template <class Q>
check at_most(std::string pointer, Q x, std::string other, Q limit) {
  std::string what = fmt::format("{} is more than {} ({})", format_quantity(x), other, format_quantity(limit));
  return {x > limit, std::move(pointer), std::move(other), std::move(what)};
}

std::vector<check> gpu_checks(const gpu_spec& g) {
  std::vector<check> out;
  for (const precision p : all_precisions) {
    const auto& peak = g.peaks[static_cast<std::size_t>(p)];
    if (!peak || !peak->sparse) continue;
    const std::string here = pointer_to("/gpu/peaks", name(p));
    out.push_back({*peak->sparse < peak->dense, here + "/sparse", here + "/dense",
                   fmt::format("{} is less than the dense peak ({})", format_quantity(*peak->sparse),
                               format_quantity(peak->dense))});
  }
  // Vendors write GB where nvidia-smi counts GiB, so the usable memory may exceed the nominal one by that factor.
  constexpr double gib_over_gb = 1.073741824;
  check usable = at_most("/gpu/hbm_usable", g.hbm_usable, "/gpu/hbm_nominal", g.hbm_nominal);
  usable.wrong = g.hbm_usable > g.hbm_nominal * (gib_over_gb * (1 + 1e-9));
  usable.what += ", even read as GiB";
  out.push_back(std::move(usable));
  out.push_back(at_most("/gpu/hbm_stream", g.hbm_stream, "/gpu/hbm_bandwidth", g.hbm_bandwidth));
  out.push_back(
      {g.idle_power >= g.tdp, "/gpu/idle_power", "/gpu/tdp",
       fmt::format("{} is not less than /gpu/tdp ({})", format_quantity(g.idle_power), format_quantity(g.tdp))});
  out.push_back({g.power_cap && g.idle_power >= *g.power_cap, "/gpu/idle_power", "/gpu/power_cap",
                 fmt::format("{} is not less than /gpu/power_cap ({})", format_quantity(g.idle_power),
                             format_quantity(g.cap()))});
  const bool rate = g.nvlink > bandwidth{};
  out.push_back({rate != (g.nvlink_links > 0), "/gpu/nvlink", "/gpu/nvlink_links",
                 fmt::format("{} over {} links", format_quantity(g.nvlink), g.nvlink_links)});
  return out;
}

/// Ports of the switch ASIC of racks with NVLink 5 and later, for platforms that do not say it. Assumed, as in
/// gb300-nvl144: trays of 2 ASICs connect 72 GPUs in 18 planes.
constexpr int usual_switch_ports = 72;

int switch_ports(const platform& p) {
  const int stated = p.rack.nvlink_switch_ports;
  const bool rack = p.rack.nvlink_switch_trays > 0 && p.gpu.nvlink_generation >= 5;
  return stated == 0 && rack ? usual_switch_ports : stated;
}

/// Switches of a domain: as many ports as GPUs, and trays for all of them.
std::vector<check> switch_checks(const platform& p) {
  const rack_spec& k = p.rack;
  const int gpus = k.vms * p.vm.gpus, ports = switch_ports(p);
  const std::int64_t switches = nvlink_switches(k, gpus), trays = k.nvlink_switch_trays;
  const std::int64_t reach = k.nvlink_levels < 2 ? ports : static_cast<std::int64_t>(ports) * ports / 2;
  std::vector<check> out;
  out.push_back(
      {trays > switches, "/rack/nvlink_switch_trays", "/rack/nvlink_planes",
       k.nvlink_levels < 2
           ? fmt::format("{} switch trays for {} planes; each tray holds at least one plane", trays, switches)
           : fmt::format("{} switch trays for {} switches; each tray holds at least one", trays, switches)});
  out.push_back(
      {ports > 0 && k.nvlink_planes > 0 && gpus > reach, "/rack/vms", "/rack/nvlink_switch_ports",
       fmt::format("{} VMs hold {} GPUs, but a plane of {} {} of {} ports reaches {}; {}", k.vms, gpus,
                   k.nvlink_levels, k.nvlink_levels < 2 ? "level" : "levels", ports, reach,
                   k.nvlink_levels < 2
                       ? fmt::format("two levels (/rack/nvlink_levels, with their ports and the trays that "
                                     "they take: /rack/nvlink_switch_ports and "
                                     "/rack/nvlink_switch_trays) reach {}",
                                     static_cast<std::int64_t>(ports) * ports / 2)
                       : "no third level is modelled")});
  constexpr std::int64_t switches_of_tray = 4;  // the most that a tray of a shipped platform holds
  const std::int64_t needed = (switches + switches_of_tray - 1) / switches_of_tray;
  out.push_back(
      {ports > 0 && k.nvlink_levels > 1 && gpus <= reach && trays > 0 && trays < needed,
       "/rack/nvlink_switch_trays", "/rack/vms",
       fmt::format("{} switch trays, but {} planes for {} GPUs in {} levels take {} switches, at most {} a "
                   "tray: {}",
                   trays, k.nvlink_planes, gpus, k.nvlink_levels, switches, switches_of_tray, needed)});
  out.push_back(
      {k.mesh_peers >= gpus && k.mesh_peers > 0, "/rack/mesh_peers", "/rack/vms",
       fmt::format("a GPU has links to {} others, but its domain has only {} GPUs", k.mesh_peers, gpus)});
  const bool mesh = k.nvlink_planes == 0 && k.mesh_peers == 0 && p.gpu.nvlink_links > 0;
  out.push_back({mesh && gpus - 1 > p.gpu.nvlink_links, "/rack/vms", "/gpu/nvlink_links",
                 fmt::format("{} GPUs without switches need a link to each of {} others, but a GPU has only {} "
                             "(/rack/mesh_peers says that it has links to some of them)",
                             gpus, gpus - 1, p.gpu.nvlink_links)});
  return out;
}

std::vector<check> rack_checks(const platform& p, bool has_cpu) {
  std::vector<check> out;
  out.push_back({p.rack.nvlink_planes > p.gpu.nvlink_links, "/rack/nvlink_planes", "/gpu/nvlink_links",
                 fmt::format("{} planes, but a GPU has only {} links; it needs at least one to each plane",
                             p.rack.nvlink_planes, p.gpu.nvlink_links)});
  for (check& c : switch_checks(p)) out.push_back(std::move(c));
  out.push_back({p.rack.failed_switch_trays > 0 && p.rack.failed_switch_trays >= p.rack.nvlink_switch_trays,
                 "/rack/failed_switch_trays", "/rack/nvlink_switch_trays",
                 fmt::format("{} of {} switch trays failed; at least one must be left", p.rack.failed_switch_trays,
                             p.rack.nvlink_switch_trays)});
  out.push_back({!has_cpu && p.vm.cpus > 0, "/vm/cpus", "",
                 fmt::format("{} CPUs, but the platform has no \"cpu\"", p.vm.cpus)});
  if (has_cpu) out.push_back(at_most("/cpu/idle_power", p.cpu.idle_power, "/cpu/max_power", p.cpu.max_power));
  const double gpus = static_cast<double>(p.racks) * p.rack.vms * p.vm.gpus;
  out.push_back({gpus > max_gpus, "/racks", "/rack/vms", fmt::format("{} GPUs are more than {}", gpus, max_gpus)});
  out.push_back({p.fabric.gpus_per_nic > p.vm.gpus, "/fabric/gpus_per_nic", "/vm/gpus",
                 fmt::format("{} GPUs share a NIC, but a VM has {}", p.fabric.gpus_per_nic, p.vm.gpus)});
  out.push_back({p.fabric.sharp && !p.fabric.leaf.sharp, "/fabric/sharp", "/fabric/leaf/sharp",
                 "the switch has no in-network reduction (/fabric/leaf/sharp)"});
  if (p.rack.power_cap)
    out.push_back(
        {gpu_share_of(p, *p.rack.power_cap) <= p.gpu.idle_power, "/rack/power_cap", "/gpu/idle_power",
         fmt::format("{} leaves {} for each GPU after CPUs, trays and switches, which is not more than its idle "
                     "power ({})",
                     format_quantity(*p.rack.power_cap), format_quantity(gpu_share_of(p, *p.rack.power_cap)),
                     format_quantity(p.gpu.idle_power))});
  return out;
}

/// Whether a problem is at `pointer` or at a parent of it.
bool mentioned(const std::vector<problem>& problems, std::string_view pointer) {
  return std::any_of(problems.begin(), problems.end(), [&](const problem& p) {
    return pointer.starts_with(p.pointer) &&
           (pointer.size() == p.pointer.size() || pointer[p.pointer.size()] == '/');
  });
}

/// A source without spaces is a key of the "sources" table, or what stands there under a key. Keys that were not
/// replaced do not exist there.
void check_sources(const config::document& doc, diagnostics& problems) {
  std::vector<std::string> keys, texts;
  if (const value* table = doc.root.find("sources"); table && table->members())
    for (const auto& [key, text] : *table->members()) {
      keys.push_back(key);
      if (text.string()) texts.push_back(*text.string());
    }
  for (const config::provenance& s : doc.sources) {
    if (std::find(texts.begin(), texts.end(), s.source) != texts.end()) continue;
    if (s.source.find(' ') != std::string::npos || s.source.find("://") != std::string::npos) continue;
    problems.add(doc.origin_of(s.pointer).where, s.pointer,
                 fmt::format("source {} is not in the \"sources\" table", in_quotes(s.source)),
                 nearest(s.source, keys));
  }
}

}  // namespace

void check_platform(const platform& p, const config::document& doc, const diagnostics& reading,
                    diagnostics& problems) {
  const std::vector<problem> before = reading.sorted();
  std::vector<check> checks = gpu_checks(p.gpu);
  const value* cpu = doc.root.find("cpu");
  for (check& c : rack_checks(p, cpu && !cpu->is_null())) checks.push_back(std::move(c));
  for (check& c : checks)
    if (c.wrong && !mentioned(before, c.pointer) && (c.other.empty() || !mentioned(before, c.other)))
      problems.add(doc.origin_of(c.pointer).where, c.pointer, std::move(c.what));
  check_sources(doc, problems);
}

}  // namespace nvlsim
