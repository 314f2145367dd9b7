// The contention experiments of docs/network-fidelities.md by hand: every GPU of the leaves with its own NIC, the
// up-links of a leaf as one link, and actors that send from GPU to GPU, in plain SimGrid. The program simulates
// one GPU of each class with its part of the up-links instead.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/compat.hpp"
#include "engine/session.hpp"
#include "engine/simgrid_zone.hpp"
#include "nvlsim/engine/simulation.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/network/topology.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/job_places.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "oracles/in_child.hpp"
#include "support/ports.hpp"
#include "support/shipped.hpp"

using namespace nvlsim;
namespace sg4 = simulator::compat::sg4;

namespace {

using test::in_child;
using overrides = std::vector<override_option>;

/// GPUs that all do what one class of a plan does, and the leaf of each.
struct crew {
  const plan* job = nullptr;
  std::size_t rank_class = 0;
  std::vector<std::size_t> leaf_of;  ///< by GPU
};

/// A message from one port to another at a known time.
struct delivery {
  double begin = 0;
  const operation_template* what = nullptr;
  std::size_t from = 0, to = 0;
};

/// Leaves with their up-links, and the crews under them. Crews of one job have equally many GPUs.
class by_hand {
 public:
  by_hand(double nic, const std::vector<double>& uplinks) : nic_(bandwidth::from_base(nic)) {
    for (std::size_t l = 0; l < uplinks.size(); ++l)
      fabric_.aggregates.push_back(
          {fmt::format("leaf {}", l), bandwidth::from_base(uplinks[l]), bandwidth::from_base(uplinks[l]), {}});
  }

