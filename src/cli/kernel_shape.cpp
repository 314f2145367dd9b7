// Checks the shape of a kernel. [docs/cli.md]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/kernel_options.hpp"
#include "nvlsim/units/precision.hpp"

namespace nvlsim::cli {
namespace {

class shape_checks {
 public:
  shape_checks(const kernel_arguments& a, diagnostics& problems) : a_(a), problems_(problems) {}

  void all() {
    if (a_.kernel == "gemm") gemm();
    if (a_.kernel == "attention" || a_.kernel == "mla-context") prompts();
    if (a_.kernel == "attention" || a_.kernel == "decode") grouped_heads();
    if (a_.kernel == "sparse-attention" && a_.v_dim > a_.qk_dim)
      fail("--v-dim", fmt::format("{} elements per value exceed the {} elements of the vector shared with the key",
                                  a_.v_dim, a_.qk_dim));
    if (a_.kernel == "indexer") at_most("--chosen", a_.chosen, "keys chosen", a_.scored, "scored");
    if (a_.kernel == "moe") experts();
    if (a_.kernel == "scan") scan();
    if (attends()) {
      whole("--heads", a_.heads);
      sixteen_or_eight_bit();
    }
  }

 private:
  bool is(std::string_view kernel) const { return a_.kernel == kernel; }
  bool attends() const {
    static constexpr std::array<std::string_view, 7> classes = {
        "attention", "sparse-attention", "indexer", "decode", "mla-context", "mla", "absorb"};
    return std::find(classes.begin(), classes.end(), a_.kernel) != classes.end();
  }
  void fail(const char* option, std::string what) { problems_.add(option, "", std::move(what)); }

  bool whole(const char* option, double n) {
    if (n == std::floor(n)) return true;
    fail(option, fmt::format("{} is not a whole number", n));
    return false;
  }
  void at_most(const char* option, double n, const char* what, double max, const char* of) {
    if (n > max) fail(option, fmt::format("{} {}, but only {} {}", n, what, max, of));
  }
  void shared_evenly(const char* option, double n, const char* what, double parts, const char* of) {
    if (parts > n) fail(option, fmt::format("{} {}, but only {} {}", parts, of, n, what));
    else if (std::fmod(n, parts) != 0)
      fail(option, fmt::format("{2} {3} are not divisible by {0} {1}", parts, of, n, what));
  }

  void gemm() {
    whole("--groups", a_.groups);
    if (a_.weights.empty()) return;
    const auto p = precision_by_name(a_.format_of_data);
    if (p && *p != precision::bf16 && *p != precision::fp16)
      fail("--precision",
           fmt::format("--weights {} uses 16-bit arithmetic, not {}", a_.weights, a_.format_of_data));
  }
  void prompts() {
    at_most("--queries", a_.queries, "queries", a_.length, "tokens in the sequence");
    if (a_.full && a_.window > 0) fail("--window", "--window cannot be combined with --full");
  }
  void grouped_heads() {
    if (a_.kv_heads > 0 && whole("--kv-heads", a_.kv_heads))
      shared_evenly("--kv-heads", a_.heads, "query heads", a_.kv_heads, "KV heads");
  }
  void experts() {
    if (whole("--topk", a_.topk)) at_most("--topk", a_.topk, "experts per token", a_.experts, "experts");
    if (whole("--experts", a_.experts) && a_.ranks > 0 && whole("--ranks", a_.ranks))
      shared_evenly("--ranks", a_.experts, "experts", a_.ranks, "ranks");
    if (!(a_.ranks > 0)) fail("--ranks", "must be at least 1");
  }
  void scan() {
    if (whole("--heads", a_.heads) && whole("--groups", a_.state_groups))
      shared_evenly("--groups", a_.heads, "heads", a_.state_groups, "groups");
    at_most("--chunk", a_.chunk, "tokens per chunk", a_.tokens, "tokens");
  }
  /// Checks the precision of attention products: 16 bits or FP8. Caches may be narrower.
  void sixteen_or_eight_bit() {
    if (!is("attention") && !is("sparse-attention") && !is("indexer")) return;
    const auto p = precision_by_name(a_.format_of_data);
    if (p && *p != precision::bf16 && *p != precision::fp16 && *p != precision::fp8)
      fail("--precision", fmt::format("attention runs in bf16, fp16 or fp8, not in {}", a_.format_of_data));
  }

  const kernel_arguments& a_;
  diagnostics& problems_;
};

}  // namespace

void check_shape(const kernel_arguments& a, diagnostics& problems) { shape_checks(a, problems).all(); }

}  // namespace nvlsim::cli
