// The shipped catalogue: which machines there are, their totals, and what their variants and overrides change.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/platforms.hpp"

using namespace nvlsim;
using nvlsim::test::read_shipped;

namespace {

const std::string folder = NVLSIM_SOURCE_DIR "/platforms";

struct machine {
  const char* name;
  int vms, gpus, cpus;      // of a rack (an NVLink domain)
  double nvlink;            // TB/s, both directions
  double hbm, lpddr, nvme;  // TB
  double fp4, fp4_sparse;   // PFLOPS
  double nics;              // Tb/s, one direction
};

// Worked out by hand from the vendors' figures.
const std::vector<machine> machines = {
    {"gb300-nvl72", 18, 72, 36, 129.6, 20.736, 17.28, 288, 1080, 1440, 57.6},
    {"gb200-nvl72", 18, 72, 36, 129.6, 13.392, 17.28, 288, 720, 1440, 28.8},
    {"vera-rubin-nvl72", 18, 72, 36, 259.2, 20.736, 54, 288, 2520, 0, 115.2},
    {"hgx-b300", 1, 8, 2, 14.4, 2.16, 2.048, 30.72, 112, 144, 6.4},
    {"hgx-b200", 1, 8, 2, 14.4, 1.44, 2.048, 30.72, 72, 144, 3.2},
    {"nd-h200-v5", 1, 8, 2, 7.2, 1.128, 1.85, 30.786325577728, 0, 0, 3.2},
    {"nd-h100-v5", 1, 8, 2, 7.2, 0.64, 1.9, 30.786325577728, 0, 0, 3.2},
    {"h800", 1, 8, 2, 3.2, 0.64, 1.9, 30.786325577728, 0, 0, 3.2},
    {"h200-nvl", 1, 4, 2, 3.6, 0.564, 1.85, 30.786325577728, 0, 0, 1.6},
    {"gh200", 1, 1, 1, 0.9, 0.144, 0.48, 3.84, 0, 0, 0.4},
    {"ndm-a100-v4", 1, 8, 2, 4.8, 0.64, 2.0401094656, 6.8719476736, 0, 0, 1.6},
    {"nd-a100-v4", 1, 8, 2, 4.8, 0.32, 0.9663676416, 6.442450944, 0, 0, 1.6},
    {"nd40rs-v2", 1, 8, 2, 2.4, 0.256, 0.721554505728, 3.165390897152, 0, 0, 0.1},
    {"nd24rs", 1, 4, 2, 0, 0.096, 0.481036337152, 3.165390897152, 0, 0, 0.056},
    {"nd6", 1, 1, 1, 0, 0.016, 0.120259084288, 0.790273982464, 0, 0, 0.056},
    {"nd12", 1, 2, 1, 0.2, 0.032, 0.240518168576, 1.582695448576, 0, 0, 0.056},
    {"nd24", 1, 4, 2, 0.8, 0.064, 0.481036337152, 3.165390897152, 0, 0, 0.056},
    {"mi300x-v5", 1, 8, 2, 7.168, 1.536, 1.85, 30.786325577728, 0, 0, 3.2},
    {"mi325x", 1, 8, 2, 7.168, 2.048, 1.85, 30.786325577728, 0, 0, 3.2},
    {"mi355x", 1, 8, 2, 8.6016, 2.304, 1.85, 30.786325577728, 80.8, 0, 3.2},
    {"h20", 1, 8, 2, 7.2, 0.768, 1.9, 30.786325577728, 0, 0, 3.2},
    {"l40s", 1, 8, 2, 0, 0.384, 1.024, 7.68, 0, 0, 0.8},
    {"l20", 1, 8, 2, 0, 0.384, 1.024, 7.68, 0, 0, 0.8},
    {"rtx3090", 1, 8, 2, 0, 0.192, 1.024, 7.68, 0, 0, 0.8},
    {"rtx4090", 1, 8, 2, 0, 0.192, 1.024, 7.68, 0, 0, 0.8},
    {"rtx5090", 1, 8, 2, 0, 0.256, 1.024, 7.68, 13.408, 0, 0.8},
    {"rtx-a5000", 1, 8, 2, 0, 0.192, 1.024, 7.68, 0, 0, 0.8},
    {"gb300-nvl144", 36, 144, 72, 259.2, 41.472, 34.56, 576, 2160, 2880, 115.2},
    {"gb300-nvl576", 144, 576, 288, 1036.8, 165.888, 138.24, 2304, 8640, 11520, 460.8},
    {"vera-rubin-nvl144", 36, 144, 72, 518.4, 41.472, 108, 576, 5040, 0, 230.4},
};

// Variant, base, fabric, NIC of a GPU in Gb/s.
struct variant {
  const char *name, *base, *fabric;
  double nic;
  bool sharp;
};
const std::vector<variant> variants = {
    {"h100-efa", "nd-h100-v5", "efa-3200", 400, false},
    {"h100-tcpxo", "nd-h100-v5", "tcpxo", 200, false},
    {"h100-roce", "nd-h100-v5", "roce-400", 400, false},
    {"h100-spectrum-x", "nd-h100-v5", "spectrum-x", 400, false},
    {"h100-ndr-sharp", "nd-h100-v5", "quantum-2", 400, true},
    {"b200-ndr-sharp", "hgx-b200", "quantum-2", 400, true},
    {"b200-roce", "hgx-b200", "roce-400", 400, false},
    {"a100-hdr-sharp", "nd-a100-v4", "hdr-sharp", 100, true},
    {"a100-roce", "nd-a100-v4", "roce-a100", 200, false},
    {"v100-p3dn", "nd40rs-v2", "efa-100", 12.5, false},
    {"gb300-roce", "gb300-nvl72", "roce-gb300", 800, false},
    {"gb200-x800", "gb200-nvl72", "quantum-x800", 400, false},
    {"gb300-400g", "gb300-nvl72", "quantum-x800", 400, false},
};

/// `/systems/NAME` of the hardware facts beside the source tree; nothing when they are not there.
const value* facts(const std::string& system) {
  static const config::document doc = [] {
    const std::filesystem::path file = std::filesystem::path(NVLSIM_SOURCE_DIR) / "../shared/data/hardware.json";
    diagnostics problems;
    return std::filesystem::exists(file) ? config::load(file, {"facts", "facts"}, problems) : config::document{};
  }();
  return doc.root.at_pointer("/systems/" + system);
}

std::optional<double> number_at(const value& v, const std::string& pointer) {
  const value* x = v.at_pointer(pointer);
  if (!x) return {};
  if (x->integer()) return static_cast<double>(*x->integer());
  return x->number() ? std::optional(*x->number()) : std::nullopt;
}

}  // namespace

