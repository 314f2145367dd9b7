// What the exchanges inside an operation put on the ports.
#include "nvlsim/plan/network_demand.hpp"

#include <catch2/catch.hpp>

#include "support/ports.hpp"

namespace nvlsim {
namespace {

network_traffic on_nic(double b) { return {{}, {bytes::from_base(b), bytes::from_base(b)}}; }

/// `exposed` of `times` exchanges of 1 ms and 50 MB, of which 0.1 ms is latency.
operation_part exchange(const char* name, double exposed, double times = 1, int repeat = 1) {
  auto facts = std::make_shared<part_facts>();
  facts->alone = 0.001_s;
  facts->latency = 0.0001_s;
  facts->traffic = on_nic(50e6);
  facts->times = times;
  return {part_kind::ep, name, seconds::from_base(1e-3 * exposed * times), repeat, std::move(facts)};
}

operation_template pass(seconds compute, std::vector<operation_part> exchanges) {
  operation_template w{"pass", {{part_kind::gemm, "gemm", compute, 1}}, compute, {}};
  for (operation_part& p : exchanges) {
    w.duration += p.duration * p.repeat;
    w.parts.push_back(std::move(p));
  }
  return w;
}

/// Of all bursts together, each of which has an equal share.
struct expected {
  int bursts;
  double hidden_s, hidden_latency_s, hidden_bytes;
  double waited_s, waited_latency_s, waited_bytes;
};

std::vector<network_demand> demands_of(const operation_template& w) {
  return demands_within(test::bare_ports(), w.parts, w.duration);
}

void check(const operation_template& w, const expected& e) {
  const std::vector<network_demand> all = demands_of(w);
  const std::size_t each = e.hidden_s > 0 ? 2 : 1;
  REQUIRE(all.size() == each * static_cast<std::size_t>(e.bursts));
  const double n = e.bursts, length = w.duration.base();
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO("demand " << i);
    const network_demand& d = all[i];
    const double begin = length * static_cast<double>(i / each) / n;
    const bool waited = i % each == each - 1;
    CHECK(d.end.base() == Approx(waited ? begin + length / n : begin + e.hidden_s / n));
    CHECK((d.end - d.start).base() == Approx((waited ? e.waited_s : e.hidden_s) / n));
    CHECK(d.latency.base() == Approx((waited ? e.waited_latency_s : e.hidden_latency_s) / n).margin(1e-15));
    CHECK(d.traffic.nic.out.base() == Approx((waited ? e.waited_bytes : e.hidden_bytes) / n));
    CHECK(d.traffic.nic.in == d.traffic.nic.out);
    CHECK(d.traffic.nvlink == port_bytes{});
  }
}

}  // namespace

TEST_CASE("Exchanges that are waited for come after the kernels, twice a layer, those on the same ports as one") {
  check(pass(0.01_s, {exchange("a", 1)}), {2, 0, 0, 0, 1e-3, 0.1e-3, 50e6});
  check(pass(0.01_s, {exchange("a", 1, 2, 3), exchange("b", 1), exchange("a", 1)}),
        {8, 0, 0, 0, 8e-3, 0.8e-3, 400e6});
  check(pass(0.01_s, {exchange("a", 1, 1, 40)}), {16, 0, 0, 0, 40e-3, 4e-3, 2000e6});
}

TEST_CASE("What hides of an exchange begins with the kernels, at the pace of the exchange") {
  check(pass(0.01_s, {exchange("a", 0.4, 1, 5)}), {10, 3e-3, 0.3e-3, 150e6, 2e-3, 0.2e-3, 100e6});
}

TEST_CASE("What hides is squeezed into what there is to hide behind") {
  // 3 ms of exchange behind 2 ms: its bytes still fit.
  check(pass(0.002_s, {exchange("a", 0.4, 1, 5)}), {10, 2e-3, 0.2e-3, 150e6, 2e-3, 0.2e-3, 100e6});
  // Behind 1 ms the port carries no more than 100 MB.
  check(pass(0.001_s, {exchange("a", 0.4, 1, 5)}), {10, 1e-3, 0, 100e6, 2e-3, 0.2e-3, 100e6});
  check(pass({}, {exchange("a", 0.4, 1, 5)}), {10, 0, 0, 0, 2e-3, 0.2e-3, 100e6});
}

TEST_CASE("Waits longer than the exchange flow all of it, slower") {
  check(pass(0.01_s, {exchange("a", 1.5, 2)}), {2, 0, 0, 0, 3e-3, 0.2e-3, 100e6});
}

TEST_CASE("Exchanges on NVLink flow apart from those that use the NICs") {
  operation_template w = pass(0.01_s, {exchange("a", 1), exchange("b", 0.5)});
  auto facts = std::make_shared<part_facts>(*w.parts.back().facts);
  facts->traffic = {{9.0_GB, 3.0_GB}, {}};
  facts->alone = 0.02_s;
  facts->latency = {};
  w.parts.back().duration = 0.01_s;
  w.parts.back().facts = facts;
  w.duration = 0.021_s;
  const auto all = demands_of(w);
  REQUIRE(all.size() == 6);
  CHECK(all[0].traffic.nvlink.out.base() == Approx(2.25e9));
  CHECK(all[0].start == seconds{});
  CHECK(all[0].end.base() == Approx(0.005));
  CHECK(all[1].traffic.nvlink.in.base() == Approx(0.75e9));
  CHECK(all[1].start.base() == Approx(0.005));
  CHECK(all[2].traffic.nic.out.base() == Approx(25e6));
  CHECK(all[2].start.base() == Approx(0.01));
  CHECK(all[2].end.base() == Approx(0.0105));
  CHECK(all[5].end.base() == Approx(0.021));
}

TEST_CASE("Parts without traffic demand nothing") {
  operation_part quiet = exchange("a", 1);
  quiet.facts = std::make_shared<part_facts>();
  CHECK(demands_of(pass(0.01_s, {quiet})).empty());
  CHECK(demands_of(pass(0.01_s, {exchange("a", 0)})).empty());
  CHECK(demands_of({}).empty());
}

}  // namespace nvlsim
