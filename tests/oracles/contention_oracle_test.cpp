// The contention experiments of docs/network-fidelities.md by hand: every GPU of the leaves with its own NIC, the
// up-links of a leaf as one link, and actors that send from GPU to GPU, in plain SimGrid. The program simulates
// one GPU of each class with its part of the up-links instead.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "nvlsim/model/model.hpp"
#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/network/topology.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/job_places.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/simulator/simulation.hpp"
#include "oracles/in_child.hpp"
#include "simulator/compat.hpp"
#include "simulator/session.hpp"
#include "simulator/simgrid_zone.hpp"
#include "support/ports.hpp"
#include "support/shipped.hpp"

using namespace nvlsim;
namespace sg4 = simulator::compat::sg4;

namespace {

using test::in_child;
using overrides = std::vector<override_option>;

/// GPUs that all do what one class of a plan does, and the leaf and the pod of each.
struct crew {
  const plan* job = nullptr;
  std::size_t rank_class = 0;
  std::vector<std::size_t> leaf_of;      ///< by GPU
  std::vector<std::size_t> pod_of = {};  ///< by GPU, where there are pods
};

port_bytes less(const port_bytes& all, const port_bytes& part) {
  return {std::max(all.out - part.out, bytes{}), std::max(all.in - part.in, bytes{})};
}

/// A message from one port to another at a known time.
struct delivery {
  double begin = 0;
  const operation_template* what = nullptr;
  std::size_t from = 0, to = 0;
};

/// Leaves and pods with their up-links, and the crews under them. Crews of one job have equally many GPUs.
class by_hand {
 public:
  by_hand(double nic, const std::vector<double>& uplinks, const std::vector<double>& of_pods = {})
      : nic_(bandwidth::from_base(nic)), leaves_(uplinks.size()) {
    for (const auto* links : {&uplinks, &of_pods})
      for (std::size_t i = 0; i < links->size(); ++i) {
        const bandwidth b = bandwidth::from_base((*links)[i]);
        const bool pod = links == &of_pods;
        fabric_.aggregates.push_back({fmt::format("{} {}", pod ? "pod" : "leaf", i),
                                      b,
                                      b,
                                      {},
                                      pod ? network::uplink_level::pods : network::uplink_level::leaves});
      }
  }

  void add(const crew& c) {
    crews_.push_back(c);
    auto& nics = nics_.emplace_back();
    for (std::size_t i = 0; i < c.leaf_of.size(); ++i) {
      nics.push_back(add_port(c.leaf_of[i]));
      if (!c.pod_of.empty()) fabric_.aggregates.at(leaves_ + c.pod_of[i]).ports.push_back(nics.back());
    }
  }
  /// A port of its own under a leaf.
  std::size_t add_port(std::size_t leaf) {
    const std::size_t port = fabric_.ports.size();
    fabric_.aggregates.at(leaf).ports.push_back(port);
    fabric_.ports.push_back({static_cast<std::int64_t>(port), nic_, nic_});
    return port;
  }
  void add(const delivery& d) { deliveries_.push_back(d); }

  /// Runs all crews. When the last operation of each class's streams ended, and then each delivery.
  std::vector<double> run() {
    const std::size_t outside = fabric_.ports.size();  // storage or other machines, which limit nothing
    const bandwidth endless = bandwidth::from_base(1e18);
    fabric_.ports.push_back({static_cast<std::int64_t>(outside), endless, endless});
    const std::unique_ptr<sg4::Engine> simgrid = start_simgrid();
    hosts_ = network::build(*simgrid, {{"nvl", "g", {}, {}, {}}, fabric_});
    outside_ = hosts_.fabric[outside];
    if (hosts_.beyond_pod.size() != hosts_.beyond.size()) hosts_.beyond_pod.resize(hosts_.beyond.size(), nullptr);
    for (const auto* hosts : {&hosts_.fabric, &hosts_.beyond, &hosts_.beyond_pod})
      for (sg4::Host* host : *hosts)
        if (host) start_receiver(host);
    ends_.assign(crews_.size() + deliveries_.size(), 0);
    begin_ = sg4::Engine::get_clock();  // goes on from the engines that the process had before
    for (std::size_t c = 0; c < crews_.size(); ++c)
      for (std::size_t i = 0; i < crews_[c].leaf_of.size(); ++i) start_gpu(c, i);
    for (std::size_t i = 0; i < deliveries_.size(); ++i)
      simulator::compat::add_actor(hosts_.fabric[deliveries_[i].from], "delivery",
                                   [this, i] { ends_[crews_.size() + i] = deliver(deliveries_[i]); });
    simgrid->run();
    return ends_;
  }

