#!/usr/bin/env python3
"""Runs clang-tidy with .clang-tidy on every source: check_tidy.py CLANG_TIDY SOURCE_DIR BUILD_DIR.

Most of what clang-tidy costs is the standard library's headers, so sources of one module are checked together, as
they are compiled together: no two of them share a name outside functions."""
import concurrent.futures, os, pathlib, shutil, subprocess, sys, tempfile

LARGEST = 40
COMPILER = "clang++-14"  # comes with Debian's clang-tidy 14
HEADERS = ("algorithm", "array", "charconv", "chrono", "cmath", "filesystem", "functional", "map", "mutex", "optional",
           "random", "set", "span", "string", "variant", "vector", "fmt/format.h")


def groups(folder):
    """Sources of one module, some at a time."""
    sources = sorted(folder.glob("*.cpp"))
    return [sources[i:i + LARGEST] for i in range(0, len(sources), LARGEST)]


def parsed_once(flags, folder):
    """Flags with the headers that most sources have, parsed once for all groups; the same flags without a compiler."""
    header, parsed = pathlib.Path(folder, "headers.hpp"), pathlib.Path(folder, "headers.pch")
    if not shutil.which(COMPILER):
        return flags
    header.write_text("".join("#include <%s>\n" % h for h in HEADERS))
    done = subprocess.run([COMPILER, "-x", "c++-header", *flags, str(header), "-o", str(parsed)], capture_output=True)
    return flags if done.returncode else flags + ["-include-pch", str(parsed)]


def check(tidy, root, flags, members):
    """What clang-tidy prints of these sources, and whether it found nothing."""
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder, "unit.cpp")
        unit.write_text("".join('#include "%s"\n' % m for m in members))
        done = subprocess.run([tidy, "--quiet", "--warnings-as-errors=*", "--config-file=%s" % (root / ".clang-tidy"), str(unit),
                               "--"] + flags, capture_output=True, text=True)
    return done.stdout, done.returncode == 0


def main(tidy, source_dir, build_dir, *flags):
    root = pathlib.Path(source_dir).resolve()
    # Bodies of the standard library's templates are parsed only where they are used: a seventh of the time.
    flags = ["-std=c++20", "-fdelayed-template-parsing", "-I%s" % (root / "include"), "-I%s" % (root / "src"),
             "-I%s" % (pathlib.Path(build_dir).resolve() / "generated"), *flags]
    units = [g for module in sorted((root / "src").iterdir()) if module.is_dir() for g in groups(module)]
    with tempfile.TemporaryDirectory() as folder:
        flags = parsed_once(flags, folder)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            results = list(pool.map(lambda g: check(tidy, root, flags, g), units))
    print("".join(text for text, _ in results), end="")
    print("%d sources in %d groups" % (sum(map(len, units)), len(units)))
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
