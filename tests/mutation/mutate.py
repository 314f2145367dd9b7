#!/usr/bin/env python3
"""Attacks the program with spoiled inputs and reports what no input may cause.

usage: mutate.py NVLSIM SOURCE_DIR [--seed N] [--count N | --seconds S] [--jobs N] [--kind NAME]... [--from N] [--keep DIR]

Input number i of a seed is always the same, so that "--seed 7 --from 1234 --count 1" repeats one. A fault is
- a signal, an exit code that the command does not have (70 is an internal error), or a refusal without a message;
- output that is not JSON, or holds NaN or infinity;
- more memory than 4 GiB, or more CPU time than the job's limit;
- a file that was read and has other bytes afterwards;
- a result that cannot be (MFU above 1, time below zero or above a hundred years) and does not say so;
- a control character in text for people or for a CI host, or a CSV cell that a spreadsheet would compute.
Exit code 1 with a list of faults by their kind, else 0, also after an interruption. docs/reliability.md has what long runs found."""
import argparse
import collections
import contextlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
import attacks
import sanitizer

MOST_BYTES = 4 << 30
LONGEST_S = 100 * 365.25 * 86400
NOT_A_NUMBER = re.compile(r"(?<![\w.\"'/-])-?(?:nan|inf|infinity)(?![\w.\"'-])", re.I)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def sanitizer_in(program):
    return b"__asan_init" in program.read_bytes()


def in_one_thread(arguments):
    """The same command without a thread that prints progress: a sanitizer's allocator does not survive a fork beside other threads."""
    words = 2 if " ".join(arguments[:2]) in attacks.COMMANDS else 1
    return [*arguments[:words], "--quiet", *arguments[words:]]


def refuse(constant):
    raise ValueError(f"{constant} in the output")


