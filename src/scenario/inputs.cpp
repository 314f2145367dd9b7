#include "nvlsim/scenario/inputs.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "nvlsim/config/digest.hpp"
#include "nvlsim/model/checkpoint.hpp"
#include "nvlsim/model/load.hpp"
#include "nvlsim/platform/load.hpp"
#include "nvlsim/stack/load.hpp"

namespace nvlsim {
namespace {

/// Reports problems with overridden values where the override was written.
void relocate(problem& p, const std::vector<override_at>& sets) {
  for (const override_at& o : sets) {
    if (o.written_at.empty() || p.file != o.by.where || !p.pointer.starts_with(o.pointer)) continue;
    if (p.pointer.size() > o.pointer.size() && p.pointer[o.pointer.size()] != '/') continue;
    p.pointer.replace(0, o.pointer.size(), o.written_at);
    return;
  }
}

/// A stamp that changes whenever a JSON file in the folder changes.
std::string state_of(const std::filesystem::path& folder) {
  std::string out;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    if (entry.path().extension() != ".json") continue;
    out += fmt::format("{}:{}:{};", entry.path().filename().string(), entry.file_size(ec),
                       entry.last_write_time(ec).time_since_epoch().count());
  }
  return out;
}

const std::string quant_file_pointer = pointer_to("", quant_file_member);

/// Adds an hf_quant_config.json in the same folder to a config.json's document, as a member.
void add_quant_file(config::document& doc, const std::filesystem::path& config_file, diagnostics& problems) {
  const std::filesystem::path file = config_file.parent_path() / "hf_quant_config.json";
  std::error_code ec;
  if (config_file.filename() != "config.json" || !std::filesystem::exists(file, ec)) return;
  diagnostics own;
  config::document quant =
      config::load(file, {"model hf_quant_config", file.string()}, own, config::literals::python);
  for (problem& p : own.sorted()) problems.add(std::move(p));
  if (!own.empty()) return;
  doc.root.set(quant_file_member, std::move(quant.root));
  doc.origins[quant_file_pointer] = quant.self;
}

/// Reports problems of that file with its own pointers.
void relocate_quant_file(problem& p, const config::document& doc) {
  const auto from = doc.origins.find(quant_file_pointer);
  if (from != doc.origins.end() && p.file == from->second.where && p.pointer.starts_with(quant_file_pointer))
    p.pointer.erase(0, quant_file_pointer.size());
}

/// Finds and merges the document, completes it with `prepare`, applies overrides, and reads it with `read` unless
/// parsing failed.
template <class T, class Read>
loaded<T> load_input(std::string_view what, const std::string& name, const std::filesystem::path& folder,
                     const std::vector<override_at>& sets, const problem& asked_by, diagnostics& problems,
                     Read read, config::literals accepted = config::literals::json,
                     void (*prepare)(config::document&, const std::filesystem::path&, diagnostics&) = nullptr) {
  loaded<T> out;
  diagnostics own;
  const std::filesystem::path path(name);
  try {
    if (is_path(name)) {
      if (!std::filesystem::exists(path)) throw io_error(fmt::format("{}: no such file", name));
      if (std::filesystem::is_directory(path)) throw io_error(fmt::format("{}: is a directory", name));
      out.source = config::load_named(path.has_parent_path() ? path.parent_path() : ".", what,
                                      path.stem().string(), asked_by, own, accepted, folder);
    } else {
      out.source = config::load_named(folder, what, name, asked_by, own, accepted);
    }
    if (const std::string other = other_kind(out.source.root, what); own.empty() && !other.empty())
      own.add(out.source.self.where, "/schema", fmt::format("this is {}, not a {}", other, what));
    if (own.empty() && prepare) prepare(out.source, path, own);
  } catch (const io_error& e) {
    problems.add({asked_by.file, asked_by.pointer, e.what(), {}, true});
    return out;
  }
  if (own.empty()) {
    for (const override_at& o : sets) {
      // The base has already been read.
      if (o.pointer == "/base")
        own.add(o.by.where, "/base",
                "the base of a file cannot be overridden; use the other file, or a copy of this one");
      config::override_value(out.source, o.pointer, o.v, o.by, own);
    }
    out.content = read(out.source, input_name(name), own);
  }
  for (problem& p : own.sorted()) {
    relocate_quant_file(p, out.source);
    relocate(p, sets);
    problems.add(std::move(p));
  }
  return out;
}

}  // namespace

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(".json"); }

