#!/usr/bin/env python3
"""Fails when docs/result-format.md or the schema of results lists other metrics than the program's table, or when
code that picks metrics by name names one that the table lacks.

Usage: metrics_test.py NVLSIM SOURCE_DIR [--write]     (--write renews the tables of the page and the schema)
"""
import json
import re
import subprocess
import sys
from pathlib import Path

# Where names of metrics are typed: a list of them, or calls with one.
PICKED = {
    "src/search/search_serving.cpp": re.compile(r'\bset\("([\w.]+)"'),
    "src/output/sweep_table.cpp": re.compile(r'"([\w.]+)"(?=[^;{}]*\};)'),
}
PAGE, SCHEMA = "docs/result-format.md", "docs/schemas/result.schema.json"
TABLES = re.compile(r"(<!-- metrics: from `nvlsim metrics --format markdown` -->\n).*?(<!-- end of metrics -->)", re.DOTALL)


def table_of(nvlsim, form):
    return subprocess.run([nvlsim, "metrics", "--format", form], capture_output=True, text=True, check=True).stdout


def renewed_page(text, markdown):
    return TABLES.sub(lambda m: f"{m[1]}\n{markdown}\n{m[2]}", text)


def renewed_schema(text, rows):
    """The schema with a property for each metric: its type by the table, its unit in the description."""
    lines = {}
    for row in rows:
        kind = "distribution" if row["distribution"] else "number"
        about = f', "description": {json.dumps(row["unit"])}' if row["unit"] else ""
        lines[row["name"]] = f'            {json.dumps(row["name"])}: {{"$ref": "#/$defs/{kind}"{about}}}'
    properties = '          "properties": {\n' + ",\n".join(lines.values()) + "\n          },\n"
    return re.sub(r'(        "metrics": \{\n          "type": "object",\n)(?:          "properties": \{\n.*?\n          \},\n)?',
                  lambda m: m[1] + properties, text, flags=re.DOTALL)


def main(nvlsim, root, write):
    rows = json.loads(table_of(nvlsim, "json"))
    stale = []
    for name, renew in (PAGE, lambda t: renewed_page(t, table_of(nvlsim, "markdown"))), \
                       (SCHEMA, lambda t: renewed_schema(t, rows)):
        text = (root / name).read_text(encoding="utf-8")
        fresh = renew(text)
        if not all(row["name"] in fresh for row in rows):
            stale.append(f"{name}: lacks the place for metrics")
        if fresh != text:
            stale.append(f"{name}: is not what the table of metrics says; renew it: {Path(__file__).name} NVLSIM SOURCE_DIR --write")
            if write:
                (root / name).write_text(fresh, encoding="utf-8")
    known = {row["name"] for row in rows}
    for name, typed in PICKED.items():
        picked = typed.findall((root / name).read_text(encoding="utf-8"))
        wrong = [n for n in picked if n.split(".")[0] not in known]
        stale += [f"{name}: no metric is called {n}" for n in wrong] if picked else [f"{name}: picks no metrics"]
    print("\n".join(stale), file=sys.stderr)
    return bool(stale) and not write


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), "--write" in sys.argv[3:]))
