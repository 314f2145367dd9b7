#include "nvlsim/output/compare_report.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <sstream>
#include <vector>

#include "nvlsim/output/text.hpp"
#include "support/foreign_locale.hpp"
#include "support/golden.hpp"
#include "unit/output/samples.hpp"

namespace {

using namespace nvlsim;
using namespace nvlsim::output;

std::vector<analysis::gate> rules(const std::vector<std::string>& texts) { return analysis::parse_gates(texts); }

/// GB200 against GB300 under unlike names, and a failed gate, a passed one and one that cannot be judged.
analysis::comparison one_to_one() {
  const result a = test::training_result("llama3.1-405b-gb200-512", 5.75), b = test::training_result();
  const auto gates = rules({"step_time_s<-5%", "mfu<0.1", "cost_per_step_usd>+2%"});
  return analysis::compare(std::span(&a, 1), std::span(&b, 1), gates);
}

/// Many to many, with hostile names and scenarios on one side only.
analysis::comparison sets() {
  std::vector<result> a = {test::inference_result("serve|<a>&\"b\"", 1), test::training_result("gone, 100%: yes"),
                           test::infeasible_result()};
  std::vector<result> b = {test::inference_result("serve|<a>&\"b\"", 1.25), test::infeasible_result(),
                           test::inference_result("new\nline")};
  return analysis::compare(a, b, rules({"ttft_s.p99>+2%"}));
}

TEST_CASE("Comparison reports are as approved") {
  const std::array<const char*, 5> endings = {"txt", "json", "md", "xml", "github.txt"};
  for (std::size_t f = 0; f < compare_format_names().size(); ++f) {
    const auto format = static_cast<compare_format>(f);
    test::check_golden(std::string("output/compare_one.") + endings[f], render(one_to_one(), format));
    test::check_golden(std::string("output/compare_sets.") + endings[f], render(sets(), format));
  }
}

TEST_CASE("Comparison table fits a terminal") {
  for (const analysis::comparison& c : {one_to_one(), sets()}) {
    std::istringstream in(compare_table(c));
    for (std::string line; std::getline(in, line);) {
      CAPTURE(line);
      CHECK(width(line) <= 80);
      CHECK_FALSE(line.ends_with(' '));
    }
  }
}

TEST_CASE("Comparison reports without rules list every metric") {
  const result a = test::training_result("same"), b = test::training_result("same", 4.5);
  const analysis::comparison c = analysis::compare(std::span(&a, 1), std::span(&b, 1));
  test::check_golden("output/compare_no_rules.xml", compare_junit(c));
  test::check_golden("output/compare_no_rules.github.txt", compare_github(c));
  CHECK(compare_table(analysis::compare({}, {})).empty());
}

TEST_CASE("Comparison reports have the same bytes in a locale of decimal commas") {
  const auto everything = [] {
    std::string out;
    for (std::size_t f = 0; f < compare_format_names().size(); ++f)
      out += render(one_to_one(), static_cast<compare_format>(f)) + render(sets(), static_cast<compare_format>(f));
    return out;
  };
  const std::string plain = everything();
  const test::foreign_locale foreign;
  CHECK(everything() == plain);
}

}  // namespace
