#include "scenario/fleet_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenario/name_reader.hpp"
#include "scenario/request_file.hpp"
#include "scenario/source.hpp"

namespace nvlsim {
namespace {

const std::array<std::string, 3> policy_names = {"fixed", "reactive", "scheduled"};
constexpr double file_step_s = 60;  // arrivals of a file are counted by the minute

/// Requests a second by the minute, from the arrival times of a file.
load_profile profile_of(const request_trace& trace) {
  load_profile out{{}, file_step_s};
  for (const served_request& q : trace.list.requests) {
    const auto minute = static_cast<std::size_t>(q.arrival_s / file_step_s);
    if (minute >= out.requests_per_s.size()) out.requests_per_s.resize(minute + 1);
    out.requests_per_s[minute] += 1 / file_step_s;
  }
  return out;
}

load_profile read_load_file(config::reader& r, const config::document& doc, diagnostics& problems) {
  const std::string name = read_name(r, "file");
  if (name.empty()) return {};
  const std::string pointer = pointer_to(r.pointer(), "file");
  const config::origin& by = doc.origin_of(pointer);
  const std::filesystem::path folder = by.overrides ? "" : std::filesystem::path(doc.self.where).parent_path();
  const std::string path = (folder / name).string();
  try {
    const request_trace trace = read_request_file(path, path, {}, problems);
    if (!trace.timed) r.fail("file", fmt::format("{} has no arrival times", name));
    return profile_of(trace);
  } catch (const io_error& e) {
    problems.add({by.where, pointer, e.what(), {}, true});
    return {};
  }
}

/// The load by time: given, or counted in a file.
load_profile read_load(config::reader r, const config::document& doc, diagnostics& problems) {
  load_profile out;
  const value* list = r.raw("requests_per_s");
  if ((list != nullptr) == r.has("file")) r.fail("", "give either \"requests_per_s\" or \"file\"");
  if (r.has("file")) {
    r.belongs("step", "a load with \"requests_per_s\"");
    out = read_load_file(r, doc, problems);
  } else if (list) {
    if (!list->items() || list->items()->empty())
      r.fail("requests_per_s", "expected a list of rates, at equal steps of time");
    else
      for (const value& v : *list->items()) {
        const double x = v.number() ? *v.number() : v.integer() ? static_cast<double>(*v.integer()) : -1;
        if (!(x >= 0 && x <= 1e12)) r.fail("requests_per_s", "expected numbers of at least 0");
        out.requests_per_s.push_back(std::max(0.0, x));
      }
    if (const auto step = r.find_quantity<seconds>("step", config::positive)) out.step_s = step->base();
  }
  const double scale = r.number_or("scale", 1, config::positive);
  for (double& x : out.requests_per_s) x *= scale;
  r.done();
  return out;
}

autoscaler read_scaler(config::reader r, std::int64_t most_that_fit) {
  autoscaler a;
  a.policy = static_cast<scaling_policy>(r.one_of("policy", policy_names));
  a.max_replicas = r.integer_or("max", std::max<std::int64_t>(1, most_that_fit), config::positive_int);
  if (a.policy == scaling_policy::fixed) {
    for (const char* member : {"min", "target", "window", "cooldown"})
      r.belongs(member, "the policies reactive and scheduled");
    a.min_replicas = a.max_replicas;
  } else {
    a.min_replicas = r.integer_or("min", 1, {1, a.max_replicas});
    a.target = r.number_or("target", a.target, {1e-3, 1});
    if (const auto x = r.find_quantity<seconds>("cooldown")) a.cooldown_s = x->base();
    if (a.policy == scaling_policy::scheduled) r.belongs("window", "the policy reactive");
    else if (const auto x = r.find_quantity<seconds>("window", config::positive)) a.window_s = x->base();
  }
  r.done();
  return a;
}

const std::array<std::string, 2> weight_places = {"nvme", "store"};

/// A store that replicas load from: what one machine reads, and all together.
std::optional<save_tier> read_store(config::reader& fleet) {
  auto r = fleet.find_child("store");
  if (!r) return std::nullopt;
  save_tier out;
  out.read = r->quantity<bandwidth>("read", config::positive);
  out.store_read = r->find_quantity<bandwidth>("store_read", config::positive);
  r->done();
  return out;
}

void read_start(config::reader r, const platform& p, bool has_store, fleet_member& m) {
  m.provision = r.quantity<seconds>("provision");
  m.warm_up = r.quantity<seconds>("warm_up");
  m.load_bandwidth = r.find_quantity<bandwidth>("load_bandwidth", config::positive);
  m.from_store = r.one_of_or("from", weight_places, 0) == 1;
  if (m.from_store && !has_store) r.fail("from", "there is no store; give /workload/fleet/store");
  if (r.has("from") && m.load_bandwidth) r.fail("from", "cannot be combined with load_bandwidth");
  if (!m.load_bandwidth && !m.from_store && !(p.vm.nvme_read.peek() > bandwidth{}))
    r.fail("load_bandwidth", "is missing, and the platform's machines have no NVMe to load weights from");
  r.done();
}

void read_failures(config::reader& r, fleet_failures& out) {
  auto f = r.find_child("failures");
  if (!f) return;
  out.gpu_mtbf_s = f->quantity<seconds>("gpu_mtbf", config::positive).base();
  out.detection_s = f->quantity<seconds>("detection").base();
  out.repair_s = f->quantity<seconds>("repair").base();
  f->done();
}

/// What a service may use.
struct fleet_hardware {
  const platform& machines;
  bool has_store = false;  ///< that all replicas may load their weights from
};

fleet_member read_service(config::reader& r, const config::document& doc, const fleet_hardware& on,
                          const scenario_reader& read_alone, diagnostics& problems) {
  const platform& p = on.machines;
  fleet_member m;
  fleet_service& s = m.about;
  s.name = read_name(r, "name");
  m.alone = read_nested(r, doc, {s.name, {}}, read_alone, problems);
  const auto* w = m.alone ? std::get_if<inference_workload>(&m.alone->workload) : nullptr;
  if (m.alone && !w) r.fail("workload", "a fleet service needs kind inference");
  if (w && w->load != load_kind::open_loop)
    r.fail("workload", "a fleet replica needs an open-loop load; the fleet sets its rate");
  constexpr std::int64_t most = 100'000;  // one run for each of many rates
  if (w && w->requests > most)
    r.fail("workload",
           fmt::format("load/requests is {}; the maximum for a fleet replica is {}", w->requests, most));
  if (w) {
    s.gpus = w->gpus();
    s.ttft_limit_s = w->objective.ttft_s;
    if (!w->objective.percentiles.empty())
      r.fail("workload", "a fleet service takes one limit a latency and one share; slo has percentiles");
    if (w->objective.any()) s.objective_share = w->objective.means ? 0.5 : w->objective.largest_share();
  }
  s.load = read_load(r.child("arrivals"), doc, problems);
  s.scaler = read_scaler(r.child("autoscale"), p.gpus() / std::max<std::int64_t>(1, s.gpus));
  read_start(r.child("start"), p, on.has_store, m);
  if (const auto x = r.find_quantity<seconds>("patience", config::positive)) s.patience_s = x->base();
  r.done();
  return m;
}

}  // namespace

std::shared_ptr<fleet_case> read_fleet(config::reader& workload, const config::document& doc, const platform& p,
                                       const scenario_reader& read_alone, diagnostics& problems) {
  auto r = workload.find_child("fleet");
  if (!r) return nullptr;
  auto out = std::make_shared<fleet_case>();
  fleet_spec& f = out->cluster;
  f.racks = p.racks;
  f.gpus_per_rack = p.gpus_per_rack();
  f.machine_gpus = std::max<std::int64_t>(1, p.vm.gpus.peek());
  if (const auto x = r->find_quantity<seconds>("tick", {0.1, 3600})) f.tick_s = x->base();
  f.preempt = r->boolean_or("preempt", false);
  read_failures(*r, f.failures);
  out->store = read_store(*r);
  for (config::reader& one : r->elements("services")) {
    fleet_member m = read_service(one, doc, {p, out->store.has_value()}, read_alone, problems);
    for (const fleet_member& other : out->services)
      if (other.about.name == m.about.name)
        one.fail("name", fmt::format("two services are named \"{}\"", m.about.name));
    out->services.push_back(std::move(m));
  }
  if (out->services.empty()) r->fail("services", "expected a list of at least one service");
  r->done();
  return out;
}

value write_fleet(const fleet_case& f) {
  value services{value::array{}};
  for (const fleet_member& m : f.services) {
    const fleet_service& s = m.about;
    value one = write_workload(*m.alone);
    one.set("name", s.name);
    value rates{value::array{}};
    for (const double x : s.load.requests_per_s) rates.items()->emplace_back(x);
    one.set("arrivals", value::object{{"requests_per_s", std::move(rates)}, {"step", s.load.step_s}});
    one.set("autoscale", value::object{{"policy", policy_names[static_cast<std::size_t>(s.scaler.policy)]},
                                       {"min", s.scaler.min_replicas},
                                       {"max", s.scaler.max_replicas},
                                       {"target", s.scaler.target},
                                       {"window", s.scaler.window_s},
                                       {"cooldown", s.scaler.cooldown_s}});
    one.set("start", value::object{{"provision", m.provision.peek().base()},
                                   {"warm_up", m.warm_up.peek().base()},
                                   {"load_bandwidth", m.load_bandwidth ? m.load_bandwidth->peek().base() : 0.0},
                                   {"from", weight_places[m.from_store ? 1 : 0]}});
    one.set("patience", s.patience_s);
    services.items()->push_back(std::move(one));
  }
  const fleet_failures& x = f.cluster.failures;
  value out{value::object{
      {"tick", f.cluster.tick_s}, {"preempt", f.cluster.preempt}, {"services", std::move(services)}}};
  out.set("failures",
          value::object{{"gpu_mtbf", x.gpu_mtbf_s}, {"detection", x.detection_s}, {"repair", x.repair_s}});
  if (f.store)
    out.set("store",
            value::object{{"read", f.store->read.peek().base()},
                          {"store_read", f.store->store_read ? f.store->store_read->peek().base() : 0.0}});
  return out;
}

}  // namespace nvlsim