 private:
  struct event {
    std::int32_t missing = 0, waiting = 0;
    sg4::SemaphorePtr gate;
  };

  static std::unique_ptr<sg4::Engine> start_simgrid() {
    std::vector<std::string> words{"oracle",
                                   "--log=root.threshold:critical",
                                   "--cfg=contexts/stack-size:64",
                                   "--cfg=contexts/guard-size:0",
                                   "--cfg=network/model:CM02",
                                   "--cfg=network/crosstraffic:no",
                                   "--cfg=network/TCP-gamma:1e30",
                                   "--cfg=network/optim:Lazy",
                                   fmt::format("--cfg={}:1e-9", simulator::compat::timing_precision)};
    std::vector<char*> argv;
    for (std::string& s : words) argv.push_back(s.data());
    int argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    return std::make_unique<sg4::Engine>(&argc, argv.data());
  }

  static sg4::Mailbox* box_of(const sg4::Host* host) { return sg4::Mailbox::by_name(host->get_name()); }

  /// With a receiver that always waits, messages flow at once.
  static void start_receiver(sg4::Host* host) {
    const auto receiver = simulator::compat::add_actor(host, "receiver", [box = box_of(host)] {
      box->set_receiver(sg4::Actor::self());
      for (;;) box->get<char>();
    });
    receiver->daemonize();
  }

  /// Events of a job: all GPUs of a class arrive, because their collectives make them wait for each other.
  std::vector<event>& events_of(const crew& c) {
    auto& out = events_[c.job];
    if (out.empty())
      for (const std::int32_t n : c.job->arrivals)
        out.push_back({n * static_cast<std::int32_t>(c.leaf_of.size()), 0, sg4::Semaphore::create(0)});
    return out;
  }

  void start_gpu(std::size_t c, std::size_t i) {
    const plan& p = *crews_[c].job;
    for (const stream& s : p.classes[crews_[c].rank_class].streams) {
      std::vector<event>& events = events_of(crews_[c]);
      simulator::compat::add_actor(hosts_.fabric[nics_[c][i]], "gpu", [this, &p, &s, &events, c, i] {
        for (const operation& o : s.operations) {
          for (std::uint32_t k = 0; k < o.waits; ++k) {
            event& e = events[static_cast<std::size_t>(p.waits[o.first_wait + k])];
            if (e.missing == 0) continue;
            ++e.waiting;
            e.gate->acquire();
          }
          perform(p.templates[static_cast<std::size_t>(o.template_index)], c, i, o.peer);
          if (o.signals == no_event) continue;
          event& e = events[static_cast<std::size_t>(o.signals)];
          if (--e.missing > 0) continue;
          for (; e.waiting > 0; --e.waiting) e.gate->release();
        }
        if (s.kind != stream_kind::background) ends_[c] = std::max(ends_[c], sg4::Engine::get_clock() - begin_);
      });
    }
  }

  static void sleep_until(double date) {
    if (const double left = date - sg4::Engine::get_clock(); left >= 1e-9) sg4::this_actor::sleep_for(left);
  }

  /// An operation: its exchanges in order, each not before its time, then what is left of its own time.
  void perform(const operation_template& w, std::size_t c, std::size_t i, std::int32_t peer) {
    const double begin = sg4::Engine::get_clock();
    double over = begin;
    for (const network_demand& d : w.network) {
      const double from = std::max(over, begin + d.start.base());
      const double alone = from + (d.end - d.start).base();
      const port_bytes &nic = d.traffic.nic, &up = d.traffic.uplink;
      const port_bytes pod = crews_[c].pod_of.empty() ? port_bytes{} : d.traffic.pod;
      if (nic.out.base() + nic.in.base() > 0) {
        sleep_until(from + d.latency.base());
        exchange({less(less(nic, less(up, pod)), pod), less(up, pod), pod}, alone, {c, i, peer});
      }
      over = std::max(alone, sg4::Engine::get_clock());
    }
    sleep_until(std::max(over, begin + w.duration.base()));
  }

