#!/usr/bin/env python3
"""Equal inputs give equal bytes. Usage: determinism_test.py NVLSIM SOURCE_DIR"""
import json
import subprocess

from program import NVLSIM, SOURCE, Case, main, reproducible, run

LOCALES = NVLSIM.parent / "locales"


def has_foreign_locale():
    shown = subprocess.run(["locale", "decimal_point"], env={"LOCPATH": str(LOCALES), "LC_ALL": "de_DE.UTF-8"},
                           capture_output=True, text=True)
    return shown.stdout.strip() == ","


class Determinism(Case):
    def results(self, *arguments, **options):
        done = run("run", *arguments, "--format", "json", cwd=options.pop("cwd", self.folder), **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return reproducible(done.stdout)

    def test_twice(self):
        for name in ("train.json", "serve.json"):
            self.assertEqual(self.results(name), self.results(name))

    def test_from_two_folders(self):
        inside = self.folder / "a" / "b"
        inside.mkdir(parents=True)
        self.assertEqual(self.results("train.json"), self.results("../../train.json", cwd=inside))
        self.assertEqual(self.results("train.json"), self.results(self.folder / "train.json", cwd="/"))

    def test_from_two_folders_with_a_model_beside_the_scenario(self):
        (self.folder / "shapes.json").write_text((SOURCE / "scenarios/models/llama3-8b.json").read_text())
        scenario = self.edit("train.json")
        scenario["model"] = "./shapes.json"
        self.write("own.json", scenario)
        self.assertEqual(self.results("own.json"), self.results(self.folder / "own.json", cwd="/"))
        self.assertIn('"model": "shapes"', self.results("own.json"))

    def test_in_a_locale_with_decimal_commas(self):
        if not has_foreign_locale():
            self.skipTest("no de_DE locale")
        for form in ("json", "table", "csv", "megatron-log"):
            out = [reproducible(run("run", "train.json", "--format", form, cwd=self.folder, LOCPATH=str(LOCALES), LC_ALL=l).stdout)
                   for l in ("C", "de_DE.UTF-8")]
            self.assertEqual(out[0], out[1])
            self.assertTrue(out[0])

    def test_in_either_order(self):
        one, two = json.loads(self.results("train.json", "serve.json"))
        two_again, one_again = json.loads(self.results("serve.json", "train.json"))
        self.assertEqual((one, two), (one_again, two_again))
        self.assertEqual(one, json.loads(self.results("train.json")))

    def test_results_name_no_folder(self):
        self.write("other.json", self.edit("train.json", dp=4))
        for text in (self.results("other.json"), self.results(self.folder / "other.json")):
            self.assertNotIn(str(self.folder), text)
            self.assertNotIn(str(SOURCE), text)

    def test_files_hold_what_is_printed(self):
        printed = json.loads(self.results("train.json", "serve.json", "-o", "out"))
        files = sorted((self.folder / "out").iterdir())
        self.assertEqual([f.name for f in files], ["serve.json", "train.json"])
        self.assertEqual([json.loads(reproducible(f.read_text())) for f in files], sorted(printed, key=lambda r: r["name"]))

    def test_traces_are_equal(self):
        for name in ("a.json", "b.json"):
            self.results("train.json", "--trace", name)
        self.assertEqual((self.folder / "a.json").read_bytes(), (self.folder / "b.json").read_bytes())

    def test_the_digest_tells_inputs_apart(self):
        digests = {json.loads(self.results("train.json", *more))["inputs"]["digest"]
                   for more in ((), ("--set", "/workload/tp=1"), ("--set", "/workload/dp=4"),
                                ("--set", "/platform/gpu/tdp=1.2 kW"), ("--set", "/stack/training/time_factor=2"))}
        self.assertEqual(len(digests), 4)


if __name__ == "__main__":
    main()