class Server:
    """A process of the program that runs main in a fork of itself for each job (fork_server.c)."""
    started = itertools.count()

    def __init__(self, program, folder, environment):
        library = folder / "fork_server.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, Path(__file__).resolve().parent / "fork_server.c", "-ldl"], check=True)
        engines = [p for p in (program.parent / "nvlsim-simulator.so", *program.parent.parent.rglob("nvlsim-simulator.so")) if p.exists()]
        preloaded = [str(library)]
        if sanitizer_in(program):  # its library must come first, which it does not see
            environment = {**environment, "ASAN_OPTIONS": environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"}
            preloaded.insert(0, subprocess.run(["cc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True).stdout.strip())
        self.program = str(program)
        cores = sorted(os.sched_getaffinity(0))
        core = {cores[next(self.started) % len(cores)]} if sanitizer_in(program) else set(cores)  # commands have as many threads as cores
        self.process = subprocess.Popen([self.program], preexec_fn=lambda: os.sched_setaffinity(0, core), env={**environment, "LD_PRELOAD": ":".join(preloaded), **({"MUTATION_ENGINE": str(engines[0])} if engines else {})},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True)

    def numbers(self, n):
        data = b""
        while len(data) < 8 * n:
            more = self.process.stdout.read(8 * n - len(data))
            if not more:
                raise RuntimeError("the fork server has ended")
            data += more
        return struct.unpack(f"{n}q", data)

    def call(self, work, out, err, limits, arguments, seconds):
        """Exit status as subprocess has it, None after `seconds`; peak bytes."""
        words = [work, out, err, *limits, self.program, *arguments]
        data = b"".join(str(w).replace("\0", "").encode("utf-8", "surrogateescape" if isinstance(w, Path) else "surrogatepass") + b"\0" for w in words)
        self.process.stdin.write(struct.pack("I", len(data)) + data)
        (child,) = self.numbers(1)
        late = threading.Event()

        def end_it():
            late.set()
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(child, 9)

        timer = threading.Timer(seconds, end_it)
        timer.start()
        status, peak = self.numbers(2)
        timer.cancel()
        return None if late.is_set() else os.waitstatus_to_exitcode(status), peak * 1024

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Runner:
    """Runs jobs in a folder of its own, with its own copy of the shipped data."""

    def __init__(self, program, source, sanitized):
        self.source, self.sanitized = source, sanitized
        self.folder = Path(tempfile.mkdtemp(prefix="mutate."))
        self.data = self.folder / "data"
        for name in "platforms", "scenarios":
            shutil.copytree(source / name, self.data / name)
        self.server = Server(program, self.folder, {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "NVLSIM_DATA": str(self.data), **sanitizer.options()})

    def end(self):
        self.server.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, job):
        """Exit status (negative for a signal), seconds, bytes, stdout, stderr; status None after the time limit."""
        work, out, err = (self.folder / name for name in ("work", "out", "err"))
        shutil.rmtree(work, ignore_errors=True)
        for name, content in job.files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(content)
        for name, content in job.data.items():
            (self.data / name).write_bytes(content)
        work.mkdir(exist_ok=True)
        begin = time.monotonic()
        # CPU time, so that a busy machine is not taken for a slow program; sanitizers reserve terabytes of addresses
        limits = (int(job.seconds), 0 if self.sanitized else 2 * MOST_BYTES)
        status, peak = self.server.call(work, out, err, limits, job.arguments, 20 * job.seconds)
        seconds = time.monotonic() - begin
        for name in job.data:
            shutil.copyfile(self.source / name, self.data / name)
        return status, seconds, peak, out.read_bytes()[:1 << 26], err.read_bytes()[:1 << 20]

    def changed(self, job):
        work = self.folder / "work"
        given = [str(a) for a in job.arguments]
        named = {b for a, b in zip(given, given[1:]) if a in ("-o", "--output", "--trace", "--requests") and given.count(b) == 1}  # asked for, not read
        return [n for n, c in job.files.items() if n not in named and (not (work / n).exists() or (work / n).read_bytes() != c)]


def absurd(document):
    """What a result says that cannot be, unless its notes say so."""
    if not isinstance(document, dict):
        return None
    for result in document.get("results") or [document]:
        metrics = result.get("metrics") if isinstance(result, dict) else None
        if not isinstance(metrics, dict) or any("cannot be" in str(n) or "implausible" in str(n) for n in result.get("notes") or []):
            continue
        for key, v in metrics.items():
            values = [x for x in (v.values() if isinstance(v, dict) else [v]) if isinstance(x, (int, float)) and not isinstance(x, bool)]
            if key in ("mfu", "hfu") and any(x > 1 for x in values):
                return f"{key} above 1"
            if re.search(r"(?<!per)_s$", key) and any(x > LONGEST_S or x < 0 for x in values):
                return f"{key} is negative or above a hundred years"
    return None


def fault(job, done, runner):
    """The kind of the fault that a finished job shows, or None."""
    status, seconds, size, out, err = done
    message = sanitizer.without_notices(err.decode("utf-8", "backslashreplace"))
    if status is None:
        return f"hangs for {20 * job.seconds:g} s"
    if status == -24 or "signal 24" in message:
        return f"more than {job.seconds:g} s of CPU time"
    if status < 0 or status > 128:
        return f"signal {-status if status < 0 else status - 128}"
    if "Sanitizer" in message or "runtime error:" in message:
        return "sanitizer: " + (re.search(r"(runtime error: .*|Sanitizer: \S+)", message) or ["?"])[0][:100]
    if size > MOST_BYTES and not runner.sanitized or "out of memory" in message:
        return "more than 4 GiB"
    if status not in job.exits:
        return f"exit code {status}: " + re.sub(r"[\d.e+-]+", "#", message.strip().splitlines()[0] if message.strip() else "")[:90]
    if runner.changed(job):
        return "an input is overwritten"
    if status in (2, 4) and not message.strip():
        return f"exit code {status} without a message"
    try:
        text = out.decode("utf-8")
    except UnicodeDecodeError:
        return "output is not UTF-8"
    if job.arguments[-1] == "json":
        try:
            document = json.loads(text, parse_constant=refuse)
        except ValueError as e:
            return "output is not JSON: " + re.sub(r"\d+", "#", str(e))[:60]
        return absurd(document)
    if CONTROL.search(text if "always" not in job.arguments else text.replace("\x1b[", "")):
        return "a control character in the output"
    named = any(re.search(rb'"-?(?:nan|inf|infinity)"', c, re.I) for c in job.files.values())  # a name of an input
    if (job.kind in ("command line", "result") and job.arguments[0] != "metrics" and status == 0 and not named
            and NOT_A_NUMBER.search(text)):
        return "NaN or infinity in the output"
    if job.arguments[-1] == "csv" and re.search(r"(?:^|,)\"?[=@\t]", text, re.M):
        return "a CSV cell that a spreadsheet computes"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program", type=Path)
    p.add_argument("source", type=Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int)
    p.add_argument("--seconds", type=float)
    p.add_argument("--from", type=int, default=0, dest="first")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--kind", action="append", choices=sorted(attacks.ATTACKS))
    p.add_argument("--keep", type=Path, help="folder for the files and the command of each fault")
    a = p.parse_args()
    program, source = a.program.resolve(), a.source.resolve()
    sanitized = sanitizer_in(program)
    shipped = attacks.Shipped(program, source, {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "NVLSIM_DATA": str(source), **sanitizer.options()})
    names = a.kind or sorted(attacks.ATTACKS)
    weights = [attacks.ATTACKS[n][1] for n in names]
    lock, stopped, finish = threading.Lock(), threading.Event(), time.monotonic() + (a.seconds or 1e9)
    for number in (signal.SIGINT, signal.SIGTERM):  # what was done is still reported
        signal.signal(number, lambda *_: stopped.set())
    last = a.first + (a.count if a.count is not None else 1 << 60 if a.seconds else 1000)
    following = iter(range(a.first, last))
    found, ran, codes, spent = collections.defaultdict(list), collections.Counter(), collections.Counter(), collections.Counter()

    def work():
        runner = Runner(program, source, sanitized)
        try:
            while time.monotonic() < finish and not stopped.is_set():
                with lock:
                    i = next(following, None)
                if i is None:
                    return
                rng = random.Random(f"{a.seed}/{i}")
                job = attacks.ATTACKS[rng.choices(names, weights)[0]][0](rng, shipped)
                if sanitized:
                    job.seconds *= 6
                    job.arguments = in_one_thread(job.arguments)
                done = runner.run(job)
                wrong = fault(job, done, runner)
                with lock:
                    ran[job.kind] += 1
                    spent[job.kind] += done[1]
                    codes[done[0]] += 1
                    if wrong:
                        found[f"{job.kind}: {wrong}"].append((i, job))
                if wrong and a.keep:
                    place = a.keep / f"{a.seed}-{i}"
                    for name, content in [*job.files.items(), *((f"data/{n}", c) for n, c in job.data.items())]:
                        (place / name).parent.mkdir(parents=True, exist_ok=True)
                        (place / name).write_bytes(content)
                    place.mkdir(parents=True, exist_ok=True)
                    (place / "command").write_text(repr(job.arguments) + "\n" + wrong + "\n" + done[4].decode("utf-8", "backslashreplace")[-2000:])
        finally:
            runner.end()

    with ThreadPoolExecutor(a.jobs) as pool:
        for future in [pool.submit(work) for _ in range(a.jobs)]:
            future.result()
    print(f"{sum(ran.values())} inputs of seed {a.seed}: " + ", ".join(f"{n} {k} ({spent[k]:.0f} s)" for k, n in sorted(ran.items())))
    print("exit codes: " + ", ".join(f"{n} of {'time limit' if c is None else c}" for c, n in sorted(codes.items(), key=str)))
    for wrong, where in sorted(found.items(), key=lambda f: -len(f[1])):
        print(f"{len(where):6}  {wrong}\n        input {where[0][0]}: nvlsim {' '.join(map(repr, where[0][1].arguments))[:200]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
