// Fits collectives, one parameter family at a time. [docs/collectives.md#fit]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibration/collective_families.hpp"
#include "calibration/collective_knobs.hpp"
#include "calibration/stack_files.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/collectives/models.hpp"
#include "nvlsim/measurements/kernel_rows.hpp"

namespace nvlsim {
namespace {

/// Ratios of measured to computed time, with weights.
using error_ratios = std::vector<std::pair<double, double>>;

/// Called with left-out rows of a family and the profile fitted without them.
using prediction = std::function<void(const std::string& family, const std::string& group, const rows_view& rows,
                                      const collective_profile& at)>;

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
    if (by_family_.empty())
      throw input_error({{tables.front().string(), "", "no collective row that can be fitted", {}}});
    for (const auto& [family, rows] : by_family_) {
      to_priors(family);
      if (family_parts(family).group != "custom") continue;
      const platform& p = inputs_.platform_named(rows.front()->platform);
      const std::string generation = link_kind(p.gpu);
      if (start_.custom.contains(generation)) generations_["custom/" + generation].push_back(p.gpu.name);
    }
    for (const auto& [family, gpus] : generations_) to_priors(family);
    to_priors("fabric/default/all_reduce");
    to_priors("all_to_all/default");
    to_priors("measured_on/default");
  }

  fit_report run(const std::string& leave_out, const fit_progress& report) {
    profile_ = fitted(by_family_, &out_.parameters, report);
    measure_spreads();
    rows_view all;
    for (const auto& [family, rows] : by_family_) all.insert(all.end(), rows.begin(), rows.end());
    enter_fitted(out_, errors_of(all, profile_));
    const auto predict = [&](const std::string& family, const std::string& group, const rows_view& rows,
                             const collective_profile& at) {
      const error_summary left = errors_of(rows, at);
      out_.leave_out.push_back(left_out_of(fmt::format("{}: {}", family, group), left));
      if (report)
        report(fmt::format("without {} in {}: median {:.1f} %, bias {:+.1f} %", group, family, 100 * left.median,
                           100 * left.bias));
    };
    if (!leave_out.empty()) leave_each_out(leave_out, predict);
    return std::move(out_);
  }

  /// The library with the fitted values.
  std::vector<std::pair<std::string, std::string>> files(const data_folders& data) const;

 private:
  bool has(const std::string& family) const {
    const family_parts p(family);
    const auto in = [&](const auto& table) {
      return table.contains(p.kind) && table.at(p.kind).contains(p.collective);
    };
    if (p.group == "domain") return in(start_.domain);
    if (p.group == "fabric") return in(start_.fabric);
    if (p.group == "all_to_all") return start_.all_to_all.contains(p.kind);
    return p.group == "custom" ? start_.custom.contains(p.kind) : start_.expert.contains(p.kind);
  }

  /// Resets fitted parameters to their priors, so that a fit of the same rows always gives the same file.
  void to_priors(const std::string& family) {
    for (const collective_knob& k : collective_knobs_of(family, start_)) k.set(start_, k.prior);
  }

  /// Fits a profile to the rows. Fabrics come last, because the rates inside domains bound theirs.
  collective_profile fitted(const families& by_family, std::vector<fitted_parameter>* parameters,
                            const fit_progress& report) {
    collective_profile at = start_;
    const auto keep = [&](std::vector<fitted_parameter> found) {
      if (parameters) parameters->insert(parameters->end(), found.begin(), found.end());
    };
    const auto fit_each = [&](bool outside) {
      for (const auto& [family, rows] : by_family) {
        if (leaves_domain(family) != outside || rows.empty()) continue;
        if (outside) seed(family, *rows.front(), at);
        if (!outside && !parameters && rows.size() == by_family_.at(family).size())
          take(family, profile_, at);  // same rows, same values
        else keep(fit_family(family, rows, at));
        fill_unmeasured(at);
        if (report)
          report(
              fmt::format("{}: {} rows, median {:.1f} %", family, rows.size(), 100 * errors_of(rows, at).median));
      }
    };
    keep(fit_generations(by_family, at));
    fit_each(false);
    keep(fit_default_fabric(by_family, at));
    fit_each(true);
    return at;
  }

