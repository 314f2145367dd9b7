#include "config/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace nvlsim::config {
namespace {

/// RFC 7386: members of `patch` replace or extend those of `target`; null removes.
void merge_patch(value& target, const value& patch) {
  for (const auto& [key, v] : *patch.members()) {
    value* old = target.find(key);
    if (v.is_null()) {
      auto& m = *target.members();
      std::erase_if(m, [&](const value::member& x) { return x.first == key; });
    } else if (old && old->members() && v.members() && !v.find("value")) {
      merge_patch(*old, v);
    } else {
      target.set(key, v);
    }
  }
}

/// Marks every member that `patch` sets as coming from `by`.
void note_origins(document& doc, const value& patch, const std::string& pointer, const origin& by) {
  for (const auto& [key, v] : *patch.members()) {
    const std::string here = pointer_to(pointer, key);
    if (v.members() && !v.members()->empty() && !v.find("value")) note_origins(doc, v, here, by);
    else doc.origins[here] = by;
  }
}

/// Writes `v` at `pointer` of `root`, making objects on the way. Returns what is wrong, or "".
std::string write_at(value& root, std::string_view pointer, value v) {
  value* at = &root;
  const auto tokens = split_pointer(pointer);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool last = i + 1 == tokens.size();
    if (auto* a = at->items()) {
      std::size_t index = 0;
      const auto [end, status] = std::from_chars(tokens[i].data(), tokens[i].data() + tokens[i].size(), index);
      if (status != std::errc() || end != tokens[i].data() + tokens[i].size() || index >= a->size())
        return fmt::format("no element \"{}\" in an array of {}", tokens[i], a->size());
      at = &(*a)[index];
    } else if (at->members() || at->is_null()) {
      value* next = at->find(tokens[i]);
      at = next ? next : &at->set(tokens[i], value{});
    } else {
      return fmt::format("cannot step into a {}", at->type_name());
    }
    // A sourced number keeps its shape: only its value is replaced.
    if (last && at->members() && at->find("value") && !v.members()) {
      at->set("value", std::move(v));
      at->set("source", value{"set by the user"});
      at->set("kind", value{"assumed"});
      return {};
    }
  }
  *at = std::move(v);
  return {};
}

}  // namespace

const origin& document::origin_of(std::string_view pointer) const {
  for (std::string_view p = pointer;; p = p.substr(0, p.rfind('/'))) {
    if (const auto it = origins.find(std::string(p)); it != origins.end()) return it->second;
    if (p.empty()) return self;
  }
}

value document::resolved() const {
  value out = root;
  for (const auto& [pointer, v] : defaults)
    if (!out.at_pointer(pointer)) write_at(out, pointer, v);
  return out;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& e : std::filesystem::directory_iterator(folder, ec))
    if (e.path().extension() == ".json") names.push_back(e.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

document load_named(const std::filesystem::path& folder, std::string_view what, std::string_view name,
                    const problem& asked_by, diagnostics& problems) {
  std::vector<document> chain;  // most derived first
  std::set<std::string> seen;
  std::string next(name);
  problem asked = asked_by;
  while (!next.empty()) {
    const std::filesystem::path path = folder / (next + ".json");
    if (!seen.insert(next).second) {
      problems.add(asked.file, asked.pointer, fmt::format("\"{}\" is its own base", next));
      return {};
    }
    if (next.find('/') != std::string::npos || !std::filesystem::exists(path)) {
      const auto names = names_in(folder);
      std::string hint = nearest(next, names);
      std::string message = fmt::format("unknown {} \"{}\"", what, next);
      if (hint.empty() && !names.empty()) message += fmt::format("; known: {}", fmt::join(names, ", "));
      problems.add(asked.file, asked.pointer, message, hint);
      return {};
    }
    diagnostics own;
    document doc = load(path, {fmt::format("{} {}", what, next), path.string()}, own);
    if (!own.empty()) {
      for (problem& p : own.sorted()) problems.add(std::move(p));
      return {};
    }
    asked = {path.string(), "/base", {}, {}};
    next.clear();
    if (const value* base = doc.root.find("base")) {
      if (const std::string* s = base->string()) next = *s;
      else problems.add(path.string(), "/base", fmt::format("expected a string, found {}", base->type_name()));
    }
    chain.push_back(std::move(doc));
  }
  document merged = std::move(chain.back());
  chain.pop_back();
  for (; !chain.empty(); chain.pop_back()) {
    merge_patch(merged.root, chain.back().root);
    note_origins(merged, chain.back().root, "", chain.back().self);
  }
  return merged;
}

void override_value(document& doc, std::string_view pointer, std::string_view text, const origin& by,
                    diagnostics& problems) {
  override_value(doc, pointer, parse_scalar(text), by, problems);
}

void override_value(document& doc, std::string_view pointer, value v, const origin& by, diagnostics& problems) {
  if (!pointer.starts_with('/')) {
    problems.add(by.where, std::string(pointer), "a JSON pointer begins with \"/\", such as \"/workload/tp\"");
    return;
  }
  const std::string wrong = write_at(doc.root, pointer, std::move(v));
  if (!wrong.empty()) {
    problems.add(by.where, std::string(pointer), wrong);
    return;
  }
  // What was inside the replaced value is gone, and so are its origins.
  std::erase_if(doc.origins, [&](const auto& o) { return o.first.starts_with(std::string(pointer) + "/"); });
  doc.origins[std::string(pointer)] = by;
}

}  // namespace nvlsim::config
