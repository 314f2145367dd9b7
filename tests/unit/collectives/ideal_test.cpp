// Collectives on an ideal network against their textbook closed forms.
#include "nvlsim/collectives/ideal_collective.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "nvlsim/diagnostics/diagnostics.hpp"

using namespace nvlsim;

namespace {

constexpr double alpha = 0.7e-6, port = 900e9, size = 3e8;

ideal_network plain() { return {seconds::from_base(alpha), bandwidth::from_base(port)}; }

double time_of(const ideal_network& net, collective c, std::string_view algorithm, int n) {
  return ideal_time(net, c, algorithm, bytes::from_base(size), n).base();
}

}  // namespace

TEST_CASE("Ideal collective has the closed form of its algorithm") {
  const int n = GENERATE(2, 4, 16, 64);
  const double chunk = size / n / port, doublings = std::log2(n);
  const ideal_network net = plain();
  CHECK(time_of(net, collective::all_reduce, "ring", n) == Approx(2 * (n - 1) * (alpha + chunk)));
  CHECK(time_of(net, collective::all_gather, "ring", n) == Approx((n - 1) * (alpha + chunk)));
  CHECK(time_of(net, collective::reduce_scatter, "ring", n) == Approx((n - 1) * (alpha + chunk)));
  CHECK(time_of(net, collective::all_to_all, "pairwise", n) == Approx((n - 1) * (alpha + chunk)));
  CHECK(time_of(net, collective::broadcast, "ring", n) == Approx(2 * (n - 1) * (alpha + chunk)));
  CHECK(time_of(net, collective::send_recv, "pairwise", n) == Approx(alpha + size / port));
  CHECK(time_of(net, collective::all_reduce, "halving_doubling", n) ==
        Approx(2 * doublings * alpha + 2 * (n - 1) * chunk));
  CHECK(time_of(net, collective::all_gather, "halving_doubling", n) ==
        Approx(doublings * alpha + (n - 1) * chunk));
  CHECK(time_of(net, collective::reduce_scatter, "halving_doubling", n) ==
        Approx(doublings * alpha + (n - 1) * chunk));
}

TEST_CASE("Ideal collective pays endpoints, hops, splits and memory passes") {
  const int n = 8;
  ideal_network net = plain();
  const double chunk = size / n / port;
  net.hops = 2;
  CHECK(time_of(net, collective::all_gather, "ring", n) == Approx((n - 1) * 2 * (alpha + chunk)));
  net = plain();
  net.splits = 4;
  CHECK(time_of(net, collective::all_gather, "ring", n) == Approx(4 * (n - 1) * (alpha + chunk / 4)));
  net = plain();
  net.endpoint = 1.0_us;
  CHECK(time_of(net, collective::all_gather, "ring", n) == Approx(1e-6 + (n - 1) * (alpha + chunk + 1e-6)));
  net = plain();
  net.local_rate = bandwidth::from_base(port * 2);
  CHECK(time_of(net, collective::all_reduce, "ring", n) ==
        Approx(2 * (n - 1) * (alpha + chunk) + (n - 1) * 1.5 * chunk));
}

TEST_CASE("Integer arithmetic rounds messages and times down") {
  ideal_network net{seconds::from_base(500e-9), bandwidth::from_base(0x1p30 * 50)};
  net.integer = true;
  // 1 MiB over 72 ranks is 14563 bytes, which take 271.25 ns.
  CHECK(ideal_time(net, collective::all_gather, "ring", bytes::from_base(0x1p20), 72).base() * 1e9 ==
        Approx(71 * 771).epsilon(1e-12));
}

TEST_CASE("One rank takes no time") {
  ideal_network net = plain();
  net.endpoint = 1.0_us;
  CHECK(ideal_time(net, collective::all_reduce, "ring", bytes::from_base(size), 1) == seconds{});
}

TEST_CASE("Ideal algorithm is the usual one, or the one asked for") {
  CHECK(ideal_algorithm(collective::all_reduce, "", 72) == "ring");
  CHECK(ideal_algorithm(collective::all_to_all, "", 72) == "pairwise");
  CHECK(ideal_algorithm(collective::send_recv, "", 72) == "pairwise");
  CHECK(ideal_algorithm(collective::all_reduce, "halving_doubling", 64) == "halving_doubling");
  CHECK_THROWS_WITH(ideal_algorithm(collective::all_reduce, "halving_doubling", 72),
                    "halving_doubling needs a power of two of ranks, not 72");
  CHECK_THROWS_WITH(ideal_algorithm(collective::all_reduce, "nvls", 72),
                    "all_reduce on an ideal network runs by ring or halving_doubling, not by \"nvls\"");
  CHECK_THROWS_AS(ideal_algorithm(collective::all_to_all, "ring", 8), input_error);
}
