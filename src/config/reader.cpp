#include "nvlsim/config/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim::config {
namespace {

std::string found(const value& v) {
  if (const std::string* s = v.string()) return fmt::format("string {}", in_quotes(*s));
  if (const std::int64_t* i = v.integer()) return fmt::format("integer {}", *i);
  if (const double* d = v.number()) {
    const bool whole = std::floor(*d) == *d && std::abs(*d) < 1e15;  // 4.0 must not look like the integer 4
    return whole ? fmt::format("number {:.1f}", *d) : fmt::format("number {}", *d);
  }
  return std::string(v.type_name());
}

template <class T>
std::string outside(T x, T low, T high) {
  if (x < low) return fmt::format("{} is less than {}", x, low);
  return fmt::format("{} is more than {}", x, high);
}

const std::array<std::string, 4> kinds = {"measured", "vendor", "derived", "assumed"};

}  // namespace

reader::reader(document& doc, diagnostics& problems)
    : doc_(&doc), problems_(&problems), node_(&doc.root), silent_(!doc.root.members()) {}

reader::reader(const reader& parent, const value* node, std::string pointer, bool silent)
    : doc_(parent.doc_), problems_(parent.problems_), node_(node), pointer_(std::move(pointer)), silent_(silent),
      sourced_(parent.sourced_), prefix_(parent.prefix_), group_kind_(parent.group_kind_),
      group_source_(parent.group_source_), group_pointer_(parent.group_pointer_) {
  if (sourced_) read_group();
}

void reader::read_group() {
  const value* kind = node_->find("kind");
  const value* source = node_->find("source");
  if (!kind || !source || !kind->string() || !source->string() || node_->find("value")) return;
  group_kind_ = *kind->string();
  group_source_ = *source->string();
  group_pointer_ = pointer_;
  known_.insert({"kind", "source"});
}

void reader::fail(std::string_view k, std::string what, std::string hint) const {
  if (silent_) return;
  std::string p = k.empty() ? pointer_ : pointer_to(pointer_, k);
  std::string where = doc_->origin_of(p).where;
  problems_->add(std::move(where), std::move(p), std::move(what), std::move(hint));
}

const value* reader::member(std::string_view name) const {
  const value* v = node_->find(name);
  return v && !v->is_null() ? v : nullptr;
}

bool reader::set_by_user(std::string_view name) const {
  return doc_->origin_of(pointer_to(pointer_, name)).overrides;
}

std::string reader::at(const key& k) const {
  std::vector<std::string_view> given;
  for (const std::string_view a : k.aliases)
    if (member(a)) given.push_back(a);
  if (given.empty()) return std::string(k.canonical);
  if (member(k.canonical)) given.insert(given.begin(), k.canonical);
  // An override replaces what the file says in another spelling.
  const auto set = [&](std::string_view name) { return set_by_user(name); };
  if (given.size() > 1 && std::count_if(given.begin(), given.end(), set) == 1)
    return std::string(*std::find_if(given.begin(), given.end(), set));
  return std::string(given.front());
}

std::string reader::spelling_of(const key& k) const {
  std::string used = at(k);
  return member(used) ? used : std::string();
}

bool reader::has(const key& k) {
  const std::string used = at(k);
  if (member(used)) return true;
  known_.emplace(used);
  known_.insert(k.aliases.begin(), k.aliases.end());
  return false;
}

void reader::belongs(const key& k, std::string_view whose) {
  if (has(k) && !known_.contains(at(k))) fail(at(k), fmt::format("is a member of {}", whose));
  present(k);
}

