// Fidelity `flow`: alone an operation takes its closed time; together they share their ports by max-min.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/simulator/simulation.hpp"
#include "support/plans.hpp"
#include "support/ports.hpp"

using namespace nvlsim;
using Catch::Matchers::Contains;

namespace {

using test::both;
using test::exactly;

timeline flow(const plan& p) { return simulate(p, test::bare_ports(2.5_us), {fidelity::flow}); }

port_bytes ways(double out, double in) { return {bytes::from_base(out), bytes::from_base(in)}; }

/// An operation that takes `latency_s` and then its bytes at `share` of the port they go through.
struct transfer {
  network_traffic traffic;
  double seconds_s, latency_s = 0;
};
transfer through_nic(port_bytes b, double share = 1, double latency_s = 0) {
  return {{{}, b}, latency_s + std::max(b.out, b.in).base() / (test::nic_rate * share), latency_s};
}

std::int32_t add(plan& p, const transfer& t) {
  operation_template w{"transfer", {{part_kind::dp, "transfer", seconds::from_base(t.seconds_s), 1}}, {}, {}};
  w.network = {network_demand{t.traffic, seconds::from_base(t.latency_s), seconds::from_base(t.seconds_s)}};
  return p.add_template(std::move(w));
}

/// Each transfer on a stream of its own, all on the ports of one class. When each ends.
std::vector<double> on_one_port(const std::vector<transfer>& all) {
  plan p;
  plans::add_class(p, "rank");
  p.classes[0].streams.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) p.append(p.classes[0].streams[i], add(p, all[i]), {});
  const timeline t = flow(p);
  std::vector<double> ends;
  for (const auto& s : t.spans[0]) ends.push_back(s.back().end_s);
  return ends;
}

}  // namespace

TEST_CASE("Operation alone takes its closed time on whatever ports") {
  const std::vector<transfer> all = {
      through_nic(both(1e9)),
      through_nic(both(1e9), 0.37, 13e-6),
      through_nic(both(1234.5), 0.9, 20e-6),
      through_nic(both(0.7), 1e-6, 1e-6),
      through_nic(ways(1e6, 7e7), 0.6, 3e-6),
      through_nic(ways(7e7, 1e6), 0.6, 3e-6),
      through_nic(ways(5e6, 0), 1),
      {{both(3e9), both(1e8)}, 5e-3, 1e-4},
      {{ways(0, 8e6), ways(2e6, 1e5)}, 40e-6, 7e-6},
      {{both(1e6), {}}, 0, 0},  // takes no time by its model
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO("transfer " << i);
    CHECK(on_one_port({all[i]}).front() == exactly(all[i].seconds_s));
  }
}

TEST_CASE("Chain of operations on an idle network is exact, however short they are") {
  plan p;
  plans::add_class(p, "rank");
  const std::int32_t a = add(p, through_nic(both(333), 0.8, 0.3e-6)), b = add(p, through_nic(both(7), 1)),
                     gap = plans::add_template(p, "gap", 0.4e-9);
  for (int i = 0; i < 2000; ++i) {
    for (std::int32_t template_index : {a, gap, b}) p.append(p.classes[0].streams[0], template_index, {});
  }
  CHECK(flow(p).makespan.base() == exactly(evaluate(p).makespan.base()));
}

TEST_CASE("Two operations that each fill a port take twice as long together") {
  for (const port_bytes& b : {both(1e9), ways(1e9, 0), ways(0, 1e9), ways(1e9, 3e8)}) {
    const auto ends = on_one_port({through_nic(b), through_nic(b)});
    CHECK(ends[0] == exactly(2 * 1e9 / test::nic_rate));
    CHECK(ends[1] == exactly(2 * 1e9 / test::nic_rate));
  }
}

TEST_CASE("Operations that fit side by side do not slow each other") {
  const auto ends = on_one_port({through_nic(both(1e9), 0.6), through_nic(both(3e9), 0.4, 5e-6)});
  CHECK(ends[0] == exactly(1e9 / (0.6 * test::nic_rate)));
  CHECK(ends[1] == exactly(5e-6 + 3e9 / (0.4 * test::nic_rate)));
}

