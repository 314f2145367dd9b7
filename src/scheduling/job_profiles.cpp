#include <cmath>

#include "nvlsim/scheduling/generator.hpp"

namespace nvlsim {
namespace {

constexpr double day = 86400;

/// Shares of sizes: powers of two. `one` of the jobs take 1 GPU and `node` at most 8; larger sizes fall by a
/// constant ratio that gives the mean.
std::vector<size_share> powers_of_two(double one, double node, double mean, std::int32_t most) {
  std::vector<size_share> out{{1, one, 0}};
  double rest = mean - one;
  for (const std::int32_t g : {2, 4, 8}) {
    const double share = (node - one) * 8 / g / 7;  // halves from size to size
    out.push_back({g, share, 0});
    rest -= share * g;
  }
  const auto large = [most](double ratio) {
    std::vector<size_share> sizes;
    double all = 0;
    for (std::int32_t g = 16; g <= most; g *= 2) {
      sizes.push_back({g, std::pow(ratio, sizes.size()), 0});
      all += sizes.back().jobs;
    }
    for (size_share& s : sizes) s.jobs /= all;
    return sizes;
  };
  const auto mean_of = [](const std::vector<size_share>& sizes) {
    double m = 0;
    for (const size_share& s : sizes) m += s.jobs * s.gpus;
    return m;
  };
  double low = 1e-6, high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double ratio = std::sqrt(low * high);
    (mean_of(large(ratio)) < rest / (1 - node) ? low : high) = ratio;
  }
  for (size_share s : large(std::sqrt(low * high))) {
    s.jobs *= 1 - node;
    out.push_back(s);
  }
  return out;
}

job_generator acme_table(const char* name, double jobs, double per_day, std::array<double, 3> run_and_gpus) {
  job_generator g;
  g.profile = name;
  g.jobs = static_cast<std::int64_t>(jobs);
  g.jobs_per_day = per_day;
  g.mean_run = seconds::from_base(run_and_gpus[0]);
  g.median_run = seconds::from_base(run_and_gpus[1]);
  g.max_run = seconds::from_base(60 * day);  // assumed
  g.daily_swing = 0.5;                       // assumed
  g.users = 100;                             // assumed
  g.limit_over_run = 3;                      // assumed
  return g;
}

job_generator meta(const char* name, double gpus, double allocated, double per_day) {
  job_generator g;
  g.profile = name;
  g.jobs = static_cast<std::int64_t>(per_day * 30);
  g.jobs_per_day = per_day;
  g.max_run = seconds::from_base(7 * day);
  g.daily_swing = 0.5;   // assumed
  g.users = 100;         // assumed
  g.limit_over_run = 3;  // assumed
  // Within the published bounds; the split inside them is assumed.
  const bool first = gpus > 10'000;
  if (first)
    g.sizes = {{1, 0.42, 0.01},    {2, 0.15, 0.01},    {4, 0.13, 0.02},      {8, 0.21, 0.05},
               {16, 0.04, 0.05},   {32, 0.02, 0.06},   {64, 0.01, 0.07},     {128, 0.006, 0.07},
               {256, 0.008, 0.18}, {512, 0.004, 0.18}, {1024, 0.0013, 0.18}, {4096, 0.0007, 0.12}};
  else
    g.sizes = {{1, 0.42, 0.01},   {2, 0.15, 0.01},   {4, 0.13, 0.02},    {8, 0.21, 0.05},
               {16, 0.04, 0.08},  {32, 0.02, 0.09},  {64, 0.012, 0.11},  {128, 0.008, 0.11},
               {256, 0.006, 0.2}, {512, 0.003, 0.2}, {1024, 0.001, 0.12}};
  double mean_run = 0;  // from GPU time a day, by size
  for (const size_share& s : g.sizes) mean_run += s.gpu_time * allocated * gpus * day / per_day / s.gpus;
  g.mean_run = seconds::from_base(mean_run);
  g.median_run = seconds::from_base(mean_run / std::exp(2.0 * 2.0 / 2));  // assumed: a log-normal of sigma 2
  return g;
}

// AcmeTrace, data/cluster_summary.csv (GPU jobs; CC-BY 4.0): jobs, mean and median run, mean GPUs, outcomes by
// jobs and by GPU time. Meta's Research SuperClusters: arXiv 2410.21680. Shares of sizes below 1 and up to 8 GPUs:
// Acme's "less than 7 % ask for more than 8"; else assumed.
std::vector<job_generator> make_profiles() {
  job_generator philly = acme_table("philly", 112'956, 825, {18'006, 874, 1.93});
  philly.sizes = powers_of_two(0.75, 0.98, 1.93, 128);
  philly.outcomes = {0.604, 0.305, 0.090};
  philly.outcome_time = {0.321, 0.386, 0.294};
  job_generator helios = acme_table("helios", 1'580'464, 8'636, {6'652, 206, 3.72});
  helios.sizes = powers_of_two(0.75, 0.95, 3.72, 2048);
  helios.outcomes = {0.624, 0.155, 0.221};
  helios.outcome_time = {0.513, 0.093, 0.394};
  job_generator seren = acme_table("seren", 663'813, 3'608, {1'414, 122, 5.68});
  seren.sizes = powers_of_two(0.75, 0.935, 5.68, 1024);
  seren.outcomes = {0.497, 0.429, 0.075};
  seren.outcome_time = {0.212, 0.124, 0.664};
  job_generator kalos = acme_table("kalos", 19'907, 108, {1'260, 124, 26.8});
  kalos.sizes = powers_of_two(0.75, 0.935, 26.8, 1024);
  kalos.outcomes = {0.541, 0.397, 0.062};
  kalos.outcome_time = {0.313, 0.080, 0.607};
  return {philly, helios, seren, kalos, meta("rsc-1", 16'384, 0.83, 7'200), meta("rsc-2", 8'192, 0.85, 4'400)};
}

const std::vector<job_generator>& profiles() {
  static const std::vector<job_generator> all = make_profiles();
  return all;
}

}  // namespace

const std::vector<std::string>& job_profiles() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const job_generator& g : profiles()) out.push_back(g.profile);
    return out;
  }();
  return names;
}

const job_generator* find_job_profile(std::string_view name) {
  for (const job_generator& g : profiles())
    if (g.profile == name) return &g;
  return nullptr;
}

}  // namespace nvlsim
