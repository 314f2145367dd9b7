#!/usr/bin/env python3
"""Fails when the structure of the code is not what docs/architecture.md says.

A module is a folder: src/MODULE with include/nvlsim/MODULE. It includes only modules before it, by their public
headers, and libraries only in their place. No two headers define one name: a linker keeps one of two, unseen. The page
lists the modules lowest first, with what each includes; its drawing shows every such arrow that does not follow from
others.

Usage: check_layering.py SOURCE_DIR [--write]     (--write renews table and drawing in the page)
"""
import json
import os
import re
import sys
from pathlib import Path

# Lowest first. Modules of one tier do not include each other.
TIERS = [
    ["units"], ["diagnostics"], ["config"], ["platform"], ["stack"], ["network", "compute"],
    ["collectives", "model"], ["layout"], ["layers"], ["plan"], ["training", "serving"],
    ["scheduling", "facility", "fleet"], ["operation", "post_training"], ["scenario"], ["simulator"],
    ["analysis"], ["output"], ["run"], ["search", "sweep", "measurements"], ["calibration", "planner"], ["cli"],
]
TIER = {module: tier for tier, modules in enumerate(TIERS) for module in modules}

# Third-party headers by prefix: where they may be included.
LIBRARIES = {
    "SimGrid": (("simgrid/", "xbt/", "smpi/", "msg/"), ("src/simulator/",)),
    "nlohmann/json": (("nlohmann/",), ("src/config/", "src/output/")),
    "CLI11": (("CLI/",), ("src/cli/",)),
    "Eigen": (("Eigen/",), ("src/calibration/",)),
    "fmt": (("fmt/",), ("src/",)),
}

# A module larger than this has a reason in the file, with a ceiling of its own near its size: growth asks again.
MAX_FILES, MAX_LINES = 40, 6000
LARGE = "tests/layering/large.json"

PAGE = "docs/architecture.md"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# At the beginning of a line: what headers define beside functions, which may be overloaded.
DEFINED = re.compile(r"^(?:namespace ([\w:]+) \{|(\}  // namespace))"
                     r"|^(?:template <.*> )?(?:struct|class|enum class|enum) (\w+)\b(?!::)[^;{]*\{"
                     r"|^inline (?:const(?:expr)? )?[^;({]*?(\w+)(?:\[[^]]*\])? ?[={]", re.MULTILINE)
SUFFIXES = {".hpp", ".cpp", ".h", ".hh", ".cc", ".ipp", ".inl"}
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| ?([^|]*?) ?\|$", re.MULTILINE)
ARROW = re.compile(r"^ *(\w+) --> (\w+)$", re.MULTILINE)


def module_of(path):
    """The module that a path relative to the source directory belongs to, or None."""
    parts = Path(path).parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "nvlsim") and len(parts) == 4:
        return parts[2]
    return None


def resolve(root, file, included):
    """The project file that an include names, relative to the root, or None for a header of elsewhere."""
    for folder in (file.parent, root / "src", root / "include"):
        candidate = Path(os.path.normpath(folder / included))
        if candidate.is_file() and root in candidate.parents:
            return candidate.relative_to(root).as_posix()
    return None


def check_include(here, quote, included, target):
    """What is wrong with one include, or None."""
    for library, (prefixes, places) in LIBRARIES.items():
        if included.startswith(prefixes):
            return None if here.startswith(places) else f"{library} may be included only in {' and '.join(places)}"
    if target is None:
        unknown = quote == '"' and not included.startswith("embedded/")
        return f'no such file in src/ or include/: "{included}"' if unknown else None
    mine, other = module_of(here), module_of(target)
    if here.startswith("include/") and target.startswith("src/"):
        return f"a public header includes the private {target}"
    if mine == other or other not in TIER:
        return None
    if TIER[other] >= TIER[mine]:
        return f"module {mine} includes {target} of module {other}, which is not before it"
    if target.startswith("src/"):
        return f"module {mine} includes {target}, which is private to module {other}: make it a public header or move it"
    return None


def check_names(here, text, seen):
    """Violations of a header whose types or variables another header of the tree defines too, in `seen`."""
    found, inside = [], []
    for match in DEFINED.finditer(text):
        opened, closed, kind, variable = match.groups()
        name, namespace = kind or variable, "::".join(inside)
        if opened:
            inside.append(opened)
        elif closed:
            inside = inside[:-1]
        elif seen.setdefault((namespace, name), here) != here:
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{here}:{line}: {seen[namespace, name]} defines {namespace}::{name} too")
    return found


