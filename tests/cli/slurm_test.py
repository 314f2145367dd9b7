#!/usr/bin/env python3
"""Sweeps on a real Slurm, started here for the purpose. Usage: slurm_test.py NVLSIM SOURCE_DIR"""
import collections
import json
import os
import pwd
import shutil
import socket
import subprocess
import time
import unittest
from pathlib import Path

from program import NVLSIM, SOURCE, Case, main

CONFIGURATION = """ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
SlurmdPort={daemon_port}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=512 State=UNKNOWN
PartitionName=ci Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


class Slurm(Case):
    def setUp(self):
        for program in ("slurmctld", "slurmd", "sbatch", "sinfo", "scontrol"):
            if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin"):
                self.skipTest(f"{program} is not installed (Debian's slurm-wlm)")
        super().setUp()
        self.slurm = self.folder / "slurm"
        for part in ("state", "spool"):
            (self.slurm / part).mkdir(parents=True)
        self.slurm.chmod(0o755)
        (self.slurm / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], user=pwd.getpwuid(os.getuid()).pw_name, port=free_port(),
            daemon_port=free_port(), folder=self.slurm, cpus=os.cpu_count()))
        self.env = {**os.environ, "SLURM_CONF": str(self.slurm / "slurm.conf"), "PATH": os.environ.get("PATH", "") + ":/usr/sbin"}
        self.addCleanup(self.stop)
        for daemon in ("slurmctld", "slurmd"):
            done = self.tool(daemon, "-f", str(self.slurm / "slurm.conf"))
            if done.returncode != 0:
                self.skipTest(f"{daemon} does not start here: {done.stderr.strip()[-300:]}")
        if not wait_for(lambda: self.tool("sinfo", "-h", "-o", "%T").stdout.strip() == "idle", 30):
            self.skipTest("no Slurm node becomes idle here: " + (self.slurm / "slurmd.log").read_text()[-300:])

    def tool(self, *words):
        return subprocess.run(words, env=self.env, capture_output=True, text=True, cwd=self.folder, timeout=120)

    def stop(self):
        self.tool("scancel", "--state=RUNNING", "--full")
        self.tool("scontrol", "shutdown")
        pids = [self.slurm / "slurmctld.pid", self.slurm / "slurmd.pid"]
        wait_for(lambda: not any(p.exists() for p in pids), 20)

    def plan(self, scenario, axes, **more):
        (self.folder / "s.json").write_text(json.dumps({"schema": "nvlsim.sweep/1", "scenario": str(scenario), "axes": axes, **more}))
        done = self.tool(NVLSIM, "sweep", "plan", "s.json", "-o", "out")
        self.assertEqual(done.returncode, 0, done.stderr)

    def submit(self, shards):
        done = self.tool(NVLSIM, "sweep", "submit", "slurm", "out", "--shards", str(shards), "--sbatch=--mem=64")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def ended(self):
        return self.tool("squeue", "-h").stdout.strip() == ""

    def check_complete(self, points):
        lines = [json.loads(l) for f in (self.folder / "out/results").iterdir() for l in f.read_text().splitlines()]
        count = collections.Counter(l["id"] for l in lines)
        self.assertEqual((len(count), max(count.values())), (points, 1))
        merged = [json.loads(l) for l in (self.folder / "out/results.jsonl").read_text().splitlines()]
        self.assertEqual([m["index"] for m in merged], list(range(points)))

    def test_array_and_merge(self):
        self.plan(SOURCE / "scenarios/collectives/all-reduce-gb300-rack.json", [{"grid": {"/workload/gpus": list(range(2, 22))}}])
        said = self.submit(4)
        self.assertRegex(said, r"array job \d+ of 4 tasks, then merge job \d+")
        self.assertTrue(wait_for(self.ended, 120), self.tool("squeue").stdout)
        self.check_complete(20)
        self.assertEqual(len(list((self.folder / "out/results").iterdir())), 4)

    def test_a_task_killed_half_way_goes_on_when_submitted_again(self):
        self.plan("llama3.1-405b-gb300-512", [{"grid": {"/workload/global_batch_size": [896 + 128 * i for i in range(6)]}}],
                  set={"/simulation/fold": False})
        self.submit(1)
        results = self.folder / "out/results/shard-0-of-1.jsonl"
        self.assertTrue(wait_for(lambda: results.exists() and results.read_text().count("\n") >= 1))
        self.tool("scancel", "--signal=KILL", "--full", "--name=nvlsim-s")
        self.assertTrue(wait_for(self.ended, 60), self.tool("squeue").stdout)
        self.assertLess(results.read_text().count("\n"), 6)
        self.submit(1)
        self.assertTrue(wait_for(self.ended, 180), self.tool("squeue").stdout)
        self.check_complete(6)


if __name__ == "__main__":
    main()