  /// Not Comm::sendto, which ignores the rate in SimGrid 3.32, so that a flow alone is faster than its operation.
  void start_flow(std::vector<sg4::CommPtr>& flows, std::pair<sg4::Host*, sg4::Host*> way, double amount,
                  double left) {
    if (amount < 1) return;
    if (sg4::this_actor::get_host() != way.first) sg4::this_actor::set_host(way.first);
    flows.push_back(box_of(way.second)->put_init(&payload_, static_cast<std::uint64_t>(amount)));
    flows.back()->set_rate(std::floor(amount) / left);
    flows.back()->start();
  }

  /// Returns when it has arrived.
  double deliver(const delivery& d) {
    sleep_until(begin_ + d.begin);
    double over = begin_ + d.begin;
    for (const network_demand& n : d.what->network) {
      const double end = over + (n.end - n.start).base();
      sleep_until(over + n.latency.base());
      const double left = end - sg4::Engine::get_clock();
      const double beyond = n.traffic.uplink.out.base();
      std::vector<sg4::CommPtr> flows;
      start_flow(flows, {hosts_.fabric[d.from], hosts_.fabric[d.to]}, n.traffic.nic.out.base() - beyond, left);
      start_flow(flows, {hosts_.beyond[d.from], hosts_.beyond[d.to]}, beyond, left);
      for (const sg4::CommPtr& f : flows) f->wait();
      over = std::max(end, sg4::Engine::get_clock());
    }
    return over - begin_;
  }

  struct sender {
    std::size_t crew, gpu;
    std::int32_t peer;
  };
  /// Bytes under the leaf, beyond it in the pod, and beyond the pod.
  struct message {
    port_bytes local, beyond, beyond_pod;
  };

  /// To the same GPU of the peer's crew, or round the crew: beyond the leaf to half of it further, under it to the
  /// next. What is not answered goes outside, or comes from there.
  void exchange(const message& m, double end, const sender& s) {
    const double left = end - sg4::Engine::get_clock();
    if (left < 1e-9) return;
    std::vector<sg4::CommPtr> flows;
    const auto flow = [&](sg4::Host* from, sg4::Host* to, double amount) {
      start_flow(flows, {from, to}, amount, left);
    };
    const auto& own = nics_[s.crew];
    const auto& others = s.peer == no_peer ? own : nics_[peer_crew(s)];
    const std::size_t n = own.size(), next = s.peer == no_peer ? (s.gpu + 1) % n : s.gpu,
                      far = s.peer == no_peer ? (s.gpu + n / 2) % n : s.gpu;
    const bool ring = s.peer == no_peer;
    const auto all = [&](const port_bytes& b, sg4::Host* from, sg4::Host* to) {
      const double out = b.out.base(), in = ring ? b.in.base() : out;
      flow(from, to, std::min(out, in));
      if (out > in) flow(from, outside_, out - in);
      if (in > out) flow(outside_, from, in - out);
    };
    all(m.local, hosts_.fabric[own[s.gpu]], hosts_.fabric[others[next % others.size()]]);
    all(m.beyond, hosts_.beyond[own[s.gpu]], hosts_.beyond[others[far % others.size()]]);
    all(m.beyond_pod, hosts_.beyond_pod[own[s.gpu]], hosts_.beyond_pod[others[far % others.size()]]);
    for (const sg4::CommPtr& f : flows) f->wait();
  }

  std::size_t peer_crew(const sender& s) const {
    for (std::size_t c = 0; c < crews_.size(); ++c)
      if (crews_[c].job == crews_[s.crew].job && crews_[c].rank_class == static_cast<std::size_t>(s.peer))
        return c;
    FAIL("no crew for the peer");
    return 0;
  }

