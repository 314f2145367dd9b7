// What must hold of every kernel on every GPU, measured or not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "unit/compute/support.hpp"

namespace nvlsim {
namespace {

constexpr std::array<const char*, 9> machines = {"gb300-nvl72", "gb200-nvl72",      "hgx-b300",
                                                 "hgx-b200",    "nd-h200-v5",       "nd-h100-v5",
                                                 "ndm-a100-v4", "vera-rubin-nvl72", "nd40rs-v2"};

struct on {
  gpu_spec gpu;
  kernel_profile kernels;
  explicit on(const char* name)
      : gpu(test::shipped_gpu(name)), kernels(kernels_for(test::shipped_kernels(), gpu)) {}
};

TEST_CASE("GEMMs never beat the dense peak or the HBM of the data sheet") {
  for (const char* name : machines) {
    const on m(name);
    for (const auto& [format, p] : m.kernels.gemm) {
      const auto peak = m.gpu.dense_peak(format);
      if (!peak) continue;
      for (const double rows : {1.0, 7.0, 100.0, 4096.0, 65536.0})
        for (const double n : {1.0, 129.0, 8192.0, 50257.0}) {
          const kernel_cost c = gemm_cost(m.gpu, p, format, {.m = rows, .n = n, .k = 8192});
          CAPTURE(name, nvlsim::name(format), rows, n);
          CHECK(c.time >= c.flop / *peak);
          CHECK(c.time >= c.moved / m.gpu.hbm_bandwidth);
          CHECK(std::isfinite(c.time.base()));
        }
    }
  }
}

TEST_CASE("Narrower formats are not slower on large GEMMs, but for INT8 of Blackwell Ultra") {
  const gemm_shape s{.m = 16384, .n = 16384, .k = 16384};
  for (const char* name : {"gb300-nvl72", "gb200-nvl72", "hgx-b300", "hgx-b200"}) {
    const on m(name);
    const auto time = [&](precision p) { return gemm_cost(m.gpu, m.kernels.gemm.at(p), p, s).time; };
    CAPTURE(name);
    CHECK(time(precision::fp32) > time(precision::tf32));
    CHECK(time(precision::tf32) > time(precision::bf16));
    CHECK(time(precision::bf16) > time(precision::fp8));
    CHECK(time(precision::fp8) > time(precision::nvfp4));
  }
  const on ultra("gb300-nvl72"), first("gb200-nvl72");
  const auto int8 = [&](const on& m) {
    return gemm_cost(m.gpu, m.kernels.gemm.at(precision::int8), precision::int8, s).time;
  };
  CHECK(int8(ultra) > 20 * int8(first));  // 165 TOPS against 5 POPS
  CHECK_FALSE(measured_gemm(test::shipped_kernels(), ultra.gpu, precision::int8));
  CHECK(measured_gemm(test::shipped_kernels(), ultra.gpu, precision::nvfp4));
}

/// A kernel of one class that grows with `x`; nothing where a GPU has none.
struct growing {
  const char* name;
  precision operands;
  kernel_cost (*cost)(const on&, double x);
};

kernel_cost none() { return {}; }

const std::array<growing, 22> every_class = {{
    {"gemm bf16 in m", precision::bf16,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::bf16);
       return it == m.kernels.gemm.end()
                  ? none()
                  : gemm_cost(m.gpu, it->second, precision::bf16, {.m = x, .n = 5120, .k = 1000});
     }},
    {"gemm bf16 in k", precision::bf16,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::bf16);
       return it == m.kernels.gemm.end()
                  ? none()
                  : gemm_cost(m.gpu, it->second, precision::bf16, {.m = 333, .n = 777, .k = x});
     }},
    {"gemm nvfp4 in n", precision::nvfp4,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::nvfp4);
       return it == m.kernels.gemm.end()
                  ? none()
                  : gemm_cost(m.gpu, it->second, precision::nvfp4, {.m = 100, .n = x, .k = 7168});
     }},
    {"grouped gemm in groups", precision::fp8,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::fp8);
       return it == m.kernels.gemm.end()
                  ? none()
                  : gemm_cost(m.gpu, it->second, precision::fp8, {.m = 50, .n = 700, .k = 900, .groups = x});
     }},
    {"int4 weights in m", precision::bf16,
     [](const on& m, double x) {
       const auto it = m.kernels.weight_only.find(precision::int4);
       return it == m.kernels.weight_only.end()
                  ? none()
                  : gemm_cost(m.gpu, it->second, precision::bf16,
                              {.m = x, .n = 4096, .k = 4096, .weight_element_bytes = 0.5});
     }},
    {"attention in length", precision::bf16,
     [](const on& m, double x) {
       return attention_forward_cost(
           m.gpu, m.kernels,
           {.batch = 2, .heads = 7, .kv_heads = 1, .qk_dim = 128, .v_dim = 128, .queries = x, .pairs = x * x / 2});
     }},
    {"attention in sequences", precision::bf16,
     [](const on& m, double x) {
       return attention_forward_cost(m.gpu, m.kernels,
                                     {.batch = x,
                                      .heads = 7,
                                      .kv_heads = 1,
                                      .qk_dim = 128,
                                      .v_dim = 128,
                                      .queries = 129,
                                      .pairs = 129.0 * 129 / 2});
     }},
    {"attention of fp8 in heads", precision::fp8,
     [](const on& m, double x) {
       if (!m.gpu.dense_peak(precision::fp8)) return none();
       return attention_forward_cost(m.gpu, m.kernels,
                                     {.batch = 1,
                                      .heads = x,
                                      .kv_heads = 1,
                                      .qk_dim = 64,
                                      .v_dim = 64,
                                      .queries = 1000,
                                      .pairs = 500000,
                                      .fp8 = true});
     }},
    {"attention backward", precision::bf16,
     [](const on& m, double x) {
       return attention_backward_cost(m.gpu, m.kernels.attention,
                                      {.batch = 1,
                                       .heads = 16,
                                       .kv_heads = 2,
                                       .qk_dim = 128,
                                       .v_dim = 128,
                                       .queries = x,
                                       .pairs = x * x / 2});
     }},
    {"sparse attention in keys", precision::bf16,
     [](const on& m, double x) {
       return sparse_attention_forward_cost(m.gpu, m.kernels.attention,
                                            {.tokens = 999, .heads = 65, .keys = x, .qk_dim = 576, .v_dim = 512});
     }},
    {"indexer in scored keys", precision::bf16,
     [](const on& m, double x) {
       return indexer_forward_cost(m.gpu, m.kernels.attention,
                                   {.tokens = 1000, .heads = 64, .dim = 128, .scored = x, .chosen = x / 2});
     }},
    {"decode in sequences", precision::bf16,
     [](const on& m, double x) {
       return decode_attention_cost(m.gpu, m.kernels,
                                    {.batch = x, .context = 1000, .heads = 16, .kv_heads = 2, .head_dim = 128});
     }},
    {"decode of one head in sequences", precision::bf16,
     [](const on& m, double x) {
       return decode_attention_cost(
           m.gpu, m.kernels,
           {.batch = x, .context = 77, .heads = 16, .kv_heads = 16, .head_dim = 64, .kv_element_bytes = 1});
     }},
    {"latent decode in sequences", precision::bf16,
     [](const on& m, double x) {
       const auto it = m.kernels.mla_decode.find(precision::bf16);
       return it == m.kernels.mla_decode.end()
                  ? none()
                  : mla_decode_cost(m.gpu, it->second, {.batch = x, .context = 999, .heads = 128});
     }},
    {"experts in tokens", precision::fp8,
     [](const on& m, double x) {
       const auto it = m.kernels.moe.find("cutlass_fp8_block");
       if (it == m.kernels.moe.end()) return none();
       return moe_cost(m.gpu, it->second,
                       {.tokens = x,
                        .local_experts = 8,
                        .hidden = 7168,
                        .inter = 2048,
                        .load = balanced_load({.tokens = x, .topk = 8, .experts = 64, .ranks = 8})});
     }},
    {"skewed experts in tokens", precision::fp8,
     [](const on& m, double x) {
       const auto it = m.kernels.moe.find("deepgemm_fp8_block");
       if (it == m.kernels.moe.end()) return none();
       return moe_cost(m.gpu, it->second,
                       {.tokens = x,
                        .local_experts = 8,
                        .hidden = 7168,
                        .inter = 2048,
                        .load = skewed_load({.tokens = x, .topk = 8, .experts = 64, .ranks = 8}, 1.2)});
     }},
    {"scan in tokens", precision::bf16,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::bf16);
       if (it == m.kernels.gemm.end()) return none();
       return scan_forward_cost(m.gpu, it->second.tensor_rate, 0, m.kernels.stream,
                                {.tokens = x, .heads = 128, .head_dim = 64, .state = 128, .groups = 8});
     }},
    {"delta scan in heads", precision::bf16,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::bf16);
       if (it == m.kernels.gemm.end()) return none();
       return scan_backward_cost(
           m.gpu, it->second.tensor_rate, 0, m.kernels.stream,
           {.tokens = 1000, .heads = x, .head_dim = 128, .state = 128, .groups = 8, .chunk = 64, .delta = true});
     }},
    {"stream in bytes", precision::bf16,
     [](const on& m, double x) { return stream_cost(m.gpu, m.kernels.stream, bytes::from_base(x * 1e4)); }},
    {"amax in bytes", precision::bf16,
     [](const on& m, double x) {
       return m.kernels.amax ? stream_cost(m.gpu, *m.kernels.amax, bytes::from_base(x * 1e4)) : none();
     }},
    {"int8 gemm in m", precision::int8,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::int8);
       return it == m.kernels.gemm.end()
                  ? none()
                  : gemm_cost(m.gpu, it->second, precision::int8, {.m = x, .n = 4097, .k = 4095});
     }},
    {"tf32 gemm in m", precision::tf32,
     [](const on& m, double x) {
       const auto it = m.kernels.gemm.find(precision::tf32);
       return it == m.kernels.gemm.end()
                  ? none()
                  : gemm_cost(m.gpu, it->second, precision::tf32, {.m = x, .n = 100, .k = 33});
     }},
}};