TEST_CASE("Catalogue is complete") {
  std::set<std::string> expected;
  for (const machine& m : machines) expected.insert(m.name);
  for (const variant& v : variants) expected.insert(v.name);
  const auto names = config::names_in(folder);
  CHECK(std::set<std::string>(names.begin(), names.end()) == expected);
}

TEST_CASE("Catalogue totals agree with sums done by hand") {
  for (const machine& m : machines) {
    CAPTURE(m.name);
    const platform p = read_shipped(m.name).p;
    const platform_totals t = totals(p);
    CHECK(t.vms == m.vms);
    CHECK(t.gpus == m.gpus);
    CHECK(t.cpus == m.cpus);
    CHECK(t.nvlink.base() == Approx(m.nvlink * 1e12));
    CHECK(t.hbm_nominal.base() == Approx(m.hbm * 1e12));
    CHECK(t.lpddr.base() == Approx(m.lpddr * 1e12));
    CHECK(t.nvme.base() == Approx(m.nvme * 1e12));
    CHECK(t.fp4_dense.base() == Approx(m.fp4 * 1e15));
    CHECK(t.fp4_sparse.base() == Approx(m.fp4_sparse * 1e15));
    CHECK((t.gpus * p.fabric.nic_bandwidth).base() * 8 == Approx(m.nics * 1e12));
  }
}

