"""Nothing that a person reads is wider than 80 columns: tables of every command, over what ships, and help.

Not covered: nccl-tests' table, whose form is given, paths, and commands to be copied. Usage: width_test.py NVLSIM SOURCE_DIR
"""
import concurrent.futures
import json
import unicodedata

from program import SOURCE, Case, main, run

SCENARIOS = sorted(p.stem for p in (SOURCE / "scenarios").glob("[!m]*/*.json"))
COMPARED = [("llama3.1-405b-gb200-512", "kimi-k2-gb300-4608"), ("llama3.1-405b-gb200-512", "llama3.1-405b-gb300-331200"),
            ("llama2-70b-offline-gb200-rack", "llama2-70b-server-gb200-vm"), ("llama3.1-405b-gb200-512", "all-reduce-gb300-rack")]
MODELS = ["deepseek-v3", "nemotron-3-super", "moe-100t", "gpt-oss-120b"]
FEW = ["--only", "recompute", "--only", "schedule", "--only", "vp", "--only", "cp"]


def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


class Width(Case):
    def check_all(self, commands):
        def wide(arguments):
            text = run(*arguments, cwd=self.folder).stdout
            return [f"{' '.join(map(str, arguments))}: {line}" for line in text.splitlines()
                    if width(line) > 80 and "--set" not in line] + ([] if text else [f"{arguments} prints nothing"])
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual([line for lines in pool.map(wide, commands) for line in lines], [])

    def test_runs_and_explanations(self):
        self.check_all([[command, name] for command in ("run", "explain") for name in SCENARIOS])
        self.check_all([["run", *SCENARIOS[:5]], ["run", *SCENARIOS[-3:]], ["explain", "all-reduce-gb300-rack", "--sensitivity"]])

    def test_long_names_and_large_numbers(self):
        for name in "train.json", "serve.json":
            scenario = json.loads((self.folder / name).read_text())
            scenario["name"] = "a name that goes on and on " * 6
            (self.folder / name).write_text(json.dumps(scenario))
        self.check_all([["run", "train.json"], ["run", "train.json", "serve.json"], ["explain", "train.json"], ["explain", "serve.json", "ttft_s.p99"],
                        ["compare", "train.json", "train.json", "--set", "/workload/dp=4"]])

    def test_comparisons_and_searches(self):
        self.check_all([["compare", a, b, "--fail-if", "memory_peak_bytes>+2%"] for a, b in COMPARED] + [
            ["search", "llama3.1-405b-gb300-512", "--gpus", "64", "--set", "/workload/global_batch_size=64", *FEW],
            ["search", "train.json", "--gpus", "8", "--only", "recompute"],
            ["search", "serve.json", "--gpus", "8", "--pareto", "output_tokens_per_s_per_user", "--only", "max_num_tokens"],
            ["pareto", "llama2-70b-offline-gb300-rack", "--gpus", "12", "--concurrency", "8"]])

    def test_catalogues_tables_and_sweeps(self):
        sweep = {"schema": "nvlsim.sweep/1", "scenario": "train.json", "axes": [{"grid": {"/workload/dp": [2, 3, -1], "/workload/tpp": [1]}}]}
        (self.folder / "sweep.json").write_text(json.dumps(sweep))
        run("sweep", "plan", "sweep.json", "-o", "points", cwd=self.folder)
        self.check_all([[kind, "list"] for kind in ("platform", "stack", "model", "scenario")] +
                       [["platform", "show", "gb300-nvl72"], ["platform", "show", "nd-h100-v5"]] + [["model", "show", m] for m in MODELS] +
                       [["validate", SOURCE / "tests/measurements/memory.csv", *all_] for all_ in ([], ["--all"])] +
                       [["sweep", "run", "points"]])

    def test_help(self):
        """Beside examples, which are copied as they stand."""
        commands = [[], ["run"], ["compare"], ["explain"], ["report"], ["pareto"], ["validate"], ["collective"], ["kernel"], ["fit"], ["search"],
                    ["fit", "training"], ["sweep"], ["sweep", "run"], ["sweep", "submit", "slurm"], ["platform"], ["model", "show"], ["completion"]]
        wide = [line for c in commands for line in run(*c, "--help").stdout.splitlines() if width(line) > 80 and not line.startswith("  nvlsim")]
        self.assertEqual(wide, [])


if __name__ == "__main__":
    main()
