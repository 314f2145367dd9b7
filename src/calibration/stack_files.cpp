#include "calibration/stack_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/stack/compose.hpp"
#include "nvlsim/stack/releases.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

const config::origin fit{"fit", "fit"};
constexpr std::size_t line_width = 115;

/// Whether an object around `pointer` gives its numbers a source. That of a table of releases is for its cells.
bool has_source_around(const value& root, std::string pointer) {
  while (!pointer.empty() && pointer != "/releases/details") {
    pointer.erase(pointer.rfind('/'));
    if (const value* v = root.at_pointer(pointer); v && v->find("source") && v->find("kind")) return true;
  }
  return false;
}

/// On one line.
std::string flat(const value& v) {
  if (const auto* a = v.items()) {
    std::string out = "[";
    for (const value& e : *a) out += (out.size() > 1 ? ", " : "") + flat(e);
    return out + "]";
  }
  if (const auto* o = v.members()) {
    std::string out = "{";
    for (const auto& [key, e] : *o) {
      if (out.size() > 1) out += ", ";
      output::append_json_string(out, key);
      out += ": " + flat(e);
    }
    return out + "}";
  }
  std::string out = to_json(v, 0);
  out.pop_back();  // the line's end
  return out;
}

/// Rows of a table: name, then cells in columns.
std::string rows_text(const value::object& rows, const std::string& indent) {
  std::vector<std::vector<std::string>> table;
  std::vector<std::size_t> widths;
  for (const auto& [name, row] : rows) {
    auto& line = table.emplace_back();
    line.emplace_back();
    output::append_json_string(line.back(), name);
    line.back() += ": ";
    if (const auto* cells = row.items(); cells && !cells->empty()) {
      for (std::size_t i = 0; i < cells->size(); ++i)
        line.push_back(
            fmt::format("{}{}{}", i > 0 ? "" : "[", flat((*cells)[i]), i + 1 < cells->size() ? ", " : "]"));
    } else {
      line.push_back(flat(row));
    }
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], output::width(line[i]));
  }
  std::string out = "{";
  for (const auto& line : table) {
    out += (out.size() > 1 ? ",\n" : "\n") + indent + "  ";
    for (std::size_t i = 0; i < line.size(); ++i)
      out += i + 1 < line.size() ? output::padded_right(line[i], widths[i]) : line[i];
  }
  return out + "\n" + indent + "}";
}

/// `used`: columns of the line that are taken before the value.
std::string text_of(const value& v, const std::string& pointer, const std::string& indent, std::size_t used) {
  if (pointer == "/releases/rows" && v.members() && !v.members()->empty()) return rows_text(*v.members(), indent);
  const std::string line = flat(v);
  const bool nested = v.members() || v.items();
  if (!nested || (!pointer.empty() && used + line.size() + 1 <= line_width)) return line;
  const std::string inner = indent + "  ";
  std::string out = v.items() ? "[" : "{";
  const auto next = [&] { out += (out.size() > 1 ? ",\n" : "\n") + inner; };
  if (const auto* a = v.items()) {
    for (std::size_t i = 0; i < a->size(); ++i) {
      next();
      out += text_of((*a)[i], pointer_to(pointer, std::to_string(i)), inner, inner.size());
    }
  } else {
    for (const auto& [key, e] : *v.members()) {
      next();
      const std::size_t before = out.size();
      output::append_json_string(out, key);
      out += ": ";
      out += text_of(e, pointer_to(pointer, key), inner, inner.size() + out.size() - before);
    }
  }
  return out + "\n" + indent + (v.items() ? "]" : "}");
}

}  // namespace

stack_files::place stack_files::at(const std::string& name, const std::string& pointer) {
  const auto found = find_stack(folder_, name);
  if (!found)
    throw input_error({{folder_.string(), "", fmt::format("no stack {} to write into", in_quotes(name)), {}}});
  const std::string path = found->file.lexically_relative(folder_).generic_string();
  const auto [it, fresh] = files_.try_emplace(path);
  if (fresh) it->second = config::load(found->file, {"", path}, problems_);
  return {&it->second,
          found->release.empty() ? pointer : release_pointer(it->second.root, found->release, pointer)};
}

const value* stack_files::find(const std::string& name, const std::string& pointer) {
  const place p = at(name, pointer);
  return p.file->root.at_pointer(p.pointer);
}

void stack_files::set(const std::string& name, const std::string& pointer, value v) {
  const place p = at(name, pointer);
  config::override_value(*p.file, p.pointer, std::move(v), fit, problems_);
}

void stack_files::set_number(const std::string& name, const std::string& pointer, const std::string& text) {
  const place p = at(name, pointer);
  const value* old = p.file->root.at_pointer(p.pointer);
  const std::string target = old && old->members() ? p.pointer + "/value" : p.pointer;
  config::override_value(*p.file, target, config::parse_scalar(readable_quantity(text)), fit, problems_);
}

void stack_files::set_number_from(const std::string& name, const std::string& pointer, const std::string& text,
                                  std::string_view source) {
  const place p = at(name, pointer);
  const value* old = p.file->root.at_pointer(p.pointer);
  if ((old && old->members()) || has_source_around(p.file->root, p.pointer))
    return set_number(name, pointer, text);
  value sourced{value::object{
      {"value", config::parse_scalar(readable_quantity(text))}, {"kind", "derived"}, {"source", source}}};
  config::override_value(*p.file, p.pointer, std::move(sourced), fit, problems_);
}

std::vector<std::pair<std::string, std::string>> stack_files::texts() const {
  problems_.throw_if_any();
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [path, doc] : files_) out.emplace_back(path, stack_file_text(doc.root));
  return out;
}

std::string stack_file_text(const value& root) { return text_of(root, "", "", 0) + "\n"; }

std::string readable_quantity(const std::string& text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view written(text.data(), static_cast<std::size_t>(end - text.data()));
  if (status != std::errc() || end == text.data() + text.size() || *end != ' ' || number == 0) return text;
  std::string_view unit(end + 1, text.data() + text.size());
  static constexpr std::array<std::string_view, 10> prefixes = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  const bool time = unit == "s" || unit == "ms" || unit == "us" || unit == "ns";
  if (unit == "min" || !(written.find('e') != std::string_view::npos || (time && std::abs(number) >= 1000)))
    return text;
  std::size_t prefix = 3;
  if (unit.size() > 1)
    if (const auto it = std::find(prefixes.begin(), prefixes.end(), unit.substr(0, 1)); it != prefixes.end())
      prefix = static_cast<std::size_t>(it - prefixes.begin()), unit.remove_prefix(1);
  const std::size_t last = time ? 3 : prefixes.size() - 1;
  int digits = 0;
  for (const char c : written.substr(0, written.find('e')))
    digits += std::isdigit(static_cast<unsigned char>(c)) ? 1 : 0;
  while (std::abs(number) >= 1000 && prefix < last) number /= 1000, ++prefix;
  while (std::abs(number) < 1 && prefix > 0) number *= 1000, --prefix;
  return fmt::format("{:.{}g} {}{}", number, std::max(digits, 4), prefixes[prefix], unit);
}

}  // namespace nvlsim
