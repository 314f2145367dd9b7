"""Files that nvlsim wrote, as pandas DataFrames: results, sweeps, traces, explanations and validation records.

Needs pandas only. Units are the endings of the names, all plain SI.
"""
import gzip
import json
from pathlib import Path

import pandas as pd


def _flat(value, name=""):
    """(name, scalar) of everything in nested objects, names joined by dots."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value


def _documents(path):
    """Every JSON document of a file, of a file of JSON lines, or of the *.json of a folder that are no traces."""
    path = Path(path)
    if path.is_dir():
        for file in sorted(path.glob("*.json")):
            if not file.name.endswith(".trace.json"):
                yield from _documents(file)
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        yield from (json.loads(line) for line in text.splitlines() if line)
        return
    root = json.loads(text)
    yield from root if isinstance(root, list) else [root]


def load_results(*paths):
    """A row for each result of files and folders: name, status, gpu, model, stack, metrics ("ttft_s.p99" inside a
    distribution) and the workload's settings ("workload.tp")."""
    rows = []
    for path in paths:
        for r in _documents(path):
            if not str(r.get("schema", "")).startswith("nvlsim.result/"):
                continue
            inputs = r.get("inputs") or {}
            scenario = inputs.get("scenario") or {}
            row = {"name": r["name"], "status": r["status"], "reasons": " ".join(r["reasons"]),
                   "gpu": ((inputs.get("platform") or {}).get("gpu") or {}).get("name"), "model": scenario.get("model"),
                   "stack": (inputs.get("stack") or {}).get("name"), "digest": inputs.get("digest")}
            row.update(_flat(r["metrics"]))
            row.update(_flat(scenario.get("workload") or {}, "workload"))
            rows.append(row)
    return pd.DataFrame(rows)


def load_breakdown(*paths):
    """Seconds of the mean GPU by kind of work: name, part, seconds."""
    rows = []
    for path in paths:
        for r in _documents(path):
            for key, seconds in ((r.get("breakdown") or {}).get("mean_over_gpus") or {}).items():
                if key not in ("step_time_s", "makespan_s"):
                    rows.append({"name": r["name"], "part": key.removesuffix("_s"), "seconds": seconds})
    return pd.DataFrame(rows, columns=["name", "part", "seconds"])


def load_sweep(path):
    """A row for each point of a merged sweep: index, id, status, the settings by pointer ("/workload/tp"), metrics and
    reasons. `path` is its folder, results.csv or results.jsonl."""
    path = Path(path)
    if path.is_dir():
        path = path / "results.csv"
    if path.suffix == ".csv":
        return pd.read_csv(path)
    return pd.DataFrame([{"index": p["index"], "id": p["id"], "status": p["status"], **p["set"], **dict(_flat(p["metrics"])),
                          "reasons": "; ".join(p["reasons"])} for p in _documents(path)])


def load_trace(path):
    """Slices of a Chrome trace, also of a gzipped one: process, thread, name, category, begin_s, duration_s and depth (0
    for operations, 1 for what is inside one); those that take no time are left out. `.attrs["metadata"]` holds the metadata
    of the trace."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    names, rows = {}, []
    for e in trace["traceEvents"]:
        if e["ph"] == "M" and e["name"] in ("process_name", "thread_name"):
            names[e["name"], e["pid"], e.get("tid")] = e["args"]["name"]
        elif e["ph"] == "X" and e["dur"] > 0:
            rows.append((e["pid"], e["tid"], e["name"], e.get("cat"), e["ts"] / 1e6, e["dur"] / 1e6))
    frame = pd.DataFrame(rows, columns=["pid", "tid", "name", "category", "begin_s", "duration_s"])
    frame.insert(0, "process", [names.get(("process_name", p, None), str(p)) for p in frame.pid])
    frame.insert(1, "thread", [names.get(("thread_name", p, t), str(t)) for p, t in zip(frame.pid, frame.tid)])
    frame = frame.sort_values(["pid", "tid", "begin_s", "duration_s"], ascending=[True, True, True, False], kind="stable")
    frame["depth"] = _depths(frame)
    frame.attrs["metadata"] = trace.get("metadata", {})
    return frame.reset_index(drop=True)


def _depths(frame):
    """How many slices of its thread each slice lies in; slices nest, and come in order of their begin."""
    out, thread, ends = [], None, []
    for pid, tid, begin, duration in zip(frame.pid, frame.tid, frame.begin_s, frame.duration_s):
        if (pid, tid) != thread:
            thread, ends = (pid, tid), []
        while ends and ends[-1] <= begin + 1e-10:
            ends.pop()
        out.append(len(ends))
        ends.append(begin + duration)
    return out


def load_explanation(path):
    """Leaves of the trees of `nvlsim explain --format json`: tree, path ("forward / gemm / mlp.up"), amount, note."""
    rows = []

    def walk(tree, cause, path):
        if not cause.get("parts"):
            rows.append({"tree": tree, "path": " / ".join(path), "amount": cause["amount"], "note": cause.get("note", "")})
        for part in cause.get("parts", []):
            walk(tree, part, path + [part["name"]])

    for document in _documents(path):
        for tree in document["trees"]:
            walk(tree["title"], tree["whole"], [])
    return pd.DataFrame(rows, columns=["tree", "path", "amount", "note"])


def load_validation(path):
    """Records of `nvlsim validate --format json`: a row for each published number, with `in_band`."""
    frame = pd.DataFrame(json.loads(Path(path).read_text(encoding="utf-8"))["rows"])
    frame["in_band"] = [None if not b or pd.isna(p) else b[0] <= p <= b[1] for b, p in zip(frame.band, frame.published)]
    return frame