const value* reader::present(const key& k) {
  known_.emplace(k.canonical);
  const bool other =
      std::any_of(k.aliases.begin(), k.aliases.end(), [&](std::string_view a) { return member(a); });
  if (!other) {
    known_.insert(k.aliases.begin(), k.aliases.end());
    return member(k.canonical);
  }
  const std::string used = at(k);
  const auto refuse_second = [&](std::string_view name) {
    if (name == used || !member(name)) return;
    if (set_by_user(used) && !set_by_user(name)) doc_->replaced.insert(pointer_to(pointer_, name));
    else fail(name, fmt::format("says the same as \"{}\"; give one of them", used));
  };
  refuse_second(k.canonical);
  for (const std::string_view a : k.aliases) {
    known_.emplace(a);
    refuse_second(a);
  }
  if (used != k.canonical) doc_->spelled.emplace(pointer_to(pointer_, k.canonical), pointer_to(pointer_, used));
  return member(used);
}

constant_id reader::id_of(const key& k) const {
  return sourced_ ? constant_named(prefix_ + pointer_to(pointer_, at(k))) : 0;
}

const value* reader::required(const key& k) {
  const value* v = present(k);
  if (!v) fail("", fmt::format("required member \"{}\" is missing", k.canonical));
  return v;
}

void reader::check_kind(const std::string& pointer, const std::string& kind) const {
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return;
  problems_->add(doc_->origin_of(pointer).where, pointer,
                 fmt::format("expected one of {}, found {}", fmt::join(kinds, ", "), in_quotes(kind)),
                 nearest(kind, kinds));
}

void reader::note_source(const std::string& pointer, const value& v, const std::string& kind, std::string source) {
  if (const value* table = doc_->root.find("sources"))
    if (const value* full = table->find(source); full && full->string()) source = *full->string();
  std::string text = v.string()    ? *v.string()
                     : v.integer() ? std::to_string(*v.integer())
                     : v.number()  ? fmt::format("{}", *v.number())
                                   : std::string{};
  doc_->sources.push_back({pointer, std::move(text), kind, std::move(source)});
}

const value* reader::unwrap(const key& k, const value* v) {
  const std::string here = pointer_to(pointer_, at(k));
  if (!v->members()) {
    if (sourced_ && !silent_) {
      if (doc_->origin_of(here).overrides) note_source(here, *v, "assumed", "set by the user");
      else if (group_kind_.empty())
        fail(at(k), "a number here needs its source: {\"value\": ..., \"kind\": ..., \"source\": ...}");
      else {
        check_kind(group_pointer_ + "/kind", group_kind_);
        note_source(here, *v, group_kind_, group_source_);
      }
    }
    return v;
  }
  const value* inner = v->find("value");
  if (!inner) {
    fail(at(k), "expected a value or {\"value\": ..., \"kind\": ..., \"source\": ...}, found object");
    return nullptr;
  }
  reader r(*this, v, here, silent_);
  r.ignore("value");
  r.ignore("note");
  std::string kind = r.string("kind");
  std::string source = r.string("source");
  r.done();
  if (kind.empty() || silent_) return inner;
  check_kind(here + "/kind", kind);
  note_source(here, *inner, kind, std::move(source));
  return inner;
}

void reader::note_default(const key& k, value v) {
  if (!silent_) doc_->defaults.emplace_back(pointer_to(pointer_, k.canonical), std::move(v));
}

std::int64_t reader::checked_integer(const key& k, const value& v, range<std::int64_t> r) {
  const std::int64_t fallback = std::max<std::int64_t>(r.low, 0);
  const std::int64_t* i = v.integer();
  if (!i) {
    fail(at(k), fmt::format("expected an integer, found {}", found(v)));
    return fallback;
  }
  if (*i < r.low || *i > r.high) {
    fail(at(k), outside(*i, r.low, r.high));
    return fallback;
  }
  return *i;
}

double reader::checked_number(const key& k, const value& v, range<double> r) {
  const double fallback = r.low > 0 ? 1.0 : 0.0;
  double d = 0;
  if (v.number()) d = *v.number();
  else if (v.integer()) d = static_cast<double>(*v.integer());
  else {
    fail(at(k), fmt::format("expected a number, found {}", found(v)));
    return fallback;
  }
  if (d < r.low || d > r.high) {
    if (r.low == positive.low && d < r.low) fail(at(k), fmt::format("{} is not more than 0", d));
    else fail(at(k), outside(d, r.low, r.high));
    return fallback;
  }
  return d;
}

