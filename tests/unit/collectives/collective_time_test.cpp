#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "unit/collectives/support.hpp"

namespace nvlsim {
namespace {

using test::machine;
using test::shipped;

constexpr collective kinds[] = {collective::all_reduce, collective::all_gather,        collective::reduce_scatter,
                                collective::all_to_all, collective::broadcast,         collective::send_recv,
                                collective::reduce,     collective::neighbor_exchange, collective::barrier};

const std::vector<platform>& machines() {
  static const std::vector<platform> all = {
      machine(2, "efa-100", 12.5_Gbps),          machine(3, "roce-a100", 200.0_Gbps),
      machine(3, "hdr-sharp", 100.0_Gbps, true), machine(4, "quantum-2", 400.0_Gbps),
      machine(4, "efa-3200", 400.0_Gbps),        machine(4, "tcpxo", 200.0_Gbps),
      machine(5, "quantum-x800", 800.0_Gbps),    machine(5, "quantum-x800", 800.0_Gbps, true),
      machine(5, "roce-gb300", 800.0_Gbps),      machine(5, "nobody's fabric", 100.0_Gbps, true)};
  return all;
}

const std::vector<communicator> groups = {
    {2, 1},     {3, 1},   {4, 1},   {5, 1},         {8, 1},           {17, 1},         {72, 1},
    {2, 2},     {16, 16}, {7, 3},   {73, 2, 72, 1}, {100, 2, 72, 28}, {16, 2},         {144, 2},
    {1440, 20}, {64, 64}, {100, 3}, {4096, 512},    {331200, 4600},   {331200, 331200}};

template <class Visit>
void each_case(Visit visit) {
  for (const platform& p : machines())
    for (const collective c : kinds)
      for (const communicator g : groups) {
        if (c == collective::send_recv && g.ranks != 2) continue;
        CAPTURE(p.gpu.nvlink_generation, p.fabric.name, name(c), g.ranks, g.domains);
        visit(p, c, g);
      }
}

TEST_CASE("Collective time is finite, positive and never less for more bytes") {
  each_case([](const platform& p, collective c, communicator g) {
    double before = test::time(p, c, 0, g).base();
    CHECK(before > 1e-6);
    bool monotone = true, finite = std::isfinite(before);
    for (double size = 1; size <= 1e15; size *= 1.2) {
      const double t = test::time(p, c, size, g).base();
      finite = finite && std::isfinite(t);
      monotone = monotone && t >= before;
      before = t;
    }
    CHECK(finite);
    CHECK(monotone);
  });
}

TEST_CASE("Collective time is never below what the wire needs") {
  each_case([](const platform& p, collective c, communicator g) {
    const double size = c == collective::barrier ? 0 : 1e11;
    const bool switched = c == collective::all_reduce;  // the switch adds on the way: one array in, one out
    const double wire = switched ? size / g.ranks : size * bus_factor(c, g.ranks);
    CHECK(test::time(p, c, size, g).base() >= wire / p.gpu.nvlink.base());
  });
}

TEST_CASE("Collective between single GPUs is never below what their NICs need") {
  for (const platform& p : machines())
    for (const int ranks : {2, 8, 64, 4096}) {
      CAPTURE(p.fabric.name, p.fabric.sharp, ranks);
      const double nic = p.fabric.nic_bandwidth.base();
      CHECK(test::time(p, collective::all_gather, 1e11, {ranks, ranks}).base() >=
            1e11 * (ranks - 1) / ranks / nic);
      CHECK(test::time(p, collective::all_to_all, 1e11, {ranks, ranks}).base() >=
            1e11 * (ranks - 1) / ranks / nic);
      const double passes = p.fabric.sharp ? 1 : bus_factor(collective::all_reduce, ranks);
      CHECK(test::time(p, collective::all_reduce, 1e11, {ranks, ranks}).base() >= 1e11 * passes / nic);
    }
}

TEST_CASE("Collective of one rank costs nothing") {
  for (const collective c : kinds) CHECK(test::time(machines()[3], c, 1e9, {1, 1}) == seconds{});
  CHECK(custom_all_reduce_time(shipped(), machines()[3], 1.0_GB, 1)->time == seconds{});
}

TEST_CASE("Collective of no bytes costs its latency") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  const double none = test::time(p, collective::all_reduce, 0, {4, 1}).base();
  CHECK(none == Approx(test::time(p, collective::all_reduce, 8, {4, 1}).base()).epsilon(0.01));
  CHECK(none < 20e-6);
}

TEST_CASE("Collective in-switch reduction takes over from five ranks on") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  const auto algorithm = [&](collective c, int ranks) {
    return collective_time(shipped(), p, {c, 1.0_GiB, {ranks, 1}}).algorithm;
  };
  CHECK(algorithm(collective::all_reduce, 4) == "simple");
  CHECK(algorithm(collective::all_reduce, 8) == "nvls");
  CHECK(algorithm(collective::all_gather, 8) == "simple");
  CHECK(algorithm(collective::all_gather, 72) == "nvls");
  CHECK(collective_time(shipped(), machine(3, "", 200.0_Gbps), {collective::all_reduce, 1.0_GiB, {8, 1}})
            .algorithm == "simple");
}

