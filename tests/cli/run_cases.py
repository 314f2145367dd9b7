#!/usr/bin/env python3
"""Runs transcripts of the command line and compares what is printed.

Usage: run_cases.py NVLSIM SOURCE_DIR FILE.t...

A transcript is prose with indented sessions:

      $ nvlsim run nofile.json
      2> nvlsim: nofile.json: no such file
      [4]

"$" begins a shell command, ">" continues it, "2>" is a line on stderr, "[4]" the exit code when it is not 0, everything
else stdout. A line that ends in " (re)" is a regular expression. Commands of a file run one after the other in one empty
folder that holds copies of `inputs/`. NVLSIM_APPROVE=1 writes what was found instead of comparing; read the difference
before committing it.
"""
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sanitizer

INDENT = "  "


def sessions(lines):
    """[command, expected lines, index of the first of them, index after the last] of each session."""
    found = []
    for i, line in enumerate(lines):
        if line.startswith(INDENT + "$ "):
            found.append([line[4:], [], i + 1, i + 1])
        elif not line.startswith(INDENT) or not found:
            continue
        elif line.startswith(INDENT + "> ") and found[-1][2:] == [i, i]:
            found[-1][0] += "\n" + line[4:]
            found[-1][2:] = [i + 1, i + 1]
        else:
            blanks = i - found[-1][3]  # empty lines of the output
            found[-1][1] += [""] * blanks + [line[len(INDENT):]]
            found[-1][3] = i + 1
    return found


def run(command, folder, nvlsim, source):
    """Lines that a session with this command should show."""
    env = {"PATH": f"{nvlsim.parent}:{os.environ.get('PATH', '')}", "HOME": str(folder), "LC_ALL": "C",
           "SOURCE": str(source), **sanitizer.options()}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=120)
    decode = lambda b: sanitizer.without_notices(b.decode("utf-8", "backslashreplace")).replace(
        str(source), "$SOURCE").splitlines()
    out = [line.rstrip() for line in decode(done.stdout) + ["2> " + line for line in decode(done.stderr)]]
    return out + ([f"[{done.returncode}]"] if done.returncode else [])


def matches(expected, found):
    return expected == found or (expected.endswith(" (re)") and re.fullmatch(expected[:-5], found) is not None)


def same(expected, found):
    return len(expected) == len(found) and all(map(matches, expected, found))


def check(file, nvlsim, source):
    """Number of sessions that differ."""
    lines = file.read_text().splitlines()
    wrong, approved, shift = 0, list(lines), 0
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(Path(__file__).parent / "inputs", folder, dirs_exist_ok=True)
        for command, expected, begin, end in sessions(lines):
            found = run(command, Path(folder), nvlsim, source)
            if same(expected, found):
                continue
            wrong += 1
            kept = [next((e for e in expected if matches(e, line)), line) for line in found]
            approved[begin + shift:end + shift] = [(INDENT + line).rstrip() for line in kept]
            shift += len(found) - (end - begin)
            print(f"{file.name}:{begin}: $ {command}")
            print("\n".join(list(difflib.unified_diff(expected, found, "expected", "found", lineterm="", n=1))[2:]))
    if wrong and os.environ.get("NVLSIM_APPROVE"):
        file.write_text("\n".join(approved) + "\n")
        return 0
    return wrong


def main():
    nvlsim, source = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    wrong = sum(check(Path(f), nvlsim, source) for f in sys.argv[3:])
    if wrong:
        print(f"{wrong} sessions differ; approve wanted changes with NVLSIM_APPROVE=1")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
