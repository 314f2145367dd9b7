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
const config::origin by_option{"--set", "--set", true};

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

/// Whether an override is of a stack's or a model's file.
bool in_file(const std::string& at) {
  return at.find("/stack/") != std::string::npos || at.find("/model/") != std::string::npos;
}
/// Whether an override is of a value of the platform, which a scenario holds under /platform/set.
bool of_platform(const std::string& at) {
  return below(at, "/platform") && at != "/platform/use" && at != "/platform/racks" &&
         !at.starts_with("/platform/set");
}

void set_in_platform(plan_base& base, const override_option& set, diagnostics& problems) {
  const value* before = base.text.at_pointer("/platform/set");
  value sets = before ? *before : value{value::object{}};
  const std::string inside = set.pointer.substr(std::string_view("/platform").size());
  base.set.push_back(pointer_to("/platform/set", inside));
  sets.set(inside, config::parse_scalar(set.text));
  write_at(base.text, "/platform/set", std::move(sets), by_option, problems);
}

}  // namespace

void apply_to(plan_base& base, const std::vector<override_option>& sets, diagnostics& problems) {
  std::vector<override_option> in_text;
  for (const override_option& set : sets) {
    if (in_file(set.pointer)) base.overrides.push_back(set);
    else if (of_platform(set.pointer)) set_in_platform(base, set, problems);
    else in_text.push_back(set);
  }
  value known = base.text;
  for (const override_option& set : in_text) {  // says where a pointer leads nowhere
    base.set.push_back(set.pointer);
    write_at(known, set.pointer, config::parse_scalar(set.text), by_option, problems);
  }
  base.text = usual_names(std::move(base.text), in_text, base.data);
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
  const bool inside = path.size() > 2 && path[0] == "platform" && path[1] == "set";
  return inside ? "/platform" + path[2] + pointer.substr(pointer_to("/platform/set", path[2]).size()) : pointer;
}

/// Whether the value at a pointer is as the scenario's file has it, missing ones included.
bool is_of_file(const plan_base& base, const value& text, const std::string& pointer) {
  const value *before = base.said.at_pointer(pointer), *now = text.at_pointer(pointer);
  if (!before || !now) return before == now;
  return (before->members() && now->members()) || *before == *now;
}

/// Whether an override wrote what is wrong.
bool was_set(const plan_base& base, const std::string& pointer) {
  return std::any_of(base.set.begin(), base.set.end(),
                     [&](const std::string& s) { return pointer == s || below(pointer, s); });
}

}  // namespace

plan_base base_of_file(value text, std::string file, data_folders data) {
  plan_base out{std::move(text), {}, std::move(data)};
  out.file = std::move(file);
  out.said = usual_names(out.text, {}, out.data);
  return out;
}

scenario read_base(const plan_base& base, const std::vector<std::pair<std::string, value>>& more) {
  const value text = with_members(base.text, more);
  const std::string read_as = base.file.empty() ? label : base.file;
  try {
    return parse_scenario(text, read_as, base.overrides, base.data);
  } catch (const input_error& e) {
    diagnostics problems;
    for (problem p : e.problems()) {
      if (p.file == read_as && was_set(base, p.pointer)) p.file = "--set", p.pointer = as_given(p.pointer);
      else if (p.file == base.file && !is_of_file(base, text, p.pointer)) p.file = label;
      problems.add(std::move(p));
    }
    problems.throw_if_any();
    throw;
  }
}

}  // namespace nvlsim
