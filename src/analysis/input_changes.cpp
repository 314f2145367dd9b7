#include "nvlsim/analysis/input_changes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace nvlsim::analysis {
namespace {

const value nothing{};

const value& member(const value& v, std::string_view key) {
  const value* m = v.find(key);
  return m ? *m : nothing;
}

/// The value inside a {value, source} object, as platform files write them.
const value& unwrapped(const value& v) {
  const value* inner = v.find("value");
  return inner && v.find("source") ? *inner : v;
}

bool says_nothing_new(std::string_view key) {
  constexpr std::array<std::string_view, 6> keys = {"kind", "source", "sources", "note", "description", "base"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Skips annotations. A workload's `kind` is an input, not an annotation.
bool skipped(std::string_view key, const std::string& parent) {
  return says_nothing_new(key) && !(key == "kind" && parent.starts_with("/workload"));
}

void add_changes(const value& a_raw, const value& b_raw, const std::string& pointer,
                 std::vector<input_change>& out) {
  const value &a = unwrapped(a_raw), &b = unwrapped(b_raw);
  if (a == b) return;
  if (!(a.members() || a.is_null()) || !(b.members() || b.is_null())) {
    out.push_back({pointer, a, b});
    return;
  }
  if (a.members())
    for (const auto& [key, v] : *a.members())
      if (!skipped(key, pointer)) add_changes(v, member(b, key), pointer_to(pointer, key), out);
  if (b.members())
    for (const auto& [key, v] : *b.members())
      if (!skipped(key, pointer) && !a.find(key)) add_changes(nothing, v, pointer_to(pointer, key), out);
}

/// A file that the scenario names: `named` points to its name in the scenario, `content` to its content.
struct named_file {
  std::string_view pointer, named, content;
};
constexpr const char* other_hardware = "/scenario/platform/use";
constexpr std::array<named_file, 3> named_files = {{
    {"/platform", "/platform/use", ""},
    {"/stack", "/stack", "/parameters"},
    {"/model", "/model", ""},
}};

void add_file_changes(const named_file& f, const value& a, const value& b, std::vector<input_change>& out) {
  const auto at = [](const value& v, const std::string& pointer) -> const value& {
    const value* found = v.at_pointer(pointer);
    return found ? *found : nothing;
  };
  const std::string named = "/scenario" + std::string(f.named),
                    content = std::string(f.pointer) + std::string(f.content);
  if (at(a, named) != at(b, named)) return;  // a different file: reported as a change of the scenario
  const std::string digest = std::string(f.pointer) + "/digest";
  const value &a_digest = at(a, digest), &b_digest = at(b, digest);
  // Same file: its values differ only because they apply to other hardware.
  if (!a_digest.is_null() && a_digest == b_digest) return;
  const std::size_t before = out.size();
  add_changes(at(a, content), at(b, content), std::string(f.pointer), out);
  if (at(a, other_hardware) != at(b, other_hardware))
    out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
                             [](const input_change& i) { return i.a.is_null() || i.b.is_null(); }),
              out.end());
  if (out.size() == before && a_digest != b_digest) out.push_back({digest, a_digest, b_digest});
}

}  // namespace

std::vector<input_change> changed_inputs(const value& a, const value& b) {
  std::vector<input_change> out;
  value from = member(a, "scenario"), to = member(b, "scenario");
  for (value* scenario : {&from, &to})
    if (scenario->members())
      std::erase_if(*scenario->members(), [](const value::member& m) { return m.first == "name"; });
  add_changes(from, to, "", out);
  for (const named_file& f : named_files) add_file_changes(f, a, b, out);
  if (out.empty() && member(a, "digest") != member(b, "digest"))
    out.push_back({"/digest", member(a, "digest"), member(b, "digest")});
  return out;
}

}  // namespace nvlsim::analysis