  void add(const crew& c) {
    crews_.push_back(c);
    auto& nics = nics_.emplace_back();
    for (const std::size_t leaf : c.leaf_of) nics.push_back(add_port(leaf));
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
    for (const auto* hosts : {&hosts_.fabric, &hosts_.beyond})
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
      if (nic.out.base() + nic.in.base() > 0) {
        sleep_until(from + d.latency.base());
        exchange({nic.out - up.out, nic.in - up.in}, up, alone, {c, i, peer});
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

  /// To the same GPU of the peer's crew, or round the crew: beyond the leaf to half of it further, under it to the
  /// next. What is not answered goes outside, or comes from there.
  void exchange(const port_bytes& local, const port_bytes& beyond, double end, const sender& s) {
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
    all(local, hosts_.fabric[own[s.gpu]], hosts_.fabric[others[next % others.size()]]);
    all(beyond, hosts_.beyond[own[s.gpu]], hosts_.beyond[others[far % others.size()]]);
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
                           const std::function<std::size_t(std::int64_t)>& leaf_of) {
  std::vector<crew> out;
  std::size_t c = 0;
  for (const std::vector<std::int64_t>& gpus : gpus_by_job)
    for (std::size_t rank = 0; rank < gpus.size(); ++c) {
      crew one{&p, c, {}};
      for (std::int64_t i = 0; i < p.classes[c].multiplicity; ++i) one.leaf_of.push_back(leaf_of(gpus[rank++]));
      out.push_back(std::move(one));
    }
  return out;
}

/// A step of one job by hand: eight GPUs of each class, half of them under a leaf of their own. The others of the
/// leaf send as much.
double step_by_hand(const scenario& s, const plan& p) {
  return in_child([&] {
           const double share = network::uplink_of(s.platform).base();
           by_hand fabric(s.platform.fabric.nic_bandwidth.base(),
                          std::vector<double>(2 * p.classes.size(), 4 * share));
           for (std::size_t c = 0; c < p.classes.size(); ++c)
             fabric.add({&p, c, {2 * c, 2 * c, 2 * c, 2 * c, 2 * c + 1, 2 * c + 1, 2 * c + 1, 2 * c + 1}});
           const std::vector<double> end_times = fabric.run();
           return std::vector<double>{*std::max_element(end_times.begin(), end_times.end())};
         })
      .front();
}

/// All GPUs of all jobs by hand, under the leaves where they are. When the last class of each job ended.
std::vector<double> jobs_by_hand(const scenario& s, const plan& p) {
  const auto& w = std::get<shared_workload>(s.workload);
  std::vector<std::vector<std::int64_t>> gpus;
  std::map<std::int64_t, std::size_t> used_leaves;
  for (const cluster_job& j : w.jobs) {
    gpus.push_back(gpus_of(j, s.platform));
    for (const std::int64_t g : gpus.back())
      used_leaves.try_emplace(network::uplink_group_of(s.platform, g), used_leaves.size());
  }
  const auto leaf_of = [&](std::int64_t g) { return used_leaves.at(network::uplink_group_of(s.platform, g)); };
  const std::vector<crew> crews = crews_of(p, gpus, leaf_of);
  const std::vector<double> end_times = in_child([&] {
    const double of_leaf = network::uplink_of(s.platform).base() * network::gpus_per_uplink_group(s.platform);
    by_hand fabric(s.platform.fabric.nic_bandwidth.base(), std::vector<double>(used_leaves.size(), of_leaf));
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
  const std::string leaves = "/platform/fabric/oversubscription", pods = "/platform/fabric/pod_oversubscription";
  for (const auto& [level, ratio] : {std::pair{leaves, "2"}, {leaves, "4"}, {leaves, "8"}, {pods, "32"}}) {
    INFO(level << ", " << ratio << " to 1");
    const scenario s = test::shipped_scenario("training/llama3.1-405b-gb300-512",
                                              {{"/workload/tp", "4"},
                                               {"/workload/global_batch_size", "128"},
                                               {"/workload/dp", "8"},
                                               {"/platform/racks", "64"},
                                               {"/placement/gpus_per_rack", "8"},
                                               {"/platform/fabric/pod_gpus", level == pods ? "288" : "0"},
                                               {level, ratio}});
    plan p = plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload));
    for (operation_template& t : p.templates)
      for (network_demand& d : t.network) d.traffic.nvlink = {};  // by hand there are only NICs
    const double here = simulate(p, s.platform, {fidelity::flow}).makespan.base();
    CHECK(here == Approx(step_by_hand(s, p)).epsilon(0.001));
  }
}

TEST_CASE("Two jobs take as long by hand, interleaved and in blocks") {
  const std::string first = "0-63", second = "64-127";
  const overrides in_blocks = {{"/jobs/0/placement/racks", first}, {"/jobs/1/placement/racks", second}};
  const overrides pods = {{"/platform/fabric/oversubscription", "1"},
                          {"/platform/fabric/pod_gpus", "64"},
                          {"/platform/fabric/pod_oversubscription", "8"}};
  for (const overrides& sets : {overrides{}, in_blocks, pods}) {
    INFO(fmt::format("{}", sets.empty() ? "" : sets.front().pointer));
    const scenario s = test::shipped_scenario("jobs/two-llama3.1-405b-b300", sets);
    const run_record r = run_scenario(s);
    const std::vector<double> by = jobs_by_hand(s, r.planned), here = job_times(r);
    for (std::size_t j = 0; j < here.size(); ++j) CHECK(here[j] == Approx(by[j]).epsilon(0.01));
  }
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

// 32 prefill workers under one leaf send caches to 32 decode workers under another, while a ring all-reduce of the
// GPUs beside them goes round both leaves.
TEST_CASE("Caches of a server beside a collective arrive as late as by hand") {
  const std::string a = "0,2,4,6,8,10,12,14", ring = a + ",16,18,20,22,24,26,28,30";
  scenario s = test::shipped_scenario(
      "jobs/llama3.1-405b-beside-chat-b300",
      {{"/platform/racks", "32"},
       {"/platform/set", R"({"/fabric/oversubscription": 8})"},
       {"/jobs", R"([{"name": "ring", "stack": "nccl-2.29", "repeat": 40, "workload": {"kind": "collective",
          "operation": "all_reduce", "size": "1 GiB", "algorithm": "ring", "gpus": 128},
          "placement": {"policy": "racks", "racks": ")" +
                     ring + R"("}},
        {"name": "chat", "stack": "vllm-0.12", "model": "llama3-8b", "workload": {"kind": "inference",
          "engine": {"weights": "bf16", "kv_cache": "bf16"}, "load": {"kind": "closed_loop", "requests": 32,
          "concurrency": 32, "input": {"mean": 6000, "spread": 0.3}, "output": {"mean": 2}},
          "layout": {"prefill": {"workers": 32}, "decode": {"workers": 32}}},
          "placement": {"racks": "1,3,5,7,17,19,21,23"}}])"}});
  const run_record r = run_scenario(s);
  REQUIRE(r.outcome.reasons.empty());
  const auto& w = std::get<shared_workload>(s.workload);
  const std::vector<std::int64_t> of_ring = gpus_of(w.jobs[0], s.platform),
                                  of_chat = gpus_of(w.jobs[1], s.platform);
  const auto leaf_of = [&](std::int64_t g) {
    return static_cast<std::size_t>(network::uplink_group_of(s.platform, g));
  };
  std::vector<double> here;
  const std::vector<double> by = in_child([&] {
    const double of_leaf = network::uplink_of(s.platform).base() * network::gpus_per_uplink_group(s.platform);
    by_hand fabric(s.platform.fabric.nic_bandwidth.base(), std::vector<double>(2, of_leaf));
    for (const crew& c : crews_of(r.planned, {of_ring}, leaf_of)) fabric.add(c);
    std::vector<std::size_t> ports;
    for (const std::int64_t g : of_chat) ports.push_back(fabric.add_port(leaf_of(g)));
    for (std::size_t c = 1; c < r.planned.classes.size(); ++c)
      for (std::size_t k = 0; k < r.planned.classes[c].streams.size(); ++k)
        for (std::size_t o = 0; o < r.planned.classes[c].streams[k].operations.size(); ++o) {
          const stream& from = r.planned.classes[c].streams[k];
          if (from.kind != stream_kind::kv_transfer) continue;
          const operation& cache = from.operations[o];
          fabric.add(delivery{r.times.spans[c][k][o].begin_s,
                              &r.planned.templates[static_cast<std::size_t>(cache.template_index)], ports[c - 1],
                              ports[static_cast<std::size_t>(cache.peer) - 1]});
        }
    return fabric.run();
  });
  double took = 0, alone = 0;
  std::size_t i = 1;  // after the ring
  for (std::size_t c = 1; c < r.planned.classes.size(); ++c)
    for (std::size_t k = 0; k < r.planned.classes[c].streams.size(); ++k) {
      const stream& from = r.planned.classes[c].streams[k];
      if (from.kind != stream_kind::kv_transfer) continue;
      for (std::size_t o = 0; o < from.operations.size(); ++o, ++i) {
        const span& x = r.times.spans[c][k][o];
        CHECK(x.end_s == Approx(by[i]).epsilon(0.01));
        took += by[i] - x.begin_s;
        alone += r.planned.templates[static_cast<std::size_t>(from.operations[o].template_index)].duration.base();
      }
    }
  CHECK(i == 33);
  CHECK(job_times(r).front() * 40 == Approx(by.front()).epsilon(0.01));
  CHECK(took > 1.05 * alone);  // the ring is in their way
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