  static void take(const std::string& family, const collective_profile& from, collective_profile& to) {
    for (const collective_knob& k : collective_knobs_of(family, to)) k.set(to, k.get(from));
  }

  /// Fits the fused all-reduce of each NVLink generation to the rows of all its GPUs. The GPUs start from it.
  std::vector<fitted_parameter> fit_generations(const families& by_family, collective_profile& at) {
    std::vector<fitted_parameter> out;
    for (const auto& [family, gpus] : generations_) {
      collective_profile bare = at;
      rows_view rows;
      for (const std::string& gpu : gpus) {
        const rows_view& own = by_family.at("custom/" + gpu);
        rows.insert(rows.end(), own.begin(), own.end());
        bare.custom.erase(gpu);
      }
      if (rows.empty()) continue;
      for (fitted_parameter& p : fit_family(family, rows, bare)) out.push_back(std::move(p));
      const custom_all_reduce& pooled = bare.custom.at(family_parts(family).kind);
      at.custom.at(family_parts(family).kind) = pooled;
      for (const std::string& gpu : gpus) at.custom.at(gpu) = pooled;
    }
    return out;
  }

  /// Starts a fabric with the default fabric's values for its platform.
  void seed(const std::string& family, const collective_row& row, collective_profile& at) {
    const family_parts p(family);
    if (p.group == "all_to_all") at.all_to_all.at(p.kind) = at.all_to_all.at("default");
    if (p.group != "fabric") return;
    const fabric_collective general = collectives::unlisted_fabric(at, inputs_.platform_named(row.platform),
                                                                   at.fabric.at("default").at(p.collective));
    fabric_collective& own = at.fabric.at(p.kind).at(p.collective);
    const seconds pipeline = own.ring.pipeline;
    own.ll = general.ll;
    own.ll_pipeline = general.ll_pipeline;
    if (own.ll128) own.ll128 = general.ll128;
    own.ring = general.ring;
    own.ring.per_latency = 1;
    own.ring.pipeline = pipeline;
    if (own.sharp) own.sharp = general.sharp;
    if (!own.nvls_tree) return;
    const double many_share = own.nvls_tree->many_share;
    own.nvls_tree = general.nvls_tree;
    own.nvls_tree->per_latency = 1;
    own.nvls_tree->many_share = many_share;
  }

  void add(const csv_table& t, const csv_row& row) {
    collective_row r;
    if (t.has("collective")) {
      r = read_collective_row(row, t.stem, inputs_);
    } else if (const std::string& table = row["table"];
               table == "nccl" || table == "allreduce" || table == "alltoall") {
      r.record.system = row["system"];
      r.record.metric = "latency_ms";
      r.record.published = published_value(row, "latency_ms");
      const std::string_view where = platform_of_kernel_system(r.record.system);
      if (where.empty() || !r.record.published) return;
      r.record.status = record_status::ok;
      r.platform = where;
      read_collective_kernel(row, inputs_.platform_named(r.platform), r);
    }
    if (r.price && r.record.status == record_status::ok) rows_.push_back(std::move(r));
  }

