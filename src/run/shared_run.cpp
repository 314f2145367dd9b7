#include "run/shared_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "nvlsim/analysis/job_sections.hpp"
#include "nvlsim/analysis/sections.hpp"
#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/engine/simulation.hpp"
#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/plan/joint_plan.hpp"
#include "nvlsim/plan/leaf_uplinks.hpp"
#include "nvlsim/scenario/job_places.hpp"

namespace nvlsim {
namespace {

/// A job with its plan, as priced alone on the fabric.
struct planned_job {
  const cluster_job* job = nullptr;
  platform hardware;
  plan planned;
  std::vector<std::int64_t> gpus;  ///< by rank
  std::int32_t first = 0;          ///< of its classes in the joint plan
};

/// Plans a job, or says why it cannot run.
std::vector<std::string> plan_job(planned_job& j, bool fold) {
  const scenario& s = *j.job->alone;
  if (const auto* t = std::get_if<training_workload>(&s.workload)) {
    std::vector<std::string> reasons = training_problems(j.hardware, s.model, *t);
    if (!reasons.empty()) return reasons;
    const memory_report memory = training_memory(j.hardware, s.stack, s.model, *t);
    if (!memory.fits()) return {too_large(memory)};
    j.planned = plan_training(j.hardware, s.stack, s.model, *t, fold);
    return {};
  }
  const auto& c = std::get<collective_workload>(s.workload);
  std::vector<std::string> reasons = collective_problems(j.hardware, c);
  if (reasons.empty()) j.planned = plan_collective(j.hardware, s.stack, c, fidelity::flow, fold).planned;
  return reasons;
}

/// A leaf also has the NICs of the racks between those of a job. They count as part of its racks, so that what it
/// sends from rack to rack reaches as far.
void spread_racks(planned_job& j) {
  std::set<std::int64_t> racks;
  for (const std::int64_t g : j.gpus) racks.insert(g / j.hardware.gpus_per_rack());
  const auto span = *racks.rbegin() - *racks.begin() + 1, held = static_cast<std::int64_t>(racks.size());
  if (j.hardware.rack.nvlink_planes > 0)
    j.hardware.rack.vms = static_cast<int>((j.hardware.rack.vms * span + held - 1) / held);
}

/// The GPUs of each class: classes have consecutive ranks.
std::vector<class_place> places_of(const planned_job& j, std::int32_t number) {
  std::vector<class_place> out;
  std::size_t next = 0;
  for (const rank_class& c : j.planned.classes) {
    const std::size_t end = std::min(j.gpus.size(), next + static_cast<std::size_t>(c.multiplicity));
    out.push_back(
        {number,
         {j.gpus.begin() + static_cast<std::ptrdiff_t>(next), j.gpus.begin() + static_cast<std::ptrdiff_t>(end)}});
    next = end;
  }
  return out;
}

bool listed(const background_traffic& b, std::int64_t gpu) {
  return std::any_of(b.gpus.begin(), b.gpus.end(),
                     [gpu](const auto& r) { return r.first <= gpu && gpu <= r.last; });
}

std::int64_t gpus_of(const background_traffic& b) {
  std::int64_t n = 0;
  for (const auto& r : b.gpus) n += r.last - r.first + 1;
  return n;
}

/// Flows of an all-to-all that are simulated at each port; more take no other share of it in sum.
constexpr std::int64_t most_flows = 16;

/// Traffic of one GPU; for `horizon` if it has no end of its own.
steady_traffic traffic_of(const background_traffic& b, seconds horizon) {
  const double gpus = static_cast<double>(gpus_of(b));
  steady_traffic out{b.name, {}, horizon, 1, b.start};
  const bool incast = b.pattern == traffic_pattern::incast;
  if (incast) out.flows = b.senders;
  if (b.pattern == traffic_pattern::all_to_all)
    out.flows = std::clamp<std::int64_t>(gpus_of(b) - 1, 1, most_flows);
  const double flows = static_cast<double>(out.flows);
  const bandwidth rate = incast ? b.rate : b.rate / flows;  // of a flow
  if (b.size) out.duration = *b.size / (rate * (gpus * flows));
  const bytes sent = rate * out.duration;
  port_bytes way{sent, sent};
  if (incast || (b.pattern == traffic_pattern::storage && b.reads)) way.out = {};
  if (b.pattern == traffic_pattern::storage && !b.reads) way.in = {};
  out.each.nic = out.each.uplink = way;
  return out;
}

/// Jobs and background traffic in one plan.
struct joint {
  plan all;
  std::vector<class_place> places;
  std::vector<std::string> notes;
};

/// Adds traffic to the classes whose GPUs it uses, and a class of its own for GPUs without a job.
void add_background(joint& out, const background_traffic& b, std::int32_t number, seconds horizon) {
  const steady_traffic t = traffic_of(b, horizon);
  const std::size_t of_jobs = out.places.size();
  std::int64_t met = 0;
  for (std::size_t c = 0; c < of_jobs; ++c) {
    const std::vector<std::int64_t>& gpus = out.places[c].gpus;
    const auto n = std::count_if(gpus.begin(), gpus.end(), [&](std::int64_t g) { return listed(b, g); });
    if (n == 0) continue;
    met += n;
    add_traffic(out.all, static_cast<std::int32_t>(c), t);
    if (n < static_cast<std::int64_t>(gpus.size()))
      out.notes.push_back(
          fmt::format("{} meets {} of the {} GPUs of \"{}\", which wait for the slowest: all of them "
                      "are taken to meet it",
                      b.name, n, gpus.size(), out.all.classes[c].name));
  }
  if (met >= gpus_of(b)) return;
  class_place alone{number, {}};
  std::vector<std::int64_t> of_others;
  for (const class_place& p : out.places)
    for (const std::int64_t g : p.gpus)
      if (listed(b, g)) of_others.push_back(g);
  std::sort(of_others.begin(), of_others.end());
  for (const auto& r : b.gpus)
    for (std::int64_t g = r.first; g <= r.last; ++g)
      if (!std::binary_search(of_others.begin(), of_others.end(), g)) alone.gpus.push_back(g);
  out.all.classes.push_back({b.name, static_cast<std::int64_t>(alone.gpus.size()), {}});
  add_traffic(out.all, static_cast<std::int32_t>(out.all.classes.size() - 1), t);
  out.places.push_back(std::move(alone));
}

joint together(std::vector<planned_job>& jobs, const shared_workload& w, seconds horizon) {
  joint out;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    planned_job& j = jobs[i];
    j.first = add_plan(out.all, j.planned, j.job->name + ": ", j.job->start);
    for (class_place& p : places_of(j, static_cast<std::int32_t>(i))) out.places.push_back(std::move(p));
  }
  auto number = static_cast<std::int32_t>(jobs.size());
  for (const background_traffic& b : w.background) add_background(out, b, number++, horizon);
  return out;
}

/// The job with the up-links that its classes have to themselves while the other jobs send nothing.
plan alone_on(const std::vector<shared_uplink>& uplinks, const planned_job& j) {
  plan out = j.planned;
  const auto classes = static_cast<std::int32_t>(out.classes.size());
  for (shared_uplink u : uplinks) {
    std::int32_t& c = u.classes.front();
    c -= j.first;
    if (u.classes.size() == 1 && c >= 0 && c < classes) out.uplinks.push_back(std::move(u));
  }
  return out;
}

/// Metrics that a training step has alone and beside others.
shared_job measured(const planned_job& j, const timeline& alone, const timeline& beside) {
  const scenario& s = *j.job->alone;
  shared_job out{j.job->name, "collective", ranks_of(s), j.job->start, beside.makespan, alone.makespan, {}, {}};
  if (const auto* t = std::get_if<training_workload>(&s.workload)) {
    out.kind = "training";
    out.exposed = measure_training(j.hardware, s.model, *t, j.planned, beside).exposed_communication;
    out.exposed_alone = measure_training(j.hardware, s.model, *t, j.planned, alone).exposed_communication;
  }
  return out;
}

}  // namespace

