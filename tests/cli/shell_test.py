"""Completion in each shell, asked as the shell would, and manual pages."""
import json
import os
import pty
import re
import shutil
import subprocess
import unittest

import sanitizer
from program import NVLSIM, SOURCE, Case, main, run

# ^T completes, writes down the line and the matches, and leaves.
ZSHRC = r"""
PS1=; unsetopt beep; fpath=($ZDOTDIR $fpath)
autoload -Uz compinit; compinit -u -D
compadd() {
  local -a all
  if [[ " $* " != *" -"[OAD]" "* ]]; then builtin compadd -A all "$@"; print -rl -- $all >> $ZDOTDIR/matches; fi
  builtin compadd "$@"
}
ask() { zle complete-word; print -r -- "$BUFFER" > $ZDOTDIR/line; exit }
zle -N ask; bindkey '^T' ask
"""
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
        self.assertEqual(answers("run", "--format=js"), ["--format=json"])  # as other shells do not
        self.assertEqual(answers("run", "--output="), [":dirs"])
        self.assertEqual(answers("run", "--no-fold="), [])
        self.assertIn("mfu", answers("search", "x", "--objective", "m"))
        self.assertEqual(answers("run", "-o", ""), [":dirs"])
        self.assertEqual(answers("run", "--trace", "x"), [":files"])
        self.assertEqual(answers("run", "--seed", ""), [])

    def test_names_that_ship(self):
        shipped = sorted(p.stem for p in (SOURCE / "platforms").glob("*.json"))
        self.assertEqual(answers("platform", "show", ""), shipped + [":files"])
        self.assertEqual(answers("collective", "all_reduce", "--platform", "gb300-nvl7"), ["gb300-nvl72"])
        self.assertIn("llama3-8b", answers("model", "show", "llama3-"))
        self.assertIn("llama3.1-405b-gb300-512", answers("compare", "first", "llama3.1-405b-gb300-5"))
        self.assertEqual(answers("collective", "all_r"), ["all_reduce"])

    def test_metrics(self):
        self.assertEqual(answers("explain", "llama3.1-405b-gb300-512", "mf"), ["mfu"])
        table = json.loads(run("metrics", "--format", "json").stdout)
        self.assertEqual({m.split(".")[0] for m in answers("explain", "x", "")}, {m["name"] for m in table})
        self.assertEqual(answers("search", "x", "--objective", "itl_s.p"), ["itl_s.p50", "itl_s.p90", "itl_s.p95", "itl_s.p99"])
        self.assertEqual(answers("compare", "--fail-if", "step_t"), ["step_time_s"])
        self.assertEqual(answers("compare", "--allow-missing", "step_t"), ["step_time_s"])
        self.assertEqual(answers("search", "x", "--constraint", "mf"), ["mfu"])
        self.assertEqual(answers("search", "x", "--constraint=mf"), ["--constraint=mfu"])
        self.assertEqual(answers("search", "x", "--constraint", "mfu>0.3"), [])
        about = run("__complete", "explain", "x", "mf").stdout.splitlines()[0].split("\t")[1]
        self.assertEqual(about, next(m["meaning"] for m in table if m["name"] == "mfu"))

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
        for written, read in [("nvlsim run --fi", "nvlsim run --fidelity "), ("nvlsim compl", "nvlsim completion "),
                              ("nvlsim run --format=js", "nvlsim run --format=json "), ("nvlsim run -o a", "nvlsim run -o a-folder/"),
                              ("nvlsim report --output=a-fi", "nvlsim report --output=a-file "), ("nvlsim run x --nosuch", "nvlsim run x --nosuch"),
                              ("nvlsim platform show gb300-nvl7", "nvlsim platform show gb300-nvl72 ")]:
            with self.subTest(written=written):
                self.assertEqual(self.zsh(written).rstrip("\n"), read)
        self.assertEqual(self.zsh("nvlsim run --fidelity ", every=True).split(), ["closed", "flow", "exact"])

    def zsh(self, written, every=False):
        """What an interactive zsh makes of a line at TAB: the line, or every match."""
        (self.folder / ".zshrc").write_text(ZSHRC)
        (self.folder / "_nvlsim").write_text(run("completion", "zsh").stdout)  # found in $fpath, as docs/cli.md says
        (self.folder / "a-folder").mkdir(exist_ok=True)
        (self.folder / "a-file").touch()
        (self.folder / "matches").write_text("")
        ours, theirs = pty.openpty()
        env = {"PATH": f"{NVLSIM.parent}:{os.environ['PATH']}", "TERM": "dumb", "LC_ALL": "C.UTF-8", "ZDOTDIR": str(self.folder), **sanitizer.options()}
        shell = subprocess.Popen(["zsh", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=self.folder, start_new_session=True)
        os.close(theirs)
        os.write(ours, written.encode() + b"\x14")
        try:
            shell.wait(timeout=60)
        finally:
            shell.kill()
            shell.wait()
            os.close(ours)
        return (self.folder / ("matches" if every else "line")).read_text()

    @needs("fish")
    def test_fish(self):
        ask = "set -x PATH {0} $PATH; nvlsim completion fish | source; complete -C '{1}'"
        self.assertEqual(shell("fish", ask.format(NVLSIM.parent, "nvlsim run --fi")), ["--fidelity\tNetwork model"])
        self.assertEqual(shell("fish", ask.format(NVLSIM.parent, "nvlsim run --fidelity cl")), ["closed"])
        self.assertEqual(shell("fish", ask.format(NVLSIM.parent, "nvlsim run --format=js")), ["--format=json"])
        (self.folder / "a-folder").mkdir()
        self.assertEqual(shell("fish", f"cd {self.folder}; " + ask.format(NVLSIM.parent, "nvlsim run --output=a-fo")), ["--output=a-folder/\tDirectory"])


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