  /// Measures spreads: from left-out thirds of the rows for each family; from left-out systems, equally weighted,
  /// for defaults and NVLink generations.
  void measure_spreads() {
    std::map<std::string, error_ratios> groups;
    const auto add = [](std::map<std::string, error_ratios>& to, const std::string& family, const rows_view& rows,
                        const collective_profile& at, double weight) {
      for (const collective_row* r : rows)
        to[spread_key(family, *r)].emplace_back(1 / (1 + error_of(*r, at)), weight);
    };
    leave_each_out("size", [&](const std::string& family, const std::string&, const rows_view& rows,
                               const collective_profile& at) {
      add(spreads_, family, rows, at, 1);
      add(groups, family_parts(family).group, rows, at, 1);
    });
    for (auto& [family, r] : spreads_) {
      const bool small = family.ends_with("/small");
      if (r.size() < rows_to_know) r = groups.at(family_parts(family).group + (small ? "/small" : ""));
    }
    leave_each_out("system", [&](const std::string& family, const std::string&, const rows_view& rows,
                                 const collective_profile& at) {
      const double even = 1 / static_cast<double>(rows.size());
      const std::string group = family_parts(family).group;
      if (group == "all_to_all") add(spreads_, "all_to_all/default", rows, at, even);
      if (group == "fabric")
        for (const char* c : {"all_reduce", "all_gather", "reduce_scatter"})
          add(spreads_, fmt::format("fabric/default/{}", c), rows, at, even);
      for (const auto& [generation, gpus] : generations_)
        if (group == "custom" && std::find(gpus.begin(), gpus.end(), family_parts(family).kind) != gpus.end())
          add(spreads_, generation, rows, at, even);
    });
    if (const auto known = spreads_.find("fabric/default/all_reduce"); known != spreads_.end())
      for (auto& [family, r] : spreads_)
        if (family.ends_with("/default") && r.size() < rows_to_know) r = known->second;
    measure_runs();
    std::erase_if(spreads_, [](const auto& s) { return s.second.size() < rows_to_know; });
  }

  /// The entry of `spreads` for a row.
  static std::string spread_key(const std::string& family, const collective_row& r) {
    return r.run.empty() ? family : collectives::spread_family(family, r.size);
  }

  /// How far runs of one shape on one kind of machine lie from their middle, in logarithms, for small messages and
  /// for others; and the families whose rows show it themselves.
  void measure_runs() {
    std::map<std::string, std::map<std::string, double>> shapes;  // shape -> run -> time
    std::map<std::string, std::string> family_of;
    for (const auto& [family, rows] : by_family_)
      for (const collective_row* r : rows) {
        if (r->run.empty()) continue;
        const std::string shape = fmt::format("{} {} {} {}", r->record.system, r->gpus, family, r->size.base());
        shapes[shape][r->run] = *r->record.published * (r->record.metric == "latency_ms" ? 1e3 : 1);
        family_of[shape] = spread_key(family, *r);
      }
    std::map<std::string, int> repeats;
    for (const auto& [shape, runs] : shapes) {
      if (runs.size() < 2) continue;
      double middle = 0;
      for (const auto& [run, time] : runs) middle += std::log(time) / static_cast<double>(runs.size());
      const std::string& family = family_of.at(shape);
      ++repeats[family];
      for (const auto& [run, time] : runs)
        runs_[family.ends_with("/small")].emplace_back(std::abs(std::log(time) - middle), 1);
    }
    constexpr int shapes_to_know = 4;
    for (const auto& [family, n] : repeats)
      if (n >= shapes_to_know) repeated_.insert(family);
  }

  /// Quantiles of measured over computed time, of runs like those in the tables and of others.
  std::pair<double, double> band_of(const std::string& family, const error_ratios& r) const {
    const double low = quantile(r, 0.05), high = quantile(r, 0.95);
    const std::string group = family_parts(family).group;
    const bool one_run = (group == "domain" || leaves_domain(family)) && !repeated_.contains(family) &&
                         family_parts(family).kind != "default";
    const auto runs = runs_.find(family.ends_with("/small"));
    if (!one_run || runs == runs_.end() || runs->second.size() < rows_to_know) return {low, high};
    const double more = quantile(runs->second, 0.9);
    return {std::exp(-std::hypot(std::min(std::log(low), 0.0), more)),
            std::exp(std::hypot(std::max(std::log(high), 0.0), more))};
  }