double reader::quantity_base(const key& k, dimension d, range<double> r) {
  const double fallback = r.low > 0 ? 1.0 : 0.0;
  const value* v = required(k);
  if (v) v = unwrap(k, v);
  if (!v) return fallback;
  const std::string* s = v->string();
  if (!s) {
    fail(at(k), fmt::format("expected {}, found {}", describe(d), found(*v)));
    return fallback;
  }
  const parsed_quantity q = parse_quantity(*s, d);
  if (!q.ok()) {
    fail(at(k), q.error);
    return fallback;
  }
  if (q.base < r.low || q.base > r.high) {
    if (q.base < 0 && r.low >= 0) fail(at(k), fmt::format("\"{}\" is negative", *s));
    else if (q.base == 0) fail(at(k), fmt::format("\"{}\" is zero", *s));
    else if (q.base < r.low) fail(at(k), fmt::format("\"{}\" is less than {}", *s, format_quantity(r.low, d)));
    else fail(at(k), fmt::format("\"{}\" is more than {}", *s, format_quantity(r.high, d)));
    return fallback;
  }
  return q.base;
}

std::string reader::string(const key& k) {
  const value* v = required(k);
  if (!v) return {};
  if (const std::string* s = v->string()) return *s;
  fail(at(k), fmt::format("expected a string, found {}", found(*v)));
  return {};
}

constant<std::int64_t> reader::integer(const key& k, range<std::int64_t> r) {
  const value* v = required(k);
  if (v && (sourced_ || v->members())) v = unwrap(k, v);
  return {v ? checked_integer(k, *v, r) : std::max<std::int64_t>(r.low, 0), id_of(k)};
}

constant<double> reader::number(const key& k, range<double> r) {
  const value* v = required(k);
  if (v && (sourced_ || v->members())) v = unwrap(k, v);
  return {v ? checked_number(k, *v, r) : (r.low > 0 ? 1.0 : 0.0), id_of(k)};
}

bool reader::boolean(const key& k) {
  const value* v = required(k);
  if (!v) return false;
  if (const bool* b = v->boolean()) return *b;
  fail(at(k), fmt::format("expected true or false, found {}", found(*v)));
  return false;
}

std::size_t reader::one_of(const key& k, std::span<const std::string> names) {
  const value* v = required(k);
  if (!v) return 0;
  const std::string* s = v->string();
  const char* few = names.size() == 1 ? "" : "one of ";
  if (!s) {
    fail(at(k), fmt::format("expected {}{}, found {}", few, fmt::join(names, ", "), found(*v)));
    return 0;
  }
  const auto it = std::find(names.begin(), names.end(), *s);
  if (it != names.end()) return static_cast<std::size_t>(it - names.begin());
  const std::string hint = nearest(*s, names);
  fail(at(k), fmt::format("expected {}{}, found {}", few, fmt::join(names, ", "), in_quotes(*s)), hint);
  return 0;
}

std::string reader::string_or(const key& k, std::string_view otherwise) {
  if (present(k)) return string(k);
  note_default(k, value{otherwise});
  return std::string(otherwise);
}

constant<std::int64_t> reader::integer_or(const key& k, std::int64_t otherwise, range<std::int64_t> r) {
  if (present(k)) return integer(k, r);
  note_default(k, value{otherwise});
  return otherwise;
}

constant<double> reader::number_or(const key& k, double otherwise, range<double> r) {
  if (present(k)) return number(k, r);
  note_default(k, value{otherwise});
  return otherwise;
}

bool reader::boolean_or(const key& k, bool otherwise) {
  if (present(k)) return boolean(k);
  note_default(k, value{otherwise});
  return otherwise;
}

std::size_t reader::one_of_or(const key& k, std::span<const std::string> names, std::size_t otherwise) {
  if (present(k)) return one_of(k, names);
  note_default(k, value{names[otherwise]});
  return otherwise;
}

