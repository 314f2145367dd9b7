// Shipped scenarios and published offline rows, from file to tokens a second.
#include <catch2/catch.hpp>
#include <string>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {
namespace {

scenario shipped(const std::string& name) {
  const std::string root = NVLSIM_SOURCE_DIR;
  return load_scenario(root + "/scenarios/inference/" + name + ".json", {}, folders_under(root));
}

inference_metrics run(const scenario& s) {
  const auto& w = std::get<inference_workload>(s.workload);
  const serving_run r = serve(s.platform, s.stack, s.model, w);
  REQUIRE(r.reasons.empty());
  return measure_inference(r, w);
}

TEST_CASE("Rack scenarios of Llama-2-70B come near the public runs") {
  const double gb200 = run(shipped("llama2-70b-offline-gb200-rack")).output_tokens_per_s;
  const double gb300 = run(shipped("llama2-70b-offline-gb300-rack")).output_tokens_per_s;
  CHECK(gb200 == Approx(865'000).epsilon(0.10));
  CHECK(gb300 == Approx(1'100'948).epsilon(0.10));
  CHECK(gb300 / gb200 > 1.08);
  CHECK(gb300 / gb200 < 1.30);
}

// NVIDIA/TensorRT-LLM perf-overview 1.0, GB200, NVFP4 weights, FP8 cache: fixed lengths, all requests at once.
TEST_CASE("Published offline rows of stated lengths are met within a tenth") {
  struct row {
    const char* model;
    int tp;
    double input, output, tokens_per_s;
  };
  const auto [name, tp, input, output, published] =
      GENERATE(row{"llama3.3-70b", 1, 128, 2048, 11309}, row{"llama3.3-70b", 1, 2048, 128, 1450},
               row{"llama3.3-70b", 1, 5000, 500, 1602}, row{"llama3.3-70b", 1, 20000, 2000, 755},
               row{"llama3.1-405b", 4, 128, 128, 6740}, row{"llama3.1-405b", 4, 1000, 1000, 5389},
               row{"llama3.1-405b", 4, 2048, 2048, 4407}, row{"llama3.1-405b", 4, 5000, 500, 1112});
  const std::string root = NVLSIM_SOURCE_DIR;
  const std::string text = std::to_string(static_cast<int>(input)), out = std::to_string(static_cast<int>(output));
  scenario s = load_scenario(root + "/scenarios/inference/llama2-70b-offline-gb200-rack.json",
                             {{"/model", name},
                              {"/workload/load/requests", "1500"},
                              {"/workload/load/input", "{\"mean\": " + text + "}"},
                              {"/workload/load/output", "{\"mean\": " + out + "}"},
                              {"/workload/engine/max_num_tokens", "8192"},
                              {"/workload/layout", "{\"tp\": " + std::to_string(tp) + "}"}},
                             folders_under(root));
  INFO(name << " " << text << "/" << out);
  CHECK(run(s).output_tokens_per_s == Approx(published).epsilon(0.10));
}

}  // namespace
}  // namespace nvlsim
