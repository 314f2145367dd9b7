// The options of nvlsim search and nvlsim sweep.
#include "cli/study_options.hpp"

#include "cli/option_text.hpp"

namespace nvlsim::cli {
namespace {

CLI::Option* repeatable(CLI::App* c, const char* name, std::vector<std::string>& into, const char* help,
                        const char* what) {
  return c->add_option(name, into, help)->type_name(what)->allow_extra_args(false);
}

void add_jobs(CLI::App* c, int& jobs, const char* help) {
  c->add_option("--jobs", jobs, help)->check(whole_from(1, 1024));
}

/// Options common to Slurm and Kubernetes.
void add_shards(CLI::App* c, sweep_arguments& a) {
  c->add_option("FOLDER", a.target, "Sweep folder")->required();
  c->add_option("--shards", a.shards, "Number of tasks to divide the points into")
      ->required()
      ->check(whole_from(1, 1'000'000));
  c->add_option("--at-once", a.at_once, "Maximum number of concurrent tasks (default: all)")
      ->check(whole_from(1, 1'000'000));
  add_jobs(c, a.jobs, "Concurrent points per task, and CPUs requested per task (default: 1)");
}

}  // namespace

void add_search(CLI::App& app, search_arguments& a, std::function<void()> chosen) {
  CLI::App* c =
      app.add_subcommand("search", "Evaluate every layout of a model on a number of GPUs and rank those that fit");
  c->add_option("SCENARIO", a.scenario, "Scenario file, or name of a shipped one")->required();
  c->add_option("--gpus", a.gpus, "Number of GPUs; sets the number of racks")
      ->required()
      ->check(whole_from(1, 10'000'000));
  c->add_option("--objective", a.objective,
                "Metric to rank by (default: step_time_s or output_tokens_per_s_per_gpu)")
      ->type_name("METRIC");
  repeatable(c, "--constraint", a.constraints, "Bound on a metric or parameter: 'mfu>0.3', 'tp<=8' (repeatable)",
             "RULE");
  repeatable(c, "--pareto", a.pareto, "Further metric of the Pareto front (repeatable)", "METRIC");
  repeatable(c, "--only", a.only,
             "Restrict a parameter to values (tp=4,8) or to the scenario's own (recompute) (repeatable)",
             "NAME[=VALUES]");
  c->add_option("--top", a.top, "Number of layouts to list")
      ->check(whole_from(1, 1'000'000))
      ->capture_default_str();
  add_jobs(c, a.jobs, "Threads (default: one per core)");
  c->add_flag("--exhaustive", a.exhaustive, "Evaluate every layout, also those that bounds show to be worse");
  repeatable(c, "--set", a.sets, "Override an input by JSON pointer, as for nvlsim run (repeatable)",
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
  CLI::App* plan = c->add_subcommand("plan", "Expand a sweep file into numbered points in a folder");
  plan->add_option("FILE", a.target, "Sweep file")->required();
  plan->add_option("-o,--output", a.output, "Sweep folder")->required()->type_name("DIR");
  add_format(plan, a.format, {"table", "json"});
  plan->footer("example:\n  nvlsim sweep plan nic.json -o nic");
  plan->callback(choose(sweep_action::plan));

  CLI::App* run = c->add_subcommand("run", "Run the unfinished points of a folder or of one shard");
  run->add_option("FOLDER", a.target, "Sweep folder")->required();
  add_jobs(run, a.jobs, "Concurrent points (default: one per core)");
  run->add_option("--index", a.index, "Index of this shard (default: SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX)")
      ->type_name("I");
  run->add_option("--of", a.of, "Number of shards (default: SLURM_ARRAY_TASK_COUNT)")
      ->type_name("M")
      ->check(whole_from(1, 1'000'000));
  run->add_option("--timeout", a.timeout_s, "Time limit per point, in seconds (default: none)")
      ->check(number_from(0.001, 1e9));
  run->add_flag("--retry-errors", a.retry_errors, "Rerun points that ended in an error");
  run->add_flag("--merge", a.merge, "Merge the available results at the end");
  add_format(run, a.format, {"table", "json"});
  run->footer("examples:\n  nvlsim sweep run nic\n  nvlsim sweep run nic --index 3 --of 16");
  run->callback(choose(sweep_action::run));

  CLI::App* merge =
      c->add_subcommand("merge", "Write all results as JSON lines and CSV; exit code 1 if some are missing");
  merge->add_option("FOLDER", a.target, "Sweep folder")->required();
  add_format(merge, a.format, {"table", "json"});
  merge->footer("example:\n  nvlsim sweep merge nic");
  merge->callback(choose(sweep_action::merge));

  CLI::App* submit = c->add_subcommand("submit", "Submit a folder to a scheduler");
  submit->require_subcommand(1);
  CLI::App* slurm = submit->add_subcommand("slurm", "Submit a job array and a merge job that follows it");
  add_shards(slurm, a);
  repeatable(slurm, "--sbatch", a.extra, "Option for sbatch: --sbatch=--partition=gpu (repeatable)", "OPTION");
  slurm->add_flag("--dry-run", a.dry_run, "Only write the scripts");
  slurm->footer("example:\n  nvlsim sweep submit slurm nic --shards 64 --jobs 4 --sbatch=--partition=gpu");
  slurm->callback(choose(sweep_action::submit_slurm));
  CLI::App* kubernetes = submit->add_subcommand("kubernetes", "Write an Indexed Job");
  add_shards(kubernetes, a);
  kubernetes->add_option("--image", a.image, "Container image with nvlsim")->required();
  kubernetes->add_option("--claim", a.claim, "Persistent volume claim that holds the sweep folder")->required();
  kubernetes->add_option("--mount", a.mount, "Mount path in the container")->capture_default_str();
  kubernetes->footer(
      "example:\n  nvlsim sweep submit kubernetes nic --shards 64 --image registry/nvlsim:1 --claim sweeps");
  kubernetes->callback(choose(sweep_action::submit_kubernetes));
}

}  // namespace nvlsim::cli
