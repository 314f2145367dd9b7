// Frozen language models, Muon's step, and steps that nobody has published the like of.
#include "nvlsim/training/idle_settings.hpp"
#include "training/pass_costs.hpp"

#include <catch2/catch.hpp>

#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

double gemm_seconds(const costed_parts& pass) {
  double out = 0;
  for (const operation_part& p : pass.parts)
    if (p.kind == part_kind::gemm) out += (p.duration * p.repeat).base();
  return out;
}

TEST_CASE("A frozen language model has gradients of its inputs alone, and its towers are what is trained") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-8b");
  j.workload.gemm_precision = precision::bf16;
  j.net.towers = {{"vision", 1'000'000'000}};
  const memory_report whole = training_memory(j.machine, j.software, j.net, j.workload);
  const auto backward = [&] {
    return gemm_seconds(layer_pass(training_context(j.machine, j.software, j.net, j.workload),
                                   j.net.layers.front(), pass_kind::backward));
  };
  const double both = backward(), step = j.step_s();
  j.workload.freeze_language = true;
  CHECK(training_problems(j.machine, j.net, j.workload).empty());
  CHECK(backward() < 0.6 * both);
  CHECK(backward() > 0.4 * both);
  CHECK(j.step_s() < step);
  const memory_report frozen = training_memory(j.machine, j.software, j.net, j.workload);
  CHECK(test::item(frozen, "gradients") == Approx(4e9));  // FP32, in 16-bit recipes
  CHECK(test::item(frozen, "optimizer") == Approx(12e9 / 4));
  CHECK(test::item(frozen, "weights") == test::item(whole, "weights"));
  CHECK(test::item(frozen, "activations") < test::item(whole, "activations"));
  CHECK(trained_parameters(j.net, j.workload) == 1e9);
  j.workload.freeze_towers = true;
  CHECK(training_problems(j.machine, j.net, j.workload).size() == 1);
  j.workload.task = training_task::lora;  // adapters are trained
  CHECK(training_problems(j.machine, j.net, j.workload).empty());
}

TEST_CASE("Muon takes five iterations of three products for every matrix, which ranks share") {
  platform p = test::ideal_machine();
  stack s = test::ideal_stack();
  s.kernels["ideal"].gemm[precision::bf16].tensor_rate = 1000.0_TFLOPS;
  const model m = test::even_model(1);
  training_workload w = test::even_workload(1, 1, 1);
  const auto seconds_of = [&] {
    return orthogonalisation(training_context(p, s, m, w), m.layers.front()).duration().base();
  };
  // A matrix of m x n, m no larger: 4 m^2 n + 2 m^3 FLOPs an iteration.
  const auto flops = [](double a, double b) {
    const double n = std::max(a, b), k = std::min(a, b);
    return 5 * (4 * k * k * n + 2 * k * k * k);
  };
  const double h = 4096, f = 16384;
  const double all = flops(h, h) + flops(h, 2 * h) + flops(h, h) + flops(2 * f, h) + flops(h, f);
  w.sharding = data_parallel_sharding::replicated;
  CHECK(seconds_of() == Approx(all / 1e15).epsilon(0.02));
  w.par.dp = 8;
  CHECK(seconds_of() == Approx(all / 1e15).epsilon(0.02));  // every copy does it
  w.sharding = data_parallel_sharding::distributed_optimizer;
  CHECK(seconds_of() == Approx(all / 8e15).epsilon(0.02));

  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-8b");
  const double adam = j.step_s();
  j.workload.optimizer.kind = optimizer_kind::muon;
  CHECK(j.step_s() > adam);
  CHECK(j.step_s() < 1.2 * adam);
  const double muon = j.step_s();
  j.workload.global_batch_size *= 2;  // once a step
  CHECK(j.step_s() - muon < muon);
}

TEST_CASE("Steps whose time is not all counted have a note for each reason, and no band") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-8b");
  const auto known = [&] { return step_band_90(j.machine, j.software, j.net, j.workload).known(); };
  CHECK(known());
  CHECK(unpriced_work(j.net, j.workload).empty());
  j.workload.deterministic = true;
  CHECK_FALSE(known());
  j.net.towers = {{"vision", 1'000'000}};
  j.workload.freeze_language = true;
  const std::vector<std::string> notes = unpriced_work(j.net, j.workload);
  CHECK(notes.size() == 3);
  for (const std::string& n : notes) CHECK(n.starts_with("no band: "));
  j.workload.deterministic = j.workload.freeze_language = false;
  CHECK_FALSE(known());
}

TEST_CASE("A format without rates on the GPU is a reason why a step cannot run") {
  test::shipped_job j = test::shipped("nd-h100-v5", "qwen3-30b-a3b");
  for (const precision p : {precision::bf16, precision::fp16, precision::fp8}) {
    j.workload.gemm_precision = p;
    CHECK(format_problems(j.machine, j.software, j.workload).empty());
  }
  j.workload.gemm_precision = precision::mxfp8;
  CHECK(format_problems(j.machine, j.software, j.workload) ==
        std::vector<std::string>{"the stack has no mxfp8 GEMM rate for h100 and cannot run this step"});
}

}  // namespace
}  // namespace nvlsim
