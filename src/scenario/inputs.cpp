#include "nvlsim/scenario/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "nvlsim/config/digest.hpp"
#include "nvlsim/model/checkpoint.hpp"
#include "nvlsim/model/load.hpp"
#include "nvlsim/platform/load.hpp"
#include "nvlsim/stack/compose.hpp"
#include "nvlsim/stack/load.hpp"
#include "scenario/companions.hpp"
#include "scenario/kept_files.hpp"

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

/// A stamp that changes whenever a JSON file in the folder or in its folders of libraries changes.
std::string state_of(const std::filesystem::path& folder) {
  std::string out;
  std::error_code ec;
  for (const std::filesystem::path& file : stack_files_in(folder))
    out += fmt::format("{}:{}:{};", file.string(), std::filesystem::file_size(file, ec),
                       std::filesystem::last_write_time(file, ec).time_since_epoch().count());
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

/// Problems of an input are told by the pointers of the files that say them.
void add_relocated(const diagnostics& own, const config::document& doc, const std::vector<override_at>& sets,
                   diagnostics& problems) {
  for (problem& p : own.sorted()) {
    relocate_quant_file(p, doc);
    config::relocate(p, doc);
    relocate(p, sets);
    problems.add(std::move(p));
  }
}

/// Finds the document, overrides it, then reads it with `read` unless it could not be parsed. `find` may throw
/// io_error.
template <class T, class Find, class Read>
loaded<T> load_input(const config::named_input& input, const std::vector<override_at>& sets, diagnostics& problems,
                     Find find, Read read) {
  const auto& [what, name, asked_by] = input;
  loaded<T> out;
  diagnostics own;
  try {
    out.source = find(own);
    if (const std::string other = other_kind(out.source.root, what); own.empty() && !other.empty())
      own.add(out.source.self.where, "/schema", fmt::format("this is {}, not a {}", other, what));
  } catch (const io_error& e) {
    problems.add({asked_by.file, asked_by.pointer, e.what(), {}, true});
    return out;
  }
  if (own.empty()) {
    for (const override_at& o : what == "platform" ? with_companions(out.source, sets) : sets) {
      if (o.pointer == "/base") {  // the file that one builds on has been read by now
        own.add(o.by.where, "/base",
                "the base of a file cannot be overridden; use the other file, or a copy of this one");
        continue;
      }
      config::override_value(out.source, o.pointer, o.v, o.by, own);
    }
    out.content = read(out.source, input_name(std::string(name)), own);
  }
  add_relocated(own, out.source, sets, problems);
  return out;
}

/// What `read` gives. Where files are kept and nothing is overridden it is read once, and without its text, of
/// which scenario_digest needs the digest alone.
template <class T, class Read>
loaded<T> kept_input(kept_values<loaded<T>>* kept, const std::string& name, diagnostics& problems, Read read) {
  if (!kept) return read(problems);
  return *kept->get(name, problems, [&](diagnostics& own) {
    loaded<T> out = read(own);
    if (own.empty()) out = {std::move(out.content), {}, config::digest(out.source.resolved())};
    return out;
  });
}

/// Throws io_error unless the path leads to a file that is named as inputs are.
void require_file(const std::string& path) {
  constexpr const char* ending = ".json";
  const bool named_so = path.ends_with(ending),
             beside = !named_so && std::filesystem::is_regular_file(path + ending);
  const std::string hint = beside ? fmt::format("; did you mean \"{}{}\"?", path, ending) : "";
  if (!std::filesystem::exists(path)) throw io_error(fmt::format("{}: no such file{}", path, hint));
  if (std::filesystem::is_directory(path)) throw io_error(fmt::format("{}: is a directory{}", path, hint));
  if (!named_so) throw io_error(fmt::format("{}: the name of an input file must end in {}{}", path, ending, hint));
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// A file that builds on others by "base" alone.
auto named_file(std::string_view what, const std::string& name, const std::filesystem::path& folder,
                const problem& asked_by, config::literals accepted = config::literals::json) {
  return [=](diagnostics& own) {
    if (!is_path(name)) return config::load_named(folder, {what, name, asked_by}, own, {accepted});
    require_file(name);
    const std::filesystem::path path(name);
    return config::load_named(folder_of(path), {what, path.stem().string(), asked_by}, own, {accepted, folder});
  };
}

bool replaces(const override_at& o, const stack_part& p) {
  return o.pointer == pointer_to("", p.name) && o.v.string();
}
/// Whether it names another library for a part: `--set /stack/collectives=NAME`.
bool is_swap(const override_at& o) {
  return std::any_of(stack_parts.begin(), stack_parts.end(), [&](const stack_part& p) { return replaces(o, p); });
}

/// Takes libraries that replace a part out of the overrides.
std::vector<part_swap> take_swaps(std::vector<override_at>& sets) {
  std::vector<part_swap> out;
  for (const stack_part& p : stack_parts)
    std::erase_if(sets, [&](const override_at& o) {
      if (!replaces(o, p)) return false;
      out.push_back({std::string(p.name), *o.v.string(), o.by, o.written_at.empty() ? o.pointer : o.written_at});
      return true;
    });
  return out;
}

}  // namespace

data_folders keep_files(data_folders data) {
  data.kept = std::make_shared<kept_files>();
  return data;
}

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
  const auto find = [&](diagnostics& own) {
    return kept_document(data, "platform " + name, own, named_file("platform", name, data.platforms, asked_by));
  };
  return kept_input<platform>(
      data.kept && sets.empty() ? &data.kept->platforms : nullptr, name, problems, [&](diagnostics& own) {
        return load_input<platform>({"platform", name, asked_by}, sets, own, find, read_platform);
      });
}

