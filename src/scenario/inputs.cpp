#include "scenario/inputs.hpp"

#include <fmt/format.h>

#include "model/load.hpp"
#include "platform/load.hpp"
#include "stack/load.hpp"

namespace nvlsim {
namespace {

bool is_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".json"); }

/// Finds, merges and overrides the document, then reads it with `read` unless it could not be parsed.
template <class T, class Read>
loaded<T> load_input(std::string_view what, const std::string& name, const std::filesystem::path& folder,
                     const std::vector<override_at>& sets, const problem& asked_by, diagnostics& problems, Read read,
                     config::literals accepted = config::literals::json) {
  loaded<T> out;
  diagnostics own;
  const std::filesystem::path path(name);
  const std::string stem = is_path(name) ? path.stem().string() : name;
  out.source = is_path(name) ? config::load_named(path.has_parent_path() ? path.parent_path() : ".", what, stem, asked_by, own, accepted)
                             : config::load_named(folder, what, name, asked_by, own, accepted);
  if (own.empty()) {
    for (const override_at& o : sets) config::override_value(out.source, o.pointer, o.v, o.by, own);
    out.content = read(out.source, stem, own);
  }
  for (problem& p : own.sorted()) problems.add(std::move(p));
  return out;
}

}  // namespace

data_folders folders_under(const std::filesystem::path& root) {
  return {root / "platforms", root / "platforms" / "stacks", root / "scenarios" / "models"};
}

loaded<platform> load_platform(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                               const problem& asked_by, diagnostics& problems) {
  return load_input<platform>("platform", name, data.platforms, sets, asked_by, problems, read_platform);
}

loaded<stack> load_stack(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                         const problem& asked_by, diagnostics& problems) {
  return load_input<stack>("stack", name, data.stacks, sets, asked_by, problems, read_stack);
}

loaded<model> load_model(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                         const problem& asked_by, diagnostics& problems) {
  return load_input<model>("model", name, data.models, sets, asked_by, problems, read_model, config::literals::python);
}

}  // namespace nvlsim