  bandwidth nic_;
  std::size_t leaves_;
  network::star fabric_{"ib", "n", {}, {}, {}};
  network::zones hosts_;
  sg4::Host* outside_ = nullptr;
  std::vector<crew> crews_;
  std::vector<delivery> deliveries_;
  std::vector<std::vector<std::size_t>> nics_;  ///< port by crew and GPU
  std::map<const plan*, std::vector<event>> events_;
  char payload_ = 0;
  double begin_ = 0;
  std::vector<double> ends_;  ///< by crew
};

/// The GPUs of each class of a plan whose ranks have these GPUs: classes have consecutive ranks.
std::vector<crew> crews_of(const plan& p, const std::vector<std::vector<std::int64_t>>& gpus_by_job,
                           const std::function<std::size_t(std::int64_t)>& leaf_of,
                           const std::function<std::size_t(std::int64_t)>& pod_of = {}) {
  std::vector<crew> out;
  std::size_t c = 0;
  for (const std::vector<std::int64_t>& gpus : gpus_by_job)
    for (std::size_t rank = 0; rank < gpus.size(); ++c) {
      crew one{&p, c, {}};
      for (std::int64_t i = 0; i < p.classes[c].multiplicity; ++i, ++rank) {
        one.leaf_of.push_back(leaf_of(gpus[rank]));
        if (pod_of) one.pod_of.push_back(pod_of(gpus[rank]));
      }
      out.push_back(std::move(one));
    }
  return out;
}

/// A step of one job by hand: eight GPUs of each class under four leaves of their own, two in a pod. The others of
/// the leaves and pods send as much. Where only one level limits, it has half of the GPUs under each of its
/// switches.
double step_by_hand(const scenario& s, const plan& p) {
  const auto links_of = [&](network::uplink_level level) {
    return limits(s.platform, level) ? network::uplink_of(s.platform, level).base() : 1e18;
  };
  return in_child([&] {
           const double leaf = links_of(network::uplink_level::leaves),
                        pod = links_of(network::uplink_level::pods);
           by_hand fabric(s.platform.fabric.nic_bandwidth.base(),
                          std::vector<double>(4 * p.classes.size(), 2 * leaf),
                          std::vector<double>(2 * p.classes.size(), 4 * pod));
           for (std::size_t c = 0; c < p.classes.size(); ++c) {
             crew one{&p, c, {}, {}};
             for (std::size_t i = 0; i < 8; ++i)
               one.leaf_of.push_back(4 * c + i / 2), one.pod_of.push_back(2 * c + i / 4);
             fabric.add(one);
           }
           const std::vector<double> end_times = fabric.run();
           return std::vector<double>{*std::max_element(end_times.begin(), end_times.end())};
         })
      .front();
}

/// The leaves, or pods, of all GPUs and what each has of up-links. One that limits nothing for all leaves, and no
/// pods, where the level does not limit.
struct groups {
  std::vector<double> capacities;
  std::function<std::size_t(std::int64_t)> number;
};
groups groups_of(const platform& p, network::uplink_level level,
                 const std::vector<std::vector<std::int64_t>>& gpus) {
  if (!limits(p, level) && level == network::uplink_level::pods) return {};
  if (!limits(p, level)) return {{1e18}, [](std::int64_t) { return std::size_t{0}; }};
  std::map<std::int64_t, std::size_t> used;
  for (const std::vector<std::int64_t>& of_job : gpus)
    for (const std::int64_t g : of_job) used.try_emplace(network::uplink_group_of(p, level, g), used.size());
  const double each = network::uplink_of(p, level).base() * network::gpus_per_uplink_group(p, level);
  return {std::vector<double>(used.size(), each),
          [&p, level, used](std::int64_t g) { return used.at(network::uplink_group_of(p, level, g)); }};
}

/// All GPUs of all jobs by hand, under the leaves where they are. When the last class of each job ended.
std::vector<double> jobs_by_hand(const scenario& s, const plan& p) {
  const auto& w = std::get<shared_workload>(s.workload);
  std::vector<std::vector<std::int64_t>> gpus;
  for (const cluster_job& j : w.jobs) gpus.push_back(gpus_of(j, s.platform));
  const groups by_leaf = groups_of(s.platform, network::uplink_level::leaves, gpus),
               by_pod = groups_of(s.platform, network::uplink_level::pods, gpus);
  const std::vector<crew> crews =
      crews_of(p, gpus, by_leaf.number, by_pod.capacities.empty() ? nullptr : by_pod.number);
  const std::vector<double> end_times = in_child([&] {
    by_hand fabric(s.platform.fabric.nic_bandwidth.base(), by_leaf.capacities, by_pod.capacities);
    for (const crew& c : crews) fabric.add(c);
    return fabric.run();
  });
  std::vector<double> out(w.jobs.size(), 0);
  for (std::size_t c = 0; c < crews.size(); ++c)
    for (std::size_t j = 0; j < w.jobs.size(); ++j)
      if (p.classes[crews[c].rank_class].name.starts_with(w.jobs[j].name + ": "))
        out[j] = std::max(out[j], end_times[c]);
  return out;
}

std::vector<double> job_times(const run_record& r) {
  std::vector<double> out;
  for (const value& j : *r.outcome.breakdown.find("jobs")->items()) out.push_back(*j.find("time_s")->number());
  return out;
}

}  // namespace

