// Merges the records of all shards in point order.
#include <algorithm>

#include "nvlsim/output/file_writer.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/sweep/sweep_store.hpp"

namespace nvlsim {
namespace {

std::string cell(const value& v) {
  if (const double* d = v.number()) return output::number_text(*d);
  if (const std::int64_t* i = v.integer()) return std::to_string(*i);
  if (const bool* b = v.boolean()) return *b ? "true" : "false";
  if (v.is_null()) return {};
  return output::csv_cell(v.string() ? *v.string() : to_json(v, 0).substr(0, to_json(v, 0).size() - 1));
}

void count(sweep_merge& m, const std::string& status) {
  ++(status == "ok"           ? m.ok
     : status == "saturated"  ? m.saturated
     : status == "infeasible" ? m.infeasible
                              : m.error);
}

/// A point and its outcome.
struct merged_row {
  const sweep_point* point;
  const value* record;
};

std::string csv_of(const std::vector<merged_row>& rows) {
  std::vector<std::string> settings, metrics;
  for (const merged_row& r : rows) {
    for (const auto& [pointer, v] : r.point->set) output::merge_names(settings, pointer);
    for (const output::flat_metric& m : output::flat_metrics(*r.record->find("metrics")))
      output::merge_names(metrics, m.name);
  }
  std::string out = "index,id,status";
  for (const std::string& s : settings) out += ',' + output::csv_cell(s);
  for (const std::string& m : metrics) out += ',' + output::csv_cell(m);
  out += ",reasons\n";
  for (const merged_row& r : rows) {
    out += std::to_string(r.point->index) + ',' + r.point->id + ',' + cell(*r.record->find("status"));
    for (const std::string& s : settings) {
      const auto it =
          std::find_if(r.point->set.rbegin(), r.point->set.rend(), [&](const auto& x) { return x.first == s; });
      out += ',' + (it == r.point->set.rend() ? std::string() : cell(it->second));
    }
    const auto flat = output::flat_metrics(*r.record->find("metrics"));
    for (const std::string& m : metrics) {
      const auto it = std::find_if(flat.begin(), flat.end(), [&](const auto& x) { return x.name == m; });
      out += ',' + (it == flat.end() ? std::string() : cell(it->content));
    }
    std::string reasons;
    for (const value& x : *r.record->find("reasons")->items())
      reasons += (reasons.empty() ? "" : "; ") + *x.string();
    out += ',' + output::csv_cell(reasons) + '\n';
  }
  return out;
}

}  // namespace

sweep_merge merge_sweep(const std::filesystem::path& folder) {
  const sweep_plan plan = read_sweep_plan(folder);
  const auto records = read_records(folder);
  sweep_merge out;
  std::vector<merged_row> rows;
  std::string lines;
  for (const sweep_point& p : plan.points) {
    ++out.points;
    const auto it = records.find(p.id);
    if (it == records.end()) {
      ++out.missing;
      continue;
    }
    const value& record = it->second;
    rows.push_back({&p, &record});
    count(out, *record.find("status")->string());
    add_reason(out.reasons, record);
    value line{value::object{{"index", p.index}, {"id", p.id}}};
    value set{value::object{}};
    for (const auto& [pointer, v] : p.set) set.set(pointer, v);
    line.set("set", std::move(set));
    for (const char* key : {"status", "reasons", "metrics"}) line.set(key, *record.find(key));
    lines += to_json(line, 0);
  }
  out.json_lines = folder / "results.jsonl";
  out.csv = folder / "results.csv";
  output::write_whole(out.json_lines, lines);
  output::write_whole(out.csv, csv_of(rows));
  return out;
}

}  // namespace nvlsim
