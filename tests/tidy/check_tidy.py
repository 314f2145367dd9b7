#!/usr/bin/env python3
"""Runs clang-tidy with .clang-tidy on every source: check_tidy.py CLANG_TIDY SOURCE_DIR BUILD_DIR.

Half of what clang-tidy costs is headers, so sources are checked together: those of a module, which share no names
outside functions because they are compiled together, and those of modules that happen to share none."""
import concurrent.futures, os, pathlib, shutil, subprocess, sys, tempfile

# Where two of them come to share a name, each is checked alone, which takes longer and finds the same.
TOGETHER = (("cli", "output", "facility"), ("measurements", "analysis", "operation", "layers", "network"),
            ("serving", "run", "platform"), ("training", "planner", "plan"), ("model", "scheduling"),
            ("scenario", "simulator", "compute", "config", "units"), ("search", "collectives", "sweep"),
            ("stack", "post_training"), ("calibration", "fleet", "layout", "diagnostics"))
COMPILER = "clang++-14"  # comes with Debian's clang-tidy 14
HEADERS = ("algorithm", "array", "charconv", "chrono", "cmath", "filesystem", "functional", "map", "mutex", "optional",
           "random", "set", "span", "string", "variant", "vector", "fmt/format.h")


def groups(src):
    """Sources of modules that are checked together, a list for each module."""
    sources = {m.name: sorted(m.glob("*.cpp")) for m in src.iterdir() if m.is_dir()}
    named = [[sources.pop(m) for m in names if m in sources] for names in TOGETHER]
    return [g for g in named + [[m] for m in sources.values()] if any(g)]


def parsed_once(flags, folder):
    """Flags with the headers that most sources have, parsed once for all groups; the same flags without a compiler."""
    header, parsed = pathlib.Path(folder, "headers.hpp"), pathlib.Path(folder, "headers.pch")
    if not shutil.which(COMPILER):
        return flags
    header.write_text("".join("#include <%s>\n" % h for h in HEADERS))
    done = subprocess.run([COMPILER, "-x", "c++-header", *flags, str(header), "-o", str(parsed)], capture_output=True)
    return flags if done.returncode else flags + ["-include-pch", str(parsed)]


def check(tidy, root, flags, modules):
    """What clang-tidy prints of these modules, and whether it found nothing."""
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder, "unit.cpp")
        unit.write_text("".join('#include "%s"\n' % source for module in modules for source in module))
        done = subprocess.run([tidy, "--quiet", "--warnings-as-errors=*", "--config-file=%s" % (root / ".clang-tidy"), str(unit),
                               "--"] + flags, capture_output=True, text=True)
    if "[clang-diagnostic-error]" in done.stdout and len(modules) > 1:
        alone = [check(tidy, root, flags, [module]) for module in modules]
        return "".join(text for text, _ in alone), all(good for _, good in alone)
    return done.stdout, done.returncode == 0


def main(tidy, source_dir, build_dir, *flags):
    root = pathlib.Path(source_dir).resolve()
    # Bodies of the standard library's templates are parsed only where they are used: a seventh of the time.
    flags = ["-std=c++20", "-fdelayed-template-parsing", "-I%s" % (root / "include"), "-I%s" % (root / "src"),
             "-I%s" % (pathlib.Path(build_dir).resolve() / "generated"), *flags]
    units = groups(root / "src")
    with tempfile.TemporaryDirectory() as folder:
        flags = parsed_once(flags, folder)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            results = list(pool.map(lambda g: check(tidy, root, flags, g), units))
    print("".join(text for text, _ in results), end="")
    print("%d sources in %d groups" % (sum(len(module) for unit in units for module in unit), len(units)))
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
