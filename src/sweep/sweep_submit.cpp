// Submits a sweep as a Slurm job array or a Kubernetes Indexed Job. [docs/sweeps.md#schedulers]
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "nvlsim/output/file_writer.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/sweep/sweep_store.hpp"

extern char** environ;

namespace nvlsim {
namespace {

namespace fs = std::filesystem;

/// A name valid for Slurm and Kubernetes: lower-case letters, digits and hyphens, at most 52 characters to leave
/// room for suffixes.
std::string job_name(const std::string& name) {
  std::string out = "nvlsim-";
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    out += std::isalnum(u) && u < 128 ? static_cast<char>(std::tolower(u)) : '-';
  }
  out.resize(std::min<std::size_t>(out.size(), 52));
  while (out.ends_with('-')) out.pop_back();
  return out;
}

struct finished_command {
  int code = 0;
  std::string said;  ///< stdout and stderr
};

/// Runs a program found in PATH. Throws io_error if it is not found.
finished_command run_command(const std::vector<std::string>& words) {
  int ends[2];
  if (::pipe(ends) != 0) throw internal_error(fmt::format("pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  finished_command out;
  std::array<char, 4096> chunk{};
  for (ssize_t n;
       failed == 0 && ((n = ::read(ends[0], chunk.data(), chunk.size())) > 0 || (n < 0 && errno == EINTR));)
    if (n > 0) out.said.append(chunk.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (failed != 0) throw io_error(fmt::format("{}: {}", words.front(), std::strerror(failed)));
  int state = 0;
  while (::waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  out.code = WIFEXITED(state) ? WEXITSTATUS(state) : 1;
  while (out.said.ends_with('\n')) out.said.pop_back();
  return out;
}

/// Submits a script and returns its job number.
std::string sbatch(const std::vector<std::string>& options, const fs::path& script) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(script.string());
  const finished_command done = run_command(words);
  if (done.code != 0) throw io_error(fmt::format("sbatch rejected {}: {}", script.string(), done.said));
  return done.said.substr(0, done.said.find(';'));
}

value strings(std::vector<std::string> texts) {
  value out{value::array{}};
  for (std::string& t : texts) out.items()->emplace_back(std::move(t));
  return out;
}

value object(value::object members) { return value{std::move(members)}; }
value array_of(value v) { return value{value::array{std::move(v)}}; }

}  // namespace

std::string submit_to_slurm(const fs::path& folder, const submit_options& o) {
  const sweep_plan plan = read_sweep_plan(folder);
  const fs::path whole = fs::canonical(folder), own = whole / "slurm";
  std::error_code ec;
  fs::create_directories(own, ec);
  if (ec) throw io_error(fmt::format("{}: cannot be created ({})", own.string(), ec.message()));
  const std::string name = job_name(plan.name), program = output::shell_word(o.program.string()),
                    target = output::shell_word(whole.string());
  const std::string limit = o.at_once > 0 ? fmt::format("%{}", o.at_once) : "";
  output::write_whole(
      own / "array.sh",
      fmt::format("#!/bin/sh\n#SBATCH --job-name={}\n#SBATCH --array=0-{}{}\n#SBATCH --cpus-per-task={}\n"
                  "#SBATCH --output={}/%A_%a.out\n"
                  "# A killed and requeued task continues where it stopped.\n#SBATCH --requeue\n"
                  "exec {} sweep run {} --jobs {} --of {}\n",
                  name, o.shards - 1, limit, o.jobs, own.string(), program, target, o.jobs, o.shards));
  output::write_whole(
      own / "merge.sh",
      fmt::format(
          "#!/bin/sh\n#SBATCH --job-name={}-merge\n#SBATCH --output={}/merge_%j.out\nexec {} sweep merge {}\n",
          name, own.string(), program, target));
  if (o.dry_run) return fmt::format("wrote {0}/array.sh and {0}/merge.sh\n", own.string());
  const std::string array = sbatch(o.extra, own / "array.sh");
  std::vector<std::string> after = o.extra;
  after.push_back("--dependency=afterany:" + array);
  const std::string merge = sbatch(after, own / "merge.sh");
  return fmt::format("array job {} of {} tasks, then merge job {}\n", array, o.shards, merge);
}

std::string write_kubernetes_job(const fs::path& folder, const submit_options& o) {
  const sweep_plan plan = read_sweep_plan(folder);
  diagnostics problems;
  if (o.image.empty()) problems.add("--image", "", "Kubernetes needs a container image with nvlsim");
  if (o.claim.empty())
    problems.add("--claim", "", "Kubernetes needs a persistent volume claim that holds the sweep folder");
  if (!o.mount.starts_with("/"))
    problems.add("--mount", "", fmt::format("\"{}\" is not an absolute path", o.mount));
  problems.throw_if_any();
  const std::int64_t at_once = o.at_once > 0 ? std::min(o.at_once, o.shards) : o.shards;
  const value resources = object({{"requests", object({{"cpu", std::to_string(o.jobs)}})}});
  const value container = object({
      {"name", "nvlsim"},
      {"image", o.image},
      {"command", strings({"nvlsim", "sweep", "run", o.mount, "--jobs", std::to_string(o.jobs), "--of",
                           std::to_string(o.shards), "--merge"})},
      {"resources", resources},
      {"volumeMounts", array_of(object({{"name", "sweep"}, {"mountPath", o.mount}}))},
  });
  const value volume = object({{"name", "sweep"}, {"persistentVolumeClaim", object({{"claimName", o.claim}})}});
  // Do not retry: invalid input stays invalid.
  const value hopeless =
      object({{"action", "FailIndex"},
              {"onExitCodes",
               object({{"containerName", "nvlsim"}, {"operator", "In"}, {"values", value{value::array{2, 4}}}})}});
  const value job = object({
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", object({{"name", job_name(plan.name)}})},
      {"spec", object({
                   {"completionMode", "Indexed"},
                   {"completions", o.shards},
                   {"parallelism", at_once},
                   {"backoffLimitPerIndex", 3},
                   {"podFailurePolicy", object({{"rules", array_of(hopeless)}})},
                   {"template", object({{"spec", object({{"restartPolicy", "Never"},
                                                         {"containers", array_of(container)},
                                                         {"volumes", array_of(volume)}})}})},
               })},
  });
  const fs::path file = folder / "kubernetes.json";
  output::write_whole(file, to_json(job));
  return fmt::format("wrote {0}; start it with kubectl apply -f {0}\n", file.string());
}

}  // namespace nvlsim