TEST_CASE("Catalogue agrees with the hardware facts it was made from") {
  if (!facts("gb300_nvl72")) return;
  const std::vector<std::pair<const char*, const char*>> pairs = {{"gb300-nvl72", "gb300_nvl72"},
                                                                  {"gb200-nvl72", "gb200_nvl72"},
                                                                  {"hgx-b300", "hgx_b300"},
                                                                  {"hgx-b200", "hgx_b200"},
                                                                  {"nd-h200-v5", "hgx_h200_azure_nd_h200_v5"},
                                                                  {"nd-h100-v5", "hgx_h100_azure_nd_h100_v5"},
                                                                  {"ndm-a100-v4", "a100_80_azure_ndm_a100_v4"},
                                                                  {"nd-a100-v4", "a100_40_azure_nd_a100_v4"},
                                                                  {"nd40rs-v2", "v100_azure_nd40rs_v2"},
                                                                  {"nd24rs", "p40_azure_nd24rs"},
                                                                  {"mi300x-v5", "mi300x_azure_nd_mi300x_v5"},
                                                                  {"vera-rubin-nvl72", "vera_rubin_nvl72"}};
  for (const auto& [name, system] : pairs) {
    const platform p = read_shipped(name).p;
    REQUIRE(facts(system));
    int compared = 0;
    const auto same = [&](const char* pointer, double ours) {
      const auto theirs = number_at(*facts(system), pointer);
      if (!theirs) return;
      CAPTURE(name, pointer);
      CHECK(ours == Approx(*theirs));
      ++compared;
    };
    const auto peak = [&](precision f) { return p.gpu.peak(f) ? p.gpu.peak(f)->dense.base() / 1e12 : 0; };
    const auto sparse = [&](precision f) {
      return p.gpu.peak(f) && p.gpu.peak(f)->sparse ? p.gpu.peak(f)->sparse->base() / 1e12 : 0;
    };
    same("/gpu/fp4_dense_tflops", peak(precision::nvfp4));
    same("/gpu/fp4_sparse_tflops", sparse(precision::nvfp4));
    same("/gpu/fp8_dense_tflops", peak(precision::fp8));
    same("/gpu/fp8_sparse_tflops", sparse(precision::fp8));
    same("/gpu/int8_dense_tops", peak(precision::int8));
    same("/gpu/bf16_dense_tflops", peak(precision::bf16));
    same("/gpu/bf16_sparse_tflops", sparse(precision::bf16));
    same("/gpu/fp16_tensor_dense_tflops", peak(precision::fp16));
    same("/gpu/tf32_dense_tflops", peak(precision::tf32));
    same("/gpu/fp32_tflops", peak(precision::fp32));
    same("/gpu/hbm_nominal_gb", p.gpu.hbm_nominal.base() / 1e9);
    same("/gpu/mem_nominal_gb", p.gpu.hbm_nominal.base() / 1e9);
    same("/gpu/hbm_peak_gbytes_per_s", p.gpu.hbm_bandwidth.base() / 1e9);
    same("/gpu/mem_peak_gbytes_per_s", p.gpu.hbm_bandwidth.base() / 1e9);
    same("/gpu/tdp_w", p.gpu.tdp.base());
    same("/gpu/nvlink_per_dir_gbytes_per_s", p.gpu.nvlink.base() / 1e9);
    same("/gpu/nvlink_links_count", p.gpu.nvlink_links);
    same("/gpu/nvlink_generation", p.gpu.nvlink_generation);
    same("/gpu/scaleout_nic_gbit_per_s", p.fabric.nic_bandwidth.base() * 8 / 1e9);
    same("/gpu/gpus_per_node_count", p.vm.gpus);
    same("/vm/vcpus_count", p.vm.vcpus);
    same("/vm/memory_gib", p.vm.memory.base() / 1073741824.0);
    same("/vm/frontend_gbit_per_s", p.vm.front_end.base() * 8 / 1e9);
    same("/vm/ib_per_vm_gbit_per_s", p.vm.gpus * p.fabric.nic_bandwidth.base() * 8 / 1e9);
    same("/vm/local_nvme_tib", p.vm.nvme.base() / 1099511627776.0);
    same("/vm/temp_disk_gib", p.vm.nvme.base() / 1073741824.0);
    same("/rack/gpus_count", p.gpus_per_rack());
    same("/cpu/cores_count", p.cpu.cores);
    if (p.price.per_gpu) same("/price/usd_per_gpu_hour", p.price.per_gpu->base() * 3600);
    CAPTURE(name, compared);
    CHECK(compared >= 5);
  }
}

