"""Completion in each shell, asked as the shell would, and manual pages."""
import json
import re
import shutil
import subprocess
import unittest

from program import NVLSIM, SOURCE, Case, main, run

WITH_NVLSIM = f"PATH={NVLSIM.parent}:$PATH"


def answers(*words):
    return [line.split("\t")[0] for line in run("__complete", *words).stdout.splitlines()]


def shell(name, script):
    done = subprocess.run([name, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class Completion(Case):
    def test_commands(self):
        self.assertEqual(answers("comp"), ["compare", "completion"])
        self.assertEqual(answers("platform", ""), ["list", "show", "check"])
        self.assertNotIn("man", answers(""))

    def test_options_and_their_values(self):
        self.assertEqual(answers("run", "--no"), ["--no-fold"])
        self.assertIn("--output", answers("run", "some-scenario", "-"))
        self.assertEqual(answers("run", "--fidelity", ""), ["closed", "flow", "exact"])
        self.assertEqual(answers("run", "--format", "=", "js"), ["json"])  # as bash splits --format=js
        self.assertEqual(answers("run", "-o", ""), [":dirs"])
        self.assertEqual(answers("run", "--trace", "x"), [":files"])
        self.assertEqual(answers("run", "--seed", ""), [])

    def test_names_that_ship(self):
        shipped = sorted(p.stem for p in (SOURCE / "platforms").glob("*.json"))
        self.assertEqual(answers("platform", "show", ""), shipped + [":files"])
        self.assertEqual(answers("collective", "all_reduce", "--platform", "gb300-n"), ["gb300-nvl72"])
        self.assertIn("llama3-8b", answers("model", "show", "llama3-"))
        self.assertIn("llama3.1-405b-gb300-512", answers("compare", "first", "llama3.1-405b-gb300-5"))
        self.assertEqual(answers("collective", "all_r"), ["all_reduce"])

    def test_metrics(self):
        self.assertEqual(answers("explain", "llama3.1-405b-gb300-512", "mf"), ["mfu"])
        scenarios = {"training": "train.json", "inference": "serve.json"}
        known = {k for name in scenarios.values() for k in json.loads(run("run", name, "--format", "json", cwd=self.folder).stdout)["metrics"]}
        for metric in answers("explain", "x", ""):
            self.assertTrue(metric.split(".")[0] in known or metric.endswith("_to_train_s") or "_to_train" in metric or metric in ("time_s", "busbw_Bps"), metric)

    def test_nonsense_completes_to_nothing(self):
        for words in [], ["no", "such", "command"], ["run", "--nosuch", "x", "\xff"], ["collective", "all_reduce", "b", "c"]:
            self.assertEqual(answers(*words), [":files"] if words[:1] == ["run"] else [])
        self.assertEqual(run("__complete", "platform", "show", "g", NVLSIM_DATA="/nowhere").stdout, ":files\n")

    def test_bash(self):
        ask = "COMP_WORDS=({0}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _nvlsim nvlsim; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        script = f"{WITH_NVLSIM}; source <(nvlsim completion bash); "
        self.assertEqual(shell("bash", script + ask.format("nvlsim run --fi")), ["--fidelity"])
        self.assertEqual(shell("bash", script + ask.format("nvlsim run --fidelity ''")), ["closed", "flow", "exact"])
        self.assertEqual(shell("bash", script + "complete -p nvlsim"), ["complete -F _nvlsim nvlsim"])

    @needs("zsh")
    def test_zsh(self):
        stubs = 'compdef() { print "compdef $*" }; _describe() { print -l -- "${(@P)3}" }; _files() { print "files $*" }; '
        script = f"{WITH_NVLSIM}; {stubs} source <(nvlsim completion zsh); "
        self.assertEqual(shell("zsh", script), ["compdef _nvlsim nvlsim"])
        ask = "words=({0}); CURRENT=$#words; _nvlsim"
        self.assertEqual(shell("zsh", script + ask.format("nvlsim run --fi"))[1:], ["--fidelity:Network model"])
        self.assertEqual(shell("zsh", script + ask.format("nvlsim run -o ''"))[1:], ["files -/"])
        self.assertEqual(shell("zsh", script + ask.format("nvlsim platform show gb300-n"))[1:], ["files ", "gb300-nvl72:gb300-nvl72"])

    @needs("fish")
    def test_fish(self):
        ask = "set -x PATH {0} $PATH; nvlsim completion fish | source; complete -C '{1}'"
        self.assertEqual(shell("fish", ask.format(NVLSIM.parent, "nvlsim run --fi")), ["--fidelity\tNetwork model"])
        self.assertEqual(shell("fish", ask.format(NVLSIM.parent, "nvlsim run --fidelity cl")), ["closed"])


class ManualPages(Case):
    def pages(self):
        self.assertEqual(run("man", self.folder / "man1").returncode, 0)
        return sorted((self.folder / "man1").iterdir())

    def test_every_command_has_one_that_says_what_help_says(self):
        pages = {page.stem: page for page in self.pages()}
        self.assertGreater(len(pages), 25)
        for words in [], ["run"], ["compare"], ["platform", "show"], ["kernel", "moe"]:
            page = pages["-".join(["nvlsim", *words])]
            shown = run(*words, "--help").stdout
            text = page.read_text().replace("\\-", "-").replace("\\e", "\\")
            for option in re.findall(r"^  (-\w, )?(--[\w-]+)", shown, re.M):
                self.assertIn(option[1], text)

    @needs("mandoc")
    def test_mandoc_finds_nothing_wrong(self):
        pages = self.pages()
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
        wrong = [line for line in done.stdout.splitlines() if "missing date" not in line]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    main()
