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
from program import NVLSIM, Case, main


class Interrupt(Case):
    def start(self, micro_batches=400_000):
        """Three scenarios, the second of which takes a second or more; returns once the first is written."""
        self.write("first.json", self.edit("train.json"))
        self.write("second.json", self.edit("train.json", dp=1, global_batch_size=micro_batches))
        self.write("third.json", self.edit("train.json"))
        started = subprocess.Popen([str(NVLSIM), "run", "first.json", "second.json", "third.json", "--format", "json", "-o", "out"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(started.kill)
        deadline = time.monotonic() + 30
        while not (self.folder / "out" / "first.json").exists() and time.monotonic() < deadline:
            time.sleep(0.002)
        return started

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

    def test_a_search_prints_what_it_has(self):
        offline = self.edit("serve.json")
        offline["workload"]["load"]["requests"] = 200_000
        self.write("long.json", offline)
        started = subprocess.Popen([str(NVLSIM), "search", "long.json", "--gpus", "8", "--format", "json"], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(started.kill)
        while not (Path(f"/proc/{started.pid}/status").exists() and self.catches(started.pid)):
            time.sleep(0.01)
        time.sleep(0.3)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=120)
        self.assertEqual((started.returncode, sanitizer.without_notices(err)), (130, ""))
        found = json.loads(out)
        self.assertEqual(found["candidates"], found["found"] + sum(p["count"] for p in found["pruned"]))
        self.assertIn("interrupted: not tried", [p["reason"] for p in found["pruned"]])

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
