// What a training step's timeline says: shares of time that add up, energy that is conserved, rates by their
// formulas.
#include "nvlsim/analysis/training_metrics.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <vector>

#include "nvlsim/analysis/sections.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

struct measured_step {
  plan planned;
  timeline times;
  training_metrics metrics;
};

measured_step measured(const platform& p, const stack& s, const model& m, const training_workload& w,
                       bool fold = true) {
  measured_step out;
  out.planned = plan_training(p, s, m, w, fold);
  out.times = evaluate(out.planned);
  out.metrics = measure_training(p, m, w, out.planned, out.times);
  return out;
}

measured_step measured(const test::shipped_job& j, bool fold = true) {
  return measured(j.machine, j.software, j.net, j.workload, fold);
}

double busy(const stage_breakdown& b) {
  return std::accumulate(b.busy.begin(), b.busy.end(), 0.0, [](double s, seconds t) { return s + t.base(); });
}
/// All that a stage waits for between its operations.
double waits(const stage_breakdown& b) {
  return (b.waiting_pipeline + b.waiting_sends + b.waiting_collectives + b.waiting_data_parallel).base();
}
double of(const stage_breakdown& b, part_kind k) { return b.busy[static_cast<std::size_t>(k)].base(); }

std::vector<test::shipped_job> jobs() {
  std::vector<test::shipped_job> out(4, test::shipped("gb300-nvl72", "llama3.1-405b"));
  out[1].workload.par.vp = 7, out[1].workload.schedule = pipeline_schedule::interleaved;
  out[2].workload.par.pp = 1, out[2].workload.par.cp = 4;
  out[3].workload.sharding = data_parallel_sharding::fsdp, out[3].workload.recompute.full = true;
  return out;
}

TEST_CASE("Every stage's breakdown adds up to the step") {
  for (const test::shipped_job& j : jobs()) {
    const measured_step s = measured(j);
    const auto stages = stage_breakdowns(s.planned, s.times, j.machine.gpu);
    REQUIRE(stages.size() == s.planned.classes.size());
    for (const stage_breakdown& b : stages)
      CHECK(busy(b) + waits(b) == Approx(s.metrics.step_time.base()).epsilon(1e-12));
    CHECK(busy(s.metrics.mean) + waits(s.metrics.mean) == Approx(s.metrics.step_time.base()).epsilon(1e-12));
  }
}

TEST_CASE("What a pass took longer than alone is communication that it waited for, at idle power") {
  auto facts = std::make_shared<part_facts>();
  facts->traffic = {{}, {1.0_GB, 1.0_GB}};
  operation_template w{"pass",
                       {{part_kind::gemm, "gemm", 0.06_s, 1}, {part_kind::ep, "ep.exchange", 0.04_s, 1, facts}},
                       {},
                       500.0_W};
  plan p;
  p.classes = {{"stage 0", 1, {{stream_kind::compute, {}}}}};
  p.append(p.classes[0].streams[0], p.add_template(std::move(w)), {});
  timeline t{{{{{0, 0.13}}}}, 0.13_s};
  gpu_spec gpu;
  gpu.idle_power = 100.0_W;
  const stage_breakdown slowed = stage_breakdowns(p, t, gpu).at(0);
  CHECK(of(slowed, part_kind::gemm) == Approx(0.06));
  CHECK(of(slowed, part_kind::ep) == Approx(0.07));
  CHECK(slowed.energy.base() == Approx(500 * 0.1 + 100 * 0.03));
  CHECK(slowed.waiting_pipeline.base() == Approx(0).margin(1e-15));
}

TEST_CASE("Energy of GPUs is that of their operations, and idle power between") {
  for (const test::shipped_job& j : jobs()) {
    const measured_step s = measured(j);
    double expected = 0;
    for (const rank_class& c : s.planned.classes) {
      double one = 0, running = 0;
      for (const operation& o : c.streams.front().operations) {
        const operation_template& t = s.planned.templates[static_cast<std::size_t>(o.template_index)];
        one += (t.power * t.duration).base();
        running += t.duration.base();
        CHECK(t.power <= j.machine.gpu.tdp);
      }
      one += j.machine.gpu.idle_power.base() * (s.metrics.step_time.base() - running);
      expected += one * static_cast<double>(c.multiplicity);
    }
    CHECK(s.metrics.energy.gpus.base() == Approx(expected).epsilon(1e-12));
    CHECK(s.metrics.mean.energy.base() * static_cast<double>(s.metrics.gpus) == Approx(expected).epsilon(1e-12));
    const watts mean = s.metrics.mean.energy / s.metrics.step_time;
    CHECK(mean > j.machine.gpu.idle_power);
    CHECK(mean < j.machine.gpu.tdp);
  }
}

