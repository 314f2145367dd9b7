#include "nvlsim/operation/estimates.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace nvlsim {
namespace {

constexpr seconds hours(double h) { return seconds::from_base(h * 3600); }
constexpr seconds minutes(double m) { return seconds::from_base(m * 60); }

// Meta's RSC-1 has 6.50 failures per 1,000 nodes of 8 GPUs and day (arXiv 2410.21680).
constexpr double rsc1 = 6.50e-3, rsc2 = 2.34e-3;
seconds mttf_of(double gpus, double per_node_day = rsc1) { return job_mttf(gpus / 8, per_node_day); }

TEST_CASE("Mean time to failure falls with the size of the job as Meta prints it") {
  CHECK(mttf_of(16384) / hours(1) == Approx(1.803).epsilon(0.005));   // printed: 1.8 h
  CHECK(mttf_of(131072) / hours(1) == Approx(0.225).epsilon(0.005));  // printed: 0.23 h
}

TEST_CASE("First order agrees with Daly's exact form where little is lost, and is low where much is") {
  struct {
    double gpus, rate, interval, save, restart, first_order, exact;
  } const cases[] = {{2048, rsc1, 3600, 0, 600, 0.954, 0.955},   {4096, rsc1, 3600, 0, 600, 0.908, 0.911},
                     {4096, rsc1, 3600, 300, 600, 0.838, 0.836}, {16384, rsc1, 300, 0, 300, 0.931, 0.933},
                     {16384, rsc1, 3600, 0, 300, 0.676, 0.714},  {100000, rsc2, 120, 5, 120, 0.901, 0.902}};
  for (const auto& c : cases) {
    INFO(c.gpus << " GPUs, every " << c.interval << " s");
    const restart_costs costs{mttf_of(c.gpus, c.rate), seconds::from_base(c.save), seconds::from_base(c.restart)};
    const seconds interval = seconds::from_base(c.interval);
    CHECK(first_order_useful_share(costs, interval) == Approx(c.first_order).margin(0.0011));
    CHECK(daly_useful_share(costs, interval) == Approx(c.exact).margin(0.0011));
    const double lost = (costs.restart + interval / 2) / costs.mttf;
    if (lost < 0.1)
      CHECK(std::abs(first_order_useful_share(costs, interval) - daly_useful_share(costs, interval)) < 0.005);
  }
  const restart_costs hopeless{minutes(18), seconds{}, minutes(10)};
  CHECK(first_order_useful_share(hopeless, minutes(2)) == Approx(0.389).margin(0.001));
  CHECK(daly_useful_share(hopeless, minutes(2)) == Approx(0.542).margin(0.001));
}

TEST_CASE("Shares of useful time that Meta prints follow from its inputs") {
  const restart_costs big{job_mttf(2000, rsc1), seconds{}, minutes(5)};
  CHECK(first_order_useful_share(big, minutes(60)) == Approx(0.684).margin(0.001));  // printed: 0.7
  CHECK(first_order_useful_share(big, minutes(5)) == Approx(0.932).margin(0.001));   // printed: 0.93
  const restart_costs queued{job_mttf(1000, rsc1), seconds{}, minutes(6)};
  CHECK(first_order_useful_share(queued, minutes(30)) == Approx(0.905).margin(0.001));  // printed: 0.9
}

TEST_CASE("The best interval beats its neighbours, and is Young's where failures are rare") {
  for (const double mttf_h : {0.2, 1.0, 5.0, 100.0}) {
    const restart_costs c{hours(mttf_h), minutes(1), minutes(10)};
    const seconds best = best_interval(c);
    CHECK(daly_useful_share(c, best) >= daly_useful_share(c, best * 1.02));
    CHECK(daly_useful_share(c, best) >= daly_useful_share(c, best * 0.98));
  }
  const restart_costs rare{hours(1000), seconds::from_base(1), minutes(10)};
  CHECK(best_interval(rare) / young_interval(rare) == Approx(1).epsilon(0.001));
  CHECK(best_interval(rare) / daly_interval(rare) == Approx(1).epsilon(0.001));
  CHECK(best_interval({hours(1), seconds{}, minutes(5)}) == seconds{});
}

TEST_CASE("Racks with spare trays are up as often as the binomial says") {
  CHECK(k_of_n_up(18, 18, 0.99) == Approx(0.835).margin(0.0005));
  CHECK(k_of_n_up(17, 18, 0.99) == Approx(0.986).margin(0.0005));
  CHECK(k_of_n_up(16, 18, 0.99) == Approx(0.9993).margin(0.00005));
  CHECK(k_of_n_up(16, 18, 0.98) == Approx(0.9948).margin(0.00005));
  CHECK(k_of_n_up(0, 18, 0.9) == Approx(1));
}

TEST_CASE("Failures that replicas mask follow SPARe's closed form") {
  CHECK(masked_failures(200, 2) == Approx(12.5).margin(0.05));
  CHECK(masked_failures(600, 8) == Approx(254).margin(0.5));
  CHECK(masked_failures(600, 20) == Approx(424).margin(0.5));
}

}  // namespace
}  // namespace nvlsim