  /// Weighted quantile: `share` of the weight lies below it.
  static double quantile(error_ratios r, double share) {
    std::sort(r.begin(), r.end());
    double all = 0, below = 0;
    for (const auto& [x, w] : r) all += w;
    for (const auto& [x, w] : r)
      if ((below += w) >= share * all) return x;
    return r.back().first;
  }

  value spread_list() const {
    value out{value::array{}};
    for (const auto& [family, r] : spreads_) {
      value one{value::object{}};
      one.set("family", family);
      one.set("rows", static_cast<std::int64_t>(r.size()));
      const auto [low, high] = band_of(family, r);
      one.set("low", std::round(low * 1e4) / 1e4);
      one.set("high", std::round(high * 1e4) / 1e4);
      out.items()->push_back(std::move(one));
    }
    return out;
  }

  /// The group that a row is left out with.
  static std::string group_of(const collective_row& r, const std::string& leave_out, std::size_t index) {
    if (leave_out == "system") return r.platform;
    if (leave_out == "gpus") return fmt::format("{} GPUs of {}", r.gpus, r.platform);
    return fmt::format("every third row, {}", index % 3 + 1);
  }

  /// Refits everything without each group and predicts its rows. Families without other data are not predicted: a
  /// domain measured on one system only keeps its rows, so that its fabric can be predicted.
  void leave_each_out(const std::string& leave_out, const prediction& visit) {
    std::map<std::string, families> groups;
    for (const auto& [family, rows] : by_family_)
      for (std::size_t i = 0; i < rows.size(); ++i)
        groups[group_of(*rows[i], leave_out, i)][family].push_back(rows[i]);
    for (const auto& [group, left] : groups) {
      families kept = by_family_;
      std::set<std::string> alone;
      for (const auto& [family, rows] : left) {
        std::erase_if(kept.at(family), [&rows = rows](const collective_row* r) {
          return std::find(rows.begin(), rows.end(), r) != rows.end();
        });
        const bool pooled = leaves_domain(family) || has_generation(family);
        if (kept.at(family).empty() && !pooled) kept.at(family) = rows, alone.insert(family);
      }
      collective_profile at = fitted(kept, nullptr, {});
      for (const auto& [family, rows] : left) {
        if (!kept.at(family).empty() || alone.contains(family)) continue;
        if (!leaves_domain(family)) continue;  // keeps its generation's values
        if (!default_fabric_knows(kept, family)) alone.insert(family);
        const family_parts p(family);
        if (p.group == "all_to_all") at.all_to_all.erase(p.kind);
        else at.fabric.at(p.kind).erase(p.collective);
      }
      for (const auto& [family, rows] : left)
        if (!alone.contains(family)) visit(family, group, rows, at);
    }
  }

  bool has_generation(const std::string& family) const {
    return std::any_of(generations_.begin(), generations_.end(), [&](const auto& g) {
      return g.second.size() > 1 &&
             std::find(g.second.begin(), g.second.end(), family_parts(family).kind) != g.second.end();
    });
  }

  /// Families with fewer rows take the spread of their group.
  static constexpr std::size_t rows_to_know = 20;

  input_cache inputs_;
  std::vector<collective_row> rows_;
  families by_family_;
  std::map<std::string, std::vector<std::string>> generations_;  ///< GPUs by generation ("custom/nvlink5")
  collective_profile start_, profile_;
  std::map<std::string, error_ratios> spreads_;
  std::map<bool, error_ratios>
      runs_;                        ///< of small messages or not: distances of runs of one shape from their middle
  std::set<std::string> repeated_;  ///< families with several runs of a shape, whose spreads have them
  fit_report out_;
};

