#include "scenario/jobs_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "nvlsim/scenario/job_places.hpp"
#include "nvlsim/units/units_text.hpp"
#include "scenario/nested_reader.hpp"
#include "scenario/ranges_reader.hpp"
#include "scenario/source.hpp"

namespace nvlsim {
namespace {

std::vector<std::int64_t> numbers_of(const std::vector<degradation::range>& ranges, std::int64_t count) {
  std::vector<std::int64_t> out;
  for (const degradation::range& x : ranges)
    for (std::int64_t i = x.first; i <= std::min(x.last, count - 1); ++i) out.push_back(i);
  return out;
}

/// The racks of a job: as listed, or the first that no job before it has.
void read_place(config::reader& job, const platform& p, cluster_job& out, std::int64_t& next_rack) {
  std::optional<config::reader> place = job.find_child("placement");
  const value* policy = place ? place->raw("policy") : nullptr;
  if (policy && policy->string() && *policy->string() == "list") {
    for (const std::string_view key : place_members)
      if (place->has(key)) place->fail(key, "has no effect with policy list, which names the GPUs");
    return;
  }
  const std::int64_t racks = racks_needed(*out.alone);
  if (place) {
    out.racks = numbers_of(read_ranges(*place, "racks", p.racks, "rack"), p.racks);
    out.first_gpu = place->integer_or("first_gpu", 0, {0, std::max(0, p.gpus_per_rack() - 1)});
  }
  if (out.racks.empty()) {
    out.racks.resize(static_cast<std::size_t>(racks));
    std::iota(out.racks.begin(), out.racks.end(), next_rack);
  }
  if (static_cast<std::int64_t>(out.racks.size()) < racks)
    job.fail("placement", fmt::format("the job needs {} racks, but {} are given", racks, out.racks.size()));
  if (const std::int64_t used = gpus_used_per_rack(*out.alone); out.first_gpu + used > p.gpus_per_rack())
    job.fail("placement",
             fmt::format("the job uses {} GPUs of a rack, but a rack has {}", used, p.gpus_per_rack()));
  next_rack = std::max(next_rack, *std::max_element(out.racks.begin(), out.racks.end()) + 1);
}

/// Reports GPUs that do not exist or that two jobs have.
void check_places(const shared_workload& w, const platform& p, const std::string& file, diagnostics& problems) {
  std::map<std::int64_t, std::size_t> owner;
  for (std::size_t j = 0; j < w.jobs.size(); ++j) {
    const std::string pointer = fmt::format("/jobs/{}/placement", j);
    for (const std::int64_t gpu : gpus_of(w.jobs[j], p)) {
      if (gpu >= p.gpus()) {
        problems.add(file, pointer,
                     fmt::format("job {} reaches GPU {}, but the platform has {}; give more racks", w.jobs[j].name,
                                 gpu, p.gpus()));
        break;
      }
      const auto [it, fresh] = owner.try_emplace(gpu, j);
      if (fresh) continue;
      problems.add(file, pointer,
                   fmt::format("jobs {} and {} are both on GPU {}", w.jobs[it->second].name, w.jobs[j].name, gpu));
      break;
    }
  }
}

background_traffic read_background(config::reader& r, const platform& p, std::size_t index) {
  background_traffic b;
  b.pattern = static_cast<traffic_pattern>(r.one_of("pattern", traffic_pattern_names));
  b.name =
      r.string_or("name", fmt::format("{} {}", traffic_pattern_names[static_cast<std::size_t>(b.pattern)], index));
  b.gpus = read_ranges(r, "gpus", p.gpus(), "GPU");
  if (!r.has("gpus")) r.fail("gpus", "is missing; give the GPUs whose NICs it uses, such as \"0-63\"");
  b.rate = p.fabric.nic_bandwidth.peek();
  if (const auto rate = r.find_quantity<bandwidth>("rate", config::positive)) b.rate = *rate;
  if (b.rate > p.fabric.nic_bandwidth.peek() * (1 + 1e-9))
    r.fail("rate", fmt::format("exceeds the {} of a NIC", format_quantity(p.fabric.nic_bandwidth.peek())));
  if (const auto size = r.find_quantity<bytes>("bytes", config::positive)) b.size = *size;
  if (b.pattern == traffic_pattern::incast) b.senders = r.integer_or("senders", 1, {1, 4096});
  else r.belongs("senders", "pattern incast");
  static const std::array<std::string, 2> directions = {"write", "read"};
  if (b.pattern == traffic_pattern::storage) b.reads = r.one_of_or("direction", directions, 0) == 1;
  else r.belongs("direction", "pattern storage");
  if (const auto start = r.find_quantity<seconds>("start")) b.start = *start;
  r.done();
  return b;
}

}  // namespace

shared_workload read_jobs(config::reader& r, const config::document& doc, const platform& p,
                          const scenario_reader& read_alone, diagnostics& problems) {
  shared_workload out;
  std::int64_t next_rack = 0;
  bool readable = true;
  std::vector<config::reader> jobs = r.elements("jobs");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    config::reader& job = jobs[i];
    cluster_job one;
    one.name = job.string_or("name", fmt::format("job {}", i));
    for (const cluster_job& other : out.jobs)
      if (other.name == one.name) job.fail("name", fmt::format("two jobs are named \"{}\"", one.name));
    if (const auto start = job.find_quantity<seconds>("start")) one.start = *start;
    // By itself a server may have nothing to share; how it runs here does not depend on its own fidelity.
    const value* kind = doc.root.at_pointer(job.pointer() + "/workload/kind");
    bool serves = kind && kind->string() && *kind->string() == "inference";
    const fidelity own = serves ? fidelity::closed : fidelity::flow;
    one.alone = read_nested(job, doc, {one.name, own}, read_alone, problems);
    if (!one.alone) {
      readable = false;
      continue;
    }
    const auto* c = std::get_if<collective_workload>(&one.alone->workload);
    const bool trains = std::holds_alternative<training_workload>(one.alone->workload);
    serves = std::holds_alternative<inference_workload>(one.alone->workload);
    const bool runs = trains || serves || (c && !c->ideal);
    if (c && c->ideal)
      job.fail("workload", "a collective beside other jobs needs the parameters of a stack, not ideal ones");
    else if (!runs)
      job.fail("workload",
               "only training, inference and collectives can run beside other jobs; use background traffic for "
               "the rest");
    if (runs) read_place(job, p, one, next_rack);
    constexpr std::int64_t max_times = 10'000;
    if (!serves) one.repeat = job.integer_or("repeat", 1, {1, max_times});
    else if (job.has("repeat")) job.fail("repeat", "has no effect on inference; its load sets the duration");
    readable = readable && runs;
    job.done();
    out.jobs.push_back(std::move(one));
  }
  if (jobs.empty()) r.fail("jobs", "expected a list of at least one job");
  if (r.has("background")) {
    std::size_t index = 0;
    for (config::reader b : r.elements("background")) out.background.push_back(read_background(b, p, index++));
  }
  if (readable && problems.empty()) check_places(out, p, doc.self.where, problems);
  return out;
}

value write_jobs(const shared_workload& w) {
  value jobs{value::array{}}, background{value::array{}};
  for (const cluster_job& j : w.jobs) {
    value one = write_workload(*j.alone);
    one.set("name", j.name);
    one.set("start", j.start.base());
    one.set("repeat", j.repeat);
    value racks{value::array{}};
    for (const std::int64_t rack : j.racks) racks.items()->emplace_back(rack);
    one.set("racks", std::move(racks));
    one.set("first_gpu", j.first_gpu);
    jobs.items()->push_back(std::move(one));
  }
  for (const background_traffic& b : w.background) {
    value one{value::object{{"name", b.name}, {"rate", b.rate.base()}, {"start", b.start.base()}}};
    one.set("senders", b.senders);
    if (b.size) one.set("bytes", b.size->base());
    background.items()->push_back(std::move(one));
  }
  return value{value::object{{"jobs", std::move(jobs)}, {"background", std::move(background)}}};
}

}  // namespace nvlsim
