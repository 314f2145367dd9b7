#include <fmt/format.h>

#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/plan/part_facts.hpp"
#include "plan/exact_collective.hpp"

namespace nvlsim {
namespace {

[[noreturn]] void refuse(std::string what) { throw input_error({{"", "", std::move(what), {}}}); }

/// The group, with the cost of the collective without and with bytes.
struct priced {
  communicator group;
  collective_cost cost;
  seconds latency;
  bytes size;
};

priced by_library(const platform& p, const stack& s, const collective_workload& w) {
  const communicator g = strided_group(w.place, 0, 1, w.gpus);
  collective_options options;
  options.algorithm = w.algorithm;
  options.protocol = w.protocol;
  options.skew = w.skew;
  const collective_cost cost = collective_time(s.collectives, p, {w.operation, w.size, g, options});
  const seconds empty = collective_time(s.collectives, p, {w.operation, {}, g, options}).time;
  return {g, cost, empty, w.size};
}

priced by_theory(const ideal_network& net, const collective_workload& w) {
  const int ranks = static_cast<int>(w.gpus);
  const std::string_view algorithm = ideal_algorithm(w.operation, w.algorithm, ranks);
  const seconds t = ideal_time(net, w.operation, algorithm, w.size, ranks);
  return {{ranks, 1}, {t, algorithm}, ideal_time(net, w.operation, algorithm, {}, ranks), w.size};
}

platform ports_of(const ideal_network& net) {
  platform p;
  p.gpu.nvlink = p.fabric.nic_bandwidth = net.rate;
  p.gpu.nvlink_generation = 1;  // for names only
  return p;
}

plan one_operation(const collective_run& run, const priced& price, collective c, bool fold) {
  plan out;
  const std::string title(name(c));
  const priced_transfer t{run.cost.time, run.demand.latency, run.demand.traffic, price.size, price.group,
                          name(c),       run.cost.algorithm};
  auto facts = std::make_shared<part_facts>(facts_of(run.hardware, t));
  operation_template w{title, {{part_kind::dp, title, run.cost.time, 1, std::move(facts)}}, {}, {}};
  w.network = {run.demand};
  const port_bytes& nvlink = run.demand.traffic.nvlink;
  // Ranks of one domain send to their neighbours. Across domains, an NVLink port has no neighbour on the NVLink
  // star.
  const bool to_neighbours = !fold && price.group.domains == 1 && nvlink.out == nvlink.in;
  const std::int32_t template_index = out.add_template(std::move(w));
  const std::int32_t classes = fold ? 1 : price.group.ranks;
  for (std::int32_t i = 0; i < classes; ++i) {
    rank_class& rank = out.classes.emplace_back();
    rank.name = fold ? "rank" : fmt::format("rank {}", i);
    rank.multiplicity = fold ? price.group.ranks : 1;
    rank.streams = {{stream_kind::data_parallel, {}}};
    out.append(rank.streams.front(), template_index, {}, no_event,
               {-1, to_neighbours ? (i + 1) % classes : no_peer});
  }
  return out;
}

}  // namespace

std::vector<std::string> collective_problems(const platform& p, const collective_workload& w) {
  if (w.ideal) return {};
  std::vector<std::string> out;
  if (w.place.table && w.place.table->ranks() != w.gpus)
    out.push_back(
        fmt::format("the collective has {} ranks, but the placement has {} GPUs", w.gpus, w.place.table->ranks()));
  if (w.place.table) return out;
  const std::int64_t domain = w.place.gpus_per_domain;
  if (domain > p.gpus_per_rack())
    out.push_back(
        fmt::format("{} GPUs per rack were requested, but {} has {}", domain, p.name, p.gpus_per_rack()));
  const std::int64_t racks = (w.gpus + domain - 1) / domain;
  if (racks > p.racks)
    out.push_back(
        fmt::format("{} GPUs at {} per rack need {} racks; the platform has {}", w.gpus, domain, racks, p.racks));
  return out;
}

collective_run plan_collective(const platform& p, const stack& s, const collective_workload& w, fidelity f,
                               bool fold) {
  if (f == fidelity::exact && (!w.ideal || w.gpus > max_exact_ranks))
    refuse(fmt::format(
        "fidelity exact simulates every message, for at most {} ranks and only with ideal parameters (alpha and "
        "bandwidth); use closed or flow",
        max_exact_ranks));
  collective_run out;
  out.hardware = w.ideal ? ports_of(*w.ideal) : only_group_on(p, strided_group(w.place, 0, 1, w.gpus));
  const priced price = w.ideal ? by_theory(*w.ideal, w) : by_library(out.hardware, s, w);
  out.cost = price.cost;
  if (!w.ideal && w.skew == 1)
    out.spread = spread_of(s.collectives, out.hardware, {w.operation, w.size, price.group, {}}, price.cost);
  const network_traffic traffic =
      along(wire_traffic(w.operation, w.size * w.skew, price.group, price.cost.algorithm),
            path_of(out.hardware, w.operation, price.group));
  out.demand = demand_on(out.hardware, {price.cost.time, price.latency, traffic});
  out.planned =
      f == fidelity::exact
          ? plan_messages(out.hardware, *w.ideal, {w.operation, price.cost.algorithm, w.size, price.group.ranks})
          : one_operation(out, price, w.operation, fold);
  return out;
}

}  // namespace nvlsim
