#include "nvlsim/units/units_text.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/foreign_locale.hpp"

using namespace nvlsim;

namespace {

template <class Q>
constexpr dimension of = Q::dim_type::value;

struct sample {
  std::string text;
  dimension dims;
  double base;
};

const std::vector<sample> samples = {
    {"288 GB", of<bytes>, 288e9},
    {"1 GiB", of<bytes>, 1073741824},
    {"8 b", of<bytes>, 1},
    {"1.5 KiB", of<bytes>, 1536},
    {"2.22 us", of<seconds>, 2.22e-6},
    {"450 ns", of<seconds>, 450e-9},
    {"3 min", of<seconds>, 180},
    {"2 h", of<seconds>, 7200},
    {"1 day", of<seconds>, 86400},
    {"900 GB/s", of<bandwidth>, 900e9},
    {"800 Gb/s", of<bandwidth>, 100e9},
    {"7.1 TB/s", of<bandwidth>, 7.1e12},
    {"2 TFLOP", of<flops>, 2e12},
    {"15 PFLOPS", of<flop_rate>, 15e15},
    {"15 PFLOP/s", of<flop_rate>, 15e15},
    {"165 TOPS", of<flop_rate>, 165e12},
    {"3 kWh", of<joules>, 10.8e6},
    {"5 J", of<joules>, 5},
    {"1.4 kW", of<watts>, 1400},
    {"10 J/s", of<watts>, 10},
    {"250 mW", of<watts>, 0.25},
    {"98.32 USD", of<dollars>, 98.32},
    {"36 USD/h", of<dollar_rate>, 0.01},
    {"10.7 Texp/s", of<rate>, 10.7e12},
    {"125 pJ/B", of<energy_per_byte>, 125e-12},
    {"1 pJ/b", of<energy_per_byte>, 8e-12},
    {"0.53 pJ/FLOP", of<energy_per_flop>, 0.53e-12},
    {"15 Ttokens", of<token_count>, 15e12},
    {"2.5 ktokens/s", of<token_rate>, 2500},
    {"900GB/s", of<bandwidth>, 900e9},
    {"9e2   GB/s", of<bandwidth>, 900e9},
    {"0 s", of<seconds>, 0},
    {"-5 GB", of<bytes>, -5e9},
};

const std::vector<dimension> every_dimension = {
    of<bytes>,           of<seconds>,         of<bandwidth>,   of<flops>,       of<flop_rate>,
    of<joules>,          of<watts>,           of<dollars>,     of<dollar_rate>, of<rate>,
    of<energy_per_byte>, of<energy_per_flop>, of<token_count>, of<token_rate>};

std::string error_of(std::string_view text, dimension d) {
  const parsed_quantity q = parse_quantity(text, d);
  CHECK(q.base == 0);
  CHECK_FALSE(q.ok());
  return q.error;
}

}  // namespace

TEST_CASE("Quantity text parses in every dimension") {
  for (const sample& s : samples) {
    INFO(s.text);
    const parsed_quantity q = parse_quantity(s.text, s.dims);
    CHECK(q.error.empty());
    CHECK(q.base == Approx(s.base).epsilon(1e-14));
  }
}

TEST_CASE("Quantity text explains what is wrong") {
  const std::string rate = "expected a bandwidth such as \"900 GB/s\"";
  CHECK(error_of("900", of<bandwidth>) == "\"900\" has no unit; " + rate);
  CHECK(error_of("900 ", of<bandwidth>) == "\"900 \" has no unit; " + rate);
  CHECK(error_of("", of<bandwidth>) == rate + ", found \"\"");
  CHECK(error_of("fast", of<bandwidth>) == rate + ", found \"fast\"");
  CHECK(error_of("+9 GB/s", of<bandwidth>) == rate + ", found \"+9 GB/s\"");
  CHECK(error_of(" 9 GB/s", of<bandwidth>) == rate + ", found \" 9 GB/s\"");
  CHECK(error_of("nan GB/s", of<bandwidth>) == rate + ", found \"nan GB/s\"");
  CHECK(error_of("inf GB/s", of<bandwidth>) == rate + ", found \"inf GB/s\"");
  CHECK(error_of("900 gb/s", of<bandwidth>) == "unknown unit \"gb/s\"; " + rate);
  CHECK(error_of("900 Gbps", of<bandwidth>) == "unknown unit \"Gbps\"; " + rate);
  CHECK(error_of("900 GB/s ", of<bandwidth>) == "unknown unit \"GB/s \"; " + rate);
  CHECK(error_of("900 GB/s/s", of<bandwidth>) == "unknown unit \"GB/s/s\"; " + rate);
  CHECK(error_of("900 GB/", of<bandwidth>) == "unknown unit \"GB/\"; " + rate);
  CHECK(error_of("9,5 GB/s", of<bandwidth>) == "unknown unit \",5 GB/s\"; " + rate);
  CHECK(error_of("900 GB", of<bandwidth>) == "\"900 GB\" is a size; " + rate);
  CHECK(error_of("900 B/J", of<bandwidth>) == "\"900 B/J\" is another quantity; " + rate);
  CHECK(error_of("1e999 GB/s", of<bandwidth>) == "\"1e999 GB/s\" is out of range");
  CHECK(error_of("1e-999 GB/s", of<bandwidth>) == "\"1e-999 GB/s\" is out of range");
  CHECK(error_of("1e300 EB/s", of<bandwidth>) == "\"1e300 EB/s\" is out of range");
}