TEST_CASE("Kernels of every class grow, stay above the data sheet's roofline and take any size") {
  for (const char* name : machines) {
    const on m(name);
    for (const growing& k : every_class) {
      CAPTURE(name, k.name);
      CHECK(k.cost(m, 0).time.base() == 0);
      const bool there = k.cost(m, 1).time.base() > 0;
      double before = 0;
      for (const double x :
           {1.0, 2.0, 3.0, 7.0, 16.0, 33.0, 100.0, 129.0, 257.0, 1000.0, 2049.0, 10007.0, 65536.0, 1e6}) {
        const kernel_cost c = k.cost(m, x);
        CAPTURE(x);
        CHECK(std::isfinite(c.time.base()));
        CHECK((c.time.base() > 0) == there);
        // A taller tile may fill better: steps down of a few percent are the kernel's.
        CHECK(c.time.base() >=
              before * (std::string_view(k.name).find("experts") == std::string_view::npos ? 1 - 1e-9 : 0.95));
        CHECK(c.launch <= c.time);
        CHECK(c.time.base() >= c.moved.base() / m.gpu.hbm_bandwidth.base());
        if (const auto peak = m.gpu.dense_peak(k.operands)) CHECK(c.time >= c.flop / *peak);
        const watts power = kernel_power(m.gpu, k.operands, c);
        CHECK(power >= m.gpu.idle_power);
        // Memory traffic costs what it costs; all else gives way at the cap.
        const watts traffic = m.gpu.idle_power + m.gpu.hbm_energy * (c.moved / c.time);
        CHECK((power <= m.gpu.cap() || power == traffic));
        before = c.time.base();
      }
    }
  }
}

