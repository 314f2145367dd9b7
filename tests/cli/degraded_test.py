#!/usr/bin/env python3
"""What breaks the symmetry of a job splits its classes, and only as far as needed. Usage: degraded_test.py NVLSIM SOURCE_DIR"""
import json

from program import SOURCE, Case, main, run

STRAGGLER, TRAY, POD = {"gpus": 17, "speed": 0.8}, {"racks": "0", "failed_switch_trays": 2}, {"racks": "1-2", "nic_share": 0.5}
# 1, 8 and 16 racks of a smaller job than the shipped one, so that every rank can be simulated in a test.
JOBS = {72: {"tp": 4, "pp": 2, "vp": 2, "cp": 1, "dp": 9, "global_batch_size": 36},
        576: {"tp": 2, "pp": 8, "vp": 1, "cp": 2, "dp": 18, "global_batch_size": 72},
        1152: {"tp": 4, "pp": 4, "vp": 2, "cp": 2, "dp": 36, "global_batch_size": 144}}


def result(scenario, *arguments, code=0):
    done = run("run", scenario, *arguments, "--format", "json", timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


class Degraded(Case):
    def job(self, gpus, degraded=(), *more, **workload):
        scenario = json.loads((SOURCE / "scenarios/training/llama3.1-405b-gb300-rack.json").read_text())
        scenario["workload"].update(JOBS[gpus], schedule="interleaved", **workload)
        scenario["model"] = "llama3-8b"
        scenario["platform"]["racks"] = gpus // 72
        scenario["placement"] = {"gpus_per_rack": 72}
        if degraded:
            scenario["degraded"] = list(degraded)
        self.write("job.json", scenario)
        return result(self.folder / "job.json", *more)

    def same(self, a, b):
        self.assertEqual(set(a), set(b))
        for name, x in a.items():
            if x is not None:
                self.assertAlmostEqual(x, b[name], delta=1e-9 * abs(x), msg=name)

    def folded_is_unfolded(self, gpus, degraded=(), *more, **workload):
        folded, unfolded = (self.job(gpus, degraded, *more, *fold, **workload) for fold in ((), ("--no-fold",)))
        self.assertLess(folded["simulation"]["activities"], unfolded["simulation"]["activities"])
        self.same(folded["metrics"], unfolded["metrics"])
        self.same(folded["energy"], unfolded["energy"])
        self.same(folded["breakdown"]["mean_over_gpus"], unfolded["breakdown"]["mean_over_gpus"])
        return folded

    def test_folded_is_unfolded_at_72_gpus(self):
        times = [self.folded_is_unfolded(72, d)["metrics"]["step_time_s"] for d in ((), (STRAGGLER,), (TRAY,), (STRAGGLER, TRAY))]
        self.assertLess(times[0], times[1])
        self.assertLessEqual(times[0], times[2])
        self.assertGreaterEqual(times[3], max(times[1:3]))

    def test_folded_is_unfolded_at_576_gpus(self):
        for degraded in ((), (STRAGGLER,), (TRAY, POD), (STRAGGLER, {"gpus": "300,301,550", "speed": 0.6})):
            self.folded_is_unfolded(576, degraded)

    def test_folded_is_unfolded_at_1152_gpus_of_an_oversubscribed_fabric(self):
        thin = ("--set", "/platform/fabric/oversubscription=2")
        for degraded in ((), (STRAGGLER, TRAY, POD)):
            self.folded_is_unfolded(1152, degraded, *thin)

    def test_experts_couple_replicas(self):
        times = []
        for degraded in ("[]", '[{"gpus":"30","speed":0.5}]', '[{"racks":"0","failed_switch_trays":4}]'):
            folded, unfolded = (
                result("kimi-k2-gb300-4608", "--set", "/workload/dp=72", "--set", "/workload/ep=24", "--set", "/workload/pp=8",
                       "--set", "/workload/global_batch_size=576", "--set", f"/degraded={degraded}", *fold)
                for fold in ((), ("--no-fold",)))
            self.same(folded["metrics"], unfolded["metrics"])
            times.append(folded["metrics"]["step_time_s"])
        self.assertLess(times[0], min(times[1:]))

    def test_a_straggler_splits_off_its_replica_alone(self):
        stages = self.job(576, (STRAGGLER,))["breakdown"]["by_stage"]
        # GPU 17 is in replica 4 of the first stage: 4 GPUs a replica and stage.
        self.assertEqual([n for n in stages if "like" in n], [f"stage {s} like replica 4" for s in range(8)])
        self.assertEqual(len(stages), 16)
        self.assertGreater(stages["stage 0"]["waiting_data_parallel_s"], stages["stage 0 like replica 4"].get("waiting_data_parallel_s", 0))

    def test_kernels_of_a_lone_slow_gpu_take_as_much_longer(self):
        alone = {"tp": 1, "pp": 1, "vp": 1, "cp": 1, "dp": 72, "global_batch_size": 72, "data_parallel_sharding": "replicated",
                 "sequence_parallel": False}
        usual, slow = (self.job(72, d, **alone)["breakdown"]["by_stage"] for d in ((), ({"gpus": "5", "speed": 0.5},)))
        for kind in ("gemm_s", "attention_s", "memory_bound_s", "optimizer_s"):
            self.assertAlmostEqual(slow["stage 0 like replica 5"][kind], 2 * usual["stage 0"][kind], delta=1e-9)
            self.assertAlmostEqual(slow["stage 0"][kind], usual["stage 0"][kind], delta=1e-12)

    def test_gpus_without_a_rank_do_no_harm(self):
        name = "llama3.1-405b-gb300-512"  # 64 of 72 GPUs of a rack
        usual = result(name)["metrics"]
        self.assertEqual(usual, result(name, "--set", '/degraded=[{"gpus":"64-71,136","speed":0.1}]')["metrics"])
        self.assertLess(usual["step_time_s"], result(name, "--set", '/degraded=[{"gpus":"72","speed":0.1}]')["metrics"]["step_time_s"])

    def test_331200_gpus_with_all_of_it_stay_a_handful_of_classes(self):
        usual, degraded = (result(f"llama3.1-405b-gb300-331200{n}") for n in ("", "-degraded"))
        self.assertGreater(degraded["metrics"]["step_time_s"], usual["metrics"]["step_time_s"])
        self.assertLess(degraded["simulation"]["activities"], 20 * usual["simulation"]["activities"])

    def test_serving_replicas(self):
        base = ("llama2-70b-offline-gb300-rack", "--set", "/workload/load/requests=1010", "--set", "/workload/layout/tp=2",
                "--set", "/workload/layout/replicas=36")
        times = []
        for degraded in ("[]", '[{"gpus":"11","speed":0.5}]', '[{"gpus":"11,40","speed":0.5},{"gpus":"70-71","nvlink_share":0.3}]'):
            folded, unfolded = (result(*base, "--set", f"/degraded={degraded}", *fold) for fold in ((), ("--no-fold",)))
            self.assertLess(folded["simulation"]["activities"], unfolded["simulation"]["activities"])
            for section in ("energy", "metrics"):
                a, b = folded[section], unfolded[section]
                for name in a:
                    for part in (a[name] if isinstance(a[name], dict) else [None]):
                        x, y = (a[name][part], b[name][part]) if part else (a[name], b[name])
                        if x is not None:
                            self.assertAlmostEqual(x, y, delta=1e-9 * abs(x), msg=f"{name} {part}")
            times.append(folded["metrics"]["makespan_s"])
        self.assertGreater(times[1], 1.2 * times[0])
        self.assertGreaterEqual(times[2], times[1])

    def test_flow_fidelity_takes_it_too(self):
        r = self.job(576, (STRAGGLER, POD), "--fidelity", "flow")
        self.assertGreaterEqual(r["metrics"]["step_time_s"], self.job(576, (STRAGGLER, POD))["metrics"]["step_time_s"] * (1 - 1e-9))

    def test_wrong_members_are_told_in_full(self):
        done = run("run", "llama3.1-405b-gb300-512", "--set", '/degraded=[{"gpus":"5-3","speed":0},{"racks":8,"nic_share":0.5},'
                   '{"speed":0.5},{"gpus":1},{"gpus":"x","failed_switch_trays":1},{"racks":1,"sped":0.5}]')
        self.assertEqual(done.returncode, 2)
        for part in ("expected a number, or text", "rack 8 does not exist", "either \"gpus\" or \"racks\"", "has no effect",
                     "belong to racks", 'did you mean "speed"'):
            self.assertIn(part, done.stderr)

    def test_a_share_of_one_harms_nobody(self):
        done = run("run", "train.json", "--set", '/degraded=[{"gpus": 0, "speed": 1}]', "--format", "csv", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, run("run", "train.json", "--format", "csv", cwd=self.folder).stdout))
        done = run("run", "train.json", "--set", '/degraded=[{"gpus": 0, "speed": 2}]', cwd=self.folder)
        self.assertEqual(done.stderr, "--set#/degraded/0/speed: 2 is more than 1\n")


if __name__ == "__main__":
    main()
