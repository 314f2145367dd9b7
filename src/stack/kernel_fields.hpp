// Members of the parameters of kernels: one list for reading them and for writing them.
#pragma once

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "nvlsim/config/fields.hpp"
#include "nvlsim/stack/stack.hpp"

namespace nvlsim::kernel_fields {

using config::range;
using config::reader;

inline constexpr range<double> share{config::positive.low, 1.0};

/// One member of a parameter group. A member that is not required keeps the struct's default.
template <class P>
struct field {
  const char* name;
  struct {
    void (*read)(reader&, const char*, range<double>, P&);
    void (*write)(value&, const char*, const P&);
  } how;
  range<double> allowed;
  bool required = true;
};

template <class T>
struct bare;
template <class T>
struct bare<constant<T>> {
  using type = T;
};
template <class T>
struct bare<std::optional<constant<T>>> {
  using type = T;
};

inline std::vector<std::string> precision_names() {
  std::vector<std::string> out;
  for (const precision p : all_precisions) out.emplace_back(name(p));
  return out;
}

template <class P, class T>
P owner_of(T P::*);
template <auto Member>
using owner = decltype(owner_of(Member));

template <auto Member>
struct quantity {
  using P = owner<Member>;
  static void read(reader& r, const char* k, range<double> allowed, P& p) {
    using type = typename bare<std::remove_reference_t<decltype(p.*Member)>>::type;
    if (const auto q = r.find_quantity<type>(k, allowed)) p.*Member = *q;
  }
  static void write(value& out, const char* k, const P& p) { config::field_writer{out}(k, p.*Member); }
};

template <auto Member>
struct number {
  using P = owner<Member>;
  static void read(reader& r, const char* k, range<double> allowed, P& p) {
    if (const auto x = r.find_number(k, allowed)) p.*Member = *x;
  }
  static void write(value& out, const char* k, const P& p) { config::field_writer{out}(k, p.*Member); }
};

template <auto Member>
struct format {
  using P = owner<Member>;
  static void read(reader& r, const char* k, range<double>, P& p) {
    const auto text = r.find_string(k);
    if (!text) return;
    if (const auto f = precision_by_name(*text)) p.*Member = *f;
    else r.fail(k, fmt::format("unknown number format \"{}\"", *text), nearest(*text, precision_names()));
  }
  static void write(value& out, const char* k, const P& p) { out.set(k, name(p.*Member)); }
};

template <class P>
inline constexpr auto fields = nullptr;

template <>
inline constexpr auto fields<gemm_params> = std::to_array<field<gemm_params>>({
    {"tensor_rate",
     {&quantity<&gemm_params::tensor_rate>::read, &quantity<&gemm_params::tensor_rate>::write},
     config::positive},
    {"step_time",
     {&quantity<&gemm_params::step_time>::read, &quantity<&gemm_params::step_time>::write},
     config::non_negative},
    {"fill_depth",
     {&number<&gemm_params::fill_depth>::read, &number<&gemm_params::fill_depth>::write},
     config::non_negative},
    {"hbm_share", {&number<&gemm_params::hbm_share>::read, &number<&gemm_params::hbm_share>::write}, share},
    {"launch",
     {&quantity<&gemm_params::launch>::read, &quantity<&gemm_params::launch>::write},
     config::non_negative},
    {"cast_passes",
     {&number<&gemm_params::cast_passes>::read, &number<&gemm_params::cast_passes>::write},
     config::non_negative},
    {"cast_row_time",
     {&quantity<&gemm_params::cast_row_time>::read, &quantity<&gemm_params::cast_row_time>::write},
     config::non_negative,
     false},
    {"output_bytes",
     {&number<&gemm_params::output_bytes>::read, &number<&gemm_params::output_bytes>::write},
     config::non_negative},
    {"split_time",
     {&quantity<&gemm_params::split_time>::read, &quantity<&gemm_params::split_time>::write},
     config::non_negative,
     false},
    {"l2_speedup",
     {&number<&gemm_params::l2_speedup>::read, &number<&gemm_params::l2_speedup>::write},
     {0.1, 10},
     false},
});

template <>
inline constexpr auto fields<attention_params> = std::to_array<field<attention_params>>({
    {"tensor_rate",
     {&quantity<&attention_params::tensor_rate>::read, &quantity<&attention_params::tensor_rate>::write},
     config::positive},
    {"exponential_share",
     {&number<&attention_params::exponential_share>::read, &number<&attention_params::exponential_share>::write},
     config::positive},
    {"item_time",
     {&quantity<&attention_params::item_time>::read, &quantity<&attention_params::item_time>::write},
     config::non_negative},
    {"item_rows",
     {&number<&attention_params::item_rows>::read, &number<&attention_params::item_rows>::write},
     {1, 1e6},
     false},
    {"tail_share",
     {&number<&attention_params::tail_share>::read, &number<&attention_params::tail_share>::write},
     {0, 10},
     false},
    {"launch",
     {&quantity<&attention_params::launch>::read, &quantity<&attention_params::launch>::write},
     config::non_negative},
    {"io_passes",
     {&number<&attention_params::io_passes>::read, &number<&attention_params::io_passes>::write},
     config::non_negative},
    {"backward_efficiency",
     {&number<&attention_params::backward_efficiency>::read,
      &number<&attention_params::backward_efficiency>::write},
     config::positive},
    {"fp8_speedup",
     {&number<&attention_params::fp8_speedup>::read, &number<&attention_params::fp8_speedup>::write},
     config::positive},
    {"power_share",
     {&number<&attention_params::power_share>::read, &number<&attention_params::power_share>::write},
     config::fraction,
     false},
});

template <>
inline constexpr auto fields<decode_params> = std::to_array<field<decode_params>>({
    {"hbm_share", {&number<&decode_params::hbm_share>::read, &number<&decode_params::hbm_share>::write}, share},
    {"launch",
     {&quantity<&decode_params::launch>::read, &quantity<&decode_params::launch>::write},
     config::non_negative},
    {"item_time",
     {&quantity<&decode_params::item_time>::read, &quantity<&decode_params::item_time>::write},
     config::non_negative},
    {"head_time",
     {&quantity<&decode_params::head_time>::read, &quantity<&decode_params::head_time>::write},
     config::non_negative,
     false},
    {"split_time",
     {&quantity<&decode_params::split_time>::read, &quantity<&decode_params::split_time>::write},
     config::non_negative},
    {"part_time",
     {&quantity<&decode_params::part_time>::read, &quantity<&decode_params::part_time>::write},
     config::non_negative,
     false},
    {"chunk", {&number<&decode_params::chunk>::read, &number<&decode_params::chunk>::write}, {1, 1e9}},
    {"part_rate",
     {&quantity<&decode_params::part_rate>::read, &quantity<&decode_params::part_rate>::write},
     config::positive,
     false},
    {"l2_speedup",
     {&number<&decode_params::l2_speedup>::read, &number<&decode_params::l2_speedup>::write},
     {1, 10},
     false},
});

template <>
inline constexpr auto fields<ungrouped_decode_params> = std::to_array<field<ungrouped_decode_params>>({
    {"beyond",
     {&number<&ungrouped_decode_params::beyond>::read, &number<&ungrouped_decode_params::beyond>::write},
     config::positive},
    {"item_time",
     {&quantity<&ungrouped_decode_params::item_time>::read, &quantity<&ungrouped_decode_params::item_time>::write},
     config::non_negative},
    {"key_time",
     {&quantity<&ungrouped_decode_params::key_time>::read, &quantity<&ungrouped_decode_params::key_time>::write},
     config::non_negative},
    {"chunk",
     {&number<&ungrouped_decode_params::chunk>::read, &number<&ungrouped_decode_params::chunk>::write},
     {1, 1e9}},
});

template <>
inline constexpr auto fields<mla_decode_params> = std::to_array<field<mla_decode_params>>({
    {"tensor_rate",
     {&quantity<&mla_decode_params::tensor_rate>::read, &quantity<&mla_decode_params::tensor_rate>::write},
     config::positive},
    {"hbm_share",
     {&number<&mla_decode_params::hbm_share>::read, &number<&mla_decode_params::hbm_share>::write},
     share},
    {"launch",
     {&quantity<&mla_decode_params::launch>::read, &quantity<&mla_decode_params::launch>::write},
     config::non_negative},
    {"item_time",
     {&quantity<&mla_decode_params::item_time>::read, &quantity<&mla_decode_params::item_time>::write},
     config::non_negative},
    {"split_time",
     {&quantity<&mla_decode_params::split_time>::read, &quantity<&mla_decode_params::split_time>::write},
     config::non_negative},
    {"part_time",
     {&quantity<&mla_decode_params::part_time>::read, &quantity<&mla_decode_params::part_time>::write},
     config::non_negative,
     false},
    {"chunk", {&number<&mla_decode_params::chunk>::read, &number<&mla_decode_params::chunk>::write}, {1, 1e9}},
    {"narrow_tile",
     {&number<&mla_decode_params::narrow_tile>::read, &number<&mla_decode_params::narrow_tile>::write},
     {1, 64},
     false},
});

template <>
inline constexpr auto fields<moe_params> = std::to_array<field<moe_params>>({
    {"weights", {&format<&moe_params::weights>::read, &format<&moe_params::weights>::write}, {}},
    {"activations", {&format<&moe_params::activations>::read, &format<&moe_params::activations>::write}, {}},
    {"tensor_rate",
     {&quantity<&moe_params::tensor_rate>::read, &quantity<&moe_params::tensor_rate>::write},
     config::positive},
    {"step_time",
     {&quantity<&moe_params::step_time>::read, &quantity<&moe_params::step_time>::write},
     config::non_negative},
    {"fill_depth",
     {&number<&moe_params::fill_depth>::read, &number<&moe_params::fill_depth>::write},
     config::non_negative,
     false},
    {"hbm_share", {&number<&moe_params::hbm_share>::read, &number<&moe_params::hbm_share>::write}, share},
    {"launch",
     {&quantity<&moe_params::launch>::read, &quantity<&moe_params::launch>::write},
     config::non_negative},
    {"expert_time",
     {&quantity<&moe_params::expert_time>::read, &quantity<&moe_params::expert_time>::write},
     config::non_negative},
    {"pair_passes",
     {&number<&moe_params::pair_passes>::read, &number<&moe_params::pair_passes>::write},
     config::non_negative},
    {"token_passes",
     {&number<&moe_params::token_passes>::read, &number<&moe_params::token_passes>::write},
     config::non_negative},
    {"exposed_share",
     {&number<&moe_params::exposed_share>::read, &number<&moe_params::exposed_share>::write},
     config::fraction,
     false},
    {"tile_margin",
     {&number<&moe_params::tile_margin>::read, &number<&moe_params::tile_margin>::write},
     {1, 1024},
     false},
    {"tallest_tile",
     {&number<&moe_params::tallest_tile>::read, &number<&moe_params::tallest_tile>::write},
     {16, 256},
     false},
});

template <>
inline constexpr auto fields<stream_params> = std::to_array<field<stream_params>>({
    {"hbm_share",
     {&number<&stream_params::hbm_share>::read, &number<&stream_params::hbm_share>::write},
     config::positive},
    {"launch",
     {&quantity<&stream_params::launch>::read, &quantity<&stream_params::launch>::write},
     config::non_negative},
    {"l2_speedup",
     {&number<&stream_params::l2_speedup>::read, &number<&stream_params::l2_speedup>::write},
     {0.1, 10},
     false},
});

}  // namespace nvlsim::kernel_fields
