// Formats validations as JSON and text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "nvlsim/analysis/error_summary.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

using records_view = std::vector<const validation_record*>;

value summary_of(const records_view& rows) {
  std::set<std::pair<std::string, std::string>> ids, covered, infeasible;
  std::vector<double> errors;
  std::size_t in_band = 0, banded = 0;
  const validation_record* worst = nullptr;
  for (const validation_record* r : rows) {
    if (r->status != record_status::excluded) ids.insert({r->table, r->id});
    if (r->status == record_status::infeasible) infeasible.insert({r->table, r->id});
    const auto e = r->error();
    if (!e) continue;
    covered.insert({r->table, r->id});
    errors.push_back(*e);
    if (!worst || std::abs(*e) > std::abs(*worst->error())) worst = r;
    if (r->band) {
      ++banded;
      in_band += *r->published >= r->band->first && *r->published <= r->band->second ? 1 : 0;
    }
  }
  const error_summary e = nvlsim::summary_of(errors);
  const auto known = [&](double x) { return errors.empty() ? value{} : value{x}; };
  const auto ratio = [](double a, std::size_t b) { return b == 0 ? value{} : value{a / static_cast<double>(b)}; };
  value out{value::object{}};
  out.set("count", static_cast<std::int64_t>(e.rows));
  out.set("coverage", ratio(static_cast<double>(covered.size()), ids.size()));
  out.set("infeasible", static_cast<std::int64_t>(infeasible.size()));
  out.set("mean_abs_error", known(e.mean));
  out.set("median_abs_error", known(e.median));
  out.set("p90_abs_error", known(e.p90));
  out.set("bias", known(e.bias));
  value w;
  if (worst) {
    w.set("table", worst->table);
    w.set("id", worst->id);
    w.set("metric", worst->metric);
    w.set("error", *worst->error());
  }
  out.set("worst", std::move(w));
  out.set("in_band", ratio(static_cast<double>(in_band), banded));
  const expected_rows allowed = expected_in_band(banded);
  if (banded > 0)
    out.set("in_band_95", value{value::array{ratio(static_cast<double>(allowed.low), banded),
                                             ratio(static_cast<double>(allowed.high), banded)}});
  out.set("banded", static_cast<std::int64_t>(banded));
  return out;
}

value grouped_summary(const records_view& rows) {
  struct group_key {
    const char* name;
    std::string validation_record::*member;
  };
  static constexpr std::array<group_key, 7> keys = {{{"system", &validation_record::system},
                                                     {"model", &validation_record::model},
                                                     {"precision", &validation_record::precision},
                                                     {"kind", &validation_record::kind},
                                                     {"release", &validation_record::release},
                                                     {"scenario", &validation_record::scenario},
                                                     {"cell", &validation_record::cell}}};
  value out = summary_of(rows);
  value by{value::object{}};
  for (const group_key& k : keys) {
    std::map<std::string, records_view> groups;
    for (const validation_record* r : rows)
      if (!(r->*k.member).empty()) groups[r->*k.member].push_back(r);
    value section{value::object{}};
    for (const auto& [name_, members] : groups) section.set(name_, summary_of(members));
    if (!groups.empty()) by.set(k.name, std::move(section));
  }
  out.set("by", std::move(by));
  return out;
}

value row_json(const validation_record& r) {
  value out{value::object{}};
  const auto number = [](const std::optional<double>& d) { return d ? value{*d} : value{}; };
  out.set("table", r.table);
  out.set("id", r.id);
  out.set("metric", r.metric);
  out.set("published", number(r.published));
  out.set("simulated", r.status == record_status::ok ? number(r.simulated) : value{});
  out.set("error", number(r.error()));
  out.set("status", name(r.status));
  out.set("reason", r.reason.empty() ? value{} : value{r.reason});
  out.set("suspect", r.suspect);
  out.set("notes", r.notes);
  out.set("band", r.band ? value{value::array{value{r.band->first}, value{r.band->second}}} : value{});
  return out;
}

std::map<std::string, records_view> by_table(const std::vector<validation_record>& records) {
  std::map<std::string, records_view> out;
  for (const validation_record& r : records) out[r.table].push_back(&r);
  return out;
}

std::string percent(const value* v) {
  const double* d = v ? v->number() : nullptr;
  return d ? fmt::format("{:.1f} %", *d * 100) : std::string("-");
}