TEST_CASE("Sharing is max-min: who wants less than half gets it, the other the rest") {
  // Alone 0.8 and 0.3 of the port. Together 0.7 and 0.3, until the smaller one is done.
  const double big = 4e9, small = 3e8;
  const auto ends = on_one_port({through_nic(both(big), 0.8), through_nic(both(small), 0.3)});
  const double small_end = small / (0.3 * test::nic_rate);
  CHECK(ends[1] == exactly(small_end));
  CHECK(ends[0] == exactly(small_end + (big - 0.7 * test::nic_rate * small_end) / (0.8 * test::nic_rate)));
}

TEST_CASE("Opposite directions and the two fabrics do not slow each other") {
  const auto ends = on_one_port({through_nic(ways(1e9, 0)), through_nic(ways(0, 1e9)), {{both(9e9), {}}, 1e-2}});
  for (double e : ends) CHECK(e == exactly(1e-2));
}

TEST_CASE("Latency takes nothing from the port") {
  // The second begins to flow when the first is half done.
  const double alone = 1e9 / test::nic_rate;
  const auto ends = on_one_port({through_nic(both(1e9)), through_nic(both(1e9), 1, alone / 2)});
  CHECK(ends[0] == exactly(1.5 * alone));
  CHECK(ends[1] == exactly(2 * alone));
}

TEST_CASE("Equal collectives take between one and two times as long together") {
  for (double share = 0.1; share <= 1; share += 0.1) {
    const double alone = through_nic(both(1e8), share).seconds_s;
    for (double end : on_one_port({through_nic(both(1e8), share), through_nic(both(1e8), share)}))
      CHECK(end == exactly(alone * std::max(1.0, 2 * share)));
  }
}

TEST_CASE("Sends meet at the receiver's port") {
  plan p;
  for (const char* name : {"a", "b", "c"}) plans::add_class(p, name);
  const std::int32_t send = add(p, through_nic(ways(1e9, 1e9)));
  p.append(p.classes[0].streams[0], send, {}, no_event, {-1, 2});
  p.append(p.classes[1].streams[0], send, {}, no_event, {-1, 2});
  const timeline t = flow(p);
  CHECK(t.spans[0][0][0].end_s == exactly(2e9 / test::nic_rate));
  CHECK(t.spans[1][0][0].end_s == exactly(2e9 / test::nic_rate));
  CHECK(t.activities == 2);
}

TEST_CASE("Collective slows the send that arrives at its port") {
  plan p;
  for (const char* name : {"a", "b"}) plans::add_class(p, name);
  p.append(p.classes[0].streams[0], add(p, through_nic(both(1e9))), {}, no_event, {-1, 1});
  p.append(p.classes[1].streams[0], add(p, through_nic(both(2e9))), {});
  const timeline t = flow(p);
  CHECK(t.spans[0][0][0].end_s == exactly(2e9 / test::nic_rate));
  CHECK(t.spans[1][0][0].end_s == exactly(3e9 / test::nic_rate));
}

namespace {

/// Computes for 10 ms, with `hidden` of a NIC beside it, and then waits for as many bytes as `waited` of one.
std::int32_t add_pass(plan& p, port_bytes hidden, port_bytes waited, double hidden_share = 1) {
  const double compute_s = 10e-3, wait_s = waited.out.base() / test::nic_rate;
  operation_template w{"pass",
                       {{part_kind::gemm, "gemm", seconds::from_base(compute_s), 1},
                        {part_kind::ep, "exchange", seconds::from_base(wait_s), 1}},
                       {},
                       {}};
  const auto demand = [&](port_bytes b, double from, double length) {
    if (!(length > 0)) return;
    w.network.push_back({{{}, b}, {}, seconds::from_base(from + length), seconds::from_base(from)});
  };
  demand(hidden, 0, hidden.out.base() / (test::nic_rate * hidden_share));
  demand(waited, compute_s, wait_s);
  return p.add_template(std::move(w));
}

/// A pass, and beside it a transfer that fills the NIC alone. When each ends.
std::array<double, 2> pass_beside(port_bytes hidden, port_bytes waited, port_bytes other,
                                  double hidden_share = 1) {
  plan p;
  plans::add_class(p, "rank");
  p.classes[0].streams.resize(2);
  p.append(p.classes[0].streams[0], add_pass(p, hidden, waited, hidden_share), {});
  p.append(p.classes[0].streams[1], add(p, through_nic(other)), {});
  const timeline t = flow(p);
  return {t.spans[0][0][0].end_s, t.spans[0][1][0].end_s};
}

}  // namespace