TEST_CASE("A job takes its share of VMs, racks and supply losses") {
  platform p = test::ideal_machine();  // 4 GPUs and 2 CPUs a VM, 18 VMs a rack
  p.rack.nvlink_switch_trays = 9;
  p.rack.power_per_switch_tray = 500.0_W;
  p.rack.power_per_vm_other = 300.0_W;
  p.rack.power_supply_efficiency = 0.9;
  const job_energy e = energy_of_job(p, joules::from_base(7e6), 36, seconds::from_base(10));
  CHECK(e.gpus.base() == 7e6);
  CHECK(e.cpus.base() == Approx(9 * 2 * 50.0 * 10));
  CHECK(e.trays_and_switches.base() == Approx((9 * 300.0 + 9 * 500.0 / 2) * 10));
  CHECK(e.total().base() * 0.9 == Approx(7e6 + e.cpus.base() + e.trays_and_switches.base()));
}

TEST_CASE("Bubble is the share of the step that GPUs wait for each other") {
  const training_workload w = test::even_workload(4, 1, 6);
  const measured_step s = measured(test::ideal_machine(), test::ideal_stack(), test::even_model(8), w);
  CHECK(s.metrics.bubble_fraction == Approx(3.0 / (6 + 3)).epsilon(1e-12));
  CHECK(s.metrics.exposed_communication.base() == Approx(0).margin(1e-15));
  CHECK(of(s.metrics.mean, part_kind::gemm) == Approx(s.metrics.step_time.base() * 6 / 9).epsilon(1e-12));
}

TEST_CASE("Waiting for gradients is communication, not bubble") {
  training_workload w = test::even_workload(1, 1, 4);
  w.par.dp = 2;
  w.place.gpus_per_domain = 1;
  w.sharding = data_parallel_sharding::replicated;
  platform p = test::ideal_machine();
  const measured_step quick = measured(p, test::ideal_stack(), test::even_model(6), w);
  p.fabric.nic_bandwidth = 1.0_GBps;
  const measured_step slow = measured(p, test::ideal_stack(), test::even_model(6), w);
  CHECK(slow.metrics.bubble_fraction == Approx(0).margin(1e-12));
  CHECK(slow.metrics.exposed_communication.base() ==
        Approx(slow.metrics.step_time.base() - quick.metrics.step_time.base()).epsilon(1e-9));
  CHECK(slow.metrics.mean.waiting_data_parallel == slow.metrics.exposed_communication);
}

TEST_CASE("Exposed communication is what operations and streams wait for") {
  const measured_step s = measured(jobs()[1]);
  const stage_breakdown& m = s.metrics.mean;
  CHECK(of(m, part_kind::tp) > 0);
  CHECK(s.metrics.exposed_communication.base() ==
        Approx(of(m, part_kind::tp) + of(m, part_kind::cp) + of(m, part_kind::ep) + of(m, part_kind::pp) +
               of(m, part_kind::dp) + m.waiting_data_parallel.base() + m.waiting_sends.base() +
               m.waiting_collectives.base())
            .epsilon(1e-12));
  CHECK(m.waiting_collectives.base() > 0);  // stages wait for passes that have collectives of their own
}

/// A pipeline of four stages, each in a rack of its own.
test::shipped_job stages_apart(double nic_gbps) {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3.1-405b");
  j.workload.par.pp = 4, j.workload.par.vp = 1, j.workload.par.dp = 1, j.workload.par.cp = 4,
  j.workload.par.tp = 4;
  j.workload.global_batch_size = 16;
  j.workload.place.gpus_per_domain = 16;
  j.machine.racks = 4;
  j.machine.fabric.nic_bandwidth = bandwidth::from_base(nic_gbps * 1e9 / 8);
  return j;
}

TEST_CASE("What a slower network adds to a step is exposed communication, not bubble") {
  const measured_step quick = measured(stages_apart(800)), slow = measured(stages_apart(50));
  const double longer = slow.metrics.step_time.base() - quick.metrics.step_time.base();
  CHECK(longer > 0.01 * quick.metrics.step_time.base());
  const double exposed = slow.metrics.exposed_communication.base() - quick.metrics.exposed_communication.base();
  CHECK(exposed > 0.8 * longer);
  CHECK(slow.metrics.mean.waiting_sends > quick.metrics.mean.waiting_sends * 4);
  CHECK(slow.metrics.mean.waiting_pipeline.base() < quick.metrics.mean.waiting_pipeline.base() + 0.2 * longer);
}

