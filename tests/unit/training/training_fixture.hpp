// An idealised machine and stack, whose step times have closed forms, and the shipped ones, for tests of training.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/model/load.hpp"
#include "nvlsim/platform/load.hpp"
#include "nvlsim/stack/compose.hpp"
#include "nvlsim/stack/load.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim::test {

inline constexpr double endless = 1e40;  ///< a rate at which nothing takes time

/// Eight domains of 72 GPUs that take no time for anything but FP8 GEMMs; those run at 1 PFLOP/s.
inline platform ideal_machine() {
  platform p;
  p.name = "ideal";
  p.gpu.name = p.gpu.architecture = "ideal";
  for (const precision x : {precision::bf16, precision::fp8})
    p.gpu.peaks[static_cast<std::size_t>(x)] = peak_rate{1000.0_TFLOPS, {}, energy_per_flop::from_base(0.4e-12)};
  p.gpu.hbm_usable = p.gpu.hbm_nominal = 1000.0_GB;
  p.gpu.hbm_bandwidth = p.gpu.hbm_stream = bandwidth::from_base(endless);
  p.gpu.sm_count = 1;
  p.gpu.exponentials = rate::from_base(endless);
  p.gpu.tdp = 1000.0_W;
  p.gpu.idle_power = 100.0_W;
  p.gpu.nvlink = bandwidth::from_base(endless);
  p.gpu.nvlink_generation = 5;
  p.gpu.c2c = bandwidth::from_base(endless);
  p.cpu.idle_power = 50.0_W;
  p.vm.gpus = 4;
  p.vm.cpus = 2;
  p.rack.vms = 18;
  p.fabric.name = "ideal";
  p.fabric.nic_bandwidth = bandwidth::from_base(endless);
  p.fabric.latency = seconds::from_base(1e-6);
  p.racks = 8;
  return p;
}

/// Collectives take no time inside a domain. Across domains a ring runs at the NICs' rate.
inline stack ideal_stack() {
  stack s;
  s.name = "ideal";
  kernel_profile k;
  k.gpu = "ideal";
  k.gemm[precision::fp8].tensor_rate = 1000.0_TFLOPS;
  k.gemm[precision::bf16].tensor_rate = flop_rate::from_base(endless);
  k.attention.tensor_rate = flop_rate::from_base(endless);
  s.kernels["ideal"] = k;
  domain_collective d;
  d.ll = d.simple = {{}, {}, bandwidth::from_base(endless)};
  d.local_copy = bandwidth::from_base(endless);
  fabric_collective f;
  f.ll = {seconds::from_base(1e30), {}, bandwidth::from_base(1)};  // never the fastest
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter"}) {
    s.collectives.domain["default"][name] = d;
    s.collectives.fabric["default"][name] = f;
  }
  training_profile t;
  t.optimizer_bytes = t.quantise_bytes_forward = t.quantise_bytes_backward = 0;
  t.gradient_bytes = 4;
  s.training = t;
  return s;
}

/// Equal layers and next to no vocabulary, so that pipeline stages are alike.
inline model even_model(std::int64_t layers) {
  model m;
  m.name = "even";
  m.hidden = 4096;
  m.vocab = 64;
  layer_spec l;
  l.heads = l.kv_heads = 32;
  l.head_dim = 128;
  l.ffn_hidden = 16384;
  m.layers.assign(static_cast<std::size_t>(layers), l);
  return m;
}

inline training_workload even_workload(std::int64_t pp, std::int64_t vp, std::int64_t micro_batches) {
  training_workload w;
  w.seq_length = 4096;
  w.global_batch_size = micro_batches;
  w.gemm_precision = precision::fp8;
  w.par.pp = pp;
  w.par.vp = vp;
  w.place.gpus_per_domain = 72;
  w.schedule = vp > 1 ? pipeline_schedule::interleaved : pipeline_schedule::one_f_one_b;
  return w;
}

template <class Read>
auto read_document(config::document doc, const std::string& name, Read read, diagnostics& problems) {
  const auto out = read(doc, name, problems);
  problems.throw_if_any();
  return out;
}

template <class Read>
auto read_file(const std::string& folder, const std::string& name, Read read) {
  diagnostics problems;
  return read_document(config::load_named(NVLSIM_SOURCE_DIR + folder, {"input", name, {}}, problems), name, read,
                       problems);
}

inline stack read_shipped_stack(const std::string& name) {
  diagnostics problems;
  const auto read = [](auto& doc, const std::string& of, auto& found) { return read_stack(doc, of, found); };
  return read_document(compose_stack(NVLSIM_SOURCE_DIR "/platforms/stacks", name, {}, problems), name, read,
                       problems);
}

/// A shipped machine, stack and model, with a layout for 64 GPUs of one rack.
struct shipped_job {
  platform machine;
  stack software;
  model net;
  training_workload workload;

  plan planned(bool fold = true) const { return plan_training(machine, software, net, workload, fold); }
  double step_s() const { return evaluate(planned()).makespan.base(); }
};

inline shipped_job shipped(const std::string& platform_name, const std::string& model_name,
                           const std::string& stack_name = "megatron-bridge-26.06") {
  shipped_job j;
  j.machine = read_file("/platforms", platform_name, read_platform);
  j.software = read_shipped_stack(stack_name);
  j.net = read_file("/scenarios/models", model_name, read_model);
  j.machine.racks = 8;
  j.workload.seq_length = 8192;
  j.workload.global_batch_size = 64;
  j.workload.gemm_precision = precision::mxfp8;
  j.workload.par.tp = 4;
  j.workload.par.pp = 4;
  j.workload.par.dp = 4;
  j.workload.par.sequence_parallel = true;
  j.workload.place.gpus_per_domain = 64;
  j.workload.graphs = cuda_graphs::full_iteration;  // else the host paces what is split finely
  return j;
}

/// A framework that keeps these bytes of an element of the experts' output.
inline training_profile keeping(double expert_output) {
  training_profile out;
  out.expert_output_bytes = expert_output;
  return out;
}

/// Bytes of an item of a report; 0 if it has none of that name.
inline double item(const memory_report& r, const std::string& name) {
  const auto it =
      std::find_if(r.items.begin(), r.items.end(), [&](const memory_item& i) { return i.name == name; });
  return it == r.items.end() ? 0.0 : it->size.base();
}

}  // namespace nvlsim::test
