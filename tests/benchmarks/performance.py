#!/usr/bin/env python3
"""Measures nvlsim and writes docs/performance.md.

performance.py measure BUILD_DIR -o measured.json    runs everything: some minutes on an idle machine
performance.py page measured.json > docs/performance.md
"""
import argparse
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

MODEL_13B = ["--set", "/model=gpt3-13b", "--set", "/workload/seq_length=2048", "--set", "/workload/precision=bf16",
             "--set", "/workload/global_batch_size=64"]
# The shape that ASTRA-sim was timed on: GPT-3, TP 8 x DP 128, one micro-batch, 100 GB/s a NIC.
GPT3_1024 = ["run", "llama3.1-405b-gb300-512", "--set", "/model=gpt3-175b", "--set", "/platform/racks=16",
             "--set", "/workload/seq_length=2048", "--set", "/workload/precision=bf16", "--set", "/workload/global_batch_size=128",
             "--set", "/workload/tp=8", "--set", "/workload/pp=1", "--set", "/workload/vp=1", "--set", "/workload/cp=1",
             "--set", "/workload/dp=128", "--set", "/workload/sequence_parallel=false",
             "--set", "/workload/data_parallel_sharding=replicated", "--set", "/workload/schedule=1f1b",
             "--set", "/platform/gpu/hbm_nominal=400 GB", "--set", "/platform/gpu/hbm_usable=400 GB"]  # whole optimizer states on every GPU, as there
RANKS_4608 = ["run", "llama3.1-405b-gb300-8192", "--set", "/platform/racks=64", "--set", "/workload/dp=72",
              "--set", "/workload/global_batch_size=1152", "--set", "/placement/gpus_per_rack=72"]
COMMANDS = {
    "start": ["--version"],
    "training 512": ["run", "llama3.1-405b-gb300-512"],
    "training 8192": ["run", "llama3.1-405b-gb300-8192"],
    "training 331200": ["run", "llama3.1-405b-gb300-331200"],
    "training 331200 packed": ["run", "llama3.1-405b-gb300-331200-packed"],
    "training 331200 degraded": ["run", "llama3.1-405b-gb300-331200-degraded"],
    "experts 4608": ["run", "kimi-k2-gb300-4608"],
    "100 trillion": ["run", "moe-100t-gb300-15360"],
    "offline rack": ["run", "llama2-70b-offline-gb300-rack"],
    "ranks 4608": [*RANKS_4608, "--no-fold"],
    "gpt3 1024": GPT3_1024,
    "gpt3 1024 ranks": [*GPT3_1024, "--no-fold"],
    "search 13b on 16": ["search", "llama3.1-405b-gb300-rack", "--gpus", "16", *MODEL_13B, "--format", "json"],
    "search 405b on 512": ["search", "llama3.1-405b-gb300-512", "--gpus", "512", "--set", "/workload/global_batch_size=1024",
                           "--only", "recompute", "--only", "data_parallel_sharding", "--only", "offload_layers", "--format", "json"],
}
ONCE = {"ranks 4608", "search 13b on 16", "search 405b on 512"}


