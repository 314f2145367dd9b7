#include "nvlsim/stack/compose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "nvlsim/stack/releases.hpp"

namespace nvlsim {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& p) {
  std::error_code ec;
  return fs::is_regular_file(p, ec);
}

bool is_part(std::string_view name) {
  return std::any_of(stack_parts.begin(), stack_parts.end(), [&](const stack_part& p) { return p.name == name; });
}

/// The file's content; null when it cannot be parsed.
value content_of(const fs::path& file) {
  diagnostics problems;
  config::document doc = config::load(file, {"", file.string()}, problems);
  return problems.empty() ? std::move(doc.root) : value{};
}

/// Where a file finds its bases, and its libraries in folders of their kind.
std::vector<fs::path> folders_of(const fs::path& file, const fs::path& shipped) {
  const fs::path beside = file.parent_path();
  std::vector<fs::path> out = {beside};
  if (is_part(beside.filename().string())) out.push_back(beside.parent_path());
  if (!shipped.empty()) out.push_back(shipped);
  return out;
}

/// "vllm", "kernels/serving-kernels"
std::string short_name(const fs::path& file) {
  const std::string folder = file.parent_path().filename().string(), stem = file.stem().string();
  return is_part(folder) ? folder + "/" + stem : stem;
}

struct named_part {
  std::string library;
  problem asked;
  std::vector<fs::path> folders;
  fs::path beside;  ///< of a path
};

/// What the files of a stack say, the deepest base first.
struct pieces {
  std::vector<stack_layer> layers;
  std::map<std::string, named_part, std::less<>> parts;
  config::origin self;
};

class composer {
 public:
  composer(const fs::path& shipped, diagnostics& problems) : shipped_(shipped), problems_(problems) {}

  bool gather(const std::vector<fs::path>& folders, const std::string& name, const problem& asked, pieces& out) {
    for (const fs::path& f : folders)
      if (const auto place = find_stack(f, name)) return gather_place(*place, name, asked, out);
    std::set<std::string> known;
    for (const fs::path& f : folders)
      for (std::string& n : stack_names(f)) known.insert(std::move(n));
    config::add_unknown({"stack", name, asked}, {known.begin(), known.end()}, "nvlsim stack list", problems_);
    return false;
  }

  bool lay(const pieces& from, const stack_part* only, config::document& out) {
    for (const stack_part& p : stack_parts) {
      const auto named = from.parts.find(p.name);
      if (named != from.parts.end() && (!only || only == &p) && !add_part(p, named->second, out)) return false;
    }
    for (const stack_layer& l : from.layers) {
      if (!only) {
        config::merge(out, l.own, l.by, l.below);
      } else {
        value kept{value::object{}};
        for (const auto& [key, v] : *l.own.members())
          if (key == "sources" ||
              std::find(only->sections.begin(), only->sections.end(), key) != only->sections.end())
            kept.set(key, v);
        config::merge(out, kept, l.by, l.below);
      }
      for (const auto& [pointer, cell] : l.cells)
        if (const auto it = out.origins.find(pointer); it != out.origins.end()) it->second.at = cell;
    }
    return true;
  }

 private:
  bool gather_place(const stack_place& place, const std::string& name, const problem& asked, pieces& out) {
    const std::string key = place.file.lexically_normal().string() + "#" + place.release;
    if (!open_.insert(key).second) return refuse(asked, fmt::format("\"{}\" is its own base", name));
    const bool good = read(place, out);
    open_.erase(key);
    return good;
  }

