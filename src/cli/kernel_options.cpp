// The options of nvlsim kernel, with one subcommand per class.
#include "cli/kernel_options.hpp"
#include "cli/option_text.hpp"

#include "nvlsim/compute/compute.hpp"

namespace nvlsim::cli {
namespace {

struct number_option {
  const char *name, *help;
  double kernel_arguments::*member;
  bool required;
  double min = 0, max = 1e18;
};
struct flag_option {
  const char *name, *help;
  bool kernel_arguments::*member;
};
struct word_option {
  const char *name, *help;
  std::string kernel_arguments::*member;
  std::vector<std::string> allowed;  ///< empty: any
};

struct kernel_class {
  const char *word, *help, *format_help;
  std::vector<number_option> numbers;
  const char* example;
  std::vector<flag_option> flags = {};
  std::vector<word_option> words = {};
};

std::vector<std::string> elementwise_names() {
  std::vector<std::string> out;
  for (const elementwise_kernel& e : elementwise_kernels()) out.emplace_back(e.name);
  return out;
}

const std::vector<kernel_class>& classes() {
  using a = kernel_arguments;
  static const flag_option backward = {"--backward", "Time the backward pass instead", &a::backward};
  static const number_option batch = {"--batch", "Sequences", &a::batch, false},
                             heads = {"--heads", "Query heads on this GPU", &a::heads, true},
                             kv_heads = {"--kv-heads", "KV heads on this GPU (default: same as --heads)",
                                         &a::kv_heads, false},
                             head_dim = {"--head-dim", "Head size", &a::head_dim, false},
                             context = {"--context", "Cached tokens per sequence", &a::length, true},
                             tokens = {"--tokens", "Tokens", &a::tokens, true};
  static const std::vector<kernel_class> list = {
      {"gemm",
       "C[m,n] = A[m,k] x W[k,n]",
       "Operands: fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, int8 ...",
       {{"--m", "Rows (tokens)", &a::m, true},
        {"--n", "Columns (outputs)", &a::n, true},
        {"--k", "Inner dimension (inputs)", &a::k, true},
        {"--groups", "Number of products in one launch", &a::groups, false}},
       "nvlsim kernel gemm --m 8192 --n 8192 --k 8192 --precision fp8 --platform gb300-nvl72",
       {{"--sparse", "Weights with 2:4 structured sparsity", &a::sparse}},
       {{"--weights",
         "Precision of the weights for 16-bit arithmetic: int4, int8",
         &a::weights,
         {"int4", "int8"}}}},
      {"attention",
       "Attention of prompts and training, causal unless --full",
       "bf16, fp16; fp8 if the KV cache is fp8",
       {batch,
        heads,
        kv_heads,
        head_dim,
        {"--seq", "Tokens of a sequence", &a::length, true},
        {"--queries", "Last tokens of it that are computed (default: all)", &a::queries, false},
        {"--window", "Maximum number of tokens a query sees (default: all before it)", &a::window, false}},
       "nvlsim kernel attention --heads 64 --kv-heads 8 --seq 8192 --platform gb300-nvl72",
       {{"--full", "Every query sees every token", &a::full}, backward}},
      {"sparse-attention",
       "Attention to keys chosen by an indexer or a window, with one latent vector per key",
       "bf16, fp8",
       {tokens,
        heads,
        {"--keys", "Chosen keys per query", &a::keys, true},
        {"--qk-dim", "Elements per key", &a::qk_dim, false},
        {"--v-dim", "Elements per value", &a::v_dim, false}},
       "nvlsim kernel sparse-attention --tokens 8192 --heads 128 --keys 2048 --platform gb300-nvl72",
       {backward}},
      {"indexer",
       "Scoring and selection of keys by an indexer",
       "bf16, fp8",
       {tokens,
        heads,
        head_dim,
        {"--scored", "Scored keys per query", &a::scored, true},
        {"--chosen", "Chosen keys per query (default: 2048, or all if fewer)", &a::chosen, false, 1}},
       "nvlsim kernel indexer --tokens 8192 --heads 64 --scored 4096 --precision fp8 --platform gb300-nvl72",
       {backward}},
      {"decode",
       "Decode attention: one token per sequence against its KV cache",
       "Of the cache",
       {batch, heads, kv_heads, head_dim, context},
       "nvlsim kernel decode --batch 64 --heads 64 --kv-heads 8 --context 8192 --precision fp8 --platform "
       "gb300-nvl72"},
      {"mla",
       "Decode attention with a latent cache shared by all heads (MLA)",
       "Of the cache",
       {batch, heads, context},
       "nvlsim kernel mla --batch 64 --heads 128 --context 8192 --precision fp8 --platform gb300-nvl72"},
      {"mla-context",
       "Latent attention (MLA) for prompts",
       "Of the cache",
       {batch,
        heads,
        {"--seq", "Tokens of a sequence", &a::length, true},
        {"--queries", "Last tokens of it that are computed (default: all)", &a::queries, false}},
       "nvlsim kernel mla-context --heads 128 --seq 8192 --precision fp8 --platform gb300-nvl72"},
      {"absorb",
       "MLA weight absorption: queries times the key projection, or attention outputs times the value projection",
       "bf16, fp8",
       {tokens, heads},
       "nvlsim kernel absorb --part values --tokens 64 --heads 128 --platform gb300-nvl72",
       {},
       {{"--part", "Projection", &a::part, {"keys", "values"}}}},
      {"moe",
       "The experts on one rank, after dispatch",
       "",
       {{"--tokens", "Tokens dispatched to the rank", &a::tokens, true},
        {"--experts", "Experts over all ranks", &a::experts, true, 1, 1 << 16},
        {"--topk", "Experts per token", &a::topk, true, 1},
        {"--hidden", "Hidden size", &a::hidden, true},
        {"--inter", "Intermediate size per expert on this GPU", &a::inter, true},
        {"--ranks", "Ranks that share the experts", &a::ranks, false, 0, 1 << 16},
        {"--skew", "Power-law exponent of expert popularity (default: balanced)", &a::skew, false}},
       "nvlsim kernel moe --family cutlass_nvfp4 --tokens 4096 --experts 256 --topk 8 --hidden 7168 --inter 2048 "
       "--ranks 32 "
       "--platform gb300-nvl72",
       {{"--ungated", "One up projection instead of two", &a::ungated}},
       {{"--family", "Kernels: deepgemm_fp8_block, cutlass_nvfp4, mxfp4_bf16 ...", &a::family, {}}}},
      {"scan",
       "The scan of a Mamba-2 layer, or of a gated delta net with --delta",
       "",
       {tokens,
        heads,
        {"--head-dim", "Head size", &a::head_dim, false, 1},
        {"--state", "State size per head", &a::state, false, 1},
        {"--groups", "Number of head groups that share B and C", &a::state_groups, false, 1},
        {"--chunk", "Tokens per chunk (default: 128, or all if fewer)", &a::chunk, false, 1}},
       "nvlsim kernel scan --tokens 8192 --heads 128 --head-dim 64 --state 128 --groups 8 --platform gb300-nvl72",
       {{"--delta", "Use the gated delta rule", &a::delta}, backward}},
      {"stream",
       "A memory-bound kernel",
       "",
       {{"--bytes", "Bytes read and written", &a::bytes, true}},
       "nvlsim kernel stream --bytes 1e9 --platform gb300-nvl72"},
      {"elementwise",
       "Norms, activations, optimizer and similar, by bytes moved per element",
       "",
       {{"--elements", "Elements (values, parameters, or tokens times experts)", &a::elements, true}},
       "nvlsim kernel elementwise --op cross_entropy --elements 1e9 --platform gb300-nvl72",
       {},
       {{"--op", "Kernel", &a::elementwise, elementwise_names()}}},
      {"copy",
       "A copy by one GPU while the other GPUs of its VM copy too",
       "",
       {{"--bytes", "Bytes copied", &a::bytes, true}},
       "nvlsim kernel copy --path from_cpu --bytes 1e9 --platform gb300-nvl72",
       {},
       {{"--path", "Source and destination", &a::path, {copy_path_names.begin(), copy_path_names.end()}}}}};
  return list;
}

}  // namespace

std::string_view default_stack(std::string_view kernel) {
  return kernel == "scan" ? "megatron-bridge-26.06" : "tensorrt-llm-1.3-kernels";
}

void add_kernel(CLI::App& app, kernel_arguments& a, std::function<void()> chosen) {
  CLI::App* c = app.add_subcommand("kernel", "Time one kernel and show its rate, bound, power and parameters");
  c->require_subcommand(1);
  for (const kernel_class& k : classes()) {
    CLI::App* s = c->add_subcommand(k.word, k.help);
    for (const number_option& n : k.numbers) {
      auto* o = s->add_option(n.name, a.*n.member, n.help)->check(number_from(n.min, n.max));
      if (n.required) o->required();
    }
    if (*k.format_help) s->add_option("--precision", a.format_of_data, k.format_help)->capture_default_str();
    for (const flag_option& f : k.flags) s->add_flag(f.name, a.*f.member, f.help);
    for (const word_option& w : k.words) {
      auto* o = s->add_option(w.name, a.*w.member, w.help);
      if (!w.allowed.empty()) o->check(CLI::IsMember(w.allowed));
      if (!(a.*w.member).empty()) o->capture_default_str();
    }
    s->add_option("--platform", a.platform, "Platform")->required();
    s->add_option("--stack", a.stack, "Stack that provides the kernel parameters")
        ->default_str(std::string(default_stack(k.word)));
    s->add_option("--set", a.sets,
                  "Override a platform value, or a stack value below /kernels (repeatable): --set /gpu/tdp=1000W")
        ->type_name("POINTER=VALUE")
        ->allow_extra_args(false);
    add_format(s, a.format, {"table", "json"});
    s->footer(std::string("example:\n  ") + k.example);
    s->callback([&a, word = k.word, chosen] {
      a.kernel = word;
      chosen();
    });
  }
}

}  // namespace nvlsim::cli
