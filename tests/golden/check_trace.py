#!/usr/bin/env python3
"""Checks that a Chrome trace written by nvlsim is well formed.

usage: check_trace.py TRACE.json [--min-events N]

Valid JSON without NaN; metadata before everything else of its process, names and sort indices given once and in order;
times not negative, with three decimals; slices of a thread nest; flows come in pairs of one s and one f, forward in time,
each inside a slice; counters are numbers in order of time; requests and their phases end after they begin, and phases
follow each other inside their request. Exits 1 with a line for each thing wrong.
"""
import bisect
import gzip
import json
import re
import sys
from collections import defaultdict


def nanoseconds(text):
    whole, dot, decimals = text.partition(".")
    if not dot or len(decimals) != 3 or not (whole + decimals).isdigit():
        raise ValueError(f"{text} is not microseconds with three decimals")
    return int(whole + decimals)


def refuse(text):
    raise ValueError(f"{text} is no JSON")


def load(path):
    # ts and dur are read from their text, so that nothing is lost in a double.
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f, parse_float=lambda t: t, parse_constant=refuse)


def check_metadata(events, wrong):
    begun, named, orders = set(), set(), defaultdict(list)
    for e in events:
        if e["ph"] != "M":
            begun.add(e["pid"])
            continue
        if e["pid"] in begun:
            wrong(f"metadata after events of process {e['pid']}")
        key = (e["name"], e["pid"], e.get("tid"))
        if key in named:
            wrong(f"given twice: {key}")
        named.add(key)
        if e["name"].endswith("sort_index"):
            orders[(e["name"], e["pid"] if "tid" in e else None)].append(e["args"]["sort_index"])
    for key, order in orders.items():
        if order != sorted(set(order)):
            wrong(f"{key}: sort indices are not rising: {order}")
    for e in events:
        if e["ph"] in "Xsf" and ("thread_name", e["pid"], e["tid"]) not in named:
            wrong(f"thread {e['pid']}/{e['tid']} has no name")
        if ("process_name", e["pid"], None) not in named:
            wrong(f"process {e['pid']} has no name")


def check_nesting(slices, wrong):
    for thread, spans in slices.items():
        open_ends = []
        for begin, end, name in sorted(spans, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1][0] <= begin:
                open_ends.pop()
            if open_ends and end > open_ends[-1][0]:
                wrong(f"thread {thread}: {name} [{begin}, {end}] ns leaves {open_ends[-1][1]}")
            open_ends.append((end, name))


def check_flows(flows, slices, wrong):
    starts = {}
    for thread, spans in slices.items():
        tops, free = [], -1  # operations; what is inside them cannot hold more
        for begin, end, _ in sorted(spans, key=lambda s: (s[0], -s[1])):
            if begin >= free:
                tops.append((begin, end))
                free = end
        starts[thread] = tops
    for key, ends in flows.items():
        if sorted(e[0] for e in ends) != ["f", "s"]:
            wrong(f"flow {key}: {len(ends)} ends")
            continue
        (_, _, sent, _), (_, _, got, _) = sorted(ends, key=lambda e: e[0] == "f")
        if got < sent:
            wrong(f"flow {key}: arrives before it is sent")
        for phase, thread, ts, bind in ends:
            tops = starts.get(thread, [])
            last = bisect.bisect_right(tops, (ts, float("inf"))) - 1
            if last < 0 or ts >= tops[last][1]:
                wrong(f"flow {key}: its {phase} at {ts} ns is in no slice of {thread}")
            if phase == "f" and bind != "e":
                wrong(f"flow {key}: f without bp e")


def check_requests(requests, wrong):
    for key, ends in requests.items():
        names = [name for _, _, name in ends]
        if len(ends) % 2 or names[0] != "request" or names[-1] != "request":
            wrong(f"request {key}: {names}")
            continue
        times = [ts for _, ts, _ in ends]
        if times != sorted(times):
            wrong(f"request {key}: its phases are not in order of time")
        if [p for p, _, _ in ends] != ["b"] + ["b", "e"] * (len(ends) // 2 - 1) + ["e"] or names[1:-1:2] != names[2:-1:2]:
            wrong(f"request {key}: its phases are not one after the other")


def main():
    path = sys.argv[1]
    least = int(sys.argv[3]) if sys.argv[2:3] == ["--min-events"] else 1
    problems = []
    wrong = problems.append
    try:
        trace = load(path)
    except ValueError as e:
        sys.exit(f"{path}: {e}")
    events = trace["traceEvents"]
    if trace["displayTimeUnit"] != "ns" or trace["metadata"].get("tool") != "nvlsim":
        wrong("head is not that of nvlsim")
    if len(events) < least:
        wrong(f"{len(events)} events, expected at least {least}")
    slices, flows, counters, requests = defaultdict(list), defaultdict(list), defaultdict(lambda: -1), defaultdict(list)
    for e in events:
        try:
            ts = nanoseconds(e["ts"]) if e["ph"] != "M" else 0
            thread = (e["pid"], e.get("tid"))
            if e["ph"] == "X":
                slices[thread].append((ts, ts + nanoseconds(e["dur"]), e["name"]))
            elif e["ph"] in "sf":
                flows[(e["cat"], e["name"], e["id"])].append((e["ph"], thread, ts, e.get("bp")))
            elif e["ph"] in "be":
                requests[(e["pid"], e["cat"], e["id"])].append((e["ph"], ts, e["name"]))
            elif e["ph"] == "C":
                if ts < counters[(e["pid"], e["name"])]:
                    wrong(f"counter {e['name']} goes back in time")
                counters[(e["pid"], e["name"])] = ts
                for v in e["args"].values():
                    if re.fullmatch(r"-?[0-9][0-9.e+-]*", str(v)) is None:
                        wrong(f"counter {e['name']}: {v}")
            elif e["ph"] != "M":
                wrong(f"unexpected phase {e['ph']}")
        except (KeyError, ValueError, AttributeError) as problem:
            wrong(f"{problem!r} in {e}")
    check_metadata(events, wrong)
    check_nesting(slices, wrong)
    check_flows(flows, slices, wrong)
    check_requests(requests, wrong)
    for p in problems[:20]:
        print(f"{path}: {p}")
    if len(problems) > 20:
        print(f"and {len(problems) - 20} more")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
