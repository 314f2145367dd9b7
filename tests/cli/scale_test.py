#!/usr/bin/env python3
"""What a step costs to simulate does not follow the number of GPUs. Usage: scale_test.py NVLSIM SOURCE_DIR"""
import json

from program import Case, main, run


class Scale(Case):
    def test_331200_gpus_cost_what_8192_do(self):
        small, large = (json.loads(run("run", f"llama3.1-405b-gb300-{n}", "--format", "json").stdout)
                        for n in (8192, 331200))
        self.assertEqual(large["metrics"]["gpus"], 294400)
        for cost in ("activities", "peak_memory_bytes"):
            self.assertLessEqual(large["simulation"][cost], 1.5 * small["simulation"][cost])


if __name__ == "__main__":
    main()
