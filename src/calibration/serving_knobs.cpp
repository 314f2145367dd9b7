#include "calibration/serving_knobs.hpp"

#include "nvlsim/stack/inference_fields.hpp"

namespace nvlsim {
namespace {

constexpr std::array<const char*, 4> engines = {"tensorrt-llm", "vllm", "sglang", "vllm-2023"};

}  // namespace

double get_cost(const engine_costs& c, std::string_view field, std::optional<precision> format) {
  for (const engine_time_field& f : engine_time_fields)
    if (f.name == field) return (c.*f.member).base();
  for (const engine_factor_field& f : engine_factor_fields)
    if (f.name == field) return c.*f.member;
  for (const engine_table_field& f : engine_table_fields)
    if (f.name == field && (c.*f.member).contains(*format)) return (c.*f.member).at(*format);
  return 1;
}
void set_cost(engine_costs& c, std::string_view field, std::optional<precision> format, double x) {
  for (const engine_time_field& f : engine_time_fields)
    if (f.name == field) c.*f.member = seconds::from_base(x);
  for (const engine_factor_field& f : engine_factor_fields)
    if (f.name == field) c.*f.member = x;
  for (const engine_table_field& f : engine_table_fields)
    if (f.name == field) (c.*f.member)[*format] = x;
}

std::string engine_of(const std::string& stack_name) {
  std::string best;
  for (const std::string e : engines)
    if (stack_name.starts_with(e) && e.size() > best.size()) best = e;
  return best;
}

}  // namespace nvlsim
