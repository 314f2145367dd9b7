#include "nvlsim/units/precision.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string_view>

using namespace nvlsim;

TEST_CASE("Precision is found by its own name") {
  std::set<std::string_view> names;
  for (const precision p : all_precisions) {
    CHECK(precision_by_name(name(p)) == p);
    names.insert(name(p));
  }
  CHECK(names.size() == all_precisions.size());
  CHECK_FALSE(precision_by_name("fp7"));
  CHECK_FALSE(precision_by_name("BF16"));
  CHECK_FALSE(precision_by_name(""));
}

TEST_CASE("Precision counts its block scales") {
  CHECK(bytes_per_element(precision::bf16) == 2);
  CHECK(bytes_per_element(precision::nvfp4) == 9.0 / 16);   // 16 elements: 8 bytes and an FP8 scale
  CHECK(bytes_per_element(precision::mxfp8) == 33.0 / 32);  // 32 elements and one byte
  CHECK(bytes_per_element(precision::mxfp4) == 17.0 / 32);
  for (const precision p : all_precisions) {
    CHECK(bytes_per_element(p) >= 0.5);
    CHECK(bytes_per_element(p) <= 8);
  }
}

TEST_CASE("Block-scaled precision takes more than its bits, and software's blocks are not counted") {
  for (const precision p : all_precisions) {
    const double bits = 8 * bytes_per_element(p);
    CHECK(block_scaled(p) == (bits != 4 && bits != 8 && bits != 16 && bits != 32 && bits != 64));
  }
}

TEST_CASE("Precision is bounded by the peak of a format that is its own peak") {
  for (const precision p : all_precisions) CHECK(peak_format(peak_format(p)) == peak_format(p));
  CHECK(peak_format(precision::fp8_block) == precision::fp8);
  CHECK(peak_format(precision::fp16) == precision::bf16);
  CHECK(peak_format(precision::mxfp4) == precision::nvfp4);
}
