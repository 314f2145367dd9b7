#include "nvlsim/output/input_pages.hpp"

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
  layer_spec l;
  l.heads = 32;
  l.kv_heads = 8;
  l.head_dim = 128;
  l.ffn_hidden = 14336;
  m.layers.assign(32, l);
  return m;
}

}  // namespace

TEST_CASE("Model page shows shape, parameters, FLOPs and bytes") {
  CHECK(model_page(llama_8b()) == R"(llama3-8b (llama)

Shape
  layers                32
  hidden              4096
  vocabulary        128256
  positions           8192
  output weights  separate

Layers by kind
  layers  attention  heads  KV  size  keys          MLP
  32        grouped     32   8   128   all  14336 gated

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

Bytes, sum over all GPUs
  precision  all weights  KV cache per token
  fp32          32.12 GB            262.1 kB
  bf16          16.06 GB            131.1 kB
  fp8            8.03 GB            65.54 kB
  mxfp8         8.281 GB            67.58 kB
  nvfp4         4.517 GB            36.86 kB
  mxfp4         4.266 GB            34.82 kB
)");
}

TEST_CASE("Model page shows experts, windows, states and prediction") {
  model m = llama_8b();
  layer_spec mamba, moe;
  mamba.attention = attention_kind::mamba;
  mamba.scan = {.heads = 64, .head_dim = 64, .state = 128, .groups = 8, .key_heads = 0, .conv_kernel = 4};
  moe.attention = attention_kind::none;
  moe.moe = {.experts = 128, .top_k = 6, .expert_ffn = 1856, .shared_ffn = 3712, .latent = 0};
  m.layers.resize(1);
  m.layers.front().window = 128;
  m.layers.front().qk_norm = qk_norm_kind::per_head;
  m.layers.insert(m.layers.end(), {mamba, moe, mamba, moe});
  m.mtp_layers = 1;
  m.mtp_block = {moe};
  const std::string page = model_page(m);
  CHECK(page.find(R"(
  layers      attention  heads  KV  size        keys          MLP
  1       grouped, norm     32   8   128  window 128  14336 gated
  2               mamba     64   -    64   state 128            -
  2                none      -   -     -           -      experts

Experts
  layers  experts  per token  width  shared width  latent
  2           128          6   1856          3712      no
)") != std::string::npos);
  CHECK(page.find("prediction modules") != std::string::npos);
  CHECK(page.find("\n  active per token") != std::string::npos);
  CHECK(page.find("\n  prediction, additional") != std::string::npos);
  // 128 tokens of the window at most, 2 x 8 x 128 BF16 each; two states of 2.1 MB and their convolutions.
  CHECK(page.find(R"(
Bytes per sequence
  tokens  KV cache, bf16  KV cache, fp8    states
  1024          524.3 kB       262.1 kB  4.268 MB
  8192          524.3 kB       262.1 kB  4.268 MB
)") != std::string::npos);
  CHECK(page.find("nan") == std::string::npos);
}

TEST_CASE("Model page fits 80 columns at every bound and survives an empty model") {
  model m;
  m.name = std::string(200, 'x');
  m.model_type = "llama";
  m.hidden = 1 << 18;
  m.vocab = 1 << 26;
  layer_spec l;
  l.heads = l.kv_heads = l.head_dim = 1 << 13;
  l.window = 1 << 30;
  l.ffn_hidden = 1 << 22;
  l.qk_norm = qk_norm_kind::per_head;
  m.layers.assign(1 << 13, l);
  m.layers.front().qk_norm = qk_norm_kind::none;
  model other = m;
  l.attention = attention_kind::compressed;
  l.compressed.ratio = 1 << 13;
  l.sparse_keys = 1 << 30;
  l.qk_norm = qk_norm_kind::none;
  other.layers.assign(1 << 13, l);
  other.layers.back().moe = {
      .experts = 1 << 13, .top_k = 1 << 13, .expert_ffn = 1 << 17, .shared_ffn = 1 << 22, .latent = 1 << 18};
  for (const model& each : {m, other, model{}}) {
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
  CHECK(*v.at_pointer("/parameters/active") == *v.at_pointer("/parameters/total"));
  CHECK(*v.at_pointer("/kv_bytes_per_sequence/0/bf16") == value{1024 * 131072.0});
  CHECK(*v.at_pointer("/state_bytes_per_sequence") == value{0.0});
  model m = llama_8b();
  m.layers.back().moe = {.experts = 8, .top_k = 2, .expert_ffn = 1024, .shared_ffn = 0, .latent = 0};
  m.layers.back().attention = attention_kind::mla;
  m.layers.back().mla.kv_lora_rank = 512;
  const value w = model_json(m);
  CHECK(*w.at_pointer("/layers/1/attention") == value{"latent"});
  CHECK(*w.at_pointer("/layers/1/latent/kv_lora_rank") == value{512});
  CHECK(*w.at_pointer("/layers/1/experts/num_experts_per_tok") == value{2});
  CHECK(w.at_pointer("/layers/0/experts") == nullptr);
  CHECK(*w.at_pointer("/parameters/active") == value{parameters(m) - 6 * 3 * 4096 * 1024});
  CHECK(model_json(model{}).at_pointer("/max_position_embeddings")->is_null());
}
