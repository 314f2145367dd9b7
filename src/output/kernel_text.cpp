#include "nvlsim/output/studies.hpp"

#include <fmt/format.h>

#include "nvlsim/config/document.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {

value kernel_json(const kernel_answer& a) {
  const double t = a.time.base(), reached = t > 0 ? a.flop.base() / t : 0;
  value out{value::object{}};
  out.set("family", a.group);
  out.set("platform", a.platform);
  out.set("gpu", a.gpu);
  out.set("parameters_of", a.parameters_of);
  out.set("time_s", t);
  out.set("band_90_s",
          a.spread ? value{value::array{value{t * a.spread->low}, value{t * a.spread->high}}} : value{});
  out.set("work_flop", a.flop.base());
  out.set("moved_bytes", a.moved.base());
  out.set("rate_flops", reached);
  out.set("share_of_dense_peak", a.dense_peak && reached > 0 ? value{reached / a.dense_peak->base()} : value{});
  out.set("hbm_Bps", t > 0 ? value{a.moved.base() / t} : value{});
  out.set("bound", a.resource);
  out.set("power_w", a.power.base());
  out.set("energy_j", a.power.base() * t);
  out.set("formula", a.formula);
  out.set("notes", a.note);
  value numbers{value::object{}};
  for (const auto& [member, text] : a.parameters) numbers.set(member, config::parse_scalar(text));
  out.set("parameters", std::move(numbers));
  return out;
}

std::string kernel_text(const kernel_answer& a) {
  const double t = a.time.base();
  const auto line = [](const std::string& what, const std::string& v) {
    constexpr std::size_t label = 23;
    std::string lines;
    for (const std::string& part : output::wrapped(v, output::table_columns - label))
      lines += fmt::format("{:<22} {}\n", lines.empty() ? what : "", part);
    return lines;
  };
  std::string out = line("kernel", fmt::format("{} on {} (parameters of {})", a.group, a.gpu, a.parameters_of));
  out += line("time", format_quantity(a.time));
  if (a.spread)
    out += line("90 % of measurements",
                fmt::format("{} to {} ({} {} on {}, {} rows)", format_quantity(a.time * a.spread->low),
                            format_quantity(a.time * a.spread->high),
                            a.spread->held_out ? "left out of the fit:" : "fitted:", a.spread->family,
                            a.spread->gpu, a.spread->rows));
  if (a.flop.base() > 0 && t > 0) {
    const double reached = a.flop.base() / t;
    out += line("rate", fmt::format("{:.4g} TFLOPS{}", reached / 1e12,
                                    a.dense_peak ? fmt::format(", {:.1f} % of the dense peak",
                                                               100 * reached / a.dense_peak->base())
                                                 : ""));
  }
  if (t > 0)
    out += line("HBM", fmt::format("{:.4g} TB/s, {:.1f} % of the data sheet", a.moved.base() / t / 1e12,
                                   100 * a.moved.base() / t / a.hbm_bandwidth.base()));
  out += line("bound by", std::string(a.resource));
  out += line("power", fmt::format("{:.0f} W, {:.4g} J", a.power.base(), a.power.base() * t));
  if (!a.note.empty()) out += line("note", a.note);
  out += line("formula", a.formula);
  for (const auto& [member, text] : a.parameters) out += line("  " + member, text);
  return out;
}

}  // namespace nvlsim
