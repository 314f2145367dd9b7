#include "nvlsim/units/precision.hpp"

namespace nvlsim {
namespace {

struct precision_entry {
  precision p;
  std::string_view name;
  double bytes;
  precision peak;
};

// Block-scaled formats have one scale per block: an FP32 per 128 FP8 elements (ignored here, at most 3 %), one
// byte per 32 elements of MXFP8 and MXFP4, and one byte per 16 elements of NVFP4.
constexpr std::array<precision_entry, 12> entries = {{
    {precision::fp64, "fp64", 8, precision::fp64},
    {precision::fp32, "fp32", 4, precision::fp32},
    {precision::tf32, "tf32", 4, precision::tf32},
    {precision::bf16, "bf16", 2, precision::bf16},
    {precision::fp16, "fp16", 2, precision::bf16},
    {precision::fp8, "fp8", 1, precision::fp8},
    {precision::fp8_block, "fp8_block", 1, precision::fp8},
    {precision::mxfp8, "mxfp8", 1 + 1.0 / 32, precision::fp8},
    {precision::nvfp4, "nvfp4", 0.5 + 1.0 / 16, precision::nvfp4},
    {precision::mxfp4, "mxfp4", 0.5 + 1.0 / 32, precision::nvfp4},
    {precision::int8, "int8", 1, precision::int8},
    {precision::int4, "int4", 0.5, precision::int8},
}};

constexpr const precision_entry& of(precision p) { return entries[static_cast<std::size_t>(p)]; }

}  // namespace

std::string_view name(precision p) { return of(p).name; }
double bytes_per_element(precision p) { return of(p).bytes; }
precision peak_format(precision p) { return of(p).peak; }
bool block_scaled(precision p) { return p == precision::mxfp8 || p == precision::nvfp4 || p == precision::mxfp4; }

std::optional<precision> precision_by_name(std::string_view wanted) {
  for (const precision_entry& e : entries)
    if (e.name == wanted) return e.p;
  return std::nullopt;
}

}  // namespace nvlsim
