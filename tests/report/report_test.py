#!/usr/bin/env python3
"""The page of `nvlsim report` in a headless browser.

Usage: report_test.py NVLSIM SOURCE_DIR
"""
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from browser import Browser

NVLSIM, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
SCENARIOS = ["llama3.1-405b-gb200-512", "llama3.1-405b-gb300-512", "llama2-70b-offline-gb200-rack",
             "llama2-70b-offline-gb300-rack"]


def nvlsim(*arguments, code=0):
    done = subprocess.run([NVLSIM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}, {done.stderr}"
    return done


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        cls.page = cls.path / "report.html"
        cls.done = nvlsim("report", *SCENARIOS, "-o", cls.page)
        cls.browser = Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def open(self, page=None, **options):
        return self.browser.page((page or self.page).as_uri(), **options)

    def assert_clean(self, page):
        for kind in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.assertEqual(page.heard(kind), [])
        for request in page.heard("Network.requestWillBeSent"):
            self.assertRegex(request["request"]["url"], r"^(file:.*\.html$|data:)")

    def test_vendored_files_are_those_of_the_package(self):
        readme = (SOURCE / "third_party/uPlot/README.md").read_text()
        files = re.findall(r"\| `(\S+)` \| `([0-9a-f]{64})` \|", readme)
        self.assertEqual([name for name, _ in files], ["uPlot.iife.min.js", "uPlot.min.css"])
        for name, digest in files:
            self.assertEqual(hashlib.sha256((SOURCE / "third_party/uPlot" / name).read_bytes()).hexdigest(), digest, name)

    def test_programs_read_the_data(self):
        data = data_of(self.page)
        self.assertEqual(data["schema"], "nvlsim.report/1")
        self.assertEqual([r["name"] for r in data["results"]], SCENARIOS)
        self.assertEqual([e["scenario"] for e in data["explanations"]], SCENARIOS)
        single = json.loads(nvlsim("run", SCENARIOS[0], "--format", "json").stdout)
        for key, number in single["metrics"].items():
            self.assertEqual(data["results"][0]["metrics"][key], number, key)

    def test_a_page_is_the_same_from_run_to_run(self):
        again = self.path / "again.html"
        nvlsim("report", *SCENARIOS, "-o", again)
        self.assertEqual(self.page.read_bytes(), again.read_bytes())
        self.assertEqual(self.done.stdout, "")

    def test_charts_have_marks_and_nothing_is_requested(self):
        page = self.open()
        self.assertGreater(page.value("document.querySelectorAll('rect.mark').length"), 40)
        self.assertGreater(page.value("document.querySelectorAll('circle.mark').length"), 20)
        self.assertEqual(page.value("document.querySelectorAll('canvas.timeline').length"), 4)
        self.assertGreaterEqual(page.value("document.querySelectorAll('.uplot canvas').length"), 6)
        blank = page.value("[...document.querySelectorAll('canvas')].filter(c => !c.getContext('2d')"
                           ".getImageData(0, 0, c.width, c.height).data.some(x => x > 0)).length")
        self.assertEqual(blank, 0)
        self.assert_clean(page)

    def test_the_headline_says_why_and_by_how_much(self):
        text = self.open().value("[...document.querySelectorAll('.why')].map(e => e.textContent).join('\\n')")
        self.assertEqual(len(re.findall(r"GB300 is 1\.\d+ times as fast as GB200", text)), 2)
        self.assertEqual(len(re.findall(r"it saves [0-9.]+ \w+ \([0-9.]+ %\) in tensor cores", text)), 2)
        self.assertIn("NVFP4 dense peak 10 PFLOPS → 15 PFLOPS", text)
        self.assertIn("What differs in the run: tp 4 → 2; dp 8 → 16", text)

    def test_units_colours_and_headlines_are_those_of_the_table_of_metrics(self):
        rows = json.loads(nvlsim("metrics", "--format", "json").stdout)
        kinds = {}
        for row in rows:
            kinds.setdefault(row["kind"], {})[row["name"]] = row
        # Two results of each kind that have every metric, the second with twice the numbers.
        made = json.loads(nvlsim("run", SOURCE / "tests/cli/inputs/train.json", "--format", "json").stdout)
        out = self.path / "doubled"
        out.mkdir()
        for kind, table in kinds.items():
            for times in 1, 2:
                result = json.loads(json.dumps(made))
                result["name"], result["inputs"]["scenario"]["model"] = f"{kind}-{times}", kind
                numbers = {name: 8 if name == "gpus" else 0.25 * times for name in table}
                result["metrics"] = {n: {"p50": x} if table[n]["distribution"] else x for n, x in numbers.items()}
                result["bands"] = {}
                (out / f"{kind}-{times}.json").write_text(json.dumps(result))
        page = self.path / "doubled.html"
        nvlsim("report", out, "-o", page)
        data = data_of(page)
        self.assertEqual(data["metrics"], {kind: {n: {"unit": r["unit"], "better": r["better"]} for n, r in table.items()}
                                           for kind, table in kinds.items()})
        shown = self.open(page)
        self.assert_clean(shown)
        self.assertEqual(shown.value("document.querySelectorAll('.why b').length"), len(kinds))
        self.assertNotRegex(shown.value("document.getElementById('page').textContent"), "undefined|NaN")
        tables = shown.value("[...document.querySelectorAll('.scroll')].filter(e => e.querySelector('th:nth-child(4)')?.textContent === 'change').map(e =>"
                             "[e.previousElementSibling.textContent.split(' ')[0], [...e.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => [c.textContent, c.firstChild.className]))])")
        units = {"fraction": "%", "s": "ms", "B": "mB", "B/s": "mB/s", "W": "mW", "J": "mJ"}
        number, wrong, seen = r"\$?[0-9.]+ ?(.*)", [], 0
        for kind, cells in tables:
            self.assertEqual(len(cells), len(kinds[kind]), kind)
            for (title, first, _, change), row in zip(cells, kinds[kind].values()):
                unit = "" if row["unit"] == "USD" else units.get(row["unit"], row["unit"] or "")
                colour = "" if row["name"] == "gpus" else {"smaller": "bad", "larger": "good", None: ""}[row["better"]]
                if (re.fullmatch(number, first[0])[1], change[1], first[0][0] == "$") != (unit, colour, row["unit"] == "USD") or \
                        re.search(r"_| (W|J|g|L|usd|bytes|Bps)( |$)|(?<!per) s( |$)", title[0]):
                    wrong.append((row["name"], title[0], first[0], change))
                seen += 1
        self.assertEqual(wrong, [])
        self.assertEqual(seen, len(rows))

    def test_any_results_of_like_work_are_compared(self):
        out = self.path / "like"
        for name, sets in {"nic-800": ["/platform/fabric/nic_bandwidth=800 Gb/s"], "nic-100": ["/platform/fabric/nic_bandwidth=100 Gb/s"],
                           "chunks": ["/workload/vp=4"], "more": ["/workload/dp=4", "/workload/global_batch_size=224"]}.items():
            nvlsim("run", "llama3.1-405b-gb300-512", "--set", f"/name={name}", *(w for s in sets for w in ("--set", s)), "-o", out)
        page = self.path / "like.html"
        nvlsim("report", out / "nic-800.json", out / "nic-100.json", out / "chunks.json", out / "more.json", "-o", page)
        shown = self.open(page)
        why = shown.value("[...document.querySelectorAll('.why')].map(e => e.textContent).join('\\n')")
        self.assertRegex(why, r"nic-100 is slower, 0\.\d+ times as fast as nic-800.* it loses [0-9.]+ \w+ \([0-9.]+ %\) in pipeline wait")
        self.assertIn("What differs in the inputs: fabric NIC bandwidth 800 Gb/s → 100 Gb/s.", why)
        self.assertIn("What differs in the inputs: vp 8 → 4.", why)
        self.assertNotIn("more", why)  # another number of GPUs is other work
        self.assert_clean(shown)

    def test_scenarios_say_where_a_slow_nic_costs_time(self):
        slow = json.loads((SOURCE / "scenarios/training/llama3.1-405b-gb300-512.json").read_text())
        slow["name"] = "slow-nic"
        slow["platform"]["set"] = {"/fabric/nic_bandwidth": "100 Gb/s"}
        (self.path / "slow.json").write_text(json.dumps(slow))
        page = self.path / "slow.html"
        nvlsim("report", "llama3.1-405b-gb300-512", self.path / "slow.json", "-o", page)
        why = self.open(page).value("document.querySelector('.why').textContent")
        self.assertRegex(why, r"it loses [0-9.]+ \w+ \([0-9.]+ %\) in NIC")

    def test_links_and_latencies_of_every_request_are_drawn(self):
        page = self.path / "links.html"
        nvlsim("report", "all-gather-gb300-8-racks-flow", "llama3.3-70b-trace-gb300-rack", "-o", page)
        data = data_of(page)
        latencies = next(t for t in data["timelines"] if t["scenario"].startswith("llama"))["latencies"]
        self.assertEqual([curve["metric"] for curve in latencies], ["ttft_s", "tpot_s"])
        metrics = data["results"][1]["metrics"]
        for curve in latencies:
            self.assertEqual(curve["points"], sorted(curve["points"]))
            self.assertEqual(curve["points"][-1][1], 1)
            self.assertAlmostEqual(curve["points"][-1][0], metrics[curve["metric"]]["max"], places=9)
        shown = self.open(page)
        text = shown.value("document.getElementById('page').textContent")
        self.assertRegex(text, r"LinksPorts .*nvlink (in|out)[0-9.]+ %")
        self.assert_clean(shown)

    def test_a_shared_cluster_has_racks_jobs_gpu_hours_and_seeds(self):
        page = self.path / "shared.html"
        nvlsim("report", "gb300-14-racks-shared", "llama3.1-405b-gb300-4608-90-days", "-o", page)
        data = data_of(page)
        cluster = next(t["cluster"] for t in data["timelines"] if t["scenario"] == "gb300-14-racks-shared")
        self.assertEqual((cluster["racks"], cluster["trays_per_rack"], cluster["end_s"]), (14, 18, 30 * 86400))
        names = {cluster["jobs"][b[3]] for b in cluster["blocks"]}
        self.assertTrue({"pretraining", "ablation", "agents"} <= names)
        for rack, tray, trays, _, begin, length in cluster["blocks"]:
            self.assertTrue(rack < 14 and tray + trays <= 18 and begin + length <= 30 * 86400 + 1)
        # GPU-hours add up to all there are.
        for result, gpus, days in zip(data["results"], (14 * 72, 64 * 72), (30, 90)):
            self.assertAlmostEqual(sum(p["gpu_hours"] for p in result["breakdown"]["gpu_time"]), gpus * days * 24, delta=1e-5 * gpus * days * 24)
        lone = next(t["cluster"] for t in data["timelines"] if t["scenario"] != "gb300-14-racks-shared")
        self.assertTrue(lone["counted"] and "counted" not in cluster)
        self.assertEqual((lone["racks"], lone["end_s"]), (64, 90 * 86400))
        self.assertEqual(lone["jobs"][0], "pretraining")
        trays = 0
        for rack, tray, height, job, begin, length in lone["blocks"]:
            self.assertTrue(rack < 64 and tray + height <= 18 and begin + length <= 90 * 86400 + 1)
            trays += height * length * (job < 2)
        self.assertTrue(0.99 < trays / (64 * 16 * 90 * 86400) <= 1)
        self.assertTrue(any(lone["jobs"][b[3]].startswith("in repair: ") for b in lone["blocks"]))
        for t in data["timelines"]:
            self.assertEqual([c["points"][-1][1] for c in t["over_seeds"]], [1] * len(t["over_seeds"]))
        shown = self.open(page)
        self.assertEqual(shown.value("document.querySelectorAll('canvas.gantt').length"), 2)
        self.assertEqual(shown.value("document.querySelectorAll('svg.waterfall').length"), 2)
        colours = shown.value("(() => { const c = document.querySelector('canvas.gantt'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data,"
                              "s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()")
        self.assertGreater(colours, 5)
        text = shown.value("document.getElementById('page').textContent")
        for part in ("all GPUs", "interruptions", "Over the seeds", "ettr fraction"):
            self.assertIn(part, text)
        self.assert_clean(shown)

    def test_a_fleet_has_its_replicas_and_load_over_the_day(self):
        page = self.path / "fleet.html"
        nvlsim("report", "two-services-gb300-fleet", "-o", page)
        services = data_of(page)["timelines"][0]["services"]
        self.assertEqual(len(services), 2)
        for service in services:
            curves = {c["name"]: [y for _, y in c["points"]] for c in service["curves"]}
            self.assertEqual(set(curves), {"load (requests/s)", "ready replicas", "starting replicas", "waiting requests"})
            loads = set(curves["load (requests/s)"])
            self.assertEqual(len(loads) == 1, service["name"] == "agents", loads)  # whose load is the same all day
            self.assertGreaterEqual(min(curves["ready replicas"]), 0)
            self.assertGreater(max(curves["ready replicas"]), 0)
        shown = self.open(page)
        self.assertIn("Replicas and load", shown.value("document.getElementById('page').textContent"))
        self.assertGreaterEqual(shown.value("document.querySelectorAll('.uplot').length"), 4)
        self.assert_clean(shown)

    def test_an_operation_at_a_facility_has_the_power_of_its_step(self):
        months = json.loads((SOURCE / "scenarios/operation/llama3.1-405b-gb300-4608-90-days.json").read_text())
        months["facility"] = json.loads((SOURCE / "scenarios/facility/llama3.1-405b-gb300-site.json").read_text())["facility"]
        months["workload"]["seeds"] = 1
        (self.path / "site.json").write_text(json.dumps(months))
        nvlsim("report", self.path / "site.json", "-o", self.path / "site.html")
        power = data_of(self.path / "site.html")["timelines"][0]["power"]
        self.assertEqual([c["name"] for c in power], ["all racks, as they ask", "all racks, smoothed", "the meter"])
        shown = self.open(self.path / "site.html")
        self.assertIn("At the site over a step", shown.value("document.getElementById('page').textContent"))
        self.assert_clean(shown)

    def test_latencies_of_pools_are_of_every_request(self):
        nvlsim("report", "deepseek-r1-gb300-prefill-decode", "-o", self.path / "pools.html")
        data = data_of(self.path / "pools.html")
        curves = {c["metric"]: c["points"] for c in data["timelines"][0]["latencies"]}
        for metric in "ttft_s", "tpot_s":
            self.assertAlmostEqual(curves[metric][-1][0], data["results"][0]["metrics"][metric]["max"], places=9)
            self.assertAlmostEqual(curves[metric][49][0], data["results"][0]["metrics"][metric]["p50"], places=9)

    def test_latencies_are_of_the_requests_that_count(self):
        load = json.loads((SOURCE / "scenarios/inference/llama2-70b-server-gb200-vm.json").read_text())
        load["workload"]["load"]["requests"] = 2000  # of which the first and last tenth do not
        (self.path / "load.json").write_text(json.dumps(load))
        nvlsim("report", self.path / "load.json", "-o", self.path / "load.html")
        data = data_of(self.path / "load.html")
        curves = {c["metric"]: c["points"] for c in data["timelines"][0]["latencies"]}
        for metric in "ttft_s", "tpot_s":
            self.assertAlmostEqual(curves[metric][-1][0], data["results"][0]["metrics"][metric]["max"], places=9)

    def test_pointing_at_charts_tells_their_numbers(self):
        page = self.open()
        tip = "(t => t.style.display === 'block' ? t.textContent : '')(document.getElementById('tip'))"
        page.point_at("document.querySelector('rect.mark')")
        self.assertRegex(page.value(tip), r"GB200\ntensor cores: [0-9.]+ s, [0-9.]+ %")
        page.point_at("document.querySelector('circle.mark')")
        self.assertIn("FLOP/s", page.value(tip))
        page.point_at("document.querySelector('canvas.timeline')")
        self.assertRegex(page.value(tip), r"stage \d \(x64\)\n(forward|backward|idle)")
        before = page.value("document.querySelector('canvas.timeline').toDataURL()")
        page.value("[...document.querySelectorAll('button')].find(b => b.textContent === 'zoom in').click()")
        self.assertNotEqual(page.value("document.querySelector('canvas.timeline').toDataURL()"), before)
        self.assert_clean(page)

    def test_it_follows_the_colour_scheme_and_fits_phones_and_paper(self):
        background = "getComputedStyle(document.body).backgroundColor"
        light, dark, phone = self.open(), self.open(scheme="dark"), self.open(width=390, height=800)
        self.assertEqual(light.value(background), "rgb(255, 255, 255)")
        self.assertNotEqual(dark.value(background), light.value(background))
        self.assertLessEqual(phone.value("document.documentElement.scrollWidth"), 390)
        self.assertGreater(len(light.call("Page.printToPDF")["data"]), 50_000)
        for page in (light, dark, phone):
            self.assert_clean(page)

    def test_results_alone_give_a_page(self):
        out = self.path / "out"
        nvlsim("run", *SCENARIOS, "--set", "/simulation/seed=2", "-o", out)
        nvlsim("run", SCENARIOS[0], "--trace", out / "step.trace.json")
        results = self.path / "results.html"
        nvlsim("report", out, "-o", results)
        self.assertEqual(sorted(r["name"] for r in data_of(results)["results"]), sorted(SCENARIOS))
        page = self.open(results)
        self.assertGreater(page.value("document.querySelectorAll('rect.mark').length"), 20)
        self.assert_clean(page)

    def test_requests_show_where_they_wait(self):
        text = self.open().value("document.getElementById('page').textContent")
        self.assertIn("Where requests wait", text)
        self.assertEqual(text.count("whole request p99"), 2 + 1)  # bars of two results, a row of the comparison

    def test_sweeps_and_searches_are_drawn(self):
        sweep = {"schema": "nvlsim.sweep/1", "scenario": "llama3.1-405b-gb300-512",
                 "axes": [{"zip": {"/workload/dp": [4, 8, 16], "/platform/racks": [8, 15, 29], "/workload/global_batch_size": [128, 256, 512]}},
                          {"grid": {"/workload/precision": ["nvfp4", "fp8"]}}]}
        (self.path / "scaling.json").write_text(json.dumps(sweep))
        nvlsim("sweep", "plan", self.path / "scaling.json", "-o", self.path / "scaling")
        nvlsim("sweep", "run", self.path / "scaling")
        nvlsim("sweep", "merge", self.path / "scaling")
        found = self.path / "found.json"
        found.write_text(nvlsim("search", SOURCE / "tests/cli/inputs/train.json", "--gpus", "8", "--format", "json").stdout)
        pages = []
        for what in [self.path / "scaling"], [self.path / "scaling/results.jsonl", found]:
            out = self.path / "scaling.html"
            nvlsim("report", *what, "-o", out)
            page = self.open(out)
            pages.append(data_of(out)["sweeps"])
            text = page.value("document.getElementById('page').textContent")
            self.assertIn("step time over GPUs", text)
            for curve in "precision nvfp4", "precision fp8":
                self.assertIn(curve, text)
            self.assertNotIn("Headline", text)
            self.assertGreaterEqual(page.value("document.querySelectorAll('.uplot canvas').length"), 5)
            titles = page.value("[...document.querySelectorAll('.u-title')].map(e => e.textContent)")
            self.assertEqual(titles[:2], ["tokens per s over GPUs, and ideal", "scaling efficiency over GPUs, of the smallest size"])
            self.assert_clean(page)
        self.assertEqual(pages[0], pages[1])
        self.assertIn("train on 8 GPUs by step time", text)
        (self.path / "broken.jsonl").write_text('{"set": {}}\n')
        self.assertIn("line 1 is not a point", nvlsim("report", self.path / "broken.jsonl", code=2).stderr)

    def test_plans_are_drawn(self):
        train, serve = SOURCE / "tests/cli/inputs/train.json", SOURCE / "tests/cli/inputs/serve.json"
        questions = {"scaling": [train, "--gpus", "4,8"], "next-dollar": [train],
                     "training": ["llama3.1-8b", "--platform", "gb300-nvl72", "--tokens", "1e10", "--gpus", "8"],
                     "serving": [serve, "--gpus", "4", "--ttft", "10 s", "--tpot", "50 ms"]}
        plans = []
        for question, options in questions.items():
            plans.append(self.path / f"{question}.json")
            plans[-1].write_text(nvlsim("plan", question, *options, "--format", "json").stdout)
        out = self.path / "plans.html"
        nvlsim("report", *plans, "-o", out)
        self.assertEqual([p["question"] for p in data_of(out)["plans"]], list(questions))
        page = self.open(out)
        self.assert_clean(page)
        titles = page.value("[...document.querySelectorAll('h3, .u-title')].map(e => e.textContent)")
        for what in r"train: strong scaling$", r"tokens per s over GPUs, and ideal$", r"step time over GPUs$", r"train: what step time gains from 10 % more", \
                r"llama3.1-8b on gb300-nvl72: 8 GPUs, [0-9.]+ days$", r".* on .*: [0-9.]+ requests a second on 4 GPUs, ", r"output tokens/s a GPU against output tokens/s a user$":
            self.assertTrue(any(re.match(what, t) for t in titles), (what, titles))
        cells = page.value("[...document.querySelectorAll('td')].map(e => e.textContent)")
        self.assertNotIn("undefined", " ".join(cells))
        self.assertNotIn("NaN", " ".join(cells))
        phone = self.open(out, width=390, height=800)
        self.assertLessEqual(phone.value("document.documentElement.scrollWidth"), 390)

    def studies(self):
        """A page with a sweep of which a part cannot run, and three searches, two of them alike in all but a constraint."""
        train = SOURCE / "tests/cli/inputs/train.json"
        sweep = {"schema": "nvlsim.sweep/1", "name": "sizes", "scenario": str(train), "axes": [
            {"grid": {"/platform/fabric/nic_bandwidth": ["100 Gb/s", "200 Gb/s", "400 Gb/s"], "/workload/micro_batch_size": [16, 1, 2, 100]}}]}
        (self.path / "sizes.json").write_text(json.dumps(sweep))
        nvlsim("sweep", "plan", self.path / "sizes.json", "-o", self.path / "sizes")
        nvlsim("sweep", "run", self.path / "sizes")
        found = []
        for name, options in {"time": [], "again": ["--constraint", "tp<=4"], "mfu": ["--objective", "mfu"]}.items():
            found.append(self.path / f"{name}.json")
            found[-1].write_text(nvlsim("search", train, "--gpus", "8", "--only", "schedule", *options, "--format", "json").stdout)
        nvlsim("report", self.path / "sizes", *found, "-o", self.path / "studies.html")
        return self.path / "studies.html"

    def test_studies_say_what_they_found(self):
        page = self.open(self.studies())
        self.assert_clean(page)
        titles = page.value("[...document.querySelectorAll('h3')].map(e => e.textContent)")
        self.assertEqual(len(titles), len(set(titles)), titles)
        self.assertTrue(any(re.match(r"train on 8 GPUs by step time: [0-9.]+ \w+$", t) for t in titles), titles)
        self.assertTrue(any(re.match(r"train on 8 GPUs by MFU: [0-9.]+ %$", t) for t in titles), titles)
        heads = page.value("[...document.querySelectorAll('table')].map(t => [...t.querySelectorAll('th')].map(h => h.textContent))")
        self.assertTrue(any(h[:3] == ["", "step time", "memory peak"] for h in heads), heads)
        reasons = page.value("[...document.querySelectorAll('td')].map(e => e.textContent)")
        self.assertTrue(any(r.startswith("infeasible: ") and "micro-batch" in r for r in reasons), reasons)
        self.assertIn("does not fit in GPU memory", " ".join(reasons))
        names = page.value("[...document.querySelector('.uplot').querySelectorAll('.u-legend th')].map(e => e.textContent)")
        sizes = [int(n.split()[-1].rstrip(":")) for n in names[1:]]
        self.assertEqual(sizes, sorted(sizes))  # as numbers, not as text
        phone = self.open(self.path / "studies.html", width=390, height=800)
        self.assertLessEqual(phone.value("document.documentElement.scrollWidth"), 390)

    def test_charts_are_labelled(self):
        page = self.open()
        legend = page.value("[...document.querySelector('canvas.timeline').parentElement.querySelectorAll('.legend span')].map(e => e.textContent)")
        self.assertLessEqual({"forward", "backward"}, set(legend))
        roofs = page.value("[...document.querySelectorAll('svg text')].map(e => e.textContent)")
        for roof in r"NVFP4 10 PFLOP/s", r"NVFP4 15 PFLOP/s", r"BF16 2\.5 PFLOP/s", r"memory 8 TB/s":
            self.assertTrue(any(re.fullmatch(roof, t) for t in roofs), roof)
        self.assertGreaterEqual(page.value("document.querySelectorAll('text.disc').length"), 8)
        self.assertGreaterEqual(page.value("document.querySelectorAll('text.value').length"), 8)
        bands = "[...document.querySelectorAll('.band')].filter(e => e.getBoundingClientRect().height > 0).map(e => e.textContent)"
        self.assertTrue(all(re.fullmatch(r"\S.* … \S.*", b) for b in page.value(bands)))
        self.assertGreater(len(page.value(bands)), 10)

    def test_names_are_whole(self):
        names = [f"a-scenario-with-a-long-name-that-says-everything-about-it-{i}" for i in (1, 2)]
        for name in names:
            nvlsim("run", SOURCE / "tests/cli/inputs/train.json", "--set", f"/name={name}", "-o", self.path / "long")
        nvlsim("report", self.path / "long", "-o", self.path / "long.html")
        for width in 1100, 390:
            page = self.open(self.path / "long.html", width=width)
            shown = page.value("[...document.querySelectorAll('text.name')].map(e => [e.textContent, e.getBoundingClientRect().right])")
            self.assertTrue(shown)
            self.assertFalse([n for n, right in shown if "…" in n or right > width], shown)

    def test_paper_shows_everything(self):
        for name in (self.page, self.studies()):
            page = self.open(name, width=718, height=1000, scheme="dark")
            page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
            page.value("dispatchEvent(new Event('beforeprint'))")
            self.assertEqual(page.value("[...document.querySelectorAll('details')].filter(d => !d.open).length"), 0)
            self.assertEqual(page.value("[...document.querySelectorAll('.scroll, pre')].filter(e => e.scrollWidth > e.clientWidth + 1).length"), 0)
            self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 718)
            self.assertEqual(page.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
            page.value("dispatchEvent(new Event('afterprint'))")
            page.call("Emulation.setEmulatedMedia", media="")
            self.assertEqual(page.value("[...document.querySelectorAll('details')].filter(d => d.open).length"), 0)

    def test_markup_in_names_is_text(self):
        scenario = json.loads((SOURCE / "tests/cli/inputs/train.json").read_text())
        scenario["name"] = "</script><img src=x onerror=alert(1)>"
        file = self.path / "named.json"
        file.write_text(json.dumps(scenario))
        named = self.path / "named.html"
        nvlsim("report", file, "--sensitivity", "-o", named)
        page = self.open(named)
        self.assertEqual(page.value("document.querySelectorAll('img').length"), 0)
        self.assertIn(scenario["name"], page.value("document.body.textContent"))
        self.assertIn("change of step time", page.value("document.body.textContent"))
        self.assert_clean(page)

    def test_bad_inputs_are_refused(self):
        nvlsim("report", code=2)
        nvlsim("report", "no-such-scenario", code=2)
        nvlsim("report", SCENARIOS[0], "-o", self.path / "no/such/folder.html", code=4)
        self.assertIn("did you mean", nvlsim("report", SCENARIOS[0], "--set", "/workload/tpp=2", code=2).stderr)
        nvlsim("report", SCENARIOS[0], "--set", "/workload/recompute=none", "--set", "/workload/tp=1", "--set",
               "/workload/dp=32", "-o", self.path / "unfit.html", code=3)
        self.assert_clean(self.open(self.path / "unfit.html"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
