// All that describes a serving engine, wherever it is described: a stack's settings, a scenario's engine and
// layout, and each pool of a layout. A setting is a member of `engine_members` and a row of `engine_fields`;
// reading, merging, notes, launch commands, schemas and documentation follow from the row.
// [docs/architecture.md#how-to-add]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/units/constant.hpp"

namespace nvlsim {

/// How prompts enter iterations. [docs/models-and-assumptions.md#inference-scheduler]
enum class prefill_policy {
  chunked,       ///< beside decodes, cut to what the token budget leaves
  whole_prompt,  ///< beside decodes, those that fit whole
  exclusive      ///< in iterations of their own, while decodes wait; one longer than the budget is cut
};
inline constexpr std::array<std::string_view, 3> prefill_policies = {"chunked", "whole_prompt", "exclusive"};

/// What happens when running sequences outgrow the KV cache. [docs/models-and-assumptions.md#inference-preemption]
enum class preemption_policy {
  none,       ///< they cannot: admission reserves the whole output (TensorRT-LLM's guaranteed no evict)
  recompute,  ///< the one admitted last gives its cache up, and computes it again later (vLLM; SGLang's retract)
  swap        ///< its cache goes to CPU memory and comes back
};
inline constexpr std::array<std::string_view, 3> preemption_policies = {"none", "recompute", "swap"};

/// Ranks of a replica of an engine, and how many replicas there are.
struct rank_counts {
  int tp = 1, pp = 1, ep = 1;
  int attention_dp = 1;  ///< ranks that keep their own sequences and share experts; then `tp` is 1
  int replicas = 1;

  int gpus_per_replica() const { return tp * pp * attention_dp; }
};

/// Limits and habits of an engine; each is an `Of` of its type.
template <template <class> class Of>
struct engine_members {
  Of<prefill_policy> prefill{};
  Of<std::int64_t> max_num_tokens{}, max_batch_size{};
  Of<double> kv_reserve{}, kv_reserve_min{}, kv_fraction{};
  Of<std::int64_t> kv_reserve_decay{};
  Of<std::int64_t> batch_wait_iterations{};
  Of<double> batch_wait_ratio{};
  Of<std::int64_t> rank_wait_iterations{}, poll_interval{}, cuda_graph_max_batch_size{}, stream_interval{};
  Of<preemption_policy> preemption{};
  Of<bool> prefix_cache{}, schedule_ahead{};
  Of<std::int64_t> kv_block_tokens{}, decode_context_parallel{};
  Of<double> cpu_offload_gb{};
  friend bool operator==(const engine_members&, const engine_members&) = default;
};

/// Numbers are constants: those of a stack know their names.
template <class T>
using in_force = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>, constant<T>, T>;
template <class T>
using if_said = std::optional<in_force<T>>;

/// What one place says of an engine.
using engine_overrides = engine_members<if_said>;

/// The settings that an engine runs with; at first, the defaults.
struct engine_settings : engine_members<in_force> {
  engine_settings();
  friend bool operator==(const engine_settings&, const engine_settings&) = default;
};

/// Where an engine is described. What a place says goes before what those to its left say; pools go before the
/// engine.
enum class engine_place { stack, engine, layout, prefill_pool, decode_pool };
inline constexpr std::array<std::string_view, 5> engine_places = {"a stack's settings", "an engine", "a layout",
                                                                  "a prefill pool", "a decode pool"};

/// What a setting may be: a range of numbers, names, or true and false.
template <class T>
using allowed_values_of =
    std::conditional_t<std::is_same_v<T, bool>, std::monostate,
                       std::conditional_t<std::is_enum_v<T>, std::span<const std::string_view>, config::range<T>>>;

template <class T>
struct engine_setting {
  in_force<T> engine_members<in_force>::*value;
  if_said<T> engine_overrides::*said;
  T otherwise;  ///< the default
  allowed_values_of<T> allowed = {};
};
using engine_rank = int rank_counts::*;
inline constexpr config::range<std::int64_t> rank_range{1, 1 << 20};

/// What an engine is used for, as far as a setting may be without effect.
struct engine_use {
  int attention_dp = 1;
  bool prompts_cached = false;  ///< requests come with the caches of their prompts
  bool prompts_shared = false;  ///< the load says what prompts share
};

/// Why a setting has no meaning in a place; empty where it has one.
struct engine_refusals {
  std::string_view stack = {}, prefill_pool = {}, decode_pool = {};
};

/// Options with which serving frameworks take a setting; empty: they have none, or read it from a file.
struct launch_flags {
  std::string_view vllm = {}, sglang = {}, tensorrt_llm = {};
  bool always = false;      ///< a launch command has it whether a plan sets it or not
  bool sums_ranks = false;  ///< SGLang's number is for all ranks of attention data parallelism together
  bool own = false;         ///< means another thing in each engine, so only the stack's own gets it
  bool whole = false;       ///< SGLang reads an integer
  std::string_view vllm_zero = {},
                   sglang_zero = {};        ///< the option that says 0 or false, in place of one with a value
  std::string_view tensorrt_llm_file = {};  ///< pointer to the setting in the file of options of TensorRT-LLM
  std::string_view off_in_file = {};        ///< pointer that is null there for 0
};

struct engine_field {
  std::string_view name;
  std::array<std::string_view, 3> aliases;  ///< empty ones are none
  std::variant<engine_rank, engine_setting<std::int64_t>, engine_setting<double>, engine_setting<bool>,
               engine_setting<prefill_policy>, engine_setting<preemption_policy>>
      member;
  std::string_view meaning;
  engine_refusals refused = {};
  /// Why the setting, as it is set, changes nothing; empty when it may.
  std::string_view (*idle)(const engine_settings&, const engine_use&) = nullptr;
  launch_flags flags = {};

