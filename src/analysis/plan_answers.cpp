#include "nvlsim/analysis/plan_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nvlsim {

std::string layout_text(const rank_counts& w) { return fmt::format("{} x {}", w.replicas, shape_text(w)); }

std::string shape_text(const rank_counts& w) {
  std::string out =
      w.attention_dp > 1 ? fmt::format("attention_dp {}", w.attention_dp) : fmt::format("tp {}", w.tp);
  if (w.pp > 1) out += fmt::format(" pp {}", w.pp);
  if (w.ep > 1) out += fmt::format(" ep {}", w.ep);
  return out;
}

std::string layout_text(const planned_server& s) {
  const std::string one =
      s.pooled ? layout_text(s.prefill) + " + " + layout_text(s.workers) : layout_text(s.workers);
  return s.copies > 1 ? fmt::format("{} times ({})", s.copies, one) : one;
}

const planned_server* serving_plan::best() const {
  if (!aggregated) return pooled ? &*pooled : nullptr;
  if (!pooled) return &*aggregated;
  if (for_demand && aggregated->gpus != pooled->gpus)
    return aggregated->gpus < pooled->gpus ? &*aggregated : &*pooled;
  return aggregated->requests_per_s >= pooled->requests_per_s ? &*aggregated : &*pooled;
}

bool serving_plan::enough() const {
  const planned_server* b = best();
  return b && b->users >= users_asked && b->requests_per_s >= requests_per_s_asked;
}

std::optional<std::int64_t> serving_plan::gpus_needed() const {
  const planned_server* b = best();
  if (!b) return for_demand && by_rates ? std::optional(by_rates->gpus) : std::nullopt;
  if (enough()) return b->gpus;
  const double times = std::max(users_asked / b->users, requests_per_s_asked / b->requests_per_s);
  const double many = std::ceil(times * static_cast<double>(b->gpus));
  return many < 1e15 ? std::optional(static_cast<std::int64_t>(many)) : std::nullopt;
}

}  // namespace nvlsim