TEST_CASE("A later make of an unmeasured GPU's silicon is faster than its power alone") {
  gpu_spec plain = test::gb200();
  plain.name = "gb250";
  gpu_spec ultra = plain;
  ultra.ultra = true;
  const auto rate = [](const gpu_spec& g) {
    return kernels_for(test::shipped_kernels(), g).gemm.at(precision::bf16).tensor_rate;
  };
  CHECK(rate(ultra) / rate(plain) == Approx(test::blackwell().ultra_factor));
  CHECK(test::blackwell().ultra_factor > 1);
}

TEST_CASE("Busy attention draws more than its products and bytes") {
  const on m("gb200-nvl72");
  const attention_shape s{.batch = 1,
                          .heads = 64,
                          .kv_heads = 8,
                          .qk_dim = 128,
                          .v_dim = 128,
                          .queries = 8192,
                          .pairs = 8192.0 * 4096};
  const kernel_cost c = attention_forward_cost(m.gpu, m.kernels, s);
  kernel_cost quiet = c;
  quiet.activity = 0;
  CHECK(kernel_power(m.gpu, precision::bf16, c) > kernel_power(m.gpu, precision::bf16, quiet));
  CHECK(c.activity > 0);
  CHECK(c.activity <= m.kernels.attention.power_share);
}