  std::string_view refused_in(engine_place p) const;
  config::key names() const;
};

namespace engine_table {

using now = engine_members<in_force>;
using said = engine_overrides;
using count = engine_setting<std::int64_t>;
using share = engine_setting<double>;
inline constexpr config::range<std::int64_t> tokens{1, std::int64_t{1} << 30};

inline constexpr std::string_view of_layouts = "a scenario's layout says how many GPUs an engine has";
inline constexpr std::string_view prompts_alone = "no decode runs beside its prompts";
inline constexpr std::string_view one_token = "its requests end with their first token";
inline constexpr std::string_view come_cached = "prompts come with their caches";

inline std::string_view never_waits(const engine_settings& s, const engine_use& u, bool other_is_zero,
                                    std::string_view why) {
  if (other_is_zero) return why;
  return u.prompts_cached && s.preemption == preemption_policy::none ? come_cached : std::string_view();
}

inline std::string_view needs_preemption(const engine_settings& s, const engine_use&) {
  return s.preemption == preemption_policy::none ? "preemption is none, so admission reserves whole outputs" : "";
}

/// Every setting, in the order in which it is read and documented.
inline constexpr auto fields = std::to_array<engine_field>({
    {.name = "tp",
     .aliases = {"tensor_parallel_size"},
     .member = &rank_counts::tp,
     .meaning = "tensor parallel size of a replica",
     .refused = {.stack = of_layouts}},
    {.name = "pp",
     .aliases = {"pipeline_parallel_size"},
     .member = &rank_counts::pp,
     .meaning = "stages of a replica. It has as many micro-batches, each with limits and a share of the "
                "cache of its own",
     .refused = {.stack = of_layouts}},
    {.name = "ep",
     .aliases = {"expert_parallel_size"},
     .member = &rank_counts::ep,
     .meaning = "ranks that share the experts",
     .refused = {.stack = of_layouts}},
    {.name = "attention_dp",
     .aliases = {},
     .member = &rank_counts::attention_dp,
     .meaning = "ranks of a replica that keep their own sequences and share experts; `tp` is then 1. More "
                "ranks than a domain has must fill whole domains",
     .refused = {.stack = of_layouts}},
    {.name = "replicas",
     .aliases = {"data_parallel_size", "dp", "workers"},
     .member = &rank_counts::replicas,
     .meaning = "copies of the engine, each with requests of its own",
     .refused = {.stack = of_layouts}},
    {.name = "prefill",
     .aliases = {},
     .member =
         engine_setting<prefill_policy>{&now::prefill, &said::prefill, prefill_policy::chunked, prefill_policies},
     .meaning = "how prompts enter iterations: beside decodes and cut to the token budget; beside decodes "
                "if they fit as a whole; or in iterations of their own, while decodes wait",
     .idle = [](const engine_settings& s, const engine_use& u) { return never_waits(s, u, false, {}); }},
    {.name = "max_batch_size",
     .aliases = {"max_num_seqs", "max_running_requests"},
     .member = count{&now::max_batch_size, &said::max_batch_size, 2048, tokens},
     .meaning = "running sequences",
     .flags = {"--max-num-seqs", "--max-running-requests", "--max_batch_size", true, true}},
    {.name = "max_num_tokens",
     .aliases = {"max_num_batched_tokens", "chunked_prefill_size"},
     .member = count{&now::max_num_tokens, &said::max_num_tokens, 8192, tokens},
     .meaning = "tokens of one iteration, prompts and decodes together",
     .flags = {"--max-num-batched-tokens", "--chunked-prefill-size", "--max_num_tokens", true, true}},
    {.name = "kv_reserve",
     .aliases = {"init_new_token_ratio"},
     .member = share{&now::kv_reserve, &said::kv_reserve, 1, config::fraction},
     .meaning = "share of the tokens that requests have yet to generate for which admission keeps room. "
                "Without preemption it is 1",
     .refused = {.prefill_pool = one_token},
     .idle = needs_preemption},
    {.name = "kv_reserve_min",
     .aliases = {"min_new_token_ratio"},
     .member = share{&now::kv_reserve_min, &said::kv_reserve_min, 0, config::fraction},
     .meaning = "what `kv_reserve` falls to with `kv_reserve_decay`",
     .refused = {.prefill_pool = one_token},
     .idle = needs_preemption},
    {.name = "kv_reserve_decay",
     .aliases = {"new_token_ratio_decay_steps"},
     .member = count{&now::kv_reserve_decay, &said::kv_reserve_decay, 0, config::non_negative_int},
     .meaning = "decodes over which `kv_reserve` falls to `kv_reserve_min`. A preemption raises it to what "
                "running requests have needed. 0: it stays",
     .refused = {.prefill_pool = one_token},
     .idle = needs_preemption},
    {.name = "kv_fraction",
     .aliases = {"gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"},
     .member = share{&now::kv_fraction, &said::kv_fraction, 0.9, config::fraction},
     .meaning = "share of memory for the cache, by the stack's `kv_rule`",
     .flags = {.vllm = "--gpu-memory-utilization", .sglang = "--mem-fraction-static", .own = true,
               .tensorrt_llm_file = "/kv_cache_config/free_gpu_memory_fraction"}},
    {.name = "batch_wait_iterations",
     .aliases = {"batch_wait_timeout_iters"},
     .member = count{&now::batch_wait_iterations, &said::batch_wait_iterations, 0, config::non_negative_int},
     .meaning = "iterations for which a prompt may wait for others",
     .refused = {.prefill_pool = prompts_alone},
     .idle =
         [](const engine_settings& s, const engine_use& u) {
           if (s.batch_wait_iterations == 0) return std::string_view();
           return never_waits(s, u, s.batch_wait_ratio <= 0,
                              "batch_wait_ratio is 0, so prompts do not wait for each other");
         },
     .flags = {.tensorrt_llm_file = "/batch_wait_timeout_iters"}},
    {.name = "batch_wait_ratio",
     .aliases = {"batch_wait_max_tokens_ratio"},
     .member = share{&now::batch_wait_ratio, &said::batch_wait_ratio, 0, config::fraction},
     .meaning = "the wait ends when waiting prompts fill this share of the token budget",
     .refused = {.prefill_pool = prompts_alone},
     .idle =
         [](const engine_settings& s, const engine_use& u) {
           if (s.batch_wait_ratio <= 0) return std::string_view();
           return never_waits(s, u, s.batch_wait_iterations == 0,
                              "batch_wait_iterations is 0, so prompts do not wait for each other");
         },
     .flags = {.tensorrt_llm_file = "/batch_wait_max_tokens_ratio"}},
    {.name = "rank_wait_iterations",
     .aliases = {"attention_dp_timeout_iters"},
     .member = count{&now::rank_wait_iterations, &said::rank_wait_iterations, 0, config::non_negative_int},
     .meaning = "with `attention_dp`: iterations for which a prompt may wait until each rank has one",
     .refused = {.prefill_pool = prompts_alone},
     .idle =
         [](const engine_settings& s, const engine_use& u) {
           if (s.rank_wait_iterations == 0) return std::string_view();
           return never_waits(s, u, u.attention_dp <= 1,
                              "attention_dp is 1, so there are no other ranks to wait for");
         },
     .flags = {.tensorrt_llm_file = "/attention_dp_config/timeout_iters",
               .off_in_file = "/attention_dp_config"}},
    {.name = "poll_interval",
     .aliases = {"scheduler_recv_interval"},
     .member = count{&now::poll_interval, &said::poll_interval, 1, config::positive_int},
     .meaning = "iterations from one poll of the queue to the next",
     .refused = {.prefill_pool = prompts_alone},
     .flags = {.sglang = "--scheduler-recv-interval"}},
    {.name = "schedule_ahead",
     .aliases = {"async_scheduling"},
     .member = engine_setting<bool>{&now::schedule_ahead, &said::schedule_ahead, false},
     .meaning = "while an iteration runs, the engine decides on the next: a request that comes meanwhile is not "
                "in that one either",
     .flags = {.vllm = "--async-scheduling",
               .vllm_zero = "--no-async-scheduling",
               .sglang_zero = "--disable-overlap-schedule"}},
    {.name = "cuda_graph_max_batch_size",
     .aliases = {"cuda_graph_max_bs"},
     .member = count{&now::cuda_graph_max_batch_size, &said::cuda_graph_max_batch_size, std::int64_t{1} << 30,
                     config::non_negative_int},
     .meaning = "most decodes that an iteration without prompts can have and still be launched from a "
                "CUDA graph. Larger iterations are launched layer by layer by the host. 0: no graphs",
     .refused = {.prefill_pool = "no CUDA graph holds an iteration with prompts"},
     .flags = {.sglang = "--cuda-graph-max-bs", .vllm_zero = "--enforce-eager",
               .sglang_zero = "--disable-cuda-graph",
               .tensorrt_llm_file = "/cuda_graph_config/max_batch_size",
               .off_in_file = "/cuda_graph_config"}},
    {.name = "stream_interval",
     .aliases = {},
     .member = count{&now::stream_interval, &said::stream_interval, 1, config::positive_int},
     .meaning = "tokens of a sequence from one reply to its client to the next; each reply costs the "
                "server `sequence_host`",
     .refused = {.prefill_pool = one_token},
     .flags = {.vllm = "--stream-interval",
               .sglang = "--stream-interval",
               .tensorrt_llm_file = "/stream_interval"}},
    {.name = "preemption",
     .aliases = {},
     .member = engine_setting<preemption_policy>{&now::preemption, &said::preemption, preemption_policy::none,
                                                 preemption_policies},
     .meaning = "what happens when running sequences outgrow the cache. `none`: they cannot, because "
                "admission reserves whole outputs. `recompute`: the sequence admitted last gives up its "
                "cache and computes it again. `swap`: its cache goes to CPU memory over C2C and comes "
                "back",
     .refused = {.prefill_pool = one_token}},
    {.name = "prefix_cache",
     .aliases = {"enable_prefix_caching"},
     .member = engine_setting<bool>{&now::prefix_cache, &said::prefix_cache, false},
     .meaning = "keeps blocks of prompts, so that later prompts with the same beginning need not compute "
                "them; the least recently used blocks go first. Needs a load that says what prompts share",
     .refused = {.decode_pool = come_cached},
     .idle = [](const engine_settings& s, const engine_use& u) -> std::string_view {
       return s.prefix_cache && !u.prompts_shared ? "the load has no shared prefixes" : "";
     },
     .flags = {.vllm_zero = "--no-enable-prefix-caching", .sglang_zero = "--disable-radix-cache",
               .tensorrt_llm_file = "/kv_cache_config/enable_block_reuse"}},
    {.name = "kv_block_tokens",
     .aliases = {"block_size", "page_size", "tokens_per_block"},
     .member = count{&now::kv_block_tokens, &said::kv_block_tokens, 32, {1, 1024}},
     .meaning = "tokens of a block of the KV cache",
     .flags = {.vllm = "--block-size", .sglang = "--page-size",
               .tensorrt_llm_file = "/kv_cache_config/tokens_per_block"}},
    {.name = "decode_context_parallel",
     .aliases = {"decode_context_parallel_size", "dcp_size"},
     .member = count{&now::decode_context_parallel, &said::decode_context_parallel, 1, {1, 1 << 20}},
     .meaning = "ranks of `tp` that share out the tokens of a sequence where they would otherwise hold the same "
                "cache: latent caches, or KV heads that are fewer than `tp`",
     .refused = {.stack = of_layouts, .prefill_pool = prompts_alone},
     .flags = {.vllm = "--decode-context-parallel-size"}},
    {.name = "cpu_offload_gb",
     .aliases = {},
     .member = share{&now::cpu_offload_gb, &said::cpu_offload_gb, 0, {0, 1e6}},
     .meaning = "weights of a GPU that stay in CPU memory, in GiB. Their room goes to the cache; iterations read "
                "them over C2C, routed experts as far as tokens reach them",
     .refused = {.stack = "how much fits depends on the model"},
     .flags = {.vllm = "--cpu-offload-gb", .sglang = "--cpu-offload-gb", .whole = true}},
});

}  // namespace engine_table

inline constexpr std::span<const engine_field> engine_fields = engine_table::fields;

/// Requires a name of the table, no alias.
const engine_field& engine_field_named(std::string_view name);

/// What a place says of an engine; `ranks` that it does not say are as they were.
struct engine_said {
  engine_overrides settings;
  rank_counts ranks;
};

/// Reads the members of `place` that describe an engine, and reports those that have no meaning there. Members of
/// the place that do not describe an engine are the caller's. Layouts and pools record the ranks they do not say.
engine_said read_engine(config::reader& r, engine_place place, const rank_counts& ranks = {});

/// What `above` says, and what `below` says where `above` is silent.
engine_overrides merged(const engine_overrides& below, const engine_overrides& above);
engine_settings merged(const engine_settings& below, const engine_overrides& above);

/// Writes settings as `read_engine` reads them. Ranks are no settings.
void write_setting(value& out, const engine_field& f, const engine_members<in_force>& settings);
void write_setting(value& out, const engine_field& f, const engine_overrides& said);

}  // namespace nvlsim
