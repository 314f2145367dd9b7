#include "run/shared_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/job_sections.hpp"
#include "nvlsim/analysis/sections.hpp"
#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/plan/joint_plan.hpp"
#include "nvlsim/plan/leaf_uplinks.hpp"
#include "nvlsim/scenario/job_places.hpp"
#include "nvlsim/serving/serving.hpp"
#include "nvlsim/serving/worker_health.hpp"
#include "nvlsim/simulator/serving_actors.hpp"

namespace nvlsim {
namespace {

/// A job with its plan, as priced alone on the fabric. The workers of a server are classes without operations.
struct planned_job {
  const cluster_job* job = nullptr;
  platform hardware;
  plan planned;
  std::vector<std::int64_t> gpus;  ///< by rank, or by worker of a server
  std::int32_t first = 0;          ///< of its classes in the joint plan

  const inference_workload* server() const { return std::get_if<inference_workload>(&job->alone->workload); }
};

/// Racks of the platform from one of a job's to the next.
double rack_spacing(const planned_job& j) {
  std::set<std::int64_t> racks;
  for (const std::int64_t g : j.gpus) racks.insert(g / j.hardware.gpus_per_rack());
  return static_cast<double>(*racks.rbegin() - *racks.begin() + 1) / static_cast<double>(racks.size());
}

/// A leaf also has the NICs of the racks between those of a job. They count as part of its racks, so that what it
/// sends from rack to rack reaches as far. Servers know how far their racks are apart.
void spread_racks(planned_job& j) {
  if (j.hardware.rack.nvlink_planes > 0 && !j.server())
    j.hardware.rack.vms = static_cast<int>(std::ceil(j.hardware.rack.vms * rack_spacing(j)));
}

serving_run serve_on(const planned_job& j, const server_player& play) {
  const scenario& s = *j.job->alone;
  serving_options options{.traffic = true, .rack_spacing = std::llround(rack_spacing(j)), .fold = false};
  options.play = play;
  return serve(j.hardware, s.stack, s.model, *j.server(), options);
}

std::vector<rank_class> classes_of(const inference_workload& w, std::int64_t rack) {
  std::vector<rank_class> out;
  for (const bool prefills : {false, true})
    for (std::int64_t i = 0, n = workers_of(w, prefills); i < n; ++i)
      out.push_back({fmt::format("{} {}",
                                 prefills     ? "prefill worker"
                                 : w.pooled() ? "decode worker"
                                              : "replica",
                                 out.size()),
                     worker_place(i, prefills, rack, w).count,
                     {}});
  return out;
}

/// Plans a job, or says why it cannot run.
std::vector<std::string> plan_job(planned_job& j, bool fold) {
  const scenario& s = *j.job->alone;
  if (const auto* t = std::get_if<training_workload>(&s.workload)) {
    std::vector<std::string> reasons = training_problems(j.hardware, s.model, *t);
    if (reasons.empty()) reasons = format_problems(j.hardware, s.stack, *t);
    if (!reasons.empty()) return reasons;
    const memory_report memory = training_memory(j.hardware, s.stack, s.model, *t);
    if (!memory.fits()) return {too_large(memory)};
    j.planned = plan_training(j.hardware, s.stack, s.model, *t, fold);
    return {};
  }
  if (const inference_workload* w = j.server()) {
    j.planned.classes = classes_of(*w, j.hardware.gpus_per_rack());
    return serve_on(j, nullptr).reasons;
  }
  const auto& c = std::get<collective_workload>(s.workload);
  std::vector<std::string> reasons = collective_problems(j.hardware, c);
  if (reasons.empty()) j.planned = plan_collective(j.hardware, s.stack, c, fidelity::flow, fold).planned;
  return reasons;
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

/// Traffic without an end of its own comes in this many pieces, so that it is known when it was how fast.
constexpr std::int64_t endless_pieces = 32;

/// Traffic of one GPU; for `horizon` if it has no end of its own. The connections of an all-to-all ask for their
/// rate together, as one flow.
steady_traffic traffic_of(const background_traffic& b, seconds horizon) {
  const double gpus = static_cast<double>(gpus_of(b));
  steady_traffic out{b.name, {}, horizon, 1, b.start, b.size ? 1 : endless_pieces};
  const bool incast = b.pattern == traffic_pattern::incast;
  if (incast) out.flows = b.senders;
  if (b.size) out.duration = *b.size / (b.rate * (gpus * static_cast<double>(out.flows)));
  const bytes sent = b.rate * out.duration;
  port_bytes way{sent, sent};
  if (incast || (b.pattern == traffic_pattern::storage && b.reads)) way.out = {};
  if (b.pattern == traffic_pattern::storage && !b.reads) way.in = {};
  out.each.nic = out.each.uplink = out.each.pod = way;
  return out;
}

/// Jobs and background traffic in one plan.
struct joint {
  plan all;
  std::vector<class_place> places;
  std::vector<std::string> notes;
};

struct background_setting {
  seconds horizon;             ///< how long traffic without an end runs
  bool uplinks_limit = false;  ///< whether leaves have fewer up-links than NICs
};

/// Adds traffic to the ports of the classes whose GPUs it uses, and as a class of its own beyond the leaf, where
/// only the GPUs that have it count: all of them if up-links limit, and in any case those without a job.
void add_background(joint& out, const background_traffic& b, std::int32_t number, const background_setting& on) {
  const steady_traffic t = traffic_of(b, on.horizon);
  steady_traffic at_ports = t;
  at_ports.each.uplink = {};
  const std::size_t of_jobs = out.places.size();
  std::vector<std::int64_t> of_others;
  for (std::size_t c = 0; c < of_jobs; ++c) {
    const std::vector<std::int64_t>& gpus = out.places[c].gpus;
    const std::size_t before = of_others.size();
    std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(of_others),
                 [&](std::int64_t g) { return listed(b, g); });
    const std::size_t n = of_others.size() - before;
    if (n == 0) continue;
    add_traffic(out.all, static_cast<std::int32_t>(c), at_ports);
    if (n < gpus.size())
      out.notes.push_back(
          fmt::format("{} affects {} of the {} GPUs of \"{}\"; all of them are treated as affected, "
                      "because they wait for the slowest",
                      b.name, n, gpus.size(), out.all.classes[c].name));
  }
  class_place own{number, {}};
  std::sort(of_others.begin(), of_others.end());
  for (const auto& r : b.gpus)
    for (std::int64_t g = r.first; g <= r.last; ++g)
      if (on.uplinks_limit || !std::binary_search(of_others.begin(), of_others.end(), g)) own.gpus.push_back(g);
  if (own.gpus.empty()) return;
  out.all.classes.push_back({b.name, static_cast<std::int64_t>(own.gpus.size()), {}});
  add_traffic(out.all, static_cast<std::int32_t>(out.all.classes.size() - 1), t);
  out.places.push_back(std::move(own));
}

joint together(std::vector<planned_job>& jobs, const shared_workload& w, const background_setting& on) {
  joint out;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    planned_job& j = jobs[i];
    j.first = add_plan(out.all, j.planned, j.job->name + ": ", {j.job->start, j.job->repeat});
    for (class_place& p : places_of(j, static_cast<std::int32_t>(i))) out.places.push_back(std::move(p));
  }
  auto number = static_cast<std::int32_t>(jobs.size());
  for (const background_traffic& b : w.background) add_background(out, b, number++, on);
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

/// What a plan and the servers on its classes did.
struct joint_record {
  timeline times;
  std::vector<serving_run> served;  ///< by server
};

/// Runs a plan with servers. Each server's load is set up within the run of the one before, so that the last has
/// all of them.
class joint_runner {
 public:
  joint_runner(const plan& p, const platform& fabric, std::vector<const planned_job*> servers)
      : plan_(p), fabric_(fabric), servers_(std::move(servers)) {}

