#include "output/json.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

value strings(const std::vector<std::string>& texts) {
  value::array out(texts.begin(), texts.end());
  return value{std::move(out)};
}

/// Pointer to the first number that JSON cannot represent.
std::optional<std::string> not_finite(const value& v, const std::string& here) {
  if (const double* d = v.number(); d && !std::isfinite(*d)) return here;
  if (const auto* a = v.items()) {
    for (std::size_t i = 0; i < a->size(); ++i)
      if (auto p = not_finite((*a)[i], pointer_to(here, std::to_string(i)))) return p;
  } else if (const auto* o = v.members()) {
    for (const auto& [key, inner] : *o)
      if (auto p = not_finite(inner, pointer_to(here, key))) return p;
  }
  return std::nullopt;
}

class json_writer {
 public:
  explicit json_writer(int indent) : indent_(static_cast<std::size_t>(std::max(indent, 0))) {}

  /// Returns false if a number is not finite.
  bool write(const value& v) {
    if (const auto* a = v.items()) return write_array(*a);
    if (const auto* o = v.members()) return write_object(*o);
    if (const double* d = v.number()) {
      if (!std::isfinite(*d)) return false;
      output::append_number(out_, *d);
    } else if (const std::int64_t* i = v.integer()) {
      fmt::format_to(std::back_inserter(out_), FMT_COMPILE("{}"), *i);
    } else if (const std::string* s = v.string()) {
      output::append_json_string(out_, *s);
    } else if (const bool* b = v.boolean()) {
      out_ += *b ? "true" : "false";
    } else {
      out_ += "null";
    }
    return true;
  }

  std::string take() {
    out_ += '\n';
    return std::move(out_);
  }

 private:
  bool write_array(const value::array& a) {
    const bool flat = indent_ == 0 || std::all_of(a.begin(), a.end(), [](const value& v) {
                        return v.number() || v.integer() || v.is_null() || v.boolean();
                      });
    out_ += '[';
    ++depth_;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (i > 0) out_ += flat ? ", " : ",";
      if (!flat) new_line();
      if (!write(a[i])) return false;
    }
    --depth_;
    if (!flat) new_line();
    out_ += ']';
    return true;
  }

  bool write_object(const value::object& o) {
    out_ += '{';
    ++depth_;
    for (std::size_t i = 0; i < o.size(); ++i) {
      if (i > 0) out_ += indent_ == 0 ? ", " : ",";
      if (indent_ > 0) new_line();
      output::append_json_string(out_, o[i].first);
      out_ += ": ";
      if (!write(o[i].second)) return false;
    }
    --depth_;
    if (indent_ > 0 && !o.empty()) new_line();
    out_ += '}';
    return true;
  }

  void new_line() {
    out_ += '\n';
    out_.append(depth_ * indent_, ' ');
  }

  std::string out_;
  std::size_t indent_;
  std::size_t depth_ = 0;
};

const std::array<std::string, 4>& statuses() {
  static const std::array<std::string, 4> names = {"ok", "saturated", "infeasible", "error"};
  return names;
}

using output::is_number;

std::vector<std::string> read_strings(config::reader& r, std::string_view key) {
  std::vector<std::string> out;
  const value* v = r.raw(key);
  const auto* a = v ? v->items() : nullptr;
  if (!a) {
    r.fail(key, "expected an array of strings");
    return out;
  }
  for (std::size_t i = 0; i < a->size(); ++i) {
    if (const std::string* s = (*a)[i].string()) out.push_back(*s);
    else r.fail(key, fmt::format("element {}: expected a string, found {}", i, (*a)[i].type_name()));
  }
  return out;
}

value read_section(config::reader& r, std::string_view key) {
  const value* v = r.raw(key);
  if (v && v->members()) return *v;
  r.fail(key, fmt::format("expected an object, found {}", v ? v->type_name() : "nothing"));
  return value{value::object{}};
}

/// Checks that a metric is null, a number, or a distribution (an object of numbers).
void check_metric(config::reader& r, const std::string& name, const value& v) {
  if (v.is_null() || is_number(v)) return;
  const auto* o = v.members();
  const bool good = o && std::all_of(o->begin(), o->end(), [](const value::member& m) {
                      return m.second.is_null() || is_number(m.second);
                    });
  if (!good) r.fail("metrics", fmt::format("\"{}\": expected a number, null or an object of numbers", name));
}