  bool read(const stack_place& place, pieces& out) {
    diagnostics own;
    config::document doc = config::load(place.file, {"stack " + short_name(place.file), place.file.string()}, own);
    if (own.empty()) check_releases(doc.root, doc.self.where, own);
    for (problem& p : own.sorted()) problems_.add(std::move(p));
    if (!own.empty()) return false;
    const std::vector<fs::path> folders = folders_of(place.file, shipped_);
    if (const auto base = text_at(doc, "base"); base && !gather(folders, *base, asked_at(doc, "/base"), out))
      return false;
    const std::string release = place.release.empty() ? usual_release(doc) : place.release;
    std::vector<stack_layer> rows;
    if (!release.empty()) rows = release_layers(doc.root, release, doc.self, problems_);
    std::erase_if(*doc.root.members(), [](const value::member& m) {
      return m.first == "base" || m.first == "releases" || m.first == "release";
    });
    out.self = rows.empty() ? doc.self : rows.back().by;
    rows.insert(rows.begin(), {std::move(doc.root), doc.self});
    for (stack_layer& l : rows) {
      take_parts(l, folders, place.file.parent_path(), out);
      out.layers.push_back(std::move(l));
    }
    return problems_.empty();
  }

  /// Moves the names of libraries from what a file says to the parts.
  void take_parts(stack_layer& from, const std::vector<fs::path>& folders, const fs::path& beside, pieces& out) {
    for (const stack_part& p : stack_parts) {
      const value* v = from.own.find(p.name);
      if (!v) continue;
      const bool section = p.name == p.sections[0];
      const std::string pointer = pointer_in_file(from, pointer_to("", p.name));
      if (v->is_null()) out.parts.erase(std::string(p.name));
      else if (v->string())
        out.parts[std::string(p.name)] = {*v->string(), {from.by.where, pointer, {}, {}}, folders, beside};
      else if (section) continue;
      else
        problems_.add(from.by.where, pointer,
                      fmt::format("expected the name of a library, found {}", v->type_name()));
      if (!section || !v->is_null())  // null takes away what the section of a base says, too
        std::erase_if(*from.own.members(), [&](const value::member& m) { return m.first == p.name; });
    }
  }

  /// The release that the name of the file stands for; "" when there is none.
  std::string usual_release(const config::document& doc) {
    const auto usual = text_at(doc, "release");
    if (!usual) return {};
    const std::vector<std::string> rows = release_names(doc.root);
    if (std::find(rows.begin(), rows.end(), *usual) != rows.end()) return *usual;
    config::add_unknown({"release", *usual, asked_at(doc, "/release")}, rows, "the table", problems_);
    return {};
  }

  static problem asked_at(const config::document& doc, std::string pointer) {
    return {doc.self.where, std::move(pointer), {}, {}};
  }

  /// A member of text; nothing when it is absent, null or of another type, which is a problem.
  std::optional<std::string> text_at(const config::document& doc, std::string_view key) {
    const value* v = doc.root.find(key);
    if (!v || v->is_null()) return std::nullopt;
    if (const std::string* s = v->string()) return *s;
    problems_.add(doc.self.where, pointer_to("", key), fmt::format("expected a string, found {}", v->type_name()));
    return std::nullopt;
  }

  bool add_part(const stack_part& p, const named_part& named, config::document& out) {
    const auto file = file_of(p, named);
    if (!file) return false;
    const std::string key = file->lexically_normal().string();
    if (!parts_open_.insert(key).second)
      return refuse(named.asked, fmt::format("\"{}\" is part of itself", named.library));
    pieces of;
    bool good = gather_place({*file, ""}, named.library, named.asked, of);
    const bool says = std::any_of(of.layers.begin(), of.layers.end(),
                                  [&](const stack_layer& l) { return l.own.find(p.sections[0]); });
    if (good && !says && !of.parts.contains(p.name))
      good = refuse(named.asked, fmt::format("\"{}\" has no \"{}\"", named.library, p.sections[0]));
    good = good && lay(of, &p, out);
    parts_open_.erase(key);
    return good;
  }

  std::optional<fs::path> file_of(const stack_part& p, const named_part& named) {
    const std::string& name = named.library;
    if (name.ends_with(".json") || name.find('/') != std::string::npos) {
      const fs::path file = named.beside / name;
      if (is_file(file)) return file;
      problem missing = named.asked;
      missing.what = fmt::format("{}: no such file", file.string());
      missing.unreadable = true;
      problems_.add(std::move(missing));
      return std::nullopt;
    }
    std::set<std::string> known;
    for (const fs::path& folder : named.folders) {
      if (const fs::path file = folder / p.name / (name + ".json"); config::is_name(name) && is_file(file))
        return file;
      for (std::string& n : config::names_in(folder / p.name)) known.insert(std::move(n));
    }
    config::add_unknown({fmt::format("{} library", p.name), name, named.asked}, {known.begin(), known.end()},
                        "nvlsim stack list", problems_);
    return std::nullopt;
  }

