#include "nvlsim/scheduling/generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "nvlsim/units/random.hpp"
#include "nvlsim/units/statistics.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

/// A log-normal whose values above `longest` are `longest`.
struct clipped_log_normal {
  double median = 1, sigma = 1, longest = 1;

  /// The mean of what lies below the normal's `z`, times its probability.
  double mean_below(double z) const {
    const double cut = std::log(longest / median) / sigma;
    return median * std::exp(sigma * sigma / 2) * normal_below(std::min(z, cut) - sigma) +
           longest * std::max(0.0, normal_below(z) - normal_below(cut));
  }
};

clipped_log_normal with_mean(double mean, double sigma, double longest) {
  clipped_log_normal d{1, sigma, longest};
  double low = mean * 1e-12, high = longest * 1e12;
  for (int i = 0; i < 200; ++i) {
    d.median = std::sqrt(low * high);
    (d.mean_below(40) < mean ? low : high) = d.median;
  }
  return d;
}

/// Jobs of one size and outcome.
struct cell {
  std::int32_t gpus = 1;
  job_outcome outcome = job_outcome::completed;
  double share = 0;     ///< of jobs
  double mean_run = 0;  ///< seconds
};

std::vector<cell> cells_of(const job_generator& g) {
  double jobs = 0, gpu_time = 0, outcomes = 0, outcome_time = 0, runs = 0;
  for (const size_share& s : g.sizes) jobs += s.jobs, gpu_time += s.gpu_time;
  for (const double o : g.outcomes) outcomes += o;
  for (const double o : g.outcome_time) outcome_time += o;
  const auto of_size = [&](const size_share& s) {  // mean run, times a constant
    return gpu_time > 0 && s.jobs > 0 ? s.gpu_time / s.jobs / s.gpus : 1.0;
  };
  for (const size_share& s : g.sizes) runs += s.jobs / jobs * of_size(s);
  std::vector<cell> out;
  for (const size_share& s : g.sizes)
    for (std::size_t o = 0; o < g.outcomes.size(); ++o) {
      const double share = g.outcomes[o] / outcomes;
      if (share <= 0 || s.jobs <= 0) continue;
      out.push_back({s.gpus, static_cast<job_outcome>(o), s.jobs / jobs * share,
                     g.mean_run.base() * of_size(s) / runs * (g.outcome_time[o] / outcome_time / share)});
    }
  return out;
}

double share_below(const std::vector<cell>& cells, double sigma, const job_generator& g) {
  double out = 0;
  for (const cell& c : cells) {
    const clipped_log_normal d = with_mean(c.mean_run, sigma, g.max_run.base());
    out += c.share * normal_below(std::log(g.median_run.base() / d.median) / sigma);
  }
  return out;
}

constexpr double min_sigma = 0.05, max_sigma = 5;

/// The spread of run times that gives the median.
double sigma_of(const std::vector<cell>& cells, const job_generator& g) {
  double low = min_sigma, high = max_sigma;
  for (int i = 0; i < 50; ++i) {
    const double sigma = (low + high) / 2;
    (share_below(cells, sigma, g) < 0.5 ? low : high) = sigma;
  }
  return (low + high) / 2;
}

/// `count` run times whose mean is that of the distribution: the mean of each of as many equal parts of it.
void add_runs(std::vector<batch_job>& out, const cell& c, std::int64_t count, const clipped_log_normal& d) {
  double done = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double u = static_cast<double>(i + 1) / static_cast<double>(count);
    const double upto = i + 1 == count ? d.mean_below(40) : d.mean_below(normal_quantile(u));
    batch_job j;
    j.gpus = c.gpus;
    j.outcome = c.outcome;
    j.run = seconds::from_base(std::max(1.0, (upto - done) * static_cast<double>(count)));
    done = upto;
    out.push_back(std::move(j));
  }
}

template <class T>
void shuffle(std::vector<T>& v, std::mt19937_64& g) {
  for (std::size_t i = v.size(); i > 1; --i)
    std::swap(v[i - 1], v[std::min(i - 1, static_cast<std::size_t>(uniform(g) * static_cast<double>(i)))]);
}

/// Users by Zipf's law.
std::vector<double> cumulated_users(std::int64_t users) {
  std::vector<double> out;
  double sum = 0;
  for (std::int64_t u = 1; u <= users; ++u) out.push_back(sum += 1.0 / static_cast<double>(u));
  for (double& x : out) x /= sum;
  return out;
}

void sample_the_rest(std::vector<batch_job>& jobs, const job_generator& g, std::mt19937_64& source) {
  constexpr double day = 86400, minute = 60;
  const std::vector<double> users = cumulated_users(g.users);
  const double most = g.jobs_per_day / day * (1 + g.daily_swing);
  double t = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    do t += exponential(source) / most;
    while (uniform(source) * (1 + g.daily_swing) > 1 - g.daily_swing * std::cos(2 * std::numbers::pi * t / day));
    batch_job& j = jobs[i];
    j.name = fmt::format("{}", i + 1);
    j.submit = seconds::from_base(t);
    j.user = static_cast<int>(std::lower_bound(users.begin(), users.end(), uniform(source)) - users.begin());
    j.user = std::min(j.user, static_cast<int>(g.users) - 1);
    if (g.limit_over_run < 1) continue;
    const double asked = j.run.base() * (1 + (g.limit_over_run - 1) * exponential(source));
    j.limit = seconds::from_base(std::ceil(asked / minute) * minute);
  }
}

}  // namespace

std::string why_no_jobs(const job_generator& g) {
  if (g.sizes.empty()) return "no sizes";
  const std::vector<cell> cells = cells_of(g);
  for (const cell& c : cells)
    if (!(c.mean_run < g.max_run.base() * 0.95))
      return fmt::format("jobs of {} GPUs need a mean run of {}; the longest run is {}", c.gpus,
                         format_quantity(seconds::from_base(c.mean_run)), format_quantity(g.max_run));
  if (share_below(cells, min_sigma, g) > 0.5 || share_below(cells, max_sigma, g) < 0.5)
    return fmt::format("no log-normal run times have a mean of {} and a median of {}", format_quantity(g.mean_run),
                       format_quantity(g.median_run));
  return {};
}

job_list generate_jobs(const job_generator& g, std::uint64_t seed) {
  const std::vector<cell> cells = cells_of(g);
  const double sigma = sigma_of(cells, g);
  job_list out;
  out.queues = {"batch"};
  for (std::int64_t u = 1; u <= g.users; ++u) out.users.push_back(fmt::format("user{}", u));
  double share = 0;
  std::int64_t made = 0;
  for (const cell& c : cells) {
    share += c.share;
    const std::int64_t upto = std::llround(share * static_cast<double>(g.jobs));
    add_runs(out.jobs, c, upto - made, with_mean(c.mean_run, sigma, g.max_run.base()));
    made = upto;
  }
  std::mt19937_64 source(seed);
  shuffle(out.jobs, source);
  sample_the_rest(out.jobs, g, source);
  return out;
}

}  // namespace nvlsim
