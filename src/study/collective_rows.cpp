// Rows of collectives.csv.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nvlsim/collectives.hpp"
#include "study/catalogue.hpp"
#include "study/tables.hpp"

namespace nvlsim {
namespace {

constexpr const char* collective_stack = "nccl-2.29";

struct measured_system {
  std::string_view name, platform;
};
constexpr std::array<measured_system, 18> systems = {{
    {"V100-HCM8", "nd40rs-v2"},
    {"V100-p3dn-EFA100", "v100-p3dn"},
    {"A100-HGX", "ndm-a100-v4"},
    {"A100-HGX-RoCE", "a100-roce"},
    {"A100-HDR-SHARP", "a100-hdr-sharp"},
    {"H100-HGX", "nd-h100-v5"},
    {"H100-HGX-IB-NDR", "nd-h100-v5"},
    {"H100-p5-EFA", "h100-efa"},
    {"H100-A3Mega-TCPXO", "h100-tcpxo"},
    {"H200-HGX", "nd-h200-v5"},
    {"B200-HGX", "hgx-b200"},
    {"B200-HGX-NDR/RoCE400", "b200-roce"},
    {"B300-HGX", "hgx-b300"},
    {"GB200-NVL72", "gb200-nvl72"},
    {"GB200-NVL72-multirack", "gb200-x800"},
    {"GB300-NVL72", "gb300-nvl72"},
    {"GB300-NVL72-multirack-RoCE", "gb300-roce"},
    {"GB300-2x8", "gb300-nvl72"},
}};

/// NCCL_ALGO where the source set it; what a source only infers was chosen by the library.
std::string_view forced_algorithm(const std::string& cell) {
  if (cell.starts_with("Ring")) return "ring";
  if (cell.starts_with("NVLS") && cell.find("source says NVLS") != std::string::npos) return "nvls";
  return {};
}

/// Rows of TensorRT-LLM's expert exchange give bytes; they were measured on DeepSeek-V3's shape in BF16.
constexpr double exchange_top_k = 8, exchange_hidden = 7168;
bool is_expert_exchange(const csv_row& row) { return row["algorithm"].starts_with("TRT-LLM"); }

double simulated_us(const csv_row& row, const platform& p, const stack& s) {
  const std::string& kind_name = row["collective"];
  const auto kind = collective_by_name(kind_name);
  if (!kind) throw cell_error(fmt::format("collective: \"{}\" is unknown", kind_name));
  const auto gpus = row.integer("gpus"), domain = row.integer("gpus_per_nvlink_domain");
  const auto size = row.number("message_bytes");
  if (!gpus || !domain || !size || *gpus < 1 || *domain < 1) throw cell_error("gpus, gpus_per_nvlink_domain or message_bytes is blank");
  if (is_expert_exchange(row)) {
    expert_traffic t{0, exchange_top_k, exchange_hidden, static_cast<int>(*gpus)};
    t.tokens = *size / (exchange_hidden * 2 * std::min(exchange_top_k, static_cast<double>(*gpus)));
    return expert_exchange_time(s.collectives, p, "two_sided_dispatch_bf16", t).value().base() * 1e6;
  }
  const bool pair = *kind == collective::send_recv;
  const comm_group g{pair ? 2 : static_cast<int>(*gpus), static_cast<int>((*gpus + *domain - 1) / *domain)};
  collective_options options;
  options.algorithm = forced_algorithm(row["algorithm"]);
  return collective_time(s.collectives, p, *kind, bytes::from_base(*size), g, options).time.base() * 1e6;
}

validation_record validated(const csv_row& row, const std::string& table, input_cache& inputs) {
  validation_record r;
  r.table = table;
  r.id = row["id"];
  r.metric = "time_us";
  r.system = row["system"];
  r.kind = row["collective"];
  r.suspect = row["suspect"];
  try {
    r.published = row.number("time_us");
    const auto it = std::find_if(systems.begin(), systems.end(), [&](const auto& s) { return s.name == r.system; });
    if (r.suspect.starts_with("exclude:") || !r.published) {
      r.status = record_status::excluded;
      r.reason = r.published ? r.suspect : "nothing to compare";
    } else if (it == systems.end()) {
      throw cell_error(fmt::format("system: \"{}\" is unknown", r.system));
    } else {
      const double size = row.number("message_bytes").value_or(0);
      r.scenario = row.integer("gpus").value_or(0) > row.integer("gpus_per_nvlink_domain").value_or(0) ? "across domains"
                   : size >= 1 << 20                                                                   ? "one domain, 1 MiB and more"
                                                                                                       : "one domain, under 1 MiB";
      r.simulated = simulated_us(row, inputs.platform_named(std::string(it->platform)), inputs.stack_named(collective_stack));
      r.status = record_status::ok;
      if (is_expert_exchange(row)) r.scenario = "expert exchange";
    }
  } catch (const std::exception&) {
    record_failure(r);
  }
  return r;
}

}  // namespace

std::vector<validation_record> validate_collectives(const csv_table& t, const data_folders& data, const progress& report) {
  input_cache inputs(data);
  std::vector<validation_record> out;
  for (const csv_row& row : t.rows) {
    out.push_back(validated(row, t.stem, inputs));
    if (report) report(out.size(), t.rows.size());
  }
  return out;
}

}  // namespace nvlsim
