// The collective fit: one family of parameters at a time. [docs/collectives.md#fit]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "config/document.hpp"
#include "nvlsim/fit.hpp"
#include "nvlsim/output.hpp"
#include "study/collective_knobs.hpp"
#include "study/collective_rows.hpp"
#include "study/kernel_rows.hpp"
#include "study/least_squares.hpp"

namespace nvlsim {
namespace {

using rows_view = std::vector<const collective_row*>;

/// A fabric with fewer rows of a collective says nothing about others.
constexpr std::size_t rows_to_pool = 10;

bool across(const std::string& family) { return family.starts_with("fabric/") || family.starts_with("all_to_all/"); }

/// The time in the row's unit.
double simulated(const collective_row& r, const collective_profile& c) {
  return r.price(c).base() * (r.record.metric == "latency_ms" ? 1e3 : 1e6);
}
double error_of(const collective_row& r, const collective_profile& c) { return simulated(r, c) / *r.record.published - 1; }

struct errors {
  std::size_t rows = 0;
  double mean = 0, median = 0, p90 = 0, worst = 0, bias = 0;
};
errors errors_of(const rows_view& rows, const collective_profile& c) {
  errors out;
  std::vector<double> all;
  for (const collective_row* r : rows) {
    const double e = error_of(*r, c);
    all.push_back(std::abs(e));
    out.bias += e;
    out.mean += std::abs(e);
  }
  if (all.empty()) return out;
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(all.size());
  out.rows = all.size();
  out.bias /= n;
  out.mean /= n;
  out.median = all[all.size() / 2];
  out.p90 = all[static_cast<std::size_t>(std::ceil(0.9 * n)) - 1];
  out.worst = all.back();
  return out;
}

/// Fits one family in `profile`.
std::vector<fitted_parameter> fit_family(const std::string& family, const rows_view& rows, collective_profile& profile) {
  const std::vector<collective_knob> knobs = collective_knobs_of(family, profile);
  std::vector<free_parameter> parameters;
  for (const collective_knob& k : knobs) {
    const double start = std::clamp(k.get(profile), k.low * 1.001, k.high * 0.999);
    parameters.push_back({k.pointer, start, k.low, k.high, k.prior_width, true});
  }
  const auto residuals = [&](const std::vector<double>& v) {
    for (std::size_t i = 0; i < knobs.size(); ++i) knobs[i].set(profile, v[i]);
    std::vector<double> out;
    out.reserve(rows.size());
    for (const collective_row* r : rows) out.push_back(std::log(simulated(*r, profile) / *r->record.published));
    return out;
  };
  const std::vector<double> best = fit_parameters(parameters, residuals, {.robust_scale = 0.05, .iterations = 60});
  std::vector<fitted_parameter> out;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    knobs[i].set(profile, best[i]);
    out.push_back({parameters[i].name, parameters[i].start, best[i]});
  }
  return out;
}

/// What is not measured of a fabric follows what is: a tree over rings has the latencies of that over in-switch
/// reductions, and gather and scatter in the switch the rates of the ring.
void follow(collective_profile& c) {
  for (auto& [kind, table] : c.domain) {
    const auto reduce = table.find("all_reduce");
    for (auto& [name, d] : table) {
      if (name == "all_reduce" || !d.nvls_rate || reduce == table.end()) continue;
      d.nvls_rate = d.simple.rate;
      d.nvls_latency = reduce->second.nvls_latency;
      d.nvls_pipeline_per_rank = reduce->second.nvls_pipeline_per_rank;
    }
  }
  for (auto& [fabric, table] : c.fabric)
    for (auto& [name, f] : table)
      if (f.tree && f.nvls_tree) {
        f.tree->latency = f.nvls_tree->latency;
        f.tree->hop = f.nvls_tree->hop;
        f.tree->nic_share_2 = f.nvls_tree->nic_share_2;
        f.tree->nic_share_many = f.nvls_tree->nic_share_many;
      }
}

/// Geometric mean of what the fabrics with enough rows reached, latencies in proportion to those of the fabrics.
class default_pool {
 public:
  default_pool(const std::map<std::string, std::size_t>& rows, const std::string& except) {
    for (const auto& [family, n] : rows)
      if (n >= rows_to_pool && family != except && across(family)) members_.push_back(family);
  }

