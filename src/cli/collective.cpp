// nvlsim collective
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/support.hpp"
#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/output/nccl_table.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/simulator/simulation.hpp"

namespace nvlsim::cli {
namespace {

struct datatype {
  std::string_view name;
  int bytes;
};
constexpr std::array<datatype, 12> datatypes = {{{"float", 4},
                                                 {"half", 2},
                                                 {"bfloat16", 2},
                                                 {"double", 8},
                                                 {"int8", 1},
                                                 {"uint8", 1},
                                                 {"int32", 4},
                                                 {"uint32", 4},
                                                 {"int64", 8},
                                                 {"uint64", 8},
                                                 {"f8e4m3", 1},
                                                 {"f8e5m2", 1}}};

/// Parses sizes as nccl-tests does: digits and K, M or G for powers of 1024.
double size_of(const char* option, const std::string& text, diagnostics& problems) {
  double v = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), v);
  const std::string suffix(end, static_cast<const char*>(text.data() + text.size()));
  static constexpr std::array<std::pair<std::string_view, double>, 8> factors = {{{"", 1},
                                                                                  {"K", 0x1p10},
                                                                                  {"M", 0x1p20},
                                                                                  {"G", 0x1p30},
                                                                                  {"T", 0x1p40},
                                                                                  {"k", 0x1p10},
                                                                                  {"m", 0x1p20},
                                                                                  {"g", 0x1p30}}};
  for (const auto& [s, f] : factors)
    if (status == std::errc() && suffix == s && v >= 0 && v * f <= 1e15) return v * f;
  problems.add(option, "", fmt::format("\"{}\" is not a size such as 8, 64K, 128M or 16G", text));
  return 0;
}

std::vector<double> message_sizes(const collective_arguments& a, diagnostics& problems) {
  const double first = size_of("-b", a.begin, problems), last = size_of("-e", a.end, problems);
  const double step = size_of("-i", a.increment, problems);
  std::vector<double> out;
  if (!problems.empty()) return out;
  if (a.factor <= 1 && step < 1) problems.add("-i", "", fmt::format("{} is less than one byte", a.increment));
  if (last < first) problems.add("-e", "", fmt::format("{} is less than -b {}", a.end, a.begin));
  constexpr std::size_t max = 100'000;
  if (a.factor <= 1 && (last - first) / std::max(step, 1.0) > static_cast<double>(max))
    problems.add(
        "-i", "",
        fmt::format("steps of {:.0f} B from {} to {} give more than {} sizes", step, a.begin, a.end, max));
  for (double s = first; s <= last && out.size() < max;
       s = a.factor > 1 ? std::max(s * static_cast<double>(a.factor), 1.0) : s + step)
    out.push_back(s);
  return out;
}

/// What to time: a library collective, or an expert exchange.
struct operation {
  std::string name;
  collective kind = collective::all_to_all;
  std::string kernel;    ///< expert-exchange kernel; "" for library collectives
  std::string dispatch;  ///< that which dispatches the tokens
};

std::vector<operation> operations_of(const collective_arguments& a, diagnostics& problems) {
  std::vector<operation> out;
  std::vector<std::string> known(collective_names().begin(), collective_names().end());
  known.insert(known.end(), {"moe_dispatch", "moe_combine"});
  for (const std::string& word : a.operations) {
    if (const auto kind = collective_by_name(word)) {
      out.push_back({std::string(name(*kind)), *kind, {}, {}});
    } else if (word == "moe_dispatch" || word == "moe_combine") {
      out.push_back({word, collective::all_to_all, fmt::format("{}_{}_{}", a.kernel, word.substr(4), a.precision),
                     fmt::format("{}_dispatch_{}", a.kernel, a.precision)});
    } else {
      problems.add("", "", fmt::format("unknown operation \"{}\"", word), nearest(word, known));
    }
  }
  return out;
}

/// Settings common to all operations and sizes.
struct setting {
  const collective_arguments& arguments;
  const platform& hardware;
  const stack& software;
  placement place;
  communicator group;
};

/// Bytes per token as it is dispatched, also of what combines them again.
double token_bytes(const setting& s, const operation& o) {
  const auto& kernels = s.software.collectives.expert;
  const auto it = kernels.find(o.dispatch);
  if (it != kernels.end() && kernels.contains(o.kernel)) return s.arguments.hidden * it->second.element_bytes;
  std::vector<std::string> known;
  for (const auto& [kernel, k] : s.software.collectives.expert) known.push_back(kernel);
  throw input_error({{"--kernel",
                      "",
                      fmt::format("{} has no expert exchange \"{}\"; it has {}", s.software.name, o.kernel,
                                  fmt::join(known, ", ")),
                      {}}});
}

