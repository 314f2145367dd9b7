#include "nvlsim/run.hpp"

#include <fmt/format.h>

#include <sys/resource.h>

#include <chrono>

#include "nvlsim/inference_metrics.hpp"
#include "nvlsim/simulation.hpp"
#include "nvlsim/training_metrics.hpp"
#include "nvlsim/units_text.hpp"

namespace nvlsim {
namespace {

value memory_section(const memory_report& m) {
  value items{value::array{}};
  for (const memory_item& i : m.items) {
    value x{value::object{}};
    x.set("name", i.name);
    x.set("bytes", i.size.base());
    x.set("reason", i.reason);
    items.items()->push_back(std::move(x));
  }
  value out{value::object{}};
  out.set("where", m.where);
  out.set("peak_bytes", m.peak.base());
  out.set("usable_bytes", m.usable.base());
  out.set("items", std::move(items));
  return out;
}

std::string too_large(const memory_report& m) {
  std::string text = fmt::format("{} needs {} of GPU memory and {} are usable:", m.where, format_quantity(m.peak),
                                 format_quantity(m.usable));
  for (const memory_item& i : m.items) text += fmt::format(" {} {},", i.name, format_quantity(i.size));
  text.pop_back();
  return text;
}

value optional_number(const std::optional<double>& x) { return x ? value{*x} : value{}; }

value stage_section(const stage_breakdown& b, seconds step) {
  value out{value::object{}};
  const auto put = [&](std::string_view key, seconds t) {
    if (t > seconds{}) out.set(std::string(key) + "_s", t.base());
  };
  for (int k = 0; k < work_kinds; ++k) put(name(static_cast<work_kind>(k)), b.busy[static_cast<std::size_t>(k)]);
  put("waiting_data_parallel", b.waiting_data_parallel);
  put("bubble", b.waiting_pipeline);
  out.set("step_time_s", step.base());
  return out;
}

void training_sections(result& r, const scenario& s, const training_workload& w, const plan& work, const timeline& times,
                       const memory_report& memory) {
  const training_metrics t = measure_training(s.platform, s.model, w, work, times);
  const double step = t.step_time.base(), gpus = static_cast<double>(t.gpus);
  const double rate = t.tokens_per_step / step;
  value& m = r.metrics;
  m.set("step_time_s", step);
  m.set("tokens_per_s", rate);
  m.set("tokens_per_s_per_gpu", rate / gpus);
  m.set("model_tflops_per_gpu", t.model_flops_causal / step / gpus / 1e12);
  m.set("model_tflops_per_gpu_full_attention", t.model_flops_full / step / gpus / 1e12);
  m.set("mfu", optional_number(t.mfu));
  m.set("bubble_fraction", t.bubble_fraction);
  m.set("exposed_communication_s", t.exposed_communication.base());
  m.set("power_W_per_gpu", (t.mean.energy / t.step_time).base());
  m.set("memory_peak_bytes", memory.peak.base());
  m.set("energy_per_step_J", t.energy.total().base());
  m.set("cost_per_step_usd", t.cost ? value{t.cost->base()} : value{});
  if (w.token_budget) {
    const double steps = *w.token_budget / t.tokens_per_step;
    m.set("time_to_train_s", steps * step);
    r.cost.set("time_to_train_usd", t.cost ? value{t.cost->base() * steps} : value{});
  }
  m.set("gpus", t.gpus);
  r.breakdown.set("mean_over_gpus", stage_section(t.mean, t.step_time));
  value stages{value::object{}};
  const auto all = stage_breakdowns(work, times, s.platform.gpu);
  if (all.size() <= 64)
    for (std::size_t c = 0; c < all.size(); ++c) stages.set(work.classes[c].name, stage_section(all[c], t.step_time));
  r.breakdown.set("by_stage", std::move(stages));
  r.energy.set("gpus_J", t.energy.gpus.base());
  r.energy.set("cpus_J", t.energy.cpus.base());
  r.energy.set("trays_and_switches_J", t.energy.trays_and_switches.base());
  r.energy.set("supply_losses_J", t.energy.supply_losses.base());
  r.energy.set("per_token_J", t.energy.total().base() / t.tokens_per_step);
  r.cost.set("per_step_usd", t.cost ? value{t.cost->base()} : value{});
  r.cost.set("per_million_tokens_usd", t.cost ? value{t.cost->base() / t.tokens_per_step * 1e6} : value{});
}

void run_training(run_record& out, const scenario& s, const training_workload& w) {
  result& r = out.outcome;
  r.reasons = training_problems(s.platform, s.model, w);
  if (r.reasons.empty()) {
    const memory_report memory = training_memory(s.platform, s.stack, s.model, w);
    r.memory = memory_section(memory);
    if (!memory.fits()) {
      r.reasons.push_back(too_large(memory));
    } else {
      out.work = plan_training(s.platform, s.stack, s.model, w, s.simulation.fold);
      out.times = simulate(out.work, s.platform, {s.simulation.network});
      training_sections(r, s, w, out.work, out.times, memory);
    }
  }
  if (!s.platform.price.per_gpu) r.notes.push_back("no public price of this platform is known: " + s.platform.price.note);
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

run_record run_scenario(const scenario& s) {
  const auto begin = std::chrono::steady_clock::now();
  run_record out;
  out.outcome.name = s.name;
  out.outcome.inputs = s.inputs;
  if (const auto* t = std::get_if<training_workload>(&s.workload)) run_training(out, s, *t);
  if (!out.outcome.reasons.empty()) out.outcome.status = run_status::infeasible;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  out.outcome.simulation.set("wall_s", wall.count());
  out.outcome.simulation.set("peak_memory_bytes", peak_resident_bytes());
  out.outcome.simulation.set("activities", out.times.activities);
  return out;
}

}  // namespace nvlsim
