// The options of nvlsim kernel, a subcommand for each class.
#include "cli/kernel_options.hpp"
#include "cli/option_text.hpp"

#include "nvlsim/compute/compute.hpp"

namespace nvlsim::cli {
namespace {

struct number_option {
  const char *name, *help;
  double kernel_arguments::*member;
  bool required;
  double least = 0;
};
struct flag_option {
  const char *name, *help;
  bool kernel_arguments::*member;
};
struct word_option {
  const char *name, *help;
  std::string kernel_arguments::*member;
  std::vector<std::string> allowed;  ///< any when empty
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
  static const flag_option backward = {"--backward", "The gradients instead", &a::backward};
  static const number_option batch = {"--batch", "Sequences", &a::batch, false},
                             heads = {"--heads", "Query heads on this GPU", &a::heads, true},
                             kv_heads = {"--kv-heads", "KV heads on this GPU (default: as many)", &a::kv_heads,
                                         false},
                             head_dim = {"--head-dim", "Head size", &a::head_dim, false},
                             context = {"--context", "Cached tokens of a sequence", &a::length, true},
                             tokens = {"--tokens", "Tokens", &a::tokens, true};
  static const std::vector<kernel_class> list = {
      {"gemm",
       "C[m,n] = A[m,k] x W[k,n]",
       "Operands: fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, int8 ...",
       {{"--m", "Rows (tokens)", &a::m, true},
        {"--n", "Columns (outputs)", &a::n, true},
        {"--k", "Depth (inputs)", &a::k, true},
        {"--groups", "Products in one launch", &a::groups, false}},
       "nvlsim kernel gemm --m 8192 --n 8192 --k 8192 --precision fp8 --platform gb300-nvl72",
       {{"--sparse", "Weights with 2:4 structured sparsity", &a::sparse}},
       {{"--weights",
         "Format of the weights where the arithmetic is in 16 bit: int4, int8",
         &a::weights,
         {"int4", "int8"}}}},
      {"attention",
       "Attention of prompts and training, causal unless --full",
       "fp8 where the cache is",
       {batch,
        heads,
        kv_heads,
        head_dim,
        {"--seq", "Tokens of a sequence", &a::length, true},
        {"--queries", "Last tokens of it that are computed (default: all)", &a::queries, false},
        {"--window", "Tokens that a query sees at most (default: all before it)", &a::window, false}},
       "nvlsim kernel attention --heads 64 --kv-heads 8 --seq 8192 --platform gb300-nvl72",
       {{"--full", "Every query sees every token", &a::full}, backward}},
      {"sparse-attention",
       "Attention to the keys that an indexer or a window chose, one latent vector a key",
       "bf16, fp8",
       {tokens,
        heads,
        {"--keys", "Chosen keys of a query", &a::keys, true},
        {"--qk-dim", "Elements of a key", &a::qk_dim, false},
        {"--v-dim", "Elements of a value", &a::v_dim, false}},
       "nvlsim kernel sparse-attention --tokens 8192 --heads 128 --keys 2048 --platform gb300-nvl72",
       {backward}},
      {"indexer",
       "The scores by which an indexer chooses keys",
       "bf16, fp8",
       {tokens,
        heads,
        head_dim,
        {"--scored", "Keys of a query that are scored", &a::scored, true},
        {"--chosen", "Keys of them that are chosen (default: 2048, or all if fewer)", &a::chosen, false, 1}},
       "nvlsim kernel indexer --tokens 8192 --heads 64 --scored 4096 --precision fp8 --platform gb300-nvl72",
       {backward}},
      {"decode",
       "One token of each sequence against its cache",
       "Of the cache",
       {batch, heads, kv_heads, head_dim, context},
       "nvlsim kernel decode --batch 64 --heads 64 --kv-heads 8 --context 8192 --precision fp8 --platform "
       "gb300-nvl72"},
      {"mla",
       "The same with a latent cache that all heads share",
       "Of the cache",
       {batch, heads, context},
       "nvlsim kernel mla --batch 64 --heads 128 --context 8192 --precision fp8 --platform gb300-nvl72"},
      {"mla-context",
       "Latent attention of prompts",
       "Of the cache",
       {batch,
        heads,
        {"--seq", "Tokens of a sequence", &a::length, true},
        {"--queries", "Last tokens of it that are computed (default: all)", &a::queries, false}},
       "nvlsim kernel mla-context --heads 128 --seq 8192 --precision fp8 --platform gb300-nvl72"},
      {"absorb",
       "Latent attention: queries times the key projection, or what was attended times the value projection",
       "bf16, fp8",
       {tokens, heads},
       "nvlsim kernel absorb --part values --tokens 64 --heads 128 --platform gb300-nvl72",
       {},
       {{"--part", "Projection", &a::part, {"keys", "values"}}}},
      {"moe",
       "The experts of one rank, after dispatch",
       "",
       {{"--tokens", "Tokens presented to the rank", &a::tokens, true},
        {"--experts", "Experts of all ranks", &a::experts, true, 1},
        {"--topk", "Experts of a token", &a::topk, true, 1},
        {"--hidden", "Hidden size", &a::hidden, true},
        {"--inter", "Inner size of an expert on this GPU", &a::inter, true},
        {"--ranks", "Ranks that share the experts", &a::ranks, false},
        {"--skew", "Exponent of a power law of popularity (default: balanced)", &a::skew, false}},
       "nvlsim kernel moe --family cutlass_nvfp4 --tokens 4096 --experts 256 --topk 8 --hidden 7168 --inter 2048 "
       "--ranks 32 "
       "--platform gb300-nvl72",
       {{"--ungated", "One up projection instead of two", &a::ungated}},
       {{"--family", "Kernels: deepgemm_fp8_block, cutlass_nvfp4, mxfp4_bf16 ...", &a::family, {}}}},
      {"scan",
       "The scan of a Mamba-2 layer, or with --delta of a gated delta net",
       "",
       {tokens,
        heads,
        {"--head-dim", "Head size", &a::head_dim, false, 1},
        {"--state", "State of a head", &a::state, false, 1},
        {"--groups", "Groups of heads that share B and C", &a::state_groups, false, 1},
        {"--chunk", "Tokens of a chunk (default: 128, or all if fewer)", &a::chunk, false, 1}},
       "nvlsim kernel scan --tokens 8192 --heads 128 --head-dim 64 --state 128 --groups 8 --platform gb300-nvl72",
       {{"--delta", "The gated delta rule", &a::delta}, backward}},
      {"stream",
       "A kernel bounded by the bytes it moves",
       "",
       {{"--bytes", "Read and written", &a::bytes, true}},
       "nvlsim kernel stream --bytes 1e9 --platform gb300-nvl72"},
      {"elementwise",
       "Norms, activations, optimizer and the like, by what they move for an element",
       "",
       {{"--elements", "Elements (values, parameters, or tokens times experts)", &a::elements, true}},
       "nvlsim kernel elementwise --op cross_entropy --elements 1e9 --platform gb300-nvl72",
       {},
       {{"--op", "Kernel", &a::elementwise, elementwise_names()}}},
      {"copy",
       "A copy by one GPU while the others of its VM do the same",
       "",
       {{"--bytes", "Copied", &a::bytes, true}},
       "nvlsim kernel copy --path from_cpu --bytes 1e9 --platform gb300-nvl72",
       {},
       {{"--path", "From where to where", &a::path, {copy_path_names.begin(), copy_path_names.end()}}}}};
  return list;
}

}  // namespace

std::string_view default_stack(std::string_view kernel) {
  return kernel == "scan" ? "megatron-bridge-26.06" : "tensorrt-llm-1.3-kernels";
}

void add_kernel(CLI::App& app, kernel_arguments& a, std::function<void()> chosen) {
  CLI::App* c = app.add_subcommand("kernel", "Time one kernel: rate, bound, power and the formula's numbers");
  c->require_subcommand(1);
  for (const kernel_class& k : classes()) {
    CLI::App* s = c->add_subcommand(k.word, k.help);
    for (const number_option& n : k.numbers) {
      auto* o = s->add_option(n.name, a.*n.member, n.help)->check(number_from(n.least, 1e18));
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
    s->add_option("--stack", a.stack, "Stack whose kernels count")
        ->default_str(std::string(default_stack(k.word)));
    s->add_option("--set", a.sets,
                  "Override a value: --set /gpu/tdp=1000W, or below /kernels in the stack (repeatable)")
        ->type_name("POINTER=VALUE")
        ->allow_extra_args(false);
    s->add_option("--format", a.format, "What to print on stdout")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    s->footer(std::string("example:\n  ") + k.example);
    s->callback([&a, word = k.word, chosen] {
      a.kernel = word;
      chosen();
    });
  }
}

}  // namespace nvlsim::cli