expert_traffic tokens_in(const setting& s, const operation& o, double size) {
  expert_traffic t{size / token_bytes(s, o), s.arguments.top_k, s.arguments.hidden, s.group.ranks};
  t.skew = s.arguments.skew;
  return t;
}

collective_cost closed_cost(const setting& s, const operation& o, double size, bool in_place) {
  const collective_profile& profile = s.software.collectives;
  if (!o.kernel.empty())
    return expert_exchange_cost(profile, s.hardware, o.kernel, tokens_in(s, o, size), s.group).value();
  collective_options options;
  options.algorithm = s.arguments.algorithm;
  options.protocol = s.arguments.protocol;
  options.in_place = in_place;
  options.skew = o.kind == collective::all_to_all ? s.arguments.skew : 1;
  return collective_time(profile, s.hardware, {o.kind, bytes::from_base(size), s.group, options});
}

/// Spread of measured times around the simulated one. None if a skew was given, because skewed exchanges were not
/// measured.
std::optional<collective_spread> spread_around(const setting& s, const operation& o, double size,
                                               const collective_cost& c) {
  const collective_profile& profile = s.software.collectives;
  if (s.arguments.skew != 1) return std::nullopt;
  if (o.kernel.empty()) return spread_of(profile, s.hardware, {o.kind, bytes::from_base(size), s.group, {}}, c);
  const auto it = profile.spreads.find("expert_exchange/" + o.kernel);
  return c.derived || it == profile.spreads.end() ? std::nullopt : std::optional(it->second);
}

nccl_row timed(const setting& s, const operation& o, double size) {
  const collective_cost c = closed_cost(s, o, size, false);
  nccl_row row{bytes::from_base(size), c.time, c.algorithm, closed_cost(s, o, size, true).time, c.derived};
  if (const auto spread = spread_around(s, o, size, c)) row.low = spread->low, row.high = spread->high;
  if (s.arguments.fidelity == "closed") return row;
  collective_workload w;
  w.operation = o.kind;
  w.size = row.size;
  w.gpus = s.arguments.gpus;
  w.algorithm = s.arguments.algorithm;
  w.protocol = s.arguments.protocol;
  if (o.kind == collective::all_to_all) w.skew = s.arguments.skew;
  w.place = s.place;
  const fidelity f = s.arguments.fidelity == "flow" ? fidelity::flow : fidelity::exact;
  const collective_run run = plan_collective(s.hardware, s.software, w, f, true);
  row.time = row.time_in_place = simulate(run.planned, run.hardware, {f}).makespan;
  return row;
}

/// Finds, to the byte, the sizes at which the algorithm or protocol changes.
std::vector<regime> regimes_of(const setting& s, const operation& o, const std::vector<nccl_row>& rows) {
  std::vector<regime> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].algorithm == rows[i - 1].algorithm) continue;
    double high = rows[i].size.base();
    for (double low = i > 0 ? rows[i - 1].size.base() : high; high - low > 1;) {
      const double middle = std::floor((low + high) / 2);
      (closed_cost(s, o, middle, false).algorithm == rows[i].algorithm ? high : low) = middle;
    }
    out.push_back({bytes::from_base(high), rows[i].algorithm});
  }
  return out;
}

std::string placement_text(const setting& s) {
  const communicator& g = s.group;
  if (g.domains == 1) return fmt::format("one {} domain", link_name(s.hardware.gpu));
  const std::string members = g.max_members() == g.min_members()
                                  ? fmt::format("{}", g.max_members())
                                  : fmt::format("{} to {}", g.min_members(), g.max_members());
  return fmt::format("{} {} domains of {}{}", g.domains, link_name(s.hardware.gpu), members,
                     s.hardware.fabric.sharp ? ", SHARP on" : "");
}

void check_wishes(const setting& s, const std::vector<operation>& all, diagnostics& problems) {
  const std::vector<std::string> known(collective_algorithms().begin(), collective_algorithms().end());
  const std::string& wanted = s.arguments.algorithm;
  if (!wanted.empty() && std::find(known.begin(), known.end(), wanted) == known.end())
    problems.add("--algorithm", "", fmt::format("unknown algorithm \"{}\"", wanted), nearest(wanted, known));
  const bool flows = s.arguments.fidelity != "closed";
  for (const operation& o : all) {
    if (!o.kernel.empty() && flows)
      problems.add("--fidelity", "", fmt::format("{} supports only closed fidelity", o.name));
    if (!o.kernel.empty() && !(wanted.empty() && s.arguments.protocol.empty()))
      problems.add("--algorithm", "", fmt::format("{} has kernels (--kernel), not algorithms", o.name));
  }
  if (s.arguments.sharp == "on" && !s.hardware.fabric.leaf.sharp)
    problems.add(
        "--sharp", "",
        fmt::format("the switches of {} ({}) do not support SHARP", s.hardware.name, s.hardware.fabric.leaf.name));
  if (s.arguments.root >= s.arguments.gpus)
    problems.add("-r", "",
                 fmt::format("root {} is out of range for {} ranks", s.arguments.root, s.arguments.gpus));
}