TEST_CASE("A step on an oversubscribed fabric takes as long by hand") {
  const std::string of_leaves = "/platform/fabric/oversubscription",
                    of_pods = "/platform/fabric/pod_oversubscription";
  struct fabric {
    const char *leaf, *pod;  // so many to 1
  };
  for (const auto& [leaf, pod] : {fabric{"2", "1"}, {"4", "1"}, {"8", "1"}, {"1", "32"}, {"4", "16"}}) {
    INFO(leaf << " to 1, pods " << pod << " to 1");
    const scenario s = test::shipped_scenario(
        "training/llama3.1-405b-gb300-512", {{"/workload/tp", "4"},
                                             {"/workload/global_batch_size", "128"},
                                             {"/workload/dp", "8"},
                                             {"/platform/racks", "64"},
                                             {"/placement/gpus_per_rack", "8"},
                                             {"/platform/fabric/pod_gpus", pod == std::string("1") ? "0" : "288"},
                                             {of_leaves, leaf},
                                             {of_pods, pod}});
    plan p = plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload));
    for (operation_template& t : p.templates)
      for (network_demand& d : t.network) d.traffic.nvlink = {};  // by hand there are only NICs
    const double here = simulate(p, s.platform, {fidelity::flow}).makespan.base();
    CHECK(here == Approx(step_by_hand(s, p)).epsilon(0.001));
  }
}

/// Two steps on 128 B300 each, in servers 0 to 31, that alternate or are in blocks.
void two_jobs(bool in_blocks, const overrides& fabric) {
  std::vector<std::string> racks(2);
  for (int server = 0; server < 32; ++server)
    racks[static_cast<std::size_t>(in_blocks ? server / 16 : server % 2)] += fmt::format(",{}", server);
  overrides sets = fabric;
  sets.push_back({"/platform/racks", "32"});
  for (const std::size_t j : {0, 1}) {
    sets.push_back({fmt::format("/jobs/{}/workload/dp", j), "4"});
    sets.push_back({fmt::format("/jobs/{}/workload/global_batch_size", j), "16"});
    sets.push_back({fmt::format("/jobs/{}/placement/racks", j), racks[j].substr(1)});
  }
  const scenario s = test::shipped_scenario("jobs/two-llama3.1-405b-b300", sets);
  const run_record r = run_scenario(s);
  REQUIRE(r.outcome.reasons.empty());
  const std::vector<double> by = jobs_by_hand(s, r.planned), here = job_times(r);
  for (std::size_t j = 0; j < here.size(); ++j) CHECK(here[j] == Approx(by[j]).epsilon(0.01));
}

overrides cut(const char* leaf, const char* pod) {
  return {{"/platform/fabric/oversubscription", leaf},
          {"/platform/fabric/pod_gpus", "64"},
          {"/platform/fabric/pod_oversubscription", pod}};
}

