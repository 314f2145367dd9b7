// The options of nvlsim kernel, a subcommand for each class.
#include "cli/kernel_options.hpp"

#include "nvlsim/compute.hpp"

namespace nvlsim::cli {
namespace {

struct number_option {
  const char *name, *help;
  double kernel_arguments::*member;
  bool required;
};

struct kernel_class {
  const char *word, *help, *format_help;
  std::vector<number_option> numbers;
  const char* example;
};

const std::vector<kernel_class>& classes() {
  using a = kernel_arguments;
  static const std::vector<kernel_class> list = {
      {"gemm",
       "C[m,n] = A[m,k] x W[k,n]",
       "Operands: bf16, fp8, fp8_block, nvfp4 ...",
       {{"--m", "Rows (tokens)", &a::m, true},
        {"--n", "Columns (outputs)", &a::n, true},
        {"--k", "Depth (inputs)", &a::k, true},
        {"--groups", "Products in one launch", &a::groups, false}},
       "nvlsim kernel gemm --m 8192 --n 8192 --k 8192 --precision fp8 --platform gb300-nvl72"},
      {"attention",
       "Causal attention of prompts",
       "fp8 where the cache is",
       {{"--batch", "Sequences", &a::batch, false},
        {"--heads", "Query heads on this GPU", &a::heads, true},
        {"--kv-heads", "KV heads on this GPU (default: as many)", &a::kv_heads, false},
        {"--head-dim", "Head size", &a::head_dim, false},
        {"--seq", "Tokens of a sequence", &a::length, true},
        {"--queries", "Last tokens of it that are computed (default: all)", &a::queries, false}},
       "nvlsim kernel attention --heads 64 --kv-heads 8 --seq 8192 --platform gb300-nvl72"},
      {"decode",
       "One token of each sequence against its cache",
       "Of the cache",
       {{"--batch", "Sequences", &a::batch, false},
        {"--heads", "Query heads on this GPU", &a::heads, true},
        {"--kv-heads", "KV heads on this GPU (default: as many)", &a::kv_heads, false},
        {"--head-dim", "Head size", &a::head_dim, false},
        {"--context", "Cached tokens of a sequence", &a::length, true}},
       "nvlsim kernel decode --batch 64 --heads 64 --kv-heads 8 --context 8192 --precision fp8 --platform "
       "gb300-nvl72"},
      {"mla",
       "The same with a latent cache that all heads share",
       "Of the cache",
       {{"--batch", "Sequences", &a::batch, false},
        {"--heads", "Query heads on this GPU", &a::heads, true},
        {"--context", "Cached tokens of a sequence", &a::length, true}},
       "nvlsim kernel mla --batch 64 --heads 128 --context 8192 --precision fp8 --platform gb300-nvl72"},
      {"moe",
       "The experts of one rank, after dispatch",
       "",
       {{"--tokens", "Tokens presented to the rank", &a::tokens, true},
        {"--experts", "Experts of all ranks", &a::experts, true},
        {"--topk", "Experts of a token", &a::topk, true},
        {"--hidden", "Hidden size", &a::hidden, true},
        {"--inter", "Inner size of an expert on this GPU", &a::inter, true},
        {"--ranks", "Ranks that share the experts", &a::ranks, false},
        {"--skew", "Exponent of a power law of popularity (default: balanced)", &a::skew, false}},
       "nvlsim kernel moe --family cutlass_nvfp4 --tokens 4096 --experts 256 --topk 8 --hidden 7168 --inter 2048 "
       "--ranks 32 "
       "--platform gb300-nvl72"},
      {"stream",
       "A kernel bounded by the bytes it moves",
       "",
       {{"--bytes", "Read and written", &a::bytes, true}},
       "nvlsim kernel stream --bytes 1e9 --platform gb300-nvl72"},
      {"elementwise",
       "Norms, activations, optimizer and the like, by what they move for an element",
       "",
       {{"--elements", "Elements (values, parameters, or tokens times experts)", &a::elements, true}},
       "nvlsim kernel elementwise --op cross_entropy --elements 1e9 --platform gb300-nvl72"},
      {"copy",
       "A copy by one GPU while the others of its VM do the same",
       "",
       {{"--bytes", "Copied", &a::bytes, true}},
       "nvlsim kernel copy --path from_cpu --bytes 1e9 --platform gb300-nvl72"}};
  return list;
}

}  // namespace

void add_kernel(CLI::App& app, kernel_arguments& a, std::function<void()> chosen) {
  CLI::App* c = app.add_subcommand("kernel", "Time one kernel: rate, bound, power and the formula's numbers");
  c->require_subcommand(1);
  for (const kernel_class& k : classes()) {
    CLI::App* s = c->add_subcommand(k.word, k.help);
    for (const number_option& n : k.numbers) {
      auto* o = s->add_option(n.name, a.*n.member, n.help)->check(CLI::Range(0.0, 1e18));
      if (n.required) o->required();
    }
    if (*k.format_help) s->add_option("--precision", a.format_of_data, k.format_help)->capture_default_str();
    if (std::string_view(k.word) == "moe") {
      s->add_option("--family", a.family, "Kernels: deepgemm_fp8_block, cutlass_nvfp4, mxfp4_bf16 ...")
          ->capture_default_str();
      s->add_flag("--ungated", a.ungated, "One up projection instead of two");
    }
    if (std::string_view(k.word) == "gemm") s->add_flag("--sparse", a.sparse, "Weights with 2:4 structured sparsity");
    if (std::string_view(k.word) == "elementwise") {
      std::vector<std::string> names;
      for (const elementwise_kernel& e : elementwise_kernels()) names.emplace_back(e.name);
      s->add_option("--op", a.elementwise, "Kernel")->check(CLI::IsMember(names))->capture_default_str();
    }
    if (std::string_view(k.word) == "copy")
      s->add_option("--path", a.path, "From where to where")
          ->check(CLI::IsMember(std::vector<std::string>(copy_path_names.begin(), copy_path_names.end())))
          ->capture_default_str();
    s->add_option("--platform", a.platform, "Platform")->required();
    s->add_option("--stack", a.stack, "Stack whose kernels count")->capture_default_str();
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
