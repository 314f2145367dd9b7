#!/usr/bin/env python3
"""Fails when a document, or the code, points to a file or a section of the documentation that is not there.

Usage: check_links.py SOURCE_DIR
"""
import re
import sys
from pathlib import Path

# Where sources name sections: `[docs/models-and-assumptions.md#gemm]`.
SOURCES = ["src", "include", "platforms", "scenarios", "cmake", "scripts", "tests", "CMakeLists.txt"]
MENTION = re.compile(r"\bdocs/([\w./-]+\.md)(?:#([\w-]+))?")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[`*]")
# Pictures, and tables of measurements, which quote the documentation of others.
SKIPPED = {".png", ".svg", ".pyc", ".csv"}


def without_code(text):
    return INLINE_CODE.sub("", FENCE.sub("", text))


def slug(heading):
    """GitHub's anchor of a heading."""
    words = MARKUP.sub(lambda m: m.group(1) or "", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors_of(text):
    """Every anchor of a Markdown text; a repeated heading gets -1, -2, ..."""
    text = FENCE.sub("", text)
    out, seen = set(ANCHOR.findall(text)), {}
    for heading in HEADING.findall(text):
        name = slug(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        out.add(f"{name}-{count}" if count else name)
    return out


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Checker:
    def __init__(self, root):
        self.root = root
        self.anchors = {}
        self.problems = []

    def check(self, file, line, target, anchor):
        """`target` is an absolute path; `anchor` may be empty."""
        where = f"{file.relative_to(self.root).as_posix()}:{line}"
        if not target.exists():
            self.problems.append(f"{where}: no such file: {target}")
        elif anchor and target.suffix == ".md":
            if target not in self.anchors:
                self.anchors[target] = anchors_of(target.read_text(encoding="utf-8"))
            if anchor not in self.anchors[target]:
                self.problems.append(f"{where}: no section #{anchor} in {target.relative_to(self.root).as_posix()}")

    def check_mentions(self, file):
        text = file.read_text(encoding="utf-8")
        for m in MENTION.finditer(text):
            self.check(file, line_of(text, m.start()), self.root / "docs" / m.group(1), m.group(2))

    def check_document(self, file):
        text = file.read_text(encoding="utf-8")
        # Blanks keep the line numbers.
        prose = FENCE.sub(lambda m: "\n" * m.group().count("\n"), text)
        prose = INLINE_CODE.sub(lambda m: " " * len(m.group()), prose)
        for m in LINK.finditer(prose):
            link = m.group(1)
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / path).resolve() if path else file
            self.check(file, line_of(prose, m.start()), target, anchor)


def files_under(root, places, suffix=None):
    for place in places:
        top = root / place
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and file.suffix not in SKIPPED and suffix in (None, file.suffix):
                yield file


def check_tree(root):
    """Every problem of a source tree, as lines of text."""
    checker = Checker(root)
    for file in files_under(root, SOURCES):
        # The tests of this check hold broken links on purpose.
        if file.parent != root / "tests" / "docs":
            checker.check_mentions(file)
    for file in [*sorted(root.glob("*.md")), *files_under(root, ["docs"], ".md")]:
        checker.check_document(file)
    return checker.problems


if __name__ == "__main__":
    found = check_tree(Path(sys.argv[1]).resolve())
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found else 0)