TEST_CASE("However fast the network, a step's time is told apart without a rest, and slower means more exposed") {
  double before = -1;
  for (double gbps = 1600; gbps > 10; gbps /= 1.7) {
    const measured_step s = measured(stages_apart(gbps));
    INFO(gbps << " Gb/s");
    CHECK(busy(s.metrics.mean) + waits(s.metrics.mean) == Approx(s.metrics.step_time.base()).epsilon(1e-12));
    CHECK(s.metrics.exposed_communication.base() > before);
    before = s.metrics.exposed_communication.base();
  }
}

TEST_CASE("An unfolded step measures as the folded one") {
  test::shipped_job j = jobs()[1];
  j.workload.global_batch_size = 16;
  const training_metrics folded = measured(j).metrics, every = measured(j, false).metrics;
  CHECK(every.bubble_fraction == Approx(folded.bubble_fraction).epsilon(1e-12));
  CHECK(every.energy.total().base() == Approx(folded.energy.total().base()).epsilon(1e-12));
  CHECK(every.exposed_communication.base() == Approx(folded.exposed_communication.base()).epsilon(1e-12));
}

TEST_CASE("Utilisation, tokens and cost follow from the step time") {
  test::shipped_job j = test::shipped("gb200-nvl72", "llama3-70b");
  const training_metrics t = measured(j).metrics;
  CHECK(t.gpus == 64);
  CHECK(t.tokens_per_step == 64.0 * 8192);
  const double flops = training_flops_per_token(j.net, 8192, true) * t.tokens_per_step;
  CHECK(t.model_flops_causal == Approx(flops).epsilon(1e-12));
  CHECK(t.model_flops_full > t.model_flops_causal);
  const double peak = j.machine.gpu.dense_peak(precision::mxfp8)->base();
  CHECK(*t.mfu == Approx(flops / (peak * 64 * t.step_time.base())).epsilon(1e-12));
  CHECK(*t.mfu < 1);
  j.machine.price.per_gpu = dollar_rate::from_base(36.0 / 3600);
  CHECK(measured(j).metrics.cost->base() == Approx(64 * 0.01 * t.step_time.base()).epsilon(1e-12));
  j.machine.price.per_gpu.reset();
  CHECK_FALSE(measured(j).metrics.cost.has_value());
}

TEST_CASE("LoRA computes no gradient of frozen weights") {
  const model m = test::even_model(10);
  training_workload w = test::even_workload(1, 1, 4);
  const double tokens = 4 * 4096.0;
  // Two FLOPs a weight and pass; causal attention reads half of the s x s scores, QK and AV, forward and twice
  // backward.
  const double weights = 10 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 16384) + 64.0 * 4096,
               scores = 10 * 4096.0 * 4096 * 2;
  CHECK(model_flops_per_step(m, w, true) == Approx(3 * tokens * (2 * weights + scores)).epsilon(1e-12));
  w.task = training_task::lora;
  CHECK(model_flops_per_step(m, w, true) == Approx(tokens * (2 * 2 * weights + 3 * scores)).epsilon(1e-12));
}

// Scores are those of each sequence with itself: for equal lengths as many tokens as before, each with 1 / n of
// the keys.
TEST_CASE("FLOPs of packed sequences count the squares of their lengths") {
  const model m = test::even_model(10);
  training_workload w = test::even_workload(1, 1, 4);
  const double tokens = 4 * 4096.0;
  const double weights = 10 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 16384) + 64.0 * 4096;
  const auto scores = [](double keys) { return 10 * 4096.0 * keys * 2; };
  w.packed = token_lengths{.mean = 512};
  CHECK(model_flops_per_step(m, w, true) == Approx(3 * tokens * (2 * weights + scores(512))).epsilon(1e-12));
  w.packed = token_lengths{.mean = 512, .spread = 1};  // E[l^2] / E[l] = 512 (1 + 1/3)
  CHECK(model_flops_per_step(m, w, true) ==
        Approx(3 * tokens * (2 * weights + scores(512 * 4 / 3.0))).epsilon(1e-5));
  w.task = training_task::lora;
  CHECK(model_flops_per_step(m, w, true) ==
        Approx(tokens * (2 * 2 * weights + 3 * scores(512 * 4 / 3.0))).epsilon(1e-5));
}

