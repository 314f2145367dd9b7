// Encoders of images in training: their time and what they keep.
#include "training/encoder.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/training/idle_settings.hpp"
#include "training/pass_costs.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

constexpr double width = 1024, inner = 4096, deep = 8, images = 3, image_tokens = 256, merged = 4;

tower_spec encoder_spec() {
  tower_spec t;
  t.name = "vision";
  t.layers = 8, t.hidden = 1024, t.heads = 16, t.ffn_hidden = 4096;
  t.patches_per_token = merged;
  t.projector = 4096 * 4096;
  t.parameters = t.layers * (4 * 1024 * 1024 + 2 * 1024 * 4096) + t.projector;
  return t;
}

sample_images some_images(double count) { return {count, 256}; }

struct seeing_job {
  platform machine = test::ideal_machine();
  stack software = test::ideal_stack();
  model net = test::even_model(1);
  training_workload workload = test::even_workload(1, 1, 1);

  seeing_job() {
    software.kernels["ideal"].gemm[precision::bf16].tensor_rate = 1000.0_TFLOPS;
    net.towers = {encoder_spec()};
    workload.images = some_images(images);
  }
  double pass_s(pass_kind what) const {
    return embedding_pass(training_context(machine, software, net, workload), what).duration().base();
  }
};

TEST_CASE(
    "An encoder takes the time of its products with the patches of all images, and three times that trained") {
  seeing_job j;
  const double patches = images * image_tokens * merged;
  const double flops =
      2 * patches * deep * (4 * width * width + 2 * width * inner) + 2 * images * image_tokens * 4096 * 4096;
  CHECK(j.pass_s(pass_kind::forward) == Approx(flops / 1e15).epsilon(0.05));
  CHECK(j.pass_s(pass_kind::backward) == Approx(2 * flops / 1e15).epsilon(0.05));
  const double once = j.pass_s(pass_kind::forward);
  j.workload.micro_batch_size = 2;
  CHECK(j.pass_s(pass_kind::forward) == Approx(2 * once).epsilon(0.05));
  j.workload.micro_batch_size = 1;
  j.workload.images = some_images(2 * images);
  CHECK(j.pass_s(pass_kind::forward) == Approx(2 * once).epsilon(0.05));
  j.workload.freeze_towers = true;  // nothing before it needs its gradients
  CHECK(j.pass_s(pass_kind::backward) < 1e-3 * once);
  j.workload.freeze_towers = false;
  j.workload.task = training_task::lora;
  CHECK(j.pass_s(pass_kind::backward) < 1e-3 * once);
  j.workload.images.reset();
  CHECK(j.pass_s(pass_kind::forward) < 1e-3 * once);
}

TEST_CASE(
    "Launches of an encoder hide behind a model that keeps the GPU busy, not behind one that its host paces") {
  seeing_job j;
  const double free = j.pass_s(pass_kind::forward), free_back = j.pass_s(pass_kind::backward);
  constexpr double launch = 20e-6, operators = 9;
  j.software.training->host_per_operator = seconds::from_base(launch);
  CHECK(deep * operators * launch > free);
  CHECK(j.pass_s(pass_kind::forward) == Approx(free));
  CHECK(j.pass_s(pass_kind::backward) == Approx(free_back));
  j.workload.seq_length = 64;
  CHECK(j.pass_s(pass_kind::forward) > deep * operators * launch);
  j.workload.graphs = cuda_graphs::full_iteration;
  CHECK(j.pass_s(pass_kind::forward) == Approx(free));
}

TEST_CASE("Launches of an encoder hide as far in any number of chunks of a stage") {
  seeing_job j;
  j.net = test::even_model(8);
  j.net.towers = {encoder_spec()};
  j.software.training->host_per_operator = seconds::from_base(20e-6);
  j.workload.seq_length = 64;
  j.workload.par.pp = 2;
  const double whole = j.pass_s(pass_kind::forward);
  j.workload.par.vp = 4;  // a search takes the pass of one for the other
  CHECK(j.pass_s(pass_kind::forward) == whole);
}

TEST_CASE("A window of packed samples has the images of each") {
  seeing_job j;
  j.workload.seq_length = 8192;
  const double once = j.pass_s(pass_kind::forward);
  j.workload.packed = token_lengths{.mean = 2048};
  CHECK(j.pass_s(pass_kind::forward) == Approx(4 * once).epsilon(0.05));
}

TEST_CASE("A patch attends to all patches of its image, and to no other image's") {
  seeing_job j;
  j.software.kernels["ideal"].attention.tensor_rate = 1000.0_TFLOPS;
  seeing_job apart = j;
  apart.software.kernels["ideal"].attention.tensor_rate = flop_rate::from_base(test::endless);
  const double patches = image_tokens * merged;
  const double flops = deep * images * 4 * patches * patches * width;
  CHECK(j.pass_s(pass_kind::forward) - apart.pass_s(pass_kind::forward) == Approx(flops / 1e15).epsilon(0.1));
}

TEST_CASE("A step with images is longer by its encoder, and keeps more only where that is trained") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-8b");
  j.net.towers = {encoder_spec()};
  const auto activations = [&] {
    return test::item(training_memory(j.machine, j.software, j.net, j.workload), "activations");
  };
  const double blind = j.step_s(), kept = activations();
  CHECK(unpriced_work(j.net, j.workload).front().find("are not counted") != std::string::npos);
  j.workload.images = some_images(4);
  const double trained = j.step_s();
  CHECK(trained > blind);
  CHECK(activations() > kept);
  CHECK(unpriced_work(j.net, j.workload).front().find("how many a sample has") != std::string::npos);
  j.workload.freeze_towers = true;
  CHECK(j.step_s() < trained);
  CHECK(j.step_s() > blind);
  CHECK(activations() == kept);
}

TEST_CASE("Images of a model without an encoder have no effect") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-8b");
  const double without = j.step_s();
  j.workload.images = some_images(4);
  CHECK(j.step_s() == without);
  CHECK(idle_settings(j.net, j.workload).front().find("images") != std::string::npos);
}

}  // namespace
}  // namespace nvlsim
