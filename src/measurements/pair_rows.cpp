// Reads rows of pairs.csv: one thing changed, both sides measured. Each side becomes a row of inference.csv.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measurements/cell_text.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/measurements/row_runs.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/rank_weights.hpp"

namespace nvlsim {
namespace {

/// A pair that cannot be simulated, and why.
class left_out : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The number before `word`.
std::optional<double> number_before(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view head = text.substr(0, at);
  while (head.ends_with(' ')) head.remove_suffix(1);
  const std::size_t begin = head.find_last_not_of("0123456789.") + 1;
  double n = 0;
  if (std::from_chars(head.data() + begin, head.data() + head.size(), n).ec != std::errc()) return std::nullopt;
  return n;
}

using cells = std::map<std::string, std::string, std::less<>>;

csv_row row_of(const cells& all) {
  auto columns = std::make_shared<std::map<std::string, std::size_t, std::less<>>>();
  std::vector<std::string> texts;
  for (const auto& [name, text] : all) {
    columns->emplace(name, texts.size());
    texts.push_back(text);
  }
  return {columns, std::move(texts)};
}

/// What a pair compares.
enum class quantity_kind { ttft, tpot, rate, rate_of_sequence, context_slope, cache };

quantity_kind kind_of(std::string_view unit) {
  if (holds(unit, "context token")) return quantity_kind::context_slope;
  if (holds(unit, "TTFT") && !holds(unit, "requests")) return quantity_kind::ttft;
  if (holds(unit, "TPOT")) return quantity_kind::tpot;
  if (holds(unit, "KV tokens")) return quantity_kind::cache;
  if (holds(unit, "/user") || holds(unit, "decode tok/s")) return quantity_kind::rate_of_sequence;
  if (holds(unit, "tok/s") || holds(unit, "throughput")) return quantity_kind::rate;
  throw left_out(fmt::format("what is compared ({}) is not simulated", unit));
}

/// The load in the words of inference.csv.
void set_load(const csv_row& row, cells& out, std::string& notes) {
  const std::string& load = row["load"];
  const auto text = [](double x) { return fmt::format("{:.0f}", x); };
  if (const auto n = number_after(load, "concurrency")) {
    out["scenario"] = "closed-loop";
    out["concurrency"] = text(*n);
  } else if (const auto batch = number_after(load, "batch")) {
    out["scenario"] = "static-batch";
    out["concurrency"] = text(*batch);
  } else if (const auto prompts = number_before(load, " prompts at")) {
    out["scenario"] = "closed-loop";  // they arrive much faster than they are served
    out["concurrency"] = out["num_prompts"] = text(*prompts);
  } else if (const auto rate = number_before(load, " requests/s")) {
    out["scenario"] = "open-loop";
    out["request_rate_per_s"] = fmt::format("{}", *rate);
    out["num_prompts"] = text(number_before(load, " prompts").value_or(1000));
  } else if (const auto few = number_before(load, " requests")) {
    out["scenario"] = "closed-loop";
    out["concurrency"] = text(*few);
  } else {
    throw left_out("the load is not stated");
  }
  if (const auto prompt = number_before(load, "/"); prompt && holds(load, "k/") && row.blank("isl")) {
    out["isl"] = text(*number_before(load, "k/") * 1000);
    out["osl"] = text(number_after(load, "k/").value_or(1));
  }
  constexpr double usual = 500;  // tokens of a prompt and of an answer, in chats and code
  for (const char* column : {"isl", "osl"})
    if (out[column].empty()) {
      out[column] = text(usual);
      notes += fmt::format("{}{} tokens assumed for {}", notes.empty() ? "" : "; ", usual, column);
    }
}

cells common_cells(const csv_row& row, std::string& notes) {
  if (row["system"].empty()) throw left_out("the GPU is not stated");
  if (row["model"].find('(') != std::string::npos) throw left_out("a kernel, not a model");
  cells out;
  for (const char* column : {"id", "model", "weight_precision", "isl", "osl", "suspect"})
    out[column] = row[column];
  out["system"] = row["system"] == "a800" ? "a100" : row["system"];
  out["engine"] = row["engine"].substr(0, row["engine"].find(' '));
  out["engine_version"] = row["version"];
  if (out["engine"] == "vLLM-Omni") out["engine"] = "vLLM";
  const std::string& layout = row["layout"];
  const auto size = [&](const char* word) { return number_after(layout, word); };
  out["gpus"] =
      row.blank("gpus") ? fmt::format("{:.0f}", size("tp").value_or(1) * size("pp").value_or(1)) : row["gpus"];
  out["tp"] = fmt::format("{:.0f}", size("tp").value_or(row.number("gpus").value_or(1)));
  if (const auto n = size("ep")) out["ep"] = fmt::format("{:.0f}", *n);
  if (const auto n = size("pp")) out["pp"] = fmt::format("{:.0f}", *n);
  if (holds(layout, "fp8 KV")) out["kv_precision"] = "fp8";
  if (holds(layout, "eager")) out["cuda_graph"] = "no";
  if (const auto n = number_after(layout, "max_num_seqs")) out["max_batch"] = fmt::format("{:.0f}", *n);
  if (const auto n = number_after(layout, "max_num_batched_tokens"))
    out["max_num_tokens"] = fmt::format("{:.0f}", *n);
  set_load(row, out, notes);
  return out;
}

/// Drafts in the words of pairs.csv; tokens a step where the row or its table says them.
struct named_drafts {
  std::string_view label;
  draft_source source;
  int tokens;
  double tokens_per_step;
  bool parallel;
};
// Acceptance: 3 and 7 draft tokens of EAGLE-3 and P-EAGLE over three sets of prompts, means of pairs.csv itself.
constexpr std::array<named_drafts, 4> drafts = {{{"P-EAGLE", draft_source::eagle3, 7, 3.67, true},
                                                 {"EAGLE-3", draft_source::eagle3, 3, 2.53, false},
                                                 {"EAGLE-2", draft_source::eagle3, 3, 2.3, false},
                                                 {"MTP", draft_source::mtp, 3, 2.54, false}}};

void set_drafts(const csv_row& row, std::string_view label, inference_row& out) {
  for (const named_drafts& d : drafts) {
    if (!holds(label, d.label)) continue;
    speculation& s = out.workload.drafts;
    s = {.draft_tokens = d.tokens,
         .tokens_per_step = d.tokens_per_step,
         .source = d.source,
         .parallel = d.parallel};
    if (const auto n = number_after(row["what_changed"], "MTP"); n && d.source == draft_source::mtp) {
      s.draft_tokens = static_cast<int>(*n);
      constexpr double acceptance = 0.64;  // docs/models-and-assumptions.md#speculative-decoding
      s.tokens_per_step = expected_tokens_per_step(s.draft_tokens, acceptance);
    }
    if (const auto stated = number_before(row["acceptance"], fmt::format(" ({})", d.label)))
      s.tokens_per_step = std::clamp(*stated, 1.0, 1.0 + s.draft_tokens);
    if (s.source == draft_source::eagle3) s.draft = std::make_shared<const model>(eagle_layer(*out.net));
    return;
  }
}

/// Changes the cells of one side.
void set_cells(const csv_row& row, std::string_view label, bool changed, cells& out) {
  const std::string& kind = row["kind"];
  if (kind == "fp8-kv") {
    out["kv_precision"] = label;
  } else if (kind == "cuda graph") {
    if (holds(row["what_changed"], "piecewise")) throw left_out("piecewise CUDA graphs are not simulated");
    if (!changed) out["cuda_graph"] = "no";
  } else if (!holds(kind, "eagle") && !holds(kind, "draft model") && kind != "mtp" &&
             kind != "decode context parallel") {
    throw left_out(fmt::format("the change ({}) is not simulated", row["what_changed"]));
  }
}

/// Changes of one side that cells cannot say.
void set_side(const csv_row& row, std::string_view label, bool changed, inference_row& out) {
  const std::string& kind = row["kind"];
  if (holds(row["what_changed"], "precision")) throw left_out("the format of drafts is not simulated");
  if (holds(kind, "eagle") || holds(kind, "draft model")) set_drafts(row, label, out);
  if (kind == "mtp" && changed) set_drafts(row, "MTP", out);
  if (kind == "decode context parallel" && changed)
    if (const auto n = number_after(label, "DCP")) out.workload.engine.decode_context_parallel = std::llround(*n);
}

class pair_side {
 public:
  pair_side(const csv_row& row, bool changed, input_cache& inputs)
      : row_(row), changed_(changed), inputs_(inputs) {}

