"""-v, -q and --color of every command: what is said on stderr, and colours on a terminal only."""
import os
import pty
import re
import subprocess
import threading

from program import NVLSIM, SOURCE, Case, main, run, sanitizer

COLOR = re.compile(r"\033\[[0-9;]*m")


def on_terminal(*arguments, cwd, **env):
    """Output and messages of the program with stdout and stderr on terminals of their own, and its exit code."""
    pairs = [pty.openpty(), pty.openpty()]
    base = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TERM": "xterm", **sanitizer.options()}
    process = subprocess.Popen([NVLSIM, *map(str, arguments)], cwd=cwd, env={**base, **env}, stdin=subprocess.DEVNULL,
                               stdout=pairs[0][1], stderr=pairs[1][1])
    texts = ["", ""]

    def listen(i):
        try:
            while block := os.read(pairs[i][0], 65536):
                texts[i] += block.decode("utf-8", "replace")
        except OSError:  # the other end was closed
            pass

    for _, end in pairs:
        os.close(end)
    listeners = [threading.Thread(target=listen, args=(i,)) for i in (0, 1)]
    for thread in listeners:
        thread.start()
    process.wait(timeout=60)
    for thread in listeners:
        thread.join(timeout=60)
    for end, _ in pairs:
        os.close(end)
    return texts[0].replace("\r\n", "\n"), texts[1].replace("\r\n", "\n"), process.returncode


class Colors(Case):
    def test_only_on_a_terminal(self):
        plain = run("explain", "train.json", cwd=self.folder).stdout
        self.assertNotRegex(plain, COLOR)
        shown, _, code = on_terminal("explain", "train.json", cwd=self.folder)
        self.assertEqual(code, 0)
        self.assertRegex(shown, r"\033\[1mstep_time_s by phase\033\[0m\n")
        self.assertEqual(COLOR.sub("", shown), plain)

    def test_who_decides(self):
        for options, env, wanted in [(["--color", "never"], {}, False), (["--color=auto"], {"NO_COLOR": "1"}, False),
                                     (["--color=auto"], {"NO_COLOR": ""}, True), (["--color=auto"], {"TERM": "dumb"}, False),
                                     (["--color=always"], {"NO_COLOR": "1"}, True), ([], {}, True)]:
            with self.subTest(options=options, env=env):
                shown, _, _ = on_terminal("explain", "train.json", *options, cwd=self.folder, **env)
                self.assertEqual(bool(COLOR.search(shown)), wanted)
        self.assertRegex(run("explain", "train.json", "--color=always", cwd=self.folder).stdout, COLOR)

    def test_files_and_programs_get_none(self):
        for arguments in ["explain", "train.json", "--format", "json"], ["completion", "bash"], ["run", "train.json", "--format", "csv"]:
            with self.subTest(arguments=arguments):
                self.assertNotRegex(on_terminal(*arguments, "--color=always", cwd=self.folder)[0], COLOR)

    def test_errors_are_marked(self):
        wrong = ["run", "train.json", "--set", "/workload/tpp=2"]
        _, said, code = on_terminal(*wrong, cwd=self.folder)
        self.assertEqual(code, 2)
        self.assertRegex(said, COLOR)
        self.assertEqual(COLOR.sub("", said), run(*wrong, cwd=self.folder).stderr)


class Loudness(Case):
    def test_verbose(self):
        quiet, loud = run("run", "train.json", cwd=self.folder), run("run", "train.json", "-v", cwd=self.folder)
        self.assertEqual(quiet.stderr, "")
        self.assertEqual(re.sub(r".* s wall.*|simulated in .*", "", loud.stdout), re.sub(r".* s wall.*|simulated in .*", "", quiet.stdout))
        self.assertIn("nvlsim: reads train.json\n", loud.stderr)
        self.assertIn("nvlsim: train: platform gb300-nvl72, stack megatron-bridge-26.06, model llama3-8b\n", loud.stderr)
        self.assertRegex(loud.stderr, r"nvlsim: train: /workload/pp is not given; default: 1\n")

    def test_verbose_names_what_is_read_and_written(self):
        run("run", "train.json", "-o", "out", cwd=self.folder)
        said = run("report", "out", "-v", cwd=self.folder).stderr
        self.assertIn("reads out/train.json", said)
        self.assertIn("wrote report.html", said)
        said = run("validate", SOURCE / "tests/measurements/memory.csv", "-v", cwd=self.folder).stderr
        self.assertIn("memory.csv", said)

    def test_quiet(self):
        arguments = ["explain", "train.json", "--sensitivity"]
        shown, said, _ = on_terminal(*arguments, "--color=never", cwd=self.folder)
        self.assertIn("constants varied", said)
        also, nothing, code = on_terminal(*arguments, "-q", "--color=never", cwd=self.folder)
        self.assertEqual((also, nothing, code), (shown, "", 0))

    def test_quiet_keeps_errors(self):
        done = run("run", "no-such-scenario", "-q", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no-such-scenario", done.stderr)

    def test_one_of_them(self):
        done = run("run", "train.json", "-v", "-q", cwd=self.folder)
        self.assertEqual(done.returncode, 2)

    def test_every_command_has_them(self):
        def leaves(words=()):
            text = run(*words, "--help").stdout
            commands = re.search(r"\ncommands\n((?:  .*\n)+)", text)
            if not commands:
                yield words, text
            for name in re.findall(r"^  ([a-z]+) ", commands[1] if commands else "", re.M):
                yield from leaves((*words, name))

        seen = 0
        for words, text in leaves():
            seen += 1
            for option in "-v, --verbose", "-q, --quiet", "--color auto|always|never":
                self.assertIn(option, text, words)
        self.assertGreater(seen, 20)


if __name__ == "__main__":
    main()
