// Uneven stages: Megatron's layout strings and numbers of layers.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "nvlsim/training.hpp"
#include "training_fixture.hpp"

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
  CHECK(refused("E(tt|L") == "character 7: the group is not closed");
  CHECK(refused("Ett)|L") == "character 4: a closing parenthesis without its opening one");
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
  const auto reasons = [&](std::int64_t pp, std::int64_t vp, const pipeline_split& s) { return split_problems(net, split_in(pp, vp, s)); };
  CHECK(reasons(3, 1, {.layout = parsed("Ett|ttL")}) ==
        names{"the pipeline layout has 2 chunks, and pp x vp is 3", "the pipeline layout has 4 layers (t), and the model 6"});
  CHECK(reasons(2, 1, {.layout = parsed("ttt|EtttL")}) ==
        names{"the pipeline layout must go from one E through layers and prediction modules to one L"});
  CHECK(reasons(2, 1, {.first = 1}).empty());
  CHECK(reasons(4, 1, {.first = 1}) ==
        names{"the layers left over from the first and last stage cannot be dealt evenly to the others"});
  CHECK(reasons(2, 2, {.first = 3}) == names{"a stage of 3 layers cannot be cut into vp 2 equal chunks"});
  CHECK(reasons(2, 1, {.layout = parsed("Ettt|tttL"), .first = 3}) ==
        names{"a pipeline layout says everything; leave out the other numbers of stages"});
}

TEST_CASE("Uneven stages run as the longest of them") {
  const model net = test::even_model(8);
  const auto step = [&](const pipeline_split& s) {
    training_workload w = split_in(4, 1, s);
    w.global_batch_size = 400;
    return evaluate(plan_training(test::ideal_machine(), test::ideal_stack(), net, w)).makespan.base();
  };
  CHECK(step({.layout = parsed("Et|t|tt|ttttL")}) / step({}) == Approx(2).epsilon(0.03));  // four layers against two
}

}  // namespace
}  // namespace nvlsim
