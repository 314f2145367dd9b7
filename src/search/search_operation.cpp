// A training job over months: spare trays, how often it saves, how it recovers, and its layout.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/run/operation_job.hpp"
#include "search/search_space.hpp"

namespace nvlsim {
namespace {

/// A layout of the job: all its runs share the price of its step.
struct job_layout {
  std::int64_t gpus_per_rack = 0, tp = 1, pp = 1, dp = 1, batch = 1;
};

class operation_layouts final : public search_space {
 public:
  operation_layouts(const scenario& s, const search_options& o, diagnostics& problems)
      : scenario_(s), case_(std::get<operation_case>(s.workload)) {
    const std::int64_t domain = std::max(1, s.platform.gpus_per_rack());
    if (!is_followed_alone(s)) {
      problems.add(s.file, "/jobs",
                   "a search of an operation supports one training job, without a queue or services");
      return;
    }
    own_ = std::get<training_workload>(case_.jobs.front().alone->workload);
    if (o.gpus % domain != 0) {
      problems.add("--gpus", "", fmt::format("{} is not a multiple of the {} GPUs of a rack", o.gpus, domain));
      return;
    }
    racks_ = o.gpus / domain;
    everywhere = {{"/platform/racks", racks_}};
    machine_ = s.platform;
    machine_.racks = static_cast<int>(racks_);
    add("gpus_per_rack", "/jobs/0/placement/gpus_per_rack", std::to_string(own_.place.gpus_per_domain));
    add("tp", "/jobs/0/workload/tp", std::to_string(own_.par.tp));
    add("pp", "/jobs/0/workload/pp", std::to_string(own_.par.pp));
    add("dp", "/jobs/0/workload/dp", std::to_string(own_.par.dp));
    add("global_batch_size", "/jobs/0/workload/global_batch_size", std::to_string(own_.global_batch_size));
    add("checkpoint_interval", "/workload/checkpoint/interval", own_interval());
    add("recovery", "/workload/recovery/mode", own_mode());
    known_.back().words.assign(recovery_mode_names.begin(), recovery_mode_names.end());
    for (const metric& m : metrics_of(metric_kind::operation))
      if (m.direction != better::neither &&
          (m.needs == metric_needs::training_job || m.needs == metric_needs::lone_job ||
           (m.needs == metric_needs::facility && s.facility && m.search != search_use::refused)))
        metrics.emplace_back(m.name);
    const allowed_values allowed(o.restrictions, known_, problems);
    if (problems.empty()) list(allowed, domain);
  }

  std::size_t groups() const override { return layouts_.size(); }
  std::size_t size(std::size_t) const override { return intervals_.size() * modes_.size(); }
  std::vector<value> layout(std::size_t group, std::size_t index) const override {
    const job_layout& l = layouts_[group];
    return {value{l.gpus_per_rack},
            value{l.tp},
            value{l.pp},
            value{l.dp},
            value{l.batch},
            value{fmt::format("{} s", intervals_[index / modes_.size()])},
            value{recovery_mode_names[modes_[index % modes_.size()]]}};
  }
  std::string group_reason(std::size_t group) const override {
    const scenario& job = *case_.jobs.front().alone;
    if (const auto all = training_problems(machine_, job.model, workload(group)); !all.empty()) return all.front();
    const priced_operation& p = priced(group);
    return p.reasons.empty() ? std::string() : p.reasons.front();
  }

  evaluation evaluate_layout(std::size_t group, std::size_t index, bool) const override {
    priced_operation job = priced(group);
    job.study.setup.save.interval = seconds::from_base(static_cast<double>(intervals_[index / modes_.size()]));
    choose_multiples_of_saves(job.study.setup);
    job.study.setup.recovery.mode = static_cast<recovery_mode>(modes_[index % modes_.size()]);
    value numbers{value::object{}};
    set_metrics(numbers, measure_alone(scenario_, job));
    evaluation out;
    for (const std::string& m : metrics) {
      const value* v = numbers.find(m);
      out.metrics.push_back(v && v->number() ? std::optional<double>(*v->number()) : std::nullopt);
    }
    return out;
  }

