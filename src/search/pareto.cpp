#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "nvlsim/search/pareto.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t requests_of_client = 4;
constexpr std::int64_t min_requests = 32;  // per replica
constexpr std::int64_t max_racks = 1'000'000;

inference_workload with_layout(inference_workload w, int tp, int ep, int attention_dp, std::int64_t gpus) {
  w.tp = tp;
  w.ep = ep;
  w.attention_dp = attention_dp;
  w.replicas = static_cast<int>(gpus / w.gpus_per_replica());
  return w;
}

std::string layout_name(const inference_workload& w) {
  std::string out;
  const auto add = [&](const char* key, int n) {
    if (n > 1) out += fmt::format("{}{} {}", out.empty() ? "" : " ", key, n);
  };
  add("tp", w.tp);
  add("pp", w.pp);
  add("attention_dp", w.attention_dp);
  add("ep", w.ep);
  return (out.empty() ? std::string("tp 1") : out) + fmt::format(" x{}", w.replicas);
}

/// Layouts with power-of-two sizes inside a domain and as many replicas as the GPUs hold.
std::vector<inference_workload> layouts(const scenario& s, const inference_workload& base, std::int64_t gpus) {
  std::vector<inference_workload> out;
  const bool experts = has_routed_experts(s.model);
  for (int n = 1; n * base.pp <= gpus && n <= s.platform.gpus_per_rack(); n *= 2) {
    out.push_back(with_layout(base, n, 1, 1, gpus));
    if (!experts || n == 1) continue;
    out.push_back(with_layout(base, n, n, 1, gpus));
    out.push_back(with_layout(base, 1, n, n, gpus));
  }
  return out;
}

/// Runs a closed loop and measures it. `shared` is of its layout.
bool measure(const scenario& s, const inference_workload& w, shared_runs& shared, inference_metrics& out,
             std::string& reason) {
  const serving_run run = serve(s.platform, s.stack, s.model, w, {.traced = false, .shared = &shared});
  if (!run.reasons.empty()) return reason = run.reasons.front(), false;
  out = measure_inference(run, w);
  return true;
}

double per_user(const pareto_point& p) { return p.metrics.output_tokens_per_s_per_user.value_or(0); }
double per_gpu(const pareto_point& p) { return p.metrics.output_tokens_per_s_per_gpu; }

void mark_efficient(std::vector<pareto_point>& points) {
  std::stable_sort(points.begin(), points.end(), [](const pareto_point& a, const pareto_point& b) {
    return per_user(a) > per_user(b) || (per_user(a) == per_user(b) && per_gpu(a) > per_gpu(b));
  });
  double best = -std::numeric_limits<double>::infinity();
  for (pareto_point& p : points) {
    p.efficient = per_gpu(p) > best;
    best = std::max(best, per_gpu(p));
  }
}

}  // namespace

pareto_study study_pareto(scenario s, std::int64_t gpus, const std::vector<std::int64_t>& clients,
                          const std::function<void(std::size_t, std::size_t)>& report) {
  const auto* given = std::get_if<inference_workload>(&s.workload);
  if (!given || given->load == load_kind::trace)
    throw input_error(
        {{s.file, "/workload", "a Pareto study needs an inference workload that states request lengths", {}}});
  inference_workload base = *given;
  base.load = load_kind::closed_loop;
  base.mlperf.reset();  // its rules are of other loads
  base.measured = {.steady = true};
  base.prefill_pool.reset();
  base.prompts_cached = false;
  pareto_study out;
  out.name = s.name;
  if (given->pooled())
    out.left_out.emplace_back(
        "prefill and decode pools: not tried; layouts of combined engines are tried instead");
  out.gpus = gpus > 0 ? gpus : std::int64_t{given->gpus()};
  const std::int64_t rack = std::max(1, s.platform.gpus_per_rack());
  s.platform.racks = std::max(s.platform.racks,
                              static_cast<int>(std::min<std::int64_t>((out.gpus + rack - 1) / rack, max_racks)));
  const std::vector<inference_workload> all = layouts(s, base, out.gpus);
  const std::size_t loops = all.size() * clients.size();
  for (const inference_workload& layout : all) {
    std::size_t done = static_cast<std::size_t>(&layout - all.data()) * clients.size();
    const std::string name = layout_name(layout);
    const std::int64_t workers = std::int64_t{layout.replicas} * layout.pp;
    const auto shared = runs_of_layout({s.platform, s.stack, s.model, layout});
    for (const std::int64_t n : clients) {
      if (report) report(done++, loops);
      inference_workload w = layout;
      w.concurrency = n;
      w.requests = std::max(requests_of_client * n, min_requests * std::min(workers, n));
      pareto_point p{name, w.tp, w.pp, w.ep, w.attention_dp, w.replicas, n, {}, false};
      std::string reason;
      if (measure(s, w, *shared, p.metrics, reason)) {
        // Counts GPUs too that no replica fits on.
        p.metrics.output_tokens_per_s_per_gpu = p.metrics.output_tokens_per_s / static_cast<double>(out.gpus);
        p.metrics.total_tokens_per_s_per_gpu = p.metrics.total_tokens_per_s / static_cast<double>(out.gpus);
        out.points.push_back(std::move(p));
      } else {
        out.left_out.push_back(fmt::format("{}: {}", name, reason));
        break;
      }
    }
  }
  if (report) report(loops, loops);
  mark_efficient(out.points);
  return out;
}

}  // namespace nvlsim
