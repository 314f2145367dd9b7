#include "output/model_page.hpp"

#include <catch2/catch.hpp>
#include <sstream>

using namespace nvlsim;

namespace {

model llama_8b() {
  model m;
  m.name = "llama3-8b";
  m.model_type = "llama";
  m.hidden = 4096;
  m.vocab = 128256;
  m.max_positions = 8192;
  m.layers.assign(32, {32, 8, 128, 14336, true});
  return m;
}

}  // namespace

TEST_CASE("Model page shows shape, parameters, FLOPs and bytes") {
  CHECK(model_page(llama_8b()) == R"(llama3-8b (llama)

Shape
  layers               32
  hidden             4096
  vocabulary       128256
  positions          8192
  output weights  its own

Layers in order
  layers  heads  KV heads  head size  QK norm    MLP  gated
  32         32         8        128       no  14336    yes

Parameters
  embedding    525,336,576    6.54 %
  attention  1,342,177,280   16.71 %
  mlp        5,637,144,576   70.20 %
  norms            266,240    0.00 %
  output       525,336,576    6.54 %
  total      8,030,261,248  100.00 %

Training FLOPs per token, forward and backward
  sequence       causal  full attention
  4096      48.25 GFLOP     51.47 GFLOP
  8192      51.47 GFLOP     57.91 GFLOP

Bytes over all GPUs together
  precision  all weights  KV cache per token
  fp32          32.12 GB            262.1 kB
  bf16          16.06 GB            131.1 kB
  fp8            8.03 GB            65.54 kB
  mxfp8         8.281 GB            67.58 kB
  nvfp4         4.517 GB            36.86 kB
  mxfp4         4.266 GB            34.82 kB
)");
}

TEST_CASE("Model page fits 80 columns at every bound and survives an empty model") {
  model m;
  m.name = std::string(200, 'x');
  m.model_type = "llama";
  m.hidden = 1 << 18;
  m.vocab = 1 << 26;
  m.layers.assign(1 << 13, {1 << 13, 1 << 13, 1 << 13, 1 << 22, true, true});
  m.layers.front().qk_norm = false;
  for (const model& each : {m, model{}}) {
    std::istringstream lines(model_page(each));
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
  }
  CHECK(model_page(model{}).find("nan") == std::string::npos);
  CHECK(model_page(m).find("\n  1 ") < model_page(m).find("\n  8191 "));
}

TEST_CASE("Model document has the numbers of the page in full") {
  const value v = model_json(llama_8b());
  CHECK(*v.at_pointer("/schema") == value{"nvlsim.model_page/1"});
  CHECK(*v.at_pointer("/layers/0/count") == value{32});
  CHECK(*v.at_pointer("/layers/0/num_key_value_heads") == value{8});
  CHECK(*v.at_pointer("/parameters/total") == value{std::int64_t{8'030'261'248}});
  CHECK(*v.at_pointer("/training_flops_per_token/1/full_attention") == value{57'912'852'480.0});
  CHECK(*v.at_pointer("/kv_bytes_per_token/bf16") == value{131072.0});
  CHECK(*v.at_pointer("/weight_bytes/nvfp4") == value{8'030'261'248 * 0.5625});
  CHECK(v.at_pointer("/layers/1") == nullptr);
  CHECK(model_json(model{}).at_pointer("/max_position_embeddings")->is_null());
}
