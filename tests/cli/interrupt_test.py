#!/usr/bin/env python3
"""Interrupted runs keep what is finished. Usage: interrupt_test.py NVLSIM SOURCE_DIR"""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import sanitizer
from program import NVLSIM, Case, main, run


class Interrupt(Case):
    def start(self, micro_batches=400_000):
        """Three scenarios, the second of which takes a second or more; returns while the second is simulated."""
        self.write("first.json", self.edit("train.json"))
        self.write("second.json", self.edit("train.json", dp=1, global_batch_size=micro_batches))
        self.write("third.json", self.edit("train.json"))
        started = subprocess.Popen([str(NVLSIM), "run", "first.json", "second.json", "third.json", "--format", "json", "-o", "out"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(started.kill)
        deadline = time.monotonic() + 30
        while not (self.folder / "out" / "first.json").exists() or not self.children(started.pid):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)
        return started

    @staticmethod
    def children(pid):
        """Processes that simulate for a program. None between two scenarios, when an interrupt starts no other."""
        found = []
        for of in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(of.read_text().rpartition(")")[2].split()[1])
            except OSError:  # it ended meanwhile
                continue
            if parent == pid:
                found.append(of.parent.name)
        return found

    def check(self, started):
        out, err = started.communicate(timeout=60)
        self.assertEqual((started.returncode, sanitizer.without_notices(err)), (130, ""))
        self.assertEqual([r["name"] for r in json.loads(out)], ["first", "second"])
        self.assertEqual(sorted(f.name for f in (self.folder / "out").iterdir()), ["first.json", "second.json"])
        for f in (self.folder / "out").iterdir():
            self.assertEqual(json.loads(f.read_text())["status"], "ok")

    def test_the_program_is_signalled(self):
        started = self.start()
        started.send_signal(signal.SIGINT)
        self.check(started)

    def test_a_terminal_signals_the_group(self):
        started = self.start()
        os.killpg(started.pid, signal.SIGINT)
        self.check(started)

    def test_one_signal_ends_a_single_run(self):
        self.write("long.json", self.edit("train.json", dp=1, global_batch_size=400_000))
        for to_group in (False, True):
            started = subprocess.Popen([str(NVLSIM), "run", "long.json"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, start_new_session=True)
            self.addCleanup(started.kill)
            time.sleep(0.1)
            if to_group:
                os.killpg(started.pid, signal.SIGINT)
            else:
                started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=10)
            self.assertEqual((started.returncode, out, sanitizer.without_notices(err)), (-signal.SIGINT, "", ""))

    def answer_after(self, sent, *words, wait=0.3):
        """What a command prints as JSON after a signal."""
        started = subprocess.Popen([str(NVLSIM), *words, "--format", "json"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(started.kill)
        while not (Path(f"/proc/{started.pid}/status").exists() and self.catches(started.pid)):
            time.sleep(0.01)
        time.sleep(wait)
        started.send_signal(sent)
        out, err = started.communicate(timeout=120)
        self.assertEqual((started.returncode, sanitizer.without_notices(err)), (130, ""))
        return json.loads(out)

    def test_a_search_prints_what_it_has(self):
        offline = self.edit("serve.json")
        offline["workload"]["load"]["requests"] = 200_000
        self.write("long.json", offline)
        for sent in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(sent.name):
                found = self.answer_after(sent, "search", "long.json", "--gpus", "8")
                self.assertEqual(found["candidates"], found["found"] + sum(p["count"] for p in found["pruned"]))
                self.assertIn("interrupted: not tried", [p["reason"] for p in found["pruned"]])

    def test_a_sweep_counts_what_it_has(self):
        self.write("long.json", self.edit("train.json", dp=1, global_batch_size=200_000))
        self.write("sweep.json", {"schema": "nvlsim.sweep/1", "scenario": "long.json",
                                  "axes": [{"grid": {"/workload/seq_length": list(range(1024, 9216, 64))}}]})
        self.assertEqual(run("sweep", "plan", "sweep.json", "-o", "folder", cwd=self.folder).returncode, 0)
        for sent in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(sent.name):
                counts = self.answer_after(sent, "sweep", "run", "folder", "--jobs", "1")
                self.assertEqual(counts["failed"], 0)
                self.assertLess(counts["run"], counts["points"])

    def test_a_plan_with_a_demand_says_what_it_knows(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(sent.name):
                begin = time.monotonic()
                plan = self.answer_after(sent, "plan", "serving", "deepseek-r1", "--platform", "gb300-nvl72", "--users", "50000", "--input", "1024",
                                         "--output-tokens", "1024", "--ttft", "2 s", "--tpot", "33.3 ms", wait=3)
                self.assertLess(time.monotonic() - begin, 30)
                answer = plan["answers"][0]
                self.assertTrue(answer["interrupted"])
                self.assertFalse(answer["demand"]["met"])
                self.assertGreater(answer["demand"]["by_rates"]["gpus"], 0)

    @staticmethod
    def catches(pid):
        """Whether a process has a handler for SIGINT."""
        caught = re.search(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())[1]
        return int(caught, 16) >> (signal.SIGINT - 1) & 1

    def test_a_second_signal_ends_it_at_once(self):
        started = self.start(micro_batches=4_000_000)
        while started.poll() is None:  # two signals that come before the process gets a core are one
            started.send_signal(signal.SIGINT)
            time.sleep(0.05)
        started.communicate(timeout=60)
        self.assertEqual(started.returncode, -signal.SIGINT)
        self.assertTrue(json.loads((self.folder / "out" / "first.json").read_text()))


if __name__ == "__main__":
    main()
