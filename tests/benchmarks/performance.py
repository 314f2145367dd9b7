#!/usr/bin/env python3
"""Measures nvlsim and writes docs/performance.md.

performance.py measure BUILD_DIR [--peers PEERS.json] [--baseline NVLSIM] -o measured.json    some minutes on an idle machine
performance.py page measured.json > docs/performance.md

PEERS.json names other simulators that are installed here, and what they are compared with. They run in turns with
nvlsim, and the page has both columns of that run:
[{"name": "Calculon caa4b11", "work": "layouts of gpt3-13B on 16 GPUs, a second", "command": ["bin/calculon", ...],
  "folder": "where the command runs", "count": 2736, "against": "search 13b on 16", "times": 3}]
`against` is a name of COMMANDS. With `count`, the layouts that the peer's command tries, rates are compared with those
of a search; without it CPU seconds. Nothing is fetched. The baseline, an earlier nvlsim, runs in turns with this one
what takes it seconds.
"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

SERVING_TABLE = str(pathlib.Path(__file__).resolve().parents[1] / "measurements/inference.csv")
MODEL_13B = ["--set", "/model=gpt3-13b", "--set", "/workload/seq_length=2048", "--set", "/workload/precision=bf16",
             "--set", "/workload/global_batch_size=64"]
# The shape that ASTRA-sim was timed on: GPT-3, TP 8 x DP 128, one micro-batch, 100 GB/s a NIC.
GPT3_1024 = ["run", "llama3.1-405b-gb300-512", "--set", "/model=gpt3-175b", "--set", "/platform/racks=16",
             "--set", "/workload/seq_length=2048", "--set", "/workload/precision=bf16", "--set", "/workload/global_batch_size=128",
             "--set", "/workload/tp=8", "--set", "/workload/pp=1", "--set", "/workload/vp=1", "--set", "/workload/cp=1",
             "--set", "/workload/dp=128", "--set", "/workload/sequence_parallel=false",
             "--set", "/workload/data_parallel_sharding=replicated", "--set", "/workload/schedule=1f1b",
             "--set", "/platform/gpu/hbm_nominal=500 GB", "--set", "/platform/gpu/hbm_usable=500 GB"]  # whole optimizer states on every GPU, as there
RANKS_4608 = ["run", "llama3.1-405b-gb300-8192", "--set", "/platform/racks=64", "--set", "/workload/dp=72",
              "--set", "/workload/global_batch_size=1152", "--set", "/placement/gpus_per_rack=72"]
RANKS_1152 = ["run", "llama3.1-405b-gb300-8192", "--set", "/platform/racks=16", "--set", "/workload/dp=18",
              "--set", "/workload/global_batch_size=288", "--set", "/placement/gpus_per_rack=72"]
COMMANDS = {
    "start": ["--version"],
    "kernel": ["kernel", "gemm", "--platform", "gb300-nvl72", "--m", "4096", "--n", "4096", "--k", "4096", "--precision", "fp8"],
    "training 512": ["run", "llama3.1-405b-gb300-512"],
    "training 8192": ["run", "llama3.1-405b-gb300-8192"],
    "training 331200": ["run", "llama3.1-405b-gb300-331200"],
    "training 331200 packed": ["run", "llama3.1-405b-gb300-331200-packed"],
    "training 331200 degraded": ["run", "llama3.1-405b-gb300-331200-degraded"],
    "experts 4608": ["run", "kimi-k2-gb300-4608"],
    "100 trillion": ["run", "moe-100t-gb300-15360"],
    "offline rack": ["run", "llama2-70b-offline-gb300-rack"],
    "agents": ["run", "llama3.3-70b-agents-gb300-vm"],
    "highest load": ["run", "deepseek-r1-gb300-rack", "--highest-load"],
    "ranks 1152": [*RANKS_1152, "--no-fold"],
    "ranks 4608": [*RANKS_4608, "--no-fold"],
    "gpt3 1024": GPT3_1024,
    "gpt3 1024 ranks": [*GPT3_1024, "--no-fold"],
    "search 13b on 16": ["search", "llama3.1-405b-gb300-rack", "--gpus", "16", *MODEL_13B, "--format", "json"],
    "search 405b on 512": ["search", "llama3.1-405b-gb300-512", "--gpus", "512", "--set", "/workload/global_batch_size=1024",
                           "--only", "recompute", "--only", "data_parallel_sharding", "--only", "offload_layers", "--format", "json"],
    "search deepseek-v3 on 512": ["search", "deepseek-v3-gb300-256", "--gpus", "512", "--format", "json"],
    "search 405b on 9216": ["search", "llama3.1-405b-gb300-rack", "--gpus", "9216", "--format", "json"],
    "search llama2-70b offline": ["search", "llama2-70b-offline-gb300-rack", "--gpus", "8", "--set", "/workload/load/requests=20000",
                                  "--format", "json"],
    "search llama2-70b throughput": ["search", "llama2-70b-offline-gb300-rack", "--gpus", "8", "--set", "/workload/load/requests=20000",
                                     "--pareto", "output_tokens_per_s_per_gpu", "--format", "json"],
    "search deepseek-r1 on 72": ["search", "deepseek-r1-gb300-rack", "--gpus", "72", "--format", "json"],
    "search gpt-oss on 8": ["search", "gpt-oss-120b-gb300-rack", "--gpus", "8", "--set", "/workload/load/requests_per_s=44", "--format", "json"],
    "sensitivity": ["explain", "deepseek-r1-gb300-rack", "--sensitivity", "--format", "json"],
    "plan serving": ["plan", "serving", "deepseek-r1", "--platform", "gb300-nvl72", "--gpus", "72", "--input", "1024",
                     "--output-tokens", "1024", "--ttft", "2 s", "--tpot", "33.3 ms", "--format", "json"],
    "serving table": ["validate", SERVING_TABLE, "--format", "json"],
}
BASELINE = ("start", "kernel", "training 512", "training 8192", "training 331200", "experts 4608", "offline rack", "agents",
            "serving table")  # an earlier program's searches take hours
ONCE = {"ranks 1152", "ranks 4608", "serving table", "sensitivity", "plan serving", *(name for name in COMMANDS if name.startswith("search"))}


def cost(command, folder=None):
    """CPU seconds, wall seconds, peak bytes and output; of children too."""
    with tempfile.NamedTemporaryFile("r") as used:
        # A child of this program would begin with this program's peak.
        timed = ["/usr/bin/time", "-q", "-o", used.name, "-f", "%M", *map(str, command)]
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(timed, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        wall = time.monotonic() - begin
        after, peak = resource.getrusage(resource.RUSAGE_CHILDREN), int(used.read())
    if done.returncode != 0:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stderr.decode()[-500:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": cpu, "wall_s": wall, "peak_bytes": peak * 1024, "out": done.stdout}


def best(command, times):
    return min((cost(command) for _ in range(times)), key=lambda c: c["cpu_s"])


def in_turns(program, baseline, name):
    """A command by this program and by an earlier one; the CPU time of the earlier one is absent if it cannot run it."""
    times = 1 if name in ONCE else 5
    if not baseline or name not in BASELINE:
        return best([program, *COMMANDS[name]], times)
    ours, theirs = [], []
    for _ in range(max(2, times)):
        ours.append(cost([program, *COMMANDS[name]]))
        try:
            theirs.append(cost([baseline, *COMMANDS[name]])["cpu_s"])
        except RuntimeError:
            pass
    out = min(ours, key=lambda c: c["cpu_s"])
    return {**out, "baseline_cpu_s": min(theirs)} if theirs else out


def stopped_search(program, name, seconds):
    """The best of a search that is interrupted."""
    with subprocess.Popen([program, *COMMANDS[name]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        time.sleep(seconds)
        p.send_signal(signal.SIGINT)
        r = json.loads(p.stdout.read())
    return {"seconds": seconds, "evaluated": r["evaluated"], "step_time_s": r["best"][0]["metrics"]["step_time_s"]}


def plan_and_run(program, scenario, axis, values, run):
    """CPU seconds of planning a sweep, and of running a point of it."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = pathlib.Path(folder) / "s.json", pathlib.Path(folder) / "out"
        file.write_text(json.dumps({"schema": "nvlsim.sweep/1", "scenario": scenario, "axes": [{"grid": {axis: values}}]}))
        planned = cost([program, "sweep", "plan", file, "-o", out])
        ran = cost([program, "sweep", "run", out]) if run else None
        return {"points": len(values), "plan_cpu_s": planned["cpu_s"], **({"point_cpu_s": ran["cpu_s"] / len(values)} if ran else {})}


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