TEST_CASE("Collective obeys the algorithm asked for") {
  const platform p = machine(4, "quantum-2", 400.0_Gbps);
  const bytes size = bytes::from_base(1 << 20);
  const auto with = [&](communicator g, std::string_view algorithm) {
    return collective_time(shipped(), p, {collective::all_reduce, size, g, {algorithm, false}});
  };
  CHECK(with({16, 2}, "ring").algorithm.starts_with("ring"));
  CHECK(with({16, 2}, "ring").time > with({16, 2}, "").time);
  CHECK(with({8, 1}, "nvls").algorithm == "nvls");
  CHECK(with({8, 1}, "ring").algorithm != "nvls");
  CHECK(with({16, 2}, "sharp").algorithm == "sharp");
  CHECK_THROWS_WITH(with({8, 1}, "nvls_tree"), Catch::Contains("nvls_tree"));
  CHECK_THROWS_WITH(with({16, 2}, "nvls"), Catch::Contains("nvls"));
}

TEST_CASE("Collective runs by every algorithm that can run it, and says which") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  const auto by = [&](collective c, communicator g, std::string_view algorithm) {
    return collective_time(shipped(), p, {c, bytes::from_base(64 << 20), g, {algorithm, false}});
  };
  for (const char* a : {"tree", "halving_doubling", "one_shot", "two_shot"}) {
    INFO(a);
    const collective_cost cost = by(collective::all_reduce, {8, 1}, a);
    CHECK(cost.algorithm == a);
    CHECK(cost.time.base() > 64.0 * 1048576 / 900e9);
  }
  CHECK(by(collective::all_reduce, {144, 2}, "hierarchical").algorithm == "hierarchical");
  CHECK(by(collective::all_to_all, {8, 1}, "pairwise").time == by(collective::all_to_all, {8, 1}, "").time);
  CHECK(by(collective::all_to_all, {144, 2}, "pairwise").algorithm == "pairwise");
  CHECK_THROWS_WITH(by(collective::all_reduce, {6, 1}, "halving_doubling"), Catch::Contains("halving_doubling"));
  CHECK_THROWS_AS(by(collective::all_gather, {8, 1}, "one_shot"), input_error);
  CHECK_THROWS_AS(by(collective::all_to_all, {144, 2}, "ring"), input_error);
  CHECK_THROWS_AS(by(collective::all_reduce, {8, 1}, "hierarchical"), input_error);
}

TEST_CASE("Collective obeys the protocol asked for") {
  const platform p = machine(4, "quantum-2", 400.0_Gbps);
  const auto with = [&](communicator g, std::string_view protocol) {
    collective_options o;
    o.protocol = protocol;
    return collective_time(shipped(), p, {collective::all_reduce, bytes::from_base(1 << 20), g, o});
  };
  for (const char* protocol : {"ll", "ll128", "simple"}) CHECK(with({8, 1}, protocol).algorithm == protocol);
  CHECK(with({16, 2}, "ll").algorithm == "ll");
  CHECK(with({16, 2}, "simple").algorithm != "ll");
}

