"""run_commands.py catches a page that shows what is not printed, and renews numbers."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NVLSIM, SOURCE = sys.argv[1:]
CHECK = Path(__file__).with_name("run_commands.py")
TABLE = """\
  $ nvlsim compare llama3.1-405b-gb200-rack llama3.1-405b-gb300-rack
  ...
    step_time_s                                1 s        2 s  -3 %
  ...
"""


class RunCommands(unittest.TestCase):
    def run_page(self, session, *options):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text("# A page\n\n```\n" + "\n".join(line[2:] for line in session.splitlines()) + "\n```\n")
            done = subprocess.run([sys.executable, CHECK, NVLSIM, SOURCE, *options, page], capture_output=True, text=True)
            return done.returncode, done.stderr, page.read_text()

    def passes(self, session):
        code, text, _ = self.run_page(session)
        self.assertEqual(code, 0, text)

    def fails(self, session, why):
        code, text, _ = self.run_page(session)
        self.assertEqual(code, 1)
        self.assertIn(why, text)

    def test_numbers_may_differ_and_lines_may_not(self):
        self.passes("  $ nvlsim --version\n  nvlsim 7.8.9")
        self.fails("  $ nvlsim --version\n  simulator 7.8.9", "page.md:4: nvlsim --version")
        self.passes(TABLE)
        self.fails(TABLE.replace("step_time_s", "step_times"), "step_times")
        self.fails(TABLE.replace("  ...\n    step", "    step"), "this is printed")

    def test_exit_codes(self):
        self.fails("  $ nvlsim run no-such-scenario", "exit code 2")
        self.passes("  $ nvlsim run no-such-scenario\n  ...\n  $ echo $?\n  2")
        self.fails("  $ nvlsim --version\n  ...\n  $ echo $?\n  2", "echo $?")

    def test_other_programs_are_not_run(self):
        self.passes("  $ no-such-program\n  whatever")

    def test_update_writes_the_numbers(self):
        code, text, page = self.run_page(TABLE, "--update")
        self.assertEqual(code, 0, text)
        self.assertRegex(page, r"\n  step_time_s  +1\d\.\d+ s  +1\d\.\d+ s  -\d\d\.\d+ %\n\.\.\.\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