TEST_CASE("Two jobs take as long by hand, interleaved and in blocks") {
  two_jobs(false, {});
  two_jobs(true, {{"/platform/fabric/oversubscription", "16"}});
}

TEST_CASE("Two jobs in pods take as long by hand") { two_jobs(false, cut("1", "8")); }

TEST_CASE("Two jobs take as long by hand where leaves and pods limit") {
  two_jobs(false, cut("2", "4"));
  two_jobs(true, cut("4", "4"));
}

TEST_CASE("A step beside a checkpoint takes as long by hand") {
  const scenario s = test::shipped_scenario("jobs/llama3.1-405b-checkpoint-b300");
  const run_record r = run_scenario(s);
  // Without oversubscription nothing is shared beyond the ports: one GPU of each class and two of its replicas.
  const double by = in_child([&] {
                      by_hand fabric(s.platform.fabric.nic_bandwidth.base(), {1e18});
                      for (std::size_t c = 0; c < r.planned.classes.size(); ++c)
                        fabric.add({&r.planned, c, {0, 0}});
                      const std::vector<double> end_times = fabric.run();
                      return std::vector<double>{*std::max_element(end_times.begin(), end_times.end())};
                    }).front();
  CHECK(job_times(r).front() == Approx(by).epsilon(0.01));
}

// 32 prefill workers under one leaf send caches to 32 decode workers under another, while the GPUs beside them
// reduce round both leaves: a ring all-reduce, or the gradients of a training job.
TEST_CASE("Caches of a server arrive as late as by hand beside a collective and beside training") {
  const std::string a = "0,2,4,6,8,10,12,14", both = a + ",16,18,20,22,24,26,28,30";
  const std::string ring = R"("stack": "nccl-2.29", "repeat": 40, "workload": {"kind": "collective",
          "operation": "all_reduce", "size": "1 GiB", "algorithm": "ring", "gpus": 128})",
                    training = R"("stack": "megatron-bridge-26.06", "model": "llama3-8b", "repeat": 3,
          "workload": {"kind": "training", "seq_length": 8192, "global_batch_size": 32, "micro_batch_size": 1,
          "precision": "bf16", "tp": 8, "dp": 16, "sequence_parallel": true,
          "data_parallel_sharding": "distributed_optimizer"})";
  for (const std::string& job : {ring, training}) {
    INFO(job);
    const scenario s = test::shipped_scenario(
        "jobs/llama3.1-405b-beside-chat-b300",
        {{"/platform/racks", "32"},
         {"/platform/set", R"({"/fabric/oversubscription": 8})"},
         {"/jobs", R"([{"name": "neighbour", )" + job + R"(, "placement": {"policy": "racks", "racks": ")" + both +
                       R"("}},
        {"name": "chat", "stack": "vllm-0.12", "model": "llama3-8b", "workload": {"kind": "inference",
          "engine": {"weights": "bf16", "kv_cache": "bf16"}, "load": {"kind": "closed_loop", "requests": 32,
          "concurrency": 32, "input": {"mean": 6000, "spread": 0.3}, "output": {"mean": 2}},
          "layout": {"prefill": {"workers": 32}, "decode": {"workers": 32}}},
          "placement": {"racks": "1,3,5,7,17,19,21,23"}}])"}});
    const run_record r = run_scenario(s);
    REQUIRE(r.outcome.reasons.empty());
    const auto& w = std::get<shared_workload>(s.workload);
    const std::vector<std::int64_t> of_neighbour = gpus_of(w.jobs[0], s.platform),
                                    of_chat = gpus_of(w.jobs[1], s.platform);
    const auto leaf_of = [&](std::int64_t g) { return static_cast<std::size_t>(network::leaf_of(s.platform, g)); };
    const std::vector<crew> crews = crews_of(r.planned, {of_neighbour}, leaf_of);
    std::vector<std::pair<const operation*, span>> caches;
    std::vector<std::size_t> senders;
    for (std::size_t c = crews.size(); c < r.planned.classes.size(); ++c)
      for (std::size_t k = 0; k < r.planned.classes[c].streams.size(); ++k) {
        const stream& from = r.planned.classes[c].streams[k];
        if (from.kind != stream_kind::kv_transfer) continue;
        for (std::size_t o = 0; o < from.operations.size(); ++o) {
          caches.emplace_back(&from.operations[o], r.times.spans[c][k][o]);
          senders.push_back(c - crews.size());
        }
      }
    const auto sends = [&](const operation& o) {
      return &r.planned.templates[static_cast<std::size_t>(o.template_index)];
    };
    const std::vector<double> by = in_child([&] {
      const double of_leaf = network::uplink_of(s.platform).base() * network::gpus_per_leaf(s.platform);
      by_hand fabric(s.platform.fabric.nic_bandwidth.base(), std::vector<double>(2, of_leaf));
      for (const crew& c : crews) fabric.add(c);
      std::vector<std::size_t> ports;
      for (const std::int64_t g : of_chat) ports.push_back(fabric.add_port(leaf_of(g)));
      for (std::size_t i = 0; i < caches.size(); ++i) {
        const auto& [cache, ran] = caches[i];
        const std::size_t to = static_cast<std::size_t>(cache->peer) - crews.size();
        fabric.add(delivery{ran.begin_s, sends(*cache), ports[senders[i]], ports[to]});
      }
      return fabric.run();
    });
    double took = 0, alone = 0;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const auto& [cache, ran] = caches[i];
      CHECK(ran.end_s == Approx(by[crews.size() + i]).epsilon(0.01));
      took += by[crews.size() + i] - ran.begin_s;
      alone += sends(*cache)->duration.base();
    }
    CHECK(caches.size() == 32);
    CHECK(job_times(r).front() * static_cast<double>(w.jobs[0].repeat) == Approx(by.front()).epsilon(0.01));
    CHECK(took > (job == ring ? 1.05 : 1) * alone);  // the neighbour is in their way
  }
}

