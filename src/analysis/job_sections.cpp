#include "nvlsim/analysis/job_sections.hpp"

#include <fmt/format.h>

#include <utility>

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim {

void add_jobs_sections(result& r, const std::vector<shared_job>& jobs, seconds makespan) {
  shared_metrics m;
  m.makespan = makespan;
  value list{value::array{}};
  for (const shared_job& j : jobs) {
    m.slowdowns.push_back(j.slowdown());
    m.gpus += j.gpus;
    value one{value::object{{"name", j.name}, {"kind", j.kind}, {"gpus", j.gpus}, {"start_s", j.start.base()}}};
    one.set("time_s", j.time.base());
    one.set("alone_s", j.alone.base());
    one.set("slowdown", j.slowdown());
    if (j.exposed) one.set("exposed_communication_s", j.exposed->base());
    if (j.exposed_alone) one.set("exposed_communication_alone_s", j.exposed_alone->base());
    one.set("reason", fmt::format("{} on {} GPUs, alone {:.6g} s, {:.4g} times that", j.kind, j.gpus,
                                  j.alone.base(), j.slowdown()));
    list.items()->push_back(std::move(one));
  }
  set_metrics(r.metrics, m);
  r.breakdown.set("jobs", std::move(list));
}

}  // namespace nvlsim