TEST_CASE("Operation with exchanges inside takes its closed time alone") {
  for (const double hidden : {0.0, 1.0, 0.37e9, 1e9})
    for (const double waited : {0.0, 3.3, 0.2e9}) {
      plan p;
      plans::add_class(p, "rank");
      for (int i = 0; i < 3; ++i) p.append(p.classes[0].streams[0], add_pass(p, both(hidden), both(waited)), {});
      INFO(hidden << " and " << waited << " bytes");
      const double closed = evaluate(p).makespan.base();
      CHECK(flow(p).makespan.base() == exactly(closed));
      // And beside somebody who wants next to nothing, but for whom it has to flow.
      p.classes[0].streams.resize(2);
      p.append(p.classes[0].streams[1], add(p, {{{}, both(1)}, closed}), {});
      CHECK(flow(p).makespan.base() == exactly(closed));
    }
}

TEST_CASE("Exchange that an operation waits for shares the port from where it begins") {
  // The other has moved 1 of its 1.5 GB when they meet. It is done after 10 ms more, the pass 5 ms later.
  const auto [pass, other] = pass_beside({}, both(1e9), both(1.5e9));
  CHECK(other == exactly(20e-3));
  CHECK(pass == exactly(25e-3));
}

TEST_CASE("Exchange that hides has the rest of its operation to be late in") {
  const auto [pass, other] = pass_beside(both(0.5e9), {}, both(0.5e9));  // each 5 ms alone, of 10
  CHECK(pass == exactly(10e-3));
  CHECK(other == exactly(10e-3));
  const auto [late, both_late] = pass_beside(both(0.8e9), both(0.1e9), both(0.8e9));
  CHECK(both_late == exactly(16e-3));
  CHECK(late == exactly(17e-3));
}

TEST_CASE("Exchange flows from the moment on at which somebody comes to its port") {
  // 10 ms hide 0.1 GB at a tenth of the port, then 1 ms is waited for 0.1 GB. The other fills the port for 1 ms
  // alone.
  struct meeting {
    double comes_s, other_s, pass_s;
  };
  for (const meeting& m :
       {meeting{0, 1e-3 / 0.9, 11e-3},  // beside what hides it has nine tenths
        meeting{3e-3, 1e-3 / 0.9, 11e-3}, meeting{9.5e-3, 1.6e-3, 11.55e-3},  // 45 MB so, 55 MB by halves
        meeting{10.4e-3, 1.6e-3, 11.6e-3},                                    // 60 MB by halves
        meeting{20e-3, 1e-3, 11e-3}}) {
    plan p;
    plans::add_class(p, "rank");
    p.classes[0].streams.resize(2);
    p.append(p.classes[0].streams[0], add_pass(p, both(0.1e9), both(0.1e9), 0.1), {});
    p.append(p.classes[0].streams[1], plans::add_template(p, "before", m.comes_s), {});
    p.append(p.classes[0].streams[1], add(p, through_nic(both(0.1e9))), {});
    const timeline t = flow(p);
    INFO("after " << m.comes_s);
    // Up to the engine's clock, and the byte that a flow cut in two has less.
    CHECK(t.spans[0][1].back().end_s == Approx(m.comes_s + m.other_s).epsilon(0).margin(3e-9));
    CHECK(t.spans[0][0][0].end_s == Approx(m.pass_s).epsilon(0).margin(3e-9));
  }
}

TEST_CASE("Exchanges that leave room for each other do not slow an operation") {
  plan p;
  plans::add_class(p, "rank");
  p.classes[0].streams.resize(2);
  p.append(p.classes[0].streams[0], add_pass(p, both(0.4e9), {}, 0.4), {});
  p.append(p.classes[0].streams[1], add(p, through_nic(both(0.6e9), 0.6)), {});
  CHECK(flow(p).makespan.base() == exactly(10e-3));
}