TEST_CASE("A forced ring across domains takes LL where messages are small") {
  const platform p = machine(2, "efa-100", 12.5_Gbps);
  const auto by = [&](double size, std::string_view algorithm, std::string_view protocol = {}) {
    collective_options o;
    o.algorithm = algorithm;
    o.protocol = protocol;
    return collective_time(shipped(), p, {collective::all_reduce, bytes::from_base(size), {16, 2}, o});
  };
  CHECK(by(8, "ring").algorithm == "ring_ll");
  CHECK(by(1e9, "ring").algorithm == "ring");
  CHECK(by(8, "ring").time > by(8, "").time);  // a tree of chains has fewer hops
  CHECK(by(8, "ring", "simple").algorithm == "ring");
  CHECK(by(8, "ring", "simple").time > by(8, "ring", "ll").time);
  CHECK_THROWS_WITH(by(8, "hierarchical", "ll"), Catch::Contains("hierarchical") && Catch::Contains("ll"));
}

TEST_CASE("An algorithm that has one protocol refuses the others") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  const auto by = [&](std::string_view algorithm, std::string_view protocol) {
    collective_options o;
    o.algorithm = algorithm;
    o.protocol = protocol;
    return collective_time(shipped(), p, {collective::all_reduce, bytes::from_base(1 << 20), {8, 1}, o});
  };
  for (const char* a : {"tree", "halving_doubling", "nvls"}) {
    INFO(a);
    CHECK(by(a, "simple").time == by(a, "").time);
    CHECK_THROWS_WITH(by(a, "ll"), Catch::Contains(a) && Catch::Contains("ll"));
  }
  CHECK_THROWS_WITH(by("one_shot", "ll"), Catch::Contains("one_shot"));
}

TEST_CASE("A fabric that was never measured takes its latency and its hosts from the platform") {
  platform p = machine(4, "new fabric", 400.0_Gbps);
  const auto t = [&](double size) { return test::time(p, collective::all_reduce, size, {16, 2}).base(); };
  const double small = t(8), large = t(4e6);
  p.fabric.latency += 8.0_us;
  CHECK(t(8) - small == Approx(16e-6).epsilon(0.01));
  CHECK(t(4e6) > large);
  p.fabric.host_driven = true;
  const double host = shipped().measured_on.at("default").host_step->base();
  CHECK(t(8) - small == Approx(2 * (8e-6 + host)).epsilon(0.01));
  // What was measured has its hosts in its own numbers.
  platform known = machine(4, "tcpxo", 200.0_Gbps), marked = known;
  marked.fabric.host_driven = true;
  CHECK(test::time(known, collective::all_reduce, 8, {16, 2}) ==
        test::time(marked, collective::all_reduce, 8, {16, 2}));
}

TEST_CASE("Ring all-reduce never gets cheaper with more ranks") {
  for (const platform& p : machines())
    for (const double size : {8.0, 1e6, 1e9}) {
      double before = 0;
      for (int ranks = 2; ranks <= 72; ++ranks) {
        const double t = test::time(p, collective::all_reduce, size, {ranks, 1}, {"ring", false}).base();
        INFO(p.gpu.nvlink_generation << " " << size << " " << ranks);
        CHECK(t >= before * (1 - 1e-12));
        before = t;
      }
    }
}

TEST_CASE("One GPU beyond a rack is visibly dearer than a full rack") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::all_to_all})
    for (const double size : {1e6, 1e8, 1e10}) {
      INFO(name(c) << " " << size);
      CHECK(test::time(p, c, size, {73, 2, 72, 1}) > test::time(p, c, size, {72, 1}) * 1.1);
    }
}

TEST_CASE("Collective over unequal domains is bounded by the NICs of the emptiest") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  const auto t = [&](communicator g) { return test::time(p, collective::all_gather, 1e11, g).base(); };
  CHECK(t({73, 2, 72, 1}) >= 1e11 * 72 / 73 / 100e9);
  CHECK(t({73, 2, 72, 1}) > t({73, 2, 37, 36}) * 2);
}