TEST_CASE("Sections of a result hold every metric, and shares of every stage") {
  test::shipped_job j = jobs()[1];
  j.workload.token_budget = 1e12;
  const measured_step s = measured(j);
  result r;
  const memory_report memory = training_memory(j.machine, j.software, j.net, j.workload);
  add_training_sections(r, {j.machine, j.net, j.workload, s.planned, s.times, memory}, {0.8, 1.25});
  const double step = s.metrics.step_time.base();
  const auto metric = [&](const char* name) { return r.metrics.find(name); };
  CHECK(*metric("step_time_s")->number() == step);
  CHECK(*metric("tokens_per_s_per_gpu")->number() == Approx(s.metrics.tokens_per_step / step / 64).epsilon(1e-12));
  CHECK(*metric("time_to_train_s")->number() == Approx(1e12 / s.metrics.tokens_per_step * step).epsilon(1e-12));
  CHECK(metric("cost_per_step_usd")->is_null());
  CHECK(metric("cost_to_train_usd")->is_null());
  const double steps = 1e12 / s.metrics.tokens_per_step;
  CHECK(*metric("steps_to_train")->number() == Approx(steps).epsilon(1e-12));
  CHECK(*metric("energy_to_train_J")->number() == Approx(steps * s.metrics.energy.total().base()).epsilon(1e-12));
  const auto bound = [&](const char* name, std::size_t i) { return *(*r.bands.find(name)->items())[i].number(); };
  CHECK(bound("step_time_s", 0) == Approx(0.8 * step).epsilon(1e-12));
  CHECK(bound("step_time_s", 1) == Approx(1.25 * step).epsilon(1e-12));
  CHECK(bound("mfu", 0) == Approx(*metric("mfu")->number() / 1.25).epsilon(1e-12));
  CHECK(bound("mfu", 1) == Approx(*metric("mfu")->number() / 0.8).epsilon(1e-12));
  CHECK(*metric("memory_peak_bytes")->number() == memory.peak.base());
  const value* stages = r.breakdown.find("by_stage");
  REQUIRE(stages->members()->size() == 4);
  for (const auto& [name, stage] : *stages->members()) {
    double sum = 0;
    for (const auto& [key, v] : *stage.members())
      if (key != "step_time_s") sum += *v.number();
    INFO(name);
    CHECK(sum == Approx(step).epsilon(1e-12));
  }
}

TEST_CASE("Metrics of a whole training run need its tokens, and its cost a price") {
  test::shipped_job j = test::shipped("gb200-nvl72", "llama3-70b");
  j.machine.price.per_gpu = dollar_rate::from_base(36.0 / 3600);
  const measured_step s = measured(j);
  const memory_report memory = training_memory(j.machine, j.software, j.net, j.workload);
  result without, with;
  add_training_sections(without, {j.machine, j.net, j.workload, s.planned, s.times, memory}, {0.9, 1.1});
  for (const char* name : {"time_to_train_s", "steps_to_train", "energy_to_train_J", "cost_to_train_usd"})
    CHECK(without.metrics.find(name) == nullptr);
  j.workload.token_budget = 3e9;
  add_training_sections(with, {j.machine, j.net, j.workload, s.planned, s.times, memory}, {0.9, 1.1});
  const double time = *with.metrics.find("time_to_train_s")->number();
  CHECK(*with.metrics.find("cost_to_train_usd")->number() == Approx(64 * 0.01 * time).epsilon(1e-12));
  CHECK(with.bands.find("cost_to_train_usd") != nullptr);
}

TEST_CASE("A report that does not fit says what takes the memory") {
  const memory_report m{
      "stage 2", {{"weights", 150.0_GB, "why"}, {"activations", 50.0_GB, "why"}}, 200.0_GB, 200.0_GB, 190.0_GB};
  CHECK(too_large(m) ==
        "stage 2 needs 200 GB of GPU memory and 190 GB are usable: weights 150 GB, activations 50 GB");
  memory_report close{"stage 0", {{"weights", 192.0_GB, "why"}}, 192.0_GB, 192.0_GB, 190.0_GB};
  close.error = 0.012;
  CHECK(close.tight());
  CHECK(tight_fit(close) ==
        "memory is tight: stage 0 needs 192 GB of 190 GB usable, 1.1 % too much; the estimate errs by up to 1.2 "
        "%, so "
        "it may still fit");
  CHECK(*memory_section(m).find("items")->items()->back().find("bytes")->number() == 50e9);
}

}  // namespace
}  // namespace nvlsim
