#include <algorithm>

#include "nvlsim/analysis/sections.hpp"

namespace nvlsim {
void add_collective_sections(result& r, const collective_workload& w, const collective_run& run, seconds time) {
  const double speed = time > seconds{} ? w.size.base() / time.base() : 0;
  const auto known = [&](double x) { return time > seconds{} ? value{x} : value{}; };
  r.metrics.set("time_s", time.base());
  r.metrics.set("algbw_Bps", known(speed));
  r.metrics.set("busbw_Bps", known(speed * bus_factor(w.operation, static_cast<int>(w.gpus))));
  r.metrics.set("gpus", w.gpus);
  const seconds latency = std::min(run.demand.latency, time);
  const network_traffic& t = run.demand.traffic;
  r.breakdown.set("algorithm", run.cost.algorithm);
  r.breakdown.set("latency_s", latency.base());
  r.breakdown.set("transfer_s", (time - latency).base());
  r.breakdown.set("nvlink_sent_bytes", t.nvlink.out.base());
  r.breakdown.set("nvlink_received_bytes", t.nvlink.in.base());
  r.breakdown.set("nic_sent_bytes", t.nic.out.base());
  r.breakdown.set("nic_received_bytes", t.nic.in.base());
  if (run.spread && time > seconds{}) {
    const double low = run.spread->low, high = run.spread->high;
    r.bands.set("time_s", value::array{time.base() * low, time.base() * high});
    for (const char* metric : {"algbw_Bps", "busbw_Bps"}) {
      const double v = *r.metrics.find(metric)->number();
      r.bands.set(metric, value::array{v / high, v / low});
    }
  }
  if (run.cost.derived)
    r.notes.push_back("some parameters of this collective are derived from hardware specifications, not measured");
}

}  // namespace nvlsim