TEST_CASE("Across racks GB300's NICs halve what GB200's take where NICs are the limit") {
  const auto t = [](bandwidth nic) {
    return test::time(machine(5, "quantum-x800", nic), collective::all_to_all, 4e10, {576, 8}).base();
  };
  CHECK(t(800.0_Gbps) / t(400.0_Gbps) == Approx(0.5).epsilon(0.05));
}

TEST_CASE("Wire rates follow the NVLink of the GPU, latencies do not") {
  platform h100 = machine(4, "quantum-2", 400.0_Gbps), h800 = h100;
  h800.gpu.nvlink = 200.0_GBps;
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::all_to_all}) {
    INFO(name(c));
    const double big = test::time(h800, c, 4e9, {8, 1}) / test::time(h100, c, 4e9, {8, 1});
    CHECK(big > 2);
    CHECK(big < 2.3);
    CHECK(test::time(h800, c, 512, {8, 1}) / test::time(h100, c, 512, {8, 1}) == Approx(1).epsilon(0.02));
  }
  CHECK(collective_time(shipped(), h800, {collective::all_reduce, 1.0_GB, {8, 1}}).derived);
}

TEST_CASE("Without a switch a group has only the links that lead to its members") {
  platform mesh = machine(2, "edr", 12.5_Gbps);
  mesh.rack.vms = 1;
  mesh.vm.gpus = 8;
  platform switched = mesh;
  switched.rack.nvlink_planes = 2;
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::all_to_all}) {
    INFO(name(c));
    const auto slower = [&](double size, int ranks) {
      return test::time(mesh, c, size, {ranks, 1}) / test::time(switched, c, size, {ranks, 1});
    };
    // A seventh and three sevenths of the wire's rate; what a rank copies for itself is as fast as ever.
    CHECK(slower(1e10, 2) > 5);
    CHECK(slower(1e10, 2) <= 7);
    CHECK(slower(1e10, 4) > 2.1);
    CHECK(slower(1e10, 4) <= 7.0 / 3);
    CHECK(slower(1e10, 8) == 1);
    CHECK(slower(64, 2) == Approx(1).epsilon(0.02));
  }
  CHECK(test::time(mesh, collective::all_reduce, 1e9, {16, 2}) ==
        test::time(switched, collective::all_reduce, 1e9, {16, 2}));
  CHECK(test::time(mesh, collective::all_reduce, 1e9, {2, 2}) ==
        test::time(switched, collective::all_reduce, 1e9, {2, 2}));
}

TEST_CASE("A slower fabric costs every step that crosses it") {
  platform near = machine(5, "quantum-x800", 800.0_Gbps), far = near;
  far.fabric.latency += 10.0_us;
  const auto t = [](const platform& p, communicator g) {
    return test::time(p, collective::all_reduce, 8, g).base();
  };
  CHECK(t(far, {72, 1}) == t(near, {72, 1}));
  CHECK(t(far, {144, 2}) - t(near, {144, 2}) == Approx(20e-6).epsilon(0.01));
  CHECK(t(far, {576, 8}) - t(near, {576, 8}) == Approx(60e-6).epsilon(0.01));
  // Nothing of an all-to-all was measured here: its steps take longer all the same, and only by that.
  const auto exchange = [](const platform& p) {
    return test::time(p, collective::all_to_all, 8, {144, 2}).base();
  };
  CHECK(exchange(far) - exchange(near) == Approx(10e-6).epsilon(0.01));
  platform slow = near;
  slow.fabric.leaf.latency += 1.0_us;
  CHECK(t(slow, {144, 2}) > t(near, {144, 2}));
}

TEST_CASE("A skewed all-to-all waits for its busiest rank") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  collective_options skewed;
  skewed.skew = 2;
  for (const communicator g : {communicator{72, 1}, communicator{144, 2}}) {
    const double even = test::time(p, collective::all_to_all, 1e10, g).base();
    CHECK(test::time(p, collective::all_to_all, 1e10, g, skewed).base() / even == Approx(2).epsilon(0.15));
  }
}

TEST_CASE("Collective in place does not copy its own share") {
  const platform p = machine(5, "", 400.0_Gbps);
  const auto ms = [&](bool in_place) {
    return test::time(p, collective::all_gather, 1e9, {2, 1}, {{}, in_place}).base();
  };
  CHECK(ms(true) < 0.8 * ms(false));
}

