// nvlsim platform | stack | model | scenario: list, show, check
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/commands.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/input_pages.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/stack/compose.hpp"

namespace nvlsim::cli {
namespace {

struct listing {
  std::string name, description;
  std::optional<model> shape;  ///< set for models
};

std::string description_of(const std::filesystem::path& file) {
  diagnostics ignored;
  const config::document doc = config::load(file, {"", file.string()}, ignored);
  for (const char* key : {"description", "source", "model_type"})
    if (const value* v = doc.root.find(key); v && v->string()) return *v->string();
  return {};
}

std::vector<listing> list_stacks(const std::filesystem::path& folder) {
  std::vector<listing> out;
  for (const std::string& name : stack_names(folder)) {
    const auto place = find_stack(folder, name);
    out.push_back({name, place ? stack_description(*place) : "", {}});
  }
  return out;
}

/// Frameworks of post-training, whose loops join engines and trainers of stacks.
std::filesystem::path loops_of(const data_folders& data) { return data.platforms / "loops"; }
bool is_loop(const std::string& name, const data_folders& data) {
  return !is_path(name) && !find_stack(data.stacks, name) &&
         std::filesystem::exists(loops_of(data) / (name + ".json"));
}

std::vector<listing> list_all(catalogue_kind kind, const data_folders& data) {
  if (kind == catalogue_kind::stack) {
    std::vector<listing> out = list_stacks(data.stacks);
    for (const std::string& n : config::names_in(loops_of(data)))
      out.push_back({n, description_of(loops_of(data) / (n + ".json")), {}});
    return out;
  }
  std::vector<std::filesystem::path> files;
  if (kind == catalogue_kind::scenario) {
    files = shipped_scenarios();
  } else {
    const auto& folder = kind == catalogue_kind::platform ? data.platforms : data.models;
    for (const std::string& n : config::names_in(folder)) files.push_back(folder / (n + ".json"));
  }
  std::vector<listing> out;
  for (const auto& f : files) {
    out.push_back({f.stem().string(), description_of(f), {}});
    if (kind != catalogue_kind::model) continue;
    diagnostics problems;
    auto m = load_model(f.string(), data, {}, {}, problems);
    if (problems.empty()) out.back().shape = std::move(m.content);
  }
  return out;
}

value list_json(const std::vector<listing>& all) {
  value rows{value::array{}};
  for (const listing& l : all) {
    value row{value::object{{"name", l.name}, {"description", l.description}}};
    if (l.shape) {
      row.set("parameters", parameters(*l.shape));
      row.set("active_parameters", active_parameters(*l.shape));
    }
    rows.items()->push_back(std::move(row));
  }
  return rows;
}

/// A summary of a model: "671.0 B, 37.6 B active; 61 layers of 7168; 256 experts".
std::string summary_of(const model& m) {
  const auto billions = [](std::int64_t n) { return fmt::format("{:.1f} B", static_cast<double>(n) * 1e-9); };
  const std::int64_t all = parameters(m), active = active_parameters(m);
  std::string out = billions(all);
  if (active < all) out += fmt::format(", {} active", billions(active));
  out += fmt::format("; {} layers of {}", m.layers.size(), m.hidden);
  const auto routed =
      std::find_if(m.layers.begin(), m.layers.end(), [](const layer_spec& l) { return l.routed(); });
  return routed == m.layers.end() ? out : out + fmt::format("; {} experts", routed->moe.experts);
}

/// Names with their descriptions.
std::string list_text(const std::vector<listing>& all) {
  std::size_t names = 0;
  for (const listing& l : all) names = std::max(names, l.name.size());
  const std::size_t room = names + 22 < output::table_columns ? output::table_columns - names - 2 : 20;
  std::string text;
  for (const listing& l : all) {
    std::string name = output::padded_right(l.name, names);
    const auto lines = output::wrapped(l.shape ? summary_of(*l.shape) : l.description, room);
    if (lines.empty()) text += l.name + '\n';
    for (const std::string& line : lines) {
      text += name + "  " + line + '\n';
      name.assign(names, ' ');
    }
  }
  return text;
}

exit_code list(const catalogue_arguments& a, const data_folders& data) {
  const auto all = list_all(a.kind, data);
  print(a.format == "json" ? to_json(list_json(all)) : list_text(all));
  return exit_code::ok;
}

/// Where a stack is, which is named or given as a path.
std::filesystem::path folder_of_stack(const std::string& name, const data_folders& data) {
  const std::filesystem::path beside = std::filesystem::path(name).parent_path();
  return !is_path(name) ? data.stacks : beside.empty() ? "." : beside;
}

std::string text_at(const value& of, const char* key) {
  const value* v = of.find(key);
  if (!v) return {};
  if (v->string()) return *v->string();
  return v->integer() ? std::to_string(*v->integer()) : v->number() ? fmt::format("{}", *v->number()) : "";
}

/// The costs of a framework's loop, with kinds and sources.
std::string show_loop(const std::string& name, bool json, const data_folders& data) {
  load_loop_profile(name, data);  // throws if it has problems
  diagnostics problems;
  const config::document file =
      config::load_named(loops_of(data), {"framework", name, {name, "", {}, {}}}, problems);
  problems.throw_if_any();
  const value whole = file.resolved();
  if (json) return to_json(whole);
  const value& costs = *whole.find("costs");
  const value* sources = whole.find("sources");
  std::vector<std::vector<std::string>> rows = {{"cost", "value", "kind", "source"}};
  for (const auto& [cost, v] : *costs.members()) {
    if (cost == "kind" || cost == "source") continue;
    const value& from = v.members() ? v : costs;  // a plain number has the kind and the source of all
    rows.push_back({cost, v.members() ? text_at(v, "value") : text_at(costs, cost.c_str()), text_at(from, "kind"),
                    text_at(from, "source")});
  }
  std::string legend;
  if (sources && sources->members())
    for (const auto& [key, unused] : *sources->members())
      for (const std::string& line :
           output::wrapped(fmt::format("{}: {}", key, text_at(*sources, key.c_str())), output::table_columns - 2))
        legend += "  " + line + '\n';
  return fmt::format("{}\n{}\n\nCosts of its loop, beside those of engine and trainer\n{}\nSources\n{}", name,
                     text_at(whole, "description"), output::grid(rows, 2), legend);
}

std::string show_stack(const catalogue_arguments& a, const data_folders& data,
                       const std::vector<override_at>& sets, diagnostics& problems) {
  const auto loop =
      std::find_if(a.names.begin(), a.names.end(), [&](const std::string& n) { return is_loop(n, data); });
  if (loop != a.names.end() && a.names.size() > 1)
    throw input_error(
        {{"", "", fmt::format("\"{}\" is the loop of a framework, which is shown alone", *loop), {}}});
  if (loop != a.names.end()) {
    if (!sets.empty()) problems.add("--set", "", "has no effect on the loop of a framework");
    if (!a.platform.empty()) problems.add("--platform", "", "has no effect on the loop of a framework");
    problems.throw_if_any();
    return show_loop(a.names.front(), a.format == "json", data);
  }
  const auto s = load_stack({a.names.front(), sets}, data, problems);
  std::optional<loaded<stack>> other;
  if (a.names.size() > 1) other = load_stack({a.names.back(), sets}, data, problems);
  std::optional<platform> machine;
  if (!a.platform.empty())
    machine = load_platform(a.platform, data, {}, {"--platform", "", {}, {}}, problems).content;
  problems.throw_if_any();
  const platform* p = machine ? &*machine : nullptr;
  if (other) {
    const shown_stack first{s.content, s.source}, second{other->content, other->source};
    return a.format == "json" ? to_json(stack_difference_json(first, second, p))
                              : stack_difference_page(first, second, p);
  }
  if (a.format == "json") return to_json(stack_json(s.content, s.source, p));
  return stack_page(s.content, s.source, p,
                    releases_of(folder_of_stack(a.names.front(), data), input_name(a.names.front())));
}

exit_code show(const catalogue_arguments& a, const data_folders& data) {
  const auto sets = parse_input_sets(a.sets);
  const bool json = a.format == "json";
  diagnostics problems;
  std::string text;
  switch (a.kind) {
    case catalogue_kind::platform: {
      const auto p = load_platform(a.names.front(), data, sets, {}, problems);
      problems.throw_if_any();
      text = json ? to_json(platform_json(p.content, p.source)) : platform_page(p.content, p.source);
      break;
    }
    case catalogue_kind::model: {
      const auto m = load_model(a.names.front(), data, sets, {}, problems);
      problems.throw_if_any();
      text = json ? to_json(model_json(m.content)) : model_page(m.content);
      break;
    }
    case catalogue_kind::stack:
      text = show_stack(a, data, sets, problems);
      break;
    case catalogue_kind::scenario:
      break;
  }
  print(text);
  return exit_code::ok;
}

/// A framework is checked with its releases.
void check_stack(const std::string& name, const data_folders& data, diagnostics& problems) {
  if (is_loop(name, data)) {
    load_loop_profile(name, data);
    return;
  }
  load_stack({name}, data, problems);
  const bool path = is_path(name);
  const std::filesystem::path beside = std::filesystem::path(name).parent_path();
  const auto place = find_stack(folder_of_stack(name, data), input_name(name));
  if (!place || !place->release.empty() || !problems.empty()) return;
  for (const std::string& release : stacks_of(place->file))
    if (release != input_name(name))
      load_stack({path ? (beside / (release + ".json")).string() : release}, data, problems);
}

void check_one(catalogue_kind kind, const std::string& name, const data_folders& data, diagnostics& problems) {
  switch (kind) {
    case catalogue_kind::platform:
      load_platform(name, data, {}, {}, problems);
      break;
    case catalogue_kind::stack:
      check_stack(name, data, problems);
      break;
    case catalogue_kind::model:
      load_model(name, data, {}, {}, problems);
      break;
    case catalogue_kind::scenario:
      load_scenario(scenario_file(name), {}, data);
      break;
  }
}

exit_code check(const catalogue_arguments& a, const data_folders& data) {
  diagnostics problems;
  for (const std::string& n : a.names) gather(problems, [&] { check_one(a.kind, n, data, problems); });
  problems.throw_if_any();
  return exit_code::ok;
}

}  // namespace

exit_code execute(const catalogue_arguments& a) {
  const data_folders data = folders_under(data_root());
  switch (a.action) {
    case catalogue_action::list:
      return list(a, data);
    case catalogue_action::show:
      return show(a, data);
    case catalogue_action::check:
      return check(a, data);
  }
  return exit_code::internal;
}

}  // namespace nvlsim::cli
