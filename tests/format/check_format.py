#!/usr/bin/env python3
"""Fails for every source that clang-format would change, and every line beyond the columns that .clang-format allows.

Usage: check_format.py CLANG_FORMAT SOURCE_DIR [--fix]
"""
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

FOLDERS = "src", "include", "tests"


def sources(root):
    return sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in (".hpp", ".cpp"))


def long_lines(root, files):
    """Lines that are too long; those of string literals, which clang-format leaves, in tests."""
    columns = int(re.search(r"ColumnLimit: (\d+)", (root / ".clang-format").read_text()).group(1))
    for file in files:
        here = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > columns and not here.startswith("tests/"):
                yield f"{here}:{number}: {len(line)} columns, {columns} are allowed"


def unformatted(clang_format, root, files, fix):
    """Files that clang-format would change."""
    def differs(some):
        done = subprocess.run([clang_format, *(["-i"] if fix else ["--dry-run", "-Werror"]), *map(str, some)],
                              capture_output=True, text=True, check=False)
        return re.findall(r"^(.*?):\d+:\d+: error: code should be clang-formatted", done.stderr, re.MULTILINE)
    cores = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        for found in pool.map(differs, [files[i::cores] for i in range(cores)]):
            for name in sorted(set(found)):
                yield f"{Path(name).relative_to(root).as_posix()}: run clang-format -i on it"


def main(arguments):
    clang_format, root = arguments[0], Path(arguments[1]).resolve()
    files = sources(root)
    found = sorted(unformatted(clang_format, root, files, "--fix" in arguments)) + list(long_lines(root, files))
    print("\n".join(found) if found else f"format: {len(files)} files ok")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
