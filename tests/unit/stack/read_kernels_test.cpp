#include <catch2/catch.hpp>

#include "nvlsim/config/document.hpp"
#include "stack/read_parts.hpp"

namespace nvlsim {
namespace {

struct kernels_read {
  std::map<std::string, kernel_profile> kernels;
  std::vector<std::string> problems;
  std::vector<config::provenance> sources;
};

kernels_read read_tables(const std::string& kernels) {
  diagnostics problems;
  config::document doc = config::parse("{\"kernels\": " + kernels + "}", {"stack", "s.json"}, problems);
  problems.throw_if_any();
  config::reader r(doc, problems);
  r.require_sources();
  kernels_read out{read_kernels(r), {}, {}};
  for (const problem& p : problems.sorted()) out.problems.push_back(p.text());
  out.sources = doc.sources;
  return out;
}

const std::string bf16 = R"({"tensor_rate": "1620 TFLOPS", "step_time": "1.17 ns", "fill_depth": 1.09,
  "hbm_share": 0.745, "launch": "1.97 us", "cast_passes": 0, "output_bytes": 0})";
const std::string whole = R"("kind": "derived", "source": "fit", "gemm": {"bf16": )" + bf16 + R"(},
  "attention": {"tensor_rate": "1.6 PFLOPS", "exponential_share": 0.7, "item_time": "1.9 us", "launch": "13 us",
                "io_passes": 3.4, "backward_efficiency": 0.6, "fp8_speedup": 2},
  "decode": {"hbm_share": 0.86, "launch": "9.9 us", "item_time": "1.6 us", "split_time": "1 us", "chunk": 675},
  "stream": {"hbm_share": 0.73, "launch": "1.9 us"}, "power_exponent": 0.5)";

TEST_CASE("Kernel parameters are read with their units and sources") {
  const kernels_read r = read_tables("{\"blackwell\": {" + whole + "}}");
  CHECK(r.problems == std::vector<std::string>{});
  const kernel_profile& k = r.kernels.at("blackwell");
  CHECK(k.gpu == "blackwell");
  CHECK(k.gemm.at(precision::bf16).tensor_rate.base() == Approx(1.62e15));
  CHECK(k.gemm.at(precision::bf16).step_time.base() == Approx(1.17e-9));
  CHECK_FALSE(k.gemm.at(precision::bf16).split_time);
  CHECK(k.attention.item_rows == 128);
  CHECK(k.decode.chunk == 675);
  CHECK(k.stream.launch.base() == Approx(1.9e-6));
  CHECK(k.power_exponent == 0.5);
  CHECK(r.sources.size() == 22);
  CHECK(r.sources.front().source == "fit");
}

TEST_CASE("An entry like another one keeps what it does not say") {
  const kernels_read r = read_tables(R"({"gb300": {"like": "gb200", "gemm": {"kind": "measured", "source": "mine",
      "bf16": {"tensor_rate": "1900 TFLOPS"}, "fp16": )" +
                                     bf16 + R"(}},
      "gb200": {"like": "blackwell", "decode": {"kind": "assumed", "source": "mine", "chunk": 10}},
      "blackwell": {)" + whole + "}}");
  CHECK(r.problems == std::vector<std::string>{});
  const kernel_profile& k = r.kernels.at("gb300");
  CHECK(k.gpu == "gb300");
  CHECK(k.gemm.at(precision::bf16).tensor_rate.base() == Approx(1.9e15));
  CHECK(k.gemm.at(precision::bf16).launch.base() == Approx(1.97e-6));
  CHECK(k.gemm.contains(precision::fp16));
  CHECK(k.decode.chunk == 10);
  CHECK(k.decode.hbm_share == 0.86);
  CHECK_FALSE(r.kernels.at("gb200").gemm.contains(precision::fp16));
  CHECK(r.kernels.at("blackwell").decode.chunk == 675);
}

TEST_CASE("Entries that are like each other in a circle or like nothing are problems") {
  const kernels_read r = read_tables(R"({"a": {"like": "b"}, "b": {"like": "a"}, "gb200": {"like": "blackwel"},
                             "blackwell": {)" +
                                     whole + "}}");
  CHECK(r.problems ==
        std::vector<std::string>{
            "s.json#/kernels/b/like: cycle: a -> b -> a",
            "s.json#/kernels/gb200/like: no entry \"blackwel\" in \"kernels\"; did you mean \"blackwell\"?"});
}

TEST_CASE("Every unknown, missing and wrong member is named once") {
  const kernels_read r = read_tables(R"({"blackwell": {"kind": "derived", "source": "fit",
      "gemm": {"bf16": {"tensor_rate": "1620 GB/s", "step_time": "1 ns", "fill_dept": 1, "hbm_share": 1.5,
                        "launch": "1 us", "cast_passes": 0, "output_bytes": 0}, "bf61": {}},
      "attention": {"tensor_rate": "1.6 PFLOPS", "exponential_share": 0.7, "item_time": "1.9 us", "launch": "13 us",
                    "io_passes": 3.4, "backward_efficiency": 0.6, "fp8_speedup": 2},
      "stream": {"hbm_share": 0.73, "launch": "1.9 us"}, "power_exponent": 0.5},
      "gb300": {"like": "blackwell", "streem": {}}})");
  REQUIRE(r.problems.size() == 7);
  CHECK(r.problems[0] == "s.json#/kernels/blackwell: required member \"decode\" is missing");
  CHECK(r.problems[1] == "s.json#/kernels/blackwell/gemm/bf16: required member \"fill_depth\" is missing");
  CHECK(r.problems[2] ==
        "s.json#/kernels/blackwell/gemm/bf16/fill_dept: unknown member; did you mean \"fill_depth\"?");
  CHECK(r.problems[3] == "s.json#/kernels/blackwell/gemm/bf16/hbm_share: 1.5 is more than 1");
  CHECK(r.problems[4].starts_with("s.json#/kernels/blackwell/gemm/bf16/tensor_rate: "));
  CHECK(r.problems[5] == "s.json#/kernels/blackwell/gemm/bf61: unknown number format; did you mean \"bf16\"?");
  CHECK(r.problems[6] == "s.json#/kernels/gb300/streem: unknown member; did you mean \"stream\"?");
}

TEST_CASE("A new precision of an entry like another must be complete") {
  const kernels_read r = read_tables(R"({"blackwell": {)" + whole + R"(}, "gb300": {"like": "blackwell",
      "gemm": {"kind": "derived", "source": "fit", "nvfp4": {"tensor_rate": "5 PFLOPS", "step_time": "1 ns",
               "fill_depth": 0, "hbm_share": 0.6, "cast_passes": 1, "output_bytes": 0}}}})");
  CHECK(r.problems ==
        std::vector<std::string>{"s.json#/kernels/gb300/gemm/nvfp4: required member \"launch\" is missing"});
}

TEST_CASE("A stack without kernels has none") {
  diagnostics problems;
  config::document doc = config::parse("{}", {"stack", "s.json"}, problems);
  config::reader r(doc, problems);
  CHECK(read_kernels(r).empty());
  CHECK(problems.empty());
}

}  // namespace
}  // namespace nvlsim
