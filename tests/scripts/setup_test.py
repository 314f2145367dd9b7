#!/usr/bin/env python3
"""scripts/lib.sh against made-up machines: a folder of fake tools is the whole PATH."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

LIB = Path(__file__).resolve().parents[2] / "scripts" / "lib.sh"
REAL_TOOLS = ["bash", "env", "mkdir", "grep", "sort", "head", "sed", "cat"]

GCC_12 = 'case $1 in --version) echo "c++ (Debian 12.2.0)";; *) echo 12.2.0;; esac'
TOOLS = {"c++": GCC_12, "ninja": "", "cmake": 'echo "cmake version 3.25.1"'}
DEBIAN = {
    "dpkg-query": 'for name; do :; done; case $name in have*) echo -n installed;; *) exit 1;; esac',
    "apt-get": 'echo "apt-get $*" >>apt-calls',
    "id": "echo 0",
}


def run(command, tools):
    """Exit code, stderr and the calls of apt-get when `command` runs with those tools only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bin")
        path.mkdir()
        for name in REAL_TOOLS:
            (path / name).symlink_to(shutil.which(name))
        for name, body in tools.items():
            (path / name).write_text(f"#!{shutil.which('bash')}\n{body}\n", encoding="utf-8")
            (path / name).chmod(0o755)
        done = subprocess.run(
            [shutil.which("bash"), "-c", f"set -euo pipefail; source {LIB}; {command}", "scripts/quickstart"],
            cwd=folder, env={"PATH": str(path)}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        calls = Path(folder, "apt-calls")
        return done.returncode, done.stderr, calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []


class InstallPackages(unittest.TestCase):
    def test_nothing_to_do_is_silent(self):
        self.assertEqual(run("install_packages have-a have-b", DEBIAN), (0, "", []))

    def test_only_missing_packages_are_installed(self):
        code, said, calls = run("install_packages have-a b c", DEBIAN)
        self.assertEqual((code, said), (0, "installing b c\n"))
        self.assertEqual([call.split("300 ")[1] for call in calls],
                         ["update", "install -y --no-install-recommends b c"])

    def test_sudo_is_used_by_a_user(self):
        code, _, calls = run("install_packages b", {**DEBIAN, "id": "echo 1000", "sudo": '[[ $1 == -n ]] || "$@"'})
        self.assertEqual((code, len(calls)), (0, 2))

    def test_user_without_sudo(self):
        code, said, calls = run("install_packages b", {**DEBIAN, "id": "echo 1000"})
        self.assertEqual((code, calls), (1, []))
        self.assertEqual(said, "scripts/quickstart: not root, and no sudo, to install the missing b\n")

    def test_sudo_that_wants_a_password_and_has_no_terminal(self):
        code, said, _ = run("install_packages b", {**DEBIAN, "id": "echo 1000", "sudo": "exit 1"})
        self.assertEqual(code, 1)
        self.assertEqual(said, "scripts/quickstart: sudo needs a password; run this first: sudo apt-get install b\n")

    def test_no_network(self):
        apt = 'echo "W: ignored"; echo "E: Unable to locate package b" >&2; exit 100'
        code, said, _ = run("install_packages b", {**DEBIAN, "apt-get": apt})
        self.assertEqual(code, 1)
        self.assertEqual(said, "installing b\nscripts/quickstart: apt-get cannot install b; is there a network? "
                               "E: Unable to locate package b (see build/apt.log)\n")

    def test_not_debian(self):
        code, said, _ = run("install_packages b", {})
        self.assertEqual((code, said), (0, "no apt-get here; these must have been installed in some other way: b\n"))


class CheckTools(unittest.TestCase):
    def check(self, expected, **changed):
        tools = {name: body for name, body in {**TOOLS, **changed}.items() if body is not None}
        code, said, _ = run("check_tools", tools)
        self.assertEqual((code, said), (1, f"scripts/quickstart: {expected}\n") if expected else (0, ""))

    def test_good_tools(self):
        self.check("")
        self.check("", **{"c++": 'case $1 in --version) echo "Debian clang 14";; *) echo 14.0.6;; esac'})

    def test_old_compiler(self):
        self.check("c++ is GCC 11.4.0; 12 or later is needed (set CXX to choose another)",
                   **{"c++": 'case $1 in --version) echo "c++ 11.4.0";; *) echo 11.4.0;; esac'})
        self.check("c++ is Clang 13.0.1; 14 or later is needed (set CXX to choose another)",
                   **{"c++": 'case $1 in --version) echo "clang version 13";; *) echo 13.0.1;; esac'})

    def test_old_cmake(self):
        self.check("cmake is 3.9.6; 3.25 or later is needed", cmake='echo "cmake version 3.9.6"')

    def test_missing_tool(self):
        self.check("c++ is not installed", **{"c++": None})
        self.check("ninja is not installed", ninja=None)


if __name__ == "__main__":
    unittest.main()
