"""The Debian package holds all it needs: unpacked elsewhere, its program runs the quickstart scenario."""
import pathlib
import re
import subprocess
import sys
import tempfile

from support import check, run, step_time

cpack, build, built_program = sys.argv[1:]

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    run(cpack, "-G", "DEB", "--config", f"{build}/CPackConfig.cmake", "-B", folder / "packages")
    package, = (folder / "packages").glob("*.deb")
    root = folder / "root"
    run("dpkg-deb", "-x", package, root)

    field = lambda name: run("dpkg-deb", "-f", package, name).strip()
    check(package.name == f"nvlsim_{field('Version')}_{field('Architecture')}.deb", "the file is named as Debian names it")
    depends = {re.split(r"[ (]", d)[0] for d in field("Depends").split(", ")}
    # Every library the program is linked to belongs to a package that is depended on.
    for library in re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", root / "usr/bin/nvlsim")):
        found = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True).stdout
        owners = {line.split(":")[0] for line in found.splitlines()}
        check(owners & depends, f"{library} of {sorted(owners)} is among the dependencies {sorted(depends)}")

    check(step_time(root / "usr/bin/nvlsim", cwd=folder) == step_time(built_program, cwd=folder),
          "the packaged program gives what the built one gives")
    doc = root / "usr/share/doc/nvlsim"
    check("Apache License" in (doc / "copyright").read_text(), "the licence is there")
    check("aiconfigurator" in (doc / "NOTICE").read_text(), "the notice is there")
    stray = [p for p in root.rglob("*") if p.is_file() and str(pathlib.Path(built_program).parent).encode() in p.read_bytes()]
    check(not stray, f"no file names the build folder: {stray}")
