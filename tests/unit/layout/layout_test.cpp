#include "nvlsim/layout/layout.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>

namespace nvlsim {
namespace {

/// A group as it is: every member looked up. `stride` and `count` say which ranks one group holds.
int max_domains(const parallelism& par, const placement& place, std::int64_t stride, std::int64_t count) {
  std::size_t max = 0;
  for (std::int64_t first = 0; first < par.gpus(); ++first) {
    if (first / stride % count != 0) continue;  // not the group's first member
    std::set<std::int64_t> domains;
    for (std::int64_t i = 0; i < count; ++i) domains.insert(place.domain_of(first + i * stride));
    max = std::max(max, domains.size());
  }
  return static_cast<int>(max);
}

platform racks_of(int vms, int racks) {
  platform p;
  p.gpu.nvlink_generation = 5;
  p.gpu.nvlink = 900.0_GBps;
  p.vm.gpus = 4;
  p.rack.vms = vms;
  p.racks = racks;
  return p;
}

/// Whether stages send across domains, by every rank of them.
void check_neighbours(const parallelism& par, const placement& place) {
  const std::int64_t stride = par.tp * par.cp * par.dp;
  for (std::int64_t stage = 0; stage + 1 < par.pp; ++stage) {
    bool crosses = false;
    for (std::int64_t r = stage * stride; r < (stage + 1) * stride; ++r)
      crosses |= place.domain_of(r) != place.domain_of(r + stride);
    CHECK(stages_cross(par, place, stage, stage + 1) == crosses);
  }
}

TEST_CASE("Groups span as many domains as their ranks sit in") {
  std::mt19937_64 random(7);
  const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + random() % n); };
  for (int i = 0; i < 2000; ++i) {
    parallelism par;
    par.tp = up_to(9), par.cp = up_to(5), par.dp = up_to(9), par.pp = up_to(6);
    const placement place{up_to(40)};
    INFO("tp " << par.tp << " cp " << par.cp << " dp " << par.dp << " pp " << par.pp << " in domains of "
               << place.gpus_per_domain);
    const communicator tensor = tensor_group(par, place), context = context_group(par, place),
                       data = data_group(par, place);
    CHECK(tensor.ranks == par.tp);
    CHECK(context.ranks == par.cp);
    CHECK(data.ranks == par.cp * par.dp);
    CHECK(tensor.domains == max_domains(par, place, 1, par.tp));
    CHECK(context.domains == max_domains(par, place, par.tp, par.cp));
    CHECK(data.domains == max_domains(par, place, par.tp, par.cp * par.dp));
  }
}

TEST_CASE("Groups know their fullest and emptiest domain") {
  std::mt19937_64 random(11);
  const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + random() % n); };
  for (int i = 0; i < 5000; ++i) {
    const placement place{up_to(40)};
    const std::int64_t first = up_to(100) - 1, stride = up_to(12), count = up_to(60);
    INFO(count << " from " << first << " by " << stride << " in domains of " << place.gpus_per_domain);
    std::map<std::int64_t, int> members;
    for (std::int64_t k = 0; k < count; ++k) ++members[place.domain_of(first + k * stride)];
    int max = 0, min = 1 << 20;
    for (const auto& [domain, n] : members) max = std::max(max, n), min = std::min(min, n);
    const communicator g = strided_group(place, first, stride, count);
    if (stride > place.gpus_per_domain) continue;  // domains are skipped
    CHECK(g.max_members() >= max);
    CHECK(g.max_members() <= max + 1);
    CHECK(g.min_members() <= min);
    CHECK(g.min_members() >= min - 1);
    if (place.gpus_per_domain % stride == 0 || members.size() <= 2) {
      CHECK(g.max_members() == max);
      CHECK(g.min_members() == min);
    }
  }
}

TEST_CASE("Expert groups span as many domains as their ranks sit in") {
  std::mt19937_64 random(8);
  const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + random() % n); };
  for (int i = 0; i < 2000; ++i) {
    parallelism par;
    par.etp = up_to(3), par.ep = up_to(9), par.pp = up_to(5);
    par.dp = par.etp * par.ep * up_to(4);  // TP and CP of 1: a stage's ranks are its data-parallel ones
    const placement place{up_to(40)};
    INFO("ep " << par.ep << " etp " << par.etp << " dp " << par.dp << " pp " << par.pp << " in domains of "
               << place.gpus_per_domain);
    const std::int64_t block = par.ep * par.etp;
    const communicator experts = expert_group(par, place), copies = expert_data_group(par, place);
    CHECK(experts.ranks == par.ep);
    CHECK(copies.ranks == par.dp / block);
    CHECK(experts.domains == max_domains(par, place, par.etp, par.ep));
    CHECK(copies.domains == max_domains(par, place, block, par.dp / block));
  }
}

TEST_CASE("Pipeline crosses where some rank's neighbour sits in another domain") {
  std::mt19937_64 random(9);
  const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + random() % n); };
  for (int i = 0; i < 500; ++i) {
    parallelism par;
    par.tp = up_to(9), par.cp = up_to(3), par.dp = up_to(5), par.pp = up_to(6);
    const placement place{up_to(40)};
    check_neighbours(par, place);
  }
}

TEST_CASE("Default segment fills a domain when the job fits in one, else a power of two of it") {
  CHECK(default_segment(racks_of(18, 8), 72) == 72);
  CHECK(default_segment(racks_of(18, 8), 73) == 64);
  CHECK(default_segment(racks_of(2, 8), 512) == 8);
  CHECK(default_segment(racks_of(1, 8), 2) == 4);
}

