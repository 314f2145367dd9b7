"""The program under test, and a folder to run it in."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import sanitizer

NVLSIM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
INPUTS = Path(__file__).parent / "inputs"


def run(*arguments, cwd=None, timeout=60, **env):
    """Runs nvlsim; the completed process has text in stdout, which must be UTF-8, and in stderr."""
    base = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", **sanitizer.options()}
    done = subprocess.run([str(NVLSIM), *map(str, arguments)], cwd=cwd, env={**base, **env}, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=timeout)
    done.stdout, done.stderr = done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "backslashreplace")
    done.stderr = sanitizer.without_notices(done.stderr)
    return done


def reproducible(text):
    """A result's JSON text without its "simulation" sections."""
    return re.sub(r'"simulation": \{[^}]*\}', '"simulation": {}', text)


class Case(unittest.TestCase):
    """A test in an empty folder with copies of `inputs`."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        shutil.copytree(INPUTS, self.folder, dirs_exist_ok=True)

    def edit(self, name, **workload):
        """An input with another workload, as a value."""
        scenario = json.loads((INPUTS / name).read_text())
        scenario["workload"].update(workload)
        return scenario

    def write(self, name, scenario):
        """Writes a scenario, named as its file is."""
        scenario["name"] = Path(name).stem
        (self.folder / name).write_text(json.dumps(scenario))
        return name


def main():
    unittest.main(argv=sys.argv[:1])