TEST_CASE("Catalogue servers draw at most what their makers state") {
  for (const auto& [name, kilowatts] : std::vector<std::pair<const char*, double>>{{"hgx-b300", 14.5},
                                                                                   {"hgx-b200", 14.3},
                                                                                   {"nd-h100-v5", 10.2},
                                                                                   {"ndm-a100-v4", 6.5},
                                                                                   {"nd40rs-v2", 3.5}}) {
    CAPTURE(name);
    const platform p = read_shipped(name).p;
    CHECK(totals(p).max_power.base() == Approx(kilowatts * 1e3).epsilon(0.01));
    CHECK(p.rack.provisioned_power->base() == Approx(kilowatts * 1e3));
  }
}

TEST_CASE("Catalogue variants change the fabric of their base and nothing else of the machine") {
  for (const variant& v : variants) {
    CAPTURE(v.name);
    const auto r = read_shipped(v.name), base = read_shipped(v.base);
    CHECK(r.p.fabric.name == v.fabric);
    CHECK(r.p.fabric.nic_bandwidth.base() * 8e-9 == Approx(v.nic));
    CHECK(r.p.fabric.sharp == v.sharp);
    for (const char* part : {"gpu", "cpu", "vm", "rack"})
      CHECK(*r.doc.root.find(part) == *base.doc.root.find(part));
    CHECK_FALSE(*r.doc.root.find("fabric") == *base.doc.root.find("fabric"));
    CHECK(r.p.description != base.p.description);
  }
}

TEST_CASE("Catalogue has a machine for every fabric and GPU that the shipped stacks measured") {
  std::set<std::string> fabrics, gpus;
  for (const std::string& name : config::names_in(folder)) {
    const platform p = read_shipped(name).p;
    fabrics.insert(p.fabric.name);
    gpus.insert({p.gpu.name, p.gpu.architecture});
  }
  diagnostics problems;
  const auto collectives =
      config::load_named(folder + "/stacks/collectives", {"stack", "nccl-2.29", {}}, problems);
  const auto kernels =
      config::load_named(folder + "/stacks/kernels", {"stack", "tensorrt-llm-1.3-kernels", {}}, problems);
  for (const auto& [name, parameters] : *collectives.root.at_pointer("/collectives/fabric")->members()) {
    CAPTURE(name);
    CHECK((name == "default" || fabrics.contains(name)));
  }
  for (const auto& [name, parameters] : *kernels.root.find("kernels")->members()) {
    CAPTURE(name);
    CHECK((name == "default" || gpus.contains(name)));
  }
}

TEST_CASE("NVLink domain of 144 GPUs is an override of the rack") {
  diagnostics problems;
  config::document doc = config::load_named(folder, {"platform", "gb300-nvl72", {}}, problems);
  config::override_value(doc, "/rack/vms", value{36}, {"--set", "--set"}, problems);
  config::override_value(doc, "/rack/nvlink_levels", value{2}, {"--set", "--set"}, problems);
  config::override_value(doc, "/rack/nvlink_switch_ports", value{72}, {"--set", "--set"}, problems);
  config::override_value(doc, "/rack/nvlink_switch_trays", value{54}, {"--set", "--set"}, problems);
  const platform p = read_platform(doc, "gb300-nvl72", problems);
  CHECK(problems.sorted().empty());
  CHECK(p.gpus_per_rack() == 144);
  const platform_totals t = totals(p);
  CHECK(t.gpus == 144);
  CHECK(t.nvlink.base() == Approx(144 * 1.8e12));
  CHECK(t.max_power > totals(read_shipped("gb300-nvl72").p).max_power * 2.0);  // 54 trays, not 18
  CHECK(size_fat_tree(p.fabric, 32 * p.gpus_per_rack()).switches == std::vector<std::int64_t>{64, 32});
}

