#include "nvlsim/planner/trace_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "nvlsim/serving/requests.hpp"

namespace nvlsim {
namespace {

/// Mean, deviation and bounds of lengths, as a load has them.
value lengths_value(const std::vector<served_request>& requests, std::int64_t served_request::*length) {
  double sum = 0, squares = 0;
  std::int64_t least = requests.front().*length, most = least;
  for (const served_request& r : requests) {
    const auto x = static_cast<double>(r.*length);
    sum += x, squares += x * x;
    least = std::min(least, r.*length), most = std::max(most, r.*length);
  }
  const auto count = static_cast<double>(requests.size());
  const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean);
  value out{value::object{{"mean", mean}}};
  if (least == most) return out;
  out.set("distribution", "lognormal");
  out.set("variation", std::sqrt(variance) / mean);
  out.set("min", least);
  out.set("max", most);
  return out;
}

}  // namespace

value trace_load(const std::string& file, bool has_times) {
  value out{value::object{{"kind", "trace"}, {"file", std::filesystem::absolute(file).string()}}};
  if (!has_times) out.set("requests_per_s", 1);
  return out;
}

plan_base with_lengths_of_trace(plan_base base, std::vector<std::string>& assumed) {
  const value* kind = base.text.at_pointer("/workload/load/kind");
  if (!kind || !kind->string() || *kind->string() != "trace") return base;
  const scenario s = read_base(base);
  const auto& w = std::get<inference_workload>(s.workload);
  const std::vector<served_request>& requests = w.replay->list.requests;
  if (requests.empty()) return base;
  value load{value::object{{"kind", "open_loop"},
                           {"requests", 2000},
                           {"requests_per_s", 1},
                           {"input", lengths_value(requests, &served_request::input)},
                           {"output", lengths_value(requests, &served_request::output)}}};
  assumed.push_back(
      fmt::format("log-normal lengths with mean, deviation and bounds of the {} requests of {}, arriving as a "
                  "Poisson process{}",
                  requests.size(), std::filesystem::path(w.trace_file).filename().string(),
                  w.replay->list.prefixes.empty() ? "" : ", without the prefixes that they share"));
  base.text = with_members(base.text, {{"/workload/load", value{}}, {"/workload/load", std::move(load)}});
  return base;
}

}  // namespace nvlsim
