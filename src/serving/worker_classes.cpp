#include "nvlsim/serving/worker_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

/// Replicas fill racks in order without crossing them; larger replicas take consecutive racks. Workers of a
/// pipeline share a replica.
hardware_health health_of(std::int64_t worker, const platform& p, const inference_workload& w) {
  const std::int64_t each = w.gpus_per_replica(), rack = p.gpus_per_rack(), replica = worker / w.pp;
  const std::int64_t in_rack = rack / each;
  const std::int64_t first = in_rack > 0 ? replica / in_rack * rack + replica % in_rack * each
                                         : replica * ((each + rack - 1) / rack) * rack;
  const std::int64_t last = first + each - 1;
  const auto meets = [](const std::vector<degradation::range>& ranges, std::int64_t a, std::int64_t b) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& r) { return r.first <= b && a <= r.last; });
  };
  hardware_health out;
  for (const degradation& d : w.degraded)
    if (meets(d.gpus, first, last) || meets(d.racks, first / rack, last / rack)) out = worse(out, d.health);
  return out;
}

bool runs_on_the_gpu(part_kind k) {
  return k == part_kind::gemm || k == part_kind::attention || k == part_kind::memory_bound ||
         k == part_kind::prefill || k == part_kind::decode;
}

bool explained(const plan& p) {
  return !p.templates.empty() && !p.templates.front().parts.empty() && p.templates.front().parts.front().facts;
}

/// Scales a part to GPUs that are slower by `factor`.
void slow_down(operation_part& part, double factor) {
  part.duration *= factor;
  if (!part.facts) return;
  part_facts f = *part.facts;
  f.alone *= factor;
  f.latency *= factor;
  part.facts = std::make_shared<part_facts>(f);
}

/// The templates of a run as they are on such hardware.
std::vector<operation_template> templates_on(const hardware_health& h, const inference_run& run,
                                             const serving_case& c) {
  platform p = c.hardware;
  inference_workload w = c.workload;
  p.gpu.nvlink = p.gpu.nvlink * h.nvlink;
  p.fabric.nic_bandwidth = p.fabric.nic_bandwidth * h.nic;
  w.degraded.clear();
  std::vector<operation_template> out =
      plan_inference(p, c.software, c.net, w, explained(run.planned)).planned.templates;
  if (out.size() != run.planned.templates.size())
    throw internal_error("degraded hardware changes what iterations hold");
  for (std::size_t i = 0; i < out.size(); ++i) {
    operation_template& t = out[i];
    const operation_template& usual = run.planned.templates[i];
    t.duration = {};
    for (operation_part& part : t.parts) {
      if (runs_on_the_gpu(part.kind)) slow_down(part, 1 / h.speed);
      t.duration += part.duration * part.repeat;
    }
    const seconds longer = t.duration - usual.duration;
    if (longer > seconds{}) t.power = (usual.power * usual.duration + p.gpu.idle_power * longer) / t.duration;
  }
  return out;
}

bool has_events(const plan& p) { return !p.arrivals.empty(); }

/// Workers of one class on equal hardware.
struct worker_kind {
  hardware_health health;
  std::int64_t first = 0, workers = 0;
};

std::vector<worker_kind> kinds_of(std::int64_t first, std::int64_t workers, const platform& p,
                                  const inference_workload& w, bool fold) {
  std::vector<worker_kind> out;
  for (std::int64_t l = first; l < first + workers; ++l) {
    const hardware_health h = w.degraded.empty() ? hardware_health{} : health_of(l, p, w);
    const auto it = fold
                        ? std::find_if(out.begin(), out.end(), [&](const worker_kind& k) { return k.health == h; })
                        : out.end();
    if (it == out.end()) out.push_back({h, l, 1});
    else ++it->workers;
  }
  return out;
}

}  // namespace

void split_workers(inference_run& run, const serving_case& c, bool fold) {
  if ((fold && c.workload.degraded.empty()) || has_events(run.planned)) return;
  std::map<hardware_health, std::int32_t> first_template = {{hardware_health{}, 0}};
  const std::vector<rank_class> classes = std::exchange(run.planned.classes, {});
  const std::vector<batching_schedule> schedules = std::exchange(run.schedules, {});
  const std::vector<std::int64_t> workers = std::exchange(run.workers, {});
  std::vector<operation_template> all = run.planned.templates;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (const worker_kind& k : kinds_of(next, workers[i], c.hardware, c.workload, fold)) {
      const auto [it, fresh] = first_template.try_emplace(k.health, static_cast<std::int32_t>(all.size()));
      if (fresh) {
        auto more = templates_on(k.health, run, c);
        std::move(more.begin(), more.end(), std::back_inserter(all));
      }
      rank_class r = classes[i];
      r.multiplicity = r.multiplicity / workers[i] * k.workers;
      if (!fold || !(k.health == hardware_health{})) r.name += fmt::format(" like worker {}", k.first);
      for (stream& stream : r.streams)
        for (operation& o : stream.operations) o.template_index += it->second;
      run.planned.classes.push_back(std::move(r));
      run.schedules.push_back(schedules[i]);
      run.workers.push_back(k.workers);
    }
    next += workers[i];
  }
  run.planned.templates = std::move(all);
}

}  // namespace nvlsim
