// The exchange of tokens between experts' ranks, and the collectives around shared experts.
#include <catch2/catch.hpp>

#include "training/pass_costs.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

/// DeepSeek-V3 on servers, experts of a layer on 64 GPUs of eight of them, where the exchange is not hidden.
test::shipped_job on_servers() {
  test::shipped_job j = test::shipped("nd-h100-v5", "deepseek-v3");
  j.machine.racks = 8;
  j.workload.seq_length = 4096;
  j.workload.gemm_precision = precision::bf16;
  j.workload.par = {};
  j.workload.par.ep = j.workload.par.dp = 64;
  j.workload.place.gpus_per_domain = 8;
  return j;
}

/// Time of a kind of part in the forward pass through the last layer, which has experts.
double part_s(const test::shipped_job& j, part_kind kind) {
  const training_context c(j.machine, j.software, j.net, j.workload);
  double sum = 0;
  for (const operation_part& p : layer_pass(c, j.net.layers.back(), pass_kind::forward).parts)
    if (p.kind == kind) sum += p.duration.base() * p.repeat;
  return sum;
}

double exchange_s(test::shipped_job j, const moe_spec& router) {
  j.net.layers.back().moe = router;
  return part_s(j, part_kind::ep);
}

TEST_CASE("A router that keeps to four of eight servers sends less over the NICs") {
  const test::shipped_job j = on_servers();
  const moe_spec limited = j.net.layers.back().moe;
  REQUIRE(limited.groups == 8);
  REQUIRE(limited.top_groups == 4);
  moe_spec free = limited;
  free.groups = free.top_groups = 1;
  const double launches =
      2 * (*j.software.training).ep_launch.read().base() * (*j.software.training).ep_exposed.read();
  // Of the seven other servers, each holding a group.
  double kept = 1, all = 1;  // of choices that miss 32 of 128, and of 256, experts
  for (int i = 0; i < 8; ++i) kept *= (96.0 - i) / (128.0 - i), all *= (224.0 - i) / (256.0 - i);
  const double least = 0.5 * (1 - kept), most = 1 - all;
  CHECK((exchange_s(j, limited) - launches) / (exchange_s(j, free) - launches) == Approx(least / most));
}

TEST_CASE("Experts dealt out in turn are on few ranks, unless routers choose") {
  test::shipped_job j = on_servers();
  const double random = part_s(j, part_kind::ep);
  j.software.training->forced_in_turn = true;
  const double in_turn = part_s(j, part_kind::ep);
  CHECK(in_turn < 0.35 * random);  // one server in eight instead of 3.6 of them
  j.workload.forced_balance = false;
  CHECK(part_s(j, part_kind::ep) >= random);
}

TEST_CASE("DeepSeek's own framework dispatches in 8 bits") {
  test::shipped_job j = on_servers();
  const auto ep = [&](pipeline_schedule s) {
    j.workload.schedule = s;
    j.workload.gemm_precision = precision::fp8;
    return part_s(j, part_kind::ep);
  };
  const double ratio = (*j.software.training).ep_combine_ratio.read();
  const double launches =
      2 * (*j.software.training).ep_launch.read().base() * (*j.software.training).ep_exposed.read();
  CHECK((ep(pipeline_schedule::dualpipe) - launches) / (ep(pipeline_schedule::one_f_one_b) - launches) ==
        Approx((0.5 * (1 + 4.0 / 128) + ratio) / (1 + ratio)));
}

TEST_CASE("Tensor-parallel ranks exchange around shared experts, which they divide") {
  test::shipped_job j = on_servers();
  j.workload.par.tp = 2;
  j.workload.par.dp = 32;
  j.workload.par.sequence_parallel = true;
  const double with = part_s(j, part_kind::tp);
  j.net.layers.back().moe.shared_ffn = 0;
  CHECK(with == Approx(2 * part_s(j, part_kind::tp)));  // around attention alone
}

}  // namespace
}  // namespace nvlsim
