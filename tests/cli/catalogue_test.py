#!/usr/bin/env python3
"""Figures of the shipped racks. Usage: catalogue_test.py NVLSIM SOURCE_DIR"""
import json

from program import SOURCE, Case, main, run


def shown(kind, name, *options):
    return json.loads(run(kind, "show", name, "--format", "json", *options).stdout)


class Catalogue(Case):
    def test_a_gb300_rack_is_18_vms_of_4_gpus(self):
        # Azure ND GB300 v6; NVIDIA's data sheet: 1,440 PFLOPS of FP4 are sparse, 130 TB/s of NVLink both ways.
        t = shown("platform", "gb300-nvl72")["totals"]
        self.assertEqual((t["racks"], t["vms"], t["gpus"], t["cpus"]), (1, 18, 72, 36))
        self.assertEqual(t["nvlink_bandwidth_Bps"], 1.296e14)
        self.assertEqual(t["fp4_dense_flops"], 1.08e18)
        self.assertEqual(t["fp4_sparse_flops"], 1.44e18)
        self.assertEqual(t["scale_out_bandwidth_Bps_per_gpu"], 1e11)
        self.assertEqual(t["hbm_nominal_bytes"], 72 * 288e9)
        self.assertEqual(t["hbm_usable_bytes"], 72 * 298013687808)
        self.assertGreater(t["lpddr_bytes"], 1.7e13)

    def test_a_gb200_rack_has_two_thirds_of_the_dense_fp4_and_half_the_network(self):
        t = shown("platform", "gb200-nvl72")["totals"]
        self.assertEqual((t["vms"], t["gpus"], t["cpus"]), (18, 72, 36))
        self.assertEqual(t["nvlink_bandwidth_Bps"], 1.296e14)
        self.assertEqual(t["fp4_dense_flops"], 7.2e17)
        self.assertEqual(t["fp4_sparse_flops"], 1.44e18)
        self.assertEqual(t["scale_out_bandwidth_Bps_per_gpu"], 5e10)
        self.assertEqual(t["hbm_usable_bytes"], 72 * 198674743296)

    def test_gpu_peaks_are_dense_and_by_precision(self):
        dense = shown("platform", "gb300-nvl72")["gpu"]["dense_flops"]
        self.assertEqual(dense["nvfp4"], 15e15)
        self.assertEqual(dense["fp8"], 5e15)
        self.assertEqual(dense["int8"], 165e12)

    def test_overrides_reach_the_page(self):
        t = shown("platform", "gb300-nvl72", "--set", "/fabric/nic_bandwidth=400 Gb/s", "--set", "/rack/vms=9")["totals"]
        self.assertEqual((t["gpus"], t["scale_out_bandwidth_Bps_per_gpu"]), (36, 5e10))

    def test_what_ships_is_good(self):
        for kind in ("platform", "stack", "model", "scenario"):
            names = [x["name"] for x in json.loads(run(kind, "list", "--format", "json").stdout)]
            self.assertGreater(len(names), 2)
            checked = run(kind, "check", *names)
            self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""), kind)

    def test_the_pages_count_and_name_what_ships(self):
        platforms = json.loads(run("platform", "list", "--format", "json").stdout)
        self.assertIn(f"`nvlsim platform list` lists {len(platforms)} platforms", (SOURCE / "README.md").read_text())
        stacks = sorted((SOURCE / "platforms" / "stacks").rglob("*.json"))
        self.assertIn(f"({len(stacks)} files instead of 41", (SOURCE / "CHANGELOG.md").read_text())
        tree = (SOURCE / "docs" / "stack-format.md").read_text().split("```")[1].split()
        for file in stacks:
            with self.subTest(stack=file.stem):
                self.assertTrue({file.name, file.stem} & set(tree))


if __name__ == "__main__":
    main()