TEST_CASE("Placement says every reason why a job cannot sit on a platform") {
  parallelism par;
  par.tp = 80, par.pp = 2, par.cp = 1, par.dp = 8;
  CHECK(placement_problems({}, {64}, racks_of(18, 1)).empty());
  const auto problems = placement_problems(par, {76}, racks_of(18, 8));
  REQUIRE(problems.size() == 3);
  CHECK(problems[0] == "the placement uses 76 GPUs of an NVLink domain, which has only 72");
  CHECK(problems[1] == "tensor parallelism of 80 exceeds the 76 GPUs used in one NVLink domain");
  CHECK(problems[2] ==
        "tp 80 x pp 2 x cp 1 x dp 8 = 1280 GPUs need 17 NVLink domains at 76 GPUs each; the platform has 8");
}

TEST_CASE("Placement counts domains by the GPUs it fills in each") {
  parallelism par;
  par.dp = 512;
  CHECK(placement_problems(par, {64}, racks_of(18, 8)).empty());
  CHECK(placement_problems(par, {63}, racks_of(18, 8)).size() == 1);
  CHECK(placement_problems(par, {64}, racks_of(18, 7)).size() == 1);
}

placement listed(std::vector<std::int64_t> gpus, const platform& p) {
  return {p.gpus_per_rack(), std::make_shared<const rank_table>(std::move(gpus), p.gpus_per_rack())};
}

TEST_CASE("Groups of listed ranks span the domains of their GPUs") {
  std::mt19937_64 random(12);
  const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + random() % n); };
  const platform p = racks_of(2, 200);
  for (int i = 0; i < 300; ++i) {
    parallelism par;
    par.tp = up_to(4), par.cp = up_to(3), par.dp = up_to(6), par.pp = up_to(4);
    std::vector<std::int64_t> gpus(static_cast<std::size_t>(p.gpus()));
    std::iota(gpus.begin(), gpus.end(), std::int64_t{0});
    for (std::size_t k = gpus.size() - 1; k > 0; --k) std::swap(gpus[k], gpus[random() % (k + 1)]);
    gpus.resize(static_cast<std::size_t>(par.gpus()));
    const placement place = listed(gpus, p);
    INFO("tp " << par.tp << " cp " << par.cp << " dp " << par.dp << " pp " << par.pp);
    CHECK(tensor_group(par, place).domains == max_domains(par, place, 1, par.tp));
    CHECK(context_group(par, place).domains == max_domains(par, place, par.tp, par.cp));
    CHECK(data_group(par, place).domains == max_domains(par, place, par.tp, par.cp * par.dp));
    const communicator all = strided_group(place, 0, 1, par.gpus());
    std::map<std::int64_t, int> members;
    for (std::int64_t r = 0; r < par.gpus(); ++r) ++members[place.domain_of(r)];
    CHECK(all.domains == static_cast<int>(members.size()));
    for (const auto& [domain, n] : members) CHECK((all.emptiest <= n && n <= all.fullest));
    check_neighbours(par, place);
  }
}

TEST_CASE("A list in order is the same as segments") {
  const platform p = racks_of(18, 4);
  parallelism par;
  par.tp = 4, par.cp = 2, par.dp = 8, par.pp = 3;
  std::vector<std::int64_t> gpus;
  for (std::int64_t r = 0; r < par.gpus(); ++r) gpus.push_back(r / 64 * 72 + r % 64);
  const placement segments{64}, list = listed(gpus, p);
  const auto same = [](const communicator& a, const communicator& b) {
    CHECK(a.ranks == b.ranks);
    CHECK(a.domains == b.domains);
    CHECK(a.max_members() == b.max_members());
    CHECK(a.min_members() == b.min_members());
  };
  same(tensor_group(par, segments), tensor_group(par, list));
  same(context_group(par, segments), context_group(par, list));
  same(data_group(par, segments), data_group(par, list));
  CHECK(spans_domains(par, list));
  CHECK(placement_problems(par, list, p).empty());
}

// Blocks of tensor-parallel ranks in turn: rank r / block goes to domain (r / block) % domains.
TEST_CASE("Placement by rail deals blocks of ranks to racks in turn") {
  const platform p = racks_of(18, 8);
  parallelism par;
  par.tp = 4, par.dp = 64;  // 256 GPUs: four racks of 64
  const placement rails = placed_by_rail(par.gpus(), par.tp, 64, p);
  std::set<std::int64_t> taken;
  for (std::int64_t r = 0; r < par.gpus(); ++r) {
    CHECK(rails.domain_of(r) == r / 4 % 4);
    CHECK(taken.insert(rails.table->gpu_of(r)).second);
    CHECK(rails.table->gpu_of(r) % 72 < 64);
  }
  CHECK(tensor_group(par, rails).domains == 1);
  CHECK(data_group(par, rails).domains == 4);
  par.cp = 4, par.dp = 16;
  CHECK(context_group(par, rails).domains == 4);  // neighbours sit in other racks
  CHECK(context_group(par, placement{64}).domains == 1);
  CHECK(placement_problems(par, rails, p).empty());
}

TEST_CASE("Lists of GPUs that cannot hold a job are refused with the reason") {
  const platform p = racks_of(18, 2);
  parallelism par;
  par.tp = 4, par.dp = 2;
  using reasons = std::vector<std::string>;
  CHECK(placement_problems(par, listed({0, 1, 2, 3, 80, 81, 82, 83}, p), p).empty());
  CHECK(placement_problems(par, listed({0, 1, 2, 3}, p), p) ==
        reasons{"tp 4 x pp 1 x cp 1 x dp 2 = 8 ranks, but the placement has 4 GPUs"});
  CHECK(placement_problems(par, listed({0, 1, 2, 3, 4, 5, 80, 81}, p), p) ==
        reasons{"tensor parallelism must stay inside one NVLink domain, but ranks 4 to 7 do not"});
}

}  // namespace
}  // namespace nvlsim
