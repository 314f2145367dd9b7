#!/usr/bin/env python3
"""Fails when a module includes a module that is not before it, or a library outside its place.

Usage: check_layering.py SOURCE_DIR
"""
import os
import re
import sys
from pathlib import Path

# Lowest first. Modules of one tier do not include each other.
TIERS = [
    ["units"], ["diagnostics"], ["config"], ["platform"], ["stack"], ["network", "compute"],
    ["collectives", "model"], ["layout"], ["workload"], ["scenario"], ["engine"], ["analysis"], ["output"],
    ["study"], ["cli"],
]
TIER = {module: tier for tier, modules in enumerate(TIERS) for module in modules}

# Public headers, include/nvlsim/NAME.hpp, that are not called like the module they belong to.
HEADER_MODULE = {
    "version": "units", "units_text": "units", "precision": "units", "value": "config", "fidelity": "network",
    "ideal_collective": "collectives", "collective_workload": "workload",
    "memory": "workload", "plan": "workload", "training": "workload", "inference": "workload", "requests": "workload", "serving": "workload", "inference_profile": "stack",
    "simulation": "engine", "result": "analysis", "training_metrics": "analysis", "inference_metrics": "analysis",
    "job_energy": "analysis", "explanation": "analysis", "link_use": "analysis", "fit": "study", "run": "study", "search": "study", "serving_studies": "study",
    "sweep": "study", "validate": "study",
}

# Third-party headers by prefix: where they may be included.
LIBRARIES = {
    "SimGrid": (("simgrid/", "xbt/", "smpi/", "msg/"), ("src/engine/", "src/network/simgrid_zone.")),
    "nlohmann/json": (("nlohmann/",), ("src/config/", "src/output/")),
    "CLI11": (("CLI/",), ("src/cli/",)),
    "fmt": (("fmt/",), ("src/",)),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SUFFIXES = {".hpp", ".cpp", ".h", ".hh", ".cc", ".ipp", ".inl"}


def module_of(path):
    """The module that a path relative to the source directory belongs to, or None."""
    parts = Path(path).parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "nvlsim"):
        stem = Path(path).stem
        return HEADER_MODULE.get(stem, stem)
    return None


def resolve(root, file, included):
    """The project file that an include names, relative to the root, or None for a header of elsewhere."""
    for folder in (file.parent, root / "src", root / "include"):
        candidate = Path(os.path.normpath(folder / included))
        if candidate.is_file() and root in candidate.parents:
            return candidate.relative_to(root).as_posix()
    return None


def check_include(root, file, here, quote, included):
    """What is wrong with one include, or None."""
    for library, (prefixes, places) in LIBRARIES.items():
        if included.startswith(prefixes):
            return None if here.startswith(places) else f"{library} may be included only in {' and '.join(places)}"
    target = resolve(root, file, included)
    if target is None:
        return f'no such file in src/ or include/: "{included}"' if quote == '"' else None
    mine, other = module_of(here), module_of(target)
    if here.startswith("include/") and target.startswith("src/"):
        return f"a public header includes the private {target}"
    if mine != other and other in TIER and TIER[other] >= TIER[mine]:
        return f"module {mine} includes {target} of module {other}, which is not before it"
    return None


def violations(root):
    """Every violation as a line `file:line: what`, sorted by file."""
    root = Path(root).resolve()
    found = []
    for file in sorted(p for top in ("src", "include") for p in (root / top).rglob("*") if p.suffix in SUFFIXES):
        here = file.relative_to(root).as_posix()
        if module_of(here) not in TIER:
            found.append(f"{here}:1: belongs to no module; name its module in {Path(__file__).name}")
            continue
        text = file.read_text(encoding="utf-8")
        text = BLOCK_COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
        for match in INCLUDE.finditer(text):
            wrong = check_include(root, file, here, *match.groups())
            if wrong:
                line = text.count("\n", 0, match.start(1)) + 1
                found.append(f"{here}:{line}: {wrong}")
    return found


def main(arguments):
    if len(arguments) != 1 or not (Path(arguments[0]) / "src").is_dir():
        print(__doc__.strip(), file=sys.stderr)
        return 2
    found = violations(arguments[0])
    print("\n".join(found) if found else "layering: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
