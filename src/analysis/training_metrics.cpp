#include "nvlsim/analysis/training_metrics.hpp"

#include <algorithm>

#include "analysis/time_slices.hpp"

namespace nvlsim {
namespace {

std::array<seconds, part_kinds> busy_by_kind(const operation_template& t) {
  std::array<seconds, part_kinds> out{};
  for (const operation_part& p : t.parts) out[static_cast<std::size_t>(p.kind)] += p.duration * p.repeat;
  return out;
}

/// A run with what its breakdowns share.
struct measured_run {
  const plan& planned;
  const timeline& times;
  const gpu_spec& gpu;
  const wait_chains& chains;
  const std::vector<std::array<seconds, part_kinds>>& by_kind;  ///< by template
};

/// Divides a wait of `gap` for other stages, from `from_s` to the end of `at`.
void add_stage_wait(const wait_chains& chains, const signal& at, double from_s, double gap, stage_breakdown& out) {
  if (!(gap > 0)) return;
  double sends = 0, collectives = 0;
  for (const chain_link& l : chains.chain(at, from_s))
    communication_of(l, [&](const operation_part&, double time_s) {
      (l.stream == stream_kind::pipeline ? sends : collectives) += time_s;
    });
  out.waiting_sends += seconds::from_base(sends);
  out.waiting_collectives += seconds::from_base(collectives);
  out.waiting_pipeline += seconds::from_base(std::max(0.0, gap - sends - collectives));
}

/// Adds what operation `op` did that ran in `ran`: its parts, and what other traffic added to it.
void add_operation(const measured_run& r, const operation& op, const span& ran, stage_breakdown& out) {
  const auto template_index = static_cast<std::size_t>(op.template_index);
  for (std::size_t k = 0; k < out.busy.size(); ++k) out.busy[k] += r.by_kind[template_index][k];
  const operation_template& t = r.planned.templates[template_index];
  out.energy += t.power * t.duration;
  if (const double longer = slowed_by(t, ran.end_s - ran.begin_s); longer > 0) {
    const operation_part* const part = slowed_part(t);
    const seconds slowed = seconds::from_base(longer);
    out.busy[static_cast<std::size_t>(part ? part->kind : part_kind::dp)] += slowed;
    out.energy += r.gpu.idle_power * slowed;
  }
}

stage_breakdown class_breakdown(const measured_run& r, std::size_t c) {
  stage_breakdown out;
  const stream& compute = r.planned.classes[c].streams.front();
  double now = 0;
  bool any_wait = false;
  for (std::size_t i = 0; i < compute.operations.size(); ++i) {
    const operation& op = compute.operations[i];
    const span& ran = r.times.spans[c][0][i];
    const double gap = std::max(0.0, ran.begin_s - now);
    const auto last = r.chains.last_wait(op);
    any_wait = any_wait || last;
    if (last && r.chains.stream_of(*last).kind == stream_kind::data_parallel)
      out.waiting_data_parallel += seconds::from_base(gap);
    else if (last) add_stage_wait(r.chains, *last, now, gap, out);
    else out.waiting_pipeline += seconds::from_base(gap);
    out.energy += r.gpu.idle_power * seconds::from_base(gap);
    add_operation(r, op, ran, out);
    now = ran.end_s;
  }
  const double tail = std::max(0.0, r.times.makespan.base() - now);
  if (any_wait) add_stage_wait(r.chains, r.chains.last_compute(), now, tail, out);
  else out.waiting_pipeline += seconds::from_base(tail);
  out.energy += r.gpu.idle_power * seconds::from_base(tail);
  return out;
}

stage_breakdown mean_breakdown(const plan& planned, const std::vector<stage_breakdown>& stages) {
  stage_breakdown mean;
  double gpus = 0;
  for (const rank_class& c : planned.classes) gpus += static_cast<double>(c.multiplicity);
  for (std::size_t c = 0; c < stages.size(); ++c) {
    const double share = static_cast<double>(planned.classes[c].multiplicity) / gpus;
    for (std::size_t k = 0; k < mean.busy.size(); ++k) mean.busy[k] += stages[c].busy[k] * share;
    mean.waiting_pipeline += stages[c].waiting_pipeline * share;
    mean.waiting_sends += stages[c].waiting_sends * share;
    mean.waiting_collectives += stages[c].waiting_collectives * share;
    mean.waiting_data_parallel += stages[c].waiting_data_parallel * share;
    mean.energy += stages[c].energy * share;
  }
  return mean;
}

}  // namespace

std::vector<stage_breakdown> stage_breakdowns(const plan& planned, const timeline& times, const gpu_spec& gpu) {
  const wait_chains chains(planned, times);
  std::vector<std::array<seconds, part_kinds>> by_kind;
  for (const operation_template& t : planned.templates) by_kind.push_back(busy_by_kind(t));
  std::vector<stage_breakdown> out;
  for (std::size_t c = 0; c < planned.classes.size(); ++c)
    out.push_back(class_breakdown({planned, times, gpu, chains, by_kind}, c));
  return out;
}

double model_flops_per_step(const model& m, const training_workload& w, bool causal) {
  const double tokens = static_cast<double>(w.global_batch_size * w.seq_length);
  const std::vector<sequence_share> sequences = sequences_of(w);
  const double mean = mean_length(sequences);
  double each = 0;  // per mean token; FLOPs of attention grow with the sequence length
  for (const sequence_share& s : sequences) {
    const double all = training_flops_per_token(m, s.length, causal), length = static_cast<double>(s.length);
    // FLOPs per token are linear in the sequence length. The constant part is the linear layers; LoRA runs two of
    // their three passes.
    const double frozen =
        w.frozen_layers() ? (2 * all - training_flops_per_token(m, 2 * s.length, causal)) / 3 : 0;
    each += (s.share * length / mean) * (all - frozen);
  }
  return each * tokens;
}

namespace {

/// Metrics that depend on the makespan only, not on waits.
training_metrics rates_of(const platform& p, const model& m, const training_workload& w, seconds makespan) {
  training_metrics out;
  out.step_time = makespan;
  out.gpus = w.par.gpus();
  out.tokens_per_step = static_cast<double>(w.global_batch_size * w.seq_length);
  out.model_flops_causal = model_flops_per_step(m, w, true);
  out.model_flops_full = model_flops_per_step(m, w, false);
  if (const auto peak = p.gpu.dense_peak(w.gemm_precision))
    out.mfu = out.model_flops_causal / (peak->base() * static_cast<double>(out.gpus) * out.step_time.base());
  out.token_budget = w.token_budget;
  if (p.price.per_gpu) out.cost = *p.price.per_gpu * out.step_time * static_cast<double>(out.gpus);
  return out;
}

}  // namespace

training_metrics measure_training(const platform& p, const model& m, const training_workload& w,
                                  const plan& planned, const timeline& times) {
  training_metrics out = rates_of(p, m, w, times.makespan);
  const auto stages = stage_breakdowns(planned, times, p.gpu);
  out.mean = mean_breakdown(planned, stages);
  out.bubble_fraction = out.mean.waiting_pipeline / out.step_time;
  const auto busy = [&](part_kind k) { return out.mean.busy[static_cast<std::size_t>(k)]; };
  out.exposed_communication = busy(part_kind::tp) + busy(part_kind::cp) + busy(part_kind::ep) +
                              busy(part_kind::pp) + busy(part_kind::dp) + out.mean.waiting_data_parallel +
                              out.mean.waiting_sends + out.mean.waiting_collectives;
  joules gpu_energy;
  for (std::size_t c = 0; c < stages.size(); ++c)
    gpu_energy += stages[c].energy * static_cast<double>(planned.classes[c].multiplicity);
  out.energy = energy_of_job(p, gpu_energy, out.gpus, out.step_time);
  return out;
}

training_metrics measure_training_totals(const platform& p, const model& m, const training_workload& w,
                                         const step_cost& step) {
  const seconds makespan = step.makespan;
  training_metrics out = rates_of(p, m, w, makespan);
  joules all;
  for (const step_cost::stage_cost& stage : step.stages)
    all += (stage.energy + p.gpu.idle_power * (makespan - stage.busy)) *
           static_cast<double>(w.par.tp * w.par.cp * w.par.dp);
  out.mean.energy = all * (1 / static_cast<double>(out.gpus));
  out.energy = energy_of_job(p, all, out.gpus, makespan);
  return out;
}

}  // namespace nvlsim