TEST_CASE("Collective across domains follows the NICs where they are the limit") {
  const auto all_to_all = [](bandwidth nic) {
    return test::time(machine(5, "new fabric", nic), collective::all_to_all, 1e10, {144, 2}).base();
  };
  CHECK(all_to_all(400.0_Gbps) / all_to_all(800.0_Gbps) == Approx(2).epsilon(0.05));
  const auto one_gpu_a_domain = [](bandwidth nic) {
    return test::time(machine(5, "new fabric", nic), collective::all_gather, 1e11, {16, 16}).base();
  };
  CHECK(one_gpu_a_domain(400.0_Gbps) / one_gpu_a_domain(800.0_Gbps) == Approx(2).epsilon(0.05));
  // The links of seventy-two GPUs are not.
  const auto whole_racks = [](bandwidth nic) {
    return test::time(machine(5, "new fabric", nic), collective::all_reduce, 1e11, {144, 2}).base();
  };
  CHECK(whole_racks(400.0_Gbps) == Approx(whole_racks(800.0_Gbps)));
}

TEST_CASE("Collective on a fabric without measurements says so") {
  const auto derived = [](const platform& p, collective c) {
    return collective_time(shipped(), p, {c, 1.0_GiB, {16, 2}}).derived;
  };
  CHECK_FALSE(derived(machine(4, "quantum-2", 400.0_Gbps), collective::all_reduce));
  CHECK(derived(machine(4, "quantum-3", 400.0_Gbps), collective::all_reduce));
  CHECK(derived(machine(4, "efa-3200", 400.0_Gbps), collective::reduce_scatter));
  CHECK_FALSE(derived(machine(4, "efa-3200", 400.0_Gbps), collective::all_to_all));
  CHECK(derived(machine(4, "quantum-2", 400.0_Gbps), collective::all_to_all));
}

TEST_CASE("Collective with SHARP does not wait for a ring through all racks") {
  const communicator g{1440, 20};
  const auto t = [&](bool sharp) {
    return test::time(machine(5, "quantum-x800", 400.0_Gbps, sharp), collective::all_reduce, 1e9, g);
  };
  CHECK(t(true) < t(false) * 0.5);
}

TEST_CASE("Collective that cannot be is refused") {
  const platform p = machine(5, "quantum-x800", 800.0_Gbps);
  const auto run = [&](communicator g, double size) { return test::time(p, collective::all_reduce, size, g); };
  CHECK_THROWS_WITH(run({0, 1}, 1), Catch::Contains("0 ranks"));
  CHECK_THROWS_WITH(run({2, 3}, 1), Catch::Contains("cannot span 3 domains"));
  CHECK_THROWS_AS(run({2, 1}, -1), input_error);
  CHECK_THROWS_AS(run({2, 1}, std::nan("")), input_error);
  CHECK_THROWS_WITH(test::time(machine(7, "", 1.0_Gbps), collective::all_reduce, 1, {2, 1}),
                    Catch::Contains("nvlink7") && Catch::Contains("nvlink5"));
  CHECK_THROWS_WITH(collective_time({}, p, {collective::all_reduce, 1.0_GB, {2, 1}}),
                    Catch::Contains("the stack has none"));
}

TEST_CASE("NVLink of which nobody published a sweep takes the rates of the generation before by its port") {
  const platform five = machine(5, "quantum-x800", 800.0_Gbps), six = machine(6, "quantum-x800", 800.0_Gbps);
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::all_to_all}) {
    INFO(name(c));
    CHECK(test::time(six, c, 8, {8, 1}) / test::time(five, c, 8, {8, 1}) == Approx(1).epsilon(0.01));
    CHECK(test::time(six, c, 1e11, {8, 1}) / test::time(five, c, 1e11, {8, 1}) ==
          Approx(0.5).epsilon(0.15));  // memory copies its own share
    CHECK(collective_time(shipped(), six, {c, 1.0_GB, {8, 1}}).derived);
  }
  CHECK(custom_all_reduce_time(shipped(), six, bytes::from_base(1e6), 8));
}

