"""The workflow of docs/ci: its steps pass on their own baseline, and fail on one per cent planted in a stack file."""
import json
import os
import re
import shutil
import subprocess
import textwrap

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

    def test_infeasible(self):
        """A scenario that does not fit is in the annotations, the summary and the JUnit file, not in a step that stops before them."""
        self.scenarios = "train.json serve.json"
        self.assertEqual(self.step("Simulate").returncode, 0)
        (self.folder / "out").rename(self.folder / "baseline")
        self.write("train.json", self.edit("train.json", dp=100))
        simulated = self.step("Simulate")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        done = self.step("Nothing got worse")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "::error title=nvlsim did not run::train: B: ")
        self.assertRegex((self.folder / "junit.xml").read_text(), 'classname="train" name="status">\n +<failure message="B is infeasible: B: ')
        self.assertIn("infeasible", (self.folder / "summary.md").read_text())
        (self.folder / "broken.json").write_text("{}")
        self.scenarios = "broken.json"
        self.assertEqual(self.step("Simulate").returncode, 2)

    def test_shipped_baseline(self):
        baseline = SOURCE / "docs/ci/baseline"
        named = re.search(r"SCENARIOS: >-\n((?:    .*\n)+)", WORKFLOW)[1].split()
        self.assertEqual(sorted(p.stem for p in baseline.iterdir()), sorted(named))
        done = run("compare", baseline, baseline, "--fail-if", "step_time_s>+0%", "--fail-if", "output_tokens_per_s<-0%")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run("scenario", "check", *named).returncode, 0)


if __name__ == "__main__":
    main()
