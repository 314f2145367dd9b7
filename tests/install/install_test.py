"""An installed tree works from wherever it is moved to, and a foreign CMake project builds against it."""
import pathlib
import re
import shutil
import sys
import tempfile

from support import SCENARIO, check, run, step_time

cmake, build, built_program, compiler = sys.argv[1:]
here = pathlib.Path(__file__).parent

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    run(cmake, "--install", build, "--prefix", folder / "first")
    prefix = folder / "moved"
    (folder / "first").rename(prefix)

    slow_nic = ("--set", "/platform/fabric/nic_bandwidth=400 Gb/s")
    program = prefix / "bin" / "nvlsim"
    expected = step_time(built_program, *slow_nic, cwd=folder)
    check(step_time(program, *slow_nic, cwd=folder) == expected, "the installed program gives what the built one gives")
    for kind in "platform", "stack", "model", "scenario":
        lists = [run(p, kind, "list", env={}, cwd=folder) for p in (program, built_program)]
        check(lists[0] == lists[1], f"every {kind} is installed")

    share = prefix / "share"
    pages = {p.name for p in (share / "man/man1").iterdir()}
    check({"nvlsim.1", "nvlsim-run.1", "nvlsim-platform-show.1"} <= pages, "manual pages are installed")
    for shell, file in ("bash", "bash-completion/completions/nvlsim"), ("zsh", "zsh/vendor-completions/_nvlsim"), \
                       ("fish", "fish/vendor_completions.d/nvlsim.fish"):
        check((share / file).read_text() == run(program, "completion", shell), f"{shell} completion is installed")

    # Any file of the package that names the place it was first installed to, or was built in, breaks when moved.
    for file in (prefix / "lib").rglob("*.cmake"):
        text = file.read_text()
        check(build not in text and str(folder) not in text, f"{file.name} has no absolute path")

    project = folder / "foreign"
    shutil.copytree(here / "foreign", project)
    page = (here.parent.parent / "docs/library.md").read_text()
    (project / "library.cpp").write_text(re.search(r"```cpp\n(.*?)```", page, re.DOTALL).group(1))
    run(cmake, "-S", project, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}",
        "-G", "Unix Makefiles" if shutil.which("make") else "Ninja", "-DCMAKE_BUILD_TYPE=Debug")
    run(cmake, "--build", folder / "build")
    # The program of docs/library.md, as a reader would take it from there.
    rates = {line.split()[0]: line.split()[2] for line in run(folder / "build" / "library", cwd=folder).splitlines()}
    for rate in "800", "100":
        at_rate = step_time(program, "--set", f"/platform/fabric/nic_bandwidth={rate} Gb/s", cwd=folder)
        check(rates[rate] == f"{at_rate:.4f}", f"at {rate} Gb/s the library gives what the program gives")
    version, step, parameters = run(folder / "build" / "foreign", SCENARIO + ".json", env={}, cwd=folder).split()
    check(run(program, "--version").strip() == f"nvlsim {version}", "header and program are of one version")
    check(float(step) == expected, "the library gives what the program gives")
    check(int(parameters) == 405_853_388_800, "Llama 3.1 405B has its published parameters")
