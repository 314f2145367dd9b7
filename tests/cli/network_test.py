#!/usr/bin/env python3
"""What the program says about the network: the same in every command, and by the names of the hardware."""
import json

from program import Case, main, run


def table(*arguments):
    done = run("collective", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Collective(Case):
    def times(self, operation, gpus, domain, sets, size=1 << 28):
        common = [operation, "--platform", "hgx-b300", "--gpus", gpus, "--domain-size", domain, "-b", size, "-e", size]
        for pointer, value in sets.items():
            common += ["--set", f"{pointer}={value}"]
        out = {}
        for fidelity in ("closed", "flow"):
            out[fidelity] = table(*common, "--fidelity", fidelity)["results"][0]["out_of_place"]["time"] * 1e-6
        scenario = {"schema": "nvlsim.scenario/1", "platform": {"use": "hgx-b300", "racks": -(-gpus // domain), "set": sets},
                    "stack": "nccl-2.29",
                    "workload": {"kind": "collective", "operation": operation, "size": f"{size} B", "gpus": gpus},
                    "placement": {"policy": "segments", "gpus_per_rack": domain}}
        (self.folder / "s.json").write_text(json.dumps(scenario))
        for fidelity in ("closed", "flow"):
            done = run("run", "s.json", "--fidelity", fidelity, "--format", "json", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            out["run " + fidelity] = json.loads(done.stdout)["metrics"]["time_s"]
        return out

    def test_every_way_to_ask_has_one_answer_on_every_fabric(self):
        for operation in ("all_to_all", "all_reduce"):
            for gpus, domain in ((128, 2), (256, 8)):
                for sets in ({}, {"/fabric/oversubscription": 8}, {"/fabric/oversubscription": 4, "/fabric/rails": 8},
                             {"/fabric/pod_gpus": 64, "/fabric/pod_oversubscription": 16},
                             {"/fabric/oversubscription": 2, "/fabric/pod_gpus": 128, "/fabric/pod_oversubscription": 4}):
                    with self.subTest(operation, gpus=gpus, domain=domain, **{k.strip("/"): v for k, v in sets.items()}):
                        times = self.times(operation, gpus, domain, sets)
                        for way, t in times.items():
                            self.assertAlmostEqual(t / times["closed"], 1, delta=1e-4, msg=f"{way} of {times}")

    def test_flow_has_the_band_of_the_closed_time(self):
        common = ["all_reduce", "--platform", "gb300-nvl72", "--gpus", 144, "-b", "1M", "-e", "1G", "-f", 32]
        bands = [[row["time_band"] for row in table(*common, "--fidelity", f)["results"]] for f in ("closed", "flow")]
        for closed, flow in zip(*bands):
            for a, b in zip(closed, flow):
                self.assertAlmostEqual(a, b, delta=1e-4 * a)


class Names(Case):
    def write(self, platform, operation="all_to_all", gpus=32):
        scenario = {"schema": "nvlsim.scenario/1", "platform": {"use": platform, "racks": 8}, "stack": "nccl-2.29",
                    "workload": {"kind": "collective", "operation": operation, "size": "1 GiB", "gpus": gpus}}
        (self.folder / "s.json").write_text(json.dumps(scenario))

    def text(self, *arguments):
        done = run(*arguments, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_text_has_the_name_of_the_links_of_the_platform(self):
        for platform, name, others in (("mi300x-v5", "infinity fabric", "nvlink"),
                                       ("hgx-b300", "nvlink", "infinity fabric")):
            for gpus in (8, 32):
                self.write(platform, gpus=gpus)
                for command in (("run", "s.json", "--fidelity", "flow"), ("explain", "s.json")):
                    with self.subTest(platform, gpus=gpus, command=command[0]):
                        lines = [l for l in self.text(*command).splitlines() if "  nvlink_" not in l]  # keys of JSON
                        text = "\n".join(lines).split("constants of")[0]
                        self.assertNotIn(others, text)
                        if gpus == 8:
                            self.assertIn(name, text)


class LeftOut(Case):
    def notes(self, *arguments):
        done = run("run", *arguments, "--format", "json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [n for n in json.loads(done.stdout)["notes"] if n.startswith("closed: ")]

    def test_closed_says_that_flow_would_have_up_links_shared(self):
        cut = ("--set", "/platform/fabric/oversubscription=8")
        by_8 = ("llama3.1-405b-gb300-512", "--set", "/platform/racks=64", "--set", "/placement/gpus_per_rack=8")
        self.assertEqual(self.notes(*by_8), [])
        self.assertEqual(len(self.notes(*by_8, *cut)), 1)
        self.assertEqual(self.notes(*by_8, *cut, "--fidelity", "flow"), [])

    def test_flow_shares_the_up_links_of_leaves_and_pods(self):
        def cut(leaves, pods):
            return ("--set", f"/platform/fabric/oversubscription={leaves}", "--set", "/platform/fabric/pod_gpus=288",
                    "--set", f"/platform/fabric/pod_oversubscription={pods}")

        by_8 = ("llama3.1-405b-gb300-512", "--set", "/platform/racks=64", "--set", "/placement/gpus_per_rack=8")
        self.assertEqual(len(self.notes(*by_8, *cut(1, 8))), 1)
        self.assertEqual(self.notes(*by_8, *cut(1, 8), "--fidelity", "flow"), [])
        took = {}
        for leaves, pods in ((1, 1), (2, 1), (1, 8), (2, 2), (2, 8), (2, 32)):
            done = run("run", *by_8, *cut(leaves, pods), "--fidelity", "flow", "--format", "json", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            took[leaves, pods] = result["metrics"]["step_time_s"]
            busiest = result["breakdown"]["links"][0]["name"].partition(": ")[2].rpartition(" ")[0]
            if pods > 1 or leaves > 1:
                self.assertEqual(busiest, "pod uplink" if pods > 2 else "uplink")
        self.assertLess(took[1, 1], took[2, 1])
        for less, more in (((2, 1), (2, 2)), ((2, 2), (2, 8)), ((1, 8), (2, 8))):
            self.assertLessEqual(took[less], took[more] * (1 + 1e-9), took)
        self.assertLess(took[2, 8], took[2, 32])

    def test_closed_says_that_flow_would_have_caches_shared_by_a_worker(self):
        pools = ("deepseek-r1-gb300-prefill-decode", "--set", "/workload/load/requests=50")
        self.assertEqual(len(self.notes(*pools)), 1)
        self.assertEqual(self.notes(*pools, "--set", "/workload/layout/prefill/workers=1"), [])


if __name__ == "__main__":
    main()
