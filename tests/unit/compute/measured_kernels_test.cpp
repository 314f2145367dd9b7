// Errors of the formulas with the shipped parameters against published kernel latencies. The rows are not part
// of the project; without them there is nothing to measure.
#include <algorithm>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <vector>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

struct row {
  std::map<std::string, std::string> text;
  const std::string& of(const std::string& column) const { return text.at(column); }
  double number(const std::string& column) const {
    const std::string& t = of(column);
    double x = 0;
    std::from_chars(t.data(), t.data() + t.size(), x);
    return x;
  }
};

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  return out;
}

void append(std::vector<row>& rows, const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = cells(line);
  while (std::getline(in, line)) {
    const std::vector<std::string> c = cells(line);
    row r;
    for (std::size_t i = 0; i < std::min(c.size(), header.size()); ++i) r.text[header[i]] = c[i];
    rows.push_back(std::move(r));
  }
}

const std::vector<row>& measured() {
  static const std::vector<row> rows = [] {
    std::vector<row> out;
    for (const char* file : {"kernels.csv", "kernels-more.csv"})
      append(out, test::root / "../shared/data" / file);
    return out;
  }();
  return rows;
}

struct machine {
  gpu_spec gpu;
  kernel_profile kernels;
};

const machine& on(const std::string& gpu) {
  static const std::map<std::string, std::string> platforms = {
      {"gb200", "gb200-nvl72"}, {"gb300", "gb300-nvl72"}, {"h100", "nd-h100-v5"}};
  static std::map<std::string, machine> machines;
  auto it = machines.find(gpu);
  if (it == machines.end()) {
    gpu_spec spec = test::shipped_gpu(platforms.at(gpu));
    const kernel_profile& k = kernels_for(test::shipped_kernels(), spec);
    it = machines.emplace(gpu, machine{std::move(spec), k}).first;
  }
  return it->second;
}

/// What a class of kernels must reach: medians measured when the parameters were fitted, plus a margin.
struct expectation {
  const char* gpu;
  const char* dtype;
  std::size_t rows;    // at least
  double median, p90;  // of |model / measured - 1|, in %, at most
};

template <class Cost>
void check(const std::string& table, const std::vector<expectation>& expected, Cost cost) {
  if (measured().empty()) {
    WARN("no measured kernels beside the project: nothing checked");
    return;
  }
  for (const expectation& e : expected) {
    std::vector<double> errors;
    for (const row& r : measured()) {
      if (r.of("table") != table || r.of("system") != e.gpu || r.of("dtype") != e.dtype) continue;
      const double t = cost(on(e.gpu), r).base();
      if (t > 0) errors.push_back(100 * std::abs(t / (r.number("latency_ms") * 1e-3) - 1));
    }
    CAPTURE(table, e.gpu, e.dtype);
    REQUIRE(errors.size() >= e.rows);
    std::sort(errors.begin(), errors.end());
    CHECK(errors[errors.size() / 2] < e.median);
    CHECK(errors[errors.size() * 9 / 10] < e.p90);
  }
}

TEST_CASE("Measured GEMMs are met") {
  const auto cost = [](const machine& m, const row& r) {
    if (r.of("source").find("vidur") != std::string::npos) return seconds{};
    const precision p =
        r.of("dtype") == "bfloat16" ? precision::bf16 : precision_by_name(r.of("dtype")).value();
    return gemm_cost(m.gpu, m.kernels.gemm.at(p), p,
                     {.m = r.number("m"), .n = r.number("n"), .k = r.number("k")})
        .time;
  };
  check("gemm",
        {{"gb300", "bfloat16", 290, 5.4, 12},
         {"gb300", "fp8", 290, 3.6, 9.5},
         {"gb300", "fp8_block", 290, 4.5, 14.5},
         {"gb300", "nvfp4", 290, 6.7, 16.5},
         {"gb200", "bfloat16", 290, 7.3, 16},
         {"gb200", "fp8", 290, 4.9, 12},
         {"gb200", "fp8_block", 290, 4.3, 14},
         {"gb200", "nvfp4", 290, 4.3, 12},
         {"h100", "bfloat16", 140, 4.5, 15.5},
         {"h100", "fp8", 140, 3.1, 10.8},
         {"h100", "fp8_block", 140, 6.1, 22}},
        cost);
}