def cost(command):
    """CPU seconds, wall seconds, peak bytes and output; of children too."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        out = p.stdout.read()
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode != 0:
        sys.exit(f"{command}: exit code {p.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": cpu, "wall_s": time.monotonic() - begin, "peak_bytes": used.ru_maxrss * 1024, "out": out}


def best(command, times):
    return min((cost(command) for _ in range(times)), key=lambda c: c["cpu_s"])


def sweep(program, points):
    """A sweep of cheap points, killed five times at random."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "s.json"
        sizes = [f"{i} MB" for i in range(1, points // 20 + 1)]
        file.write_text(json.dumps({"schema": "nvlsim.sweep/1", "scenario": "all-reduce-gb300-rack",
                                    "axes": [{"grid": {"/workload/gpus": list(range(2, 22)), "/workload/size": sizes}}]}))
        out = pathlib.Path(folder) / "out"
        plan = cost([program, "sweep", "plan", file, "-o", out])
        chance, begin = random.Random(1), time.monotonic()
        for _ in range(5):
            with subprocess.Popen([program, "sweep", "run", out, "--jobs", "2"], stdout=subprocess.DEVNULL) as p:
                time.sleep(chance.uniform(1, 8))
                p.send_signal(signal.SIGKILL)
        last = cost([program, "sweep", "run", out, "--jobs", "2", "--format", "json"])
        wall = time.monotonic() - begin
        merge = cost([program, "sweep", "merge", out, "--format", "json"])
        records = [json.loads(l)["id"] for f in (out / "results").iterdir() for l in f.read_text().splitlines()]
        return {"points": points, "plan_cpu_s": plan["cpu_s"], "wall_s": wall, "merge_cpu_s": merge["cpu_s"], "records": len(records),
                "distinct": len(set(records)), "ok": json.loads(merge["out"])["ok"], "last": json.loads(last["out"])}


def measure(build, output):
    program, benchmarks = build / "nvlsim", build / "tests/benchmarks/benchmarks"
    out = {"machine": machine(), "commands": {}, "benchmarks": []}
    for name, words in COMMANDS.items():
        c = best([program, *words], 1 if name in ONCE else 5)
        text = c.pop("out")
        if name.startswith("search"):
            r = json.loads(text)
            c.update(candidates=r["candidates"], evaluated=r["evaluated"], found=r["found"])
        out["commands"][name] = c
        print(name, c, file=sys.stderr)
    out["sweep"] = sweep(program, 10_000)
    done = subprocess.run([benchmarks, "--benchmark_format=json", "--benchmark_min_time=0.2"], stdout=subprocess.PIPE, check=True)
    out["benchmarks"] = json.loads(done.stdout)["benchmarks"]
    output.write_text(json.dumps(out, indent=1) + "\n")


def machine():
    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"


def page(m):
    c = m["commands"]
    floor = c["start"]

    def row(name, what):
        x = c[name]
        return (f"| {what} | {1e3 * x['cpu_s']:.0f} ms | {x['peak_bytes'] / 2**20:.0f} MiB | "
                f"{max(0, x['peak_bytes'] - floor['peak_bytes']) / 2**20:.0f} MiB |")

    def rate(name, key):
        return c[name][key] / c[name]["cpu_s"]

    bench = {b["name"]: b for b in m["benchmarks"]}

    def ratio(a, b):
        return bench[a]["cpu_time"] / bench[b]["cpu_time"]

    def curve(prefix, unit):
        rows = [(int(n.split("/")[1]), b) for n, b in bench.items() if n.startswith(prefix + "/")]
        scale = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
        return "\n".join(f"| {n:,} {unit} | {b['cpu_time'] * scale[b['time_unit']]:.3g} ms |" for n, b in sorted(rows))

    s = m["sweep"]
    astra = 243
    folded, ranks = c["gpt3 1024"], c["gpt3 1024 ranks"]
    return f"""# Performance

`tests/benchmarks/performance.py` measured these figures on {m['machine']} and wrote this page from them ([measured.json](../tests/benchmarks/measured.json)). Times are CPU seconds of the whole process with its children; short ones are the best of five runs. The machine was shared, so compare lines of this page with each other and not with other machines.

## A step

| command | CPU | peak memory | above the libraries |
|---|---|---|---|
{row('start', '`nvlsim --version`: program and libraries')}
{row('training 512', '405B on 512 GPUs')}
{row('training 8192', '405B on 8,192 GPUs')}
{row('training 331200', '405B on 4,600 racks, 64 of 72 GPUs of each')}
{row('training 331200 packed', '405B on 4,600 racks, all of 331,200 GPUs')}
{row('training 331200 degraded', 'the same with a slow GPU, a lost switch tray and a pod at half speed')}
{row('experts 4608', 'Kimi K2 on 64 racks')}
{row('100 trillion', '100 trillion parameters on 240 racks')}
{row('offline rack', '1.8 million requests on a rack')}
{row('ranks 4608', '405B on 64 racks, 4,608 ranks without folding')}

331,200 GPUs cost {c['training 331200']['cpu_s'] / c['training 8192']['cpu_s']:.2f} times as much as 8,192, because equal replicas are one class ([models-and-assumptions.md](models-and-assumptions.md#degraded)).

## Against others

| what | others | nvlsim |
|---|---|---|
| GPT-3 step of 96 layers on 1,024 GPUs, one micro-batch | ASTRA-sim, analytical, congestion unaware: {astra} CPU-s, 1.47 GB | {folded['cpu_s']:.3f} CPU-s, {astra / folded['cpu_s']:,.0f} times less; {ranks['cpu_s']:.2f} with every rank simulated, {astra / ranks['cpu_s']:,.0f} times less |
| layouts of a model, a second and core | Calculon: 52 | {rate('search 13b on 16', 'candidates'):,.0f} (13B on 16 GPUs), {rate('search 405b on 512', 'candidates'):,.0f} (405B on 512) |
| all layouts of gpt3-13B on 16 GPUs | Calculon: 144,704, unfinished after 9 CPU minutes | {c['search 13b on 16']['candidates']:,} in {c['search 13b on 16']['cpu_s']:.1f} CPU-s |
| messages between 72 and between 576 ports | SimGrid used by hand: 1 | {ratio('flow_engine/72', 'flow_raw_simgrid/72'):.2f} and {ratio('flow_engine/576', 'flow_raw_simgrid/576'):.2f} times its CPU |

The figures of other programs were measured earlier on a virtual machine of two Intel Xeon cores (family 6, model 207), not in this run. ASTRA-sim parses and simulates a trace of 960 nodes for every rank; nvlsim plans the step itself. Both compute collectives in closed form. The shares of the step differ because the kernel models do.

## Search

The cost of a layout grows with its operations, which are micro-batches times model chunks. A CPU second evaluates {rate('search 405b on 512', 'evaluated'):,.0f} layouts of 405B on 512 GPUs, and {rate('search 13b on 16', 'evaluated'):,.0f} of 13B on 16. The plan and longest path of the 8,192-GPU step take {bench['step_by_micro_batches/16']['cpu_time']:.0f} {bench['step_by_micro_batches/16']['time_unit']}; through the engine the step takes {ratio('step_engine', 'step_longest_path'):.0f} times its longest path.

## Sweeps

{s['points']:,} points of a collective, killed five times at random by SIGKILL, gave {s['records']:,} records of {s['distinct']:,} points, {s['ok']:,} of them ok. They took {s['wall_s']:.0f} s of wall time with two jobs on the shared machine. Planning took {s['plan_cpu_s']:.1f} CPU-s, merging {s['merge_cpu_s']:.1f}.

## Growth

CPU time of the plan and longest path of the 405B step:

| by replicas of 64 GPUs | |
|---|---|
{curve('step_by_replicas', 'replicas')}

| by micro-batches | |
|---|---|
{curve('step_by_micro_batches', 'a replica')}

| by layers | |
|---|---|
{curve('step_by_layers', 'layers')}

CPU time of the plan and longest path of offline serving, Llama-2-70B on 72 replicas:

| by requests | |
|---|---|
{curve('offline_by_requests', 'requests')}
"""


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("verb", choices=["measure", "page"])
    arguments.add_argument("path", type=pathlib.Path)
    arguments.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("measured.json"))
    asked = arguments.parse_args()
    if asked.verb == "measure":
        measure(asked.path, asked.output)
    else:
        sys.stdout.write(page(json.loads(asked.path.read_text())))


if __name__ == "__main__":
    main()
