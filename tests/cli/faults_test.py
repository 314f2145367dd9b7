"""Kinds of fault that attacks found: each test tries the whole kind. tests/mutation looks for new ones."""
import csv
import io
import json
import os
import resource
import shutil
import subprocess

from program import NVLSIM, SOURCE, Case, main, run

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"2023-11-16 18:15:{10 + i}.5,{300 + i},{20 + i}\n" for i in range(8))
SWEEP = {"schema": "nvlsim.sweep/1", "name": "s", "scenario": "./train.json", "axes": [{"grid": {"/workload/micro_batch_size": [1, 2]}}]}


def table(name, rows, **cells):
    """Rows of a table of measurements as CSV, some cells of the first one changed."""
    with open(SOURCE / "tests/measurements" / f"{name}.csv") as f:
        all_rows = list(csv.reader(f))
    kept = [list(all_rows[0])] + [list(all_rows[r]) for r in rows]
    for column, cell in cells.items():
        kept[1][kept[0].index(column)] = cell
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(kept)
    return out.getvalue()


class Overwriting(Case):
    """No output has the name of a file that was read."""

    def setUp(self):
        super().setUp()
        scenario = self.edit("serve.json", load={"kind": "trace", "file": "t.csv"})
        scenario.update(platform={"use": "./p.json"}, model="./m.json", stack="./stacks/tensorrt-llm-1.1.json")
        self.write("s.json", scenario)
        (self.folder / "t.csv").write_text(TRACE)
        shutil.copy(SOURCE / "platforms/gb300-nvl72.json", self.folder / "p.json")
        shutil.copy(SOURCE / "scenarios/models/llama2-70b.json", self.folder / "m.json")
        shutil.copytree(SOURCE / "platforms/stacks", self.folder / "stacks")
        (self.folder / "plan.json").write_text(json.dumps(SWEEP))
        os.symlink("p.json", self.folder / "link.json")
        os.link(self.folder / "p.json", self.folder / "hard.json")

    def refused(self, *arguments):
        before = {p: p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}
        done = run(*arguments, cwd=self.folder)
        self.assertEqual(done.returncode, 2, (arguments, done.stderr))
        self.assertIn("would be overwritten", done.stderr)
        self.assertEqual(before, {p: p.read_bytes() for p in before}, arguments)

    def test_runs(self):
        self.assertEqual(run("run", "s.json", "--trace", "new.json", cwd=self.folder).returncode, 0)
        read = ["p.json", "./p.json", "stacks/../p.json", "link.json", "hard.json", "m.json", "t.csv", "s.json", "stacks/tensorrt-llm.json",
                "stacks/serving/serving.json"]
        for name in read:
            self.refused("run", "s.json", "--trace", name)
        self.refused("run", "s.json", "--requests", "t.csv")
        self.refused("run", "s.json", "-o", ".", "--set", "/name=p")

    def test_other_commands(self):
        for name in "p.json", "t.csv", "s.json", "hard.json":
            self.refused("report", "s.json", "-o", name)
        self.assertEqual(run("run", "s.json", "-o", "out", cwd=self.folder).returncode, 0)
        self.refused("report", "out/s.json", "-o", "out/s.json")
        self.refused("sweep", "plan", "plan.json", "-o", ".")
        (self.folder / "points.jsonl").symlink_to("train.json")
        self.refused("sweep", "plan", "plan.json", "-o", ".")
        (self.folder / "kernels.csv").write_text(table("kernels", [1, 2]))
        done = run("fit", "kernels", "kernels.csv", "-o", self.folder / "data/platforms/stacks", cwd=self.folder,
                   NVLSIM_DATA=str(self.data()))
        self.assertEqual(done.returncode, 2, done.stderr)

    def data(self):
        for folder in "platforms", "scenarios":
            shutil.copytree(SOURCE / folder, self.folder / "data" / folder)
        return self.folder / "data"