/// Lists why rows were not compared.
std::string reasons_text(const records_view& rows) {
  std::string out;
  for (const validation_record* r : rows) {
    if (r->reason.empty()) continue;
    std::string indent = "  ";
    for (const std::string& line :
         output::wrapped(fmt::format("{}: {}", r->id, r->reason), output::table_columns - 4)) {
      out += indent + line + '\n';
      indent = "    ";
    }
  }
  return out.empty() ? out : "\nreasons\n" + out;
}

std::string summary_line(const std::string& title, const value& s) {
  const auto* count = s.find("count")->integer();
  return fmt::format("{} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
                     output::padded_right(output::one_line(title, 28), 28), *count, percent(s.find("coverage")),
                     percent(s.find("median_abs_error")), percent(s.find("mean_abs_error")),
                     percent(s.find("p90_abs_error")), percent(s.find("bias")));
}

/// Cells with ten rows or more: the share inside their bands and the 95 % interval that 90 % allow.
std::string cells_text(const value& cells) {
  std::vector<std::vector<std::string>> rows = {{"cell", "rows", "in band", "allowed", ""}};
  for (const auto& [cell, s] : *cells.members()) {
    if (static_cast<std::size_t>(*s.find("banded")->integer()) < fewest_rows_of_cell) continue;
    const value::array& allowed = *s.find("in_band_95")->items();
    const double inside = *s.find("in_band")->number();
    const bool holds = *allowed[0].number() <= inside && inside <= *allowed[1].number();
    rows.push_back({cell, std::to_string(*s.find("banded")->integer()), percent(s.find("in_band")),
                    percent(&allowed[0]) + " to " + percent(&allowed[1]), holds ? "" : "outside"});
  }
  return rows.size() == 1 ? std::string() : "\n" + output::grid(rows, 0);
}

}  // namespace

value validation_json(const std::vector<validation_record>& records) {
  value rows{value::array{}};
  records_view all;
  for (const validation_record& r : records) {
    rows.items()->push_back(row_json(r));
    all.push_back(&r);
  }
  value summary = grouped_summary(all);
  value tables{value::object{}};
  for (const auto& [table, members] : by_table(records)) tables.set(table, grouped_summary(members));
  summary.set("tables", std::move(tables));
  value out{value::object{}};
  out.set("rows", std::move(rows));
  out.set("summary", std::move(summary));
  return out;
}

std::string validation_text(const std::vector<validation_record>& records, bool all_rows) {
  std::string out;
  std::vector<const validation_record*> shown;
  for (const validation_record& r : records)
    if (all_rows || r.error()) shown.push_back(&r);
  if (!all_rows) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](auto* a, auto* b) { return std::abs(*a->error()) > std::abs(*b->error()); });
    if (shown.size() > 10) shown.resize(10);
    out += "worst rows\n";
  }
  std::vector<std::vector<std::string>> rows = {{"id", "metric", "published", "simulated", "error", "status"}};
  for (const validation_record* r : shown) {
    const auto number = [](const std::optional<double>& d) {
      return d ? fmt::format("{:.5g}", *d) : std::string("-");
    };
    const auto e = r->error();
    rows.push_back({r->id, r->metric, number(r->published), e ? number(r->simulated) : "-",
                    e ? fmt::format("{:+.1f} %", *e * 100) : "-", std::string(name(r->status))});
  }
  out += output::grid(rows, 0);
  if (all_rows) out += reasons_text(shown);
  out += fmt::format("\n{:<28} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "summary", "rows", "coverage", "median",
                     "mean", "p90", "bias");
  std::string in_cells;
  for (const auto& [table, members] : by_table(records)) {
    const value s = grouped_summary(members);
    out += summary_line(table, s);
    if (const std::int64_t n = *s.find("infeasible")->integer(); n > 0)
      out += fmt::format("  {} {} infeasible as modelled and not simulated{}\n", n, n == 1 ? "id is" : "ids are",
                         all_rows ? "" : "; --all says why");
    for (const auto& [key, groups] : *s.find("by")->members())
      for (const auto& [group, numbers] : *groups.members())
        if (key != "cell") out += summary_line("  " + key + " " + group, numbers);
    if (const value* cells = s.find("by")->find("cell")) in_cells += cells_text(*cells);
  }
  return out + in_cells;
}

}  // namespace nvlsim
