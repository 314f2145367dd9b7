#!/usr/bin/env python3
"""docs/accuracy.md states the parameters of the shipped stacks: `scripts/accuracy-tables` was run after the last fit."""
import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "accuracy-tables"
loader = importlib.machinery.SourceFileLoader("accuracy_tables", str(SCRIPT))
tables = importlib.util.module_from_spec(importlib.util.spec_from_loader("accuracy_tables", loader))
loader.exec_module(tables)


class Parameters(unittest.TestCase):
    def test_page_has_those_of_the_stacks(self):
        page = tables.PAGE.read_text(encoding="utf-8")
        self.assertEqual(tables.between(page, tables.PARAMETERS, tables.parameters()), page)

    def test_value_with_and_without_a_unit(self):
        self.assertRegex(tables.at(f"{tables.CORE}/host_per_operator"), r"^[0-9.]+ us$")
        self.assertRegex(tables.at(f"{tables.CORE}/tp_exposed"), r"^0\.[0-9]+$")


if __name__ == "__main__":
    unittest.main()