void check_band(config::reader& r, const std::string& name, const value& v) {
  const auto* a = v.items();
  if (a && a->size() == 2 && is_number((*a)[0]) && is_number((*a)[1])) return;
  r.fail("bands", fmt::format("\"{}\": expected [low, high]", name));
}

}  // namespace

value to_value(const result& r) {
  return value{value::object{{"schema", result_schema},
                             {"name", r.name},
                             {"status", name(r.status)},
                             {"reasons", strings(r.reasons)},
                             {"inputs", r.inputs},
                             {"metrics", r.metrics},
                             {"breakdown", r.breakdown},
                             {"memory", r.memory},
                             {"energy", r.energy},
                             {"cost", r.cost},
                             {"notes", strings(r.notes)},
                             {"bands", r.bands},
                             {"simulation", r.simulation}}};
}

std::string to_json(const value& v, int indent) {
  json_writer w(indent);
  if (w.write(v)) return w.take();
  throw internal_error(fmt::format("a number in a result is not finite: \"{}\"", not_finite(v, "").value_or("?")));
}

std::string results_json(std::span<const result> results) {
  if (results.size() == 1) return to_json(to_value(results.front()));
  value::array all;
  all.reserve(results.size());
  for (const result& r : results) all.push_back(to_value(r));
  return to_json(value{std::move(all)});
}

value error_value(exit_code code, std::string_view message, std::span<const problem> problems) {
  value::array list;
  for (const problem& p : problems)
    list.push_back(value::object{{"file", p.file},
                                 {"pointer", p.pointer},
                                 {"what", p.what},
                                 {"hint", p.hint.empty() ? value{} : value{p.hint}},
                                 {"text", p.text()}});
  return value{value::object{{"schema", "nvlsim.error/1"},
                             {"status", "error"},
                             {"exit_code", static_cast<int>(code)},
                             {"message", message},
                             {"problems", std::move(list)}}};
}

bool holds_results(const value& root) {
  const auto is_result = [](const value& v) {
    const value* schema = v.find("schema");
    return schema && schema->string() && schema->string()->starts_with("nvlsim.result/");
  };
  const auto* a = root.items();
  return a ? !a->empty() && is_result(a->front()) : is_result(root);
}

std::vector<result> read_results(std::string_view text, std::string_view file) {
  diagnostics problems;
  const config::origin self{"result", std::string(file)};
  config::document doc = config::parse(text, self, problems, config::root_type::any);
  problems.throw_if_any();
  std::vector<result> out;
  if (auto* a = doc.root.items()) {
    for (std::size_t i = 0; i < a->size(); ++i) {
      diagnostics own;
      out.push_back(output::result_from({std::move((*a)[i]), self, {}, {}, {}, {}, {}}, own));
      for (problem p : own.sorted()) {
        p.pointer.insert(0, fmt::format("/{}", i));
        problems.add(std::move(p));
      }
    }
  } else {
    out.push_back(output::result_from(std::move(doc), problems));
  }
  problems.throw_if_any();
  return out;
}

namespace output {

result result_from(config::document doc, diagnostics& problems) {
  result out;
  if (!doc.root.members()) {
    problems.add(doc.self.where, "", fmt::format("expected a result, found {}", doc.root.type_name()));
    return out;
  }
  config::reader r(doc, problems);
  static const std::array<std::string, 1> schemas = {std::string(result_schema)};
  r.one_of("schema", schemas);
  out.name = r.string("name");
  out.status = static_cast<run_status>(r.one_of("status", statuses()));
  out.reasons = read_strings(r, "reasons");
  out.inputs = read_section(r, "inputs");
  out.metrics = read_section(r, "metrics");
  out.breakdown = read_section(r, "breakdown");
  out.memory = read_section(r, "memory");
  out.energy = read_section(r, "energy");
  out.cost = read_section(r, "cost");
  out.notes = read_strings(r, "notes");
  out.bands = read_section(r, "bands");
  out.simulation = read_section(r, "simulation");
  for (const auto& [name, v] : *out.metrics.members()) check_metric(r, name, v);
  for (const auto& [name, v] : *out.bands.members()) check_band(r, name, v);
  r.done();
  return out;
}

}  // namespace output
}  // namespace nvlsim
