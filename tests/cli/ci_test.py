"""The workflow of docs/ci: its steps pass on their own baseline, and fail for the right reason: one per cent planted in a stack file, a
scenario that does not fit, and what has vanished."""
import json
import os
import re
import shutil
import subprocess
import textwrap
import xml.etree.ElementTree as ET

from program import NVLSIM, SOURCE, Case, main, run
import sanitizer

WORKFLOW = (SOURCE / "docs/ci/nvlsim-gate.yml").read_text()
SCENARIOS = "llama3.1-405b-gb200-rack llama3.1-405b-gb300-rack llama2-70b-offline-gb300-rack"


def steps():
    """Shell blocks of the workflow, by the name of their step."""
    found = re.findall(r"- name: (.*)\n        run: \|\n((?:          .*\n)+)", WORKFLOW)
    return {name: textwrap.dedent(block) for name, block in found}


class Gate(Case):
    scenarios = SCENARIOS

    def setUp(self):
        super().setUp()
        for folder in "platforms", "scenarios":
            shutil.copytree(SOURCE / folder, self.folder / "data" / folder)

    def step(self, name):
        env = {"PATH": f"{NVLSIM.parent}:{os.environ['PATH']}", "NVLSIM_DATA": str(self.folder / "data"), "LC_ALL": "C",
               "SCENARIOS": self.scenarios, "BASELINE": "baseline", "GITHUB_STEP_SUMMARY": "summary.md", **sanitizer.options()}
        return subprocess.run(["bash", "-e", "-c", steps()[name]], cwd=self.folder, env=env, capture_output=True, text=True)

    def library(self, pointer):
        """The file that says a number of training stacks."""
        name = {"training": "training/megatron-core", "kernels": "kernels/training-kernels"}[pointer.split("/")[0]]
        return self.folder / "data/platforms/stacks" / f"{name}.json"

    def plant(self, stack, pointer, factor):
        """Changes a number of a stack in the library that says it."""
        file = self.library(pointer)
        shown = json.loads(run("stack", "show", stack, "--format", "json").stdout)["stack"]
        content = inside = json.loads(file.read_text())
        *path, last = pointer.split("/")
        for key in path:
            shown, inside = shown[key], inside.setdefault(key, {})
        number, _, unit = str(shown[last]["value"] if isinstance(shown[last], dict) else shown[last]).partition(" ")
        value = float(number) * factor
        inside[last] = {"value": f"{value:.6g} {unit}" if unit else value, "kind": "assumed", "source": "planted for a test"}
        file.write_text(json.dumps(content))

    def test_workflow(self):
        self.assertEqual(list(steps()), ["Simulate", "Nothing got worse", "GB300 beats GB200"])
        self.assertEqual(self.step("Simulate").returncode, 0)
        (self.folder / "out").rename(self.folder / "baseline")
        self.assertEqual(self.step("Simulate").returncode, 0)
        for name in steps():
            done = self.step(name)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("::error", done.stdout)

        scenario = json.loads((self.folder / "baseline/llama3.1-405b-gb300-rack.json").read_text())
        stack = scenario["inputs"]["stack"]["name"]
        original = self.library("training").read_text()
        self.plant(stack, "training/time_factor", 1.01)  # everything
        self.assertEqual(self.step("Simulate").returncode, 0)
        done = self.step("Nothing got worse")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        failed = [line for line in done.stdout.splitlines() if line.startswith("::error")]
        self.assertEqual(len(failed), 2)
        for line, gpu in zip(failed, ["gb200", "gb300"]):
            self.assertRegex(line, rf"llama3.1-405b-{gpu}-rack: step_time_s>\+0.1%25: changed by \+(0\.[89]|1\.0)\d %25, .*"
                                   r"inputs: /stack/training/time_factor [\d.]+ -> [\d.]+$")
        self.assertIn("time_factor", (self.folder / "summary.md").read_text())
        self.assertIn('failures="2"', (self.folder / "junit.xml").read_text())

        self.library("training").write_text(original)
        self.plant(stack, "kernels/gb300/gemm/nvfp4/tensor_rate", 0.99)  # one kind of kernel on one GPU
        self.assertEqual(self.step("Simulate").returncode, 0)
        done = self.step("Nothing got worse")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        failed = [line for line in done.stdout.splitlines() if line.startswith("::error")]
        self.assertEqual(len(failed), 1, failed)
        self.assertRegex(failed[0], r"llama3.1-405b-gb300-rack: step_time_s.*inputs: /stack/kernels/gb300/gemm/nvfp4/tensor_rate [\d.]+ TFLOPS -> ")

    def start(self, scenarios):
        """A baseline of these inputs of the tests, and the same again as `out`."""
        self.scenarios = scenarios
        self.assertEqual(self.step("Simulate").returncode, 0)
        shutil.copytree(self.folder / "out", self.folder / "baseline")

    def outputs(self):
        """The exit code of the gate with all that it wrote."""
        done = self.step("Nothing got worse")
        junit = ET.parse(self.folder / "junit.xml").getroot()
        failures = [f"{c.get('classname')}: {f.get('message')}" for c in junit.iter("testcase") for f in c.iter("failure")]
        self.assertEqual(len(failures), int(junit.get("failures")))
        text = (self.folder / "summary.md").read_text()
        (self.folder / "summary.md").unlink()
        return done, failures, text, [line for line in done.stdout.splitlines() if line.startswith("::error")]

    def change(self, name, edit):
        """Edits a result in `out`."""
        file = self.folder / "out" / name
        content = json.loads(file.read_text())
        edit(content)
        file.write_text(json.dumps(content))

    def test_baseline_is_reproducible(self):
        self.start("train.json serve.json")
        for name in "train.json", "serve.json":
            first = (self.folder / "out" / name).read_bytes()
            self.assertEqual(set(json.loads(first)["simulation"]), {"version", "activities"})
            self.assertEqual(self.step("Simulate").returncode, 0)
            self.assertEqual((self.folder / "out" / name).read_bytes(), first)
        done, failures, summary, errors = self.outputs()
        self.assertEqual((done.returncode, failures, errors), (0, [], []), done.stdout)
        self.assertRegex(summary, r"\A\*\*nvlsim: all \d+ gates passed\*\*\n")
        self.assertIn("<details><summary>2 scenarios unchanged</summary>", summary)
        self.assertNotIn("::warning", done.stdout)

    def test_infeasible(self):
        self.start("train.json serve.json")
        self.write("train.json", self.edit("train.json", dp=100))
        simulated = self.step("Simulate")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        self.assertIn("nvlsim: train is infeasible: ", simulated.stderr)
        done, failures, summary, errors = self.outputs()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("nvlsim: B: train is infeasible: ", done.stderr)
        self.assertTrue(any(f.startswith("train: B is infeasible") for f in failures), failures)
        self.assertTrue(any("did not run" in e and "train" in e for e in errors), errors)
        self.assertRegex(summary, r"\A\*\*nvlsim: \d of \d gates failed; 1 scenario cannot run\*\*\n")

    def test_vanished_scenario(self):
        self.start("train.json serve.json")
        (self.folder / "out/serve.json").unlink()
        (self.folder / "out/other.json").write_text((self.folder / "baseline/serve.json").read_text().replace('"name": "serve"', '"name": "other"', 1))
        done, failures, summary, errors = self.outputs()
        self.assertEqual(done.returncode, 1)
        for text in ("\n".join(failures), "\n".join(errors), summary):
            self.assertIn("the scenario is in A and not in B", text)
        allowed = self.compare("--allow-missing", "serve")
        self.assertEqual(allowed.returncode, 0, allowed.stdout)
        self.assertIn("::warning title=nvlsim unmatched::only in A: serve", allowed.stdout)

    def test_vanished_metric(self):
        self.start("train.json serve.json")
        self.change("train.json", lambda r: r["metrics"].pop("mfu"))
        self.change("serve.json", lambda r: r["metrics"].update(ttft_s=None))
        done, failures, summary, errors = self.outputs()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(errors), 2, errors)  # a distribution vanishes once
        self.assertRegex("\n".join(errors), r"mfu is 0\.\d+ in A and B has none")
        self.assertRegex("\n".join(errors), r"ttft_s\.\w+ is \S+ s in A and B has none")
        self.assertEqual(self.compare("--allow-missing", "mfu", "--allow-missing", "ttft_s").returncode, 0)
        self.assertEqual(self.compare("--allow-missing", "*").returncode, 0)
        self.assertEqual(self.compare("--allow-missing", "mfu").returncode, 1)

    def test_metric_missing_everywhere(self):
        self.start("train.json serve.json")
        done = self.compare("--fail-if", "step_tim_s>+1%")
        errors = [line for line in done.stdout.splitlines() if line.startswith("::error")]
        self.assertEqual((done.returncode, len(errors)), (1, 1), done.stdout)
        self.assertIn("step_tim_s is not in B; did you mean step_time_s?", errors[0])

    def test_changed_inputs_and_stale_baseline(self):
        self.start("train.json serve.json")
        self.write("train.json", {**json.loads((self.folder / "train.json").read_text()), "description": "another"})
        scenario = json.loads((self.folder / "train.json").read_text())
        scenario["simulation"] = {"seed": 7}  # changes nothing of a training step
        self.write("train.json", scenario)
        self.assertEqual(self.step("Simulate").returncode, 0)
        done, failures, summary, errors = self.outputs()
        self.assertEqual((done.returncode, errors), (0, []), done.stdout)
        self.assertIn("::notice title=nvlsim inputs changed::train: /simulation/seed 1 -> 7", done.stdout)
        self.assertIn("::warning title=nvlsim baseline::the baseline A is stale: 1 of 2 scenarios have other inputs in B", done.stdout)
        self.assertIn("note: the baseline A is stale", summary)
        self.assertIn("/simulation/seed", (self.folder / "junit.xml").read_text())

    def test_other_version(self):
        self.start("train.json")
        self.change("train.json", lambda r: r["simulation"].update(version="99.0"))
        self.assertIn("99.0", self.compare().stdout)

    def test_limits_of_the_host(self):
        self.start("train.json serve.json")
        result = json.loads((self.folder / "out/train.json").read_text())
        for folder in "baseline", "out":
            for i in range(40):
                slower = json.loads(json.dumps(result))
                slower["name"] = f"train-{i}" + "x" * 3000
                if folder == "out":
                    slower["metrics"]["step_time_s"] *= 2
                (self.folder / folder / f"t{i}.json").write_text(json.dumps(slower))
        done, failures, summary, errors = self.outputs()
        self.assertEqual((done.returncode, len(failures), len(errors)), (1, 40, 10))
        self.assertIn("and 31 more of these", errors[-1])
        self.assertTrue(all(len(line) < 4400 for line in done.stdout.splitlines()))
        self.assertRegex(summary, r"changed by \+100.00 %, from \S+ s to \S+ s")

    def compare(self, *more):
        return run("compare", "baseline", "out", "--fail-if", "memory_peak_bytes>+1%", *more, "--format", "github", cwd=self.folder)

    def test_shipped_baseline(self):
        baseline = SOURCE / "docs/ci/baseline"
        named = re.search(r"SCENARIOS: >-\n((?:    .*\n)+)", WORKFLOW)[1].split()
        self.assertEqual(sorted(p.stem for p in baseline.iterdir()), sorted(named))
        done = run("compare", baseline, baseline, "--fail-if", "step_time_s>+0%", "--fail-if", "output_tokens_per_s<-0%")
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in baseline.iterdir():
            self.assertEqual(set(json.loads(path.read_text())["simulation"]), {"version", "activities"}, path)
        self.assertEqual(run("scenario", "check", *named).returncode, 0)


if __name__ == "__main__":
    main()