 private:
  void add(std::string name, std::string pointer, std::string own) {
    known_.push_back({name, std::move(own), {}, 1});
    parameters.push_back(std::move(name));
    pointers.push_back(std::move(pointer));
  }
  std::string own_interval() const {
    const auto& given = case_.cluster->training->save.interval;
    return given ? fmt::format("{:.0f}", given->base()) : "600";
  }
  const std::string& own_mode() const {
    return recovery_mode_names[static_cast<std::size_t>(case_.cluster->training->recovery.mode)];
  }

  void list(const allowed_values& allowed, std::int64_t domain) {
    constexpr std::int64_t max_spares = 4;
    intervals_ = allowed.integers("checkpoint_interval", {60, 120, 180, 300, 600, 1200, 1800, 3600});
    const bool stated = std::any_of(recovery_mode_names.begin(), recovery_mode_names.end(),
                                    [&](const std::string& mode) { return allowed.asks("recovery", mode); });
    for (std::size_t m = 0; m < recovery_mode_names.size(); ++m)
      if (stated ? allowed.allows("recovery", recovery_mode_names[m]) : recovery_mode_names[m] == own_mode())
        modes_.push_back(m);
    std::vector<std::int64_t> in_rack;
    for (std::int64_t spare = 0; spare <= max_spares; ++spare)
      if (const std::int64_t left = domain - spare * scenario_.platform.vm.gpus; left > 0) in_rack.push_back(left);
    for (const std::int64_t each : allowed.integers("gpus_per_rack", in_rack))
      for (const std::int64_t tp : allowed.integers("tp", {own_.par.tp}))
        for (const std::int64_t pp : allowed.integers("pp", {own_.par.pp})) add_layout({each, tp, pp}, allowed);
    prices_.resize(layouts_.size());
    asked_ = std::make_unique<std::once_flag[]>(layouts_.size());
  }

  /// As many replicas as the trays hold, each with the scenario's sequences.
  void add_layout(job_layout l, const allowed_values& allowed) {
    const std::int64_t each = l.tp * l.pp * own_.par.cp;
    l.dp = racks_ * l.gpus_per_rack / each;
    l.batch = own_.global_batch_size / own_.par.dp * l.dp;
    if (l.dp > 0 && allowed.allows("dp", l.dp) && allowed.allows("global_batch_size", l.batch))
      layouts_.push_back(l);
  }

  training_workload workload(std::size_t group) const {
    const job_layout& l = layouts_[group];
    training_workload w = own_;
    w.par.tp = l.tp;
    w.par.pp = l.pp;
    w.par.dp = l.dp;
    w.global_batch_size = l.batch;
    w.place = {l.gpus_per_rack};
    return w;
  }

  const priced_operation& priced(std::size_t group) const {
    std::call_once(asked_[group], [&] {
      scenario s = scenario_;
      s.platform = machine_;
      auto& c = std::get<operation_case>(s.workload);
      auto job = std::make_shared<scenario>(*c.jobs.front().alone);
      job->platform = machine_;
      job->workload = workload(group);
      c.jobs.front().alone = std::move(job);
      if (std::find(modes_.begin(), modes_.end(), static_cast<std::size_t>(recovery_mode::redundant)) !=
          modes_.end()) {
        auto cluster = std::make_shared<operation_workload>(*c.cluster);
        cluster->training->recovery.mode = recovery_mode::redundant;  // so that its steps are priced too
        c.cluster = std::move(cluster);
      }
      prices_[group] = price_alone(s);
    });
    return prices_[group];
  }

  const scenario& scenario_;
  const operation_case& case_;
  training_workload own_;
  platform machine_;
  std::int64_t racks_ = 0;
  std::vector<search_parameter> known_;
  std::vector<job_layout> layouts_;
  std::vector<std::int64_t> intervals_;  ///< seconds
  std::vector<std::size_t> modes_;
  mutable std::vector<priced_operation> prices_;
  mutable std::unique_ptr<std::once_flag[]> asked_;
};

}  // namespace

std::unique_ptr<search_space> operation_space(const scenario& s, const search_options& o, diagnostics& problems) {
  return std::make_unique<operation_layouts>(s, o, problems);
}

}  // namespace nvlsim