  /// Whether another fabric shows anything of this family's collective.
  bool knows(const std::string& family) const {
    const std::string group = family.substr(0, family.find('/')), tail = family.substr(family.rfind('/'));
    return std::any_of(members_.begin(), members_.end(), [&](const std::string& m) {
      return m != family && m.starts_with(group) && (group == "all_to_all" || m.ends_with(tail));
    });
  }

  void apply(collective_profile& c) const {
    for (auto& [name, f] : c.fabric["default"]) set("fabric/default/" + name, "/" + name, c);
    if (c.all_to_all.contains("default")) set("all_to_all/default", "", c);
    follow(c);
  }

 private:
  static bool like_latency(const std::string& pointer) {
    return pointer.ends_with("/latency") || pointer.ends_with("/hop") || pointer.ends_with("fabric_step") ||
           pointer.ends_with("/per_rank");
  }

  void set(const std::string& family, const std::string& suffix, collective_profile& c) const {
    const std::string group = family.substr(0, family.find('/') + 1);
    const auto latency_of = [&](const std::string& member) {
      const std::string fabric = member.substr(group.size(), member.size() - group.size() - suffix.size());
      const auto it = c.measured_on.find(fabric);
      return it != c.measured_on.end() ? it->second.latency.value_or(seconds{}).base() : 0.0;
    };
    const double own = latency_of(family);
    for (const collective_knob& k : collective_knobs_of(family, c)) {
      const std::string tail = k.pointer.substr(family.size() + 1);
      double sum = 0, count = 0;
      for (const std::string& m : members_) {
        if (!m.starts_with(group) || !m.ends_with(suffix) || m == family) continue;
        for (const collective_knob& other : collective_knobs_of(m, c)) {
          if (other.pointer != "/" + m + tail) continue;
          const double scale = like_latency(k.pointer) && own > 0 && latency_of(m) > 0 ? own / latency_of(m) : 1;
          sum += std::log(other.get(c) * scale);
          ++count;
        }
      }
      if (count > 0) k.set(c, std::clamp(std::exp(sum / count), k.low, k.high));
    }
  }

  std::vector<std::string> members_;
};

class collective_fit {
 public:
  collective_fit(const std::vector<std::filesystem::path>& tables, const data_folders& data) : inputs_(data) {
    for (const auto& file : tables) {
      const csv_table t = read_csv(file);
      for (const csv_row& row : t.rows) add(t, row);
    }
    start_ = inputs_.stack_named(collective_stack).collectives;
    for (const collective_row& r : rows_) {
      if (!has(r.family)) continue;
      by_family_[r.family].push_back(&r);
    }
    for (const auto& [family, rows] : by_family_) counts_[family] = rows.size();
    if (by_family_.empty())
      throw input_error({{tables.front().string(), "", "no row of a collective that can be fitted", {}}});
  }

  fit_report run(const std::string& leave_out, const fit_progress& report) {
    profile_ = start_;
    // Fabrics last: their rates are bounded by those inside the domains.
    for (const bool outside : {false, true})
      for (const auto& [family, rows] : by_family_) {
        if (across(family) != outside) continue;
        for (fitted_parameter& p : fit_family(family, rows, profile_)) out_.parameters.push_back(std::move(p));
        follow(profile_);
        if (report) report(fmt::format("{}: {} rows, median {:.1f} %", family, rows.size(), 100 * errors_of(rows, profile_).median));
      }
    for (const std::string& family : with_the_ring_of_all_reduce()) {
      auto& table = profile_.fabric.at(parts(family).first);
      table.at(parts(family).second).ring = table.at("all_reduce").ring;
    }
    default_pool(counts_, "").apply(profile_);
    rows_view all;
    for (const auto& [family, rows] : by_family_) all.insert(all.end(), rows.begin(), rows.end());
    const errors e = errors_of(all, profile_);
    out_.rows = e.rows;
    out_.mean_error = e.mean;
    out_.median_error = e.median;
    out_.p90_error = e.p90;
    out_.bias = e.bias;
    if (!leave_out.empty())
      for (const auto& [family, rows] : by_family_) leave_each_out(family, rows, leave_out, report);
    return std::move(out_);
  }