  /// `alone`: the plan is that of one job, whose classes come first and which begins at once.
  joint_record run(bool alone) {
    for (const planned_job* j : servers_)
      placed_.push_back({nullptr, alone ? 0 : j->first, alone ? seconds{} : j->job->start});
    out_.served.resize(servers_.size());
    play_from(0);
    out_.times = std::move(joint_.times);
    return std::move(out_);
  }

 private:
  void play_from(std::size_t i) {
    if (i == servers_.size()) {
      joint_ = simulate_jointly(plan_, placed_, fabric_);
      return;
    }
    out_.served[i] = serve_on(*servers_[i], [this, i](const std::vector<server_case>& cases) {
      placed_[i].cases = &cases;
      play_from(i + 1);
      return std::move(joint_.served[i]);
    });
  }

  const plan& plan_;
  const platform& fabric_;
  std::vector<const planned_job*> servers_;
  std::vector<placed_servers> placed_;
  joint_outcome joint_;
  joint_record out_;
};

/// Enters what the workers of a server did as operations of their classes, before those that are there.
void enter_picture(plan& p, timeline& times, const planned_job& j, const serving_run& run) {
  serving_picture picture = trace_serving(run, *j.server(), true);
  const auto first_template = static_cast<std::int32_t>(p.templates.size());
  const double start = j.job->start.base();
  for (operation_template& t : picture.planned.templates) p.templates.push_back(std::move(t));
  for (std::size_t c = 0; c < picture.planned.classes.size(); ++c) {
    const std::size_t at = static_cast<std::size_t>(j.first) + c;
    for (stream& s : picture.planned.classes[c].streams)
      for (operation& o : s.operations) {
        o.template_index += first_template;
        if (o.peer != no_peer) o.peer += j.first;
      }
    for (std::vector<span>& spans : picture.times.spans[c])
      for (span& x : spans) x.begin_s += start, x.end_s += start;
    const auto enter = [](auto& into, auto& first) {
      first.insert(first.end(), std::make_move_iterator(into.begin()), std::make_move_iterator(into.end()));
      into = std::move(first);
    };
    enter(p.classes[at].streams, picture.planned.classes[c].streams);
    enter(times.spans[at], picture.times.spans[c]);
  }
}

/// As the clients of a server see it, over all of its requests.
served_times times_of(const serving_run& run) {
  double e2e = 0, ttft = 0, tpot = 0, count = 0, of_tokens = 0;
  for (const request_record& r : run.outcome.requests) {
    const client_view seen = seen_by_client(r, run.front_end);
    const auto n = static_cast<double>(r.workers);
    e2e += n * seen.e2e_s, ttft += n * seen.ttft_s, count += n;
    if (seen.tpot_s) tpot += n * *seen.tpot_s, of_tokens += n;
  }
  served_times out{seconds::from_base(e2e / count), seconds::from_base(ttft / count), {}};
  if (of_tokens > 0) out.per_token = seconds::from_base(tpot / of_tokens);
  return out;
}

/// From the start of a job until its last operation ends.
seconds end_of(const timeline& all, const planned_job& j) {
  double end = j.job->start.base();
  for (std::size_t c = 0; c < j.planned.classes.size(); ++c)
    for (std::size_t s = 0; s < j.planned.classes[c].streams.size(); ++s)
      for (const span& x : all.spans[static_cast<std::size_t>(j.first) + c][s]) end = std::max(end, x.end_s);
  return seconds::from_base(end) - j.job->start;
}
seconds end_of(const serving_run& run) { return seconds::from_base(run.outcome.end_s); }

/// A job on the network, alone or beside others.
struct job_record {
  timeline times;                       ///< of its last time
  seconds length;                       ///< mean over its times; of a server until its last token
  const serving_run* served = nullptr;  ///< of a server
};

/// Metrics that a job has alone and beside others.
shared_job measured(const planned_job& j, const job_record& alone, const job_record& beside) {
  const scenario& s = *j.job->alone;
  shared_job out;
  out.name = j.job->name;
  out.kind = "collective";
  out.gpus = ranks_of(s);
  out.repeat = j.job->repeat;
  out.start = j.job->start;
  out.time = beside.length;
  out.alone = alone.length;
  if (const auto* t = std::get_if<training_workload>(&s.workload)) {
    out.kind = "training";
    out.exposed = measure_training(j.hardware, s.model, *t, j.planned, beside.times).exposed_communication;
    out.exposed_alone = measure_training(j.hardware, s.model, *t, j.planned, alone.times).exposed_communication;
  }
  if (j.server()) {
    out.kind = "inference";
    out.served = times_of(*beside.served);
    out.served_alone = times_of(*alone.served);
    add_inference_sections(out.own, j.hardware, *j.server(), *beside.served);
  }
  return out;
}

std::vector<const planned_job*> servers_of(const std::vector<planned_job>& jobs) {
  std::vector<const planned_job*> out;
  for (const planned_job& j : jobs)
    if (j.server()) out.push_back(&j);
  return out;
}

joint_record run_alone(const std::vector<shared_uplink>& uplinks, const platform& fabric, const planned_job& j) {
  const plan own = alone_on(uplinks, j);
  return joint_runner(own, fabric, j.server() ? std::vector{&j} : std::vector<const planned_job*>{}).run(true);
}

/// Plans all jobs, and adds the reasons why one of them cannot run.
std::vector<planned_job> plan_jobs(const scenario& s, const shared_workload& w,
                                   std::vector<std::string>& reasons) {
  std::vector<planned_job> out;
  double passes = 0;
  for (const cluster_job& job : w.jobs)
    if (const auto* t = std::get_if<training_workload>(&job.alone->workload); t && t->micro_batches() > 0)
      passes += passes_of(*t);
  reasons = flow_problems(passes);
  if (!reasons.empty()) return out;
  for (const cluster_job& job : w.jobs) {
    planned_job& j = out.emplace_back(planned_job{&job, s.platform, {}, nvlsim::gpus_of(job, s.platform), 0});
    j.hardware.fabric.busy = busiest_group(s.platform, network::uplink_level::leaves, j.gpus);
    j.hardware.fabric.busy_of_pod = busiest_group(s.platform, network::uplink_level::pods, j.gpus);
    spread_racks(j);
    for (const std::string& reason : plan_job(j, s.simulation.fold)) reasons.push_back(job.name + ": " + reason);
  }
  return out;
}

/// Times of all jobs beside each other, from what each did alone.
std::vector<shared_job> measure_all(const std::vector<planned_job>& jobs, const std::vector<joint_record>& alone,
                                    const joint_record& beside) {
  std::vector<shared_job> out;
  std::size_t server = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const planned_job& j = jobs[i];
    job_record here{times_of(beside.times, j.planned, j.first, {j.job->start, j.job->repeat}),
                    end_of(beside.times, j)};
    job_record there{alone[i].times, alone[i].times.makespan};
    if (j.server()) here.served = &beside.served[server++], there.served = &alone[i].served.front();
    if (j.server()) here.length = end_of(*here.served), there.length = end_of(*there.served);
    else here.length = here.length / static_cast<double>(j.job->repeat);
    out.push_back(measured(j, there, here));
  }
  return out;
}

}  // namespace

