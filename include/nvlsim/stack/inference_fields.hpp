// Names of the members of `"inference"`, used by the stack reader and by the fit that writes them.
#pragma once

#include <array>
#include <string_view>

#include "nvlsim/stack/inference_profile.hpp"

namespace nvlsim {

struct engine_time_field {
  std::string_view name;
  constant<seconds> engine_costs::*member;
  bool required;  ///< must be given in the common entry
  bool release;   ///< is multiplied by `release_factor`
};
inline constexpr std::array<engine_time_field, 12> engine_time_fields = {{
    {"step_host", &engine_costs::step_host, true, true},
    {"rank_host", &engine_costs::rank_host, false, true},
    {"sequence_host", &engine_costs::sequence_host, true, false},
    {"request_host", &engine_costs::request_host, true, false},
    {"layer_time", &engine_costs::layer_time, true, true},
    {"qk_norm_time", &engine_costs::qk_norm_time, false, true},
    {"prefill_layer_host", &engine_costs::prefill_layer_host, true, true},
    {"eager_layer_host", &engine_costs::eager_layer_host, false, false},
    {"expert_layer_time", &engine_costs::expert_layer_time, false, true},
    {"exchange_time", &engine_costs::exchange_time, false, false},
    {"scan_layer_time", &engine_costs::scan_layer_time, false, true},
    {"indexer_layer_time", &engine_costs::indexer_layer_time, false, true},
}};

struct engine_factor_field {
  std::string_view name;
  constant<double> engine_costs::*member;
  bool divides = false;  ///< scales a rate or divides a time, so 0 is not allowed
};
inline constexpr std::array<engine_factor_field, 10> engine_factor_fields = {{
    {"elementwise_vectors", &engine_costs::elementwise_vectors},
    {"launch_factor", &engine_costs::launch_factor},
    {"stream_factor", &engine_costs::stream_factor, true},
    {"decode_factor", &engine_costs::decode_factor, true},
    {"attention_factor", &engine_costs::attention_factor, true},
    {"reduce_latency_factor", &engine_costs::reduce_latency_factor},
    {"reduce_rate_factor", &engine_costs::reduce_rate_factor, true},
    {"expert_stream_factor", &engine_costs::expert_stream_factor, true},
    {"expert_skew", &engine_costs::expert_skew},
    {"biased_expert_skew", &engine_costs::biased_expert_skew},
}};

struct engine_table_field {
  std::string_view name;
  std::map<precision, constant<double>> engine_costs::*member;
};
inline constexpr std::array<engine_table_field, 2> engine_table_fields = {{
    {"gemm_factor", &engine_costs::gemm_factor},
    {"expert_factor", &engine_costs::expert_factor},
}};

}  // namespace nvlsim
