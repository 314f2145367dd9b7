// Reads rows of memory.csv: peak allocation and step time of truncated models on one server. The case name gives
// the configuration: "llama3_70b_l12_tp2_cp4_pp1_dp1_seq32768_mbc4_cef" keeps 12 layers and runs 4 micro-batches
// of one sequence.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "nvlsim/measurements/memory_rows.hpp"
#include "nvlsim/measurements/training_rows.hpp"

namespace nvlsim {
namespace {

// FP32 gradient buffers, no features of later releases, and the GEMMs of the server.
constexpr const char* stack_name = "megatron-lm-simumax";

struct case_model {
  std::string_view prefix, model;
};
constexpr std::array<case_model, 4> models = {{{"llama3_70b", "llama3-70b"},
                                               {"llama3_405b", "llama3.1-405b"},
                                               {"deepseekv2", "deepseek-v2"},
                                               {"deepseekv3", "deepseek-v3"}}};

/// Parses tokens such as "l12", "tp2", "seq32768": letters followed by a number.
std::map<std::string, std::int64_t> tokens_in(std::string_view text) {
  std::map<std::string, std::int64_t> out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('_'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t digits = std::min(word.find_first_of("0123456789"), word.size());
    std::int64_t n = 0;
    if (std::from_chars(word.data() + digits, word.data() + word.size(), n).ec == std::errc())
      out[std::string(word.substr(0, digits))] = n;
  }
  return out;
}

/// Keeps the first layer and the last ones. Four layers of DeepSeek-V3 then include one of its three dense layers;
/// only this choice matches the measured peak [inferred].
model cut_to(const model& whole, std::int64_t layers) {
  model m = whole;
  m.mtp_layers = 0;
  m.mtp_block.clear();
  if (layers < 1 || static_cast<std::size_t>(layers) > whole.layers.size())
    throw cell_error(fmt::format("case: the model does not have {} layers", layers));
  m.layers.assign(1, whole.layers.front());
  m.layers.insert(m.layers.end(), whole.layers.end() - (layers - 1), whole.layers.end());
  return m;
}

training_workload workload_of(const std::map<std::string, std::int64_t>& t, const platform& p) {
  const auto number = [&](const char* name, std::int64_t otherwise) {
    const auto it = t.find(name);
    return it == t.end() ? otherwise : it->second;
  };
  training_workload w;
  w.gemm_precision = precision::bf16;
  w.seq_length = number("seq", 4096);
  w.par.tp = number("tp", 1);
  w.par.pp = number("pp", 1);
  w.par.cp = number("cp", 1);
  w.par.dp = number("dp", 1);
  w.par.ep = number("ep", 1);
  w.par.etp = 1;
  w.par.sequence_parallel = w.par.tp > 1;
  // As the launchers of the source have it: tokens are exchanged by expert and padded to an even capacity, routers
  // are not fused, and context-parallel ranks exchange heads.
  if (w.par.ep > 1) {
    w.dispatcher = moe_dispatcher::alltoall;
    w.expert_capacity_factor = 1;
    w.pad_to_capacity = true;
    w.router_fusion = false;
  }
  w.cp_exchange = context_exchange::all_to_all;
  w.global_batch_size = number("mbc", 1) * w.par.dp;
  w.place.gpus_per_domain = p.gpus_per_rack();
  return w;
}

void compare(const csv_row& row, const std::string& table, input_cache& inputs,
             std::vector<validation_record>& out) {
  validation_record peak, step;
  const std::string& name = row["case"];
  peak.table = step.table = table;
  peak.id = step.id = name;
  peak.metric = "peak_alloc_GiB";
  step.metric = "step_time_ms";
  for (validation_record* r : {&peak, &step}) {
    r->system = row["system"];
    r->kind = r == &peak ? "peak" : "step time";
    r->suspect = row["suspect"];
  }
  try {
    peak.published = published_value(row, "peak_alloc_GiB");
    step.published = published_value(row, "step_time_ms");
    const auto it = std::find_if(models.begin(), models.end(),
                                 [&](const case_model& m) { return name.starts_with(m.prefix); });
    if (it == models.end()) throw cell_error(fmt::format("case: the model of \"{}\" is unknown", name));
    peak.model = step.model = std::string(it->model);
    const auto t = tokens_in(std::string_view(name).substr(it->prefix.size()));
    const std::string_view platform_name = platform_of_system(row["system"]);
    if (platform_name.empty()) throw cell_error(fmt::format("system: \"{}\" is unknown", row["system"]));
    const platform& p = inputs.platform_named(std::string(platform_name));
    const stack& s = inputs.stack_named(stack_name);
    const auto layers = t.find("l");
    const model& whole = inputs.model_named(std::string(it->model));
    const model m =
        cut_to(whole, layers == t.end() ? static_cast<std::int64_t>(whole.layers.size()) : layers->second);
    const training_workload w = workload_of(t, p);
    if (const auto problems = training_problems(p, m, w); !problems.empty()) {
      peak.status = step.status = record_status::infeasible;
      peak.reason = step.reason = fmt::format("{}", fmt::join(problems, "; "));
    } else {
      peak.simulated = training_memory(p, s, m, w).allocated.base() / 0x1p30;
      step.simulated = evaluate(plan_training(p, s, m, w)).makespan.base() * 1e3;
      peak.status = step.status = record_status::ok;
    }
  } catch (const std::exception&) {
    record_failure(peak);
    record_failure(step);
  }
  for (validation_record* r : {&peak, &step}) {
    if (r->suspect.starts_with("exclude:") || (!r->published && r->status == record_status::ok)) {
      r->status = record_status::excluded;
      r->reason = r->published ? r->suspect : "nothing to compare";
    }
    out.push_back(std::move(*r));
  }
}

}  // namespace

std::vector<validation_record> validate_memory(const csv_table& t, const data_folders& data,
                                               const progress& report) {
  input_cache inputs(data);
  std::vector<validation_record> out;
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    if (t.rows[i].blank("framework")) compare(t.rows[i], t.stem, inputs, out);
    else out.push_back(compare_peak(t.rows[i], t.stem, inputs));
    if (report) report(i + 1, t.rows.size());
  }
  return out;
}

}  // namespace nvlsim