platform run_shared(run_record& out, const scenario& s, const shared_workload& w) {
  result& r = out.outcome;
  std::vector<planned_job> jobs;
  double busiest = 0;
  for (const cluster_job& job : w.jobs) {
    planned_job& j = jobs.emplace_back(planned_job{&job, s.platform, {}, nvlsim::gpus_of(job, s.platform), 0});
    j.hardware.fabric.busy = busiest_leaf(s.platform, j.gpus);
    spread_racks(j);
    busiest = std::max(busiest, j.hardware.fabric.busy);
    for (const std::string& reason : plan_job(j, s.simulation.fold)) r.reasons.push_back(job.name + ": " + reason);
  }
  platform fabric = s.platform;
  if (!r.reasons.empty()) return fabric;
  fabric.fabric.busy = busiest;
  const std::vector<shared_uplink> uplinks = uplinks_of(s.platform, together(jobs, w, 1.0_s).places);
  std::vector<timeline> alone;
  double horizon = 0;
  for (const planned_job& j : jobs) {
    alone.push_back(simulate(alone_on(uplinks, j), fabric, {s.simulation.network}));
    horizon = std::max(horizon, (j.job->start + alone.back().makespan).base());
  }
  std::vector<shared_job> measures;
  for (bool covered = false; !covered; horizon *= 2) {
    joint all = together(jobs, w, seconds::from_base(horizon));
    all.all.uplinks = uplinks;
    out.times = simulate(all.all, fabric, {s.simulation.network});
    out.planned = std::move(all.all);
    measures.clear();
    double end = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const timeline beside = times_of(out.times, jobs[i].planned, jobs[i].first, jobs[i].job->start);
      end = std::max(end, (jobs[i].job->start + beside.makespan).base());
      measures.push_back(measured(jobs[i], alone[i], beside));
    }
    covered =
        end <= horizon * (1 + 1e-9) || std::all_of(w.background.begin(), w.background.end(),
                                                   [](const background_traffic& b) { return b.size.has_value(); });
    if (covered) {
      for (std::string& n : all.notes) r.notes.push_back(std::move(n));
      out.times.makespan = seconds::from_base(end);
    }
  }
  add_jobs_sections(r, measures, out.times.makespan);
  return fabric;
}

}  // namespace nvlsim