def against(program, peer):
    """A peer and nvlsim in turns: the least CPU time of each."""
    pairs = [(cost(peer["command"], peer.get("folder")), cost([program, *COMMANDS[peer["against"]]])) for _ in range(peer.get("times", 3))]
    theirs, ours = (min(side, key=lambda c: c["cpu_s"]) for side in zip(*pairs))
    out = {"name": peer["name"], "work": peer["work"], "times": len(pairs), "theirs_cpu_s": theirs["cpu_s"],
           "theirs_peak_bytes": theirs["peak_bytes"], "cpu_s": ours["cpu_s"], "peak_bytes": ours["peak_bytes"]}
    if "count" in peer:
        out.update(theirs_count=peer["count"], count=json.loads(ours["out"])["candidates"])
    return out


def measure(build, output, peers, only, baseline):
    """With `only`, measures commands that match it again, and keeps what the output has of the others."""
    program, benchmarks = build / "nvlsim", build / "tests/benchmarks/benchmarks"
    out = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "commands": {}, "peers": [], "benchmarks": []}
    if only:
        out = json.loads(output.read_text())
    for name in COMMANDS:
        if only and not re.search(only, name):
            continue
        c = in_turns(program, baseline, name)
        text = c.pop("out")
        if name.startswith("search"):
            r = json.loads(text)
            beaten = sum(p["count"] for p in r["pruned"] if p["reason"].startswith("cannot be among the best"))
            c.update(candidates=r["candidates"], evaluated=r["evaluated"], found=r["found"], beaten=beaten)
            if "step_time_s" in r["best"][0]["metrics"]:
                c["step_time_s"] = r["best"][0]["metrics"]["step_time_s"]
        out["commands"][name] = c
        print(name, c, file=sys.stderr)
        if only:
            c["again"] = time.strftime("%Y-%m-%d")
            output.write_text(json.dumps(out, indent=1) + "\n")
    if only:
        return
    for peer in peers:
        out["peers"].append(against(program, peer))
        print(out["peers"][-1], file=sys.stderr)
    out["stopped"] = stopped_search(program, "search deepseek-v3 on 512", 10)
    out["sweep"] = sweep(program, 10_000)
    out["large sweep"] = plan_and_run(program, "llama3.1-405b-gb300-512", "/workload/seq_length", [8 * i for i in range(1, 100_001)], False)
    out["405b sweep"] = plan_and_run(program, "llama3.1-405b-gb300-512", "/workload/seq_length", [8 * i for i in range(512, 612)], True)
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
        before = f"{x['cpu_s'] / x['baseline_cpu_s']:.2f}" if "baseline_cpu_s" in x else ""
        return (f"| {what} | {1e3 * x['cpu_s']:.0f} ms | {before} | {x['peak_bytes'] / 2**20:.0f} MiB | "
                f"{max(0, x['peak_bytes'] - floor['peak_bytes']) / 2**20:.0f} MiB |")

    bench = {b["name"]: b for b in m["benchmarks"]}

    def ratio(a, b):
        return bench[a]["cpu_time"] / bench[b]["cpu_time"]

    def curve(prefix, unit):
        rows = [(int(n.split("/")[1]), b) for n, b in bench.items() if n.startswith(prefix + "/")]
        scale = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
        return "\n".join(f"| {n:,} {unit} | {b['cpu_time'] * scale[b['time_unit']]:.3g} ms |" for n, b in sorted(rows))

    def peer_row(p):
        if "count" in p:
            theirs, ours = p["theirs_count"] / p["theirs_cpu_s"], p["count"] / p["cpu_s"]
            return f"| {p['work']} | {p['name']}: {theirs:,.3g} | {ours:,.3g} | {ours / theirs:,.3g} |"
        return (f"| {p['work']} | {p['name']}: {p['theirs_cpu_s']:,.3g} CPU-s, {p['theirs_peak_bytes'] / 2**20:,.0f} MiB | "
                f"{p['cpu_s']:,.3g} CPU-s, {p['peak_bytes'] / 2**20:,.0f} MiB | {p['theirs_cpu_s'] / p['cpu_s']:,.3g} |")

    def search_row(name, what):
        x = c[name]
        return f"| {what} | {x['candidates']:,} | {x['evaluated']:,} | {x['cpu_s']:.1f} s | {x['wall_s']:.1f} s |"

    def again(x):
        return f" ({x['again']}, busy)" if "again" in x else ""

    def serving_row(name, what):
        x = c[name]
        return (f"| {what}{again(x)} | {x['candidates']:,} | {x['evaluated']:,} | {(x['found'] + x['beaten']) / x['cpu_s']:.0f} | {x['cpu_s']:.1f} s | "
                f"{x['wall_s']:.1f} s | {x['peak_bytes'] / 2**20:.0f} MiB |")

    def unfolded():
        few, many = (f"sleepers_raw_simgrid/{ranks}/iterations:1" for ranks in (1152, 4608))
        if many not in bench:
            return ""
        return (f"SimGrid by itself, with as many actors as a step without folding has, three a rank, that only sleep "
                f"(`sleepers_raw_simgrid`): {bench[few]['cpu_time']:.2g} s for 1,152 ranks, {bench[many]['cpu_time']:.2g} s for 4,608, "
                f"{ratio(many, few) / 4:.1f} times linear. The step of 4,608 ranks takes "
                f"{c['ranks 4608']['cpu_s'] / c['ranks 1152']['cpu_s'] / 4:.1f} times as much a rank as that of 1,152.")

    s = m["sweep"]
    peers = "\n".join(map(peer_row, m["peers"]))
    return f"""# Performance

`tests/benchmarks/performance.py` measured these figures on {m['machine']} and wrote this page from them ([measured.json](../tests/benchmarks/measured.json)). Times are CPU seconds of the whole process with its children; short ones are the best of five runs. The machine was shared, so compare lines of this page with each other and not with other machines. Lines with a date were measured again on that day, while other programs kept both cores busy, which costs up to twice as much CPU time.

## A step

| command | CPU | of the baseline's | peak memory | above the program |
|---|---|---|---|---|
{row('start', '`nvlsim --version`: the program without the engine')}
{row('kernel', '`nvlsim kernel`: a GEMM')}
{row('training 512', '405B on 512 GPUs')}
{row('training 8192', '405B on 8,192 GPUs')}
{row('training 331200', '405B on 4,600 racks, 64 of 72 GPUs of each')}
{row('training 331200 packed', '405B on 4,600 racks, all of 331,200 GPUs')}
{row('training 331200 degraded', 'the same with a slow GPU, a lost switch tray and a pod at half speed')}
{row('experts 4608', 'Kimi K2 on 64 racks')}
{row('100 trillion', '100 trillion parameters on 240 racks')}
{row('offline rack', '1.8 million requests on a rack')}
{row('agents', 'agents of Llama 3.3 70B, prefixes cached')}
{row('highest load', 'the highest load of DeepSeek-R1 on a rack')}
{row('gpt3 1024 ranks', 'GPT-3 on 1,024 GPUs, every rank simulated')}
{row('ranks 4608', '405B on 64 racks, 4,608 ranks without folding')}

The baseline is the commit before the work on speed began, measured in turns with this one.

331,200 GPUs cost {c['training 331200']['cpu_s'] / c['training 8192']['cpu_s']:.2f} times as much as 8,192, because equal replicas are one class ([models-and-assumptions.md](models-and-assumptions.md#degraded)).

## Against others

In turns with nvlsim, in one run on {m['date']}; the last column is how many times less CPU nvlsim takes for its work. `performance.py measure --peers` runs simulators that are installed on the machine.

| work | others | nvlsim | ratio |
|---|---|---|---|
| messages between 72 ports | SimGrid by hand: {bench['flow_raw_simgrid/72']['cpu_time']:.3g} {bench['flow_raw_simgrid/72']['time_unit']} | {bench['flow_engine/72']['cpu_time']:.3g} {bench['flow_engine/72']['time_unit']} | {ratio('flow_raw_simgrid/72', 'flow_engine/72'):.2f} |
| messages between 576 ports | SimGrid by hand: {bench['flow_raw_simgrid/576']['cpu_time']:.3g} {bench['flow_raw_simgrid/576']['time_unit']} | {bench['flow_engine/576']['cpu_time']:.3g} {bench['flow_engine/576']['time_unit']} | {ratio('flow_raw_simgrid/576', 'flow_engine/576'):.2f} |
| messages between 4,608 ports | SimGrid by hand: {bench['flow_raw_simgrid/4608']['cpu_time']:.3g} {bench['flow_raw_simgrid/4608']['time_unit']} | {bench['flow_engine/4608']['cpu_time']:.3g} {bench['flow_engine/4608']['time_unit']} | {ratio('flow_raw_simgrid/4608', 'flow_engine/4608'):.2f} |
{peers}

{unfolded()}

## Searches and plans

A search counts all layouts, leaves out those that break a rule of divisibility together, and evaluates those that lower bounds do not rule out.

| search | layouts | evaluated | CPU | wall |
|---|---|---|---|---|
{search_row('search deepseek-v3 on 512', 'DeepSeek-V3 on 512 GPUs, everything free')}
{search_row('search 405b on 9216', '405B on 9,216 GPUs, everything free')}
{search_row('search 405b on 512', '405B on 512 GPUs, memory choices fixed')}
{search_row('search 13b on 16', '13B on 16 GPUs')}

Interrupted after {m['stopped']['seconds']} s of wall time, the first of these has tried {m['stopped']['evaluated']:,} layouts, and its best takes {100 * (m['stopped']['step_time_s'] / c['search deepseek-v3 on 512']['step_time_s'] - 1):.1f} % longer than the best of all.

A serving search plays each layout that it evaluates. Layouts a second are those that can run, found or shown to be worse, by CPU seconds.

| search of a server | layouts | evaluated | a second and core | CPU | wall | peak memory |
|---|---|---|---|---|---|---|
{serving_row('search llama2-70b offline', 'Llama-2-70B on 8 GPUs, 20,000 requests offline')}
{serving_row('search llama2-70b throughput', 'the same for throughput alone (`--pareto output_tokens_per_s_per_gpu`)')}
{serving_row('search deepseek-r1 on 72', 'DeepSeek-R1 on a rack, 40 requests/s')}
{serving_row('search gpt-oss on 8', 'gpt-oss-120b on 8 GPUs, 44 requests/s')}

| command | CPU | wall |
|---|---|---|
| `plan serving` of DeepSeek-R1 on a GB300 rack{again(c['plan serving'])} | {c['plan serving']['cpu_s']:.1f} s | {c['plan serving']['wall_s']:.1f} s |
| `explain --sensitivity` of DeepSeek-R1 on a rack{again(c['sensitivity'])} | {c['sensitivity']['cpu_s']:.1f} s | {c['sensitivity']['wall_s']:.1f} s |
| `validate` of the serving table{again(c['serving table'])} | {c['serving table']['cpu_s']:.1f} s | {c['serving table']['wall_s']:.1f} s |

The plan and longest path of the 8,192-GPU step take {bench['step_by_micro_batches/16']['cpu_time']:.0f} {bench['step_by_micro_batches/16']['time_unit']}; through the engine the step takes {ratio('step_engine', 'step_longest_path'):.0f} times its longest path.

## Sweeps

{s['points']:,} points of a collective, killed five times at random by SIGKILL, gave {s['records']:,} records of {s['distinct']:,} points, {s['ok']:,} of them ok. They took {s['wall_s']:.0f} s of wall time with two jobs on the shared machine. Planning took {s['plan_cpu_s']:.1f} CPU-s, merging {s['merge_cpu_s']:.1f}. Planning {m['large sweep']['points']:,} points of a 405B step took {m['large sweep']['plan_cpu_s']:.1f} CPU-s; running one of them takes {1e3 * m['405b sweep']['point_cpu_s']:.0f} CPU-ms.

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
    arguments.add_argument("--peers", type=pathlib.Path)
    arguments.add_argument("--baseline", type=pathlib.Path, help="an earlier nvlsim to measure in turns with this one")
    arguments.add_argument("--only", metavar="REGEX", help="measure these commands again and keep the rest of the output")
    asked = arguments.parse_args()
    if asked.verb == "measure":
        measure(asked.path, asked.output, json.loads(asked.peers.read_text()) if asked.peers else [], asked.only, asked.baseline)
    else:
        sys.stdout.write(page(json.loads(asked.path.read_text())))


if __name__ == "__main__":
    main()
