// Quantities as types: `bytes / bandwidth` is `seconds`, and `bytes + seconds` does not compile.
// Every quantity stores a double in SI base units (B, s, FLOP, J, token, USD).
#pragma once

#include <compare>
#include <type_traits>

namespace nvlsim {

/// Exponents of the base dimensions of a quantity, as a run-time value.
struct dimension {
  int byte = 0, second = 0, flop = 0, joule = 0, token = 0, usd = 0;
  friend constexpr bool operator==(const dimension&, const dimension&) = default;
};

template <int Byte, int Second, int Flop = 0, int Joule = 0, int Token = 0, int Usd = 0>
struct dim {
  static constexpr dimension value{Byte, Second, Flop, Joule, Token, Usd};
};

/// A number with a dimension. Only `from_base` and `base` convert from and to plain numbers.
template <class D>
class quantity {
 public:
  using dim_type = D;

  constexpr quantity() = default;
  static constexpr quantity from_base(double value) noexcept { return quantity(value); }
  constexpr double base() const noexcept { return value_; }

  friend constexpr auto operator<=>(quantity, quantity) = default;
  friend constexpr quantity operator+(quantity a, quantity b) { return quantity(a.value_ + b.value_); }
  friend constexpr quantity operator-(quantity a, quantity b) { return quantity(a.value_ - b.value_); }
  friend constexpr quantity operator-(quantity a) { return quantity(-a.value_); }
  friend constexpr quantity operator*(quantity a, double k) { return quantity(a.value_ * k); }
  friend constexpr quantity operator*(double k, quantity a) { return quantity(a.value_ * k); }
  friend constexpr quantity operator/(quantity a, double k) { return quantity(a.value_ / k); }
  constexpr quantity& operator+=(quantity b) {
    value_ += b.value_;
    return *this;
  }
  constexpr quantity& operator-=(quantity b) {
    value_ -= b.value_;
    return *this;
  }
  constexpr quantity& operator*=(double k) {
    value_ *= k;
    return *this;
  }

 private:
  constexpr explicit quantity(double value) noexcept : value_(value) {}
  double value_ = 0;
};

namespace detail {
template <class D>
struct wrap {
  using type = quantity<D>;
};
template <>
struct wrap<dim<0, 0>> {
  using type = double;
};  // all exponents cancel: a plain number

template <class A, class B, int Sign>
struct combine;
template <int b1, int s1, int f1, int j1, int t1, int u1, int b2, int s2, int f2, int j2, int t2, int u2, int Sign>
struct combine<dim<b1, s1, f1, j1, t1, u1>, dim<b2, s2, f2, j2, t2, u2>, Sign> {
  using type = typename wrap<
      dim<b1 + Sign * b2, s1 + Sign * s2, f1 + Sign * f2, j1 + Sign * j2, t1 + Sign * t2, u1 + Sign * u2>>::type;
};

template <class R>
constexpr R make(double v) {
  if constexpr (std::is_same_v<R, double>) return v;
  else return R::from_base(v);
}
}  // namespace detail

template <class A, class B>
constexpr auto operator*(quantity<A> a, quantity<B> b) {
  return detail::make<typename detail::combine<A, B, 1>::type>(a.base() * b.base());
}
template <class A, class B>
constexpr auto operator/(quantity<A> a, quantity<B> b) {
  return detail::make<typename detail::combine<A, B, -1>::type>(a.base() / b.base());
}

using bytes = quantity<dim<1, 0>>;
using seconds = quantity<dim<0, 1>>;
using bandwidth = quantity<dim<1, -1>>;
using flops = quantity<dim<0, 0, 1>>;
using flop_rate = quantity<dim<0, -1, 1>>;
using joules = quantity<dim<0, 0, 0, 1>>;
using watts = quantity<dim<0, -1, 0, 1>>;
using token_count = quantity<dim<0, 0, 0, 0, 1>>;
using token_rate = quantity<dim<0, -1, 0, 0, 1>>;
using dollars = quantity<dim<0, 0, 0, 0, 0, 1>>;
using dollar_rate = quantity<dim<0, -1, 0, 0, 0, 1>>;
using rate = quantity<dim<0, -1>>;  ///< events per second
using energy_per_byte = quantity<dim<-1, 0, 0, 1>>;
using energy_per_flop = quantity<dim<0, 0, -1, 1>>;

inline namespace literals {
constexpr bytes operator""_B(long double v) { return bytes::from_base(static_cast<double>(v)); }
constexpr bytes operator""_GB(long double v) { return bytes::from_base(static_cast<double>(v) * 1e9); }
constexpr bytes operator""_GiB(long double v) { return bytes::from_base(static_cast<double>(v) * 1073741824.0); }
constexpr bandwidth operator""_GBps(long double v) { return bandwidth::from_base(static_cast<double>(v) * 1e9); }
constexpr bandwidth operator""_Gbps(long double v) {
  return bandwidth::from_base(static_cast<double>(v) * 1e9 / 8);
}
constexpr seconds operator""_s(long double v) { return seconds::from_base(static_cast<double>(v)); }
constexpr seconds operator""_us(long double v) { return seconds::from_base(static_cast<double>(v) * 1e-6); }
constexpr flop_rate operator""_TFLOPS(long double v) {
  return flop_rate::from_base(static_cast<double>(v) * 1e12);
}
constexpr watts operator""_W(long double v) { return watts::from_base(static_cast<double>(v)); }
}  // namespace literals

}  // namespace nvlsim