  bool refuse(const problem& asked, std::string what) {
    problems_.add(asked.file, asked.pointer, std::move(what));
    return false;
  }

  fs::path shipped_;
  diagnostics& problems_;
  std::set<std::string> open_, parts_open_;
};

}  // namespace

std::optional<stack_place> find_stack(const fs::path& folder, std::string_view name) {
  if (!config::is_name(name)) return std::nullopt;
  const std::string file = std::string(name) + ".json";
  if (is_file(folder / file)) return stack_place{folder / file, {}};
  for (const stack_part& p : stack_parts)
    if (is_file(folder / p.name / file)) return stack_place{folder / p.name / file, {}};
  for (std::size_t dash = name.rfind('-'); dash != std::string_view::npos && dash > 0;
       dash = name.rfind('-', dash - 1)) {
    const fs::path framework = folder / (std::string(name.substr(0, dash)) + ".json");
    const std::string release(name.substr(dash + 1));
    if (!is_file(framework)) continue;
    const value root = content_of(framework);
    const std::vector<std::string> rows = release_names(root);
    if (root.is_null() || std::find(rows.begin(), rows.end(), release) != rows.end())
      return stack_place{framework, release};
  }
  return std::nullopt;
}

std::vector<std::string> stacks_of(const fs::path& file) {
  std::vector<std::string> out = {file.stem().string()};
  if (!is_part(file.parent_path().filename().string()))
    for (const std::string& release : release_names(content_of(file))) out.push_back(out.front() + "-" + release);
  return out;
}

std::string stack_description(const stack_place& place) {
  const value root = content_of(place.file);
  const value* said =
      place.release.empty() ? nullptr : root.at_pointer(release_pointer(root, place.release, "/description"));
  if (!said || !said->string()) said = root.find("description");
  return said && said->string() ? *said->string() : "";
}

value releases_of(const fs::path& folder, std::string_view name) {
  const auto place = find_stack(folder, name);
  if (!place || !place->release.empty()) return {};
  const value root = content_of(place->file);
  const value* table = root.find("releases");
  return table ? *table : value{};
}

std::vector<fs::path> stack_files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  const auto add = [&](const fs::path& from) {
    for (const std::string& n : config::names_in(from)) out.push_back(from / (n + ".json"));
  };
  add(folder);
  for (const stack_part& p : stack_parts) add(folder / p.name);
  return out;
}

std::vector<std::string> stack_names(const fs::path& folder) {
  std::set<std::string> out;
  for (const fs::path& file : stack_files_in(folder))
    for (std::string& n : stacks_of(file)) out.insert(std::move(n));
  return {out.begin(), out.end()};
}

config::document compose_stack(const fs::path& folder, std::string_view name, const problem& asked_by,
                               diagnostics& problems, const compose_options& options) {
  const auto& [shipped, swaps, left_out] = options;
  diagnostics own;
  composer c(shipped, own);
  pieces from;
  config::document out;
  const bool good = c.gather(std::vector{folder}, std::string(name), asked_by, from);
  for (const part_swap& s : swaps) {
    std::vector<fs::path> folders = {folder};
    if (!shipped.empty()) folders.push_back(shipped);
    from.parts[s.part] = {s.library, {s.by.where, s.written_at, {}, {}}, std::move(folders), "."};
  }
  if (const auto it = from.parts.find(left_out); it != from.parts.end()) from.parts.erase(it);
  if (good && c.lay(from, nullptr, out)) {
    for (const part_swap& s : swaps) out.origins[pointer_to("", s.part)] = s.by;
    out.self = std::move(from.self);
  }
  for (problem& p : own.sorted()) problems.add(std::move(p));
  return own.empty() ? out : config::document{};
}

}  // namespace nvlsim
