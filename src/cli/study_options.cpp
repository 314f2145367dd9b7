// The options of nvlsim search and of nvlsim sweep.
#include "cli/study_options.hpp"

#include "cli/option_text.hpp"

namespace nvlsim::cli {
namespace {

CLI::Option* repeatable(CLI::App* c, const char* name, std::vector<std::string>& into, const char* help,
                        const char* what) {
  return c->add_option(name, into, help)->type_name(what)->allow_extra_args(false);
}

void add_format(CLI::App* c, std::string& format, std::vector<std::string> names) {
  c->add_option("--format", format, "What to print on stdout")
      ->check(CLI::IsMember(std::move(names)))
      ->capture_default_str();
}

void add_jobs(CLI::App* c, int& jobs, const char* help) {
  c->add_option("--jobs", jobs, help)->check(whole_from(1, 1024))->capture_default_str();
}

/// What Slurm and Kubernetes have in common.
void add_shards(CLI::App* c, sweep_arguments& a) {
  c->add_option("FOLDER", a.target, "Sweep folder")->required();
  c->add_option("--shards", a.shards, "Tasks to cut the points into")->required()->check(whole_from(1, 1'000'000));
  c->add_option("--at-once", a.at_once, "Tasks that may run at a time (default: all)")
      ->check(whole_from(1, 1'000'000));
  add_jobs(c, a.jobs, "Points a task runs at a time, and CPUs it asks for");
}

}  // namespace

void add_search(CLI::App& app, search_arguments& a, std::function<void()> chosen) {
  CLI::App* c =
      app.add_subcommand("search", "Try every layout of a model on so many GPUs and rank those that fit");
  c->add_option("SCENARIO", a.scenario, "Scenario file, or name of a shipped one")->required();
  c->add_option("--gpus", a.gpus, "GPUs to lay out; racks follow")->required()->check(whole_from(1, 10'000'000));
  c->add_option("--objective", a.objective, "Metric to rank by (step_time_s; output_tokens_per_s_per_gpu)")
      ->type_name("METRIC");
  repeatable(c, "--constraint", a.constraints, "Bound on a metric or parameter: 'mfu>0.3', 'tp<=8' (repeatable)",
             "RULE");
  repeatable(c, "--pareto", a.pareto, "Metric of the front beside the objective (repeatable)", "METRIC");
  repeatable(c, "--only", a.only,
             "Keep a parameter to values, or to the scenario's own: tp=4,8 or recompute (repeatable)",
             "NAME[=VALUES]");
  c->add_option("--top", a.top, "Layouts to list")->check(whole_from(1, 1'000'000))->capture_default_str();
  add_jobs(c, a.jobs, "Threads");
  repeatable(c, "--set", a.sets, "Override an input by JSON pointer, as of nvlsim run (repeatable)",
             "POINTER=VALUE");
  add_format(c, a.format, {"table", "json", "csv"});
  c->footer(
      "examples:\n"
      "  nvlsim search llama3.1-405b-gb300-512 --gpus 1024 --set /workload/global_batch_size=2048\n"
      "  nvlsim search kimi-k2-gb300-4608 --gpus 576 --only recompute --constraint 'ep<=64' --objective mfu");
  c->callback(std::move(chosen));
}

void add_sweep(CLI::App& app, sweep_arguments& a, const std::function<void()>& chosen) {
  CLI::App* c = app.add_subcommand("sweep", "Run a scenario with many values: plan, run, merge, submit");
  c->require_subcommand(1);
  const auto choose = [&a, chosen](sweep_action action) {
    return [&a, chosen, action] {
      a.action = action;
      chosen();
    };
  };
  CLI::App* plan = c->add_subcommand("plan", "Number the points of a sweep file and write them into a folder");
  plan->add_option("FILE", a.target, "Sweep file")->required();
  plan->add_option("-o,--output", a.output, "Sweep folder")->required()->type_name("DIR");
  add_format(plan, a.format, {"table", "json"});
  plan->footer("example:\n  nvlsim sweep plan nic.json -o nic");
  plan->callback(choose(sweep_action::plan));

  CLI::App* run =
      c->add_subcommand("run", "Run the points of a folder, or a shard of them, that are not finished");
  run->add_option("FOLDER", a.target, "Sweep folder")->required();
  add_jobs(run, a.jobs, "Points at a time");
  run->add_option("--index", a.index, "This shard (default: SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX)")
      ->type_name("I");
  run->add_option("--of", a.of, "Shards in all (default: SLURM_ARRAY_TASK_COUNT)")
      ->type_name("M")
      ->check(whole_from(1, 1'000'000));
  run->add_option("--timeout", a.timeout_s, "Seconds a point may take (default: no limit)")
      ->check(number_from(0.001, 1e9));
  run->add_flag("--retry-errors", a.retry_errors, "Run points again that ended in an error");
  run->add_flag("--merge", a.merge, "Merge what there is at the end");
  add_format(run, a.format, {"table", "json"});
  run->footer("examples:\n  nvlsim sweep run nic --jobs 8\n  nvlsim sweep run nic --index 3 --of 16");
  run->callback(choose(sweep_action::run));

  CLI::App* merge =
      c->add_subcommand("merge", "Gather the results as JSON lines and CSV; exit code 1 when some are missing");
  merge->add_option("FOLDER", a.target, "Sweep folder")->required();
  add_format(merge, a.format, {"table", "json"});
  merge->footer("example:\n  nvlsim sweep merge nic");
  merge->callback(choose(sweep_action::merge));

  CLI::App* submit = c->add_subcommand("submit", "Hand a folder to a scheduler");
  submit->require_subcommand(1);
  CLI::App* slurm = submit->add_subcommand("slurm", "Submit a job array, and a job that merges after it");
  add_shards(slurm, a);
  repeatable(slurm, "--sbatch", a.extra, "Option for sbatch: --sbatch=--partition=gpu (repeatable)", "OPTION");
  slurm->add_flag("--dry-run", a.dry_run, "Only write the scripts");
  slurm->footer("example:\n  nvlsim sweep submit slurm nic --shards 64 --jobs 4 --sbatch=--partition=gpu");
  slurm->callback(choose(sweep_action::submit_slurm));
  CLI::App* kubernetes = submit->add_subcommand("kubernetes", "Write an Indexed Job");
  add_shards(kubernetes, a);
  kubernetes->add_option("--image", a.image, "Container image with nvlsim")->required();
  kubernetes->add_option("--claim", a.claim, "Persistent volume claim that holds the sweep folder")->required();
  kubernetes->add_option("--mount", a.mount, "Where the container sees it")->capture_default_str();
  kubernetes->footer(
      "example:\n  nvlsim sweep submit kubernetes nic --shards 64 --image registry/nvlsim:1 --claim sweeps");
  kubernetes->callback(choose(sweep_action::submit_kubernetes));
}

}  // namespace nvlsim::cli
