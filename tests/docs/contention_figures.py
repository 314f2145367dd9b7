#!/usr/bin/env python3
"""Runs the contention experiments of docs/network-fidelities.md, and compares their figures with those of the page.

Usage: contention_figures.py NVLSIM SOURCE_DIR [--update] [EXPERIMENT...]

A figure of the page must be that of this build to 1 %, or to one in its last digit, so that a fit that moves times a little
breaks nothing; where the difference of two figures counts, it must be that of this build to a fifth, or to two in its last
digit. --update writes the figures of this build into the page; a row that is not there fails all the same. tests/oracles/contention_oracle_test.cpp has the
same experiments by hand in SimGrid.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


class Page:
    def __init__(self, path, update):
        self.path, self.update = path, update
        self.text, self.wrong, self.lost, self.compared = path.read_text(), [], [], 0

    def compare(self, pattern, values, skip=0, differ=False):
        """The numbers of the only text that matches, from the one after `skip`, are these. `differ`: the difference of the
        first two counts, too."""
        found = re.findall(pattern, self.text)
        if len(found) != 1:
            self.lost.append(f"{len(found)} places for {pattern}")
            return
        line, at, i = found[0], 0, 0
        out, read = "", []
        for number in NUMBER.finditer(line):
            i += 1
            if i <= skip or i - skip > len(values):
                continue
            shown, value = number.group(), values[i - skip - 1]
            digits = len(shown.partition(".")[2])
            self.compared += 1
            read.append(float(shown.replace(",", "")))
            if abs(float(shown.replace(",", "")) - value) > max(abs(value) * 0.01, 1.01 * 10.0**-digits):
                self.wrong.append(f"{shown} is {value:.6g} now: {line}")
            out += line[at:number.start()] + (f"{value:,.{digits}f}" if "," in shown else f"{value:.{digits}f}")
            at = number.end()
        if differ and len(read) > 1:
            by = values[1] - values[0]
            if abs(read[1] - read[0] - by) > max(abs(by) * 0.2, 2.01 * 10.0**-digits):
                self.wrong.append(f"{read[0]} and {read[1]} differ by {by:.6g} now: {line}")
        if i - skip < len(values):
            self.lost.append(f"fewer than {len(values)} figures: {line}")
        if self.update:
            self.text = self.text.replace(line, out + line[at:])


class Runs:
    def __init__(self, nvlsim, source):
        self.nvlsim, self.source = nvlsim, source

    def result(self, scenario, sets, fidelity=None):
        command = [self.nvlsim, "run", scenario, "--format", "json"]
        for pointer, value in sets.items():
            command += ["--set", f"{pointer}={value}"]
        if fidelity:
            command += ["--fidelity", fidelity]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NVLSIM_DATA": str(self.source)})
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return json.loads(done.stdout)

    def both(self, sets):
        return [self.result("llama3.1-405b-gb300-8192", sets, f)["metrics"]["step_time_s"] for f in ("closed", "flow")]

    def jobs(self, scenario, sets):
        """Time of each job and its time alone."""
        rows = self.result(scenario, sets)["breakdown"]["jobs"]
        return [row["time_s"] for row in rows], [row["alone_s"] for row in rows]


FABRIC = "/platform/fabric/"
BY_8 = {"/platform/racks": 1024, "/placement/gpus_per_rack": 8}


def fabric(runs, page):
    cut = {n: runs.both(BY_8 | {FABRIC + "oversubscription": n}) for n in (1, 2, 4, 8)}
    page.compare(r"\| non-blocking \|.*", cut[1], differ=True)
    for n in (2, 4, 8):
        page.compare(rf"\| up-links cut to 1/{n}.*", cut[n], 3 if n == 2 else 2)
    by_nic = {n: runs.both(BY_8 | {FABRIC + "nic_bandwidth": f"{800 // n} Gb/s"}) for n in (2, 8)}
    for n, times in by_nic.items():
        for one, other in zip(cut[n], times):
            if abs(one - other) > 1e-9 * one:
                page.lost.append(f"up-links cut to 1/{n} give {one}, NICs {other}")
    page.compare(r"\| NICs cut to .*", [t for f in (0, 1) for t in (cut[2][f], cut[4][f], cut[8][f])], 7)


def pods(runs, page):
    def on(gpus, ratio=7, leaves=1):
        return {FABRIC + "pod_gpus": gpus, FABRIC + "pod_oversubscription": ratio, FABRIC + "oversubscription": leaves}

    page.compare(r"\| no pods \|.*", runs.both({}), differ=True)
    page.compare(r"\| pods of 3,072 GPUs \|.*", runs.both(on(3072)), 1, differ=True)
    page.compare(r"\| pods of 1,152 GPUs \|.*", runs.both(on(1152)), 1, differ=True)
    for leaves, ratio in ((2, 1), (1, 8), (2, 2), (2, 8), (2, 32)):
        page.compare(rf"\| leaves {leaves} to 1, pods {ratio} to 1 \|.*", runs.both(BY_8 | on(1152, ratio, leaves)), 4)


def jobs(runs, page):
    name, over = "two-llama3.1-405b-b300", FABRIC + "oversubscription"
    blocks = {"/jobs/0/placement/racks": "0-63", "/jobs/1/placement/racks": "64-127"}
    for n in (1, 2, 4, 8):
        beside, alone = runs.jobs(name, {over: n})
        in_blocks, in_blocks_alone = runs.jobs(name, {over: n} | blocks)
        if max(in_blocks) > max(in_blocks_alone) * (1 + 1e-6):
            page.lost.append(f"{n} to 1 in blocks: {in_blocks}, alone {in_blocks_alone}")
        shown = sorted({f"{t:.3f}": t for t in alone}.values(), reverse=True)
        page.compare(rf"\| {n} to 1 \| .*\|.*\|.*\|.*\|", [*shown, max(beside), (max(beside) / alone[0] - 1) * 100, max(in_blocks)], 2)
    own = [[s + 16 * leaf for leaf in range(8) for s in range(16) if (s < (9 if leaf % 2 == 0 else 7)) == mine] for mine in (True, False)]
    beside, alone = runs.jobs(name, {f"/jobs/{j}/placement/racks": ",".join(map(str, own[j])) for j in (0, 1)})
    page.compare(r"a step takes [\d.]+ s instead of [\d.]+ s \([\d.]+ %\)", [max(beside), alone[0], (max(beside) / alone[0] - 1) * 100])


def beside(runs, page):
    checkpoint, alone = runs.jobs("llama3.1-405b-checkpoint-b300", {})
    page.compare(r"The step takes [\d.]+ s instead of [\d.]+ s \([\d.]+ %\): .*meets the gathering",
                 [checkpoint[0], alone[0], (checkpoint[0] / alone[0] - 1) * 100])
    incast = {"/model": "llama3-8b",
              "/workload/load": '{"kind": "closed_loop", "requests": 63, "concurrency": 63, "input": {"mean": 8000}, "output": {"mean": 64}}',
              "/workload/layout": '{"prefill": {"workers": 63}, "decode": {"workers": 1}}'}
    first = {f: runs.result("deepseek-r1-gb300-prefill-decode", incast, f)["metrics"]["ttft_s"]["max"] * 1e3 for f in ("flow", "closed")}
    page.compare(r"after [\d.]+ ms in `flow` and after [\d.]+ ms in `closed`", [first["flow"], first["closed"]])


def serving(runs, page):
    training, chat = sorted(runs.result("llama3.1-405b-beside-chat-b300", {})["breakdown"]["jobs"], key=lambda j: j["kind"] != "training")
    page.compare(r"A step takes [\d.]+ s instead of [\d.]+ s \([\d.]+ %\), and [\d.]+ s of exposed communication instead of [\d.]+\d",
                 [training["time_s"], training["alone_s"], (training["time_s"] / training["alone_s"] - 1) * 100,
                  training["exposed_communication_s"], training["exposed_communication_alone_s"]])


EXPERIMENTS = {"fabric": fabric, "pods": pods, "jobs": jobs, "beside": beside, "serving": serving}


def main(nvlsim, source, *arguments):
    names = [a for a in arguments if a != "--update"]
    page = Page(Path(source) / "docs" / "network-fidelities.md", "--update" in arguments)
    for name in names or EXPERIMENTS:
        EXPERIMENTS[name](Runs(nvlsim, source), page)
    if page.update:
        page.path.write_text(page.text)
    print(f"{page.compared} figures compared")
    for line in page.lost + page.wrong:
        print(line)
    return int(bool(page.lost) or bool(page.wrong) and not page.update)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
