// Parsed command lines as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/console.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim::cli {

/// Options of which a scenario is made, with their texts: {"--tp", "8"}.
using draft_texts = std::vector<std::pair<std::string, std::string>>;

struct run_arguments {
  std::vector<std::string> scenarios;
  draft_texts draft;              ///< in place of a scenario
  std::vector<std::string> sets;  ///< "/pointer=value"
  std::string output_folder, trace_file, requests_file, jobs_file, format = "table";
  std::vector<std::size_t> trace_classes;
  std::string trace_detail = "operations";
  std::optional<std::string> network;  ///< --fidelity
  bool no_fold = false;
  bool highest_load = false;
  std::optional<std::uint64_t> seed;
};

struct compare_arguments {
  std::string a, b, format = "table";
  std::vector<std::string> sets, rules, may_vanish;  ///< rules: --fail-if; may_vanish: --allow-missing
};

struct explain_arguments {
  std::string scenario, format = "table";
  std::optional<std::string> metric;
  std::vector<std::string> sets, only;
  bool sensitivity = false;
};

struct report_arguments {
  std::vector<std::string> inputs;
  std::string output = "report.html", format = "table";
  std::vector<std::string> sets;
  bool sensitivity = false;
};

struct validate_arguments {
  std::vector<std::string> tables;
  std::string scenarios_folder;
  std::string format = "table";
  bool all_rows = false;
};

struct collective_arguments {
  std::vector<std::string> operations;
  std::string platform, stack = "nccl-2.29", format = "table";
  std::int64_t gpus = 0, gpus_per_domain = 0;
  std::string begin = "32M", end = "32M", increment = "1M", datatype = "float", reduction = "sum";
  std::string algorithm, protocol, fidelity = "closed", sharp, kernel = "two_sided", precision = "bf16";
  std::int64_t factor = 1, iterations = 20, warmup = 1, root = 0;
  double skew = 1, top_k = 8, hidden = 7168;
  std::vector<std::string> sets;
};

enum class fit_kind { training, frameworks, inference, loops, kernels, collectives };
struct fit_arguments {
  fit_kind kind = fit_kind::training;
  std::vector<std::string> tables;
  std::string output, leave_out, only, format = "table";
};

struct kernel_arguments {
  std::string kernel, platform, stack, format = "table";  ///< empty stack: the default of the kernel class
  std::string format_of_data = "bf16", family = "deepgemm_fp8_block";
  double m = 0, n = 0, k = 0, groups = 1;
  double batch = 1, heads = 0, kv_heads = 0, head_dim = 128, length = 0, queries = 0;
  double tokens = 0, experts = 0, topk = 0, hidden = 0, inter = 0, ranks = 1, skew = 0;
  double window = 0, qk_dim = 576, v_dim = 512, keys = 0, scored = 0, chosen = 0;
  double state = 128, state_groups = 1, chunk = 0;
  double bytes = 0, elements = 0;
  std::string elementwise = "norm", path = "hbm", weights, part = "keys";
  bool ungated = false, sparse = false, full = false, backward = false, delta = false;
  std::vector<std::string> sets;
};

struct pareto_arguments {
  std::string scenario, format = "table";
  std::vector<std::string> sets;
  std::vector<std::int64_t> clients = {1, 4, 16, 64, 256, 1024};
  std::int64_t gpus = 0;  ///< 0: the GPUs of the scenario's layout
};

struct search_arguments {
  std::string scenario, objective, format = "table";
  std::int64_t gpus = 0;
  std::vector<std::string> sets, constraints, pareto, only;
  std::size_t top = 10;
  int jobs = 0;  ///< 0: one per core
  bool exhaustive = false;
};

enum class plan_kind { serving, training, post_training, scaling, next_dollar };
struct plan_arguments {
  plan_kind kind = plan_kind::serving;
  std::string subject;  ///< a model, or a scenario
  std::vector<std::string> platforms, sets, costs;
  std::string stack, price, output, format = "table";
  std::string launch;  ///< empty: the stack's engine
  std::string trace;   ///< a file of requests that gives lengths
  std::string ttft, tpot, e2e, weights, kv_cache, precision, objective, gpus;
  std::optional<double> share;
  bool means = false, weak = false;
  double input = 0, output_tokens = 0, users = 0, requests_per_s = 0, tokens = 0, days = 0, step = 0.1,
         goodput = 1;
  std::int64_t seq_length = 0, global_batch_size = 0;
  std::int64_t prompts = 0, samples = 0, more = 0;  ///< of post-training; GPUs that may be added
  double max_response = 0;
  std::vector<std::string> staleness;
  std::string failures;  ///< an operation profile
};

enum class sweep_action { plan, run, merge, submit_slurm, submit_kubernetes };
struct sweep_arguments {
  sweep_action action = sweep_action::plan;
  std::string target, output, format = "table";  ///< target: the sweep file for plan, else the sweep folder
  std::optional<std::int64_t> index, of;
  int jobs = 0;  ///< 0: one per core where points are run, 1 where they are submitted
  double timeout_s = 0;
  bool retry_errors = false, merge = false, dry_run = false;
  std::int64_t shards = 1, at_once = 0;
  std::vector<std::string> extra;
  std::string image, claim, mount = "/work";
};

enum class catalogue_kind { platform, stack, model, scenario };
enum class catalogue_action { list, show, check };
struct catalogue_arguments {
  catalogue_kind kind = catalogue_kind::platform;
  catalogue_action action = catalogue_action::list;
  std::vector<std::string> names;
  std::vector<std::string> sets;
  std::string platform;  ///< of stacks: whose hardware; "" for any
  std::string format = "table";
};

/// nvlsim scenario new
struct new_arguments {
  draft_texts draft;
  std::vector<std::string> sets;
  std::string output, format = "text";  ///< no output: stdout
};

/// Output that is ready after parsing the command line: completions, manual pages.
struct prepared_output {
  std::string text;    ///< for stdout
  std::string folder;  ///< output folder for files
  std::vector<std::pair<std::string, std::string>> files;
  std::string format = "text";
};

using request =
    std::variant<run_arguments, compare_arguments, explain_arguments, report_arguments, validate_arguments,
                 collective_arguments, catalogue_arguments, fit_arguments, kernel_arguments, pareto_arguments,
                 search_arguments, sweep_arguments, plan_arguments, new_arguments, prepared_output>;

/// A request, or none if help, the version or a usage error was printed.
struct parsed_command_line {
  std::optional<request> todo;
  int code = 0;
  console_options console = {};
};
parsed_command_line parse_command_line(int argc, char** argv);

}  // namespace nvlsim::cli