  /// The stack file with the fitted values.
  std::string stack_text(const data_folders& data) const;

 private:
  bool has(const std::string& family) const {
    const auto first = family.find('/'), second = family.find('/', first + 1);
    const std::string group = family.substr(0, first), kind = family.substr(first + 1, second - first - 1);
    const std::string member = second == std::string::npos ? "" : family.substr(second + 1);
    const auto in = [&](const auto& table) { return table.contains(kind) && table.at(kind).contains(member); };
    if (group == "domain") return in(start_.domain);
    if (group == "fabric") return in(start_.fabric);
    if (group == "all_to_all") return start_.all_to_all.contains(kind);
    return group == "custom" ? start_.custom.contains(kind) : start_.expert.contains(kind);
  }

  /// Fabric and collective of "fabric/efa-3200/all_gather".
  static std::pair<std::string, std::string> parts(const std::string& family) {
    const auto first = family.find('/'), second = family.rfind('/');
    return {family.substr(first + 1, second - first - 1), family.substr(second + 1)};
  }

  /// Gathers and scatters of fabrics where only the all-reduce was measured.
  std::vector<std::string> with_the_ring_of_all_reduce() const {
    std::vector<std::string> out;
    for (const auto& [fabric, table] : start_.fabric)
      for (const auto& [name, f] : table)
        if (name != "all_reduce" && counts_.contains("fabric/" + fabric + "/all_reduce") &&
            !counts_.contains("fabric/" + fabric + "/" + name))
          out.push_back("fabric/" + fabric + "/" + name);
    return out;
  }

  void add(const csv_table& t, const csv_row& row) {
    collective_row r;
    if (t.has("collective")) {
      r = read_collective_row(row, t.stem, inputs_);
    } else if (const std::string& table = row["table"]; table == "nccl" || table == "allreduce" || table == "alltoall") {
      r.record.system = row["system"];
      r.record.metric = "latency_ms";
      r.record.published = row.number("latency_ms");
      const std::string_view where = platform_of_kernel_system(r.record.system);
      if (where.empty() || !r.record.published) return;
      r.record.status = record_status::ok;
      r.platform = where;
      read_collective_kernel(row, inputs_.platform_named(r.platform), r);
    }
    if (r.price && r.record.status == record_status::ok) rows_.push_back(std::move(r));
  }

  /// By what a row belongs to a group that is left out together.
  static std::string group_of(const collective_row& r, const std::string& leave_out, std::size_t index) {
    if (leave_out == "system") return r.platform;
    if (leave_out == "gpus") return fmt::format("{} GPUs of {}", r.gpus, r.platform);
    return fmt::format("every third row, {}", index % 3 + 1);
  }

  void leave_each_out(const std::string& family, const rows_view& rows, const std::string& leave_out,
                      const fit_progress& report) {
    std::map<std::string, rows_view> groups;
    for (std::size_t i = 0; i < rows.size(); ++i) groups[group_of(*rows[i], leave_out, i)].push_back(rows[i]);
    for (const auto& [group, left] : groups) {
      collective_profile at = profile_;
      rows_view kept;
      for (const collective_row* r : rows)
        if (std::find(left.begin(), left.end(), r) == left.end()) kept.push_back(r);
      if (!kept.empty()) {
        fit_family(family, kept, at);
        follow(at);
      } else if (across(family) && default_pool(counts_, family).knows(family)) {
        forget(family, at);
      } else {
        continue;  // nothing else knows it
      }
      const errors e = errors_of(left, at);
      out_.leave_out.push_back({fmt::format("{}: {}", family, group), e.rows, e.mean, e.worst, e.bias, e.median});
      if (report)
        report(fmt::format("without {} in {}: median {:.1f} %, bias {:+.1f} %", group, family, 100 * e.median, 100 * e.bias));
    }
  }