nccl_table_head head_of(const setting& s, const operation& o, const datatype& type,
                        const std::vector<double>& sizes) {
  const collective_arguments& a = s.arguments;
  nccl_table_head h{o.kind, s.group.ranks, type.name, type.bytes, a.reduction};
  h.root = static_cast<int>(a.root);
  h.operation = o.name;
  h.platform = s.hardware.name;
  h.stack = s.software.name;
  h.placement = placement_text(s);
  if (!o.kernel.empty()) h.bus_factor = tokens_in(s, o, 1).reach();
  h.begin = bytes::from_base(sizes.front());
  h.end = bytes::from_base(sizes.back());
  h.factor = a.factor;
  diagnostics read_before;
  h.step = static_cast<std::int64_t>(size_of("-i", a.increment, read_before));
  h.iterations = a.iterations;
  h.warmup = a.warmup;
  return h;
}

}  // namespace

exit_code execute(const collective_arguments& a) {
  const data_folders data = folders_under(data_root());
  diagnostics problems;
  const auto [hardware_sets, software_sets] = platform_and_stack_sets(a.sets);
  detail(fmt::format("platform {}, stack {}, from {}", a.platform, a.stack, data_root().string()));
  auto hardware = load_platform(a.platform, data, hardware_sets, {"--platform", "", {}, {}}, problems);
  const auto software = load_stack({a.stack, software_sets, {"--stack", "", {}, {}}}, data, problems);
  const std::vector<operation> operations = operations_of(a, problems);
  const auto type =
      std::find_if(datatypes.begin(), datatypes.end(), [&](const auto& d) { return d.name == a.datatype; });
  if (type == datatypes.end()) problems.add("-d", "", fmt::format("unknown data type \"{}\"", a.datatype));
  const std::vector<double> sizes = message_sizes(a, problems);
  problems.throw_if_any();

  platform& p = hardware.content;
  const std::int64_t domain = a.gpus_per_domain > 0 ? a.gpus_per_domain : p.gpus_per_rack();
  if (domain > p.gpus_per_rack())
    problems.add("--domain-size", "",
                 fmt::format("{} exceeds the {} GPUs of {}", domain, p.gpus_per_rack(), a_domain(p.gpu)));
  if (!a.sharp.empty()) p.fabric.sharp = a.sharp == "on";
  const std::int64_t racks = (a.gpus + domain - 1) / domain;
  if (static_cast<double>(racks) * p.gpus_per_rack() > max_gpus)
    problems.add("--gpus", "",
                 fmt::format("{} GPUs with {} per domain exceed the maximum of {:.0f} GPUs per platform", a.gpus,
                             domain, max_gpus));
  problems.throw_if_any();
  // Enlarges the platform if the communicator needs more racks.
  p.racks = std::max(p.racks, static_cast<int>(racks));
  const communicator group = strided_group({domain}, 0, 1, a.gpus);
  p = only_group_on(p, group);  // as in a scenario
  const setting s{a, p, software.content, {domain}, group};
  check_wishes(s, operations, problems);
  problems.throw_if_any();

  std::vector<value> documents;
  std::string tables;
  for (const operation& o : operations) {
    std::vector<nccl_row> rows;
    for (const double size : sizes) {
      const bool barrier = o.kind == collective::barrier;
      const bytes moved = whole_elements(o.kind, s.group.ranks, type->bytes, bytes::from_base(size));
      rows.push_back(timed(s, o, barrier ? 0 : o.kernel.empty() ? moved.base() : size));
      if (barrier) break;
    }
    nccl_table_head head = head_of(s, o, *type, sizes);
    head.regimes = regimes_of(s, o, rows);
    if (a.format == "json") documents.push_back(nccl_json(head, rows));
    else tables.append(tables.empty() ? "" : "\n").append(nccl_table(head, rows));
  }
  if (a.format == "json")
    tables = to_json(documents.size() == 1 ? documents.front() : value{std::move(documents)});
  print(tables);
  return exit_code::ok;
}

}  // namespace nvlsim::cli
