#include "nvlsim/config/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim::config {
namespace {

/// Whether a patch merges the object. Numbers with a source, `{"value": ..., ...}`, are replaced instead.
bool is_table(const value& v) { return v.members() && !v.find("value"); }

/// RFC 7386: members of `patch` replace or extend those of `target`; null removes.
void merge_patch(value& target, const value& patch) {
  auto& into = *target.members();
  into.reserve(into.size() + patch.members()->size());  // the index below keeps views of the keys
  std::unordered_map<std::string_view, std::size_t> index;
  for (const auto& m : into) index.emplace(m.first, index.size());
  for (const auto& [key, v] : *patch.members()) {
    const auto [found, fresh] = index.try_emplace(key, into.size());
    if (fresh) into.emplace_back(key, value{});
    value& old = into[found->second].second;
    if (!is_table(v)) {
      old = v;
    } else {
      if (!old.members()) old = value{value::object{}};
      merge_patch(old, v);
    }
  }
  std::erase_if(into, [](const value::member& m) { return m.second.is_null(); });
}

/// Sets the origin of the value at `pointer`, and removes the origins inside the value that it replaced.
void note_origin(document& doc, const std::string& pointer, const origin& by) {
  const std::string inside = pointer + "/";
  auto it = doc.origins.lower_bound(inside);
  while (it != doc.origins.end() && it->first.starts_with(inside)) it = doc.origins.erase(it);
  doc.origins[pointer] = by;
}

/// Sets the origin of every value in `patch` to `by`, whose file has them below the pointer `below`.
void note_origins(document& doc, const value& patch, const std::string& pointer, const origin& by,
                  std::string_view below) {
  for (const auto& [key, v] : *patch.members()) {
    const std::string here = pointer_to(pointer, key);
    const bool gives_nothing =
        is_table(v) && std::all_of(v.members()->begin(), v.members()->end(),
                                   [](const auto& m) { return m.second.is_null() || is_table(m.second); });
    const value* merged = gives_nothing ? doc.root.at_pointer(here) : nullptr;
    const bool nothing_left = merged && merged->members() && merged->members()->empty();
    if (is_table(v) && !nothing_left) {
      note_origins(doc, v, here, by, below);
    } else {
      note_origin(doc, here, by);
      if (!below.empty()) doc.origins[here].at = std::string(below) + here;
    }
  }
}

/// Writes `v` at the place that `tokens` name in `root`, and creates objects on the way. Returns a problem, or "".
std::string write_at(value& root, const std::vector<std::string>& tokens, value v) {
  value* at = &root;
  for (const std::string& token : tokens) {
    if (auto* a = at->items()) {
      const auto index = array_index(token, a->size());
      if (!index) return fmt::format("no element {} in an array of {}", in_quotes(token), a->size());
      at = &(*a)[*index];
    } else if (at->members() || at->is_null()) {
      value* next = at->find(token);
      at = next ? next : &at->set(token, value{});
    } else {
      return fmt::format("a value of type {} has no members", at->type_name());
    }
  }
  if (at->find("value") && !v.members() && !v.is_null()) {  // a number with a source gets a new source
    at->set("value", std::move(v));
    at->set("source", value{"set by the user"});
    at->set("kind", value{"assumed"});
  } else {
    *at = std::move(v);
  }
  return {};
}

}  // namespace

namespace {

/// Takes the member at the end of the path away.
void erase_at(value& root, const std::vector<std::string>& tokens) {
  value* at = &root;
  for (std::size_t i = 0; at && i + 1 < tokens.size(); ++i)
    if (auto* a = at->items()) {
      const auto index = array_index(tokens[i], a->size());
      at = index ? &(*a)[*index] : nullptr;
    } else {
      at = at->find(tokens[i]);
    }
  if (at && at->members())
    std::erase_if(*at->members(), [&](const value::member& m) { return m.first == tokens.back(); });
}

/// Who changed a part of the value at `pointer`, which `whole` gave: an override, else the file that was asked
/// for, else any other file. A value is as its last author left it, and its problems are that author's.
const origin& last_author(const document& doc, std::string_view pointer, const origin& whole) {
  const std::string inside = std::string(pointer) + "/";
  const origin* last = &whole;
  for (auto it = doc.origins.lower_bound(inside); it != doc.origins.end() && it->first.starts_with(inside); ++it) {
    const origin& part = it->second;
    if (part.overrides) return part;
    if (part.where == doc.self.where || last->where == whole.where) last = &part;
  }
  return *last;
}

}  // namespace

const origin& document::origin_of(std::string_view pointer) const {
  for (std::string_view p = pointer;; p = p.substr(0, p.rfind('/'))) {
    if (const auto it = origins.find(std::string(p)); it != origins.end())
      return p.empty() ? it->second : last_author(*this, pointer, it->second);
    if (p.empty()) return self;
  }
}