  double value(std::string& notes) {
    const quantity_kind what = kind_of(row_["unit"]);
    cells side = common_cells(row_, notes);
    set_cells(row_, label(), changed_, side);
    if (what == quantity_kind::context_slope) return slope(std::move(side));
    return simulated(side, what);
  }

 private:
  const std::string& label() const { return row_[changed_ ? "value_b_label" : "value_a_label"]; }

  double slope(cells side) {
    constexpr double near = 8000, far = 100000;  // tokens of context
    side["scenario"] = "static-batch";
    side["osl"] = "100";
    side["isl"] = fmt::format("{:.0f}", near);
    const double first = simulated(side, quantity_kind::tpot);
    side["isl"] = fmt::format("{:.0f}", far);
    return (simulated(side, quantity_kind::tpot) - first) / (far - near);
  }

  double simulated(cells side, quantity_kind what) {
    const bool by_sequence = what == quantity_kind::rate_of_sequence;
    const char* column = what == quantity_kind::ttft                  ? "ttft_ms"
                         : what == quantity_kind::tpot || by_sequence ? "tpot_ms"
                                                                      : "tokens_per_s_total";
    side[column] = "1";
    const csv_row made = row_of(side);
    inference_row r = read_inference_row(made, "pairs", inputs_);
    if (r.record.status != record_status::ok) throw left_out(r.record.reason);
    set_side(row_, label(), changed_, r);
    const auto problems = serving_problems(r.hardware, *r.software, *r.net, r.workload);
    if (!problems.empty()) throw left_out(fmt::format("{}", fmt::join(problems, "; ")));
    if (what == quantity_kind::cache)
      return static_cast<double>(
          plan_serving_memory(r.hardware, *r.software, *r.net, r.workload).kv_capacity_tokens);
    const std::vector<double> values = simulate_row(r, *r.software);
    if (r.record.status != record_status::ok || values.empty()) throw left_out(r.record.reason);
    return by_sequence ? 1 / values.front() : values.front();
  }

  const csv_row& row_;
  bool changed_;
  input_cache& inputs_;
};

}  // namespace

std::vector<validation_record> validate_pairs(const csv_table& t, const data_folders& data,
                                              const progress& report) {
  input_cache inputs(data);
  return validate_rows(t, report, [&](const csv_row& row, validation_record& r) {
    r.metric = "ratio_b_over_a";
    r.kind = row["kind"];
    r.release = row["engine"];
    r.published = published_value(row, r.metric);
    if (r.suspect.starts_with("exclude:") || !r.published) {
      r.status = record_status::excluded;
      r.reason = r.published ? r.suspect : "nothing to compare";
      return;
    }
    try {
      std::string ignored;
      const double before = pair_side(row, false, inputs).value(r.notes);
      r.simulated = pair_side(row, true, inputs).value(ignored) / before;
    } catch (const left_out& e) {
      r.status = record_status::excluded;
      r.reason = e.what();
    }
  });
}

}  // namespace nvlsim
