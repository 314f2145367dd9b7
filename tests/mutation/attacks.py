"""Attacks: an input that a user may hand to the program, spoiled at random. Each attack is a function of a random
generator and what is shipped; it returns a job. See mutate.py."""
import copy
import csv
import io
import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

NUMBERS = [0, 1, -1, 2, 3, 7, 64, 1000, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 2, 1 << 40, 1 << 53,
           (1 << 63) - 1, 1 << 63, 1 << 64, 99_999_999, 896_000, 0.0, 0.5, 1e-9, 1e-300, 1e-308, 5e-324, 1.7e308, 1e300, -1e300,
           7e11, 1e26]
WORDS = ["", " ", "x", "1", "/", ".", "..", "\u0000", "\u001b[31mred", "=1+1", "@SUM(A1)", "::error::gone", "a\nb", "%0A", "'", '"',
         "Köln", "\u202e", "nan", "inf", "-inf", "NaN", "1e999", "1e-999", "0x10", "1,000", "true", "null", "nvfp4", "fp4", "gb300-nvl72",
         "x" * 5000]
UNITS = ["B", "GB", "GiB", "TB", "b/s", "Gb/s", "GB/s", "TB/s", "s", "ns", "us", "ms", "W", "kW", "TFLOPS", "PFLOPS", "GHz", "usd/h"]
AMOUNT = re.compile(r"^([-+0-9.eE]+) ?(.*)$")


@dataclass
class Job:
    """A run of the program: its arguments, the files in its folder and those that stand for shipped ones."""
    kind: str
    arguments: list
    files: dict = field(default_factory=dict)  # below the folder that it runs in
    data: dict = field(default_factory=dict)  # below the shipped data
    seconds: float = 20
    exits: tuple = (0, 2, 3, 4)


def number(rng, old=None):
    if old and rng.random() < 0.5:
        return rng.choice((-old, old * 1000, old * 1e6, old / 1000, old + 0.5, old * 3, old * 1e30, old * 1e-30, old + 1, 0))
    return rng.choice(NUMBERS)


def text(rng, old):
    """Another text: a number with another unit or size, a part of a name, or a word that means something to somebody."""
    amount = AMOUNT.match(old)
    if amount and rng.random() < 0.7:
        try:
            x = number(rng, float(amount[1]))
        except ValueError:
            x = number(rng)
        return f"{x!r} {rng.choice([amount[2]] * 4 + UNITS)}"
    how = rng.randrange(5)
    if how == 0:
        return old[:-1]
    if how == 1:
        return old + rng.choice(WORDS)
    return rng.choice(WORDS)


def other(rng, old):
    """A value in place of `old`."""
    if rng.random() < 0.15:
        return copy.deepcopy(rng.choice([None, True, False, [], {}, [[]], {"use": "gb300-nvl72"}, [1, "a"], {"value": 1}, number(rng), rng.choice(WORDS)]))
    if isinstance(old, bool):
        return not old
    if isinstance(old, (int, float)):
        return number(rng, old)
    if isinstance(old, str):
        return text(rng, old)
    return rng.choice([None, [], {}, 0, ""])


