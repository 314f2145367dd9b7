#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cli/arguments.hpp"
#include "cli/completion.hpp"
#include "cli/kernel_options.hpp"
#include "cli/option_text.hpp"
#include "cli/plan_options.hpp"
#include "cli/study_options.hpp"
#include "cli/support.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/units/units_text.hpp"
#include "nvlsim/units/version.hpp"

namespace nvlsim::cli {
namespace {

constexpr const char* set_help =
    "Override an input by JSON pointer (repeatable): --set /workload/tp=4. Pointers below /platform, /stack and "
    "/model change values of those files: --set \"/platform/fabric/nic_bandwidth=400 Gb/s\"";

constexpr const char* set_in_file_help =
    "Override a value of the file by JSON pointer (repeatable): --set \"/fabric/nic_bandwidth=400 Gb/s\" for a "
    "platform, --set /num_hidden_layers=40 for a model";

void add_sets(CLI::App* app, std::vector<std::string>& sets, const char* help = set_help) {
  app->add_option("--set", sets, help)->type_name("POINTER=VALUE")->allow_extra_args(false);
}

struct all_arguments {
  run_arguments run;
  compare_arguments compare;
  explain_arguments explain;
  report_arguments report;
  validate_arguments validate;
  collective_arguments collective;
  fit_arguments fit;
  kernel_arguments kernel;
  pareto_arguments pareto;
  search_arguments search;
  sweep_arguments sweep;
  plan_arguments plan;
  new_arguments scenario_new;
  std::array<catalogue_arguments, 4> catalogues;
  std::string shell, manual_folder, metrics_format = "table";
  console_options console;
  std::optional<request> chosen;
};

void add_run(CLI::App& app, all_arguments& all) {
  run_arguments& a = all.run;
  CLI::App* c = app.add_subcommand("run", "Simulate scenarios and print their results");
  c->add_option("SCENARIO", a.scenarios, "Scenario files, or names of shipped ones (nvlsim scenario list)");
  add_draft(c, a.draft);
  add_sets(c, a.sets);
  c->add_option("-o,--output", a.output_folder, "Also write DIR/<name>.json for each scenario as it finishes")
      ->type_name("DIR");
  CLI::Option* trace =
      c->add_option("--trace", a.trace_file, "Write a Chrome trace (one scenario), for ui.perfetto.dev")
          ->type_name("FILE");
  c->add_option("--requests", a.requests_file,
                "Write each request of a serving run as a line of JSON (one scenario)")
      ->type_name("FILE");
  c->add_option("--jobs", a.jobs_file, "Write each job of a cluster's queue as a line of CSV (one scenario)")
      ->type_name("FILE");
  c->add_option("--trace-ranks", a.trace_classes, "Trace only these rank classes (indices, comma separated)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(trace)
      ->check(whole_from(0, 1'000'000));
  c->add_option("--trace-detail", a.trace_detail, "Slices inside an operation")
      ->needs(trace)
      ->check(CLI::IsMember({"operations", "layers"}))
      ->capture_default_str();
  c->add_option("--fidelity", a.network, "Network model")->check(CLI::IsMember({"closed", "flow", "exact"}));
  c->add_flag("--no-fold", a.no_fold, "Simulate every rank instead of one per symmetry class");
  c->add_option("--seed", a.seed, "Seed of all random numbers")
      ->check(whole_from(0, std::numeric_limits<std::int64_t>::max()));
  c->add_flag("--highest-load", a.highest_load,
              "Find and run the highest rate or number of clients that meets the scenario's slo");
  add_format(c, a.format, {"table", "json", "csv", "megatron-log"});
  c->footer(
      "examples:\n"
      "  nvlsim run scenarios/training/llama3.1-405b-gb300-512.json\n"
      "  nvlsim run llama3.1-405b-gb300-512 --set /workload/tp=4 --set /workload/dp=8 --trace step.trace.json\n"
      "  nvlsim run scenarios/training/*.json -o out --format csv\n"
      "  nvlsim run --model deepseek-v3 --platform gb300-nvl72 --gpus 256 --pp 8 --ep 32 --precision mxfp8");
  c->callback([&all] {
    if (all.run.scenarios.empty() && all.run.draft.empty())
      throw CLI::RequiredError("SCENARIO, or --model with --platform,");
    all.chosen = all.run;
  });
}

void add_pareto(CLI::App& app, all_arguments& all) {
  pareto_arguments& a = all.pareto;
  CLI::App* c =
      app.add_subcommand("pareto", "Compare tokens/s per GPU with tokens/s per user, over layouts and clients");
  c->add_option("SCENARIO", a.scenario,
                "Inference scenario, which gives request lengths, engine, platform and stack")
      ->required();
  c->add_option("--gpus", a.gpus, "Number of GPUs (default: the scenario's)")->check(whole_from(1, 1'000'000));
  c->add_option("--concurrency", a.clients, "Numbers of concurrent clients over all GPUs, comma separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_from(1, 10'000'000))
      ->default_str(fmt::format("{}", fmt::join(a.clients, ",")));
  add_sets(c, a.sets);
  add_format(c, a.format, {"table", "json", "svg"});
  c->footer(
      "examples:\n"
      "  nvlsim pareto llama2-70b-offline-gb300-rack --gpus 8 --concurrency 8,32,128,512\n"
      "  nvlsim pareto scenario.json --format svg > pareto.svg");
  c->callback([&all] { all.chosen = all.pareto; });
}

void add_compare(CLI::App& app, all_arguments& all) {
  compare_arguments& a = all.compare;
  CLI::App* c =
      app.add_subcommand("compare", "Compare two scenarios, results or folders of them, metric by metric");
  c->add_option("A", a.a, "Baseline: scenario, result file or folder")->required();
  c->add_option("B", a.b, "Scenario, result file or folder to compare with A")->required();
  c->add_option("--fail-if", a.rules,
                "Exit with 1 if a rule holds: 'step_time_s>+2%', 'memory_peak_bytes>280 GB' (repeatable)")
      ->type_name("RULE")
      ->allow_extra_args(false);
  c->add_option("--allow-missing", a.may_vanish,
                "With --fail-if: B may lack this scenario or metric of A ('*': any) (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_sets(c, a.sets);
  add_format(c, a.format, {"table", "json", "markdown", "junit", "github"});
  c->footer(
      "examples:\n"
      "  nvlsim compare llama3.1-405b-gb200-512 llama3.1-405b-gb300-512\n"
      "  nvlsim compare baseline/ out/ --fail-if 'step_time_s>+2%' --fail-if 'output_tokens_per_s<-2%' --format "
      "github");
  c->callback([&all] { all.chosen = all.compare; });
}

void add_explain(CLI::App& app, all_arguments& all) {
  explain_arguments& a = all.explain;
  CLI::App* c = app.add_subcommand("explain", "Break a metric of a scenario down into causes and constants");
  c->add_option("SCENARIO", a.scenario, "Scenario file, or the name of a shipped one")->required();
  c->add_option("METRIC", a.metric, "Metric to explain, such as ttft_s.p99 (default: the main metric)");
  c->add_flag("--sensitivity", a.sensitivity,
              "Also change each constant by 10 % and rank the effects on the metric");
  c->add_option("--only", a.only, "With --sensitivity: only constants below this pointer: /platform (repeatable)")
      ->type_name("POINTER")
      ->allow_extra_args(false);
  add_sets(c, a.sets);
  add_format(c, a.format, {"table", "json"});
  c->footer(
      "examples:\n"
      "  nvlsim explain llama3.1-405b-gb300-512\n"
      "  nvlsim explain llama2-70b-offline-gb300-rack tpot_s.p99 --format json\n"
      "  nvlsim explain llama3.1-405b-gb300-512 mfu --sensitivity --only /platform");
  c->callback([&all] { all.chosen = all.explain; });
}

void add_report(CLI::App& app, all_arguments& all) {
  report_arguments& a = all.report;
  CLI::App* c = app.add_subcommand("report", "Write an HTML report on scenarios and results");
  c->add_option("INPUT", a.inputs,
                "Scenarios (which are run and explained), result files, folders of these, sweep folders, merged "
                "sweeps (*.jsonl), and JSON output of nvlsim search and nvlsim plan")
      ->required();
  c->add_option("-o,--output", a.output, "HTML file to write")->type_name("FILE")->capture_default_str();
  c->add_flag("--sensitivity", a.sensitivity,
              "Also rank the effect of each constant on the main metric of each scenario");
  add_sets(c, a.sets);
  c->footer(
      "examples:\n"
      "  nvlsim report llama3.1-405b-gb200-512 llama3.1-405b-gb300-512 -o report.html\n"
      "  nvlsim report out/ -o report.html\n"
      "  nvlsim report nic/ -o scaling.html");
  c->callback([&all] { all.chosen = all.report; });
}

void add_validate(CLI::App& app, all_arguments& all) {
  validate_arguments& a = all.validate;
  CLI::App* c = app.add_subcommand("validate", "Simulate published measurements and print the errors");
  c->add_option("TABLE", a.tables, "CSV tables of published results (the header determines the kind)")->required();
  c->add_flag("--all", a.all_rows, "List all rows, not only the ten worst");
  c->add_option("--write-scenarios", a.scenarios_folder,
                "Write the scenario of each serving row to a file in this folder, instead of simulating it")
      ->type_name("DIR");
  add_format(c, a.format, {"table", "json"});
  c->footer(
      "examples:\n  nvlsim validate training.csv collectives.csv --format json > errors.json\n"
      "  nvlsim validate inference.csv --write-scenarios rows");
  c->callback([&all] { all.chosen = all.validate; });
}

void add_collective(CLI::App& app, all_arguments& all) {
  collective_arguments& a = all.collective;
  CLI::App* c =
      app.add_subcommand("collective", "Time collectives over message sizes, in the format of nccl-tests");
  c->add_option("OPERATION", a.operations,
                "One or more of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send_recv, "
                "neighbor_exchange, barrier, moe_dispatch, moe_combine")
      ->required();
  c->add_option("--platform", a.platform, "Platform")->required();
  c->add_option("--gpus", a.gpus, "GPUs of the communicator")->required()->check(whole_from(1, 100'000'000));
  c->add_option("--domain-size,--gpus-per-domain", a.gpus_per_domain,
                "GPUs used in each NVLink domain (default: all)")
      ->check(whole_from(1, 1'000'000));
  c->add_option("--stack", a.stack, "Stack that provides the collective profile")->capture_default_str();
  c->add_option("--algorithm", a.algorithm, "Force this algorithm, as NCCL_ALGO (default: the library's choice)");
  c->add_option("--protocol", a.protocol, "Force this protocol, as NCCL_PROTO")
      ->check(CLI::IsMember({"ll", "ll128", "simple"}));
  c->add_option("--fidelity", a.fidelity, "closed: formula; flow, exact: flows through simulated ports")
      ->check(CLI::IsMember({"closed", "flow", "exact"}))
      ->capture_default_str();
  c->add_option("--sharp", a.sharp, "Reduction in the fabric's switches (default: the platform's setting)")
      ->check(CLI::IsMember({"on", "off"}));
  c->add_option("-b,--minbytes", a.begin, "Smallest size (K, M, G are powers of 1024)")->capture_default_str();
  c->add_option("-e,--maxbytes", a.end, "Largest size")->capture_default_str();
  c->add_option("-f,--stepfactor", a.factor, "Multiply the size by this")
      ->check(whole_from(1, 1024))
      ->capture_default_str();
  c->add_option("-i,--stepbytes", a.increment, "Add this size instead")->capture_default_str();
  c->add_option("-n,--iters", a.iterations, "Iterations, printed only: all take the same time")
      ->check(whole_from(1, 1'000'000))
      ->capture_default_str();
  c->add_option("-w,--warmup_iters", a.warmup, "Warm-up iterations, printed only")
      ->check(whole_from(0, 1'000'000))
      ->capture_default_str();
  c->add_option("-d,--datatype", a.datatype, "Data type, printed only")->capture_default_str();
  c->add_option("-o,--op", a.reduction, "Reduction, printed only")
      ->check(CLI::IsMember({"sum", "prod", "min", "max", "avg", "mulsum"}))
      ->capture_default_str();
  c->add_option("-r,--root", a.root, "Root, printed only")
      ->check(whole_from(0, 100'000'000))
      ->capture_default_str();
  c->add_option("--skew", a.skew, "all_to_all and moe_*: bytes of the busiest rank / mean bytes")
      ->check(number_from(1, 1e6))
      ->capture_default_str();
  c->add_option("--top-k", a.top_k, "moe_*: experts per token")
      ->check(number_from(1, 1024))
      ->capture_default_str();
  c->add_option("--hidden", a.hidden, "moe_*: hidden size")->check(number_from(1, 1e6))->capture_default_str();
  c->add_option("--precision", a.precision, "moe_*: precision of the dispatch")
      ->check(CLI::IsMember({"bf16", "fp8", "nvfp4"}))
      ->capture_default_str();
  c->add_option("--kernel", a.kernel, "moe_*: exchange kernel")
      ->check(CLI::IsMember({"two_sided", "one_sided"}))
      ->capture_default_str();
  add_sets(c, a.sets);
  add_format(c, a.format, {"table", "json"});
  c->footer(
      "examples:\n"
      "  nvlsim collective all_reduce --platform gb300-nvl72 --gpus 72 -b 8 -e 16G -f 2\n"
      "  nvlsim collective all_reduce all_gather --platform gb300-nvl72 --gpus 1440 --sharp on -b 1M -e 1G -f 4\n"
      "  nvlsim collective moe_dispatch moe_combine --platform gb200-nvl72 --gpus 32 --precision fp8 -b 7K -e 64M "
      "-f 8");
  c->callback([&all] { all.chosen = all.collective; });
}

void add_fit(CLI::App& app, all_arguments& all) {
  fit_arguments& a = all.fit;
  CLI::App* c = app.add_subcommand("fit", "Calibrate stacks on published measurements");
  c->require_subcommand(1);
  struct kind_of_fit {
    fit_kind kind;
    const char *word, *help, *table;
    std::vector<std::string> groups;  ///< that can be left out
  };
  for (const auto& [kind, word, help, table, groups] :
       {kind_of_fit{fit_kind::training,
                    "training",
                    "Training stacks, from tables of step times",
                    "training",
                    {"configuration", "cell", "model", "system", "release", "gpus", "third"}},
        kind_of_fit{fit_kind::frameworks,
                    "frameworks",
                    "Training frameworks other than Megatron, from tables of step times",
                    "training-more",
                    {"configuration"}},
        kind_of_fit{fit_kind::inference,
                    "inference",
                    "Serving stacks, from tables of latencies",
                    "inference",
                    {"model", "configuration", "cell", "system", "release", "third"}},
        kind_of_fit{fit_kind::loops,
                    "loops",
                    "Costs of post-training loops, from tables of their steps",
                    "posttraining",
                    {"model"}}}) {
    CLI::App* t = c->add_subcommand(word, help);
    t->add_option("TABLE", a.tables, "CSV tables")->required();
    t->add_option("-o,--output", a.output, "Folder for the fitted stack files")->required()->type_name("DIR");
    t->add_option("--leave-out", a.leave_out, "Refit without each of these in turn and report its error")
        ->check(CLI::IsMember(groups));
    t->footer(
        fmt::format("example:\n  nvlsim fit {} {}.csv -o fitted --leave-out {}", word, table, groups.front()));
    t->callback([&all, &a, kind = kind] {
      a.kind = kind;
      all.chosen = a;
    });
  }
  CLI::App* n = c->add_subcommand("collectives", "The collective profile, from tables of collective times");
  n->add_option("TABLE", a.tables, "CSV tables")->required();
  n->add_option("-o,--output", a.output, "Folder for the fitted stack file")->required()->type_name("DIR");
  n->add_option("--leave-out", a.leave_out, "Refit without each of these in turn and report its error")
      ->check(CLI::IsMember({"system", "gpus", "size"}));
  n->footer(
      "example:\n  nvlsim fit collectives collectives.csv kernels.csv kernels-more.csv -o fitted --leave-out "
      "system");
  n->callback([&all, &a] {
    a.kind = fit_kind::collectives;
    all.chosen = a;
  });
  CLI::App* k = c->add_subcommand("kernels", "Kernel parameters, from tables of latencies");
  k->add_option("TABLE", a.tables, "CSV tables")->required();
  k->add_option("-o,--output", a.output, "Folder for the fitted stack file")->required()->type_name("DIR");
  k->add_option("--only", a.only, "Fit only families with this prefix: moe/, gemm/fp8, decode")
      ->type_name("PREFIX");
  k->add_option("--leave-out", a.leave_out, "Also predict each GPU, or each third of the rows, from the others")
      ->check(CLI::IsMember({"system", "third"}));
  k->footer("example:\n  nvlsim fit kernels kernels.csv kernels-more.csv -o fitted --only moe/");
  k->callback([&all] {
    all.fit.kind = fit_kind::kernels;
    all.chosen = all.fit;
  });
}

struct catalogue_words {
  const char *command, *help, *example;  ///< `example`: a name to show
};
void add_catalogue(CLI::App& app, all_arguments& all, std::size_t index, const catalogue_words& words) {
  const auto [word, help, show_example] = words;
  catalogue_arguments& a = all.catalogues[index];
  a.kind = static_cast<catalogue_kind>(index);
  CLI::App* c = app.add_subcommand(word, help);
  c->require_subcommand(1);
  const auto choose = [&all, index](catalogue_action action) {
    return [&all, index, action] {
      all.catalogues[index].action = action;
      all.chosen = all.catalogues[index];
    };
  };
  CLI::App* list = c->add_subcommand("list", "List shipped names");
  add_format(list, a.format, {"table", "json"});
  list->footer(fmt::format("example:\n  nvlsim {} list --format json", word));
  list->callback(choose(catalogue_action::list));
  if (a.kind != catalogue_kind::scenario) {
    CLI::App* show = c->add_subcommand("show", "Print details");
    const bool stacks = a.kind == catalogue_kind::stack;
    show->add_option("NAME", a.names, stacks ? "Name or file; of two, what differs is printed" : "Name or file")
        ->required()
        ->expected(1, stacks ? 2 : 1);
    if (stacks) show->add_option("--platform", a.platform, "Print what applies to the hardware of this platform");
    add_sets(show, a.sets, set_in_file_help);
    add_format(show, a.format, {"table", "json"});
    show->footer(fmt::format("example:\n  nvlsim {} show {}", word, show_example));
    show->callback(choose(catalogue_action::show));
  }
  if (a.kind == catalogue_kind::scenario) add_new(c, all.scenario_new, [&all] { all.chosen = all.scenario_new; });
  CLI::App* check = c->add_subcommand("check", "Read files and report every problem");
  check->add_option("NAME", a.names, "Names or files")->required();
  check->footer(fmt::format("example:\n  nvlsim {} check mine.json", word));
  check->callback(choose(catalogue_action::check));
}

void add_metrics(CLI::App& app, all_arguments& all) {
  CLI::App* c = app.add_subcommand("metrics", "List the metrics of results with unit and meaning");
  add_format(c, all.metrics_format, {"table", "json", "markdown"});
  c->footer("example:\n  nvlsim metrics --format json");
  c->callback([&all] {
    const std::string& format = all.metrics_format;
    all.chosen = prepared_output{format == "json"       ? to_json(metrics_json())
                                 : format == "markdown" ? metrics_markdown()
                                                        : metrics_text(),
                                 {},
                                 {}};
  });
}

void add_manual_pages(const CLI::App& command, prepared_output& out) {
  std::string name = full_name(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  out.files.emplace_back(name + ".1", manual_page(command));
  for (const CLI::App* c : commands_under(command)) add_manual_pages(*c, out);
}

void add_shell(CLI::App& app, all_arguments& all) {
  CLI::App* c = app.add_subcommand("completion", "Print the shell completion script");
  c->add_option("SHELL", all.shell, "Which shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  c->footer(
      "examples:\n"
      "  source <(nvlsim completion bash)\n"
      "  nvlsim completion fish > ~/.config/fish/completions/nvlsim.fish");
  c->callback([&all] { all.chosen = prepared_output{std::string(completion_script(all.shell)), {}, {}}; });
  CLI::App* m = app.add_subcommand("man", "Write the manual pages")->group("");
  m->add_option("DIR", all.manual_folder, "Output folder")->required()->type_name("DIR");
  m->footer("example:\n  nvlsim man share/man/man1");
  m->callback([&app, &all] {
    prepared_output pages{{}, all.manual_folder, {}};
    add_manual_pages(app, pages);
    all.chosen = std::move(pages);
  });
}

/// Options common to all commands.
void add_console(CLI::App& app, console_options& o) {
  if (const auto below = app.get_subcommands([](CLI::App*) { return true; }); !below.empty()) {
    for (CLI::App* c : below) add_console(*c, o);
    return;
  }
  CLI::Option* verbose =
      app.add_flag("-v,--verbose", o.verbose, "Print to stderr which files, choices and defaults are used");
  app.add_flag("-q,--quiet", o.quiet, "Print only errors to stderr, no progress or notes")->excludes(verbose);
  app.add_option("--color", o.color, "Colours in tables and messages; auto: on a terminal, unless NO_COLOR is set")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

/// Rejects empty option values: an unset shell variable would otherwise be ignored silently.
void refuse_empty_values(CLI::App& app) {
  for (CLI::App* c : app.get_subcommands([](CLI::App*) { return true; })) refuse_empty_values(*c);
  for (CLI::Option* o : app.get_options())
    if (!o->get_positional() && o->get_expected_max() > 0 && o->get_type_size() != 0)
      o->check(CLI::Validator([](std::string& text) { return std::string(text.empty() ? "is empty" : ""); }, ""));
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* s : commands_under(app)) out.push_back(s->get_name());
  return out;
}

/// The innermost command given: "run", "platform show".
std::pair<const CLI::App*, std::string> command_reached(const CLI::App& app) {
  std::pair<const CLI::App*, std::string> out{&app, "nvlsim"};
  while (!out.first->get_subcommands().empty()) {
    out.first = out.first->get_subcommands().front();
    out.second += " " + out.first->get_name();
  }
  return out;
}

std::string unknown(std::string_view what, const std::string& word, const std::vector<std::string>& known) {
  const std::string hint = nearest(word, known);
  return fmt::format("unknown {} {}{}", what, in_quotes(word),
                     hint.empty() ? "" : fmt::format("; did you mean \"{}\"?", hint));
}

/// Describes a CLI11 error, with the nearest valid name.
std::string usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const auto [innermost, typed] = command_reached(app);
  const CLI::App& reached = *innermost;
  const std::vector<std::string> commands = commands_of(reached);
  const std::vector<std::string> rest = app.remaining(true);
  const auto option = std::find_if(rest.begin(), rest.end(),
                                   [](const std::string& w) { return w.size() > 1 && w.starts_with("-"); });
  if (!commands.empty() && !rest.empty() && option != rest.begin())
    return unknown("command", rest.front(), commands);
  if (option != rest.end()) {
    std::vector<std::string> options;
    for (const CLI::Option* o : reached.get_options())
      for (const std::string& n : o->get_lnames()) options.push_back("--" + n);
    const std::string name = option->substr(0, option->find('='));
    if (std::find(options.begin(), options.end(), name) != options.end())
      return fmt::format("{} comes after the command: {} {}", in_quotes(name), typed, name);
    return unknown("option", name, options);
  }
  if (!rest.empty()) return fmt::format("unexpected argument {}", in_quotes(rest.front()));
  if (!commands.empty()) return fmt::format("no command given; use one of {}", fmt::join(commands, ", "));
  const std::string what = e.what();
  if (const std::size_t at = what.find(": At Most 1 required"); at != std::string::npos)
    return "expected one " + what.substr(0, at);
  return what;
}

bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--format=json" || (word == "--format" && i + 1 < argc && std::string_view(argv[i + 1]) == "json"))
      return true;
  }
  return false;
}

/// Adds the command that is asked for, with its options; where none is, all of them. Options of other commands
/// would take longer than many commands run.
void add_commands(CLI::App& app, all_arguments& all, std::string_view asked) {
  const std::pair<std::string_view, std::function<void()>> commands[] = {
      {"run", [&] { add_run(app, all); }},
      {"compare", [&] { add_compare(app, all); }},
      {"explain", [&] { add_explain(app, all); }},
      {"report", [&] { add_report(app, all); }},
      {"pareto", [&] { add_pareto(app, all); }},
      {"validate", [&] { add_validate(app, all); }},
      {"collective", [&] { add_collective(app, all); }},
      {"kernel", [&] { add_kernel(app, all.kernel, [&all] { all.chosen = all.kernel; }); }},
      {"fit", [&] { add_fit(app, all); }},
      {"search", [&] { add_search(app, all.search, [&all] { all.chosen = all.search; }); }},
      {"sweep", [&] { add_sweep(app, all.sweep, [&all] { all.chosen = all.sweep; }); }},
      {"plan", [&] { add_plan(app, all.plan, [&all] { all.chosen = all.plan; }); }},
      {"platform",
       [&] {
         add_catalogue(app, all, 0, {"platform", "Hardware: list, show, check", "gb300-nvl72 --set /racks=64"});
       }},
      {"stack",
       [&] {
         add_catalogue(app, all, 1,
                       {"stack", "Software releases: list, show, check", "vllm-0.19 --platform gb300-nvl72"});
       }},
      {"model",
       [&] {
         add_catalogue(app, all, 2, {"model", "Models: list, show, check", "llama3.1-405b"});
       }},
      {"scenario",
       [&] {
         add_catalogue(app, all, 3, {"scenario", "Scenarios: list, check", ""});
       }},
      {"metrics", [&] { add_metrics(app, all); }},
      {"", [&] { add_shell(app, all); }},
  };
  for (const auto& [name, add] : commands)
    if (!name.empty() && name == asked) return add();
  for (const auto& [name, add] : commands) add();
}

}  // namespace

parsed_command_line parse_command_line(int argc, char** argv) {
  all_arguments all;
  CLI::App app{
      "Simulates NVL72 rack clusters: how long a training step takes, how many tokens a second a model "
      "serves, whether it fits in memory, what limits it, and what it costs in joules and dollars"};
  app.name("nvlsim");
  app.formatter(std::make_shared<page_formatter>());
  const std::string own_version = std::string("nvlsim ") + version;
  if (argc == 2 && std::string_view(argv[1]) == "--version")
    return {prepared_output{own_version + '\n', {}, {}}, 0};
  app.set_version_flag("--version", own_version);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default(false);
  add_commands(app, all, argc > 1 ? argv[1] : "");
  add_console(app, all.console);
  refuse_empty_values(app);
  app.footer(
      "examples:\n"
      "  nvlsim scenario list\n"
      "  nvlsim run llama3.1-405b-gb300-512\n"
      "  nvlsim run --help\n"
      "\n"
      "exit codes: 0 ok, 1 a gate failed, 2 bad usage or input, 3 infeasible, 4 file\nerror, 70 internal error, "
      "130 interrupted");
  if (argc > 1 && argv[1] == complete_word) {
    const std::vector<std::string> words(argv + 2, argv + argc);
    return {prepared_output{complete(app, words), {}, {}}, 0};
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {prepared_output{app.help(), {}, {}}, 0};
  } catch (const CLI::CallForVersion& e) {
    return {prepared_output{std::string(e.what()) + '\n', {}, {}}, 0};
  } catch (const CLI::Success& e) {
    return {{}, app.exit(e)};
  } catch (const CLI::ParseError& e) {
    const exit_code code =
        report_failure(exit_code::bad_input, usage_error(app, e), {}, asks_for_json(argc, argv));
    std::fprintf(stderr, "Try \"%s --help\".\n", command_reached(app).second.c_str());
    return {{}, static_cast<int>(code)};
  }
  return {std::move(all.chosen), 0, all.console};
}

}  // namespace nvlsim::cli
