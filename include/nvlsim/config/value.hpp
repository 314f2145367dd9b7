// A JSON value, so that no other header needs a JSON library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nvlsim {

/// null, boolean, integer, number, string, array or object. Objects keep the order of their members.
class value {
 public:
  using array = std::vector<value>;
  using member = std::pair<std::string, value>;
  using object = std::vector<member>;

  value() = default;
  value(std::nullptr_t) {}
  value(bool b) : v_(b) {}
  value(std::int64_t i) : v_(i) {}
  value(int i) : v_(static_cast<std::int64_t>(i)) {}
  value(double d) : v_(d) {}
  value(std::string s) : v_(std::move(s)) {}
  value(std::string_view s) : v_(std::string(s)) {}
  value(const char* s) : v_(std::string(s)) {}
  value(array a) : v_(std::move(a)) {}
  value(object o) : v_(std::move(o)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(v_); }
  const bool* boolean() const { return std::get_if<bool>(&v_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&v_); }
  const double* number() const { return std::get_if<double>(&v_); }
  const std::string* string() const { return std::get_if<std::string>(&v_); }
  const array* items() const { return std::get_if<array>(&v_); }
  const object* members() const { return std::get_if<object>(&v_); }
  array* items() { return std::get_if<array>(&v_); }
  object* members() { return std::get_if<object>(&v_); }

  /// "object", "array", "string", "number", "integer", "boolean" or "null".
  std::string_view type_name() const;

  /// A member of an object; nullptr if absent or if this is not an object.
  const value* find(std::string_view key) const;
  value* find(std::string_view key);
  /// Sets or replaces a member; a null value becomes an object first.
  value& set(std::string_view key, value v);

  /// The value at an RFC 6901 pointer, or nullptr.
  const value* at_pointer(std::string_view pointer) const;

  friend bool operator==(const value&, const value&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, array, object> v_;
};

/// The index that a reference token names in an array of `size` elements, or nothing.
std::optional<std::size_t> array_index(std::string_view token, std::size_t size);
/// `parent` + "/" + the key, with RFC 6901 escapes.
std::string pointer_to(std::string_view parent, std::string_view key);
/// The reference tokens of a pointer, unescaped. Requires `pointer` to be "" or to begin with "/".
std::vector<std::string> split_pointer(std::string_view pointer);

}  // namespace nvlsim