def places(value, path=()):
    """Paths of everything inside a value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield path + (key,)
        yield from places(child, path + (key,))


def every(value):
    """Everything inside a value."""
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield child
        yield from every(child)


def spoiled(value, rng):
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        all_places = list(places(value))
        if not all_places:
            break
        *path, last = rng.choice(all_places)
        parent = value
        for key in path:
            parent = parent[key]
        how = rng.randrange(8)
        if how == 0:
            del parent[last]
        elif how == 1 and isinstance(parent, dict):
            parent[str(last)[:-1] + "z"] = parent.pop(last)
        elif how == 2 and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent[last] = other(rng, parent[last])
    return value


def garbled(data, rng):
    """Bytes cut, or changed here and there."""
    data = bytearray(data[:rng.randrange(len(data) + 1)] if rng.randrange(2) else data)
    for _ in range(rng.randrange(4)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def as_bytes(value, rng):
    """A file of a value; NaN and infinity are written as Python does, which is not JSON."""
    data = json.dumps(value).encode("utf-8", "surrogatepass")
    return garbled(data, rng) if rng.random() < 0.03 else data


def pointer(path):
    return "/" + "/".join(str(p).replace("~", "~0").replace("/", "~1") for p in path)


REQUESTS = {  # the formats of request files; docs/serving.md has what they mean
    "azure.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"2023-11-16 18:15:{46 + i}.6805900,{374 + i},{44 - i}\n" for i in range(8)),
    "vidur.csv": "arrived_at,num_prefill_tokens,num_decode_tokens\n" + "".join(f"{i * 0.5},{300 + i},{20 + i}\n" for i in range(8)),
    "mooncake.jsonl": "".join(json.dumps({"timestamp": i * 500, "input_length": 1030 + i, "output_length": 20, "hash_ids": [1, 2, 3 + i]}) + "\n" for i in range(8)),
}


# Members that a quick scenario holds less of.
FEW = {"requests": 24, "prompts": 16, "mini_batch_size": 64, "seeds": 2, "jobs": 40}
# Members to which the work of a run is in proportion.
PROPORTIONAL = {*FEW, "global_batch_size", "samples_per_prompt", "repeat"}


class Shipped:
    """What the program is shipped with, and what it says about itself."""

    def __init__(self, program, source, environment):
        self.program, self.source, self.environment = program, source, environment
        self.scenarios = {}
        for path in sorted((source / "scenarios").glob("*/*.json")) + sorted((source / "tests/cli/inputs").glob("*.json")):
            if path.parent.name != "models":
                self.scenarios[path.name] = self.quick(json.loads(path.read_text()))
        self.library = sorted(p.relative_to(source) for folder in ("platforms", "scenarios/models") for p in (source / folder).rglob("*.json"))
        self.tables = {}
        for path in sorted((source / "tests/measurements").glob("*.csv")):
            if path.name != "models.csv":
                self.tables[path.name] = list(csv.reader(io.StringIO(path.read_text())))
        self.names = {kind: sorted(p.stem for p in (source / folder).glob("*.json"))
                      for kind, folder in (("platform", "platforms"), ("stack", "platforms/stacks"), ("model", "scenarios/models"))}
        self.results = {name: self.json("run", name) for name in ("train.json", "serve.json")}
        self.options = {command: self.read_help(command) for command in COMMANDS}

    @staticmethod
    def quick(scenario):
        """A scenario that runs in a moment: few requests, prompts, jobs and seeds are as good."""
        for parent in [scenario] + [v for v in every(scenario) if isinstance(v, dict)]:
            for key, few in FEW.items():
                if isinstance(parent.get(key), int) and parent[key] > few:
                    parent[key] = few
        load = scenario.get("workload", {}).get("load", {})
        if "file" in load:
            load["file"] = load["file"].split("/")[-1]
        elif scenario.get("workload", {}).get("kind") == "inference":
            load["requests"] = 24
        return scenario

    def call(self, *arguments):
        return subprocess.run([str(self.program), *arguments], cwd=self.source / "tests/cli/inputs", env=self.environment, capture_output=True,
                              text=True, timeout=120).stdout

    def json(self, *arguments):
        return json.loads(self.call(*arguments, "--format", "json"))

    def read_help(self, command):
        """Options of a command, each with the text of its value ("" for a flag)."""
        return re.findall(r"^  (?:-\w, )?(--[\w-]+)(?:, --[\w-]+)*(?: ([A-Z][^ \n]*|[a-z]\w*\|[^ \n]*))?(?= |$)", self.call(*command.split(), "--help"), re.M)

    def scenario(self, rng):
        name = rng.choice(sorted(self.scenarios))
        return name, copy.deepcopy(self.scenarios[name])

    def related(self, scenario):
        """The beginning of each trace that a scenario names, where the scenario looks for it."""
        names = {v["file"] for v in every(scenario) if isinstance(v, dict) and isinstance(v.get("file"), str)}
        return {n: b"".join((self.source / "scenarios/traces" / Path(n).name).read_bytes().splitlines(True)[:25]) for n in names}


# What each command needs before its options are varied.
COMMANDS = {
    "run": ["train.json"], "explain": ["train.json"], "search": ["train.json", "--gpus", "72", "--top", "2", "--only", "tp"],
    "pareto": ["serve.json", "--gpus", "4", "--concurrency", "1,8"], "compare": ["result.json", "result.json"],
    "collective": ["all_reduce", "--platform", "gb300-nvl72", "--gpus", "72"],
    "kernel gemm": ["--m", "128", "--n", "256", "--k", "512"], "kernel attention": [], "kernel decode": [], "kernel mla": [], "kernel mla-context": [],
    "kernel absorb": [], "kernel moe": [], "kernel scan": [], "kernel stream": [], "kernel elementwise": [], "kernel copy": [],
    "kernel sparse-attention": [], "kernel indexer": [], "report": ["result.json"], "validate": ["table.csv"],
    "platform show": ["gb300-nvl72"], "stack show": ["vllm"], "model show": ["llama3-70b"], "metrics": [], "scenario check": ["train.json"],
    "sweep plan": ["sweep.json", "-o", "swept"],
}
SWEEP = {"schema": "nvlsim.sweep/1", "name": "nic", "scenario": "./train.json", "set": {"/simulation/seed": 2},
         "axes": [{"grid": {"/workload/micro_batch_size": [1, 2]}}, {"range": {"pointer": "/platform/fabric/nic_bandwidth", "from": "100 Gb/s", "to": "800 Gb/s", "count": 2}},
                  {"random": {"count": 1, "seed": 3, "draw": {"/workload/recompute": {"choice": ["none", "full"]}}}}]}


def in_moderation(before, after):
    """A spoiled scenario with at most 30 times as much work of a kind as the one before; sizes that no run has stay."""
    most = {}
    for parent in (v for v in [before, *every(before)] if isinstance(v, dict)):
        for key in PROPORTIONAL & parent.keys():
            if isinstance(parent[key], (int, float)):
                most[key] = max(most.get(key, 1), 30 * parent[key])
    for parent in (v for v in [after, *every(after)] if isinstance(v, dict)):
        for key in most.keys() & parent.keys():
            if isinstance(parent[key], (int, float)) and most[key] < parent[key] < 1 << 30:
                parent[key] = most[key]
    return after


def scenario_file(rng, shipped):
    _, scenario = shipped.scenario(rng)
    command = rng.choice((["run"], ["run"], ["run"], ["explain"], ["scenario", "check"]))
    tail = [] if command[0] == "scenario" else ["--format", "json"]
    wrong = in_moderation(scenario, spoiled(scenario, rng))
    return Job("scenario", [*command, "s.json", *tail], {"s.json": as_bytes(wrong, rng), **shipped.related(scenario)})


def shipped_file(rng, shipped):
    """A platform, stack, library of a stack or model, read by a scenario that uses it."""
    path = rng.choice(shipped.library)
    content = as_bytes(spoiled(json.loads((shipped.source / path).read_text()), rng), rng)
    text_of = {name: json.dumps(s) for name, s in shipped.scenarios.items()}
    users = sorted(name for name, t in text_of.items() if f'"{path.stem}' in t) or sorted(text_of)
    if rng.randrange(4) == 0 and len(path.parts) == 2:
        return Job("platform", ["collective", "all_reduce", "--platform", path.stem, "--gpus", "16", "--format", "json"], data={str(path): content})
    scenario = shipped.scenarios[rng.choice(users)]
    return Job("library", ["run", "s.json", "--format", "json"], {"s.json": json.dumps(scenario).encode(), **shipped.related(scenario)}, {str(path): content})


def table_rows(rng, table, count):
    header, body = table[0], table[1:]
    return [list(header)] + [list(rng.choice(body)) for _ in range(count)]


def spoil_rows(rows, rng):
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        how, column = rng.randrange(12), rng.randrange(len(rows[0]))
        row = rng.choice(rows[1:]) if len(rows) > 1 and how else rows[0]
        if not row:
            continue
        column = min(column, len(row) - 1)
        if how == 1:
            row.append(rng.choice(WORDS))
        elif how == 2:
            row.pop()
        else:
            filled = [i for i, c in enumerate(row) if c] or [column]
            column = rng.choice(filled) if rng.random() < 0.8 else column
            try:
                row[column] = repr(number(rng, float(row[column])))
            except ValueError:
                row[column] = text(rng, row[column]) if rng.random() < 0.6 else repr(number(rng))
    return rows


def as_csv(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def table(rng, shipped):
    name = rng.choice(sorted(shipped.tables))
    rows = spoil_rows(table_rows(rng, shipped.tables[name], rng.choice((0, 1, 1, 2))), rng)
    job = Job("table", ["validate", name, "--format", "json"], {name: as_csv(rows)}, seconds=30)
    job.exits = (2, 4) if len(rows) == 1 else (0, 2, 4)  # a table without rows is no table of measurements
    if rng.random() < 0.03:
        job.files[name], job.exits = garbled(job.files[name], rng), (0, 2, 4)
    return job


def fit(rng, shipped):
    name, command = rng.choice((("kernels.csv", "kernels"), ("kernels-gemm.csv", "kernels"), ("collectives.csv", "collectives")))
    rows = spoil_rows(table_rows(rng, shipped.tables[name], rng.choice((0, 2, 6))), rng)
    return Job("fit", ["fit", command, name, "-o", "fitted"], {name: as_csv(rows)}, seconds=60)


def requests(rng, shipped):
    name = rng.choice(sorted(REQUESTS))
    lines = REQUESTS[name].splitlines()
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(lines))
        if name.endswith(".jsonl"):
            lines[at] = json.dumps(spoiled(json.loads(lines[at]), rng)) if lines[at].startswith("{") else lines[at]
        else:
            lines[at] = ",".join(spoil_rows([lines[0].split(","), lines[at].split(",")], rng)[-1])
    data = "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
    scenario = copy.deepcopy(shipped.scenarios["serve.json"])
    scenario["workload"]["load"] = {"kind": "trace", "file": name}
    scenario["workload"]["slo"] = {"ttft": "1 s"} if rng.randrange(4) == 0 else {}
    if not scenario["workload"]["slo"]:
        del scenario["workload"]["slo"]
    return Job("requests", ["run", "s.json", "--format", "json"], {"s.json": json.dumps(scenario).encode(), name: garbled(data, rng) if rng.random() < 0.1 else data})


def sweep(rng, shipped):
    files = {"sweep.json": as_bytes(spoiled(SWEEP, rng), rng), "train.json": json.dumps(shipped.scenarios["train.json"]).encode()}
    return Job("sweep", ["sweep", "plan", "sweep.json", "-o", "swept", "--format", "json"], files, seconds=60)  # thousands of points take their time


def set_value(rng, shipped):
    """Any member that a result lists among its inputs, given another value on the command line."""
    name = rng.choice(sorted(shipped.results))
    inputs = shipped.results[name]["inputs"]
    part = rng.choice(("scenario", "scenario", "platform", "stack", "model"))
    path = rng.choice(list(places(inputs[part])))
    old = inputs[part]
    for key in path:
        old = old[key]
    new = other(rng, old)
    value = new if isinstance(new, str) else json.dumps(new)
    where = pointer(path) if part == "scenario" else f"/{part}" + pointer(path)
    command = rng.choice((["run"], ["run"], ["run"], ["explain"], ["pareto", "--concurrency", "4"] if name == "serve.json" else ["search", "--gpus", "8", "--only", "tp", "--top", "1"]))
    value, where = value.replace("\0", "\\0"), where.replace("\0", "")
    return Job("set", [command[0], name, *command[1:], "--set", f"{where}={value}", "--format", "json"],
               {name: json.dumps(shipped.scenarios[name]).encode()})


def result_file(rng, shipped):
    """A result that was edited, compared and reported."""
    result = copy.deepcopy(shipped.results[rng.choice(sorted(shipped.results))])
    if rng.randrange(3) == 0:
        result["name"] = rng.choice(WORDS)
    other_one = spoiled(result, rng) if rng.random() < 0.9 else result
    files = {"a.json": json.dumps(result).encode(), "b.json": as_bytes(other_one, rng)}
    if rng.randrange(4) == 0:
        return Job("result", ["report", "b.json", "-o", "page.html"], files)
    rules = [rng.choice(("step_time_s>+1%", "mfu<0.3", "memory_peak_bytes>290 GB", "output_tokens_per_s<-1%", "ttft_s.p99>1 s", text(rng, "step_time_s>+1%")))]
    return Job("result", ["compare", "a.json", "b.json", *[x for r in rules for x in ("--fail-if", r.replace("\0", ""))], "--format", rng.choice(("json", "table", "markdown", "junit", "github"))],
               files, exits=(0, 1, 2, 3, 4))


def command_line(rng, shipped):
    """A command with some of its options, each with a value of any kind."""
    command = rng.choice(sorted(shipped.options))
    arguments = [*command.split(), *COMMANDS[command]]
    files = {name: json.dumps(shipped.scenarios[name]).encode() for name in ("train.json", "serve.json")}
    files["result.json"] = json.dumps(shipped.results["serve.json"]).encode()
    files["sweep.json"] = json.dumps(SWEEP).encode()
    files["table.csv"] = as_csv(table_rows(rng, shipped.tables["kernels.csv"], 2))
    known = shipped.options[command]
    if command.startswith("kernel"):
        arguments += ["--platform", rng.choice(("gb300-nvl72", "gb200-nvl72", "nd-h100-v5", text(rng, "gb300-nvl72")))]
        for name, what in known:  # sizes are needed
            if what == "N" and name not in arguments and rng.random() < 0.9:
                arguments += [name, str(rng.choice((1, 8, 64, 128, 4096)))]
    for name, what in rng.sample(known, min(len(known), rng.choice((1, 1, 2, 3)))):
        if name in ("--help", "--jobs") or name == "--sensitivity" and rng.random() < 0.9:  # it takes seconds
            continue
        if name in arguments:
            at = arguments.index(name)
            del arguments[at:at + 2]
        arguments.append(name)
        if not what:
            continue
        if what == "N":
            arguments.append(str(rng.choice(NUMBERS)))
        elif "|" in what:
            arguments.append(rng.choice(what.split("|") + ["x"]))
        elif what == "FILE" or what == "DIR":
            arguments.append(rng.choice(("out.x", "train.json", "serve.json", "result.json", "sweep.json", "/dev/null", "nowhere/out", ".")))
        else:
            arguments.append(rng.choice([w for w in WORDS if "\0" not in w] + [str(n) for n in NUMBERS] + ["step_time_s", "tp=4", "1K", "16G", "nvfp4", "bf16"]))
    return Job("command line", arguments, files, exits=(0, 1, 2, 3, 4) if command == "compare" else (0, 2, 3, 4))


def overwrite(rng, shipped):
    """An output with the name of something that was read."""
    scenario = copy.deepcopy(shipped.scenarios["serve.json"])
    scenario["platform"] = {"use": "./p.json"}
    files = {"p.json": (shipped.source / "platforms/gb300-nvl72.json").read_bytes(), "m.json": (shipped.source / "scenarios/models/llama2-70b.json").read_bytes(),
             "t.csv": REQUESTS["azure.csv"].encode(), "st.json": (shipped.source / "platforms/stacks/tensorrt-llm.json").read_bytes(), "sub/x": b""}
    scenario["model"] = "./m.json"
    scenario["workload"]["load"] = {"kind": "trace", "file": "t.csv"}
    files["serve.json"] = json.dumps(scenario).encode()
    files["plan.json"] = json.dumps({**SWEEP, "scenario": "./serve.json", "axes": [{"grid": {"/simulation/seed": [1, 2]}}]}).encode()
    files["result.json"] = json.dumps(shipped.results["serve.json"]).encode()
    read = rng.choice(("p.json", "m.json", "t.csv", "serve.json"))
    read = rng.choice((read, f"./{read}", f"sub/../{read}"))
    command = rng.choice((["run", "serve.json", "--trace", read], ["run", "serve.json", "--requests", read], ["report", "serve.json", "-o", read],
                          ["report", "result.json", "-o", "result.json"], ["sweep", "plan", "plan.json", "-o", "."],
                          ["run", "serve.json", "-o", ".", "--set", f"/name={rng.choice(('p', 'm', 'serve'))}"]))
    return Job("overwrite", command, files, exits=(2,))


ATTACKS = {"scenario": (scenario_file, 20), "library": (shipped_file, 18), "table": (table, 14), "fit": (fit, 1), "requests": (requests, 6), "sweep": (sweep, 5),
           "set": (set_value, 16), "result": (result_file, 6), "command line": (command_line, 13), "overwrite": (overwrite, 1)}
