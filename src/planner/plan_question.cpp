#include "nvlsim/planner/plan_question.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/parse_scenario.hpp"

namespace nvlsim {
namespace {

constexpr const char* label = "command line";

bool below(std::string_view pointer, std::string_view section) {
  return pointer.size() > section.size() && pointer.starts_with(section) && pointer[section.size()] == '/';
}

void write_at(value& text, const std::string& pointer, value v, const config::origin& by, diagnostics& problems) {
  config::document doc;
  doc.root = std::move(text);
  config::override_value(doc, pointer, std::move(v), by, problems);
  text = std::move(doc.root);
}

void remove_at(value& text, const std::string& pointer) {
  std::vector<std::string> tokens = split_pointer(pointer);
  value* at = &text;
  for (std::size_t i = 0; at && i + 1 < tokens.size(); ++i) at = at->find(tokens[i]);
  if (at && at->members() && !tokens.empty())
    std::erase_if(*at->members(), [&](const value::member& m) { return m.first == tokens.back(); });
}

void apply_one(plan_base& base, const override_option& set, diagnostics& problems) {
  const std::string& at = set.pointer;
  const bool in_file = at.find("/stack/") != std::string::npos || at.find("/model/") != std::string::npos;
  if (in_file) return base.overrides.push_back(set);
  const config::origin by{"--set", "--set", true};
  if (below(at, "/platform") && at != "/platform/use" && at != "/platform/racks" &&
      !at.starts_with("/platform/set")) {
    value sets = base.text.find("platform") && base.text.find("platform")->find("set")
                     ? *base.text.find("platform")->find("set")
                     : value{value::object{}};
    const std::string inside = at.substr(std::string_view("/platform").size());
    base.set.push_back(pointer_to("/platform/set", inside));
    sets.set(inside, config::parse_scalar(set.text));
    return write_at(base.text, "/platform/set", std::move(sets), by, problems);
  }
  base.set.push_back(at);
  value known = base.text;
  write_at(known, at, config::parse_scalar(set.text), by, problems);  // says where a pointer leads nowhere
  base.text = usual_names(std::move(base.text), {set}, base.data);
}

}  // namespace

void apply_to(plan_base& base, const std::vector<override_option>& sets, diagnostics& problems) {
  base.text = usual_names(std::move(base.text), {}, base.data);
  for (const override_option& set : sets) apply_one(base, set, problems);
}

value with_members(value text, const std::vector<std::pair<std::string, value>>& more) {
  diagnostics problems;
  for (const auto& [pointer, v] : more)
    if (v.is_null()) remove_at(text, pointer);
    else write_at(text, pointer, v, {label, label, true}, problems);
  problems.throw_if_any();
  return text;
}

namespace {

/// "/platform/gpu/tdp" of "/platform/set/~1gpu~1tdp".
std::string as_given(const std::string& pointer) {
  const std::vector<std::string> path = split_pointer(pointer);
  const bool of_platform = path.size() > 2 && path[0] == "platform" && path[1] == "set";
  return of_platform ? "/platform" + path[2] + pointer.substr(pointer_to("/platform/set", path[2]).size())
                     : pointer;
}

/// Whether an override wrote what is wrong.
bool was_set(const plan_base& base, const std::string& pointer) {
  return std::any_of(base.set.begin(), base.set.end(),
                     [&](const std::string& s) { return pointer == s || below(pointer, s); });
}

}  // namespace

scenario read_base(const plan_base& base, const std::vector<std::pair<std::string, value>>& more) {
  try {
    return parse_scenario(with_members(base.text, more), label, base.overrides, base.data);
  } catch (const input_error& e) {
    diagnostics problems;
    for (problem p : e.problems()) {
      if (p.file == label && was_set(base, p.pointer)) p.file = "--set", p.pointer = as_given(p.pointer);
      problems.add(std::move(p));
    }
    problems.throw_if_any();
    throw;
  }
}

}  // namespace nvlsim
