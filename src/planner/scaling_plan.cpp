#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "nvlsim/output/number.hpp"
#include "nvlsim/planner/training_plan.hpp"
#include "planner/training_search.hpp"

namespace nvlsim {
namespace {

constexpr double shown_change = 0.01;  // of the step: smaller changes are no reason

/// Shares of a step.
struct step_shares {
  double bubble = 0, exposed = 0;
};

step_shares shares_of(const planned_training& t) {
  return {t.bubble, t.step_time_s > 0 ? t.exposed_s / t.step_time_s : 0};
}

/// What grew most since the platform's first size.
std::string reason_for(const planned_training& first, const planned_training& now) {
  const step_shares a = shares_of(first), b = shares_of(now);
  struct growth {
    const char* what;
    double by, to;
  };
  std::array<growth, 2> all = {{{"pipeline bubble", b.bubble - a.bubble, b.bubble},
                                {"exposed communication", b.exposed - a.exposed, b.exposed}}};
  if (all[1].by > all[0].by) std::swap(all[0], all[1]);
  if (all[0].by < shown_change) {
    const double mfu = first.mfu > 0 ? now.mfu / first.mfu - 1 : 0;
    if (mfu > -shown_change) return "";
    return "smaller kernels: bubble and exposed communication did not grow";
  }
  return fmt::format("{} {:.0f} % of the step, {:+.0f} points", all[0].what, 100 * all[0].to, 100 * all[0].by);
}

std::string refusal_of(const found_training& f, std::int64_t batch, std::int64_t gpus) {
  if (!f.pruned.empty()) return f.pruned.front().example;
  return fmt::format("no layout of {} GPUs divides a batch of {}", gpus, batch);
}

std::int64_t integer_at(const value& v, const char* pointer) {
  const value* at = v.at_pointer(pointer);
  return at && at->integer() ? *at->integer() : 0;
}

plan_base of_platform(const scaling_question& q, const std::string& platform) {
  plan_base out = q.base;
  std::vector<std::pair<std::string, value>> more;
  if (!platform.empty()) more.emplace_back("/platform/use", platform);
  more.emplace_back("/platform/racks", value{});
  more.emplace_back("/placement", value{});
  out.text = with_members(out.text, more);
  return out;
}

}  // namespace

scaling_plan plan_scaling(const scaling_question& q, const plan_watch& watch) {
  const auto begin = std::chrono::steady_clock::now();
  scaling_plan out;
  out.weak = q.weak;
  const scenario own = read_base(q.base);
  const auto* w = std::get_if<training_workload>(&own.workload);
  if (!w) throw input_error({{own.file, "/workload/kind", "plan scaling needs a training scenario", {}}});
  out.scenario = own.name;
  std::vector<std::string> platforms = q.platforms;
  if (platforms.empty()) platforms.emplace_back();
  for (const std::string& platform : platforms) {
    const plan_base base = of_platform(q, platform);
    const std::int64_t per_size = w->global_batch_size;
    std::optional<planned_training> first;
    for (const std::int64_t gpus : q.gpus) {
      if (watch.stopped()) break;
      plan_base here = base;
      // The smallest size has the scenario's batch.
      if (q.weak)
        here.text = with_members(here.text, {{"/workload/global_batch_size",
                                              std::max<std::int64_t>(1, per_size * gpus / q.gpus.front())}});
      scenario s =
          read_base({with_members(here.text, {{"/platform/racks", 1'000'000}}), here.overrides, here.data});
      found_training f = best_of_places(here, s, gpus, false, watch);
      out.evaluated += f.evaluated;
      scaling_point p{s.platform.name, gpus, f.best, 0, {}};
      if (!f.best) {
        p.why = refusal_of(f, integer_at(here.text, "/workload/global_batch_size"), gpus);
      } else {
        if (!first) first = f.best;
        const auto each = [](const planned_training& t) { return t.tokens_per_s / static_cast<double>(t.gpus); };
        p.efficiency = each(*f.best) / each(*first);
        p.why = reason_for(*first, *f.best);
      }
      out.points.push_back(std::move(p));
    }
  }
  out.interrupted = watch.stopped();
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

std::vector<std::int64_t> sizes_of(const std::string& text) {
  std::vector<std::int64_t> out;
  const auto refuse = [&] {
    throw input_error(
        {{"--gpus",
          "",
          fmt::format("\"{}\" is not a list of GPU counts: use 72..9216 (doubling), 72,144,576 or both, from 1 "
                      "to 10000000",
                      text),
          {}}});
  };
  const auto count = [&](std::string_view word) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (error != std::errc() || end != word.data() + word.size() || n < 1 || n > 10'000'000) refuse();
    return n;
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const std::size_t dots = word.find("..");
    if (dots == std::string_view::npos) {
      out.push_back(count(word));
    } else {
      const std::int64_t from = count(word.substr(0, dots)), to = count(word.substr(dots + 2));
      if (to < from) refuse();
      for (std::int64_t n = from; n <= to; n *= 2) out.push_back(n);
    }
    at = end + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace nvlsim