namespace {

config::document composed(const wanted_stack& wanted, const data_folders& data, const compose_options& options,
                          diagnostics& problems) {
  if (!is_path(wanted.name)) return compose_stack(data.stacks, wanted.name, wanted.asked_by, problems, options);
  const std::filesystem::path folder = folder_of(wanted.name);
  if (!find_stack(folder, input_name(wanted.name))) require_file(wanted.name);
  compose_options of_path = options;
  of_path.shipped = data.stacks;
  return compose_stack(folder, input_name(wanted.name), wanted.asked_by, problems, of_path);
}

}  // namespace

loaded<stack> load_stack(const wanted_stack& wanted, const data_folders& data, diagnostics& problems) {
  const std::string& name = wanted.name;
  const problem& asked_by = wanted.asked_by;
  std::vector<override_at> members = wanted.sets;
  const std::vector<part_swap> swaps = take_swaps(members);
  constexpr std::string_view unused = "/collectives";
  const bool lean = wanted.without_collectives &&
                    std::none_of(wanted.sets.begin(), wanted.sets.end(),
                                 [&](const override_at& o) { return o.pointer.starts_with(unused); });
  const auto compose = [&](diagnostics& own) {
    return composed(wanted, data, {{}, swaps, lean ? unused.substr(1) : ""}, own);
  };
  const auto find = [&](diagnostics& own) {
    return swaps.empty() && !lean ? kept_document(data, "stack " + name, own, compose) : compose(own);
  };
  return load_input<stack>(
      {"stack", name, asked_by}, members, problems, find,
      [&](auto& doc, std::string of, auto& own) { return read_stack(doc, std::move(of), own, wanted.at); });
}

