#include "nvlsim/measurements/pooled_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvlsim {
namespace {

/// All whole numbers in a text, in order.
std::vector<int> counts_in(std::string_view text) {
  std::vector<int> out;
  bool inside = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) out.push_back(0);
    if (digit && out.back() < 100'000) out.back() = 10 * out.back() + (c - '0');
    inside = digit;
  }
  return out;
}

/// A pool of workers with `ranks` GPUs each. With attention data parallelism each rank has its own sequences.
rank_counts pool_of(int workers, int ranks, int ep, bool attention_dp, bool routed) {
  rank_counts out;
  out.replicas = std::max(workers, 1);
  (attention_dp && routed ? out.attention_dp : out.tp) = std::max(ranks, 1);
  out.ep = routed ? std::clamp(ep, 1, std::max(ranks, 1)) : 1;
  return out;
}

struct both_pools {
  rank_counts prefill, decode;
};

/// Parses "prefill 2x(tp1,dp4,ep4), decode 5x(tp8,dp1,ep8)". Worker sizes follow from the numbers of GPUs.
std::optional<both_pools> pools_in_notes(const std::string& notes, int prefill_gpus, int decode_gpus,
                                         bool routed) {
  const std::size_t from = notes.find("prefill ");
  const std::size_t to = from == std::string::npos ? from : notes.find("), decode ", from);
  if (to == std::string::npos) return std::nullopt;
  const auto n = counts_in(std::string_view(notes).substr(from, notes.find(')', to + 1) - from));
  if (n.size() != 8 || n[0] < 1 || n[4] < 1) return std::nullopt;
  constexpr int wide = 8;  // from this many ranks SGLang uses expert parallelism, whatever the layout column says
  const auto one = [&](int workers, int gpus, int dp, int ep) {
    const int ranks = std::max(gpus / workers, 1);
    return pool_of(workers, ranks, dp > 1 && ep <= 1 && ranks > wide ? ranks : ep, dp > 1, routed);
  };
  return both_pools{one(n[0], prefill_gpus, n[2], n[3]), one(n[4], decode_gpus, n[6], n[7])};
}

/// Parses "2 prefill workers x 4 GPU, 4 decode workers x 16 GPU" or "1 prefill + 1 decode instance".
std::optional<both_pools> workers_in_notes(const std::string& notes, bool routed) {
  const std::size_t end = notes.find(" decode workers x ");
  const std::size_t begin = notes.find("disaggregation: ");
  if (end == std::string::npos || begin == std::string::npos) return std::nullopt;
  const auto n = counts_in(std::string_view(notes).substr(begin, notes.find(';', end) - begin));
  if (n.size() != 4) return std::nullopt;
  return both_pools{pool_of(n[0], n[1], n[1], n[1] > 1, routed), pool_of(n[2], n[3], n[3], n[3] > 1, routed)};
}

/// Parses "1P3D of tp2" of the layout column. Without a size all workers share the GPUs of their pool.
std::optional<both_pools> workers_in_layout(const std::string& layout, int prefill_gpus, int decode_gpus,
                                            bool routed) {
  const auto n = counts_in(layout);
  if (n.size() < 2 || n[0] < 1 || n[1] < 1) return std::nullopt;
  if (!layout.starts_with(fmt::format("{}P{}D", n[0], n[1]))) return std::nullopt;
  const bool sized = n.size() == 3;
  if (n.size() > 3 || (!sized && (prefill_gpus < 1 || decode_gpus < 1))) return std::nullopt;
  return both_pools{pool_of(n[0], sized ? n[2] : prefill_gpus / n[0], 1, false, routed),
                    pool_of(n[1], sized ? n[2] : decode_gpus / n[1], 1, false, routed)};
}

/// Number of racks (or servers) needed: small workers are not split, large ones take whole racks.
int domains_for(const rank_counts& l, int domain) {
  const int each = l.gpus_per_replica();
  return each >= domain ? (each + domain - 1) / domain * l.replicas
                        : (l.replicas + domain / each - 1) / (domain / each);
}

}  // namespace

std::optional<std::string> read_pools(const csv_row& row, inference_row& out) {
  inference_workload& w = out.workload;
  const bool routed = has_routed_experts(*out.net);
  const auto prefill_gpus = static_cast<int>(row.integer("prefill_gpus").value_or(0));
  const auto decode_gpus = static_cast<int>(row.integer("decode_gpus").value_or(0));
  std::string assumed;
  std::optional<both_pools> pools = workers_in_layout(row["launch_layout"], prefill_gpus, decode_gpus, routed);
  if (!pools && (prefill_gpus < 1 || decode_gpus < 1)) return std::nullopt;
  if (!pools) pools = pools_in_notes(row["notes"], prefill_gpus, decode_gpus, routed);
  if (!pools) pools = workers_in_notes(row["notes"], routed);
  if (!pools) {
    constexpr int usual_worker = 4;
    constexpr std::int64_t busy = 16;  // requests per GPU from which attention data parallelism pays off
    const int ep = std::max(static_cast<int>(row.integer("ep").value_or(1)), 1);
    const int size = ep > 1 ? std::min(ep, decode_gpus) : decode_gpus;
    const bool apart = row.integer("concurrency").value_or(0) / decode_gpus >= busy || size > 8;
    const int prefill_size = std::min(usual_worker, prefill_gpus);
    pools = both_pools{pool_of(prefill_gpus / prefill_size, prefill_size, prefill_size, true, routed),
                       pool_of(decode_gpus / size, size, size, apart, routed)};
    assumed =
        fmt::format("pools assumed: prefill {} x {} GPUs, decode {} x {} GPUs{}", pools->prefill.replicas,
                    prefill_size, pools->decode.replicas, size, apart ? " with attention data parallelism" : "");
  }
  w.prefill_pool = pool_layout{pools->prefill, {}};
  static_cast<rank_counts&>(w) = pools->decode;
  out.gpus = w.gpus();
  const int domain = static_cast<int>(out.hardware.gpus_per_rack());
  const int racks =
      w.gpus() <= domain ? 1 : domains_for(pools->prefill, domain) + domains_for(pools->decode, domain);
  out.hardware.racks = std::max(out.hardware.racks, racks);
  return assumed;
}

}  // namespace nvlsim
