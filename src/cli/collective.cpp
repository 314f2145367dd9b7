// nvlsim collective
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "cli/commands.hpp"
#include "cli/support.hpp"
#include "nvlsim/collectives.hpp"
#include "nvlsim/layout.hpp"
#include "nvlsim/output.hpp"
#include "output/nccl_table.hpp"
#include "scenario/inputs.hpp"

namespace nvlsim::cli {
namespace {

struct datatype {
  std::string_view name;
  int bytes;
};
constexpr std::array<datatype, 7> datatypes = {{{"float", 4}, {"half", 2}, {"bfloat16", 2}, {"double", 8}, {"int8", 1}, {"uint8", 1}, {"int32", 4}}};

/// nccl-tests' sizes: digits and K, M or G for powers of 1024.
double size_of(const char* option, const std::string& text, diagnostics& problems) {
  double v = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), v);
  const std::string suffix(end, static_cast<const char*>(text.data() + text.size()));
  static constexpr std::array<std::pair<std::string_view, double>, 8> factors = {
      {{"", 1}, {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}, {"k", 0x1p10}, {"m", 0x1p20}, {"g", 0x1p30}}};
  for (const auto& [s, f] : factors)
    if (status == std::errc() && suffix == s && v >= 0 && v * f <= 1e15) return v * f;
  problems.add(option, "", fmt::format("\"{}\" is no size such as 8, 64K, 128M or 16G", text));
  return 0;
}

std::vector<double> sizes_of(const collective_arguments& a, diagnostics& problems) {
  const double first = size_of("-b", a.begin, problems), last = size_of("-e", a.end, problems);
  std::vector<double> out;
  if (!problems.empty()) return out;
  if (last < first) problems.add("-e", "", fmt::format("{} is less than -b {}", a.end, a.begin));
  const double step = a.increment > 0 ? static_cast<double>(a.increment) : 1 << 20;  // nccl-tests' default step
  for (double s = first; s <= last && out.size() < 100'000; s = a.factor > 1 ? std::max(s * static_cast<double>(a.factor), 1.0) : s + step)
    out.push_back(s);
  return out;
}

value as_json(collective kind, int ranks, const std::vector<nccl_row>& rows) {
  value list{value::array{}};
  for (const nccl_row& r : rows) {
    value x{value::object{}};
    const double t = r.time.base(), rate = t > 0 ? r.size.base() / t : 0;
    x.set("size_bytes", r.size.base());
    x.set("time_s", t);
    x.set("algbw_Bps", t > 0 ? value{rate} : value{});
    x.set("busbw_Bps", t > 0 ? value{rate * bus_factor(kind, ranks)} : value{});
    x.set("algorithm", r.algorithm);
    list.items()->push_back(std::move(x));
  }
  value out{value::object{}};
  out.set("collective", name(kind));
  out.set("ranks", ranks);
  out.set("results", std::move(list));
  return out;
}

}  // namespace

exit_code execute(const collective_arguments& a) {
  const data_folders data = folders_under(data_root());
  diagnostics problems;
  const std::vector<override_at> sets = parse_input_sets(a.sets);
  auto hardware = load_platform(a.platform, data, sets, {"--platform", "", {}, {}}, problems);
  const auto software = load_stack(a.stack, data, {}, {"--stack", "", {}, {}}, problems);
  const auto kind = collective_by_name(a.operation);
  if (!kind) {
    static const std::vector<std::string> names = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"};
    problems.add("", "", fmt::format("unknown operation \"{}\"", a.operation), nearest(a.operation, names));
  }
  const auto type = std::find_if(datatypes.begin(), datatypes.end(), [&](const auto& d) { return d.name == a.datatype; });
  if (type == datatypes.end()) problems.add("-d", "", fmt::format("unknown data type \"{}\"", a.datatype));
  const std::vector<double> sizes = sizes_of(a, problems);
  problems.throw_if_any();

  const platform& p = hardware.content;
  const std::int64_t domain = a.gpus_per_domain > 0 ? a.gpus_per_domain : p.gpus_per_rack();
  if (domain > p.gpus_per_rack())
    throw input_error({{"--gpus-per-domain", "", fmt::format("{} exceeds the {} GPUs of an NVLink domain", domain, p.gpus_per_rack()), {}}});
  const comm_group g = strided_group({domain}, 0, 1, a.gpus);
  std::vector<nccl_row> rows;
  for (const double s : sizes) {
    const collective_cost c = collective_time(software.content.collectives, p, *kind, bytes::from_base(s), g);
    rows.push_back({bytes::from_base(s), c.time, c.algorithm});
  }
  nccl_table_head head{*kind, g.ranks, type->name, type->bytes, a.reduction};
  print(a.format == "json" ? to_json(as_json(*kind, g.ranks, rows)) : nccl_table(head, rows));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
