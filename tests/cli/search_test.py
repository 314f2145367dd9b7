#!/usr/bin/env python3
"""What a search says of a layout is what a run of it gives. Usage: search_test.py NVLSIM SOURCE_DIR"""
import json
import subprocess

from program import NVLSIM, Case, main, run


def search(*arguments, cwd=None):
    done = run("search", *arguments, "--format", "json", cwd=cwd, timeout=300)
    return done.returncode, json.loads(done.stdout)


def flat(metrics):
    out = {}
    for name, v in metrics.items():
        out.update({f"{name}.{k}": x for k, x in v.items()} if isinstance(v, dict) else {name: v})
    return out


class Search(Case):
    def agree_with_run(self, scenario, found, fixed=()):
        """Runs a few of the layouts, from both lists."""
        layouts = found["best"][:2] + found["front"][-3:]
        self.assertTrue(layouts)
        for layout in layouts:
            sets = [x for pointer, v in layout["set"].items() for x in ("--set", f"{pointer}={json.dumps(v)}")]
            done = run("run", scenario, *fixed, *sets, "--format", "json", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            metrics = flat(json.loads(done.stdout)["metrics"])
            for name, v in layout["metrics"].items():
                if v is None:
                    self.assertIsNone(metrics.get(name), name)
                else:
                    self.assertAlmostEqual(v, metrics[name], delta=1e-9 * max(abs(v), abs(metrics[name])), msg=name)

    def adds_up(self, found):
        self.assertEqual(found["candidates"], found["found"] + sum(p["count"] for p in found["pruned"]))

    def test_dense_training(self):
        fixed = ("--set", "/workload/global_batch_size=64", "--set", "/model=llama3-8b")
        code, found = search("llama3.1-405b-gb300-rack", "--gpus", 16, *fixed, "--only", "recompute=none,full", "--only", "cp=1,2")
        self.assertEqual(code, 0)
        self.adds_up(found)
        self.agree_with_run("llama3.1-405b-gb300-rack", found, fixed)

    def test_training_across_racks_with_experts(self):
        only = [x for name in ("recompute", "data_parallel_sharding", "offload_layers", "vp", "micro_batch_size", "tp", "cp")
                for x in ("--only", name)]
        code, found = search("kimi-k2-gb300-4608", "--gpus", 576, *only, "--set", "/workload/global_batch_size=1152",
                             "--objective", "mfu", "--pareto", "bubble_fraction")
        self.assertEqual(code, 0)
        self.adds_up(found)
        self.assertTrue(found["front"])
        self.agree_with_run("kimi-k2-gb300-4608", found, ("--set", "/workload/global_batch_size=1152"))

    def test_serving(self):
        fixed = ("--set", "/workload/load/requests=2048")
        code, found = search("llama2-70b-offline-gb300-rack", "--gpus", 8, *fixed, "--only", "max_num_tokens",
                             "--only", "max_batch_size=64,2048", "--pareto", "ttft_s.p99")
        self.assertEqual(code, 0)
        self.adds_up(found)
        self.agree_with_run("llama2-70b-offline-gb300-rack", found, fixed)

    def test_is_the_same_on_any_number_of_threads(self):
        arguments = ("train.json", "--gpus", 4, "--only", "recompute", "--top", 5)
        one, three = (search(*arguments, "--jobs", n, cwd=self.folder)[1] for n in (1, 3))
        for r in (one, three):
            del r["simulation"]
        self.assertEqual(one, three)

    def test_takes_the_names_that_the_scenario_uses(self):
        scenario = self.edit("train.json")
        scenario["workload"]["tensor_model_parallel_size"] = scenario["workload"].pop("tp", 1)
        self.write("long.json", scenario)
        _, found = search("long.json", "--gpus", 2, "--only", "recompute", "--only", "offload_layers", cwd=self.folder)
        self.agree_with_run("long.json", found)

    def test_constraints_hold_and_are_counted(self):
        code, found = search("train.json", "--gpus", 8, "--only", "recompute", "--constraint", "tp<=2",
                             "--constraint", "memory_peak_bytes<1e11", "--top", 100, cwd=self.folder)
        self.assertEqual(code, 0)
        self.adds_up(found)
        self.assertIn("constraint tp<=2", [p["reason"] for p in found["pruned"]])
        for layout in found["best"]:
            self.assertLessEqual(layout["layout"]["tp"], 2)
            self.assertLess(layout["metrics"]["memory_peak_bytes"], 1e11)

    def test_best_is_best_and_nothing_beats_the_front(self):
        _, found = search("train.json", "--gpus", 4, "--only", "offload_layers", "--top", 100000, cwd=self.folder)
        self.assertEqual(len(found["best"]), found["found"])
        times = [b["metrics"]["step_time_s"] for b in found["best"]]
        self.assertEqual(times, sorted(times))
        pairs = {tuple(b["metrics"][m] for m in found["front_metrics"]) for b in found["best"]}
        front = [tuple(f["metrics"][m] for m in found["front_metrics"]) for f in found["front"]]
        unbeaten = {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}
        self.assertLessEqual(unbeaten, set(front))
        # Times that are equal in the 12 digits printed may differ in the next.
        beaten = [p for p in front if any(q[0] < p[0] * (1 - 1e-11) and q[1] <= p[1] for q in pairs)]
        self.assertEqual(beaten, [])

    def test_nothing_found_is_exit_code_3_with_reasons(self):
        code, found = search("llama3.1-405b-gb300-rack", "--gpus", 1)
        self.assertEqual((code, found["best"]), (3, []))
        self.assertIn("does not fit in GPU memory", [p["reason"] for p in found["pruned"]])

    def test_the_command_runs_as_copied(self):
        (self.folder / "a folder").mkdir()
        self.write("it's.json", self.edit("train.json"))
        for name, gpus, options in (("train.json", 8, []), ("serve.json", 4, []), ("it's.json", 8, []),
                                    ("llama3.1-405b-gb300-rack", 72, ["--only", "schedule", "--only", "recompute"])):
            sets = ["--set", "/platform/fabric/nic_bandwidth=200 Gb/s", "--set", "/simulation/seed=3"]
            done = run("search", name, "--gpus", gpus, "--top", 1, *options, *sets, cwd=self.folder, timeout=300)
            command = done.stdout.split("to run the best layout\n")[1]
            _, found = search(name, "--gpus", gpus, "--top", 1, *options, *sets, cwd=self.folder)
            for text in command.replace("nvlsim run", f"{NVLSIM} run"), found["command"].replace("nvlsim run", f"{NVLSIM} run"):
                ran = subprocess.run(["bash", "-c", text.strip() + " --format json"], cwd=self.folder, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, text + ran.stderr)
                result = json.loads(ran.stdout)
                self.assertAlmostEqual(result["metrics"][found["objective"]] / found["best"][0]["metrics"][found["objective"]], 1, delta=1e-9)
                self.assertEqual(result["inputs"]["scenario"]["simulation"]["seed"], 3)
                self.assertNotIn("=null", text)
                self.assertNotIn("/workload/ep=1 ", text)  # of a dense model

    def test_every_metric_is_an_objective_or_a_constraint(self):
        metrics = json.loads(run("metrics", "--format", "json").stdout)
        priced = ["--set", "/platform/price/per_gpu=4 USD/h"]
        for kind, name, more in (("training", "train.json", ["--gpus", 1, "--only", "schedule", "--only", "micro_batch_size", "--set", "/workload/token_budget=1e12"]),
                                 ("inference", "serve.json", ["--gpus", 1, "--only", "max_batch_size", "--only", "max_num_tokens"])):
            always = []  # of every result of the kind: all constraints at once
            for m in (m for m in metrics if m["kind"] == kind):
                metric = m["name"] + (".p99" if m["distribution"] else "")
                unit = {"s": " h", "B": " TB", "W": " MW", "J": " MWh", "USD": " USD", "tok/s": " tok/s", "req/s": " req/s", "TFLOP/s": " EFLOP/s"}.get(m["unit"], "")
                constraint = ["--constraint", f"{metric}<1e9{unit}"]
                if m["null_when"] is None and m["scenarios"] == kind:
                    always += constraint
                else:
                    done = run("search", name, *more, *priced, "--top", 1, *constraint, cwd=self.folder)
                    self.assertIn(done.returncode, (0, 3), (metric, done.stderr))
                done = run("search", name, *more, *priced, "--top", 1, "--objective", metric, cwd=self.folder)
                if m["better"] == "neither" or (m["better"] is None):
                    self.assertIn("neither larger nor smaller", done.stderr, metric)
                elif m["scenarios"] == kind:
                    self.assertEqual(done.returncode, 0, (metric, done.stderr))
            done = run("search", name, *more, *priced, "--top", 1, *always, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertGreater(len(always), 20)

    def test_constraints_on_what_is_not_known_are_told(self):
        done = run("search", "train.json", "--gpus", 8, "--constraint", "cost_per_step_usd<5 USD", "--constraint", "time_to_train_s<30 d",
                   "--constraint", "memory_peak_bytes<3 s", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        for part in "the platform has no price", "needs /workload/token_budget", "a unit of memory_peak_bytes, such as GB":
            self.assertIn(part, done.stderr)
        done = run("search", "train.json", "--gpus", 8, "--objective", "zzzzzz", cwd=self.folder)
        self.assertIn("known: step_time_s, tokens_per_s", done.stderr)

    def test_wrong_options_are_told_at_once(self):
        done = run("search", "train.json", "--gpus", 8, "--objective", "step_tim_s", "--constraint", "mfu>3%",
                   "--constraint", "memory<1", "--pareto", "cost_per_step_usd", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        for part in ('did you mean "step_time_s"', "without a per cent sign", 'unknown parameter or metric "memory"', "price"):
            self.assertIn(part, done.stderr)
        for name, front in ("train.json", "memory_peak"), ("serve.json", "ttft_s.p5"):
            done = run("search", name, "--gpus", 8, "--only", "tq=1", "--only", "tp=x", "--pareto", front, cwd=self.folder)
            self.assertEqual(done.returncode, 2)
            for part in 'unknown parameter "tq"', 'tp: "x" is not a whole number', f'unknown metric "{front}"':
                self.assertIn(part, done.stderr)

    def test_words_that_a_parameter_cannot_be_are_told(self):
        done = run("search", "train.json", "--gpus", 8, "--only", "schedule=interleavd", "--only", "sequence_parallel=yes",
                   "--only", "data_parallel_sharding=zero1", "--only", "recompute=moe", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        for part in ('schedule: "interleavd" is not one of', 'did you mean "interleaved"', 'sequence_parallel: "yes" is not one of true, false',
                     '"zero1" is not one of replicated', 'recompute: "moe" is not one of'):
            self.assertIn(part, done.stderr)
        modules = [search("train.json", "--gpus", 8, "--only", f"recompute={m}", cwd=self.folder)[1]["best"]
                   for m in ("core_attn+mlp", "mlp+core_attn")]
        self.assertEqual(*modules)


if __name__ == "__main__":
    main()
