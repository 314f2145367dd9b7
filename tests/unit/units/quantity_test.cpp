#include "nvlsim/units/units.hpp"

#include <catch2/catch.hpp>

#include <type_traits>

using namespace nvlsim;

// The types of results are checked by the compiler; what must not compile is in tests/compile_fail.
static_assert(std::is_same_v<decltype(1.0_GB / 900.0_GBps), seconds>);
static_assert(std::is_same_v<decltype(900.0_GBps * 2.0_s), bytes>);
static_assert(std::is_same_v<decltype(flops() / flop_rate()), seconds>);
static_assert(std::is_same_v<decltype(1.0_W * 1.0_s), joules>);
static_assert(std::is_same_v<decltype(joules() / bytes()), energy_per_byte>);
static_assert(std::is_same_v<decltype(dollar_rate() * seconds()), dollars>);
static_assert(std::is_same_v<decltype(1.0_GB / 1.0_B), double>);
static_assert(!std::is_convertible_v<double, bytes> && !std::is_convertible_v<bytes, double>);
static_assert(std::is_trivially_copyable_v<bytes> && sizeof(bytes) == sizeof(double));

TEST_CASE("Quantity starts at zero") { CHECK(bytes().base() == 0); }

TEST_CASE("Quantity adds, subtracts and scales within its dimension") {
  bytes b = 3.0_GB + 1.0_GB;
  CHECK(b.base() == 4e9);
  CHECK((b - 1.0_GB).base() == 3e9);
  CHECK((-b).base() == -4e9);
  CHECK((b * 2).base() == 8e9);
  CHECK((2 * b).base() == 8e9);
  CHECK((b / 4).base() == 1e9);
  b += 1.0_GB;
  b -= 2.0_GB;
  b *= 0.5;
  CHECK(b.base() == 1.5e9);
}

TEST_CASE("Quantity orders by value") {
  CHECK(1.0_us < 1.0_s);
  CHECK(1.0_GiB > 1.0_GB);
  CHECK(800.0_Gbps == 100.0_GBps);
  CHECK(1.0_GB != 1.0_GiB);
}

TEST_CASE("Quantity of a product and a quotient has the value in base units") {
  CHECK((1.8_GB / 900.0_GBps).base() == Approx(2e-3));
  CHECK((10.0_TFLOPS * 1.0_us).base() == Approx(1e7));
  CHECK(1.0_GB / 1.0_B == 1e9);
  CHECK((1.0_GiB / 1.0_GiB) == 1);
}

TEST_CASE("Quantity literals know decimal from binary and bits from bytes") {
  CHECK((1.0_GB).base() == 1e9);
  CHECK((1.0_GiB).base() == 1073741824);
  CHECK((1.0_Gbps).base() == 1.25e8);
}
