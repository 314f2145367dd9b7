#!/usr/bin/env python3
"""Inputs damaged at random give a message or a result, never a crash. Usage: robustness_test.py NVLSIM SOURCE_DIR [SEED [COUNT]]"""
import concurrent.futures
import copy
import json
import random
import subprocess
import sys

from program import SOURCE, Case, main, run

SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
COUNT = int(sys.argv[4]) if len(sys.argv) > 4 else 160

VALUES = [None, True, False, 0, 1, -1, 2, 3, 7, 64, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 64, 0.0, 0.5,
          1e-300, 1e300, -1e300, "", "x", "1", "0 B", "1e300 GB/s", "1 ns", "-1 W", "900 GB/s", "nvfp4", "/", "\u0000", [], {},
          [[]], {"use": "gb300-nvl72"}, [1, "a"], {"value": 1}]


def places(value, path=()):
    """Paths of everything inside a value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield path + (key,)
        yield from places(child, path + (key,))


def damaged(value, rng):
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        all_places = list(places(value))
        if not all_places:
            return value
        *path, last = rng.choice(all_places)
        parent = value
        for key in path:
            parent = parent[key]
        how = rng.randrange(4)
        if how == 0:
            del parent[last]
        elif how == 1 and isinstance(parent, dict):
            parent[str(last)[:-1] + "z"] = parent.pop(last)
        elif how == 2 and isinstance(parent[last], (int, float)) and not isinstance(parent[last], bool):
            parent[last] = rng.choice((-parent[last], parent[last] * 1000, parent[last] + 0.5, parent[last] * 3))
        else:
            parent[last] = copy.deepcopy(rng.choice(VALUES))
    return value


def refuse(constant):
    raise ValueError(f"{constant} in the output")


class Robustness(Case):
    def check(self, arguments, what):
        try:
            done = run("run", *arguments, "--format", "json", cwd=self.folder, timeout=30)
        except subprocess.TimeoutExpired:
            return f"hangs: {what}"
        if done.returncode not in (0, 2, 3, 4):
            return f"exit code {done.returncode}: {what}\n{done.stderr[-2000:]}"
        try:
            document = json.loads(done.stdout, parse_constant=refuse)
        except ValueError as e:
            return f"{e}: {what}\n{done.stdout[:500]}"
        explained = done.stderr if done.returncode in (2, 4) else True if done.returncode == 0 else document["reasons"]
        return None if explained else f"no message: {what}"

    def check_all(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = [w for w in pool.map(lambda job: self.check(*job), jobs) if w]
        self.assertEqual(wrong[:5], [])

    def test_damaged_scenarios(self):
        rng = random.Random(SEED)
        seeds = [json.loads(p.read_text()) for p in [*sorted((SOURCE / "scenarios").glob("[!m]*/*.json")), self.folder / "train.json", self.folder / "serve.json"]]
        for s in seeds:  # a short load is as good
            if s.get("workload", {}).get("kind") == "inference":
                s["workload"]["load"]["requests"] = 96
        jobs = []
        for i in range(COUNT):
            file = self.folder / f"{i}.json"
            file.write_text(json.dumps(damaged(rng.choice(seeds), rng)))
            jobs.append(((file.name,), file.read_text()))
        self.check_all(jobs)

    def test_damaged_inputs(self):
        rng = random.Random(SEED + 1)
        jobs = []
        for i in range(COUNT // 4):
            scenario = self.edit(rng.choice(("train.json", "serve.json")))
            kind, folder = rng.choice((("platform", "platforms"), ("model", "scenarios/models"), ("stack", "platforms/stacks")))
            name = scenario["platform"]["use"] if kind == "platform" else scenario[kind]
            file = max((f for f in (SOURCE / folder).glob("*.json") if name.startswith(f.stem)), key=lambda f: len(f.stem))  # of a release, its framework's
            spoiled = damaged(json.loads(file.read_text()), rng)
            (self.folder / f"input{i}.json").write_text(json.dumps(spoiled))
            scenario[kind] = {"use": f"./input{i}.json"} if kind == "platform" else f"./input{i}.json"
            jobs.append(((self.write(f"s{i}.json", scenario),), f"input{i}.json of kind {kind}, seed {SEED}"))
        self.check_all(jobs)

    def test_cut_and_garbled_text(self):
        rng = random.Random(SEED + 2)
        text = (self.folder / "train.json").read_bytes()
        jobs = []
        for i in range(COUNT // 4):
            spoiled = bytearray(text[:rng.randrange(len(text))] if i % 2 else text)
            for _ in range(rng.randrange(4)):
                if spoiled:
                    spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
            (self.folder / f"garbled{i}.json").write_bytes(spoiled)
            jobs.append(((f"garbled{i}.json",), bytes(spoiled)))
        self.check_all(jobs)


if __name__ == "__main__":
    main()
