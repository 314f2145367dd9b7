#include "run/operation_run.hpp"

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/operation/operation.hpp"

namespace nvlsim {

void run_operation(run_record& out, const scenario& s, const operation_case& c) {
  operation_metrics m;
  m.duration = c.cluster->duration;
  m.gpus = s.platform.gpus();
  set_metrics(out.outcome.metrics, m);
}

}  // namespace nvlsim
