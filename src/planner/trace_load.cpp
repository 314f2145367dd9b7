#include "nvlsim/planner/trace_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/requests.hpp"
#include "planner/cut_lengths.hpp"

namespace nvlsim {
namespace {

constexpr const char* load_at = "/workload/load";

/// Lengths of a load whose draws have the mean, deviation and bounds of those of the requests.
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
  if (least == most) return value{value::object{{"mean", mean}}};
  const token_lengths l = cut_lognormal(mean, std::sqrt(variance), least, most);
  return value{value::object{
      {"mean", l.mean}, {"distribution", "lognormal"}, {"variation", l.variation}, {"min", least}, {"max", most}}};
}

/// Whether reading fails, maybe among others, because a trace without times of arrival has no rate. Throws where
/// it fails for other reasons alone.
bool lacks_rate(const plan_base& base) {
  try {
    static_cast<void>(read_base(base));
  } catch (const input_error& e) {
    if (std::any_of(e.problems().begin(), e.problems().end(), [](const problem& p) {
          return p.pointer == load_at && p.what.find("has no arrival times") != std::string::npos;
        }))
      return true;
    throw;
  }
  return false;
}

/// The member of the load that a pointer leads to or into: "input" of "/workload/load/input/mean".
std::string member_of_load(const std::string& pointer) {
  const std::vector<std::string> path = split_pointer(pointer);
  return path.size() > 2 && path[0] == "workload" && path[1] == "load" ? path[2] : "";
}

plan_base with_load(plan_base base, value load) {
  base.text = with_members(base.text, {{load_at, value{}}, {load_at, std::move(load)}});
  return base;
}

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

value trace_load(const std::string& file, bool has_times) {
  value out{value::object{{"kind", "trace"}, {"file", std::filesystem::absolute(file).string()}}};
  if (!has_times) out.set("requests_per_s", 1);
  return out;
}

trace_sets split_sets(const std::vector<override_option>& sets) {
  trace_sets out;
  for (const override_option& set : sets) {
    const std::string member = member_of_load(set.pointer);
    const bool of_trace = member.empty() ||
                          one_of(member, {"kind", "file", "requests", "num_prompts", "rate_scale", "time_unit"}) ||
                          one_of(member, {"block_tokens", "block_size", "tick", "images", "warmup", "tail"});
    (of_trace ? out.of_trace : out.of_load).push_back(set);
  }
  return out;
}

plan_base with_trace(const plan_base& base, const std::string& file, const std::vector<override_option>& sets) {
  const auto traced = [&](bool has_times) {
    plan_base out = with_load(base, trace_load(file, has_times));
    diagnostics problems;
    apply_to(out, sets, problems);
    problems.throw_if_any();
    return out;
  };
  plan_base out = traced(true);
  if (!lacks_rate(out)) return out;
  out = traced(false);
  static_cast<void>(read_base(out));
  return out;
}

plan_base with_lengths_of_trace(plan_base base, std::vector<std::string>& assumed) {
  const value* kind = base.text.at_pointer("/workload/load/kind");
  if (!kind || !kind->string() || *kind->string() != "trace") return base;
  const scenario s = read_base(base);
  inference_workload w = std::get<inference_workload>(s.workload);
  w.images.reset();  // the new load has them
  const request_list played = generate_requests(w, 0);
  const std::vector<served_request>& requests = played.requests;
  if (requests.empty()) return base;
  value load{value::object{{"kind", "open_loop"},
                           {"requests", 2000},
                           {"requests_per_s", 1},
                           {"input", lengths_value(requests, &served_request::input)},
                           {"output", lengths_value(requests, &served_request::output)}}};
  for (const char* kept : {"images", "warmup", "tail"})
    if (const value* v = base.text.at_pointer(fmt::format("{}/{}", load_at, kept))) load.set(kept, *v);
  const std::size_t all = w.replay->list.requests.size();
  assumed.push_back(fmt::format("log-normal lengths with mean, deviation and bounds of the {}{} requests of {}{}",
                                requests.size() < all ? "first " : "", requests.size(),
                                std::filesystem::path(w.trace_file).filename().string(),
                                played.prefixes.empty() ? "" : ", without the prefixes that they share"));
  return with_load(std::move(base), std::move(load));
}

}  // namespace nvlsim