namespace {

/// Of a stack whose members have these digests, in the order of `resolved`.
std::string digest_of_members(const value& resolved, const std::vector<std::string>& digests) {
  value all{value::object{}};
  for (std::size_t i = 0; i < digests.size(); ++i) all.set((*resolved.members())[i].first, digests[i]);
  return config::digest(all);
}

/// The section that an override goes into; empty if it replaces one, or goes elsewhere.
std::string_view section_of(const override_at& o, const value& root) {
  for (const std::string_view s : stack_sections)
    if (o.pointer.starts_with(pointer_to("", s) + '/') && root.find(s) && root.find(s)->members()) return s;
  return {};
}

/// Whether a pointer leads to a section or into it.
bool is_in(std::string_view pointer, std::string_view section) {
  return pointer.size() > section.size() && pointer.substr(1).starts_with(section) &&
         (pointer.size() == section.size() + 1 || pointer[section.size() + 1] == '/');
}

/// Puts what `from` has in a section in the place of what `into` has there; both are in the order of sections.
template <class List, class Pointer>
bool replace_section(List& into, List& from, std::string_view section, Pointer pointer) {
  const auto here = [&](const auto& x) { return is_in(pointer(x), section); };
  const auto at = std::find_if(into.begin(), into.end(), here);
  const auto end = std::find_if_not(at, into.end(), here);
  List own;
  std::copy_if(from.begin(), from.end(), std::back_inserter(own), here);
  if (at == into.end() && !own.empty()) return false;  // where it goes is not known
  into.insert(into.erase(at, end), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  return true;
}

/// The sections of a stack that overrides go into, read again.
struct read_sections {
  std::set<std::string_view> names;
  config::document text;  ///< these alone, and the sources that they name
  stack content;          ///< has what they say
  value resolved;
};

/// None where the whole has to be read: for overrides of other members, and to tell what is wrong with these.
std::optional<read_sections> read_again(const known_stack& base, const wanted_stack& wanted) {
  const std::vector<override_at>& sets = wanted.sets;
  const config::document& was = base.file.source;
  read_sections out;
  for (const override_at& o : sets) out.names.insert(section_of(o, was.root));
  if (out.names.contains({})) return std::nullopt;
  config::document& part = out.text;
  part.root = value{value::object{}};
  part.self = was.self;
  if (const value* sources = was.root.find("sources")) part.root.set("sources", *sources);
  if (const auto whole = was.origins.find(""); whole != was.origins.end()) part.origins.insert(*whole);
  for (const std::string_view s : out.names) {
    part.root.set(s, *was.root.find(s));
    for (auto o = was.origins.lower_bound(pointer_to("", s)); o != was.origins.end() && is_in(o->first, s); ++o)
      part.origins.insert(*o);
  }
  diagnostics problems;
  for (const override_at& o : sets) config::override_value(part, o.pointer, o.v, o.by, problems);
  for (const std::string_view s : stack_sections)
    if (out.names.contains(s)) read_stack_section(part, s, out.content, problems, wanted.at);
  if (!problems.empty()) return std::nullopt;
  out.resolved = part.resolved();
  return out;
}

/// Puts sections that were read again in the place of what a stack has there; false if their place is not known.
bool put(read_sections& from, known_stack& into) {
  config::document& now = into.file.source;
  const auto by_pointer = [](const auto& x) -> const std::string& { return x.pointer; };
  const auto by_first = [](const auto& x) -> const std::string& { return x.first; };
  for (const std::string_view s : from.names) {
    if (!replace_section(now.sources, from.text.sources, s, by_pointer) ||
        !replace_section(now.defaults, from.text.defaults, s, by_first))
      return false;
    now.root.set(s, *from.text.root.find(s));
    std::erase_if(now.origins, [&](const auto& o) { return is_in(o.first, s); });
    std::erase_if(now.spelled, [&](const auto& o) { return is_in(o.first, s); });
    std::erase_if(now.replaced, [&](const std::string& pointer) { return is_in(pointer, s); });
    into.resolved.set(s, *from.resolved.find(s));
  }
  for (const auto& o : from.text.origins) now.origins.insert_or_assign(o.first, o.second);
  now.spelled.insert(from.text.spelled.begin(), from.text.spelled.end());
  now.replaced.insert(from.text.replaced.begin(), from.text.replaced.end());
  stack& content = into.file.content;
  if (from.names.contains("kernels")) content.kernels = std::move(from.content.kernels);
  if (from.names.contains("kernel_spreads")) content.kernel_spreads = std::move(from.content.kernel_spreads);
  if (from.names.contains("collectives")) content.collectives = std::move(from.content.collectives);
  if (from.names.contains("training")) content.training = std::move(from.content.training);
  if (from.names.contains("inference")) content.inference = std::move(from.content.inference);
  return true;
}

/// The stack with overrides inside its sections, of which only those are read again; none where the whole has to
/// be read.
std::shared_ptr<const known_stack> with_sections(const std::shared_ptr<const known_stack>& base,
                                                 const wanted_stack& wanted) {
  std::optional<read_sections> again = read_again(*base, wanted);
  if (!again) return nullptr;
  auto out = wanted.digest_alone ? std::make_shared<known_stack>() : std::make_shared<known_stack>(*base);
  out->members = base->members;
  const value::object& members = *base->resolved.members();
  for (std::size_t i = 0; i < members.size(); ++i)
    if (again->names.contains(members[i].first))
      out->members[i] = config::digest(*again->resolved.find(members[i].first));
  out->digest = digest_of_members(base->resolved, out->members);
  if (wanted.digest_alone) {  // and which sections there are
    if (base->file.content.training) out->file.content.training.emplace();
    if (base->file.content.inference) out->file.content.inference.emplace();
    out->file.content.name = base->file.content.name;
    return out;
  }
  return put(*again, *out) ? out : nullptr;
}

}  // namespace

known_stack with_digests(loaded<stack> file) {
  known_stack out{std::move(file), {}, {}};
  out.resolved = out.file.source.resolved();
  for (const auto& [name, member] : *out.resolved.members()) out.members.push_back(config::digest(member));
  out.digest = digest_of_members(out.resolved, out.members);
  return out;
}

std::shared_ptr<const known_stack> share_stack(const wanted_stack& wanted, const data_folders& data,
                                               diagnostics& problems) {
  const auto& [name, sets, asked_by, digest_alone, place, no_collectives] = wanted;
  const auto read = [&](diagnostics& found) {
    loaded<stack> file = load_stack(wanted, data, found);
    return found.empty() ? with_digests(std::move(file)) : known_stack{std::move(file), {}, {}};
  };
  wanted_stack base{name, {}, asked_by, false, place};
  std::string key = name + " at " + place;
  for (const override_at& o : sets)
    if (is_swap(o)) base.sets.push_back(o), key += fmt::format(" {}={}", o.pointer, *o.v.string());
  if (data.kept && base.sets.size() == sets.size()) return data.kept->stacks.get(key, problems, read);
  if (!sets.empty()) {
    diagnostics found, of_whole;
    wanted_stack members = wanted;
    std::erase_if(members.sets, is_swap);
    const auto known = members.sets.empty() ? nullptr : share_stack(base, data, found);
    if (auto out = known && found.empty() ? with_sections(known, members) : nullptr) return out;
    auto out = std::make_shared<const known_stack>(read(of_whole));
    for (problem& p : of_whole.sorted()) problems.add(std::move(p));
    return out;
  }
  static std::map<std::pair<std::string, std::filesystem::path>,
                  std::pair<std::string, std::shared_ptr<const known_stack>>>
      known;
  static std::mutex looking;
  const std::filesystem::path folder = is_path(name) ? std::filesystem::absolute(name).parent_path() : data.stacks;
  const std::string stamp = state_of(folder) + state_of(data.stacks);
  const std::lock_guard lock(looking);
  const std::string file = is_path(name) ? std::filesystem::absolute(name).string() : name;
  auto& [seen, entry] = known[{file + " at " + place, data.stacks}];
  if (entry && seen == stamp) return entry;
  diagnostics found;
  auto out = std::make_shared<const known_stack>(read(found));
  if (found.empty()) seen = stamp, entry = out;
  for (problem& p : found.sorted()) problems.add(std::move(p));
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
  const auto find = [&](diagnostics& found) {
    return kept_document(data, "model " + file, found, [&](diagnostics& own) {
      config::document doc = named_file("model", file, data.models, asked_by, config::literals::python)(own);
      if (own.empty() && other_kind(doc.root, "model").empty()) add_quant_file(doc, file, own);
      return doc;
    });
  };
  return kept_input<model>(data.kept && sets.empty() ? &data.kept->models : nullptr, file, problems,
                           [&](diagnostics& own) {
                             return load_input<model>({"model", file, asked_by}, sets, own, find, read_model);
                           });
}

}  // namespace nvlsim