TEST_CASE("Quantity text refuses prefixes that make no sense") {
  for (const char* text : {"1 mB", "1 Kis", "1 KW", "1 kmin", "1 MUSD", "1 kh", "1 Kib/s"}) {
    INFO(text);
    const dimension d = text[2] == 'm' ? of<bytes> : of<seconds>;
    CHECK(error_of(text, d).starts_with(std::string(text) == "1 Kib/s" ? "\"1 Kib/s\" is a bandwidth"
                                                                       : "unknown unit"));
  }
}

TEST_CASE("Quantity text is cut short in messages") {
  const std::string error = error_of(std::string(1 << 20, 'x'), of<bytes>);
  CHECK(error == "expected a size such as \"288 GB\", found \"" + std::string(60, 'x') + "...\"");
  // A character of several bytes is kept whole or left out.
  CHECK(in_quotes(std::string(59, 'x') + "\u00e9\u00e9") == "\"" + std::string(59, 'x') + "...\"");
  CHECK(in_quotes("short") == "\"short\"");
}

TEST_CASE("Quantity examples in messages are themselves valid") {
  for (const dimension d : every_dimension) {
    const std::string text = describe(d);
    INFO(text);
    const std::size_t quote = text.find('"');
    REQUIRE(quote != std::string::npos);
    CHECK(parse_quantity(text.substr(quote + 1, text.size() - quote - 2), d).ok());
  }
  CHECK(describe(of<watts>) == "a power such as \"1.4 kW\"");
  CHECK(describe(dimension{2, 0}) == "a quantity");
}

TEST_CASE("Quantity prints four digits with a prefix") {
  CHECK(format_quantity(900.0_GBps) == "900 GB/s");
  CHECK(format_quantity(5.0134_s) == "5.013 s");
  CHECK(format_quantity(2.22_us) == "2.22 us");
  CHECK(format_quantity(flop_rate::from_base(1.08e18)) == "1.08 EFLOPS");
  CHECK(format_quantity(999.96e6, of<bytes>) == "1 GB");  // not "1000 MB"
  CHECK(format_quantity(bytes()) == "0 B");
  CHECK(format_quantity(-0.0, of<bytes>) == "0 B");
  CHECK(format_quantity(-2e9, of<bytes>) == "-2 GB");
  CHECK(format_quantity(0.5, of<bytes>) == "0.5 B");  // there is no millibyte
  CHECK(format_quantity(1e-15, of<seconds>) == "0.001 ps");
  CHECK(format_quantity(1e22, of<bytes>) == "1e+04 EB");
  CHECK(format_quantity(125e-12, of<energy_per_byte>) == "125 pJ/B");
  CHECK(format_quantity(0.01, of<dollar_rate>) == "36 USD/h");
  CHECK(format_quantity(123456, of<dollars>) == "1.235e+05 USD");
  CHECK(format_quantity(2500, of<token_rate>) == "2.5 ktokens/s");
  CHECK(format_quantity(2500, dimension{2, 0}) == "2500");
}

TEST_CASE("Short text keeps the unit where it gives a readable number") {
  CHECK(short_quantity("1.81818181818 us") == "1.818 us");
  CHECK(short_quantity("298013687808 B") == "298 GB");
  CHECK(short_quantity("880 Gb/s") == "880 Gb/s");
  CHECK(short_quantity("0.00025 s") == "250 us");
  CHECK(short_quantity("gb300") == "gb300");
  CHECK(short_quantity("12") == "12");
}

TEST_CASE("Quantity text survives a round trip in every dimension") {
  for (const dimension d : every_dimension)
    for (double base = 1.2345e-11; base < 1e21; base *= 7.3) {
      const std::string text = format_quantity(base, d);
      INFO(text);
      const parsed_quantity q = parse_quantity(text, d);
      CHECK(q.error.empty());
      CHECK(q.base == Approx(base).epsilon(1e-3));
    }
}

TEST_CASE("Quantity text does not depend on the locale") {
  const test::foreign_locale german;
  if (!german.c_too()) WARN("no de_DE.UTF-8: only the C++ half of the locale was changed");
  CHECK(parse_quantity("2.5 us", of<seconds>).base == 2.5 * 1e-6);
  CHECK_FALSE(parse_quantity("2,5 us", of<seconds>).ok());
  CHECK(format_quantity(1234567.0, of<bytes>) == "1.235 MB");
  CHECK(format_quantity(2.5e-6, of<seconds>) == "2.5 us");
}