TEST_CASE("Collectives say how measured times spread, where somebody measured") {
  const auto spread = [](const platform& p, collective c, communicator g) {
    const collective_call call{c, bytes::from_base(1e6), g};
    return spread_of(shipped(), p, call, collective_time(shipped(), p, call));
  };
  const platform p = machine(5, "quantum-x800", 800.0_Gbps), unknown = machine(5, "new fabric", 800.0_Gbps);
  for (const auto& [family, s] : shipped().spreads) {
    INFO(family);
    CHECK(s.low < 1);
    CHECK(s.high > 1);
    CHECK(s.rows >= 20);
  }
  REQUIRE(spread(p, collective::all_reduce, {8, 1}));
  REQUIRE(spread(p, collective::all_reduce, {16, 2}));
  REQUIRE(spread(unknown, collective::all_reduce, {16, 2}));
  CHECK(spread(unknown, collective::all_reduce, {16, 2})->high > spread(p, collective::all_reduce, {16, 2})->high);
  CHECK(spread(unknown, collective::all_to_all, {16, 2}));
  CHECK_FALSE(spread(p, collective::broadcast, {8, 1}));
  CHECK_FALSE(spread(p, collective::all_reduce, {1, 1}));
  CHECK_FALSE(spread(machine(6, "quantum-x800", 800.0_Gbps), collective::all_reduce, {8, 1}));
}

TEST_CASE("SHARP that no sweep of the fabric shows is derived") {
  const auto derived = [](const platform& p, std::string_view algorithm) {
    return collective_time(shipped(), p, {collective::all_reduce, 1.0_GB, {16, 2}, {.algorithm = algorithm}})
        .derived;
  };
  CHECK_FALSE(derived(machine(3, "hdr-sharp", 100.0_Gbps, true), "sharp"));
  CHECK(derived(machine(5, "quantum-x800", 800.0_Gbps, true), "sharp"));
  CHECK_FALSE(derived(machine(5, "quantum-x800", 800.0_Gbps), ""));
}

TEST_CASE("Switches that reduce make no all-reduce between racks slower") {
  const platform with = machine(5, "quantum-x800", 800.0_Gbps, true),
                 without = machine(5, "quantum-x800", 800.0_Gbps);
  bool faster = false;
  for (double size = 8; size < 2e10; size *= 4) {
    const auto time = [&](const platform& p) {
      return collective_time(shipped(), p,
                             {collective::all_reduce, bytes::from_base(size), {.ranks = 144, .domains = 2}})
          .time;
    };
    CHECK(time(with) <= time(without));
    faster |= time(with) < time(without);
  }
  CHECK(faster);
}

TEST_CASE("Collective without the library's tuning takes the fastest protocol") {
  collective_profile profile = shipped();
  profile.tuning.clear();
  const platform p = machine(5, "", 400.0_Gbps);
  for (double size = 512; size < 1e10; size *= 2)
    CHECK(collective_time(profile, p, {collective::all_gather, bytes::from_base(size), {4, 1}}).time <=
          test::time(p, collective::all_gather, size, {4, 1}));
}

TEST_CASE("Custom all-reduce goes in one shot while messages are small") {
  platform p = machine(5, "", 400.0_Gbps);
  p.gpu.name = "gb200";
  const auto t = [&](double size, int ranks) {
    return *custom_all_reduce_time(shipped(), p, bytes::from_base(size), ranks);
  };
  CHECK(t(1024, 4).algorithm == "one_shot");
  CHECK(t(1024, 4).time.base() == Approx(4.6e-6).epsilon(0.05));
  CHECK(t(1e8, 8).algorithm == "two_shot");
  CHECK(t(1024, 4).time < test::time(p, collective::all_reduce, 1024, {4, 1}));
  p.gpu.name = "not in the table";
  CHECK(t(1024, 4).time.base() == Approx(4.7e-6).epsilon(0.05));
  p.gpu.nvlink_generation = 9;
  CHECK_FALSE(custom_all_reduce_time(shipped(), p, 1.0_GB, 4));
}