  /// As if this fabric had never been measured.
  void forget(const std::string& family, collective_profile& at) const {
    default_pool(counts_, family).apply(at);
    const auto first = family.find('/'), second = family.find('/', first + 1);
    const std::string kind = family.substr(first + 1, second - first - 1);
    if (second == std::string::npos) at.all_to_all.erase(kind);
    else at.fabric.at(kind).erase(family.substr(second + 1));
    at.measured_on.erase(kind);
  }

  input_cache inputs_;
  std::vector<collective_row> rows_;
  std::map<std::string, rows_view> by_family_;
  std::map<std::string, std::size_t> counts_;
  collective_profile start_, profile_;
  fit_report out_;
};

/// `pointer` of the document to a number with its unit; an object with a "value" keeps its source.
void set_number(config::document& doc, const std::string& pointer, double v, const std::string& unit, diagnostics& problems) {
  const value* old = doc.root.at_pointer(pointer);
  const std::string target = old && old->members() ? pointer + "/value" : pointer;
  const std::string text = unit.empty() ? fmt::format("{:.4g}", v) : fmt::format("{:.4g} {}", v, unit);
  config::override_value(doc, target, config::parse_scalar(text), {"fit", "fit"}, problems);
}

void set_text(config::document& doc, const std::string& pointer, std::string text, diagnostics& problems) {
  config::override_value(doc, pointer, value{std::move(text)}, {"fit", "fit"}, problems);
}

std::string collective_fit::stack_text(const data_folders& data) const {
  diagnostics problems;
  config::document doc =
      config::load(data.stacks / fmt::format("{}.json", collective_stack), {"", collective_stack}, problems);
  const auto write = [&](const std::string& family) {
    for (const collective_knob& k : collective_knobs_of(family, profile_))
      set_number(doc, "/collectives" + k.pointer, k.get(profile_), k.unit, problems);
  };
  for (const auto& [family, rows] : by_family_) {
    write(family);
    const errors e = errors_of(rows, profile_);
    std::set<std::string> systems;
    for (const collective_row* r : rows) systems.insert(r->record.system);
    set_text(doc, "/collectives/" + family + "/kind", "measured", problems);
    set_text(doc, "/collectives/" + family + "/source",
             fmt::format("nvlsim fit collectives: {} rows of {}, median error {:.1f} %, p90 {:.1f} %", e.rows,
                         fmt::join(systems, ", "), 100 * e.median, 100 * e.p90),
             problems);
  }
  for (const std::string& family : with_the_ring_of_all_reduce()) write(family);
  for (const auto& [name, f] : profile_.fabric.at("default")) write("fabric/default/" + name);
  write("all_to_all/default");
  for (const auto& [kind, table] : profile_.domain)
    for (const auto& [name, d] : table)
      if (d.nvls_rate && name != "all_reduce") {
        const std::string at = fmt::format("/collectives/domain/{}/{}", kind, name);
        set_number(doc, at + "/nvls_rate", d.nvls_rate->base() / 1e9, "GB/s", problems);
        set_number(doc, at + "/nvls_latency", d.nvls_latency.base() * 1e6, "us", problems);
        set_number(doc, at + "/nvls_pipeline_per_rank", d.nvls_pipeline_per_rank.base() * 1e6, "us", problems);
      }
  for (const auto& [fabric, table] : profile_.fabric)
    for (const auto& [name, f] : table)
      if (f.tree && f.nvls_tree) {
        const std::string at = fmt::format("/collectives/fabric/{}/{}/tree", fabric, name);
        set_number(doc, at + "/latency", f.tree->latency.base() * 1e6, "us", problems);
        set_number(doc, at + "/hop", f.tree->hop.base() * 1e6, "us", problems);
        set_number(doc, at + "/nic_share_2", f.tree->nic_share_2, "", problems);
        set_number(doc, at + "/nic_share_many", f.tree->nic_share_many, "", problems);
      }
  problems.throw_if_any();
  return to_json(doc.root);
}

}  // namespace

fit_report fit_collectives(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                           const std::string& leave_out, const fit_progress& report) {
  collective_fit fit(tables, data);
  fit_report out = fit.run(leave_out, report);
  out.files.emplace_back(fmt::format("{}.json", collective_stack), fit.stack_text(data));
  return out;
}

}  // namespace nvlsim
