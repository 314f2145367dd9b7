// Lines of plans.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "nvlsim/analysis/search_result.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/output/plan_text.hpp"
#include "output/lists.hpp"

namespace nvlsim {

/// Text wrapped to the terminal, indented; later lines two columns more.
std::string lines_of(const std::string& text, std::size_t indent);
/// A line of a shell, indented and broken at the terminal's width so that it can be copied: commands with `\` at
/// blanks outside quotes; comments go on as comments.
std::string shell_lines(const std::string& command, std::size_t indent);
std::string joined(const std::vector<std::string>& texts);

/// Why layouts were left out. Where "N" stands for numbers, the reason of one layout, "for example".
std::string reason_of(const pruned_layouts& l);

/// The platform of the plan that was chosen of several, with the reason; empty if none was.
template <class Told>
std::string chosen_line(const std::vector<Told>& plans) {
  for (const Told& t : plans)
    if (!t.chosen_for.empty()) return lines_of(fmt::format("best: {} ({})", t.plan.platform, t.chosen_for), 2);
  return {};
}
/// Its name, or null.
template <class Told>
value chosen_platform(const std::vector<Told>& plans) {
  for (const Told& t : plans)
    if (!t.chosen_for.empty()) return value{t.plan.platform};
  return {};
}

/// The answers of a question, one below the other; of several platforms their table first.
template <class Told>
std::string answers_text(const std::vector<Told>& plans, std::string (*platforms)(const std::vector<Told>&),
                         std::string (*one)(const Told&)) {
  std::string out = plans.size() > 1 ? platforms(plans) : std::string();
  for (const Told& t : plans) {
    if (&t != &plans.front()) out += '\n';
    out += one(t);
  }
  return out;
}
template <class Told>
value answers_value(const char* question, const std::vector<Told>& plans, value (*one)(const Told&)) {
  return value::object{{"schema", plan_schema},
                       {"question", question},
                       {"best_platform", chosen_platform(plans)},
                       {"answers", output::list_of(plans, one)}};
}

}  // namespace nvlsim
