#!/usr/bin/env python3
"""Fails when docs/result-format.md or the schema of results lists other metrics than the program's table, or when
code types the name of a metric outside the table.

Usage: metrics_test.py NVLSIM SOURCE_DIR [--write]     (--write renews the tables of the page and the schema)
"""
import json
import re
import subprocess
import sys
from pathlib import Path

TABLES_IN = ["src/analysis/metrics.cpp", "src/analysis/operation_metrics.cpp", "src/analysis/queue_metrics.cpp",
             "src/analysis/post_training_metrics.cpp"]
# Words that many sections use, which do not say by themselves that a metric is meant.
COMMON = {"gpus", "failures", "interruptions", "preemptions"}
# Where else code may type names of metrics, why, and which ("*": any). A new metric needs none of these.
ELSEWHERE = {
    "the value, or a factor of the formula, is counted here": {
        "src/analysis/metric_amounts.cpp": "energy_per_step_J makespan_s measured_requests requests_per_s "
                                           "slo_attained_fraction step_time_s time_in_system_s time_s tpot_s",
        "src/analysis/cluster_metrics.cpp": "ettr_fraction goodput_fraction queue_time_s "
                                            "serving_availability_fraction time_to_train_s tokens_per_s",
        "src/analysis/operation_sections.cpp": "cost_per_million_tokens_usd cost_usd ettr_fraction goodput_fraction "
                                               "mttf_s time_to_train_s tokens_per_s",
        "src/run/fleet_run.cpp": "e2e_s fleet_availability_fraction fleet_slo_attained_fraction makespan_s "
                                 "requests_per_s slo_attained_fraction ttft_s",
    },
    "one figure of a run that another simulation, search or check starts from": {
        "src/run/cluster_operation.cpp": "power_W_per_gpu",
        "src/run/cluster_power.cpp": "power_W_per_gpu tpot_s",
        "src/run/facility_run.cpp": "burnt_energy_fraction energy_per_step_J goodput_fraction "
                                    "power_cap_slowdown_fraction step_time_s",
        "src/run/operation_setup.cpp": "step_time_s",
        "src/run/plausibility.cpp": "mfu",
        "src/search/bounded_search.cpp": "mfu",
        "src/planner/next_dollar.cpp": "requests_per_s",
        "src/cli/plan.cpp": "cost_per_million_tokens_usd cost_per_step_usd requests_per_s",
        "src/planner/training_plan.cpp": "cost_to_train_usd",
    },
    "a key of another section, of a kernel or of a request": {
        "src/analysis/sections.cpp": "exposed_communication_s makespan_s step_time_s time_s",
        "src/output/explanation.cpp": "time_s",
        "src/output/kernel_text.cpp": "time_s",
        "src/output/request_lines.cpp": "e2e_s queue_s tpot_s ttft_s",
        "src/output/table.cpp": "makespan_s memory_peak_bytes step_time_s time_s",
    },
    "a key of scenarios: the rate at which requests arrive": {
        name: "requests_per_s" for name in (
            "src/cli/run.cpp", "src/planner/draft.cpp", "src/planner/run_draft.cpp", "src/planner/trace_load.cpp",
            "src/scenario/fleet_reader.cpp", "src/scenario/inference_reader.cpp")
    },
    "a column of published tables": {
        "src/calibration/fit_frameworks.cpp": "step_time_s",
        "src/calibration/fit_training.cpp": "step_time_s",
        "src/measurements/goodput_rows.cpp": "mttf_s",
        "src/measurements/inference_rows.cpp": "tokens_per_s_per_gpu",
        "src/measurements/row_runs.cpp": "output_tokens_per_s tpot_s ttft_s",
        "src/measurements/training_rows.cpp": "model_tflops_per_gpu step_time_s tokens_per_s tokens_per_s_per_gpu",
    },
    "lines of an answer, each with a title or a place of its own": {
        "src/output/megatron_log.cpp": "*",
        "src/output/pareto_text.cpp": "*",
        "src/output/post_training_plan_text.cpp": "*",
        "src/output/serving_plan_text.cpp": "*",
        "src/output/training_plan_text.cpp": "*",
        "src/output/report/plans.js": "*",
        "src/output/report/page.js": "mfu output_tokens_per_s step_time_s tokens_per_s",
    },
}
TYPED = re.compile(r"""(["'`])([A-Za-z0-9_]+)(?:\.[a-z0-9{}]+)?\1""")
COMMENT = re.compile(r"(^|\s)//.*")
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


def typed_elsewhere(root, names):
    """Names of metrics in code outside their tables and outside ELSEWHERE, and what ELSEWHERE has in vain."""
    allowed = {file: words.split() for files in ELSEWHERE.values() for file, words in files.items()}
    wrong, used = [], set()
    for path in sorted(p for top in ("src", "include") for p in (root / top).rglob("*")):
        file = path.relative_to(root).as_posix()
        if path.suffix not in (".cpp", ".hpp", ".js") or file in TABLES_IN:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for _, name in TYPED.findall(COMMENT.sub("", line)):
                if name not in names:
                    continue
                if not {name, "*"} & set(allowed.get(file, ())):
                    wrong.append(f"{file}:{number}: types the metric {name}; let it read a column of the table of metrics")
                used |= {(file, name), (file, "*")}
    return wrong + [f"{file}: ELSEWHERE lets it type {name}, and it does not" for file, words in allowed.items()
                    for name in words if (file, name) not in used]


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
    stale += typed_elsewhere(root, {row["name"] for row in rows} - COMMON)
    print("\n".join(stale), file=sys.stderr)
    return bool(stale) and not write


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), "--write" in sys.argv[3:]))