std::vector<std::pair<std::string, std::string>> collective_fit::files(const data_folders& data) const {
  stack_files out(data.stacks);
  const auto set_number = [&](const std::string& pointer, double v, const std::string& unit) {
    out.set_number(collective_stack, pointer,
                   unit.empty() ? fmt::format("{:.4g}", v) : fmt::format("{:.4g} {}", v, unit));
  };
  const auto set_text = [&](const std::string& pointer, std::string text) {
    out.set(collective_stack, pointer, value{std::move(text)});
  };
  const auto write = [&](const std::string& family) {
    for (const collective_knob& k : collective_knobs_of(family, profile_))
      set_number("/collectives" + k.pointer, k.get(profile_), k.unit);
  };
  for (const auto& [family, rows] : by_family_) {
    write(family);
    const error_summary e = errors_of(rows, profile_);
    std::set<std::string> systems;
    for (const collective_row* r : rows) systems.insert(r->record.system);
    set_text("/collectives/" + family + "/kind", "measured");
    set_text("/collectives/" + family + "/source",
             fmt::format("nvlsim fit collectives: {} rows of {}, median error {:.1f} %, p90 {:.1f} %", e.rows,
                         fmt::join(systems, ", "), 100 * e.median, 100 * e.p90));
  }
  for (const auto& [name, f] : profile_.fabric.at("default")) write("fabric/default/" + name);
  write("all_to_all/default");
  write("measured_on/default");
  for (const auto& [family, gpus] : generations_) {
    write(family);
    set_text("/collectives/" + family + "/source",
             fmt::format("nvlsim fit collectives: {} together", fmt::join(gpus, ", ")));
  }
  for (const auto& [kind, table] : profile_.domain)
    for (const auto& [name, d] : table)
      if (d.nvls_rate && name != "all_reduce") {
        const std::string at = fmt::format("/collectives/domain/{}/{}", kind, name);
        set_number(at + "/nvls_rate", d.nvls_rate->base() / 1e9, "GB/s");
        set_number(at + "/nvls_latency", d.nvls_latency.base() * 1e6, "us");
        set_number(at + "/nvls_pipeline_per_rank", d.nvls_pipeline_per_rank.base() * 1e6, "us");
        set_number(at + "/nvls_pipeline_limit_per_rank", d.nvls_pipeline_limit.base() / 1e6, "MB");
      }
  for (const auto& [fabric, table] : profile_.fabric)
    for (const auto& [name, f] : table)
      if (f.tree && f.nvls_tree) {
        const std::string at = fmt::format("/collectives/fabric/{}/{}/tree", fabric, name);
        set_number(fmt::format("/collectives/fabric/{}/{}/nvls_tree/nic_share", fabric, name),
                   f.nvls_tree->nic_share, "");
        set_number(at + "/latency", f.tree->latency.base() * 1e6, "us");
        set_number(at + "/hop", f.tree->hop.base() * 1e6, "us");
        set_number(at + "/nic_share", f.tree->nic_share, "");
        if (f.tree->many_share < 1) set_number(at + "/many_share", f.tree->many_share, "");
        if (fabric == "default") set_number(at + "/per_latency", f.tree->per_latency, "");
      }
  if (!out.find(collective_stack, "/collectives/spreads"))
    out.set(collective_stack, "/collectives/spreads",
            value::object{{"kind", "derived"}, {"source", ""}, {"families", value::array{}}});
  set_text(
      "/collectives/spreads/source",
      "nvlsim fit collectives: 5 and 95 % quantiles of measured over computed time of thirds of the rows "
      "left out of the fit; of default and of NVLink generations, of systems left out. Families of one run are "
      "wider by what runs of one shape differ. Entries \"small\" are for messages below 2 MiB");
  out.set(collective_stack, "/collectives/spreads/families", spread_list());
  return out.texts();
}

}  // namespace

fit_report fit_collectives(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                           const std::string& leave_out, const fit_progress& report) {
  collective_fit fit(tables, data);
  fit_report out = fit.run(leave_out, report);
  out.files = fit.files(data);
  return out;
}

}  // namespace nvlsim