TEST_CASE("The spread of a family falls back from its GPU to its architecture to its class") {
  stack s;
  s.kernel_spreads = {{"gemm/bf16", "gb200", "blackwell", 100, 0.9, 1, 1.1},
                      {"gemm/bf16", "gb300", "blackwell", 100, 0.8, 1, 1.3},
                      {"gemm/fp8", "h100", "hopper", 100, 0.95, 1, 1.2},
                      {"moe/a", "gb200", "blackwell", 50, 0.5, 1, 2}};
  gpu_spec g = test::gb200();
  CHECK(spread_of(s, g, "gemm/bf16")->high == 1.1);
  g.name = "b100";
  CHECK(spread_of(s, g, "gemm/bf16")->high == 1.3);  // the wider of its architecture
  CHECK(spread_of(s, g, "gemm/nvfp4")->high == 1.3);
  CHECK(spread_of(s, g, "gemm/fp8")->gpu == "h100");
  CHECK(spread_of(s, g, "decode/fp8") == nullptr);
}

TEST_CASE("A GPU that was never measured gets the rates of its architecture by its power") {
  gpu_spec other = test::gb200();
  other.name = "gb250";
  other.tdp = other.idle_power + (other.tdp - other.idle_power) * 1.21;
  const kernel_profile k = kernels_for(test::shipped_kernels(), other);
  const gemm_params& p = k.gemm.at(precision::bf16);
  CHECK(p.tensor_rate.base() == Approx(1.1 * test::blackwell().gemm.at(precision::bf16).tensor_rate.base()));
  CHECK(p.launch == test::blackwell().gemm.at(precision::bf16).launch);
  CHECK(kernels_note(test::shipped_kernels(), other).find("no kernel was measured on gb250") != std::string::npos);
  CHECK(kernels_note(test::shipped_kernels(), test::gb200()).empty());
}

constexpr std::array<const char*, 7> measured_machines = {"gb300-nvl72", "gb200-nvl72", "hgx-b300",   "hgx-b200",
                                                          "nd-h200-v5",  "nd-h100-v5",  "ndm-a100-v4"};

flop_rate large_gemm(const gpu_spec& gpu, precision p) {
  return kernels_for(test::shipped_kernels(), gpu).gemm.at(p).tensor_rate;
}

void scale_peaks(gpu_spec& gpu, double factor) {
  for (auto& peak : gpu.peaks)
    if (peak) peak->dense *= factor;
}

