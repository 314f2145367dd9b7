#include "nvlsim/config/value.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace nvlsim {

std::string_view value::type_name() const {
  static constexpr std::array<std::string_view, 7> names = {"null",   "boolean", "integer", "number",
                                                            "string", "array",   "object"};
  return names[v_.index()];
}

const value* value::find(std::string_view key) const {
  if (const object* o = members())
    for (const member& m : *o)
      if (m.first == key) return &m.second;
  return nullptr;
}

value* value::find(std::string_view key) { return const_cast<value*>(std::as_const(*this).find(key)); }

value& value::set(std::string_view key, value v) {
  if (is_null()) v_ = object{};
  object* o = members();
  if (!o) throw std::logic_error("value::set on a " + std::string(type_name()));
  if (value* old = find(key)) return *old = std::move(v);
  return o->emplace_back(std::string(key), std::move(v)).second;
}

static const value* element(const value& of, std::string_view token) {
  const value::array* a = of.items();
  if (!a) return of.find(token);
  const auto index = array_index(token, a->size());
  return index ? &(*a)[*index] : nullptr;
}

const value* value::at_pointer(std::string_view pointer) const {
  if (!pointer.empty() && !pointer.starts_with('/'))
    throw std::invalid_argument("a JSON pointer begins with \"/\"");
  const value* v = this;
  while (v && !pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    v = token.find('~') == std::string_view::npos
            ? element(*v, token)
            : element(*v, split_pointer(std::string("/").append(token)).front());
  }
  return v;
}

std::optional<std::size_t> array_index(std::string_view token, std::size_t size) {
  std::size_t index = 0;
  const char* last = token.data() + token.size();
  const auto [end, status] = std::from_chars(token.data(), last, index);
  const bool canonical = token == "0" || !token.starts_with('0');
  if (status != std::errc() || end != last || !canonical || index >= size) return std::nullopt;
  return index;
}

std::string pointer_to(std::string_view parent, std::string_view key) {
  std::string out(parent);
  out += '/';
  for (const char c : key) {
    if (c == '~') out += "~0";
    else if (c == '/') out += "~1";
    else out += c;
  }
  return out;
}

std::vector<std::string> split_pointer(std::string_view pointer) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      out.emplace_back();
    } else if (out.empty()) {
      throw std::invalid_argument("a JSON pointer begins with \"/\"");
    } else if (pointer[i] == '~' && i + 1 < pointer.size() && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
      out.back() += pointer[++i] == '0' ? '~' : '/';
    } else {
      out.back() += pointer[i];
    }
  }
  return out;
}

}  // namespace nvlsim
