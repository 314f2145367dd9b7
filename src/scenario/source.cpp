#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "nvlsim/config/digest.hpp"
#include "nvlsim/model/load.hpp"
#include "nvlsim/platform/load.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/scenario/fleet_case.hpp"
#include "nvlsim/scenario/parse_scenario.hpp"
#include "nvlsim/scenario/stack_values.hpp"
#include "nvlsim/scenario/write_workload.hpp"
#include "nvlsim/stack/load.hpp"
#include "scenario/collective_reader.hpp"
#include "scenario/degraded_reader.hpp"
#include "scenario/facility_reader.hpp"
#include "scenario/inference_reader.hpp"
#include "scenario/jobs_reader.hpp"
#include "scenario/operation_reader.hpp"
#include "scenario/post_training_reader.hpp"
#include "scenario/source.hpp"
#include "scenario/training_reader.hpp"

namespace nvlsim {
namespace {

void list_origins(const value& v, const std::string& pointer, const config::document& doc,
                  const std::string& prefix, value& out) {
  if (const auto* members = v.members(); members && !members->empty()) {
    for (const auto& [key, child] : *members) list_origins(child, pointer_to(pointer, key), doc, prefix, out);
    return;
  }
  const bool defaulted =
      std::any_of(doc.defaults.begin(), doc.defaults.end(), [&](const auto& d) { return d.first == pointer; });
  out.set(prefix + pointer, defaulted ? std::string("default") : doc.origin_of(pointer).label);
}

/// Only what an override set: the rest comes from the named file and its bases.
void list_overridden(const config::document& doc, const std::string& prefix, value& out) {
  for (const auto& [pointer, origin] : doc.origins)
    if (origin.overrides) out.set(prefix + pointer, origin.label);
}

/// A value that a program changed; null for one that it took away.
struct change {
  std::string pointer;
  value v;
};

/// Members of `after` that are other than in `before`, leaf by leaf, and those that are gone.
void list_changes(const value& before, const value& after, const std::string& pointer, std::vector<change>& out) {
  if (before == after) return;
  if (!after.members() || (before.members() == nullptr && after.members()->empty())) {
    out.push_back({pointer, after});
    return;
  }
  static const value nothing{value::object{}};
  const value& was = before.members() ? before : nothing;
  for (const auto& [name, v] : *after.members()) {
    const value* old = was.find(name);
    list_changes(old ? *old : value{}, v, pointer_to(pointer, name), out);
  }
  for (const auto& [name, v] : *was.members())
    if (!after.find(name)) out.push_back({pointer_to(pointer, name), {}});
}

std::vector<change> changes(const value& before, const value& after) {
  std::vector<change> out;
  list_changes(before, after, "", out);
  return out;
}

/// What was changed where no list of members shows it, so that the result says at least that.
constexpr std::string_view unlisted = "/changed_by_program";

/// Writes the changes over what the files said, in their spelling.
void write_over(config::document& doc, const std::vector<change>& list) {
  const config::origin by{"program", "program", true};
  diagnostics problems;
  for (const change& c : list) {
    const auto spelled = doc.spelled.find(c.pointer);
    const std::string& pointer = spelled == doc.spelled.end() ? c.pointer : spelled->second;
    config::override_value(doc, pointer, c.v, by, problems);
    std::erase_if(doc.defaults, [&](const value::member& d) {
      return d.first == pointer || d.first.starts_with(pointer + "/");
    });
    for (config::provenance& p : doc.sources)
      if (p.pointer == pointer) {
        p.kind = "assumed";
        p.source = "set by a program";
        if (const std::string* text = c.v.string()) p.text = *text;
        else if (const std::int64_t* count = c.v.integer()) p.text = fmt::format("{}", *count);
        else if (const double* number = c.v.number()) p.text = fmt::format("{}", *number);
      }
  }
}

template <class T>
std::vector<change> changes_of(const T& before, const T& after, value (*write)(const T&)) {
  if (before == after) return {};
  std::vector<change> out = changes(write(before), write(after));
  if (out.empty()) out.push_back({std::string(unlisted), true});
  return out;
}

value inputs_of_jobs(const std::vector<cluster_job>& jobs) {
  value out{value::object{}};
  for (const cluster_job& j : jobs) out.set(j.name, j.alone->inputs);
  return out;
}

/// Calls `f` with the place of each scenario that a scenario consists of. A fleet that is not constant is copied,
/// because others may share it.
template <class Scenario, class F>
void for_parts(Scenario& s, F f) {
  const auto jobs = [&](auto& list) {
    for (auto& j : list) f(j.alone);
  };
  if (auto* shared = std::get_if<shared_workload>(&s.workload)) jobs(shared->jobs);
  if (auto* p = std::get_if<post_training_case>(&s.workload)) f(p->rollout), f(p->training);
  if (auto* o = std::get_if<operation_case>(&s.workload)) {
    jobs(o->jobs);
    if (!o->fleet) return;
    if constexpr (std::is_const_v<Scenario>) {
      for (const fleet_member& m : o->fleet->services) f(m.alone);
    } else {
      fleet_case fleet = *o->fleet;
      for (fleet_member& m : fleet.services) f(m.alone);
      o->fleet = std::make_shared<const fleet_case>(std::move(fleet));
    }
  }
}

std::vector<const scenario*> parts_of(const scenario& s) {
  std::vector<const scenario*> out;
  for_parts(s, [&](const std::shared_ptr<const scenario>& part) { out.push_back(part.get()); });
  return out;
}

const request_trace* replayed(const scenario& s) {
  const auto* serving = std::get_if<inference_workload>(&s.workload);
  return serving ? serving->replay.get() : nullptr;
}

/// The scenario as it was understood, with names in place of paths.
value text_of_scenario(const scenario_source& from, const scenario& s) {
  value out = from.text.resolved();
  value* hardware = out.find("platform");
  for (value* named : {out.find("stack"), out.find("model"), hardware ? hardware->find("use") : nullptr})
    if (named) *named = input_name(*named->string());
  if (replayed(s))
    out.find("workload")
        ->find("load")
        ->set("file", std::filesystem::path(std::get<inference_workload>(s.workload).trace_file).stem().string());
  return out;
}

template <class T>
std::string digest_of(const loaded<T>& input) {
  return input.digest.empty() ? config::digest(input.source.resolved()) : input.digest;
}

}  // namespace

std::string digest_of_inputs(const scenario_source& from, const scenario& s) {
  value all{value::object{}};
  all.set("scenario", text_of_scenario(from, s));
  all.set("platform", digest_of(from.hardware));
  all.set("stack", from.software->digest);
  all.set("model", digest_of(from.net));
  const auto* serving = std::get_if<inference_workload>(&s.workload);
  if (const request_trace* replay = replayed(s)) all.set("trace", replay->digest);
  if (serving && serving->drafts.draft) all.set("draft", content_of(*serving->drafts.draft));
  if (const auto* p = std::get_if<post_training_case>(&s.workload)) {
    all.set("framework", p->loop->framework);
    const loop_models& beside = p->loop->models;
    for (const auto& [name, net] : {std::pair{"critic", beside.critic.get()},
                                    {"teacher", beside.teacher.get()},
                                    {"reward", beside.reward.get()}})
      if (net) all.set(name, content_of(*net));
  }
  value parts{value::array{}};
  for (const scenario* part : parts_of(s)) parts.items()->push_back(*part->inputs.find("digest"));
  if (!parts.items()->empty()) all.set("parts", std::move(parts));  // not by name: a job may be named "platform"
  return config::digest(all);
}

value inputs_of(const scenario_source& from, const scenario& s) {
  value out{value::object{}};
  const value scenario_text = text_of_scenario(from, s);
  const value platform_text = from.hardware.source.resolved();
  const value model_text = from.net.source.resolved();
  const value& stack_text = from.software->resolved;
  const request_trace* replay = replayed(s);
  out.set("digest", digest_of_inputs(from, s));
  out.set("scenario", scenario_text);
  out.set("platform", platform_text);
  value software;
  if (!stack_text.is_null()) {
    software = value{value::object{}};
    software.set("name", s.stack.name);
    software.set("description", s.stack.description);
    software.set("digest", from.software->digest);
    const char* sections[] = {"training", "inference", "", "", "", ""};
    software.set("parameters", stack_values(stack_text, from.hardware.content, sections[s.workload.index()]));
  }
  out.set("stack", std::move(software));
  out.set("model", model_text);
  if (const auto* shared = std::get_if<shared_workload>(&s.workload)) {
    out.set("jobs", inputs_of_jobs(shared->jobs));
  } else if (const auto* o = std::get_if<operation_case>(&s.workload)) {
    out.set("jobs", inputs_of_jobs(o->jobs));
  } else if (const auto* p = std::get_if<post_training_case>(&s.workload)) {
    out.set("rollout", p->rollout->inputs);
    out.set("training", p->training->inputs);
    out.set("framework", p->loop->framework);
  }
  if (replay) {
    const auto count = static_cast<std::int64_t>(replay->list.requests.size());
    out.set("trace", value::object{{"format", replay->format}, {"requests", count}, {"digest", replay->digest}});
  }
  value origins{value::object{}};
  list_origins(scenario_text, "", from.text, "", origins);
  for (const auto& [pointer, origin] : from.text.origins)  // what was taken away
    if (origin.overrides && !scenario_text.at_pointer(pointer)) origins.set(pointer, origin.label);
  list_overridden(from.hardware.source, "/platform", origins);
  list_overridden(from.software->file.source, "/stack", origins);
  list_overridden(from.net.source, "/model", origins);
  out.set("origins", std::move(origins));
  return out;
}

namespace {

input_constant constant_of(const config::document& doc, std::string_view prefix, const config::provenance& p) {
  return {std::string(prefix) + p.pointer, p.text, p.kind, p.source, doc.origin_of(p.pointer).label};
}

}  // namespace

void list_constants(const config::document& doc, const std::string& prefix, std::vector<input_constant>& out) {
  for (const config::provenance& p : doc.sources) out.push_back(constant_of(doc, prefix, p));
}

std::vector<input_constant> constants_of(const scenario& s) {
  std::vector<input_constant> out;
  if (!s.source) return out;
  list_constants(s.source->hardware.source, "/platform", out);
  list_constants(s.source->software->file.source, s.stack_at, out);
  if (const auto* p = std::get_if<post_training_case>(&s.workload))
    out.insert(out.end(), p->costs.begin(), p->costs.end());
  std::set<std::string> listed;  // parts may share the stack of the whole
  for (const input_constant& c : out) listed.insert(c.pointer);
  for (const scenario* part : parts_of(s))
    for (input_constant& c : constants_of(*part))
      if (listed.insert(c.pointer).second) out.push_back(std::move(c));
  return out;
}

std::optional<input_constant> constant_at(const scenario& s, std::string_view pointer) {
  if (!s.source) return std::nullopt;
  const auto in = [&](const config::document& doc, std::string_view prefix) -> std::optional<input_constant> {
    if (!pointer.starts_with(prefix)) return std::nullopt;
    const auto at = std::find_if(doc.sources.begin(), doc.sources.end(), [&](const config::provenance& p) {
      return p.pointer == pointer.substr(prefix.size());
    });
    return at == doc.sources.end() ? std::nullopt : std::optional(constant_of(doc, prefix, *at));
  };
  if (auto of_platform = in(s.source->hardware.source, "/platform")) return of_platform;
  if (auto of_stack = in(s.source->software->file.source, s.stack_at)) return of_stack;
  if (const auto* p = std::get_if<post_training_case>(&s.workload))
    for (const input_constant& c : p->costs)
      if (c.pointer == pointer) return c;
  for (const scenario* part : parts_of(s))
    if (auto of_part = constant_at(*part, pointer)) return of_part;
  return std::nullopt;
}

namespace {

/// Whether a part of the scenario differs from what was read; all that do are replaced by ones that say so.
bool tell_parts(scenario& s) {
  bool any = false;
  for_parts(s, [&](std::shared_ptr<const scenario>& part) {
    std::optional<scenario> changed = told(*part);
    if (!changed) return;
    part = std::make_shared<const scenario>(std::move(*changed));
    any = true;
  });
  return any;
}

}  // namespace

std::optional<scenario> told(const scenario& s) {
  if (!s.source) return std::nullopt;
  const scenario_source& was = *s.source;
  std::optional<scenario> copy;  // only of what has parts: most runs change nothing
  const bool other_parts = !parts_of(s).empty() && tell_parts(copy.emplace(s));
  nvlsim::platform hardware = s.platform;
  hardware.racks = was.hardware.content.racks;  // a member of the scenario's own
  const auto in_text = changes(was.workload, write_workload(s));
  const auto in_platform = changes_of(was.hardware.content, hardware, write_platform);
  const auto in_stack = changes_of(was.software->file.content, s.stack, write_stack);
  const bool other_model = s.model != was.net.content;
  if (in_text.empty() && in_platform.empty() && in_stack.empty() && !other_model && !other_parts)
    return std::nullopt;
  scenario_source now = was;
  write_over(now.text, in_text);
  write_over(now.hardware.source, in_platform);
  now.hardware.digest = now.net.digest = {};
  now.hardware.content = s.platform;
  if (!in_stack.empty()) {
    known_stack changed = *was.software;
    write_over(changed.file.source, in_stack);
    changed.file.content = s.stack;
    now.software = std::make_shared<const known_stack>(with_digests(std::move(changed.file)));
  }
  if (other_model) write_over(now.net.source, {{std::string(unlisted), config::digest(content_of(s.model))}});
  scenario out = copy ? std::move(*copy) : s;
  out.inputs = inputs_of(now, out);
  now.workload = write_workload(s);
  out.source = std::make_shared<const scenario_source>(std::move(now));
  return out;
}

value write_workload(const scenario& s) {
  value out{value::object{{"platform", value::object{{"racks", s.platform.racks}}}}};
  placement place;
  std::uint64_t seed = s.simulation.seed;
  const std::vector<degradation>* degraded = nullptr;
  if (const auto* t = std::get_if<training_workload>(&s.workload)) {
    out.set("workload", write_training_workload(*t));
    place = t->place;
    degraded = &t->degraded;
  } else if (const auto* i = std::get_if<inference_workload>(&s.workload)) {
    out.set("workload", write_inference_workload(*i));
    degraded = &i->degraded;
    seed = i->seed;
    if (i->replay) out.set("trace", i->replay->digest);
  } else if (const auto* c = std::get_if<collective_workload>(&s.workload)) {
    out.set("workload", write_collective_workload(*c));
    place = c->place;
  } else if (const auto* o = std::get_if<operation_case>(&s.workload)) {
    out.set("workload", write_operation(*o));
  } else if (const auto* p = std::get_if<post_training_case>(&s.workload)) {
    out.set("workload", write_post_training(*p));
  } else {
    out.set("workload", write_jobs(std::get<shared_workload>(s.workload)));
  }
  if (s.facility) out.set("facility", write_facility(*s.facility));
  if (degraded && !degraded->empty()) out.set("degraded", write_degraded(*degraded));
  if (place.gpus_per_domain > 0) out.set("placement", value::object{{"gpus_per_rack", place.gpus_per_domain}});
  out.set("simulation", value::object{{"fidelity", fidelity_names[static_cast<std::size_t>(s.simulation.network)]},
                                      {"fold", s.simulation.fold},
                                      {"seed", static_cast<std::int64_t>(seed)}});
  return out;
}

namespace {

/// The member at a pointer, which the text then lacks.
std::optional<value> take_member(value& text, const std::string& pointer) {
  const std::vector<std::string> tokens = split_pointer(pointer);
  value* at = &text;
  for (std::size_t i = 0; at && i + 1 < tokens.size(); ++i) {
    value::array* items = at->items();
    const auto index = static_cast<std::size_t>(items ? std::strtoull(tokens[i].c_str(), nullptr, 10) : 0);
    at = !items ? at->find(tokens[i]) : index < items->size() ? &(*items)[index] : nullptr;
  }
  value* const found = at && at->members() && !tokens.empty() ? at->find(tokens.back()) : nullptr;
  if (!found) return std::nullopt;
  value out = std::move(*found);
  std::erase_if(*at->members(), [&](const value::member& m) { return m.first == tokens.back(); });
  return out;
}

/// Renames what the part of a scenario at `place` was read from.
void rename_part(config::document& doc, const std::string& place, const scenario& part) {
  if (!part.source) return;
  const config::document& read = part.source->text;
  diagnostics ignored;
  for (const std::string& pointer : read.replaced) take_member(doc.root, place + pointer);
  for (const auto& [usual, used] : read.spelled)
    if (auto v = take_member(doc.root, place + used))
      config::override_value(doc, place + usual, std::move(*v), {"", "", true}, ignored);
}

}  // namespace

value usual_names(value root, const std::vector<override_option>& overrides, const data_folders& data) {
  config::document doc;
  diagnostics ignored;
  const auto jobs = [&](const std::vector<cluster_job>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) rename_part(doc, fmt::format("/jobs/{}", i), *all[i].alone);
  };
  doc.root = root;
  for (const override_option& o : overrides)
    config::override_value(doc, o.pointer, config::parse_scalar(o.text), {"", "", true}, ignored);
  try {
    const scenario s = parse_scenario(std::move(root), "scenario", overrides, data);
    rename_part(doc, "", s);
    if (const auto* shared = std::get_if<shared_workload>(&s.workload)) jobs(shared->jobs);
    if (const auto* months = std::get_if<operation_case>(&s.workload)) jobs(months->jobs);
    if (const auto* loop = std::get_if<post_training_case>(&s.workload)) {
      rename_part(doc, "/workload/rollout", *loop->rollout);
      rename_part(doc, "/workload/training", *loop->training);
    }
  } catch (const input_error&) {
    return std::move(doc.root);
  }
  return std::move(doc.root);
}

}  // namespace nvlsim
