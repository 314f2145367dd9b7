// Uneven stages: Megatron's layout strings and numbers of layers.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "nvlsim/training/training.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

using counts = std::vector<std::int64_t>;
using names = std::vector<std::string>;

names parsed(std::string_view text) {
  std::string why;
  const auto layout = parse_pipeline_layout(text, why);
  CHECK(why.empty());
  return layout.value_or(names{});
}
std::string refused(std::string_view text) {
  std::string why;
  CHECK_FALSE(parse_pipeline_layout(text, why));
  return why;
}

training_workload split_in(std::int64_t pp, std::int64_t vp, const pipeline_split& s) {
  training_workload w = test::even_workload(pp, vp, 4 * pp);
  w.split = s;
  return w;
}

TEST_CASE("Layout strings repeat letters and groups") {
  CHECK(parsed("Ett|tt|ttL") == names{"Ett", "tt", "ttL"});
  CHECK(parsed("Et*3|(tt|)*2,t*2mL") == names{"Ettt", "tt", "tt", "ttmL"});
  CHECK(parsed("E|((t*2|)*2)*2L") == names{"E", "tt", "tt", "tt", "tt", "L"});
}

TEST_CASE("Layout strings that cannot be read say where") {
  CHECK(refused("Ex|L") == "character 2: expected E, t, m, L, |, a group in parentheses, or *n after one of them");
  CHECK(refused("E(tt|L") == "character 7: missing closing parenthesis");
  CHECK(refused("Ett)|L") == "character 4: unmatched closing parenthesis");
  CHECK(refused("Et*|L") == "character 3: expected a number from 1 to 65536 after *");
  CHECK(refused("E(t*60000)*60000L").find("more than 65536 letters") != std::string::npos);
}

TEST_CASE("Chunks hold what the layout says") {
  model net = test::even_model(6);
  CHECK(chunk_layers(net, split_in(4, 1, {.layout = parsed("E|ttt|tt|tL")})) == counts{0, 3, 2, 1});
  net.mtp_layers = 1;
  net.mtp_block = {net.layers.back()};
  const training_workload w = split_in(4, 1, {.layout = parsed("Ett|ttt|t|mL")});
  CHECK(split_problems(net, w).empty());
  CHECK(chunk_layers(net, w) == counts{2, 3, 1, 1});
}

TEST_CASE("First and last stages have their own numbers of layers, the others share the rest") {
  const model net = test::even_model(14);
  CHECK(chunk_layers(net, split_in(4, 1, {.first = 2, .last = 4})) == counts{2, 4, 4, 4});
  CHECK(chunk_layers(net, split_in(4, 2, {.first = 2})) == counts{1, 2, 2, 2, 1, 2, 2, 2});
  CHECK(chunk_layers(net, split_in(4, 1, {.embedding = true, .loss = true})) == counts{3, 4, 4, 3});
  CHECK(chunk_layers(net, split_in(3, 1, {.embedding = true, .loss = false})) == counts{4, 5, 5});
}

TEST_CASE("Layouts that do not fit the model or the stages are refused with the reason") {
  const model net = test::even_model(6);
  const auto reasons = [&](std::int64_t pp, std::int64_t vp, const pipeline_split& s) {
    return split_problems(net, split_in(pp, vp, s));
  };
  CHECK(reasons(3, 1, {.layout = parsed("Ett|ttL")}) ==
        names{"the pipeline layout has 2 chunks, but pp x vp is 3",
              "the pipeline layout has 4 layers (t), but the model has 6"});
  CHECK(reasons(2, 1, {.layout = parsed("ttt|EtttL")}) ==
        names{"the pipeline layout must be one E, then layers, then prediction modules, then one L"});
  CHECK(reasons(2, 1, {.first = 1}).empty());
  CHECK(reasons(4, 1, {.first = 1}) ==
        names{"the layers outside the first and last stage do not divide evenly among the other stages"});
  CHECK(reasons(2, 2, {.first = 3}) == names{"a stage of 3 layers cannot be split into vp 2 equal chunks"});
  CHECK(reasons(2, 1, {.layout = parsed("Ettt|tttL"), .first = 3}) ==
        names{"a pipeline layout excludes the other settings of the pipeline split"});
}

TEST_CASE("Uneven stages run as the longest of them") {
  const model net = test::even_model(8);
  const auto step = [&](const pipeline_split& s) {
    training_workload w = split_in(4, 1, s);
    w.global_batch_size = 400;
    return evaluate(plan_training(test::ideal_machine(), test::ideal_stack(), net, w)).makespan.base();
  };
  CHECK(step({.layout = parsed("Et|t|tt|ttttL")}) / step({}) ==
        Approx(2).epsilon(0.03));  // four layers against two
}