TEST_CASE("Expert exchange sends each token once to a rank") {
  const platform p = machine(5, "", 400.0_Gbps);
  const auto t = [&](double topk) {
    return *expert_exchange_time(shipped(), p, "two_sided_dispatch_fp8", {1e5, topk, 7168, 4});
  };
  CHECK(t(8) < t(1) * 4);  // at most three other ranks, whatever the number of experts
  CHECK(expert_traffic{1, 8, 1, 4, 1, true}.reach() == 3);
  CHECK(expert_traffic{1, 8, 1, 64, 1, true}.reach() == Approx(8 * 63.0 / 64));
  CHECK(expert_traffic{1, 1, 1, 4}.reach() == Approx(0.75));
  CHECK(t(8) > t(2));
  CHECK_FALSE(expert_exchange_time(shipped(), p, "no such kernel", {}));
}

TEST_CASE("Expert exchanges are derived wherever links are not those of the measured GB200") {
  const auto derived = [](const platform& p, communicator g) {
    return expert_exchange_cost(shipped(), p, "two_sided_dispatch_fp8", {4096, 8, 7168, g.ranks}, g)->derived;
  };
  const platform gb200 = machine(5, "quantum-x800", 800.0_Gbps);
  CHECK_FALSE(derived(gb200, {8, 1}));
  CHECK_FALSE(derived(gb200, {64, 1}));
  CHECK(derived(gb200, {16, 2}));
  for (const int generation : {0, 2, 3, 4, 6}) {
    INFO(generation);
    platform other = machine(generation, "quantum-x800", 800.0_Gbps);
    if (other.gpu.nvlink <= bandwidth{}) other.gpu.nvlink = 450.0_GBps;
    CHECK(derived(other, {8, 1}));
  }
  platform faster = gb200;
  faster.gpu.nvlink = 1800.0_GBps;
  CHECK(derived(faster, {8, 1}));
  platform two_levels = gb200;
  two_levels.rack.nvlink_levels = 2, two_levels.rack.nvlink_switch_ports = 72;
  two_levels.rack.nvlink_switch_latency = 0.3_us;
  CHECK(derived(two_levels, {64, 1}));
}

TEST_CASE("Expert exchange sends a token once to each other server, which forwards it") {
  platform h800 = machine(4, "quantum-2", 400.0_Gbps);
  h800.gpu.nvlink = 200.0_GBps;
  const auto us = [&](const platform& p, double tokens, communicator g) {
    const auto c = expert_exchange_cost(shipped(), p, "two_sided_dispatch_fp8", {tokens, 8, 7168, g.ranks}, g);
    return c->time.base() * 1e6;
  };
  // DeepEP on two servers of eight H800, 4,096 tokens in FP8: 1,410 us; uccl-project/uccl#441: 1,289 us.
  CHECK(us(h800, 4096, {16, 2}) == Approx(1410).epsilon(0.1));
  // There the links of the servers are the limit, not the NICs.
  platform wide = h800;
  wide.fabric.nic_bandwidth *= 2;
  CHECK(us(wide, 4096, {16, 2}) == us(h800, 4096, {16, 2}));
  wide.gpu.nvlink *= 2;
  CHECK(us(wide, 4096, {16, 2}) < 0.6 * us(h800, 4096, {16, 2}));
  // Eight servers get more copies than two, at most seven of them for a token, and never as many as it has
  // experts.
  const double more = us(h800, 1e6, {64, 8}) / us(h800, 1e6, {16, 2});
  CHECK(more > 1);
  CHECK(more < 7);
}

TEST_CASE("What an all-to-all sends to GPUs without a link takes two") {
  platform mesh = machine(2, "edr", 12.5_Gbps);
  mesh.vm.gpus = 8;
  mesh.rack.vms = 1;
  platform cube = mesh;
  cube.rack.mesh_peers = 4;
  // Four of seven GPUs are one link away, three are two: ten links in place of seven.
  const auto transfer = [](const platform& p, collective c) {
    return (test::time(p, c, 2e10, {8, 1}) - test::time(p, c, 1e10, {8, 1})).base();
  };
  const double copies = 1e10 / 8 / 350e9;
  CHECK((transfer(cube, collective::all_to_all) - copies) / (transfer(mesh, collective::all_to_all) - copies) ==
        Approx(10.0 / 7).epsilon(0.01));
  CHECK(transfer(cube, collective::all_reduce) == transfer(mesh, collective::all_reduce));
}

