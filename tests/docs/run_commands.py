#!/usr/bin/env python3
"""Runs the commands that the documentation shows, and compares what they print.

Usage: run_commands.py NVLSIM SOURCE_DIR [--update] PAGE.md...

Fenced blocks with lines "$ nvlsim ..." are sessions of one shell for each page, in a folder of its own with the shipped
inputs; "..." stands for any lines, and `$ echo $?` shows the exit code, which otherwise must be 0. Numbers are compared by
their form alone, so that a fit that moves them breaks nothing here; --update writes the numbers of this build into the
pages, and should be run before a release. A page may show other programs: only nvlsim and a few tools are run.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
import sanitizer  # noqa: E402

RUN = {"nvlsim", "cp", "sed", "echo"}
ANY = "..."
UNIT = r"(?: ?(?:[kMGTPmun]?(?:s|B|W|J|FLOP/s|tok/s|req/s|USD|B/s)|min|h))?\b"


def sessions(lines):
    """(index of the command, command, first line of its output, line after it) of each."""
    found, inside = [], False
    for i, line in enumerate(lines):
        if line.startswith("```"):
            inside = not inside
        elif inside and line.startswith("$ "):
            found.append([i, line[2:], i + 1, i + 1])
        elif inside and found and found[-1][3] == i:
            found[-1][3] = i + 1
    return [s for s in found if s[1].split()[0] in RUN]


def form(line):
    """A line without its numbers: columns, signs and bars follow them."""
    line = re.sub(r"[+-]?\d[\d,.]*(?:e[+-]?\d+)?" + UNIT, "0", line)
    line = re.sub(r"\s#+$", "", line)
    return re.sub(r"\s+", " ", line).strip()


def pieces(expected):
    """Runs of lines between lines of ANY."""
    out = [[]]
    for line in expected:
        if line == ANY:
            out.append([])
        else:
            out[-1].append(line)
    return out


def find(piece, found, start):
    """Where the lines are in that form; of several places the one that has most of the words themselves."""
    wanted = [form(line) for line in piece]
    places = [at for at in range(start, len(found) - len(piece) + 1) if [form(line) for line in found[at:at + len(piece)]] == wanted]
    same = lambda at: sum(len(set(a.split()) & set(b.split())) for a, b in zip(piece, found[at:]))
    return max(places, key=same) if places else None


def nearest(piece, found, start):
    """Where most lines begin with the same word."""
    words = lambda line: (line.split() or [""])[0]
    score = lambda at: sum(words(a) == words(b) for a, b in zip(piece, found[at:at + len(piece)]))
    places = range(start, max(start, len(found) - len(piece)) + 1)
    return max(places, key=score)


def match(expected, found, update):
    """(the expected lines with the numbers that were found, None), or (None, lines that are not found in that form). An
    update takes what comes nearest to these."""
    parts = pieces(expected)
    out, start = [], 0
    for n, piece in enumerate(parts):
        last = n == len(parts) - 1
        at = find(piece, found, len(found) - len(piece) if last and n > 0 else start)
        if at is None and update:
            at = nearest(piece, found, start)
        elif at is None or at < start or (n == 0 and at != 0) or (last and at + len(piece) != len(found)):
            return None, piece
        out += ([ANY] if n > 0 else []) + found[at:at + len(piece)]
        start = at + len(piece)
    return out, None


def run_page(page, nvlsim, source, update):
    lines = page.read_text().splitlines()
    problems, code, after = [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        for name in "scenarios", "platforms", "docs", "tests":
            os.symlink(source / name, Path(folder) / name)
        env = {"PATH": f"{nvlsim.parent}:{os.environ['PATH']}", "HOME": folder, "LC_ALL": "C", **sanitizer.options()}
        todo = sessions(lines)
        for n, (at, command, begin, end) in enumerate(todo):
            if command == "echo $?":
                found = [str(code)]
            else:
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
                code = done.returncode
                text = done.stdout if code != 2 else done.stdout + sanitizer.without_notices(done.stderr)
                found = [line.rstrip() for line in text.splitlines()]
                shows_code = n + 1 < len(todo) and todo[n + 1][1] == "echo $?"
                stated = shows_code or "infeasible" in "".join(lines[begin:end]) or "FAIL" in "".join(lines[begin:end])
                if code != 0 and not stated:
                    problems.append(f"{page.name}:{at + 1}: {command}: exit code {code}\n{done.stderr}")
            shown = [line.rstrip() for line in lines[begin:end]]
            while shown and not shown[-1]:
                shown.pop()
            while found and not found[-1]:
                found.pop()
            if command == "echo $?" and not update:
                new, missing = (found, None) if shown == found else (None, shown)
            else:
                new, missing = match(shown, found, update) if shown else ([], None)
            if new is None:
                problems.append(f"{page.name}:{at + 1}: {command}\n  shows\n    " + "\n    ".join(missing or ["(nothing)"]) +
                                "\n  but this is printed\n    " + "\n    ".join(found[:60]))
            else:
                after.append((begin, begin + len(shown), new))
    if update:
        for begin, end, new in reversed(after):
            lines[begin:end] = new
        page.write_text("\n".join(lines) + "\n")
    return problems


def main():
    words = sys.argv[1:]
    update = "--update" in words
    nvlsim, source, *pages = [Path(w).resolve() for w in words if w != "--update"]
    problems = [p for page in pages for p in run_page(page, nvlsim, source, update)]
    if problems:
        sys.exit("\n".join(problems) + "\nnumbers may differ, lines may not; tests/docs/run_commands.py says how to renew them")


if __name__ == "__main__":
    main()