TEST_CASE("Measured rates are those of the GPU as its platform ships it") {
  for (const char* name : measured_machines) {
    const gpu_spec gpu = test::shipped_gpu(name);
    const kernel_profile& entry = test::shipped_kernels().kernels.at(gpu.name);
    CAPTURE(name);
    REQUIRE(entry.measured_on);
    CHECK(entry.measured_on->dynamic_power == gpu.tdp - gpu.idle_power);
    CHECK(entry.measured_on->sm_count == gpu.sm_count);
    for (const auto& [format, peak] : entry.measured_on->peaks) CHECK(gpu.dense_peak(format) == peak);
    for (const auto& [format, p] : entry.gemm) CHECK(large_gemm(gpu, format) == p.tensor_rate);
    CHECK(kernels_note(test::shipped_kernels(), gpu).empty());
  }
}

TEST_CASE("Rates follow peaks that are set by hand, so that no share of a peak grows") {
  for (const char* name : measured_machines)
    for (const double factor : {0.25, 0.9, 3.0}) {
      const gpu_spec before = test::shipped_gpu(name);
      gpu_spec after = before;
      scale_peaks(after, factor);
      CAPTURE(name, factor);
      const kernel_profile old = kernels_for(test::shipped_kernels(), before),
                           now = kernels_for(test::shipped_kernels(), after);
      for (const auto& [format, p] : old.gemm) {
        if (!before.dense_peak(format)) continue;
        CHECK(now.gemm.at(format).tensor_rate / p.tensor_rate == Approx(factor));
      }
      for (const auto& [family, p] : old.moe)
        CHECK(now.moe.at(family).tensor_rate / p.tensor_rate == Approx(factor));
      CHECK(now.attention.tensor_rate / old.attention.tensor_rate == Approx(factor));
      CHECK(kernels_note(test::shipped_kernels(), after).find("in proportion") != std::string::npos);
    }
}

TEST_CASE("Rates follow power that is set by hand, and none passes its dense peak for it") {
  for (const char* name : measured_machines) {
    const gpu_spec before = test::shipped_gpu(name);
    const auto with = [&](double factor) {
      gpu_spec g = before;
      g.tdp = g.idle_power + (g.tdp - g.idle_power) * factor;
      return g;
    };
    const kernel_profile old = kernels_for(test::shipped_kernels(), before);
    CAPTURE(name);
    const auto lower = kernels_for(test::shipped_kernels(), with(0.81)),
               higher = kernels_for(test::shipped_kernels(), with(100));
    for (const auto& [format, p] : old.gemm) {
      const auto peak = before.dense_peak(format);
      if (!peak) continue;
      CHECK(lower.gemm.at(format).tensor_rate / p.tensor_rate == Approx(0.9));
      CHECK(higher.gemm.at(format).tensor_rate <= *peak * (1 + 1e-12));
      CHECK(higher.gemm.at(format).tensor_rate > p.tensor_rate);
    }
    CHECK(kernels_note(test::shipped_kernels(), with(0.81)).find("idle power") != std::string::npos);
    CHECK(kernels_note(test::shipped_kernels(), with(1)).empty());
  }
}

TEST_CASE("A cap at the measured power takes back whatever power is set by hand") {
  for (const char* name : measured_machines)
    for (const double factor : {0.9, 1.0, 1.5, 100.0}) {
      const gpu_spec before = test::shipped_gpu(name);
      gpu_spec after = before;
      after.tdp = before.idle_power + (before.tdp - before.idle_power) * factor;
      after.power_cap = before.tdp;
      CAPTURE(name, factor);
      for (const auto& [format, p] : kernels_for(test::shipped_kernels(), before).gemm)
        CHECK(large_gemm(after, format) / p.tensor_rate ==
              Approx(std::pow(std::min(factor, 1.0),
                              test::shipped_kernels().kernels.at(before.name).power_exponent)));
    }
}

TEST_CASE("SMs that are set by hand are said to leave rates where they are") {
  gpu_spec g = test::gb200();
  g.sm_count = 74;
  CHECK(large_gemm(g, precision::bf16) == large_gemm(test::gb200(), precision::bf16));
  CHECK(kernels_note(test::shipped_kernels(), g).find("74 SMs instead of 148") != std::string::npos);
}

