// nvlsim platform | stack | model | scenario: list, show, check
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/support.hpp"
#include "nvlsim/output.hpp"
#include "output/model_page.hpp"
#include "output/platform_page.hpp"
#include "scenario/inputs.hpp"

namespace nvlsim::cli {
namespace {

struct listing {
  std::string name, description;
};

std::string description_of(const std::filesystem::path& file) {
  diagnostics ignored;
  const config::document doc = config::load(file, {"", file.string()}, ignored);
  for (const char* key : {"description", "source", "model_type"})
    if (const value* v = doc.root.find(key); v && v->string()) return *v->string();
  return {};
}

std::vector<listing> list_all(catalogue_kind kind, const data_folders& data) {
  std::vector<std::filesystem::path> files;
  if (kind == catalogue_kind::scenario) {
    files = shipped_scenarios();
  } else {
    const auto& folder = kind == catalogue_kind::platform ? data.platforms : kind == catalogue_kind::stack ? data.stacks : data.models;
    for (const std::string& n : config::names_in(folder)) files.push_back(folder / (n + ".json"));
  }
  std::vector<listing> out;
  for (const auto& f : files) out.push_back({f.stem().string(), description_of(f)});
  return out;
}

exit_code list(const catalogue_arguments& a, const data_folders& data) {
  const auto all = list_all(a.kind, data);
  if (a.format == "json") {
    value rows{value::array{}};
    for (const listing& l : all) rows.items()->push_back(value{value::object{{"name", l.name}, {"description", l.description}}});
    print(to_json(rows));
    return exit_code::ok;
  }
  std::size_t width = 0;
  for (const listing& l : all) width = std::max(width, l.name.size());
  std::string text;
  for (const listing& l : all) {
    const std::size_t room = width + 2 < 78 ? 78 - width - 2 : 20;
    const bool cut = l.description.size() > room;
    text += fmt::format("{:<{}}  {}{}\n", l.name, width, l.description.substr(0, cut ? room - 3 : room), cut ? "..." : "");
  }
  print(text);
  return exit_code::ok;
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
    case catalogue_kind::stack: {
      const auto s = load_stack(a.names.front(), data, sets, {}, problems);
      problems.throw_if_any();
      text = to_json(s.source.resolved());  // a stack is its parameters
      break;
    }
    case catalogue_kind::scenario: break;
  }
  print(text);
  return exit_code::ok;
}

void check_one(catalogue_kind kind, const std::string& name, const data_folders& data, diagnostics& problems) {
  switch (kind) {
    case catalogue_kind::platform: load_platform(name, data, {}, {}, problems); break;
    case catalogue_kind::stack: load_stack(name, data, {}, {}, problems); break;
    case catalogue_kind::model: load_model(name, data, {}, {}, problems); break;
    case catalogue_kind::scenario:
      try {
        load_scenario(scenario_file(name), {}, data);
      } catch (const input_error& e) {
        for (const problem& p : e.problems()) problems.add(p);
      }
      break;
  }
}

exit_code check(const catalogue_arguments& a, const data_folders& data) {
  diagnostics problems;
  for (const std::string& n : a.names) check_one(a.kind, n, data, problems);
  problems.throw_if_any();
  return exit_code::ok;
}

}  // namespace

exit_code execute(const catalogue_arguments& a) {
  const data_folders data = folders_under(data_root());
  switch (a.action) {
    case catalogue_action::list: return list(a, data);
    case catalogue_action::show: return show(a, data);
    case catalogue_action::check: return check(a, data);
  }
  return exit_code::internal;
}

}  // namespace nvlsim::cli