TEST_CASE("Measured prefill attention is met") {
  const auto cost = [](const machine& m, const row& r) {
    const double s = r.number("seq");
    return attention_forward_cost(m.gpu, m.kernels.attention,
                                  {.batch = r.number("batch"),
                                   .heads = r.number("heads"),
                                   .kv_heads = r.number("kv_heads"),
                                   .qk_dim = r.number("head_dim"),
                                   .v_dim = r.number("head_dim"),
                                   .queries = s,
                                   .pairs = s * s / 2,
                                   .fp8 = r.of("dtype").ends_with("kv fp8")})
        .time;
  };
  check("context_attention",
        {{"gb300", "q bfloat16 kv fp8", 350, 4.1, 12.5},
         {"gb300", "q fp8 kv fp8", 350, 4.8, 11},
         {"gb200", "q bfloat16 kv fp8", 350, 5.7, 13.5},
         {"gb200", "q fp8 kv fp8", 350, 5.5, 13.5},
         {"h100", "q bfloat16 kv bfloat16", 110, 9, 30},
         {"h100", "q bfloat16 kv fp8", 110, 5, 13},
         {"h100", "q fp8 kv fp8", 110, 6.5, 13}},
        cost);
}

// Rows whose cache fits in L2 are left out: the benchmark reads one cache again and again, a server does not.
// So are rows of more than 16 query heads a KV head, which fall into slow kernels.
TEST_CASE("Measured decode attention of caches beyond L2 is met") {
  const auto cost = [](const machine& m, const row& r) {
    const double element = r.of("dtype").ends_with("kv fp8") ? 1 : 2;
    const decode_shape s{.batch = r.number("batch"),
                         .context = r.number("seq"),
                         .heads = r.number("heads"),
                         .kv_heads = r.number("kv_heads"),
                         .head_dim = r.number("head_dim"),
                         .kv_element_bytes = element};
    const double cache = 2 * s.batch * s.kv_heads * s.context * s.head_dim * element;
    if (cache < 0.75 * m.gpu.l2.base() || s.heads > 16 * s.kv_heads) return seconds{};
    return decode_attention_cost(m.gpu, m.kernels.decode, s).time;
  };
  check("generation_attention",
        {{"gb300", "q bfloat16 kv bfloat16", 150, 4.3, 10},
         {"gb300", "q bfloat16 kv fp8", 110, 5, 12},
         {"gb200", "q bfloat16 kv bfloat16", 150, 5.1, 10},
         {"gb200", "q bfloat16 kv fp8", 110, 5.4, 12.5},
         {"h100", "q bfloat16 kv bfloat16", 20, 12.5, 23},
         {"h100", "q bfloat16 kv fp8", 20, 9.2, 22}},
        cost);
}

// Half of L2 of an H100 holds most of its rows, read again and again: hence its wide tail.
TEST_CASE("Measured casts are met") {
  const auto cost = [](const machine& m, const row& r) {
    if (r.of("op") != "scale_matrix" || r.number("latency_ms") <= 0) return seconds{};
    const bytes moved = bytes::from_base(3 * r.number("m") * r.number("k"));  // 16 bit in, 8 bit out
    return stream_cost(m.gpu, m.kernels.stream, moved).time;
  };
  check("quantize", {{"gb300", "fp8", 80, 7, 17}, {"gb200", "fp8", 80, 6.5, 11}, {"h100", "fp8", 80, 5, 40}},
        cost);
}

}  // namespace
}  // namespace nvlsim