std::optional<std::string> reader::find_string(const key& k) {
  if (!present(k)) return std::nullopt;
  return string(k);
}

std::optional<constant<std::int64_t>> reader::find_integer(const key& k, range<std::int64_t> r) {
  if (!present(k)) return std::nullopt;
  return integer(k, r);
}

std::optional<constant<double>> reader::find_number(const key& k, range<double> r) {
  if (!present(k)) return std::nullopt;
  return number(k, r);
}

reader reader::child(const key& k) {
  static const value nothing{value::object{}};
  const value* v = required(k);
  const bool good = v && v->members();
  if (v && !good) fail(at(k), fmt::format("expected an object, found {}", found(*v)));
  return reader(*this, good ? v : &nothing, pointer_to(pointer_, at(k)), silent_ || !good);
}

reader reader::child_or_empty(const key& k) {
  static const value nothing{value::object{}};
  if (auto r = find_child(k)) return *std::move(r);
  return {*this, &nothing, pointer_to(pointer_, k.canonical), silent_ || present(k) != nullptr};
}

std::optional<reader> reader::find_child(const key& k) {
  if (!present(k)) return std::nullopt;
  return child(k);
}

std::vector<std::pair<std::string, reader>> reader::children(const key& k) {
  std::vector<std::pair<std::string, reader>> out;
  reader table = child(k);
  for (const auto& [name, v] : *table.node_->members()) {
    if (v.is_null() || table.known_.contains(name)) continue;  // removed by an override, or the common source
    const std::string here = pointer_to(table.pointer_, name);
    if (v.members()) out.emplace_back(name, reader(table, &v, here, table.silent_));
    else table.fail(name, fmt::format("expected an object, found {}", found(v)));
  }
  return out;
}

std::vector<reader> reader::elements(const key& k) {
  std::vector<reader> out;
  const value* v = required(k);
  if (!v) return out;
  const auto* a = v->items();
  if (!a) {
    fail(at(k), fmt::format("expected an array, found {}", found(*v)));
    return out;
  }
  const std::string base = pointer_to(pointer_, at(k));
  for (std::size_t i = 0; i < a->size(); ++i) {
    const std::string here = pointer_to(base, std::to_string(i));
    if ((*a)[i].members()) out.push_back(reader(*this, &(*a)[i], here, silent_));
    else if (!silent_)
      problems_->add(doc_->origin_of(here).where, here,
                     fmt::format("expected an object, found {}", found((*a)[i])));
  }
  return out;
}

std::vector<std::string> reader::names() const {
  std::vector<std::string> out;
  if (node_->members())
    for (const auto& m : *node_->members()) out.push_back(m.first);
  return out;
}

const value* reader::raw(const key& k) { return present(k); }

void reader::ignore(const key& k) { present(k); }

std::optional<std::pair<std::string, origin>> reader::override_in(const std::string& pointer) const {
  if (const origin& o = doc_->origin_of(pointer); o.overrides) return {{pointer, o}};
  const std::string inside = pointer + "/";
  for (auto it = doc_->origins.lower_bound(inside); it != doc_->origins.end() && it->first.starts_with(inside);
       ++it)
    if (it->second.overrides) return *it;
  return std::nullopt;
}

void reader::refuse_unread(bool overrides_only, std::string_view what) const {
  if (silent_) return;
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& [name, v] : *node_->members()) {
    if (known_.contains(name)) continue;
    const std::string here = pointer_to(pointer_, name);
    const auto by = override_in(here);
    if (overrides_only && !by) continue;
    problems_->add(by ? by->second.where : doc_->origin_of(here).where, by ? by->first : here, std::string(what),
                   nearest(name, known));
  }
}

void reader::done() const { refuse_unread(false, "unknown member"); }
void reader::done_with_overrides() const { refuse_unread(true, "unknown member: setting it changes nothing"); }

}  // namespace nvlsim::config
