#include "stack/kernel_fields.hpp"
#include "stack/read_parts.hpp"

namespace nvlsim {

using namespace kernel_fields;

namespace {

template <class P>
value written(const P& p) {
  value out{value::object{}};
  for (const field<P>& f : fields<P>) f.how.write(out, f.name, p);
  return out;
}

std::string_view text_of(precision p) { return name(p); }
std::string_view text_of(const std::string& s) { return s; }

/// Groups by number format or by family.
template <class K, class P>
void write_groups(value& out, const char* name, const std::map<K, P>& groups) {
  if (groups.empty()) return;
  value table{value::object{}};
  for (const auto& [k, p] : groups) table.set(text_of(k), written(p));
  out.set(name, std::move(table));
}

template <class P>
void write_group(value& out, const char* name, const std::optional<P>& p) {
  if (p) out.set(name, written(*p));
}

value written_peaks(const std::map<precision, constant<flop_rate>>& peaks) {
  value out{value::object{}};
  for (const auto& [p, rate] : peaks) config::field_writer{out}(std::string(name(p)), rate);
  return out;
}

value written_profile(const kernel_profile& k) {
  value out{value::object{}};
  write_groups(out, "gemm", k.gemm);
  write_groups(out, "weight_only", k.weight_only);
  write_groups(out, "absorb_keys", k.absorb_keys);
  write_groups(out, "absorb_values", k.absorb_values);
  out.set("attention", written(k.attention));
  write_group(out, "attention_fp8", k.attention_fp8);
  out.set("decode", written(k.decode));
  write_group(out, "decode_fp8", k.decode_fp8);
  write_groups(out, "single_decode", k.single_decode);
  write_group(out, "ungrouped_decode", k.ungrouped_decode);
  write_groups(out, "mla_context", k.mla_context);
  write_groups(out, "mla_decode", k.mla_decode);
  write_groups(out, "moe", k.moe);
  out.set("stream", written(k.stream));
  write_group(out, "amax", k.amax);
  const config::field_writer f(out);
  f("power_exponent", k.power_exponent);
  f("ultra_factor", k.ultra_factor);
  f("dynamic_power_of_origin", k.dynamic_power_of_origin);
  if (!k.peaks_of_origin.empty()) out.set("peaks_of_origin", written_peaks(k.peaks_of_origin));
  if (k.measured_on) {
    value m{value::object{{"peaks", written_peaks(k.measured_on->peaks)}}};
    config::field_writer{m}("dynamic_power", k.measured_on->dynamic_power);
    config::field_writer{m}("sm_count", k.measured_on->sm_count);
    out.set("measured_on", std::move(m));
  }
  return out;
}

}  // namespace

value write_kernels(const std::map<std::string, kernel_profile>& kernels) {
  value out{value::object{}};
  for (const auto& [gpu, k] : kernels) out.set(gpu, written_profile(k));
  return out;
}

}  // namespace nvlsim