std::string input_name(const std::string& name) {
  if (!is_path(name)) return name;
  std::filesystem::path p(name);
  if (p.filename() == "config.json" && p.has_parent_path()) p = p.parent_path();
  if (!p.has_filename()) p = p.parent_path();  // "folder/"
  return p.extension() == ".json" ? p.stem().string() : p.filename().string();
}

std::string other_kind(const value& root, std::string_view wanted) {
  const value* schema = root.find("schema");
  if (!schema || !schema->string() || !schema->string()->starts_with("nvlsim.")) return {};
  const std::string_view text = *schema->string();
  const std::string_view kind = text.substr(7, text.find('/') - 7);
  const std::string asked(wanted);
  if (!nearest(kind, std::span(&asked, 1)).empty()) return {};  // the wanted kind, or a typo in its name
  return fmt::format(
      "{} {}", std::string_view("aeiou").find(kind.substr(0, 1)) == std::string_view::npos ? "a" : "an", kind);
}

data_folders folders_under(const std::filesystem::path& root) {
  return {root / "platforms", root / "platforms" / "stacks", root / "scenarios" / "models"};
}

loaded<platform> load_platform(const std::string& name, const data_folders& data,
                               const std::vector<override_at>& sets, const problem& asked_by,
                               diagnostics& problems) {
  return load_input<platform>("platform", name, data.platforms, sets, asked_by, problems, read_platform);
}

loaded<stack> load_stack(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                         const problem& asked_by, diagnostics& problems) {
  return load_input<stack>("stack", name, data.stacks, sets, asked_by, problems, read_stack);
}

std::shared_ptr<const known_stack> share_stack(const std::string& name, const data_folders& data,
                                               const std::vector<override_at>& sets, const problem& asked_by,
                                               diagnostics& problems) {
  diagnostics own;
  const auto read = [&] {
    known_stack out{load_stack(name, data, sets, asked_by, own), {}, {}};
    if (!own.empty()) return std::make_shared<const known_stack>(std::move(out));
    out.resolved = out.file.source.resolved();
    out.digest = config::digest(out.resolved);
    return std::make_shared<const known_stack>(std::move(out));
  };
  const auto report = [&] {
    for (problem& p : own.sorted()) problems.add(std::move(p));
  };
  if (!sets.empty()) {
    auto out = read();
    report();
    return out;
  }
  static std::map<std::pair<std::string, std::filesystem::path>,
                  std::pair<std::string, std::shared_ptr<const known_stack>>>
      known;
  static std::mutex looking;
  const std::filesystem::path folder = is_path(name) ? std::filesystem::absolute(name).parent_path() : data.stacks;
  const std::string stamp = state_of(folder) + state_of(data.stacks);
  const std::lock_guard lock(looking);
  auto& [seen, entry] = known[{is_path(name) ? std::filesystem::absolute(name).string() : name, data.stacks}];
  if (entry && seen == stamp) return entry;
  auto out = read();
  report();
  if (own.empty()) seen = stamp, entry = out;
  return out;
}

loaded<model> load_model(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                         const problem& asked_by, diagnostics& problems) {
  std::string file = name;
  if (is_path(name) && std::filesystem::is_directory(name)) {
    file = (std::filesystem::path(name) / "config.json").string();
    if (!std::filesystem::exists(file)) {
      problems.add(
          {asked_by.file, asked_by.pointer, fmt::format("{}: the folder has no config.json", name), {}, true});
      return {};
    }
  }
  return load_input<model>("model", file, data.models, sets, asked_by, problems, read_model,
                           config::literals::python, add_quant_file);
}

}  // namespace nvlsim