TEST_CASE("Pass waits for the pipeline send that arrives at its port") {
  plan p;
  for (const char* name : {"a", "b"}) plans::add_class(p, name);
  p.append(p.classes[0].streams[0], add(p, through_nic(both(2e9))), {}, no_event, {-1, 1});
  p.append(p.classes[1].streams[0], add_pass(p, {}, both(1e9)), {});
  const timeline t = flow(p);
  CHECK(t.spans[0][0][0].end_s == exactly(30e-3));  // of 20 alone: half of the port from 10 ms on
  CHECK(t.spans[1][0][0].end_s == exactly(30e-3));
}

TEST_CASE("What waits for a slowed operation is late by as much") {
  plan p;
  plans::add_class(p, "rank");
  p.classes[0].streams.resize(3);
  auto& s = p.classes[0].streams;
  const event_id done = p.new_event();
  const std::int32_t half = add(p, through_nic(both(1e9))), compute = plans::add_template(p, "compute", 1e-3);
  p.append(s[1], half, {}, done);
  p.append(s[2], half, {});
  p.append(s[0], compute, {done});
  CHECK(flow(p).spans[0][0][0].begin_s == exactly(2e9 / test::nic_rate));
}

TEST_CASE("Plans without demands are as in closed") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const plan p = plans::random_plan(seed, 300);
    const timeline a = flow(p), b = evaluate(p);
    INFO("seed " << seed);
    CHECK(a.makespan.base() == Approx(b.makespan.base()).epsilon(1e-9).margin(1e-15));
  }
}

TEST_CASE("Flows give the same digits again, in the same process") {
  plan p;
  plans::add_class(p, "rank");
  p.classes[0].streams.resize(3);
  for (int i = 0; i < 50; ++i)
    for (std::size_t s = 0; s < 3; ++s)
      p.append(p.classes[0].streams[s], add(p, through_nic(ways(1e6 + 1e5 * i, 2e6), 0.5, 1e-6)), {});
  const timeline a = flow(p), b = flow(p);
  CHECK(a.makespan.base() == Approx(b.makespan.base()).epsilon(1e-12));
  CHECK(a.makespan > evaluate(p).makespan);
}

TEST_CASE("Deadlock among flows is named as in closed") {
  plan p;
  plans::add_class(p, "rank");
  const event_id never = p.new_event();
  const std::int32_t template_index = add(p, through_nic(both(1e6)));
  p.append(p.classes[0].streams[0], template_index, {});
  p.append(p.classes[0].streams[0], template_index, {never});
  REQUIRE_THROWS_WITH(flow(p), Contains("rank.compute: operation 1, \"transfer\", waits for event 0"));
  CHECK(on_one_port({through_nic(both(1e9))}).front() == exactly(1e9 / test::nic_rate));
}

TEST_CASE("Receiving ports are actors, and 20,000 are no limit") {
  plan p;
  const std::int32_t template_index = add(p, through_nic(both(1e6)));
  for (int i = 0; i < 10'001; ++i) p.append(plans::add_class(p, "rank"), template_index, {});
  CHECK(flow(p).makespan.base() == exactly(1e6 / test::nic_rate));
}

TEST_CASE("Impossible demands are refused") {
  const auto run = [](transfer t) {
    plan p;
    p.append(plans::add_class(p, "rank"), add(p, t), {});
    return flow(p);
  };
  CHECK_THROWS_AS(run({{both(-1), {}}, 1}), internal_error);
  CHECK_THROWS_AS(run({{both(1), {}}, 1, 1.5}), internal_error);
  CHECK_THROWS_AS(run({{both(1), {}}, 1, -1}), internal_error);
  CHECK_THROWS_AS(run({{ways(1, std::nan("")), {}}, 1}), internal_error);
  const auto within = [](double start_s, double end_s) {
    plan p;
    const std::int32_t template_index = plans::add_template(p, "pass", 1);
    p.templates.back().network = {{{both(1), {}}, {}, seconds::from_base(end_s), seconds::from_base(start_s)}};
    p.append(plans::add_class(p, "rank"), template_index, {});
    return flow(p);
  };
  CHECK(within(0.5, 1).makespan.base() == exactly(1));
  CHECK_THROWS_AS(within(-0.5, 1), internal_error);
  CHECK_THROWS_AS(within(0.5, 1.5), internal_error);
  CHECK_THROWS_AS(within(0.7, 0.5), internal_error);
}
