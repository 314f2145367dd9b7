// Reads rows of collectives.csv.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nvlsim/collectives/models.hpp"
#include "nvlsim/measurements/collective_rows.hpp"

namespace nvlsim {
namespace {

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

/// NCCL_ALGO if the source set it. If the source only infers the algorithm, the library chose it.
std::string_view forced_algorithm(const std::string& cell) {
  if (cell.starts_with("Ring")) return "ring";
  if (cell.starts_with("NVLS") && cell.find("source says NVLS") != std::string::npos) return "nvls";
  return {};
}

/// Rows of TensorRT-LLM's expert exchange give bytes, measured with DeepSeek-V3's shape in BF16.
constexpr double exchange_top_k = 8, exchange_hidden = 7168;
bool is_expert_exchange(const csv_row& row) { return row["algorithm"].starts_with("TRT-LLM"); }

void read_exchange(const platform& p, double size, collective_row& out) {
  expert_traffic t{0, exchange_top_k, exchange_hidden, out.gpus, 1, true};
  t.tokens = size / (exchange_hidden * 2 * std::min(exchange_top_k, static_cast<double>(out.gpus)));
  const std::string kind = "two_sided_dispatch_bf16";
  out.family = "expert_exchange/" + kind;
  out.price = [t, kind, &p](const collective_profile& c) { return expert_exchange_time(c, p, kind, t).value(); };
}

/// `domain`: GPUs of an NVLink domain.
void read_library(const csv_row& row, const platform& p, collective kind, int domain, collective_row& out) {
  const int ranks = kind == collective::send_recv ? 2 : out.gpus;
  const double size = row.number("message_bytes").value();
  const communicator g{ranks, (out.gpus + domain - 1) / domain};
  const std::string_view algorithm = forced_algorithm(row["algorithm"]);
  out.family = collective_family(p, kind, g);
  out.size = bytes::from_base(size);
  out.run = row["source"] + row["notes"];
  out.price = [kind, size, g, algorithm, alone = only_group_on(p, g)](const collective_profile& c) {
    collective_options options;
    options.algorithm = algorithm;
    return collective_time(c, alone, {kind, bytes::from_base(size), g, options}).time;
  };
}

void read_into(const csv_row& row, input_cache& inputs, collective_row& out) {
  validation_record& r = out.record;
  const auto it = std::find_if(systems.begin(), systems.end(), [&](const auto& s) { return s.name == r.system; });
  if (it == systems.end()) throw cell_error(fmt::format("system: \"{}\" is unknown", r.system));
  const auto kind = collective_by_name(row["collective"]);
  if (!kind) throw cell_error(fmt::format("collective: \"{}\" is unknown", row["collective"]));
  const auto gpus = row.integer("gpus"), domain = row.integer("gpus_per_nvlink_domain");
  const auto size = row.number("message_bytes");
  if (!gpus || !domain || !size || *gpus < 1 || *domain < 1)
    throw cell_error("gpus, gpus_per_nvlink_domain or message_bytes is blank");
  out.gpus = static_cast<int>(*gpus);
  out.platform = it->platform;
  const platform& p = inputs.platform_named(out.platform);
  const bool exchange = is_expert_exchange(row);
  r.scenario = exchange           ? "expert exchange"
               : *gpus > *domain  ? "across domains"
               : *size >= 1 << 20 ? "one domain, 1 MiB and more"
                                  : "one domain, under 1 MiB";
  if (exchange) return read_exchange(p, *size, out);
  read_library(row, p, *kind, static_cast<int>(*domain), out);
}

constexpr double message_element_bytes = 2;

void read_exchange_kernel(const csv_row& row, const platform& p, collective_row& out) {
  const std::string& op = row["op"];
  static constexpr std::string_view prefix = "alltoall_";
  const bool one_sided = row["note"].find("OneSided") != std::string::npos;
  const std::string& dtype = row["dtype"];
  const std::string kind =
      fmt::format("{}_{}_{}", one_sided ? "one_sided" : "two_sided",
                  op.starts_with(prefix) ? op.substr(prefix.size()) : op, dtype == "bfloat16" ? "bf16" : dtype);
  const expert_traffic t{need(row, "m"), need(row, "topk"), need(row, "hidden"), out.gpus, 1, true};
  out.family = "expert_exchange/" + kind;
  out.price = [t, kind, &p](const collective_profile& c) {
    const auto time = expert_exchange_time(c, p, kind, t);
    if (!time) throw input_error({{"", "", fmt::format("no expert-exchange kernel \"{}\"", kind), {}}});
    return *time;
  };
}

}  // namespace

void set_band(const collective_row& row, const collective_profile& c, validation_record& r) {
  auto it = c.spreads.find(collectives::spread_family(row.family, row.size));
  if (it == c.spreads.end()) it = c.spreads.find(row.family);
  if (r.simulated && it != c.spreads.end())
    r.band = {*r.simulated * it->second.low, *r.simulated * it->second.high};
}

std::string collective_family(const platform& p, collective kind, const communicator& g) {
  if (kind == collective::send_recv) kind = collective::all_gather;
  if (g.domains == 1) return fmt::format("domain/{}/{}", link_kind(p.gpu), name(kind));
  if (kind == collective::all_to_all) return "all_to_all/" + p.fabric.name;
  return fmt::format("fabric/{}/{}", p.fabric.name, name(kind));
}

void read_collective_kernel(const csv_row& row, const platform& p, collective_row& out) {
  const std::string& table = row["table"];
  out.gpus = need_count(row, table == "alltoall" ? "ep" : "gpus");
  if (table == "alltoall") return read_exchange_kernel(row, p, out);
  const bytes size = bytes::from_base(need(row, "message_elements") * message_element_bytes);
  if (table == "allreduce") {
    out.family = "custom/" + p.gpu.name;
    out.price = [size, n = out.gpus, &p](const collective_profile& c) {
      const auto cost = custom_all_reduce_time(c, p, size, n);
      if (!cost) throw input_error({{"", "", fmt::format("no fused all-reduce for {}", p.gpu.name), {}}});
      return cost->time;
    };
    return;
  }
  const auto kind = collective_by_name(row["op"]);
  if (!kind) throw cell_error(fmt::format("op: \"{}\" is not a collective", row["op"]));
  const communicator g{out.gpus, 1};
  out.family = collective_family(p, *kind, g);
  out.size = size;
  out.run = row["source"];
  out.price = [kind = *kind, size, g, &p](const collective_profile& c) {
    return collective_time(c, p, {kind, size, g}).time;
  };
}

collective_row read_collective_row(const csv_row& row, const std::string& table, input_cache& inputs) {
  collective_row out;
  validation_record& r = out.record;
  r = record_of(row, table);
  r.metric = "time_us";
  r.kind = row["collective"];
  try {
    r.published = published_value(row, "time_us");
    if (r.suspect.starts_with("exclude:") || !r.published) {
      r.status = record_status::excluded;
      r.reason = r.published ? r.suspect : "nothing to compare";
    } else {
      read_into(row, inputs, out);
    }
  } catch (const std::exception&) {
    record_failure(r);
  }
  return out;
}

std::vector<validation_record> validate_collectives(const csv_table& t, const data_folders& data,
                                                    const progress& report) {
  input_cache inputs(data);
  std::vector<validation_record> out;
  for (const csv_row& row : t.rows) {
    collective_row r = read_collective_row(row, t.stem, inputs);
    try {
      if (r.price) {
        const collective_profile& c = inputs.stack_named(collective_stack).collectives;
        r.record.simulated = r.price(c).base() * 1e6;
        set_band(r, c, r.record);
      }
    } catch (const std::exception&) {
      record_failure(r.record);
    }
    out.push_back(std::move(r.record));
    if (report) report(out.size(), t.rows.size());
  }
  return out;
}

}  // namespace nvlsim
