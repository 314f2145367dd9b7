// Compares models.csv with the counts of shipped models: parameters and training FLOPs per token, which the table
// derives from published architectures. The table leaves out norms, so parameters agree to four digits only.
#include <array>

#include "nvlsim/measurements/training_rows.hpp"

namespace nvlsim {
namespace {

struct count_column {
  const char* name;
  double (*count)(const model&);
};
constexpr std::array<count_column, 5> count_columns = {{
    {"params_total_derived", [](const model& m) { return static_cast<double>(parameters(m)); }},
    {"params_active_derived", [](const model& m) { return static_cast<double>(active_parameters(m)); }},
    {"train_flops_per_token_causal_s4096", [](const model& m) { return training_flops_per_token(m, 4096, true); }},
    {"train_flops_per_token_causal_s8192", [](const model& m) { return training_flops_per_token(m, 8192, true); }},
    {"train_flops_per_token_noncausal_s8192",
     [](const model& m) { return training_flops_per_token(m, 8192, false); }},
}};

validation_record compared(const csv_row& row, const count_column& column, const std::string& table,
                           input_cache& inputs) {
  validation_record r;
  r.table = table;
  r.id = r.model = row["model"];
  r.metric = column.name;
  r.kind = row["kind"];
  try {
    r.published = published_value(row, column.name);
    r.simulated = column.count(inputs.model_named(r.model));
    r.status = r.published ? record_status::ok : record_status::excluded;
    if (!r.published) r.reason = "nothing to compare";
  } catch (const std::exception&) {
    record_failure(r);
  }
  return r;
}

}  // namespace

std::vector<validation_record> validate_models(const csv_table& t, const data_folders& data,
                                               const progress& report) {
  input_cache inputs(data);
  std::vector<validation_record> out;
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    for (const count_column& c : count_columns) out.push_back(compared(t.rows[i], c, t.stem, inputs));
    if (report) report(i + 1, t.rows.size());
  }
  return out;
}

}  // namespace nvlsim
