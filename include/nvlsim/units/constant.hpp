// Constants that know which number of which file they are, and tell who records what a run reads.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Stands for a constant of the input files, or for several that a value was computed from. 0: for none.
using constant_id = std::uint32_t;

/// The id of a pointer such as "/platform/gpu/hbm_bandwidth": equal names, equal ids, in the whole process. May be
/// called by several threads.
constant_id constant_named(std::string_view name);

/// Records which constants this thread reads while it lives. The last one made records alone.
class constant_recorder {
 public:
  constant_recorder() : outer_(active) { active = this; }
  ~constant_recorder() { active = outer_; }
  constant_recorder(const constant_recorder&) = delete;
  constant_recorder& operator=(const constant_recorder&) = delete;

  /// Names of what was read, sorted.
  std::vector<std::string> names() const;
  /// One id that stands for all that was read.
  constant_id together() const;

  static bool recording() { return active != nullptr; }
  static void note(constant_id id) {
    if (active && id != 0) [[unlikely]]
      active->add(id);
  }

 private:
  friend class constants_unrecorded;
  void add(constant_id id);

  static inline constinit thread_local constant_recorder* active = nullptr;
  constant_recorder* outer_;
  std::vector<bool> seen_;  ///< by id
};

/// While it lives, what this thread reads is not recorded: for text about a run, which is not what the run does.
class constants_unrecorded {
 public:
  constants_unrecorded() : outer_(constant_recorder::active) { constant_recorder::active = nullptr; }
  ~constants_unrecorded() { constant_recorder::active = outer_; }
  constants_unrecorded(const constants_unrecorded&) = delete;
  constants_unrecorded& operator=(const constants_unrecorded&) = delete;

 private:
  constant_recorder* outer_;
};

/// A number of an input file: a double, an integer or a quantity, with the constant that it is. It reads as its
/// value; copies are the same constant, and so is what is written over it. Nothing is recorded by copying.
template <class T>
class constant {
 public:
  using value_type = T;

  constexpr constant() = default;
  constexpr constant(T value, constant_id id = 0) : value_(value), id_(id) {}
  template <class U>
  requires std::convertible_to<U, T>
  constexpr constant& operator=(const U& value) {
    value_ = static_cast<T>(value);
    return *this;
  }

  constexpr operator T() const { return read(); }
  constexpr T read() const {
    if (!std::is_constant_evaluated()) constant_recorder::note(id_);
    return value_;
  }
  /// The value, unrecorded.
  constexpr T peek() const { return value_; }
  constexpr constant_id id() const { return id_; }
  /// Of a quantity.
  constexpr double base() const requires requires(T v) { v.base(); }
  { return read().base(); }
  /// The same constant as another type of number.
  template <class U>
  constexpr constant<U> as() const {
    return {static_cast<U>(value_), id_};
  }

  /// Becomes what `compute` returns. Whoever reads it reads the constants that `compute` read.
  template <class F>
  void derive(F compute) {
    if (!constant_recorder::recording()) {
      value_ = compute();
      return;
    }
    const constant_recorder sources;
    value_ = compute();
    id_ = sources.together();
  }

  template <class U>
  constexpr constant& operator+=(const U& x) {
    value_ += x;
    return *this;
  }
  template <class U>
  constexpr constant& operator*=(const U& x) {
    value_ *= x;
    return *this;
  }

  /// Of values.
  template <std::same_as<constant> C>
  friend constexpr bool operator==(const C& a, const C& b) {
    return a.value_ == b.value_;
  }

 private:
  T value_{};
  constant_id id_ = 0;
};

// Products and quotients of quantities are templates, which do not convert their operands.
template <class A, class B>
constexpr auto operator*(const constant<quantity<A>>& a, quantity<B> b) {
  return a.read() * b;
}
template <class A, class B>
constexpr auto operator*(quantity<A> a, const constant<quantity<B>>& b) {
  return a * b.read();
}
template <class A, class B>
constexpr auto operator*(const constant<quantity<A>>& a, const constant<quantity<B>>& b) {
  return a.read() * b.read();
}
template <class A, class B>
constexpr auto operator/(const constant<quantity<A>>& a, quantity<B> b) {
  return a.read() / b;
}
template <class A, class B>
constexpr auto operator/(quantity<A> a, const constant<quantity<B>>& b) {
  return a / b.read();
}
template <class A, class B>
constexpr auto operator/(const constant<quantity<A>>& a, const constant<quantity<B>>& b) {
  return a.read() / b.read();
}

}  // namespace nvlsim
