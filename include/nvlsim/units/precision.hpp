// Number formats of operands.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace nvlsim {

enum class precision { fp64, fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, mxfp4, int8, int4 };

inline constexpr std::array all_precisions = {
    precision::fp64,      precision::fp32,  precision::tf32,  precision::bf16,  precision::fp16, precision::fp8,
    precision::fp8_block, precision::mxfp8, precision::nvfp4, precision::mxfp4, precision::int8, precision::int4};

/// The name used in files and results: "bf16", "fp8_block", "nvfp4".
std::string_view name(precision p);

/// The precision of that name, or nothing.
std::optional<precision> precision_by_name(std::string_view name);

/// Bytes per element in memory, including block scales (NVFP4: 4 bits + one FP8 scale per 16 = 0.5625).
double bytes_per_element(precision p);

/// The tensor-core format whose data-sheet peak applies to a GEMM in `p`; block-scaled and per-tensor FP8 share
/// one.
precision peak_format(precision p);

/// Whether tensor cores apply the block scales: for MXFP8, NVFP4 and MXFP4. Software applies those of `fp8_block`.
bool block_scaled(precision p);

}  // namespace nvlsim