value document::resolved() const {
  value out = root;
  for (const auto& [pointer, v] : defaults)
    if (const value* given = out.at_pointer(pointer); !given || given->is_null())
      write_at(out, split_pointer(pointer), v);
  for (const std::string& pointer : replaced) erase_at(out, split_pointer(pointer));
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

bool is_name(std::string_view name) {
  return !name.empty() && name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

/// The letters that a name begins with: "deepseek" of "deepseek-v3".
static std::string_view first_word(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::size_t n = 0;
  while (n < name.size() && is_letter(name[n])) ++n;
  return name.substr(0, n);
}

/// Whether one of the words of a name, between dashes, is `word`.
static bool has_word(std::string_view name, std::string_view word) {
  return fmt::format("-{}-", name).find(fmt::format("-{}-", word)) != std::string::npos;
}

void add_unknown(const named_input& input, const std::vector<std::string>& names, std::string_view listed_by,
                 diagnostics& problems) {
  const auto& what = input.what;
  const auto& name = input.name;
  const auto& asked_by = input.asked_by;
  std::string hint = nearest(name, names);
  const auto holds_it = [&](const std::string& n) { return has_word(n, name); };
  if (!holds_it(hint) && std::any_of(names.begin(), names.end(), holds_it)) hint.clear();  // "h100" is not "h800"
  std::string message = fmt::format("unknown {} {}", what, in_quotes(name));
  if (hint.empty() && !names.empty()) {
    constexpr std::size_t shortest = 3, most_like = 12, max_known = 64;
    const std::string_view word = first_word(name);
    std::vector<std::string> like;  // "gb300" can stand for any gb300-*, "deepseek-v9" for any deepseek-*
    std::copy_if(names.begin(), names.end(), std::back_inserter(like), [&](const std::string& n) {
      return (name.size() >= shortest && n.find(name) != std::string::npos) ||
             (word.size() >= shortest && first_word(n) == word);
    });
    const std::size_t more = like.size() > most_like ? like.size() - most_like : 0;
    like.resize(like.size() - more);
    message += !like.empty()               ? fmt::format("; did you mean one of {}{}?", fmt::join(like, ", "),
                                           more > 0 ? fmt::format(" ({} more)", more) : "")
               : names.size() <= max_known ? fmt::format("; known: {}", fmt::join(names, ", "))
                                           : fmt::format("; {} names the {} that ship", listed_by, names.size());
  }
  problems.add(asked_by.file, asked_by.pointer, std::move(message), std::move(hint));
}

void merge(document& into, const value& patch, const origin& by, std::string_view below) {
  if (!into.root.members()) into.root = value{value::object{}};
  merge_patch(into.root, patch);
  note_origins(into, patch, "", by, below);
}

void relocate(problem& p, const document& doc) {
  for (std::string_view at = p.pointer;; at = at.substr(0, at.rfind('/'))) {
    if (const auto it = doc.origins.find(std::string(at)); it != doc.origins.end()) {
      if (!it->second.at.empty() && it->second.where == p.file) p.pointer.replace(0, at.size(), it->second.at);
      return;
    }
    if (at.find('/') == at.npos) return;  // the root, or no pointer at all
  }
}

document load_named(const std::filesystem::path& folder, const named_input& input, diagnostics& problems,
                    const load_options& options) {
  const auto& [what, name, asked_by] = input;
  const auto& [accepted, shipped] = options;
  std::vector<document> chain;  // most derived first
  std::set<std::string> seen;
  std::optional<std::string> next(name);
  problem asked = asked_by;
  while (next) {
    std::error_code ec;
    const bool is_base = !chain.empty() && !shipped.empty();
    const bool here = !is_base || std::filesystem::is_regular_file(folder / (*next + ".json"), ec);
    const std::filesystem::path path = (here ? folder : shipped) / (*next + ".json");
    if (!is_name(*next) || !std::filesystem::is_regular_file(path, ec)) {
      add_unknown({what, *next, asked}, names_in(here ? folder : shipped), fmt::format("nvlsim {} list", what),
                  problems);
      return {};
    }
    if (!seen.insert(*next).second) {
      problems.add(asked.file, asked.pointer, fmt::format("\"{}\" is its own base", *next));
      return {};
    }
    diagnostics own;
    document doc = load(path, {fmt::format("{} {}", what, *next), path.string()}, own, accepted);
    for (problem& p : own.sorted()) problems.add(std::move(p));
    if (!own.empty()) return {};
    asked = {path.string(), "/base", {}, {}};
    next.reset();
    if (const value* base = doc.root.find("base"); base && !base->is_null()) {
      if (const std::string* s = base->string()) next = *s;
      else problems.add(path.string(), "/base", fmt::format("expected a string, found {}", base->type_name()));
    }
    chain.push_back(std::move(doc));
  }
  document merged = std::move(chain.back());
  if (chain.size() > 1) note_origins(merged, value{merged.root}, "", merged.self, {});
  chain.pop_back();
  for (; !chain.empty(); chain.pop_back()) {
    merge(merged, chain.back().root, chain.back().self);
    merged.self = std::move(chain.back().self);  // what is missing is missing in the file that was asked for
  }
  return merged;
}

void override_value(document& doc, std::string_view pointer, std::string_view text, const origin& by,
                    diagnostics& problems) {
  override_value(doc, pointer, parse_scalar(text), by, problems);
}

void override_value(document& doc, std::string_view pointer, value v, const origin& by, diagnostics& problems) {
  const auto fail = [&](std::string what) { problems.add(by.where, std::string(pointer), std::move(what)); };
  if (!pointer.starts_with('/')) return fail("a JSON pointer begins with \"/\", such as \"/workload/tp\"");
  const auto tokens = split_pointer(pointer);
  if (tokens.size() > static_cast<std::size_t>(max_document_depth))
    return fail(fmt::format("nested deeper than {} levels", max_document_depth));
  if (std::string wrong = write_at(doc.root, tokens, std::move(v)); !wrong.empty()) return fail(std::move(wrong));
  std::string canonical;
  for (const std::string& token : tokens) canonical = pointer_to(canonical, token);
  origin overriding = by;
  overriding.overrides = true;
  note_origin(doc, canonical, overriding);
}

}  // namespace nvlsim::config