TEST_CASE("KV caches of 63 prefill workers reach one decode worker as late as by hand") {
  const auto ttft = [](const char* fidelity) {
    const scenario s =
        test::shipped_scenario("inference/deepseek-r1-gb300-prefill-decode",
                               {{"/model", "llama3-8b"},
                                {"/workload/engine", R"({"weights": "bf16", "kv_cache": "bf16"})"},
                                {"/workload/load", R"({"kind": "closed_loop", "requests": 63, "concurrency": 63,
                                "input": {"mean": 8000}, "output": {"mean": 64}})"},
                                {"/workload/layout", R"({"prefill": {"workers": 63}, "decode": {"workers": 1}})"},
                                {"/simulation/fidelity", fidelity}});
    return std::pair(*run_scenario(s).outcome.metrics.at_pointer("/ttft_s/max")->number(), s);
  };
  const auto [flow, s] = ttft("flow");
  const double cache = 8000 * kv_bytes_per_token(s.model, precision::bf16), rate = s.platform.gpu.nvlink.base();
  constexpr int senders = 63;
  const double last =
      in_child([&] {
        simulator::session here;
        std::vector<std::int64_t> gpus(senders + 1);
        std::iota(gpus.begin(), gpus.end(), 0);
        const network::zones z =
            network::build(here.simgrid(), network::describe(test::bare_ports({}, rate), gpus));
        int payload = 0;
        for (int i = 0; i < senders; ++i) {
          sg4::Mailbox* box = sg4::Mailbox::by_name(std::to_string(i));
          simulator::compat::add_actor(z.nvlink[static_cast<std::size_t>(i)], "prefill",
                                       [=, &payload] { box->put(&payload, static_cast<std::uint64_t>(cache)); });
          simulator::compat::add_actor(z.nvlink.back(), "decode", [box] { box->get<int>(); });
        }
        here.simgrid().run();
        return std::vector<double>{here.now()};
      }).front();
  CHECK(last == Approx(senders * cache / rate).epsilon(1e-3));
  // In `closed` each has the port to itself.
  CHECK(flow - ttft("closed").first == Approx(last - cache / rate).epsilon(0.01));
}