constexpr pipeline_schedule zb_v = pipeline_schedule::zb_v, dualpipe = pipeline_schedule::dualpipe;

training_workload bent(pipeline_schedule schedule, std::int64_t micro_batches, const pipeline_split& s) {
  training_workload w = split_in(4, schedule == zb_v ? 2 : 1, s);
  w.schedule = schedule;
  w.global_batch_size = micro_batches;
  return w;
}

// The V holds chunks k and 2p - 1 - k on stage k, and DualPipe k and p - 1 - k: first and last are those of the
// model.
TEST_CASE("Schedules that bend the pipeline deal uneven stages along it") {
  const model net = test::even_model(14);
  CHECK(chunk_layers(net, bent(zb_v, 16, {.first = 2})) == counts{1, 2, 2, 2, 2, 2, 2, 1});
  CHECK(chunk_layers(net, bent(zb_v, 16, {.embedding = true, .loss = true})) == counts{1, 2, 2, 2, 2, 2, 2, 1});
  CHECK(chunk_layers(net, bent(dualpipe, 16, {.first = 2, .last = 4})) == counts{2, 4, 4, 4});
  CHECK(split_problems(net, bent(zb_v, 16, {.layout = parsed("Et|tt|tt|tt|tt|tt|tt|tL")})).empty());
  CHECK(split_problems(net, bent(dualpipe, 16, {.layout = parsed("Ett|tttt|tttt|ttttL")})).empty());
}

/// Layers that each stage runs for a micro-batch: under DualPipe half of them meet one of its chunks, half the
/// other.
std::vector<double> layers_by_stage(const model& net, const training_workload& w) {
  const pipeline_geometry g = geometry_of(w);
  const counts chunks = chunk_layers(net, w);
  std::vector<double> out;
  for (std::int64_t stage = 0; stage < g.pp; ++stage) {
    double sum = 0;
    for (std::int64_t v = 0; v < g.local; ++v)
      sum += static_cast<double>(chunks[static_cast<std::size_t>(g.chunk_of(stage, v))]);
    out.push_back(g.schedule == dualpipe ? sum / 2 : sum);
  }
  return out;
}

TEST_CASE("Uneven stages of every schedule end, conserve work and run at the pace of the longest") {
  const model net = test::even_model(16);
  const double layer = evaluate(plan_training(test::ideal_machine(), test::ideal_stack(), test::even_model(1),
                                              test::even_workload(1, 1, 1)))
                           .makespan.base();
  const struct {
    pipeline_schedule schedule;
    const char* layout;
  } cases[] = {{zb_v, "Et|tt|ttt|tt|tt|tt|ttt|tL"},
               {zb_v, "E|tttt|t|tt|t|tttt|tt|ttL"},
               {zb_v, "Etttttttt|t|t|t|t|t|t|ttL"},
               {dualpipe, "Ettt|ttttt|ttttt|tttL"},
               {dualpipe, "E|tttttttt|tttt|ttttL"},
               {pipeline_schedule::zb_h1, "Ettt|ttttt|ttttt|tttL"},
               {pipeline_schedule::one_f_one_b, "Et|ttttttt|ttttt|tttL"}};
  for (const auto& c : cases) {
    INFO(c.layout);
    double last = 0;
    for (const std::int64_t m : {32, 64}) {
      const training_workload w = bent(c.schedule, m, {.layout = parsed(c.layout)});
      REQUIRE(split_problems(net, w).empty());
      const plan planned = plan_training(test::ideal_machine(), test::ideal_stack(), net, w);
      const std::vector<double> stages = layers_by_stage(net, w);
      for (std::size_t s = 0; s < stages.size(); ++s) {
        double busy = 0;
        for (const operation& o : planned.classes[s].streams.front().operations)
          busy += planned.templates[static_cast<std::size_t>(o.template_index)].duration.base();
        CHECK(busy == Approx(stages[s] * static_cast<double>(m) * layer).epsilon(1e-12));
      }
      const double step = evaluate(planned).makespan.base(),
                   longest = *std::max_element(stages.begin(), stages.end()) * layer;
      CHECK(step >= longest * static_cast<double>(m) * (1 - 1e-12));
      // Half of DualPipe's micro-batches may wait for a longer chunk than the mean of the stage's two.
      if (last > 0 && c.schedule != dualpipe) CHECK((step - last) / 32 == Approx(longest).epsilon(1e-9));
      last = step;
    }
  }
}

}  // namespace
}  // namespace nvlsim
