#include "nvlsim/plan/part_facts.hpp"

#include <algorithm>

namespace nvlsim {
namespace {

double busier_direction(const port_bytes& b) { return std::max(b.out, b.in).base(); }

}  // namespace

// Facts are for explanations: what they compare is not recorded as read by the run.

// What is left of a kernel after its launch belongs to the larger of its two sides; where the kernel formula only
// says that the launch is longest, to the larger at data-sheet rates.
part_facts facts_of(const gpu_spec& gpu, precision operands, const kernel_cost& k) {
  part_facts f;
  f.operands = operands;
  f.alone = k.time;
  f.latency = std::min(k.launch, k.time);
  f.flop = k.flop;
  f.moved = k.moved;
  const auto dense = gpu.dense_peak(operands);
  const double peak = dense ? dense->peek().base() : 0, hbm = gpu.hbm_bandwidth.peek().base();
  const bool by_roofline = k.limit == kernel_resource::launch && k.flop.base() > 0 && peak > 0;
  const bool compute =
      by_roofline ? k.flop.base() / peak > k.moved.base() / hbm : k.limit == kernel_resource::compute;
  f.limit = compute ? resource::tensor_cores : resource::hbm;
  f.ceiling = compute ? peak : hbm;
  if (!(k.flop.base() > 0) && !(k.moved.base() > 0)) f.limit = resource::latency, f.ceiling = 0;
  return f;
}

part_facts facts_of(const gpu_spec& gpu, precision operands, const kernel_cost& k, const gemm_shape& s) {
  part_facts f = facts_of(gpu, operands, k);
  f.extent = gemm_extent{s.m, s.n, s.k, s.groups};
  return f;
}

part_facts facts_of(const gpu_spec& gpu, const kernel_cost& k, const attention_shape& s) {
  part_facts f = facts_of(gpu, s.fp8 ? precision::fp8 : precision::bf16, k);
  f.extent = attention_extent{s.batch, s.heads, s.queries, s.queries > 0 ? s.pairs / s.queries : 0};
  return f;
}

part_facts facts_of(const gpu_spec& gpu, const kernel_cost& k, const decode_shape& s, precision operands) {
  part_facts f = facts_of(gpu, operands, k);
  f.extent = decode_extent{s.batch, s.heads, s.context};
  return f;
}

part_facts facts_of(const platform& p, const priced_transfer& t, double times) {
  part_facts f;
  f.alone = t.time;
  f.latency = std::min(t.latency, t.time);
  const double nvlink = busier_direction(t.traffic.nvlink), nic = busier_direction(t.traffic.nic);
  const double nvlink_rate = p.gpu.nvlink.peek().base(), nic_rate = p.fabric.nic_bandwidth.peek().base();
  const bool by_nic = nic > 0 && nic * nvlink_rate >= nvlink * nic_rate;
  f.limit = by_nic ? resource::nic : resource::nvlink;
  f.moved = bytes::from_base(by_nic ? nic : nvlink);
  f.ceiling = by_nic ? nic_rate : nvlink_rate;
  f.extent =
      exchange_extent{t.size.base(), static_cast<double>(t.group.ranks), static_cast<double>(t.group.domains)};
  f.exchange = t.kind;
  f.algorithm = t.algorithm;
  f.traffic = t.traffic;
  f.times = times;
  return f;
}

part_facts facts_of_wait(resource r, seconds t) {
  part_facts f;
  f.limit = r;
  f.alone = t;
  return f;
}

}  // namespace nvlsim