platform run_shared(run_record& out, const scenario& s, const shared_workload& w) {
  result& r = out.outcome;
  std::vector<planned_job> jobs = plan_jobs(s, w, r.reasons);
  platform fabric = s.platform;
  if (!r.reasons.empty()) return fabric;
  fabric.fabric.busy = fabric.fabric.busy_of_pod = 0;
  for (const planned_job& j : jobs) {
    const fabric_spec& own = j.hardware.fabric;
    fabric.fabric.busy = std::max(fabric.fabric.busy, own.busy);
    fabric.fabric.busy_of_pod = std::max(fabric.fabric.busy_of_pod, own.busy_of_pod);
  }
  const bool limit = uplinks_limit(s.platform);
  const std::vector<shared_uplink> uplinks = uplinks_of(s.platform, together(jobs, w, {1.0_s, limit}).places);
  std::vector<joint_record> alone;
  double horizon = 0;
  for (const planned_job& j : jobs) {
    const joint_record& one = alone.emplace_back(run_alone(uplinks, fabric, j));
    const seconds length = j.server() ? end_of(one.served.front()) : one.times.makespan;
    horizon = std::max(horizon, (j.job->start + length).base());
  }
  const bool all_end = std::all_of(w.background.begin(), w.background.end(),
                                   [](const background_traffic& b) { return b.size.has_value(); });
  std::vector<shared_job> measures;
  for (bool covered = false; !covered; horizon *= 2) {
    joint all = together(jobs, w, {seconds::from_base(horizon), limit});
    all.all.uplinks = uplinks;
    const std::vector<const planned_job*> servers = servers_of(jobs);
    joint_record beside = joint_runner(all.all, fabric, servers).run(false);
    measures = measure_all(jobs, alone, beside);
    double end = 0;
    for (const shared_job& m : measures)
      end = std::max(end, (m.start + m.time * static_cast<double>(m.repeat)).base());
    covered = all_end || end <= horizon * (1 + 1e-9);
    if (!covered) continue;
    for (std::size_t i = 0; i < servers.size(); ++i)
      enter_picture(all.all, beside.times, *servers[i], beside.served[i]);
    for (std::string& n : all.notes) r.notes.push_back(std::move(n));
    out.times = std::move(beside.times);
    out.times.makespan = seconds::from_base(end);
    out.planned = std::move(all.all);
  }
  add_jobs_sections(r, measures, out.times.makespan);
  return fabric;
}

}  // namespace nvlsim