/// A domain of 144 GPUs whose planes have one level of switches, and one with two.
std::pair<platform, platform> levels_of_switches() {
  platform one = machine(5, "quantum-x800", 800.0_Gbps);
  one.vm.gpus = 4, one.rack.vms = 36;
  one.rack.nvlink_planes = 18, one.rack.nvlink_switch_ports = 72;
  platform two = one;
  two.rack.nvlink_levels = 2;
  two.rack.nvlink_switch_latency = 0.3_us;
  return {one, two};
}

TEST_CASE("Planes of two levels lengthen the hops of groups that do not fit a leaf") {
  const auto levels = levels_of_switches();
  const platform &one = levels.first, &two = levels.second;
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::all_to_all}) {
    INFO(name(c));
    CHECK(test::time(two, c, 64, {36, 1}) == test::time(one, c, 64, {36, 1}));
    CHECK(test::time(two, c, 64, {72, 1}) > test::time(one, c, 64, {72, 1}));
    const auto bytes_take = [&](const platform& p) {
      return (test::time(p, c, 2e11, {144, 1}) - test::time(p, c, 1e11, {144, 1})).base();
    };
    CHECK(bytes_take(two) == Approx(bytes_take(one)).epsilon(1e-3));
  }
}

TEST_CASE("A ring has a longer hop for each leaf that it passes, pairs have one each") {
  const auto levels = levels_of_switches();
  const platform &one = levels.first, &two = levels.second;
  const auto longer = [&](collective c, int ranks) {
    const auto take = [&](const platform& p) {
      collective_options in_rings;
      if (c == collective::all_gather) in_rings.algorithm = "ring", in_rings.protocol = "ll";
      return collective_time(shipped(), p, {c, bytes::from_base(8), {ranks, 1}, in_rings}).time;
    };
    return (take(two) - take(one)) / 0.6_us;
  };
  // A gather has a hop less than ranks, of which each leaf of 36 has one that is longer.
  for (const int ranks : {37, 40, 72, 100, 144}) {
    INFO(ranks);
    const double leaves = std::ceil(ranks / 36.0);
    CHECK(longer(collective::all_gather, ranks) == Approx(leaves * (ranks - 1) / ranks).epsilon(1e-6));
  }
  CHECK(longer(collective::neighbor_exchange, 40) == Approx(1).epsilon(1e-6));
}

TEST_CASE("GPUs with links of another maker have collectives of their own, all derived") {
  platform amd = machine(4, "quantum-2", 400.0_Gbps);
  amd.gpu.name = "mi300x";
  amd.gpu.nvlink_generation = 0;
  amd.gpu.nvlink = 448.0_GBps;
  amd.vm.gpus = 8, amd.rack.vms = 1;
  for (const communicator g : {communicator{8, 1}, communicator{16, 2}}) {
    const collective_cost c = collective_time(shipped(), amd, {collective::all_reduce, 1.0_GB, g});
    CHECK(c.derived);
    CHECK(c.time.base() > 2 * 7.0 / 8 / 448);
  }
  CHECK(custom_all_reduce_time(shipped(), amd, bytes::from_base(1e5), 8));
  // Two GPUs have one link of seven.
  CHECK(test::time(amd, collective::all_gather, 1e10, {2, 1}) /
            test::time(amd, collective::all_gather, 1e10, {8, 1}) >
        3);
}

TEST_CASE("Collective names and bus factors are those of nccl-tests") {
  for (const collective c : kinds) CHECK(collective_by_name(name(c)) == c);
  CHECK(collective_by_name("alltoall") == collective::all_to_all);
  CHECK_FALSE(collective_by_name("all-reduce"));
  CHECK(bus_factor(collective::all_reduce, 8) == 1.75);
  CHECK(bus_factor(collective::all_to_all, 4) == 0.75);
  CHECK(bus_factor(collective::send_recv, 2) == 1);
}

}  // namespace
}  // namespace nvlsim
