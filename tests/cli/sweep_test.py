#!/usr/bin/env python3
"""Sweeps: every point once, whatever is killed. Usage: sweep_test.py NVLSIM SOURCE_DIR"""
import collections
import csv
import json
import random
import re
import signal
import subprocess
import time
from pathlib import Path

from program import NVLSIM, SOURCE, Case, main, run

CHEAP = SOURCE / "scenarios/collectives/all-reduce-gb300-rack.json"


class Sweep(Case):
    def plan(self, axes, scenario=CHEAP, **more):
        (self.folder / "s.json").write_text(json.dumps({"schema": "nvlsim.sweep/1", "scenario": str(scenario), "axes": axes, **more}))
        done = run("sweep", "plan", "s.json", "-o", "out", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in (self.folder / "out/points.jsonl").read_text().splitlines()]

    def sweep(self, verb, *arguments, code=0, **env):
        done = run("sweep", verb, "out", *arguments, "--format", "json", cwd=self.folder, **env)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def records(self):
        lines = [l for f in sorted((self.folder / "out/results").iterdir()) for l in f.read_text().splitlines()]
        return [json.loads(l) for l in lines]

    def merged(self):
        return [json.loads(l) for l in (self.folder / "out/results.jsonl").read_text().splitlines()]

    def test_axes_multiply_in_order(self):
        points = self.plan([
            {"grid": {"/workload/gpus": [2, 4], "/workload/operation": ["all_gather", "all_reduce"]}},
            {"zip": {"/workload/size": ["1 MB", "2 MB"], "/name": ["a", "b"]}},
            {"log_range": {"pointer": "/platform/gpu/nvlink", "from": "100 GB/s", "to": "400 GB/s", "count": 3}},
            {"platforms": ["gb200-nvl72", "gb300-nvl72"]}])
        self.assertEqual([p["index"] for p in points], list(range(2 * 2 * 2 * 3 * 2)))
        self.assertEqual(list(points[1]["set"].items()),
                         [("/workload/gpus", 2), ("/workload/operation", "all_gather"), ("/workload/size", "1 MB"), ("/name", "a"),
                          ("/platform/gpu/nvlink", "100 GB/s"), ("/platform/use", "gb300-nvl72")])
        self.assertEqual(points[2]["set"]["/platform/gpu/nvlink"], "200 GB/s")
        self.assertEqual(len({p["id"] for p in points}), len(points))

    def test_run_and_merge_show_what_ran(self):
        self.plan([{"grid": {"/workload/gpus": [2, 4, 8, 16, 32, 64, 100000], "/platform/fabric/nic_bandwidth": ["100 Gb/s", "200 Gb/s", "400 Gb/s", "800 Gb/s"]}}])
        for verb in "run", "merge":
            text = run("sweep", verb, "out", cwd=self.folder).stdout
            lines = text.splitlines()
            head = next(i for i, line in enumerate(lines) if line.split()[:3] == ["point", "gpus", "nic_bandwidth"])
            self.assertIn("time_s", lines[head])
            self.assertEqual(lines[head + 1].split()[:4], ["0", "2", "100", "Gb/s"])
            self.assertIn("and 4 more points that ran", text)
            self.assertRegex(text, r"\n       4  (infeasible|error): ")
            self.assertLessEqual(max(map(len, lines)), 80, text)

    def test_a_plan_tells_wrong_inputs(self):
        for values, code in ([{"/workload/gpus": 8}, {"/workload/gqus": 8}], 0), ([{"/workload/gqus": 8}], 2):
            (self.folder / "wrong.json").write_text(json.dumps({"schema": "nvlsim.sweep/1", "scenario": str(CHEAP), "axes": [{"list": values}]}))
            done = run("sweep", "plan", "wrong.json", "-o", "wrong", cwd=self.folder)
            self.assertEqual(done.returncode, code)
            self.assertIn(f"{len(values)} points of wrong in wrong, 1 of them with invalid inputs\n       1  error: --set#/workload/gqus: unknown member",
                          done.stdout)

    def test_a_plan_needs_every_file(self):
        (self.folder / "sweep.json").write_text(json.dumps({"schema": "nvlsim.sweep/1", "scenario": "train.json",
                                                            "axes": [{"grid": {"/model": ["llama3-8b", "./none.json"]}}]}))
        done = run("sweep", "plan", "sweep.json", "-o", "out", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn("none.json: no such file", done.stderr)
        self.assertFalse((self.folder / "out" / "plan.json").exists())

    def test_random_draws_repeat_and_stay_inside(self):
        axis = {"random": {"count": 50, "seed": 3, "draw": {
            "/workload/gpus": {"choice": [2, 4, 8]}, "/platform/gpu/nvlink": {"from": "1 GB/s", "to": "1000 GB/s", "logarithmic": True}}}}
        first, second = self.plan([axis]), self.plan([axis])
        self.assertEqual(first, second)
        rates = [float(p["set"]["/platform/gpu/nvlink"].split()[0]) for p in first]
        self.assertTrue(all(1 <= r <= 1000 for r in rates))
        self.assertGreater(len(set(rates)), 40)
        self.assertEqual({p["set"]["/workload/gpus"] for p in first}, {2, 4, 8})

    def test_runs_what_run_runs(self):
        self.plan([{"list": [{"/workload/gpus": 8}, {"/workload/gpus": 16}, {"/workload/gpus": 8}]}])
        self.assertEqual(self.sweep("run"), {"points": 2, "before": 0, "run": 2, "failed": 0, "reasons": {}})
        self.assertEqual(self.sweep("run"), {"points": 2, "before": 2, "run": 0, "failed": 0, "reasons": {}})
        self.assertEqual(self.sweep("merge")["ok"], 3)
        rows = self.merged()
        self.assertEqual(rows[0]["metrics"], rows[2]["metrics"])
        alone = json.loads(run("run", CHEAP, "--set", "/workload/gpus=16", "--format", "json").stdout)
        self.assertEqual(rows[1]["metrics"], alone["metrics"])
        self.assertEqual(rows[1]["id"], alone["inputs"]["digest"])
        table = list(csv.DictReader((self.folder / "out/results.csv").read_text().splitlines()))
        self.assertEqual([r["/workload/gpus"] for r in table], ["8", "16", "8"])
        self.assertEqual(float(table[1]["time_s"]), alone["metrics"]["time_s"])

    def test_a_longer_sweep_keeps_what_is_finished(self):
        self.plan([{"grid": {"/workload/gpus": [2, 4]}}])
        self.sweep("run")
        self.plan([{"grid": {"/workload/gpus": [2, 3, 4]}}])
        self.assertEqual(self.sweep("run"), {"points": 3, "before": 2, "run": 1, "failed": 0, "reasons": {}})

    def test_points_that_cannot_run_are_recorded_and_stop_nobody(self):
        self.plan([{"list": [{"/workload/gpus": 8}, {"/workload/gpus": 100}, {"/workload/gqus": 1}, {"/workload/gpus": 4}]}])
        counts = self.sweep("run")
        reasons = counts.pop("reasons")
        self.assertEqual(counts, {"points": 4, "before": 0, "run": 4, "failed": 1})
        self.assertEqual(sorted(r.split(":")[0] for r in reasons), ["error", "infeasible"])
        self.assertEqual(self.sweep("merge")["reasons"], reasons)
        rows = self.merged()
        self.assertEqual([r["status"] for r in rows], ["ok", "infeasible", "error", "ok"])
        self.assertIn("unknown member", rows[2]["reasons"][0])

    def test_shards_share_the_points_out(self):
        self.plan([{"grid": {"/workload/gpus": list(range(2, 12))}}])
        run_of = lambda *arguments, **env: self.sweep("run", *arguments, **env)["run"]
        self.assertEqual(run_of("--index", 0, "--of", 3), 4)
        self.assertEqual(run_of(SLURM_ARRAY_TASK_ID="6", SLURM_ARRAY_TASK_MIN="5", SLURM_ARRAY_TASK_COUNT="3"), 3)
        self.assertEqual(self.sweep("merge", code=1)["missing"], 3)
        self.assertEqual(run_of("--of", 3, "--merge", JOB_COMPLETION_INDEX="2"), 3)
        self.assertEqual(sorted(r["index"] for r in self.merged()), list(range(10)))
        self.assertEqual(max(collections.Counter(r["id"] for r in self.records()).values()), 1)

    def test_a_killed_point_is_an_error_that_can_be_tried_again(self):
        self.plan([{"grid": {"/workload/micro_batch_size": [1]}}], "llama3.1-405b-gb300-512", set={"/simulation/fold": False})
        with subprocess.Popen([NVLSIM, "sweep", "run", "out"], cwd=self.folder, stdout=subprocess.DEVNULL) as program:
            children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
            while not (found := children.read_text().split()):
                time.sleep(0.005)
            subprocess.run(["kill", "-KILL", found[0]], check=True)
        self.assertEqual(program.returncode, 0)
        self.assertIn("ended by signal 9", self.records()[0]["reasons"][0])
        self.assertEqual(self.sweep("run")["run"], 0)
        self.assertEqual(self.sweep("run", "--retry-errors", "--timeout", "0.05"),
                         {"points": 1, "before": 0, "run": 1, "failed": 1, "reasons": {"error: took longer than 0.05 s": 1}})
        self.assertIn("took longer", self.records()[1]["reasons"][0])

    def test_killed_five_times_it_ends_complete_with_each_point_once(self):
        self.plan([{"grid": {"/workload/gpus": list(range(2, 22)), "/workload/size": [f"{n} MB" for n in range(1, 16)]}}])
        chance = random.Random(72)
        for _ in range(5):
            with subprocess.Popen([NVLSIM, "sweep", "run", "out", "--jobs", "2"], cwd=self.folder, stdout=subprocess.DEVNULL) as program:
                time.sleep(chance.uniform(0.05, 0.4))
                program.send_signal(signal.SIGKILL)
        # What a kill can leave at worst: a line cut in two.
        with (self.folder / "out/results/shard-0-of-1.jsonl").open("a") as f:
            f.write('{"id": "0123')
        self.sweep("run", "--jobs", 2, "--merge")
        count = collections.Counter(r["id"] for r in self.records())
        self.assertEqual((len(count), max(count.values())), (300, 1))
        self.assertEqual([r["index"] for r in self.merged()], list(range(300)))
        self.assertEqual({r["status"] for r in self.merged()}, {"ok"})

    def test_one_process_a_shard(self):
        self.plan([{"grid": {"/workload/global_batch_size": [896 + 128 * i for i in range(12)]}}], "llama3.1-405b-gb300-512",
                  set={"/simulation/fold": False})
        with subprocess.Popen([NVLSIM, "sweep", "run", "out"], cwd=self.folder, stdout=subprocess.DEVNULL) as program:
            while not (self.folder / "out/results/shard-0-of-1.jsonl").exists():
                time.sleep(0.005)
            time.sleep(0.1)
            done = run("sweep", "run", "out", cwd=self.folder)
            program.kill()
        self.assertEqual(done.returncode, 4)
        self.assertIn("another process is running this shard", done.stderr)

    def test_wrong_files_are_told_in_full(self):
        (self.folder / "bad.json").write_text(json.dumps({
            "schema": "nvlsim.sweep/1", "scenario": str(CHEAP), "axis": 1,
            "axes": [{"log_range": {"pointer": "platform", "from": "1 GB/s", "to": 7, "count": 1}}, {"grd": {}},
                     {"zip": {"/a": [1, 2], "/b": [1]}}, {"grid": {"/a": [3], "/c": 3}}, {"grid": {"/d": []}}]}))
        done = run("sweep", "plan", "bad.json", "-o", "bad", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        for part in ("is not a JSON pointer", "1 is less than 2", "differs from the unit of from", 'did you mean "grid"', "1 values, but there are 2", "two axes set \"/a\"",
                     "expected an array of values", 'did you mean "axes"'):
            self.assertIn(part, done.stderr)
        self.assertFalse((self.folder / "bad").exists())
        for arguments in (("run", "."), ("merge", "nowhere"), ("submit", "slurm", ".", "--shards", 2)):
            done = run("sweep", *arguments, cwd=self.folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no sweep plan", done.stderr)

    def test_kubernetes_job_keeps_to_the_rules_of_its_schema(self):
        self.plan([{"grid": {"/workload/gpus": [2, 4, 8]}}], name="All Reduce, 3 points!")
        done = run("sweep", "submit", "kubernetes", "out", "--shards", 3, "--at-once", 9, "--jobs", 4, "--image", "registry/nvlsim:1",
                   "--claim", "sweeps", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = json.loads((self.folder / "out/kubernetes.json").read_text())
        label = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
        self.assertEqual((job["apiVersion"], job["kind"]), ("batch/v1", "Job"))
        self.assertRegex(job["metadata"]["name"], label)
        self.assertLessEqual(len(job["metadata"]["name"]), 52)
        spec = job["spec"]
        self.assertEqual(set(spec), {"completionMode", "completions", "parallelism", "backoffLimitPerIndex", "podFailurePolicy", "template"})
        self.assertEqual((spec["completionMode"], spec["completions"], spec["parallelism"]), ("Indexed", 3, 3))
        pod = spec["template"]["spec"]
        self.assertEqual(pod["restartPolicy"], "Never")  # backoffLimitPerIndex asks for it
        volumes = {v["name"] for v in pod["volumes"]}
        for c in pod["containers"]:
            self.assertRegex(c["name"], label)
            self.assertTrue(all(isinstance(w, str) for w in c["command"]))
            self.assertTrue(all(m["name"] in volumes and m["mountPath"].startswith("/") for m in c["volumeMounts"]))
            self.assertTrue(all(isinstance(v, str) for v in c["resources"]["requests"].values()))
        for rule in spec["podFailurePolicy"]["rules"]:
            codes = rule["onExitCodes"]
            self.assertEqual(rule["action"], "FailIndex")
            self.assertIn(codes["containerName"], {c["name"] for c in pod["containers"]})
            self.assertEqual(codes["values"], sorted(set(codes["values"])))
            self.assertNotIn(0, codes["values"])  # not allowed with In


if __name__ == "__main__":
    main()
