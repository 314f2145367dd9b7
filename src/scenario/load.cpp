#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/scenario/parse_scenario.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/serving/serving.hpp"
#include "scenario/collective_reader.hpp"
#include "scenario/degraded_reader.hpp"
#include "scenario/facility_reader.hpp"
#include "scenario/inference_reader.hpp"
#include "scenario/jobs_reader.hpp"
#include "scenario/kept_files.hpp"
#include "scenario/name_reader.hpp"
#include "scenario/nested_reader.hpp"
#include "scenario/operation_profile.hpp"
#include "scenario/operation_reader.hpp"
#include "scenario/placement_reader.hpp"
#include "scenario/post_training_reader.hpp"
#include "scenario/request_file.hpp"
#include "scenario/source.hpp"
#include "scenario/training_reader.hpp"

namespace nvlsim {
namespace {

constexpr std::string_view scenario_schema = "nvlsim.scenario/1";
const std::array<std::string, 5> workload_kinds = {"training", "inference", "collective", "operation",
                                                   "post_training"};

/// Overrides of a file, by the pointer of the scenario that names it: "" is the whole one, "/jobs/0" a part.
using overrides_by_place = std::map<std::string, std::vector<override_at>>;
std::vector<override_at> at_place(const overrides_by_place& all, const std::string& place) {
  const auto found = all.find(place);
  return found == all.end() ? std::vector<override_at>{} : found->second;
}

/// Overrides by the document that they address.
struct split_overrides {
  std::vector<override_at> platform;
  overrides_by_place stack, model;
};

/// `/platform/gpu/...` addresses the platform file, `/platform/racks` the scenario.
bool goes_into(std::string_view pointer, std::string_view section, std::initializer_list<std::string_view> own) {
  if (!pointer.starts_with(section) || pointer.size() == section.size() || pointer[section.size()] != '/')
    return false;
  const std::string_view rest = pointer.substr(section.size());
  return std::none_of(own.begin(), own.end(), [&](std::string_view o) {
    return rest == o || (rest.starts_with(o) && rest[o.size()] == '/');
  });
}

split_overrides apply_overrides(config::document& doc, const std::vector<override_option>& overrides,
                                diagnostics& problems) {
  split_overrides out;
  const config::origin by{"--set", "--set", true};
  for (const override_option& o : overrides) {
    const auto inner = [&](std::size_t file) {
      return override_at{o.pointer.substr(file), config::parse_scalar(o.text), by, o.pointer};
    };
    const std::string_view stack = "/stack", model = "/model", platform = "/platform";
    if (goes_into(o.pointer, platform, {"/use", "/racks", "/set"})) out.platform.push_back(inner(platform.size()));
    else if (const auto place = place_inside(doc.root, o.pointer, stack))
      out.stack[*place].push_back(inner(place->size() + stack.size()));
    else if (const auto of_model = place_inside(doc.root, o.pointer, model))
      out.model[*of_model].push_back(inner(of_model->size() + model.size()));
    else config::override_value(doc, o.pointer, config::parse_scalar(o.text), by, problems);
  }
  return out;
}

/// The scenario's own platform overrides (`"set"`) precede those of the command line.
std::vector<override_at> platform_sets(config::reader& r, const config::document& doc,
                                       std::vector<override_at> later) {
  std::vector<override_at> out;
  if (const value* set = r.raw("set")) {
    if (const auto* members = set->members()) {
      for (const auto& [pointer, v] : *members)
        out.push_back({pointer, v, {"scenario", doc.self.where, true}, pointer_to("/platform/set", pointer)});
    } else {
      r.fail("set", fmt::format("expected an object of JSON pointers, found {}", set->type_name()));
    }
  }
  std::move(later.begin(), later.end(), std::back_inserter(out));
  return out;
}

/// Inputs that a scenario must name.
struct needed_inputs {
  bool hardware = true, software = true, net = true;
};
needed_inputs needed_by(config::reader& r) {
  const value* workload = r.raw("workload");
  if (!is_collective(workload)) return {};
  const bool library = !has_ideal_parameters(workload);
  return {library, library, false};
}

problem located(const config::reader& r, const config::document& doc, std::string_view key) {
  const std::string pointer = pointer_to(r.pointer(), key);
  return {doc.origin_of(pointer).where, pointer, {}, {}};
}

/// Paths are relative to the scenario that contains them, or to the working folder with --set.
std::string from_scenario(const std::string& name, const config::document& doc, std::string_view pointer) {
  if (!is_path(name) || doc.origin_of(pointer).overrides) return name;
  return (std::filesystem::path(doc.self.where).parent_path() / name).string();
}

loaded<platform> read_hardware(config::reader& r, config::document& doc, const std::vector<override_at>& sets,
                               const data_folders& data, diagnostics& problems) {
  if (const value* v = r.raw("platform"); v && v->string()) {
    r.fail("platform", fmt::format("expected an object such as {{\"use\": \"{}\"}}", *v->string()));
    return {};
  }
  config::reader p = r.child("platform");
  const std::string use = read_name(p, "use");
  const std::vector<override_at> all_sets = platform_sets(p, doc, sets);
  loaded<platform> out;
  if (!use.empty())
    out =
        load_platform(from_scenario(use, doc, "/platform/use"), data, all_sets, located(p, doc, "use"), problems);
  out.content.racks = static_cast<int>(p.integer_or("racks", std::max(1, out.content.racks), {1, 1'000'000}));
  p.done();
  return out;
}

/// A scenario file that is being read.
struct reading {
  std::filesystem::path file;
  const split_overrides& sets;
  const data_folders& data;
  bool digest_alone = false;  ///< of the inputs nothing but the digest is wanted
  nested_places places = {};  ///< of a part's stack and model
};

/// Overrides of files that are not read have no effect.
void refuse_idle(const std::vector<override_at>& sets, const std::string& why, diagnostics& problems) {
  for (const override_at& o : sets) problems.add(o.by.where, o.written_at.empty() ? o.pointer : o.written_at, why);
}

/// Platform, stack and model into `in`, whose text the reader reads.
void read_named(config::reader& r, scenario_source& in, const reading& from, diagnostics& problems) {
  const auto& [file, sets, data, digest_alone, places] = from;
  config::document& doc = in.text;
  const needed_inputs needed = needed_by(r);
  if (needed.hardware || r.has("platform")) in.hardware = read_hardware(r, doc, sets.platform, data, problems);
  const std::vector<override_at> of_stack = at_place(sets.stack, places.stack),
                                 of_model = at_place(sets.model, places.model);
  const auto idle = [&](const char* what, const std::vector<override_at>& of) {
    refuse_idle(of, fmt::format("the scenario has no {}; this override has no effect", what), problems);
  };
  if (!needed.hardware && !r.has("platform")) idle("platform", sets.platform);
  if (!needed.software && !r.has("stack")) idle("stack", of_stack);
  if (!needed.net) idle("model", of_model);
  if (const std::string name = needed.software || r.has("stack") ? read_name(r, "stack") : std::string();
      !name.empty())
    in.software = share_stack(
        {from_scenario(name, doc, "/stack"), of_stack, located(r, doc, "stack"),
         digest_alone && !doc.root.at_pointer("/workload/engine/speculative"), places.stack + "/stack"},
        data, problems);
  if (const std::string name = needed.net ? read_name(r, "model") : std::string(); !name.empty())
    in.net = load_model(from_scenario(name, doc, "/model"), data, of_model, located(r, doc, "model"), problems);
}

scenario_options read_options(config::reader& r, fidelity usual) {
  scenario_options o;
  config::reader s = r.child_or_empty("simulation");
  o.network = static_cast<fidelity>(s.one_of_or("fidelity", fidelity_names, static_cast<std::size_t>(usual)));
  o.fold = s.boolean_or("fold", true);
  o.seed = static_cast<std::uint64_t>(s.integer_or("seed", 1, config::non_negative_int));
  s.done();
  return o;
}

/// Reads the workload by its kind. Members of an unknown kind are not reported.
void read_workload(config::reader& r, const scenario_source& in, scenario& s) {
  const platform& p = in.hardware.content;
  config::reader w = r.child("workload");
  const std::size_t kind = w.one_of("kind", workload_kinds);
  const value* given = w.raw("kind");
  if (!given || !given->string() || *given->string() != workload_kinds[kind]) {
    r.ignore("placement");
    r.ignore("degraded");
  } else if (kind == 0) {
    // By default each domain has a segment of a power of two GPUs.
    training_workload t = read_training_workload(w);
    t.degraded = read_degraded(r, p);
    t.place =
        read_placement(r, p, t.par.gpus(), t.par.tp, p.gpus_per_rack() > 0 ? default_segment(p, t.par.gpus()) : 1);
    s.workload = t;
  } else if (kind == 2) {
    r.ignore("degraded");
    if (r.has("degraded")) r.fail("degraded", "degraded hardware is modelled for training and inference only");
    collective_workload c = read_collective_workload(w);
    if (c.ideal) c.place = {c.gpus};  // a single crossbar: nothing to place
    else c.place = read_placement(r, p, c.gpus, 1, std::max(1, p.gpus_per_rack()));
    s.workload = c;
  } else {
    inference_workload i = read_inference_workload(w, in.net.content.checkpoint);
    i.seed = s.simulation.seed;
    i.degraded = read_degraded(r, p);
    s.workload = i;
  }
}

/// What the engine does by default here, and the model that drafts.
void complete_serving(scenario& s, const scenario_source& in, const data_folders& data, diagnostics& problems) {
  auto* w = std::get_if<inference_workload>(&s.workload);
  if (!w) return;
  find_usual_settings(s.platform, s.stack, s.model, *w);
  if (w->drafts.draft_tokens == 0) return;
  if (w->drafts.source == draft_source::eagle3)
    w->drafts.draft = std::make_shared<const model>(eagle_layer(s.model));
  constexpr const char* pointer = "/workload/engine/speculative/model";
  if (w->drafts.source != draft_source::model || w->drafts.model_name.empty()) return;
  const problem at{in.text.origin_of(pointer).where, pointer, {}, {}};
  w->drafts.draft = std::make_shared<const model>(
      load_model(from_scenario(w->drafts.model_name, in.text, pointer), data, {}, at, problems).content);
}

/// Racks that the layout fills, or the jobs of a cluster together; 0 where it lists its GPUs or needs none.
std::int64_t racks_filled(const scenario& s, const platform& p) {
  const std::int64_t rack = std::max(1, p.gpus_per_rack());
  std::int64_t gpus = 0, each = rack;
  if (const auto* t = std::get_if<training_workload>(&s.workload)) {
    gpus = t->place.table ? 0 : t->par.gpus();
    each = t->place.gpus_per_domain;
  } else if (const auto* i = std::get_if<inference_workload>(&s.workload)) {
    gpus = i->gpus();
  } else if (const auto* c = std::get_if<collective_workload>(&s.workload)) {
    gpus = c->place.table || c->ideal ? 0 : c->gpus;
    each = c->place.gpus_per_domain;
  } else if (const auto* o = std::get_if<operation_case>(&s.workload)) {
    std::int64_t all = 0;
    for (const cluster_job& j : o->jobs) all += racks_filled(*j.alone, p) * j.replicas;
    return all;
  }
  each = std::max<std::int64_t>(1, std::min(each, rack));
  return (gpus + each - 1) / each;
}

/// Where the scenario does not say how many racks there are, they follow the layouts.
void follow_racks(scenario_source& in, const scenario& s) {
  constexpr std::int64_t most = 1'000'000;
  auto& defaults = in.text.defaults;
  const auto said = std::find_if(defaults.begin(), defaults.end(),
                                 [](const value::member& d) { return d.first == "/platform/racks"; });
  const std::int64_t needed = racks_filled(s, in.hardware.content);
  if (said == defaults.end() || needed <= in.hardware.content.racks || needed > most) return;
  in.hardware.content.racks = static_cast<int>(needed);
  said->second = needed;
}

/// Reads the requests of a trace. Its path is relative to the scenario.
void read_requests(scenario& s, const config::document& doc, diagnostics& problems) {
  auto* w = std::get_if<inference_workload>(&s.workload);
  if (!w || w->trace_file.empty()) return;
  const config::origin& by = doc.origin_of("/workload/load/file");
  const std::filesystem::path folder = by.overrides ? "" : std::filesystem::path(doc.self.where).parent_path();
  const std::string path = (folder / w->trace_file).string();
  try {
    w->replay = std::make_shared<const request_trace>(
        read_request_file(path, path, {w->trace_seconds_per_unit, w->trace_block_tokens}, problems));
  } catch (const io_error& e) {
    problems.add({by.where, "/workload/load/file", e.what(), {}, true});
    return;
  }
  const std::string rate = doc.root.at_pointer("/workload/load/request_rate") ? "/workload/load/request_rate"
                                                                              : "/workload/load/requests_per_s";
  if (w->replay->timed && w->arrivals.rate_per_s > 0)
    problems.add(
        doc.origin_of(rate).where, rate,
        fmt::format(
            "{} has arrival times, so a rate has no effect; use rate_scale to make arrivals faster or slower",
            w->trace_file));
  if (!w->replay->timed && !w->replay->list.requests.empty() && w->arrivals.rate_per_s == 0)
    problems.add(by.where, "/workload/load",
                 fmt::format("{} has no arrival times; give requests_per_s", w->trace_file));
}

/// Checks that the workload supports the network fidelity.
void check_fidelity(const scenario& s, const config::document& doc, diagnostics& problems) {
  const fidelity f = s.simulation.network;
  std::string what;
  const bool parts =
      std::holds_alternative<operation_case>(s.workload) || std::holds_alternative<post_training_case>(s.workload);
  if (parts) {
    return;  // the parts are checked
  } else if (std::holds_alternative<shared_workload>(s.workload)) {
    if (f != fidelity::flow)
      what = fmt::format("jobs meet on the network, which {} leaves out; use flow",
                         fidelity_names[static_cast<std::size_t>(f)]);
  } else if (const auto* c = std::get_if<collective_workload>(&s.workload)) {
    if (f == fidelity::exact && (!c->ideal || c->gpus > max_exact_ranks))
      what = fmt::format(
          "exact simulates every message for at most {} GPUs and needs alpha and bandwidth in "
          "/workload/parameters; use closed or flow",
          max_exact_ranks);
  } else if (f == fidelity::exact) {
    what = "exact supports collectives with ideal parameters only; use closed or flow";
  } else if (const auto* w = std::get_if<inference_workload>(&s.workload);
             w && f == fidelity::flow && !w->prefill_pool) {
    what = "inference without a prefill pool has no operations that share the network; use closed";
  }
  const std::string pointer = "/simulation/fidelity";
  if (!what.empty()) problems.add(doc.origin_of(pointer).where, pointer, what);
}

/// Training and inference need their section in the stack.
void check_stack(const config::reader& r, const scenario& s, const stack& software) {
  const bool training = std::holds_alternative<training_workload>(s.workload);
  if (!training && !std::holds_alternative<inference_workload>(s.workload)) return;
  if (training ? software.training.has_value() : software.inference.has_value()) return;
  r.fail("stack",
         fmt::format("stack \"{}\" has no \"{}\" section", software.name, training ? "training" : "inference"));
}

/// Rejects files of other kinds early, which would otherwise give a problem per member.
void refuse_other_files(const config::document& doc) {
  diagnostics problems;
  const std::string other = other_kind(doc.root, "scenario");
  if (!other.empty()) problems.add(doc.self.where, "/schema", fmt::format("this is {}, not a scenario", other));
  else if (!doc.root.find("schema") && !doc.root.find("platform") && !doc.root.find("workload") &&
           !doc.root.find("jobs"))
    problems.add(doc.self.where, "",
                 fmt::format("not a scenario: a scenario has \"schema\": \"{}\"", scenario_schema));
  problems.throw_if_any();
}

}  // namespace

namespace {

scenario read_document(config::document text, const reading& of, diagnostics& problems);

/// Reads parts of a scenario, with all their inputs.
scenario_reader part_reader(const reading& of) {
  return [&of](config::document text, const nested_places& places, diagnostics& found) {
    return read_document(std::move(text), {of.file, of.sets, of.data, false, places}, found);
  };
}

/// A scenario of parts has a stack and a model of its own where parts do not name theirs.
void read_parts_files(config::reader& r, const reading& of, const config::document& doc, diagnostics& problems) {
  const std::array<std::pair<std::string, std::vector<override_at>>, 2> files = {
      {{"stack", at_place(of.sets.stack, "")}, {"model", at_place(of.sets.model, "")}}};
  for (const auto& [file, sets] : files) {
    r.ignore(file);
    if (r.has(file) || sets.empty()) continue;
    const std::vector<std::string> names = names_in_parts(doc.root, file);
    refuse_idle(sets,
                fmt::format("the scenario has no {} of its own{}{}", file,
                            names.empty() ? "" : "; its parts have ", fmt::join(names, ", ")),
                problems);
  }
}

/// Reads the platform, and the jobs on it as scenarios of their own.
void read_shared(config::reader& r, const reading& of, scenario_source& in, scenario& s, diagnostics& problems) {
  for (const char* member : {"workload", "placement", "degraded"})
    if (r.has(member)) r.fail(member, "each of the jobs has its own; move it into /jobs");
  diagnostics own;
  in.hardware = read_hardware(r, in.text, of.sets.platform, of.data, own);
  read_parts_files(r, of, in.text, own);
  s.simulation = read_options(r, fidelity::flow);
  const bool known = own.empty();
  for (problem& p : own.sorted()) problems.add(std::move(p));
  if (!known) {
    for (const char* member : {"jobs", "background"}) r.ignore(member);
    return;
  }
  s.workload = read_jobs(r, in.text, in.hardware.content, part_reader(of), problems);
}

/// "operation" or "post_training", whose parts are scenarios of their own; empty for other workloads.
std::string part_kind(const value* workload) {
  const value* kind = workload && workload->members() ? workload->find("kind") : nullptr;
  const std::string* text = kind ? kind->string() : nullptr;
  return text && (*text == "operation" || *text == "post_training") ? *text : std::string();
}

/// Reads the platform, and a workload whose parts are scenarios of their own.
void read_parts(config::reader& r, const reading& of, scenario_source& in, scenario& s, diagnostics& problems) {
  const std::string kind = part_kind(r.raw("workload"));
  for (const char* member : {"placement", "degraded", "background"})
    if (r.has(member)) r.fail(member, fmt::format("{} has none; the scenarios of its parts have", kind));
  diagnostics own;
  in.hardware = read_hardware(r, in.text, of.sets.platform, of.data, own);
  read_parts_files(r, of, in.text, own);
  s.simulation = read_options(r, fidelity::closed);
  const bool known = own.empty();
  for (problem& p : own.sorted()) problems.add(std::move(p));
  if (!known) {
    for (const char* member : {"workload", "jobs"}) r.ignore(member);
    return;
  }
  const scenario_reader alone = part_reader(of);
  if (kind == "operation" && r.has("jobs")) fill_from_profile(in.text, of.data, own);
  if (!own.empty()) {
    for (problem& p : own.sorted()) problems.add(std::move(p));
    for (const char* member : {"workload", "jobs"}) r.ignore(member);
    return;
  }
  if (kind == "operation") s.workload = read_operation(r, in.text, in.hardware.content, alone, problems);
  else s.workload = read_post_training(r, in.text, of.data, alone, problems);
}

/// Whether power and money of the scenario's kind are worked out.
bool has_site(const scenario& s, config::reader& r) {
  if (const auto* c = std::get_if<operation_case>(&s.workload)) return c->fleet || r.has("jobs");
  return std::holds_alternative<training_workload>(s.workload) ||
         std::holds_alternative<inference_workload>(s.workload);
}

/// The content is incomplete if there are problems.
scenario read_document(config::document text, const reading& of, diagnostics& problems) {
  diagnostics own;
  auto in = std::make_shared<scenario_source>();
  config::document& doc = in->text;
  doc = std::move(text);
  config::reader r(doc, own);
  scenario s;
  static const std::array<std::string, 1> schemas = {std::string(scenario_schema)};
  r.one_of("schema", schemas);
  s.file = of.file.string();
  s.name = r.string_or("name", of.file.stem().string());
  r.ignore("description");
  if (!part_kind(r.raw("workload")).empty()) {
    read_parts(r, of, *in, s, own);
    if (own.empty()) follow_racks(*in, s);
  } else if (r.has("jobs")) {
    read_shared(r, of, *in, s, own);
  } else {
    r.belongs("background", "a scenario with \"jobs\"");
    read_named(r, *in, of, own);
    s.simulation = read_options(r, fidelity::closed);
    read_workload(r, *in, s);
    if (own.empty()) follow_racks(*in, s);
    read_requests(s, doc, own);
  }
  if (has_site(s, r)) s.facility = read_facility(r, in->hardware.content, of.data.platforms / "sites", own);
  else
    r.belongs("facility",
              "training, inference, and operation with jobs or a fleet of its own; a queue has no power or price "
              "of its jobs");
  r.done();
  if (own.empty()) check_fidelity(s, doc, own);
  if (own.empty()) check_stack(r, s, in->software->file.content);
  for (problem& p : own.sorted()) problems.add(p);
  if (!problems.empty()) return s;
  const auto* serving = std::get_if<inference_workload>(&s.workload);
  if (of.digest_alone && !(serving && serving->drafts.draft_tokens > 0)) {
    s.inputs = value{value::object{{"digest", digest_of_inputs(*in, s)}}};
    return s;
  }
  s.platform = in->hardware.content;
  s.stack = in->software->file.content;
  s.model = in->net.content;
  complete_serving(s, *in, of.data, own);
  for (problem& p : own.sorted()) problems.add(p);
  if (!own.empty()) return s;
  s.stack_at = of.places.stack + "/stack";
  s.inputs = inputs_of(*in, s);
  in->workload = write_workload(s);
  s.source = std::move(in);
  return s;
}

scenario read_overridden(config::document doc, const std::filesystem::path& file,
                         const std::vector<override_option>& overrides, const data_folders& data,
                         bool digest_alone = false) {
  diagnostics problems;
  refuse_other_files(doc);
  const split_overrides sets = apply_overrides(doc, overrides, problems);
  scenario s = read_document(std::move(doc), {file, sets, data, digest_alone}, problems);
  problems.throw_if_any();
  return s;
}

config::document scenario_text(const std::filesystem::path& file, const data_folders& data) {
  diagnostics problems;
  config::document doc = kept_document(data, "scenario " + file.string(), problems, [&](diagnostics& own) {
    return config::load(file, {"scenario", file.string()}, own);
  });
  problems.throw_if_any();
  return doc;
}

}  // namespace

std::string scenario_digest(const std::filesystem::path& file, const std::vector<override_option>& overrides,
                            const data_folders& data) {
  return *read_overridden(scenario_text(file, data), file, overrides, data, true).inputs.find("digest")->string();
}

scenario load_scenario(const std::filesystem::path& file, const std::vector<override_option>& overrides,
                       const data_folders& data) {
  return read_overridden(scenario_text(file, data), file, overrides, data);
}

scenario parse_scenario(value root, const std::string& label, const std::vector<override_option>& overrides,
                        const data_folders& data) {
  config::document doc;
  doc.root = std::move(root);
  doc.self = {"scenario", label};
  return read_overridden(std::move(doc), label, overrides, data);
}

}  // namespace nvlsim
