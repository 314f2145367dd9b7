#!/usr/bin/env python3
"""Instructions of whole commands, counted by valgrind: they repeat to a fraction of a percent where times do not.

instructions.py PROGRAM             compares with instructions.json beside this file; exit 1 when one grew by over 10 %
instructions.py PROGRAM --update    writes that file
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "instructions.json"
ALLOWED = 1.10
COMMANDS = {
    "version": ["--version"],
    "training 512": ["run", "llama3.1-405b-gb300-512"],
    "training 8192": ["run", "llama3.1-405b-gb300-8192"],
    "training 331200": ["run", "llama3.1-405b-gb300-331200"],
    "training 331200 degraded": ["run", "llama3.1-405b-gb300-331200-degraded"],
    "experts 4608": ["run", "kimi-k2-gb300-4608"],
    "offline rack": ["run", "llama2-70b-offline-gb300-rack"],
    "search 512": ["search", "llama3.1-405b-gb300-512", "--gpus", "512", "--only", "tp", "--only", "cp", "--only", "recompute",
                   "--only", "data_parallel_sharding", "--only", "offload_layers", "--only", "vp"],
    "operation 4608": ["run", "llama3.1-405b-gb300-4608-90-days", "--set", "/workload/seeds=10"],
    "queue 8 racks": ["run", "gb300-8-racks-queue", "--set", "/workload/seeds=1"],
    "fleet rack": ["run", "two-services-gb300-fleet", "--set", "/workload/seeds=1"],
}


def count(program, arguments):
    """Instructions of the command and of the children it forks."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.%p"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--log-file={log}",
             f"--callgrind-out-file={folder}/out.%p", program, *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: exit code {run.returncode}\n{run.stderr}")
        found = [re.search(r"Collected : (\d+)", f.read_text()) for f in pathlib.Path(folder).glob("log.*")]
        return sum(int(m.group(1)) for m in found if m)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--update", action="store_true")
    asked = arguments.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed (apt-get install valgrind)")
    counts = {name: count(asked.program, command) for name, command in COMMANDS.items()}
    if asked.update:
        FILE.write_text(json.dumps(counts, indent=2) + "\n")
        return 0
    before = json.loads(FILE.read_text())
    grown = False
    for name, now in counts.items():
        ratio = now / before[name] if name in before else 1.0
        grown |= ratio > ALLOWED
        print(f"{name:<20} {now / 1e6:>10.1f} M  {ratio:6.3f}{'  GREW' if ratio > ALLOWED else ''}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
