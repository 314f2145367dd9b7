#!/usr/bin/env python3
"""Writes the small traces of requests and jobs in this folder, in the formats of public ones, from fixed seeds.

Usage: generate.py [FOLDER]
"""
import json
import math
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent


def length(g, median, deviation, least, most):
    return max(least, min(most, round(median * math.exp(deviation * g.gauss(0, 1)))))


def conversation(g):
    now = datetime(2024, 1, 1, 12)
    yield "TIMESTAMP,ContextTokens,GeneratedTokens"
    for _ in range(600):
        now += timedelta(seconds=g.expovariate(5.5))
        yield f"{now:%Y-%m-%d %H:%M:%S.%f}0,{length(g, 900, 0.8, 3, 14000)},{length(g, 150, 0.9, 1, 1000)}"


def agents(g):
    """Sessions whose turns repeat what was said; blocks of 512 tokens, a shared system prompt of three."""
    sent, names = [], 3
    for _ in range(60):
        now, blocks, context = g.uniform(0, 120), [0, 1, 2], 1536
        for _ in range(g.randint(1, 7)):
            context += length(g, 700, 0.8, 20, 8000)
            output = length(g, 250, 0.7, 1, 2000)
            while len(blocks) * 512 < context:
                blocks.append(names)
                names += 1
            sent.append((round(now * 1000), context, output, list(blocks)))
            blocks = blocks[:context // 512]
            context += output
            now += 5 + g.expovariate(0.1)
    for at, context, output, blocks in sorted(sent):
        yield json.dumps({"timestamp": at, "input_length": context, "output_length": output, "hash_ids": blocks})


def summaries(g):
    yield "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio"
    for _ in range(400):
        prompt, output = length(g, 2700, 0.4, 200, 4000), length(g, 180, 0.6, 10, 1200)
        yield f"{prompt},{output},{prompt + output},{prompt / output}"


def queue(g):
    """A week of jobs for 8 racks of 72 GPUs: many small ones, and a few that take most of the GPU time."""
    sizes, shares = (1, 2, 4, 8, 16, 32, 64, 128, 256), (40, 10, 14, 14, 8, 6, 4, 3, 1)
    users = [f"user{u}" for u in range(1, 13)]
    now = 0.0
    yield "job,user,queue,submit_s,run_s,limit_s,gpus"
    for job in range(1, 701):
        now += g.expovariate(700 / (6.5 * 86400) * (1 + 0.5 * math.sin(2 * math.pi * now / 86400)))
        gpus = g.choices(sizes, shares)[0]
        run = length(g, 7200 if gpus < 64 else 14400, 1.3, 60, 172800)
        limit = min(259200, 1800 * math.ceil(run * (1 + g.expovariate(1)) / 1800))
        kind = "production" if gpus >= 64 and g.random() < 0.5 else "research"
        yield f"{job},{g.choices(users, range(12, 0, -1))[0]},{kind},{now:.0f},{run},{limit},{gpus}"


def bursts(g):
    now = 0.0
    yield "arrival_s,input_tokens,output_tokens"
    for _ in range(400):
        now += g.gammavariate(0.15, 1 / 0.15 / 4)
        yield f"{now:.6f},{length(g, 1500, 0.7, 10, 7500)},{length(g, 20, 1.0, 1, 500)}"


for seed, (name, lines) in enumerate({"conversation-azure-format.csv": conversation, "agents-mooncake-format.jsonl": agents,
                                      "summaries-vidur-format.csv": summaries, "code-bursts.csv": bursts,
                                      "queue-week.csv": queue}.items()):
    (folder / name).write_text("\n".join(lines(random.Random(seed))) + "\n")
