// Errors against published nccl-tests sweeps with the shipped parameters. The rows are not part of the project;
// without them there is nothing to measure.
#include <algorithm>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "unit/collectives/support.hpp"

namespace nvlsim {
namespace {

using test::machine;

struct row {
  std::string system, collective, algorithm, notes;
  double gpus = 0, domain = 0, size = 0, micros = 0;
  int domains() const { return static_cast<int>(std::ceil(gpus / domain)); }
  bool exchange() const { return algorithm.starts_with("TRT-LLM"); }
};

double number(const std::string& t) {
  double x = 0;
  std::from_chars(t.data(), t.data() + t.size(), x);
  return x;
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  return out;
}

const std::vector<row>& measured() {
  static const std::vector<row> rows = [] {
    std::vector<row> out;
    std::ifstream in(test::root / "../shared/data/collectives.csv");
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> header = cells(line);
    const auto column = [&](const char* name) {
      return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
    };
    while (std::getline(in, line)) {
      const std::vector<std::string> c = cells(line);
      const auto n = [&](const char* name) { return number(c.at(column(name))); };
      out.push_back({c.at(column("system")), c.at(column("collective")), c.at(column("algorithm")),
                     c.at(column("notes")), n("gpus"), n("gpus_per_nvlink_domain"), n("message_bytes"),
                     n("time_us")});
    }
    return out;
  }();
  return rows;
}

const platform& system_of(const row& r) {
  static const std::map<std::string, platform> machines = {
      {"V100-HCM8", machine(2, "none", 12.5_Gbps)},
      {"V100-p3dn-EFA100", machine(2, "efa-100", 12.5_Gbps)},
      {"A100-HGX", machine(3, "none", 200.0_Gbps)},
      {"A100-HGX-RoCE", machine(3, "roce-a100", 200.0_Gbps)},
      {"A100-HDR-SHARP", machine(3, "hdr-sharp", 100.0_Gbps, true)},
      {"H100-HGX", machine(4, "none", 400.0_Gbps)},
      {"H200-HGX", machine(4, "none", 400.0_Gbps)},
      {"H100-HGX-IB-NDR", machine(4, "quantum-2", 400.0_Gbps)},
      {"H100-p5-EFA", machine(4, "efa-3200", 400.0_Gbps)},
      {"H100-A3Mega-TCPXO", machine(4, "tcpxo", 200.0_Gbps)},
      {"B200-HGX", machine(5, "none", 400.0_Gbps)},
      {"B300-HGX", machine(5, "none", 800.0_Gbps)},
      {"B200-HGX-NDR/RoCE400", machine(5, "roce-400", 400.0_Gbps)},
      {"GB200-NVL72", machine(5, "none", 400.0_Gbps)},
      {"GB200-NVL72-multirack", machine(5, "quantum-x800", 400.0_Gbps)},
      {"GB300-NVL72", machine(5, "none", 800.0_Gbps)},
      {"GB300-NVL72-multirack-RoCE", machine(5, "roce-gb300", 800.0_Gbps)},
      {"GB300-2x8", machine(5, "quantum-2", 400.0_Gbps)},
  };
  return machines.at(r.system);
}

/// NCCL_ALGO where the source set it; what a source only infers was chosen by the library.
std::string_view forced(const row& r) {
  if (r.algorithm.starts_with("Ring")) return "ring";
  if (r.algorithm.find("source says NVLS") != std::string::npos && r.algorithm.starts_with("NVLS")) return "nvls";
  return {};
}

double simulated(const row& r) {
  const collective kind = *collective_by_name(r.collective);
  const int ranks = kind == collective::send_recv ? 2 : static_cast<int>(r.gpus);
  return test::time(system_of(r), kind, r.size, {ranks, r.domains()}, {forced(r), false}).base() * 1e6;
}

struct summary {
  std::size_t count = 0;
  double median = 0, p90 = 0;
};

template <class Keep>
summary errors(Keep keep, double (*model)(const row&) = simulated) {
  std::vector<double> e;
  for (const row& r : measured())
    if (keep(r)) e.push_back(std::abs(model(r) / r.micros - 1));
  if (e.empty()) return {};
  std::sort(e.begin(), e.end());
  return {e.size(), e[e.size() / 2], e[std::min(e.size() - 1, e.size() * 9 / 10)]};
}

bool in_domain(const row& r) { return r.domains() == 1 && !r.exchange(); }
bool large(const row& r) { return r.size >= 1048576; }
bool small(const row& r) { return r.size <= 262144 && r.size >= 512; }

TEST_CASE("Collectives in a domain match published sweeps") {
  if (measured().empty()) return;
  struct limits {
    const char *systems, *collective;
    double large, small;  // medians
  };
  for (const limits& l : std::initializer_list<limits>{{"A100", "all_reduce", 0.02, 0.03},
                                                       {"A100", "all_gather", 0.02, 0.035},
                                                       {"A100", "reduce_scatter", 0.02, 0.03},
                                                       {"A100", "alltoall", 0.025, 0.035},
                                                       {"H100", "all_reduce", 0.03, 0.02},
                                                       {"H100", "all_gather", 0.025, 0.03},
                                                       {"H100", "reduce_scatter", 0.03, 0.03},
                                                       {"H100", "alltoall", 0.025, 0.07},
                                                       {"B200", "all_reduce", 0.03, 0.03},
                                                       {"B200", "all_gather", 0.035, 0.035},
                                                       {"B200", "reduce_scatter", 0.035, 0.03},
                                                       {"B200", "alltoall", 0.05, 0.05},
                                                       {"GB", "all_reduce", 0.03, 0.05},
                                                       {"GB", "all_gather", 0.035, 0.05},
                                                       {"GB", "reduce_scatter", 0.03, 0.05},
                                                       {"GB", "alltoall", 0.05, 0.04}}) {
    const auto of = [&](const row& r) {
      return in_domain(r) && r.system.starts_with(l.systems) && r.collective == l.collective &&
             r.notes.find("busbw rounded") == std::string::npos;
    };
    const summary big = errors([&](const row& r) { return of(r) && large(r); });
    const summary little = errors([&](const row& r) { return of(r) && small(r); });
    CAPTURE(l.systems, l.collective, big.count, big.median, big.p90, little.count, little.median, little.p90);
    CHECK(big.count >= 20);
    CHECK(big.median <= l.large);
    CHECK(big.p90 <= 0.14);
    CHECK(little.count >= 20);
    CHECK(little.median <= l.small);
  }
  const summary big = errors([](const row& r) { return in_domain(r) && large(r); });
  const summary little = errors([](const row& r) { return in_domain(r) && small(r); });
  CAPTURE(big.count, big.median, big.p90, little.count, little.median, little.p90);
  CHECK(big.median <= 0.03);
  CHECK(big.p90 <= 0.11);
  CHECK(little.median <= 0.035);
}

TEST_CASE("Collectives across domains match published sweeps") {
  if (measured().empty()) return;
  struct limits {
    const char *system, *collective;
    double median;
  };
  for (const limits& l : std::initializer_list<limits>{{"H100-HGX-IB-NDR", "all_reduce", 0.07},
                                                       {"H100-p5-EFA", "all_reduce", 0.04},
                                                       {"H100-p5-EFA", "all_gather", 0.04},
                                                       {"H100-p5-EFA", "alltoall", 0.07},
                                                       {"H100-A3Mega-TCPXO", "all_reduce", 0.04},
                                                       {"A100-HDR-SHARP", "all_reduce", 0.04},
                                                       {"A100-HGX-RoCE", "all_reduce", 0.05},
                                                       {"V100-p3dn-EFA100", "all_reduce", 0.07},
                                                       {"B200-HGX-NDR/RoCE400", "all_reduce", 0.03},
                                                       {"GB200-NVL72-multirack", "all_reduce", 0.02},
                                                       {"GB300-NVL72-multirack-RoCE", "all_gather", 0.05},
                                                       {"GB300-NVL72-multirack-RoCE", "alltoall", 0.02},
                                                       {"GB300-2x8", "all_reduce", 0.16}}) {
    const summary s = errors([&](const row& r) { return r.system == l.system && r.collective == l.collective; });
    CAPTURE(l.system, l.collective, s.count, s.median, s.p90);
    CHECK(s.count >= 2);
    CHECK(s.median <= l.median);
  }
  const summary all = errors([](const row& r) { return r.domains() > 1; });
  CAPTURE(all.count, all.median, all.p90);
  CHECK(all.median <= 0.05);
}

double exchange(const row& r) {
  expert_traffic t;
  t.ranks = static_cast<int>(r.gpus);
  t.hidden = 7168;
  t.topk = 8;
  t.tokens = r.size / (t.hidden * 2 * std::min(8.0, r.gpus));
  return expert_exchange_time(test::shipped(), machine(5, "none", 1.0_GBps), "two_sided_dispatch_bf16", t)
             ->base() *
         1e6;
}

TEST_CASE("Expert dispatch matches published kernels") {
  if (measured().empty()) return;
  const summary s = errors([](const row& r) { return r.exchange(); }, exchange);
  CAPTURE(s.count, s.median, s.p90);
  CHECK(s.median <= 0.06);
}

}  // namespace
}  // namespace nvlsim