def read_tree(root):
    """Violations as lines `file:line: what`, the modules that each module includes, and the size of each module."""
    found, arrows, sizes, names = [], {}, {}, {}
    for file in sorted(p for top in ("src", "include") for p in (root / top).rglob("*") if p.suffix in SUFFIXES):
        here = file.relative_to(root).as_posix()
        mine = module_of(here)
        if mine not in TIER:
            found.append(f"{here}:1: belongs to no module; name its module in {Path(__file__).name}")
            continue
        text = file.read_text(encoding="utf-8")
        files, lines = sizes.get(mine, (0, 0))
        sizes[mine] = (files + 1, lines + text.count("\n"))
        arrows.setdefault(mine, set())
        text = BLOCK_COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
        if file.suffix == ".hpp":
            found += check_names(here, text, names)
        for match in INCLUDE.finditer(text):
            target = resolve(root, file, match.group(2))
            if target and module_of(target) in TIER and module_of(target) != mine:
                arrows[mine].add(module_of(target))
            wrong = check_include(here, *match.groups(), target)
            if wrong:
                line = text.count("\n", 0, match.start(1)) + 1
                found.append(f"{here}:{line}: {wrong}")
    return found, arrows, sizes


def ordered(modules):
    """In the order of the tiers."""
    position = {m: i for i, m in enumerate(m for tier in TIERS for m in tier)}
    return sorted(modules, key=position.__getitem__)


def reachable(arrows, start):
    """The modules that a module includes, directly or through others."""
    out, todo = set(), list(arrows.get(start, ()))
    while todo:
        module = todo.pop()
        if module not in out:
            out.add(module)
            todo.extend(arrows.get(module, ()))
    return out


def drawn(arrows):
    """The arrows that do not follow from others."""
    return {(a, b) for a, to in arrows.items() for b in to
            if not any(b in reachable(arrows, other) for other in to if other != b)}


def check_sizes(sizes, large):
    """Modules above their ceiling, and reasons that are no longer needed. `large`: the exceptions by module."""
    for module in ordered(sizes):
        files, lines = sizes[module]
        allowed = large.get(module, {"files": MAX_FILES, "lines": MAX_LINES})
        if files > allowed["files"] or lines > allowed["lines"]:
            yield (f"src/{module}: {files} files and {lines} lines, more than {allowed['files']} or "
                   f"{allowed['lines']}: take it apart, or state a reason and a ceiling in {LARGE}")
        elif module in large and files <= MAX_FILES and lines <= MAX_LINES:
            yield f"{LARGE}: {module} has {files} files and {lines} lines and needs no exception: remove it"
    for module in sorted(set(large) - set(sizes)):
        yield f"{LARGE}: there is no module {module}"


def check_page(text, arrows):
    """What the page says otherwise than the code."""
    rows = {m: set(re.findall(r"`(\w+)`", to)) for m, _, to in ROW.findall(text)}
    if list(rows) != ordered(rows) or set(rows) != set(arrows):
        yield f"{PAGE}: the table lists {', '.join(rows)}; the modules are {', '.join(ordered(arrows))}"
    for module in ordered(arrows):
        for extra in ordered(rows.get(module, set()) - arrows[module]):
            yield f"{PAGE}: the table says that {module} includes {extra}, which it does not"
        for missing in ordered(arrows[module] - rows.get(module, set())):
            yield f"{PAGE}: the table does not say that {module} includes {missing}"
    shown, wanted = set(ARROW.findall(text)), drawn(arrows)
    for a, b in sorted(shown - wanted):
        yield f"{PAGE}: the drawing has an arrow {a} --> {b} that " + (
            "follows from others" if b in arrows.get(a, ()) else "no include bears out")
    for a, b in sorted(wanted - shown):
        yield f"{PAGE}: the drawing lacks the arrow {a} --> {b}"


def renewed(text, arrows):
    """The page with the table's last column and the drawing's arrows as the code has them."""
    def row(match):
        to = ", ".join(f"`{m}`" for m in ordered(arrows.get(match.group(1), ())))
        return f"| `{match.group(1)}` | {match.group(2)} | {to} |".replace("|  |", "| |")
    shown = list(ARROW.finditer(text))
    if shown:
        place = ordered(arrows).index
        lines = [f"  {a} --> {b}" for a, b in sorted(drawn(arrows), key=lambda x: (place(x[0]), place(x[1])))]
        text = text[:shown[0].start()] + "\n".join(lines) + text[shown[-1].end():]
    return ROW.sub(row, text)


def main(arguments):
    if not arguments or not (Path(arguments[0]) / "src").is_dir():
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(arguments[0]).resolve()
    found, arrows, sizes = read_tree(root)
    exceptions = root / LARGE
    found += check_sizes(sizes, json.loads(exceptions.read_text(encoding="utf-8")) if exceptions.is_file() else {})
    page = root / PAGE
    if page.is_file():
        if arguments[1:] == ["--write"]:
            page.write_text(renewed(page.read_text(encoding="utf-8"), arrows), encoding="utf-8")
        found += check_page(page.read_text(encoding="utf-8"), arrows)
    print("\n".join(found) if found else "layering: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