TEST_CASE("NVLink domains beyond the ports of a switch count the switches and trays of two levels") {
  const auto refused = [](const char* pointer, int n) {
    diagnostics problems;
    config::document doc = config::load_named(folder, {"platform", "gb300-nvl144", {}}, problems);
    config::override_value(doc, pointer, value{n}, {"--set", "--set"}, problems);
    read_platform(doc, "gb300-nvl144", problems);
    const auto found = problems.sorted();
    return found.empty() ? std::string() : found.front().pointer + ": " + found.front().what;
  };
  const platform p = read_shipped("gb300-nvl144").p;
  // Four leaves with 36 GPUs each and 36 up-links, 144 of them, on two spines of 72 ports: six in each of 18
  // planes.
  CHECK(nvlink_switches(p.rack, p.gpus_per_rack()) == 18 * 6);
  const platform large = read_shipped("gb300-nvl576").p;
  CHECK(nvlink_switches(large.rack, large.gpus_per_rack()) == 18 * (16 + 8));
  const platform rack = read_shipped("gb300-nvl72").p;
  CHECK(nvlink_switches(rack.rack, rack.gpus_per_rack()) == 18);
  CHECK(refused("/rack/nvlink_switch_trays", 54).empty());
  CHECK(refused("/rack/nvlink_switch_trays", 9).find("108 switches") != std::string::npos);
  CHECK_FALSE(refused("/rack/nvlink_levels", 1).empty());
  CHECK(refused("/rack/vms", 700).find("reaches 2592") != std::string::npos);
}

TEST_CASE("A domain of one level has no more GPUs than a switch has ports, nor a mesh more than links") {
  const auto problem_of = [](const std::string& name, int vms) {
    diagnostics problems;
    config::document doc = config::load_named(folder, {"platform", name, {}}, problems);
    config::override_value(doc, "/rack/vms", value{vms}, {"--set", "--set"}, problems);
    read_platform(doc, name, problems);
    const auto found = problems.sorted();
    return found.empty() ? std::string() : found.front().pointer + ": " + found.front().what;
  };
  for (const char* name : {"gb200-nvl72", "gb300-nvl72", "gb300-roce", "vera-rubin-nvl72"}) {
    INFO(name);
    CHECK(problem_of(name, 18).empty());
    for (const int vms : {19, 36, 144}) CHECK(problem_of(name, vms).find("/rack/vms") == 0);
  }
  for (const char* name : {"mi300x-v5", "mi325x", "mi355x", "h200-nvl"}) {
    INFO(name);
    CHECK(problem_of(name, 1).empty());
    CHECK(problem_of(name, 8).find("without switches need a link to each") != std::string::npos);
  }
  CHECK(problem_of("mi300x-v5", 2).find("15 others, but a GPU has only 7") != std::string::npos);
}

TEST_CASE("GB300 racks take a third level of switches beyond 144 of them") {
  const platform p = read_shipped("gb300-nvl72").p;
  CHECK(size_fat_tree(p.fabric, 64 * 72).switches == std::vector<std::int64_t>{64, 32});
  CHECK(size_fat_tree(p.fabric, 144 * 72).levels == 2);
  CHECK(size_fat_tree(p.fabric, 145 * 72).levels == 3);
}

TEST_CASE("ND40rs servers have one port each on the fabric") {
  const fabric_spec f = read_shipped("nd40rs-v2").p.fabric;
  CHECK(size_fat_tree(f, 36 * 8).switches == std::vector<std::int64_t>{1});
  CHECK(size_fat_tree(f, 37 * 8).levels == 2);
  CHECK(size_fat_tree(read_shipped("a100-hdr-sharp").p.fabric, 10 * 8).switches == std::vector<std::int64_t>{1});
}

TEST_CASE("Machines without NVLink and without switches say so") {
  const platform p40 = read_shipped("nd24rs").p, v100 = read_shipped("nd40rs-v2").p;
  const platform mi300x = read_shipped("mi300x-v5").p;
  CHECK(p40.gpu.nvlink.base() == 0);
  CHECK_FALSE(p40.gpu.dense_peak(precision::bf16));
  CHECK(mi300x.gpu.nvlink_generation == 0);
  CHECK(mi300x.gpu.nvlink_links == 7);
  CHECK(v100.rack.nvlink_planes == 0);
  CHECK_FALSE(v100.gpu.dense_peak(precision::bf16));
  CHECK(v100.gpu.dense_peak(precision::fp16)->base() == 125e12);
}

TEST_CASE("Vera Rubin says that it is experimental") {
  const auto r = read_shipped("vera-rubin-nvl72");
  CHECK(r.p.description.starts_with("Experimental"));
  for (const auto& s : r.doc.sources) CHECK(s.kind != "measured");
}
