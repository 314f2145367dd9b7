#!/usr/bin/env python3
"""`nvlsim collective` and `run` of the same collective, at every fidelity."""
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
            for gpus, domain in ((64, 1), (128, 2), (256, 4), (256, 8)):
                for sets in ({}, {"/fabric/oversubscription": 8}, {"/fabric/oversubscription": 4, "/fabric/rails": 8}):
                    with self.subTest(operation, gpus=gpus, domain=domain, **{k.strip("/"): v for k, v in sets.items()}):
                        times = self.times(operation, gpus, domain, sets)
                        for way, t in times.items():
                            self.assertAlmostEqual(t / times["closed"], 1, delta=1e-4, msg=f"{way} of {times}")


if __name__ == "__main__":
    main()
