// One list of the members of a struct for reading it and for writing it: `list(f, s)` calls `f(name, member, ...)`
// for each, in the order of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim::config {

/// How a member that a file may leave out is read.
enum class absent {
  refused,  ///< it must be there
  kept,     ///< the member keeps what it has, and no default is recorded
  told      ///< the same, and it is a default of the document
};

/// Reads members out of an object.
class field_reader {
 public:
  explicit field_reader(reader& r) : r_(&r) {}

  void operator()(const key& k, std::string& m, absent a = absent::refused) const {
    if (a == absent::refused || r_->has(k)) m = r_->string(k);
  }
  void operator()(const key& k, bool& m, absent a = absent::refused) const {
    if (a == absent::told) m = r_->boolean_or(k, m);
    else if (a == absent::refused || r_->has(k)) m = r_->boolean(k);
  }
  template <class I>
  requires std::integral<I>
  void operator()(const key& k, constant<I>& m, range<std::int64_t> allowed, absent a = absent::refused) const {
    if (a == absent::told) m = r_->integer_or(k, m.peek(), allowed).template as<I>();
    else if (a == absent::refused || r_->has(k)) m = r_->integer(k, allowed).template as<I>();
  }
  void operator()(const key& k, constant<double>& m, range<double> allowed, absent a = absent::refused) const {
    if (a == absent::told) m = r_->number_or(k, m.peek(), allowed);
    else if (a == absent::refused || r_->has(k)) m = r_->number(k, allowed);
  }
  template <class D>
  void operator()(const key& k, constant<quantity<D>>& m, range<double> allowed = non_negative,
                  absent a = absent::refused) const {
    if (a == absent::refused || r_->has(k)) m = r_->quantity<nvlsim::quantity<D>>(k, allowed);
  }
  template <class D>
  void operator()(const key& k, std::optional<constant<quantity<D>>>& m,
                  range<double> allowed = non_negative) const {
    m = r_->find_quantity<nvlsim::quantity<D>>(k, allowed);
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(const key& k, E& m, std::span<const std::string> names, absent a = absent::refused) const {
    if (a == absent::told) m = static_cast<E>(r_->one_of_or(k, names, static_cast<std::size_t>(m)));
    else if (a == absent::refused || r_->has(k)) m = static_cast<E>(r_->one_of(k, names));
  }

 private:
  reader* r_;
};

/// Writes members into an object. What is read from it is equal to what was written.
class field_writer {
 public:
  explicit field_writer(value& out) : out_(&out) {}

  template <class... Rest>
  void operator()(const key& k, const std::string& m, Rest&&...) const {
    set(k, m);
  }
  template <class... Rest>
  void operator()(const key& k, bool m, Rest&&...) const {
    set(k, m);
  }
  template <class I, class... Rest>
  requires std::integral<I>
  void operator()(const key& k, const constant<I>& m, Rest&&...) const {
    set(k, static_cast<std::int64_t>(m.peek()));
  }
  template <class... Rest>
  void operator()(const key& k, const constant<double>& m, Rest&&...) const {
    set(k, m.peek());
  }
  template <class D, class... Rest>
  void operator()(const key& k, const constant<quantity<D>>& m, Rest&&...) const {
    set(k, exact_quantity(m.peek().base(), D::value));
  }
  template <class D, class... Rest>
  void operator()(const key& k, const std::optional<constant<quantity<D>>>& m, Rest&&...) const {
    if (m) (*this)(k, *m);
  }
  template <class E, class... Rest>
  requires std::is_enum_v<E>
  void operator()(const key& k, const E& m, std::span<const std::string> names, Rest&&...) const {
    set(k, names[static_cast<std::size_t>(m)]);
  }

 private:
  void set(const key& k, value v) const { out_->set(k.canonical, std::move(v)); }
  value* out_;
};

}  // namespace nvlsim::config
