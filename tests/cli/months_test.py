#!/usr/bin/env python3
"""Traces of operations: of one job, of jobs that share a cluster, of a queue and of a fleet."""
import json
import resource
import subprocess
import sys

from program import Case, SOURCE, main, run

SHIPPED = sorted(f.stem for f in (SOURCE / "scenarios/operation").glob("*.json"))


class Months(Case):
    def trace(self, scenario, *more):
        done = run("run", scenario, *more, "--trace", "t.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        checked = subprocess.run([sys.executable, SOURCE / "tests/golden/check_trace.py", self.folder / "t.json"],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        self.processes = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
        return events

    def test_every_shipped_operation_draws_something(self):
        for scenario in SHIPPED:
            with self.subTest(scenario):
                slices = [e for e in self.trace(scenario, "--set", "/workload/seeds=1") if e["ph"] == "X"]
                self.assertGreater(len(slices), 20)

    def test_services_of_a_fleet_have_replicas_that_come_and_go_and_counters(self):
        events = self.trace("two-services-gb300-fleet", "--set", "/workload/seeds=1")
        services = json.loads((SOURCE / "scenarios/operation/two-services-gb300-fleet.json").read_text())["workload"]["fleet"]["services"]
        self.assertEqual(set(self.processes), {s["name"] for s in services})
        for pid in self.processes.values():
            words = {e["name"].split()[0] for e in events if e["ph"] == "X" and e["pid"] == pid}
            self.assertLessEqual({"ready"}, words)
            counters = {e["name"] for e in events if e["ph"] == "C" and e["pid"] == pid}
            self.assertEqual(counters, {"load (requests/s)", "ready replicas", "starting replicas", "waiting requests"})
        self.assertTrue(any(e["name"].startswith("starting in rack") for e in events))

    def test_90_days_of_331200_gpus_fit_in_memory_and_replicas_that_recover_alone_keep_them_at_work(self):
        useful = {}
        for mode in ("restart", "replica"):
            done = run("run", "llama3.1-405b-gb300-4608-90-days", "--format", "json",
                       *[x for setting in ("/platform/racks=4600", "/jobs/0/workload/dp=4600",
                                           "/jobs/0/workload/global_batch_size=147200", "/workload/seeds=1",
                                           f"/workload/recovery/mode={mode}") for x in ("--set", setting)])
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertLess(after.ru_maxrss, 300 << 10)  # its work: "Events of a run follow its failures" of test_operation
            result = json.loads(done.stdout)
            self.assertEqual(result["metrics"]["gpus"], 331200)
            useful[mode] = result["metrics"]["ettr_fraction"]
        # A failure each ten minutes, and an hour until the whole job runs again: it never does.
        self.assertLess(useful["restart"], 0.01)
        self.assertGreater(useful["replica"], 0.4)

    def test_a_shared_cluster_has_repairs_and_phases(self):
        events = self.trace("gb300-14-racks-shared", "--set", "/workload/seeds=1")
        self.assertTrue(any(e["ph"] == "X" and e["name"].startswith("in repair: ") for e in events))
        for job, phase in (("pretraining", "steps"), ("agents", "serving")):
            self.assertTrue(any(e["ph"] == "X" and e["pid"] == self.processes[job] and e["name"] == phase for e in events), job)


if __name__ == "__main__":
    main()
