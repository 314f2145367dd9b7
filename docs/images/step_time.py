#!/usr/bin/env python3
"""Draws where the time of training steps goes, one bar a result.

Usage: step_time.py RESULT.json... > step-time.svg

The picture of the README, after scripts/quickstart:
    cd out/quickstart
    ../../docs/images/step_time.py llama3.1-405b-gb{200,300}-rack.json llama3.1-405b-gb{200,300}-512.json
"""
import json
import sys
from xml.sax.saxutils import escape

# Legend, colour, and the members of "breakdown/mean_over_gpus" it adds up.
PARTS = [
    ("GEMM", "#3b6fb6", ["gemm_s"]),
    ("attention", "#7fb0e0", ["attention_s"]),
    ("memory-bound", "#9cc9a3", ["memory_bound_s"]),
    ("exposed communication", "#e08a3c", ["tp_s", "cp_s", "ep_s", "pp_s", "dp_s", "waiting_data_parallel_s"]),
    ("optimizer, host", "#8a8a8a", ["optimizer_s", "host_s"]),
    ("pipeline bubble", "#d9d9d9", ["bubble_s"]),
]
WIDTH, LEFT, RIGHT, TOP, BAR, STEP = 880, 200, 80, 76, 26, 36


def text(x, y, words, anchor="start", size=13, weight="normal", fill="#222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{fill}">{escape(words)}</text>')


def bar(y, result, scale):
    """One result: its name, its parts, its step time."""
    breakdown = result["breakdown"]["mean_over_gpus"]
    out = [text(LEFT - 10, y + BAR - 8, result["name"], "end")]
    x = LEFT
    for _, colour, members in PARTS:
        width = sum(breakdown.get(m, 0) for m in members) * scale
        share = width / scale / breakdown["step_time_s"]
        out.append(f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{BAR}" fill="{colour}"/>')
        if width > 32:
            dark = colour in ("#3b6fb6", "#8a8a8a")
            out.append(text(x + width / 2, y + BAR - 9, f"{100 * share:.0f} %", "middle", 11,
                            fill="#fff" if dark else "#222"))
        x += width
    out.append(text(x + 6, y + BAR - 8, f"{breakdown['step_time_s']:.2f} s", weight="bold"))
    return out


def legend():
    out, x = [], 14
    for name, colour, _ in PARTS:
        out.append(f'<rect x="{x}" y="46" width="12" height="12" fill="{colour}"/>')
        out.append(text(x + 17, 57, name, size=12))
        x += 38 + 7.4 * len(name)
    return out


def picture(results):
    longest = max(r["breakdown"]["mean_over_gpus"]["step_time_s"] for r in results)
    height = TOP + STEP * len(results) + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="DejaVu Sans, Verdana, sans-serif">',
           f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
           text(12, 26, "Where the time of a training step goes (mean over GPUs, simulated)", size=15, weight="bold")]
    out += legend()
    for i, result in enumerate(results):
        out += bar(TOP + STEP * i, result, (WIDTH - LEFT - RIGHT) / longest)
    return "\n".join(out + ["</svg>"])


def main(files):
    if not files:
        sys.exit(__doc__)
    results = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            results.append(json.load(file))
        if results[-1].get("metrics", {}).get("step_time_s") is None:
            sys.exit(f"{name}: not the result of a training step that ran")
    print(picture(results))


if __name__ == "__main__":
    main(sys.argv[1:])
