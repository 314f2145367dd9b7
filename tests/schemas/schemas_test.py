"""docs/schemas against everything that ships, everything the program writes, and files that are wrong.

A wrong input must be refused by its schema and by the program, so that neither drifts from the other.
"""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from jsonschema import Draft202012Validator

NVLSIM, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/cli"))
import sanitizer  # noqa: E402

SCHEMAS = {p.name.split(".")[0]: Draft202012Validator(json.loads(p.read_text())) for p in (SOURCE / "docs/schemas").glob("*.schema.json")}


def run(*arguments, cwd=None):
    return subprocess.run([NVLSIM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C", **sanitizer.options()})


def complaints(kind, document):
    return [f"/{'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in SCHEMAS[kind].iter_errors(document)]


def read(path):
    return json.loads(path.read_text())


def objects(node, at=()):
    """Every object of a document, by its path."""
    if isinstance(node, dict):
        yield at, node
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from objects(child, at + (key,))


def inside(document, path):
    for key in path:
        document = document[key]
    return document


def wrong_copies(document, free=()):
    """(what was done, the document with that one thing wrong). Below members called as in `free` names are anybody's."""
    for path, node in objects(document):
        if set(path) & set(free) or path[-1:] in [("sources",), ("set",), ("peaks",)]:
            continue
        changed = copy.deepcopy(document)
        inside(changed, path)["no_such_member"] = 1
        yield f"a member more at /{'/'.join(path)}", changed
        for key, value in node.items():
            if key in ("description", "note", "base", "name", "source"):
                continue
            changed = copy.deepcopy(document)
            inside(changed, path)[key] = [[]]
            yield f"a list at /{'/'.join(path + (key,))}", changed
            if isinstance(value, str) and re.match(r"^[0-9.]+ \S+$", value):
                for bad in 5, "5", "5 parsec", "-" + value, value.replace(" ", " q"):
                    changed = copy.deepcopy(document)
                    inside(changed, path)[key] = bad
                    yield f"{bad!r} at /{'/'.join(path + (key,))}", changed


class Shipped(unittest.TestCase):
    def fits(self, kind, name, document):
        self.assertEqual(complaints(kind, document), [], name)

    def test_schemas_are_schemas(self):
        self.assertGreaterEqual(set(SCHEMAS), {"platform", "stack", "model", "scenario", "result", "comparison", "validation", "trace", "error"})
        for name, schema in SCHEMAS.items():
            Draft202012Validator.check_schema(schema.schema)
            self.assertEqual(schema.schema["$schema"], Draft202012Validator.META_SCHEMA["$id"], name)

    def test_inputs(self):
        for kind, folder, files in ("platform", "platforms", "*.json"), ("stack", "platforms/stacks", "**/*.json"):
            for path in (SOURCE / folder).glob(files):
                self.fits(kind, path.name, read(path))
        for path in (SOURCE / "scenarios").rglob("*.json"):
            document = read(path)
            if path.parent.name != "models":
                self.fits("scenario", path.name, document)
            elif "schema" in document:
                self.fits("model", path.name, document)
        self.fits("stack", "resolved", json.loads(run("stack", "show", "tensorrt-llm-1.1", "--format", "json").stdout)["stack"])

    def test_examples_of_the_documentation(self):
        seen = set()
        for page in (SOURCE / "docs").glob("*.md"):
            for block in re.findall(r"^```json\n(.*?)^```", page.read_text(), re.M | re.S):
                kind = re.match(r'\{\s*"schema": "nvlsim\.(\w+)/1"', block)
                if kind:
                    self.fits(kind[1], page.name, json.loads(re.sub(r"\.\.\.", "", block)))
                    seen.add(kind[1])
        self.assertGreaterEqual(seen, {"platform", "scenario", "model"})

    def test_shipped_results(self):
        for path in (SOURCE / "docs/ci/baseline").glob("*.json"):
            self.fits("result", path.name, read(path))


class Produced(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def fits(self, kind, *arguments, code=0):
        done = run(*arguments, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(complaints(kind, document), [])
        return document

    def test_results(self):
        inputs = SOURCE / "tests/cli/inputs"
        several = self.fits("result", "run", inputs / "train.json", inputs / "serve.json", "all-reduce-gb300-rack", "--format", "json")
        self.assertEqual(len(several), 3)
        self.fits("result", "run", inputs / "train.json", "--set", "/model=llama3.1-405b", "--format", "json", code=3)
        one = self.fits("result", "run", inputs / "train.json", "--trace", "t.json", "--format", "json")
        self.assertEqual(complaints("trace", read(self.folder / "t.json")), [])
        for broken in {**one, "more": 1}, {**one, "status": "fine"}, {k: v for k, v in one.items() if k != "notes"}, [several]:
            self.assertTrue(complaints("result", broken))

    def test_comparisons(self):
        inputs = SOURCE / "tests/cli/inputs"
        document = self.fits("comparison", "compare", inputs / "train.json", inputs / "serve.json", "--format", "json", "--fail-if",
                             "step_time_s>+1%", code=1)
        self.assertTrue(document["scenarios"][0]["inputs"])
        self.assertTrue(complaints("comparison", {**document, "gates": [{}]}))

    def refuses(self, kind, document, changes):
        for change in changes:
            self.assertTrue(complaints(kind, {**document, **change}), change)

    def test_explanations(self):
        inputs = SOURCE / "tests/cli/inputs"
        for arguments in (["train.json"], ["serve.json"], ["serve.json", "ttft_s.p99"], ["train.json", "memory_peak_bytes"],
                          ["train.json", "mfu"]):
            document = self.fits("explanation", "explain", inputs / arguments[0], *arguments[1:], "--format", "json")
        clock = self.fits("explanation", "explain", inputs / "serve.json", "--set", '/workload/slo={"e2e": "90 s"}', "--format", "json")
        self.assertIn("by stage", [t["title"] for t in clock["trees"]])
        use, constant = clock["kernels"][0], clock["constants"][0]
        self.refuses("explanation", document, [
            {"schema": "nvlsim.explanation/2"}, {"more": 1}, {"value": "1"}, {"band": [1]}, {"factors": [{"name": "x", "amount": 1, "power": 2}]},
            {"trees": [{"title": "by luck", "whole": {"name": "x", "amount": 1}}]}, {"trees": [{"title": "by phase", "whole": {"amount": 1}}]},
            {"trees": [{"title": "by phase", "whole": {"name": "x", "amount": 1, "parts": []}}]},
            {"kernels": [{**use, "bound": "fate"}]}, {"kernels": [{k: v for k, v in use.items() if not k.startswith("rate")}]},
            {"constants": [{**constant, "kind": "guessed"}]}, {"constants": [{**constant, "pointer": "x"}]}, {"defaults": {"x": 1}}])

    def test_searches(self):
        document = self.fits("search", "search", SOURCE / "tests/cli/inputs/train.json", "--gpus", "8", "--top", "2", "--format", "json")
        best = document["best"][0]
        self.refuses("search", document, [
            {"schema": "nvlsim.search/2"}, {"more": 1}, {"gpus": 0}, {"found": -1}, {"best": [{**best, "metrics": {"x": "1"}}]},
            {"best": [{k: v for k, v in best.items() if k != "set"}]}, {"best": [{**best, "set": {"tp": 1}}]}, {"pruned": [{"reason": "x"}]}])

    def test_plans(self):
        document = self.fits("plan", "plan", "serving", "llama3.1-8b", "--platform", "nd-h100-v5", "--gpus", "1", "--input", "200",
                             "--output-tokens", "20", "--tpot", "20 ms", "--format", "json")
        answer = document["answers"][0]
        self.refuses("plan", document, [{"schema": "nvlsim.plan/2"}, {"more": 1}, {"question": "luck"}, {"answers": [{**answer, "gpus": 0}]},
                                        {"answers": [{**answer, "best": "both"}]}, {"answers": [{"platform": "x"}]},
                                        {"best_platform": 1}, {"answers": [{**answer, "demand": {}}]}])
        self.assertEqual(document["best_platform"], answer["platform"])
        decode = answer["aggregated"]["decode"]
        self.assertEqual(answer["aggregated"]["scenario"]["workload"]["layout"].get("max_num_tokens", decode["max_num_tokens"]),
                         decode["max_num_tokens"])
        self.assertGreater(decode["max_batch_size"], 0)
        train = SOURCE / "tests/cli/inputs/train.json"
        document = self.fits("plan", "plan", "training", train, "--gpus", "8", "--format", "json")
        self.refuses("plan", document, [{"answers": [{**document["answers"][0], "goodput_fraction": 0}]}, {"question": "serving"}])
        document = self.fits("plan", "plan", "scaling", train, "--gpus", "4,8", "--format", "json")
        self.refuses("plan", document, [{"weak": 1}, {"points": [{"gpus": 8}]}])
        document = self.fits("plan", "plan", "next-dollar", train, "--cost", "nic_bandwidth=400", "--format", "json")
        self.refuses("plan", document, [{"knobs": [{"name": "x"}]}, {"value": "1"}])

    def test_paretos(self):
        document = self.fits("pareto", "pareto", SOURCE / "tests/cli/inputs/serve.json", "--concurrency", "4,16", "--format", "json")
        point = document["points"][0]
        self.refuses("pareto", document, [{"schema": "nvlsim.pareto/2"}, {"more": 1}, {"points": [{**point, "tp": 0}]},
                                          {"points": [{**point, "efficient": 1}]}, {"points": [{"layout": "x"}]}])

    def test_collectives(self):
        for arguments in (["all_reduce", "-b", "8", "-e", "1G", "-f", "8"], ["barrier"], ["moe_dispatch", "-b", "64K", "-e", "256K", "-i", "64K"]):
            document = self.fits("collective", "collective", *arguments, "--platform", "gb300-nvl72", "--gpus", "8", "--format", "json")
        row = document["results"][0]
        self.refuses("collective", document, [
            {"version": 1}, {"more": 1}, {"simulated": False}, {"config": {**document["config"], "step_factor": 2}}, {"errors": ["x"]},
            {"results": [{**row, "root": -1}]}, {"results": [{**row, "in_place": {**row["in_place"], "nwrong": 0}}]},
            {"results": [{k: v for k, v in row.items() if k != "redop"}]}, {"regimes": [{"algorithm": "ring"}]}])

    def test_report_data(self):
        (self.folder / "sweep.json").write_text(json.dumps({
            "schema": "nvlsim.sweep/1", "scenario": str(SOURCE / "tests/cli/inputs/train.json"),
            "axes": [{"grid": {"/workload/global_batch_size": [8, 16]}}]}))
        for words in ["plan", "sweep.json", "-o", "folder"], ["run", "folder"], ["merge", "folder"]:
            done = run("sweep", *words, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "found.json").write_text(run("search", SOURCE / "tests/cli/inputs/train.json", "--gpus", "8", "--format", "json").stdout)
        (self.folder / "answer.json").write_text(run("plan", "next-dollar", SOURCE / "tests/cli/inputs/train.json", "--format", "json").stdout)
        done = run("report", SOURCE / "tests/cli/inputs/train.json", "folder", "folder/results.jsonl", "found.json", "answer.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(re.search(r'id="data">(.*?)</script>', (self.folder / "report.html").read_text(), re.S)[1])
        self.assertEqual(complaints("report", document), [])
        for kind, members in ("result", "results"), ("explanation", "explanations"), ("search", "searches"), ("plan", "plans"):
            for one in document[members]:
                self.assertEqual(complaints(kind, one), [])
        self.assertEqual([len(s["points"]) for s in document["sweeps"]], [2, 2])
        track = document["timelines"][0]["lanes"][0]
        self.refuses("report", document, [
            {"schema": "nvlsim.report/2"}, {"more": 1}, {"results": [{}]}, {"explanations": [{"schema": "x", "scenario": "y"}]},
            {"timelines": [{**document["timelines"][0], "lanes": [{**track, "slices": [[0, -1, 1, 0]]}]}]},
            {"sweeps": [{"name": "x", "points": [{"set": {}, "status": "fine", "metrics": {}}]}]}, {"searches": [{"schema": "x"}]}, {"plans": [{"schema": "x"}]}])

    def test_validation(self):
        document = self.fits("validation", "validate", SOURCE / "tests/measurements/memory.csv", "--format", "json")
        for change in {"status": "fine"}, {"error": "none"}, {"error": None}, {"band": [1]}, {"more": 1}:
            row = {**next(r for r in document["rows"] if r["status"] == "ok"), **change}
            self.assertTrue(complaints("validation", {**document, "rows": [row]}), change)

    def test_failures(self):
        document = self.fits("error", "run", "no-such-scenario", "--format", "json", code=2)
        self.assertTrue(complaints("error", {**document, "problems": [{"what": "x"}]}))

    def test_trace_events(self):
        run("run", SOURCE / "tests/cli/inputs/train.json", "--trace", "t.json", cwd=self.folder)
        document = read(self.folder / "t.json")
        slice_ = next(e for e in document["traceEvents"] if e["ph"] == "X")
        for change in {"ph": "Q"}, {"ts": -1}, {"dur": "1"}, {"more": 1}, {"pid": 0}:
            self.assertTrue(complaints("trace", {**document, "traceEvents": [{**slice_, **change}]}), change)
        self.assertTrue(complaints("trace", {**document, "metadata": {"tool": "nvlsim"}}))


class Wrong(unittest.TestCase):
    """What is wrong in one place is refused by schema and program alike."""

    def refused(self, kind, command, document, free=()):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            self.assertEqual(complaints(kind, document), [])
            names = {}
            for i, (what, wrong) in enumerate(wrong_copies(document, free)):
                self.assertTrue(complaints(kind, wrong), f"the schema takes {what}")
                names[f"w{i}.json"] = what
                (folder / f"w{i}.json").write_text(json.dumps(wrong))
            self.assertGreater(len(names), 10)
            done = run(command, "check", *[folder / n for n in names], cwd=folder)
            self.assertEqual(done.returncode, 2, done.stderr[-2000:])
            reported = set(re.findall(r"(w\d+\.json)#", done.stderr))
            self.assertEqual([what for n, what in names.items() if n not in reported], [], "taken by the program")

    def test_platforms(self):
        self.refused("platform", "platform", read(SOURCE / "platforms/gb300-nvl72.json"))

    def test_models(self):
        self.refused("model", "model", read(SOURCE / "scenarios/models/grok1-314b.json"))

    def test_scenarios(self):
        for path in "training/llama3.1-405b-gb300-512", "inference/llama2-70b-offline-gb300-rack", "collectives/ring-all-reduce-72-exact":
            self.refused("scenario", "scenario", read(SOURCE / f"scenarios/{path}.json"))

    def test_required_members(self):
        for kind, path in ("platform", "platforms/gb300-nvl72"), ("scenario", "scenarios/training/llama3.1-405b-gb300-512"), \
                          ("model", "scenarios/models/grok1-314b"):
            for member in SCHEMAS[kind].schema["required"] + SCHEMAS[kind].schema.get("else", {}).get("required", []):
                document = read(SOURCE / f"{path}.json")
                del document[member]
                self.assertTrue(complaints(kind, document), f"{kind} without {member}")

    def test_stacks(self):
        good = read(SOURCE / "platforms/stacks/collectives/nccl-2.29.json")
        table = read(SOURCE / "platforms/stacks/vllm.json")["releases"]
        for change in {"schema": "nvlsim.stack/2"}, {"more": 1}, {"collectives": {"no_such_table": {}}}, {"collectives": 1}, \
                      {"training": {"x": {"value": 1}}}, {"kernels": {"gb300": {"gemm": []}}}, \
                      {"training": {"x": {"value": 1, "kind": "guessed", "source": "s"}}}, {"serving": {}}, {"release": 1}, \
                      {"releases": {**table, "no_such_member": 1}}, {"releases": {**table, "rows": []}}, \
                      {"releases": {**table, "columns": ["no pointer"]}}, {"releases": {"rows": {}}}:
            self.assertTrue(complaints("stack", {**good, **change}), change)

    def test_two_spellings(self):
        document = read(SOURCE / "scenarios/training/llama3.1-405b-gb300-512.json")
        document["workload"]["tensor_model_parallel_size"] = 2
        self.assertTrue(complaints("scenario", document))


class Documentation(unittest.TestCase):
    """Tables of docs/scenario-format.md, with the pages of members of their own, and the schema list the same members."""

    def test_members(self):
        page = (SOURCE / "docs/scenario-format.md").read_text()
        documented = set()
        for table in re.findall(r"^\| member .*\n\|[-| ]+\n((?:\|.*\n)+)", page, re.M):
            head = re.search(r"^(\| member .*)\n\|[-| ]+\n" + re.escape(table), page, re.M)[1]
            columns = 2 if "also accepted" in head else 1
            for row in table.splitlines():
                for cell in row.split("|")[1:1 + columns]:
                    documented |= set(re.findall(r"`(\w+)`", cell))
        known = set()
        for path, node in objects(SCHEMAS["scenario"].schema):
            if path[-1:] == ("properties",) and not {"not", "if", "allOf"} & set(path):
                known |= set(node)
        self.assertEqual(sorted(documented - known), [], "not in docs/schemas/scenario.schema.json")
        pages = page + "".join((SOURCE / "docs" / own).read_text() for own in ("operation.md", "facility.md", "fleet.md", "scheduling.md"))
        unnamed = {name for name in known if not re.search(rf"\b{name}\b", pages)}
        self.assertEqual(sorted(unnamed), [], "not in docs/scenario-format.md, nor in a page that it names")

    def test_pages_are_linked(self):
        text = (SOURCE / "docs/schemas/README.md").read_text()
        for name in SCHEMAS:
            self.assertIn(f"({name}.schema.json)", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
