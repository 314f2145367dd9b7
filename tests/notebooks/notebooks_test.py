#!/usr/bin/env python3
"""The notebooks of docs/notebooks, executed on files that nvlsim writes, and the module beside them.

Usage: notebooks_test.py NVLSIM SOURCE_DIR
"""
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NVLSIM, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
NOTEBOOKS = SOURCE / "docs/notebooks"
PYTHON = "/usr/bin/python3"  # the one that distribution packages belong to
PRINTED = {"scaling": r"GB300 over GB200 on 512 GPUs: 1\.[1-5]", "trace": r"step \d+\.\d+ s, least busy stage \d\d\.\d %",
           "serving": r"most of a GPU: GB300 over GB200 1\.", "accuracy": r"median error of training: \d\.\d %"}


class Notebooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = Path(cls.folder.name) / "files"
        os.environ.pop("MPLBACKEND", None)  # the kernel draws into the notebook
        cls.environment = {**os.environ, "NVLSIM": str(NVLSIM), "NVLSIM_FILES": str(cls.files),
                           "PATH": "/usr/bin:/bin", "PYDEVD_DISABLE_FILE_VALIDATION": "1", "PYTHONPATH": str(NOTEBOOKS),
                           "PYTHONDONTWRITEBYTECODE": "1", "MPLCONFIGDIR": cls.folder.name}
        subprocess.run([NOTEBOOKS / "make_files.sh", cls.files], env=cls.environment, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def python(self, code):
        done = subprocess.run([PYTHON, "-c", "import nvlsim\n" + code], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_notebooks_are_kept_without_outputs(self):
        self.assertEqual({p.stem for p in NOTEBOOKS.glob("*.ipynb")}, set(PRINTED))
        for path in NOTEBOOKS.glob("*.ipynb"):
            for cell in json.loads(path.read_text())["cells"]:
                self.assertEqual((cell.get("outputs", []), cell.get("execution_count")), ([], None), path.name)

    def test_notebooks_run(self):
        program = shutil.which("jupyter-nbconvert", path="/usr/bin:/bin")
        self.assertTrue(program, "install the Debian packages jupyter-nbconvert python3-ipykernel python3-pandas python3-matplotlib")
        out = Path(self.folder.name) / "executed"
        done = subprocess.run([program, "--to", "notebook", "--execute", "--output-dir", out, *(n + ".ipynb" for n in PRINTED)],
                              cwd=NOTEBOOKS, env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, expected in PRINTED.items():
            cells = json.loads((out / f"{name}.ipynb").read_text())["cells"]
            outputs = [o for c in cells for o in c.get("outputs", [])]
            self.assertRegex("".join("".join(o.get("text", [])) for o in outputs), expected)
            self.assertTrue(any("image/png" in o.get("data", {}) for o in outputs), f"{name} draws nothing")

    def test_results_are_rows(self):
        result = json.loads((self.files / "scaling/gb300-512.json").read_text())
        found = json.loads(self.python(
            f"f = nvlsim.load_results({str(self.files / 'scaling')!r}, {str(self.files / 'serving')!r})\n"
            "row = f[f.name == 'gb300-512'].iloc[0]\n"
            "import json; print(json.dumps([len(f), row.step_time_s, row.gpu, row['workload.tp'], f['ttft_s.p99'].count().item()]))"))
        self.assertEqual(found, [18, result["metrics"]["step_time_s"], "gb300", 2, 8])

    def test_traces_are_slices_also_gzipped(self):
        packed = self.files / "packed.json.gz"
        packed.write_bytes(gzip.compress((self.files / "step.trace.json").read_bytes()))
        for path in (self.files / "step.trace.json", packed):
            found = json.loads(self.python(
                f"t = nvlsim.load_trace({str(path)!r})\n"
                "op = t[t.depth == 0]; inner = t[t.depth == 1]\n"
                "import json; print(json.dumps([t.attrs['metadata']['scenario'], t.depth.max().item(), sorted(set(t.thread))[0],"
                "bool(inner.duration_s.sum() <= op.duration_s.sum() * 1.000001)]))"))
            self.assertEqual(found, ["llama3.1-405b-gb300-512", 1, "compute", True])

    def test_sweeps_explanations_and_breakdowns(self):
        lines = self.files / "results.jsonl"
        lines.write_text('{"index": 0, "id": "a", "set": {"/workload/tp": 2}, "status": "ok", "reasons": [], "metrics": {"x_s": 1.5, "t_s": {"p50": 2}}}\n'
                         '{"index": 1, "id": "b", "set": {"/workload/tp": 4}, "status": "infeasible", "reasons": ["no", "way"], "metrics": {}}\n')
        explanation = self.files / "explanation.json"
        explanation.write_text(subprocess.run([NVLSIM, "explain", "llama3.1-405b-gb300-512", "--format", "json"], check=True,
                                              capture_output=True, text=True).stdout)
        found = json.loads(self.python(
            f"s = nvlsim.load_sweep({str(lines)!r}); e = nvlsim.load_explanation({str(explanation)!r})\n"
            f"b = nvlsim.load_breakdown({str(self.files / 'scaling/gb300-512.json')!r})\n"
            "import json; print(json.dumps([s['/workload/tp'].tolist(), s['t_s.p50'].iloc[0], s.reasons.iloc[1],"
            "e.groupby('tree').amount.sum().round(6).tolist(), round(b.seconds.sum(), 6)]))"))
        step = round(json.loads((self.files / "scaling/gb300-512.json").read_text())["metrics"]["step_time_s"], 6)
        self.assertEqual(found[:3], [[2, 4], 2, "no; way"])
        for total in (*found[3], found[4]):
            self.assertAlmostEqual(total, step, places=4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