class Numbers(Case):
    """A cell of a table, however large or small, is a value, a message or an error record: never a signal, exit code 70 or another number."""

    def judged(self, name, row=1, **cells):
        (self.folder / f"{name}.csv").write_text(table(name, [row], **cells))
        done = run("validate", f"{name}.csv", "--format", "json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, (cells, done.stderr))
        return json.loads(done.stdout)["rows"]

    def test_counts_beyond_32_bits(self):
        for column in "gpus", "gpus_per_nvlink_domain", "nodes":
            for n in (1 << 31, 1 << 32, (1 << 32) + 2, 1 << 40, 10**15, 10**19):
                for r in self.judged("collectives", **{column: str(n)}):
                    if column != "nodes":
                        self.assertEqual(r["status"], "error", (column, n))
        for column in "gpus", "tp", "pp", "micro_batch", "global_batch", "seq_len":
            for n in ((1 << 31) + 1, 1 << 32, (1 << 32) + 2):
                for r in self.judged("training", 10, **{column: str(n)}):
                    self.assertIn(r["status"], ("error", "infeasible", "unsupported", "excluded"), (column, n, r["reason"]))
        for column in "gpus", "tp", "pp":
            for n in ((1 << 31) + 1, 1 << 32, (1 << 32) + 2):
                for r in self.judged("inference", **{column: str(n)}):
                    self.assertIn(r["status"], ("error", "unsupported", "excluded", "infeasible"), (column, n, r["reason"]))

    def test_cells_that_leave_the_numbers(self):
        for cell in "1e-308", "1.7e308", "5e-324", "-1e300", "7e11", "nan", "inf", "1e999":
            for name, columns in (("kernels", ("latency_ms", "m", "n", "k")), ("collectives", ("time_us", "message_bytes")),
                                  ("training", ("step_time_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu"))):
                for column in columns:
                    self.judged(name, **{column: cell})

    def test_counts_of_loops_and_clusters(self):
        with open(SOURCE / "tests/measurements/posttraining.csv") as f:
            loops = [i for i, r in enumerate(csv.DictReader(f), 1) if r["batch_samples"] and r["max_len"]]
        loops = loops[::len(loops) // 3]
        for row in loops:
            for column in "batch_samples", "gpus", "max_len", "train_minibatch", "gen_parallel", "train_parallel":
                for cell in "0", "-1", "6144.0", str((1 << 32) + 2), str(1 << 62), str(10**19), "1e26":
                    self.judged("posttraining", row, **{column: cell})
        with open(SOURCE / "tests/measurements/goodput.csv") as f:
            played = [i for i, r in enumerate(csv.DictReader(f), 1) if r["metric"] == "ettr"]
        for row in played[:2]:
            for column, cell in ("gpus", "1e26"), ("mttf_s", "1e-9"), ("days", "1e20"), ("interval_s", "1e-30"):
                self.judged("goodput", row, **{column: cell})

    def test_settings_that_mean_nothing(self):
        with open(SOURCE / "tests/measurements/inference.csv") as f:
            rows = list(csv.DictReader(f))
        for column, cells in ("random_range_ratio", ("-1", "1.5", "8e29")), ("max_num_tokens", ("0",)), ("max_batch", ("0",)):
            row = next(i for i, r in enumerate(rows, 1) if r[column])
            for cell in cells:
                for r in self.judged("inference", row, **{column: cell}):
                    self.assertIn(r["status"], ("error", "excluded", "unsupported"), (column, cell, r))

    def test_a_header_is_no_table(self):
        for path in sorted((SOURCE / "tests/measurements").glob("*.csv")):
            if path.name == "models.csv":
                continue
            (self.folder / path.name).write_text(path.read_text().split("\n", 1)[0] + "\n")
            done = run("validate", path.name, cwd=self.folder)
            self.assertEqual(done.returncode, 2, path.name)
            self.assertIn(f"{path.name}#: the table has a header and no rows", done.stderr)


class Resources(Case):
    """One value does not take the machine."""

    def bounded(self, *arguments):
        limit = 4 << 30
        # sanitizers reserve terabytes of addresses
        prepare = None if b"__asan_init" in NVLSIM.read_bytes() else lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        done = subprocess.run([str(NVLSIM), *arguments], cwd=self.folder, preexec_fn=prepare, capture_output=True, text=True, timeout=60)
        self.assertIn(done.returncode, (0, 2, 3), (arguments, done.stderr[-500:]))
        return done

    def test_lengths_in_tables(self):
        for cells in ({"osl": "99999999"}, {"isl": "99999999"}, {"isl": "1e9"}, {"osl": "999999k"}, {"concurrency": "896000000"},
                      {"batch_limit_per_instance": "896000000"}, {"num_prompts": "1e15"}):
            (self.folder / "inference.csv").write_text(table("inference", [1], **cells))
            self.bounded("validate", "inference.csv")

    def test_experts_of_a_kernel(self):
        moe = ["kernel", "moe", "--platform", "gb300-nvl72", "--tokens", "128", "--hidden", "4096", "--inter", "1024", "--topk", "8"]
        for experts in (1 << 17, 1 << 32, 1 << 53):
            self.assertEqual(self.bounded(*moe, "--experts", str(experts)).returncode, 2)

    def test_a_limit_is_no_defect(self):
        def starve():
            resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
        scenario = self.edit("serve.json")
        scenario["workload"]["load"].update(requests=4_000_000)
        self.write("long.json", scenario)
        done = subprocess.run([str(NVLSIM), "run", "long.json"], cwd=self.folder, preexec_fn=starve, capture_output=True, text=True, timeout=120)
        self.assertNotEqual(done.returncode, 70, done.stderr)
        if done.returncode == 4:
            self.assertIn("memory, CPU or file-size limit", done.stderr)


class Messages(Case):
    def message(self, *arguments, code=2):
        done = run(*arguments, cwd=self.folder)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return done.stderr

    def test_the_file_with_the_mistake_is_named(self):
        mistakes = [{"gpu": {"name": {}}}, {"description": {"x": 1}}, {"gpu": {"peaks": {"fp8": {"dense": {"source": "nowhere"}}}}},
                    {"gpu": {"peaks": {"fp8": {"dense": {"kind": None}}}}}, {"gpu": {"hbm_bandwidth": 5}}, {"fabric": {"nic_bandwith": "1 GB/s"}},
                    {"gpu": {"hbm_bandwidth": None}}, {"gpu": {"ultra": {}}}]
        for mistake in mistakes:
            self.write_platform({"base": "gb300-nvl72", **mistake}, "d.json")
            self.assertRegex(self.message("run", "train.json", "--set", "/platform/use=./d.json"), r"\A(\./)?d\.json#/", mistake)
        for name in "d.json", "e.json":  # three files, the mistake in the middle one
            self.write_platform({"base": "middle"} if name == "d.json" else {"base": "gb300-nvl72", **mistakes[2]}, name)
        os.rename(self.folder / "e.json", self.folder / "middle.json")
        self.assertRegex(self.message("run", "train.json", "--set", "/platform/use=./d.json"), r"middle\.json#/gpu/peaks/fp8/dense")

    def write_platform(self, content, name):
        (self.folder / name).write_text(json.dumps(content))

    def test_paths(self):
        shutil.copy(SOURCE / "platforms/gb300-nvl72.json", self.folder / "plat.json")
        (self.folder / "dir").mkdir()
        shutil.copy(SOURCE / "platforms/gb300-nvl72.json", self.folder / "plat.txt")
        self.assertIn('./plat: no such file; did you mean "./plat.json"?', self.message("run", "train.json", "--set", "/platform/use=./plat", code=4))
        self.assertIn("./dir: is a directory", self.message("run", "train.json", "--set", "/platform/use=./dir", code=4))
        self.assertIn("must end in .json", self.message("run", "train.json", "--set", "/platform/use=./plat.txt", code=4))

    def test_sweeps(self):
        (self.folder / "sweep.json").write_text(json.dumps({**SWEEP, "scenario": "llama3.1-405b-gb300-51"}))
        self.assertIn('sweep.json#/scenario: no file and no shipped scenario is called "llama3.1-405b-gb300-51"; did you mean',
                      self.message("sweep", "plan", "sweep.json", "-o", "swept"))
        (self.folder / "sweep.json").write_text(json.dumps({**SWEEP, "scenario": "./nothing.json"}))
        self.assertIn("sweep.json#/scenario: nothing.json: no such file", self.message("sweep", "plan", "sweep.json", "-o", "swept", code=4))
        (self.folder / "sweep.json").write_text(json.dumps({**SWEEP, "axes": [{"grid": {"/workload/tp": [-1, 0]}}]}))
        self.assertIn("sweep.json#: all 2 points have invalid inputs", self.message("sweep", "plan", "sweep.json", "-o", "swept"))

    def test_the_reason_of_the_system(self):
        (self.folder / "file").write_text("")
        self.assertIn("No such file or directory", self.message("run", "train.json", "--trace", "nowhere/x.json", code=4))
        self.assertIn("Not a directory", self.message("run", "train.json", "--trace", "file/x.json", code=4))


class Clusters(Case):
    def test_racks_follow_the_jobs(self):
        scenario = json.loads((SOURCE / "scenarios/operation/llama3.1-405b-gb300-4608-90-days.json").read_text())
        scenario["workload"]["seeds"] = 2
        for racks, code in (None, 0), (32, 3), (64, 0):
            scenario["platform"].pop("racks", None)
            if racks:
                scenario["platform"]["racks"] = racks
            done = run("run", self.write("s.json", scenario), "--format", "json", cwd=self.folder)
            self.assertEqual(done.returncode, code, (racks, done.stderr))
            if code == 0:
                self.assertEqual(json.loads(done.stdout)["metrics"]["gpus"], 4608, racks)


class Libraries(Case):
    def test_a_part_of_a_shipped_file_is_gone_empty_or_of_another_type(self):
        data = self.folder / "data"
        for folder in "platforms", "scenarios":
            shutil.copytree(SOURCE / folder, data / folder)
        for file, scenario in (("sites/sites", "facility/llama3.1-405b-gb300-site"), ("loops/nemo-rl", "post-training/llama3.1-8b-grpo-gb200-8"),
                               ("operations/nvl72-fleet", "operation/llama3.1-405b-gb300-4608-90-days"), ("stacks/megatron-bridge", "training/llama3.1-405b-gb300-rack"),
                               ("stacks/vllm", "inference/llama3.3-70b-agents-gb300-vm"), ("gb300-nvl72", "collectives/all-reduce-gb300-rack")):
            path = data / "platforms" / f"{file}.json"
            text = path.read_text()
            for member in json.loads(text):
                for change in "gone", {}, 7:
                    content = json.loads(text)
                    del content[member]
                    if change != "gone":
                        content[member] = change
                    path.write_text(json.dumps(content))
                    done = run("scenario", "check", SOURCE / "scenarios" / f"{scenario}.json", cwd=self.folder, NVLSIM_DATA=str(data))
                    self.assertIn(done.returncode, (0, 2, 3), (file, member, change, done.stderr))
                    self.assertTrue(done.returncode == 0 or done.stderr.strip() or done.stdout.strip(), (file, member, change))
            path.write_text(text)


class Names(Case):
    def test_empty_names_are_refused(self):
        for file, members in (("post-training/llama3.1-8b-grpo-gb200-8", ("/workload/framework", "/model", "/workload/rollout/stack")),
                              ("operation/two-services-gb300-fleet", ("/workload/fleet/services/0/name", "/workload/fleet/services/0/arrivals/file")),
                              ("operation/gb300-8-racks-queue", ("/workload/queue/jobs/file",)),
                              ("inference/llama3.3-70b-trace-gb300-rack", ("/workload/load/file", "/stack", "/platform/use"))):
            for member in members:
                done = run("run", SOURCE / "scenarios" / f"{file}.json", "--set", f"{member}=", cwd=self.folder)
                self.assertEqual(done.returncode, 2, (member, done.stderr))
                self.assertIn("must not be empty", done.stderr, member)


class Sizes(Case):
    def test_flows_of_too_many_passes_are_refused_before_they_take_memory(self):
        for command, member in ((["run", "two-llama3.1-405b-b300"], "/jobs/1/workload/global_batch_size"),
                                (["run", "llama3.1-405b-gb300-512", "--fidelity", "flow"], "/workload/global_batch_size")):
            done = run(*command, "--set", f"{member}={1 << 19}", cwd=self.folder)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("the limit is 5e+05", done.stdout + done.stderr)

    def test_a_cluster_runs_for_a_century_at_most(self):
        for kind in "llama3.1-405b-gb300-4608-90-days", "gb300-8-racks-queue", "two-services-gb300-fleet":
            done = run("run", SOURCE / "scenarios/operation" / f"{kind}.json", "--set", "/workload/duration=1048576 d", cwd=self.folder)
            self.assertEqual(done.returncode, 2, (kind, done.stderr))
            self.assertIn("/workload/duration: ", done.stderr, kind)

    def test_failures_of_a_queue_can_be_played(self):
        for part in "node", "rack":
            done = run("run", SOURCE / "scenarios/operation/gb300-8-racks-queue.json", "--set",
                       f'/workload/queue/failures={{"{part}_mtbf": "500000 ns", "{part}_repair": "3 h"}}', cwd=self.folder)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"/workload/queue/failures/{part}_mtbf: ", done.stderr)
            self.assertIn("too many to simulate", done.stderr)


class Zeros(Case):
    def test_rates_of_zero_divide_nothing(self):
        name = self.write("offload.json", self.edit("train.json", offload_layers=1))
        for member in ("c2c", "hbm_bandwidth", "hbm_stream", "exponentials", "tdp", "nvlink"):
            zero = "0 W" if member == "tdp" else "0 GHz" if member == "exponentials" else "0 GB/s"
            for command in (["run"], ["search", "--gpus", "8", "--only", "tp", "--top", "1"]):
                done = run(command[0], name, *command[1:], "--set", f"/platform/gpu/{member}={zero}", cwd=self.folder)
                self.assertIn(done.returncode, (0, 2, 3), (member, command, done.stderr))


class Results(Case):
    def test_what_cannot_be_is_said(self):
        done = run("run", "train.json", "--set", "/platform/gpu/peaks/bf16/dense=1 GFLOPS", "--set", "/platform/gpu/peaks/nvfp4/dense=1 GFLOPS",
                   "--set", "/platform/gpu/peaks/fp8/dense=1 GFLOPS", "--format", "json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        if result["metrics"]["mfu"] > 1:
            self.assertRegex(result["notes"][0], r"^mfu is \S+ and cannot be above 1")
            self.assertNotIn("mfu", result["bands"])
        done = run("run", "train.json", "--set", "/stack/training/time_factor=1e30", "--format", "json", cwd=self.folder)
        if done.returncode == 0:
            result = json.loads(done.stdout)
            self.assertTrue(any("more than a hundred years" in n for n in result["notes"]), result["notes"])
            self.assertNotIn("step_time_s", result["bands"])

    def test_errors_that_bands_are_made_of_have_limits(self):
        stack = json.loads((SOURCE / "platforms/stacks/tensorrt-llm.json").read_text())["inference"]
        groups = [f"calibration/{k}" for k in ("dense", "experts", "pools", "elsewhere")] + ["band"]
        self.assertTrue(stack["calibration"]["cells"])
        groups += [f"calibration/cells/{k.replace('/', '~1')}" for k in list(stack["calibration"]["cells"])[:3]]
        for group in groups:
            for metric, width in ("throughput", 1000), ("tpot", -1), ("ttft", '"wide"'):
                done = run("run", "serve.json", "--set", "/stack=tensorrt-llm-1.1-dense", "--set", f"/stack/inference/{group}/{metric}={width}", cwd=self.folder)
                self.assertEqual(done.returncode, 2, (group, metric, done.stderr))
                self.assertIn(f"/stack/inference/{group}/{metric}: ", done.stderr)

    def test_names_of_results_do_no_harm(self):
        run("run", "train.json", "-o", ".", "--set", "/name=a", cwd=self.folder)
        result = json.loads((self.folder / "a.json").read_text())
        result["name"] = "=cmd|'/C calc'!A0 \x1b[31m\r\n::error::gone \x07"
        (self.folder / "b.json").write_text(json.dumps(result))
        for form in "github", "junit", "markdown", "table":
            out = run("compare", "b.json", "b.json", "--fail-if", "step_time_s>+1%", "--format", form, cwd=self.folder).stdout
            self.assertNotRegex(out, r"[\x00-\x08\x0b-\x1f\x7f]", form)
            if form == "github":
                self.assertTrue(all(line.startswith(("::error title=nvlsim", "::notice title=nvlsim")) for line in out.splitlines()), out)

    def test_cells_that_spreadsheets_compute(self):
        for name in "=1+1", "@SUM(A1)", "+1+1|x", "-2+3+cmd|' /C calc'!A0":
            done = run("run", "train.json", "--set", f"/name={name}", "--format", "csv", cwd=self.folder)
            if done.returncode == 0:
                self.assertTrue(list(csv.reader(io.StringIO(done.stdout)))[1][0].startswith("'"), done.stdout)


if __name__ == "__main__":
    main()
