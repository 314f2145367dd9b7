#include <catch2/catch.hpp>

#include <array>
#include <sstream>
#include <vector>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"
#include "support/foreign_locale.hpp"
#include "support/golden.hpp"
#include "unit/output/samples.hpp"

namespace {

using namespace nvlsim;

void check_shape(const std::string& table) {
  std::istringstream in(table);
  for (std::string line; std::getline(in, line);) {
    CAPTURE(line);
    CHECK(output::width(line) <= 80);
    CHECK_FALSE(line.ends_with(' '));
  }
}

std::string table_of(const std::vector<result>& results) {
  const std::string table = result_table(results);
  check_shape(table);
  return table;
}

TEST_CASE("Table of one result is as approved") {
  test::check_golden("output/training.txt", table_of({test::training_result()}));
  test::check_golden("output/inference.txt", table_of({test::inference_result()}));
  test::check_golden("output/infeasible.txt", table_of({test::infeasible_result()}));
}

TEST_CASE("Table of several results stands side by side") {
  test::check_golden("output/two.txt",
                     table_of({test::training_result("gb200", 5.75), test::training_result("gb300")}));
  std::vector<result> many = {test::training_result(), test::infeasible_result()};
  for (int i = 0; i < 5; ++i) many.push_back(test::inference_result("a-long-scenario-name-with-a-number", 1 + i));
  test::check_golden("output/many.txt", table_of(many));
  CHECK(table_of({}).empty());
}

TEST_CASE("Table survives hostile text and unusual sections") {
  result r = test::training_result();
  r.name = std::string(200, 'x') + "\x1B[31m\n\xFF";
  r.notes = {std::string(300, 'y'), "\t\n", "\xFF bell \a"};
  r.reasons = {""};
  r.breakdown = value::object{{"deep", value::object{{"a", value::object{{"b", value::object{{"c_s", 1.0}}}}}}},
                              {"list", value::array{1, 2.5, "x", value{}, value::object{}}},
                              {"empty", value::object{}},
                              {"flag", true}};
  r.memory = value::object{};
  const std::string one = result_table(std::span(&r, 1));
  CHECK(one.find('\x1B') == std::string::npos);
  CHECK(one.find('\a') == std::string::npos);
  CHECK(one.find('\xFF') == std::string::npos);
  const std::array<result, 2> two = {r, test::infeasible_result()};
  CHECK(result_table(two).find('\x1B') == std::string::npos);
}

TEST_CASE("Stages beyond the width of a terminal are counted") {
  result r = test::training_result();
  value stages{value::object{}};
  for (int i = 0; i < 40; ++i)
    stages.set("stage " + std::to_string(i), value::object{{"gemm_s", 1.0}, {"step_time_s", 4.0}});
  r.breakdown = value::object{{"by_stage", std::move(stages)}};
  const std::string table = table_of({r});
  CHECK(table.find("and 34 more in the JSON result") != std::string::npos);
  CHECK(table.find("25.0") != std::string::npos);
}

TEST_CASE("Values are scaled by the unit in their key") {
  const auto is = [](const char* key, double v) { return output::scaled(key, v); };
  CHECK(is("step_time_s", 5.0131) == "5.013 s");
  CHECK(is("tpot_s", 0.0123) == "12.3 ms");
  CHECK(is("time_to_train_s", 5.4e6) == "62.5 days");
  CHECK(is("time_s", 600) == "10 min");
  CHECK(is("tokens_per_s", 1100948.4) == "1,100,948 tok/s");
  CHECK(is("tokens_per_s", 999.44) == "999.4 tok/s");
  CHECK(is("total_tokens_per_s_per_gpu", 15290.9) == "15,291 tok/s");
  CHECK(is("requests_per_s", 0.25) == "0.25 req/s");
  CHECK(is("mfu", 0.3821) == "38.21 %");
  CHECK(is("bubble_fraction", 0) == "0 %");
  CHECK(is("memory_peak_bytes", 197.4e9) == "197.4 GB");
  CHECK(is("busbw_Bps", 812.5e9) == "812.5 GB/s");
  CHECK(is("power_W_per_gpu", 1180) == "1.18 kW");
  CHECK(is("energy_per_million_tokens_J", 9.1e5) == "910 kJ");
  CHECK(is("cost_per_step_usd", 12.345) == "12.35 USD");
  CHECK(is("something", 0.1234567) == "0.123457");
  CHECK(output::scaled("something", value{12345678}) == "12345678");
  CHECK(output::scaled("step_time_s", value{}) == "-");
  CHECK(output::percent_change(-0.138) == "-13.80 %");
  CHECK(output::percent_change(0) == "0 %");
}

TEST_CASE("Counts are grouped, and have a prefix from ten million on") {
  CHECK(output::counted(831190872, "tokens") == "831.2 Mtokens");
  CHECK(output::counted(4194304, "tokens") == "4,194,304 tokens");
  CHECK(output::counted(1.85259e19, "FLOP") == "18.53 EFLOP");
  CHECK(output::counted(1.5e16, "FLOP/s") == "15 PFLOP/s");
  CHECK(output::counted(9.99999e8, "tokens") == "1 Gtokens");
  CHECK(output::counted(24576, "") == "24,576");
  CHECK(output::counted(1.23e7, "") == "12.3 M");
  CHECK(output::counted(0, "tokens") == "0 tokens");
}

TEST_CASE("CSV and Megatron log are as approved") {
  const std::array<result, 3> all = {test::training_result(), test::inference_result(), test::infeasible_result()};
  test::check_golden("output/results.csv", result_csv(all));
  test::check_golden("output/megatron.txt", megatron_log(all));
  CHECK(result_csv({}) == "name,status,reasons\n");
}

TEST_CASE("CSV quotes commas, quotes and line breaks") {
  result r;
  r.name = "a\"b,c\nd";
  r.status = run_status::saturated;
  r.reasons = {"first", "second, third"};
  r.metrics = value::object{{"x", 1}, {"y", value{}}, {"z", value::object{{"p50", 0.5}}}};
  CHECK(result_csv(std::span(&r, 1)) ==
        "name,status,x,y,z.p50,reasons\n\"a\"\"b,c\nd\",saturated,1,,0.5,\"first; second, third\"\n");
}

TEST_CASE("Every format gives the same bytes in a locale of decimal commas") {
  const std::array<result, 3> all = {test::training_result(), test::inference_result(), test::infeasible_result()};
  const auto everything = [&] {
    std::string out;
    for (std::size_t f = 0; f < result_format_names().size(); ++f)
      out += render(all, static_cast<result_format>(f));
    return out + result_table(std::span(all).first(1));
  };
  const std::string plain = everything();
  const test::foreign_locale foreign;
  CHECK(everything() == plain);
}

}  // namespace
