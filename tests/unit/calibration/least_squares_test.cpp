#include "calibration/least_squares.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace nvlsim {
namespace {

const std::vector<free_parameter> two = {{"a", 1, 0.01, 100, 10, true}, {"b", 2, 0.01, 100, 0.3, true}};

/// Logarithms of a, b and a b against 3, 5 and 14.
std::vector<double> errors_of_fit(const std::vector<double>& at) {
  return {std::log(at[0] / 3), std::log(at[1] / 5), std::log(at[0] * at[1] / 14)};
}

}  // namespace

TEST_CASE("Least squares finds the same with derivatives given as with its own") {
  const auto own = fit_parameters(two, errors_of_fit);
  const auto given = fit_parameters(two, errors_of_fit, {}, {}, [](const std::vector<double>&) {
    return std::vector<std::vector<double>>{{1, 0}, {0, 1}, {1, 1}};
  });
  for (std::size_t i = 0; i < two.size(); ++i) CHECK(given[i] == Approx(own[i]).epsilon(1e-3));
  CHECK(given[0] == Approx(3).epsilon(0.2));
  // The narrow prior of b holds it back.
  CHECK(given[1] < 5);
}

TEST_CASE("Least squares ends at the same place wherever its search begins") {
  std::vector<free_parameter> elsewhere = two;
  elsewhere[0].search_from = 20;
  elsewhere[1].search_from = 0.5;
  const auto here = fit_parameters(two, errors_of_fit), there = fit_parameters(elsewhere, errors_of_fit);
  for (std::size_t i = 0; i < two.size(); ++i) CHECK(there[i] == Approx(here[i]).epsilon(2e-3));
}

}  // namespace nvlsim