TEST_CASE("An entry that stands on another's rates is measured on nothing, whatever its name") {
  const gpu_spec rubin = test::shipped_gpu("vera-rubin-nvl72"), origin = test::shipped_gpu("gb300-nvl72");
  for (const precision p : {precision::bf16, precision::fp8, precision::nvfp4})
    CHECK(large_gemm(rubin, p) / large_gemm(origin, p) == Approx(*rubin.dense_peak(p) / *origin.dense_peak(p)));
  CHECK(kernels_note(test::shipped_kernels(), rubin).find("no kernel was measured on rubin") != std::string::npos);
}

TEST_CASE("A GPU that was never measured is no faster than a like one with a better data sheet") {
  const gpu_spec nvl = test::shipped_gpu("h200-nvl"), sxm = test::shipped_gpu("nd-h200-v5");
  for (const precision p : {precision::bf16, precision::fp8}) CHECK(large_gemm(nvl, p) < large_gemm(sxm, p));
  // Power takes none beyond the share of a peak that the best measured one reaches.
  for (const char* name : {"h200-nvl", "gh200", "h800"}) {
    const gpu_spec gpu = test::shipped_gpu(name);
    for (const precision p : {precision::bf16, precision::fp8, precision::fp8_block}) {
      double best = 0;
      for (const char* other : measured_machines) {
        const gpu_spec m = test::shipped_gpu(other);
        if (kernels_for(test::shipped_kernels(), m).gemm.contains(p) && m.dense_peak(p))
          best = std::max(best, large_gemm(m, p) / *m.dense_peak(p));
      }
      CAPTURE(name, nvlsim::name(p));
      CHECK(large_gemm(gpu, p) / *gpu.dense_peak(p) <= best * (1 + 1e-12));
    }
  }
}

TEST_CASE("Sparse weights halve their bytes and run at the sparse peak's share") {
  const on m("gb200-nvl72");
  const gemm_params& p = m.kernels.gemm.at(precision::bf16);
  const auto cost = [&](double rows, bool sparse) {
    return gemm_cost(m.gpu, p, precision::bf16, {.m = rows, .n = 16384, .k = 16384, .sparse = sparse});
  };
  CHECK(cost(1, false).moved.base() - cost(1, true).moved.base() == Approx(16384.0 * 16384 * (2 - 1.125)));
  const double gain = cost(16384, false).time / cost(16384, true).time;
  CHECK(gain > 1.5);
  CHECK(gain < 2);
  CHECK(cost(16384, true).flop == cost(16384, false).flop);
}

TEST_CASE("Elementwise kernels move what they read and write") {
  for (const elementwise_kernel& e : elementwise_kernels()) {
    CAPTURE(e.name);
    CHECK(e.bytes >= 2);
    CHECK(std::count_if(elementwise_kernels().begin(), elementwise_kernels().end(),
                        [&](const elementwise_kernel& x) { return x.name == e.name; }) == 1);
  }
}

TEST_CASE("Copies take the rate of their path") {
  diagnostics problems;
  config::document doc =
      config::load_named(test::root / "platforms", {"platform", "gb300-nvl72", {"test", "", {}, {}}}, problems);
  const platform p = read_platform(doc, "gb300-nvl72", problems);
  const stream_params& s = test::blackwell().stream;
  const auto size = bytes::from_base(1e12);
  const auto time = [&](copy_path path) { return copy_cost(p, s, path, size).time.base(); };
  CHECK(time(copy_path::from_cpu) == Approx(1e12 / p.gpu.c2c.base()).epsilon(1e-4));
  CHECK(time(copy_path::nvme_read) == Approx(1e12 * p.vm.gpus / p.vm.nvme_read.base()).epsilon(1e-4));
  CHECK(time(copy_path::nvme_write) > time(copy_path::nvme_read));
  CHECK(time(copy_path::hbm) < time(copy_path::from_cpu));
  CHECK(time(copy_path::hbm) >= 2e12 / p.gpu.hbm_bandwidth.base());
  CHECK(copy_cost(p, s, copy_path::hbm, {}).time.base() == 0);
}

}  // namespace
}  // namespace nvlsim
