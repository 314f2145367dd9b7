A stack is composed of libraries, a framework and a release; show says which file each number is from.

  $ nvlsim stack list | cut -d' ' -f1 | grep -E '^(vllm|nccl|serving|megatron-lm)' | paste -sd ' '
  megatron-lm megatron-lm-2022 megatron-lm-deepspeed megatron-lm-papers megatron-lm-simumax nccl-2.29 serving serving-kernels vllm vllm-0.11 vllm-0.12 vllm-0.16 vllm-0.17 vllm-0.19 vllm-0.21 vllm-0.7 vllm-2023 vllm-dynamo vllm-rocm-0.16 vllm-rocm-0.19

Loops of post-training frameworks are listed and shown with their kinds and sources.

  $ nvlsim stack list | cut -d' ' -f1 | grep -xE 'nemo-rl|verl'
  nemo-rl
  verl

  $ nvlsim stack check verl; nvlsim stack show verl > page; sed -n 1,2p page; grep -E '^ *(change_host|broadcast_growth)' page; awk 'length > 80' page
  verl
  verl: vLLM generates, FSDP2 or Megatron-Core trains
    change_host              1 s  assumed               code
    broadcast_growth        0.03  derived             growth

  $ nvlsim stack show vllm-0.12 --platform gb300-nvl72 > page; sed -n '/^Files/,/^$/p' page; awk 'length > 80' page
  Files
    [1]  serving/serving.json
    [2]  vllm.json
    [3]  vllm.json, release 0.12
    [4]  kernels/tensorrt-llm-1.3-kernels.json
    [5]  kernels/serving-kernels.json
    [6]  collectives/nccl-2.29.json
    [7]  default
  

Times are in the unit that a person reads, and what the machine does not use is left out.

  $ sed -n '/^inference\/front_end/,/^$/p' page
  inference/front_end
    sequence_host +[0-9.]+ us  derived  \[3\] (re)
    request_host +[0-9.]+ us  derived  \[3\] (re)
    first_token_delay +[0-9.]+ ms  derived  \[3\] (re)
    first_token_iterations   +[0-9.]+  derived  \[3\] (re)
    prompt_token_delay      +[0-9.]+ us  derived  \[3\] (re)
  

  $ grep -cE '^(kernels/(h100|gb200)|collectives/domain/nvlink4|collectives/fabric/default)' page
  0
  [1]

  $ grep -E '^kernels/gb300/gemm/nvfp4' -A 3 page
  kernels/gb300/gemm/nvfp4
    tensor_rate    [0-9.]+ PFLOPS  derived  \[4\] (re)
    step_time      +[0-9.]+ .s  derived  \[4\] (re)
    fill_depth     +[0-9.]+  derived  \[4\] (re)

Without a machine, tables by hardware are named only; those of a framework's releases stand side by side.

  $ nvlsim stack show mlperf-training > page; sed -n '/^Releases/,/^$/p' page; awk 'length > 80' page
  Releases
    release                  v4\.1 +v5\.0 +v5\.1 +v6\.0 (re)
    time_factor           [0-9. ]+ (re)
    moe/time_factor       [- ]+ +[0-9.]+ (re)
    wgrad_deferral_limit  [- ]+ 0 +0 (re)
  
  $ grep -A 2 '^Tables' page
  Tables by hardware and kernel; --platform NAME prints what applies to a machine
    kernels                      blackwell, gb200, gb300, b200, b300, hopper,
                                 h100, h200, ampere, a100, rubin, default, cdna3,

The files of all parts come first, those of the kernels, too. Nothing is cut.

  $ nvlsim stack show vllm > page; sed -n 3p page; sed -n '/^Files/,/^$/p' page | grep -oE '[a-z]+(/.*|\.json)$' | sort
  Files
  collectives/nccl-2.29.json
  kernels/serving-kernels.json
  kernels/tensorrt-llm-1.3-kernels.json
  serving/serving.json
  vllm.json

  $ sed -n '/^Releases/,/^inference$/p' page | grep -oE '^  [a-z_]+' | sort -u | paste -sd ' '; grep -E '\.\.|~1|[0-9]e\+' page; awk 'length > 80' page
    band   calibration   expert_release_factor   first_token_delay   first_token_iterations   gpus   prompt_token_delay   release   release_factor   request_host   sequence_host   settings   step_host

What the details of releases say is there, too: of several releases side by side, of one below.

  $ nvlsim stack show megatron-lm | sed -n '/^Releases/,/^training$/p'
  Releases
    release                     2022  papers  simumax  deepspeed
    time_factor   [0-9. ]+ (re)
    score_passes                 4.5       -        -        4.5
    wgrad_deferral_limit           0       0        0          0
    gradient_memory_bytes          4       4        4          6
    moe/expert_output_bytes        2       2        2          2

  Release simumax also has
    b200/gemm/bf16/tensor_rate  1.164 PFLOPS
    tp_exposed                             1

  Release deepspeed also has
    fragmentation    +0[.][0-9]+ (re)
    moe/unfused_router_launches                                                 0
    dp_interference  +0[.][0-9]+ (re)
    residuals                    domain server, operands 16-bit, experts no, rows
                                                     40, low -0.1241, high 0.1783

  training

  $ cat > details.py <<'X'
  > import glob, json, os, subprocess
  > def leaves(v, path=()):
  >     if isinstance(v, dict) and "value" not in v:
  >         for k, x in v.items():
  >             if k not in ("kind", "source", "sources", "schema", "description", "like"):
  >                 yield from leaves(x, path + (k,))
  >     else:
  >         yield "/".join(path[1:] or path)
  > seen = 0
  > for file in sorted(glob.glob(os.environ["SOURCE"] + "/platforms/stacks/*.json")):
  >     details = json.load(open(file)).get("releases", {}).get("details", {})
  >     name = os.path.basename(file)[:-5]
  >     page = subprocess.run(["nvlsim", "stack", "show", name], capture_output=True, text=True, check=True).stdout
  >     if not details:
  >         continue
  >     page = page[page.index("\nReleases\n"):]
  >     parts = page.split("\n\nRelease ")
  >     lists = {p.split(" also has\n")[0]: {l.split()[0] for l in p.split("\n\n")[0].splitlines()[1:] if l} for p in parts[1:]}
  >     grid = {l.split()[0] for l in parts[0].splitlines() if l}
  >     for release, more in details.items():
  >         missing = [l for l in leaves(more) if l not in grid | lists.get(release, set())]
  >         if missing:
  >             print(name, release, missing)
  >         seen += sum(1 for l in leaves(more))
  >     if any(len(l) > 80 for l in page.splitlines()):
  >         print(name, "is wide")
  > print(seen > 100)
  > X
  $ python3 details.py
  True

Of two stacks, what differs is printed, and nothing else.

  $ nvlsim stack show vllm-0.7 vllm-0.12 > page; sed -n '1,2p; /^inference.settings/,/^$/{/./p}' page; awk 'length > 80' page
  vllm-0.7: vLLM 0.* (re)
  vllm-0.12: vLLM 0.12.* (re)
  inference/settings
                     vllm-0.7  vllm-0.12
    prefill         exclusive    chunked
    max_num_tokens      32768       8192
    max_batch_size        256       1024

  $ cat > differences.py <<'X'
  > import json, subprocess
  > def show(*what):
  >     return json.loads(subprocess.run(["nvlsim", "stack", "show", *what, "--format", "json"], capture_output=True, check=True).stdout)
  > for a, b, more in ("vllm-0.7", "vllm-0.12", []), ("megatron-lm-deepspeed", "megatron-lm-papers", []), ("vllm", "sglang", ["--platform", "nd-h100-v5"]):
  >     of = [{m["pointer"]: (m["value"], m["from"]) for m in show(n, *more)["members"]} for n in (a, b)]
  >     want = {p: [m.get(p, (None, None)) for m in of] for p in {**of[0], **of[1]} if p.count("/") > 1}
  >     want = {p: v for p, v in want.items() if v[0][0] != v[1][0]}
  >     found = show(a, b, *more)
  >     got = {m["pointer"]: list(zip(m["values"], m["from"])) for m in found["members"]}
  >     print(found["schema"], found["names"], got == want and len(got) > 3)
  > X
  $ python3 differences.py
  nvlsim.stack_difference/1 ['vllm-0.7', 'vllm-0.12'] True
  nvlsim.stack_difference/1 ['megatron-lm-deepspeed', 'megatron-lm-papers'] True
  nvlsim.stack_difference/1 ['vllm', 'sglang'] True

  $ nvlsim stack show vllm-0.12 vllm-0.12
  vllm-0.12: vLLM 0.12.* (re)
  vllm-0.12: vLLM 0.12.* (re)

  No member differs.

  $ nvlsim stack show vllm verl
  2> "verl" is the loop of a framework, which is shown alone
  [2]

  $ nvlsim stack show vllm vllm-0.12 vllm-0.19
  2> nvlsim: NAME: At Most 2 required but received 3
  2> Try "nvlsim stack show --help".
  [2]

A number that --set gives is a what-if.

  $ nvlsim stack show vllm-0.12 --set /inference/release_factor=2 --format json | python3 -c '
  > import json, sys
  > print(*((m["kind"], m["value"], m["from"]) for m in json.load(sys.stdin)["members"] if m["kind"] == "what-if"))'
  ('what-if', 2, '--set')

  $ nvlsim stack show vllm-0.12 --set /inference/release_factor=2 | grep -c 'what-if'
  1

  $ nvlsim platform show gb300-nvl72 --set '/gpu/tdp=1200 W' | grep what-if
    /gpu/tdp +1200 W +what-if +\[[0-9]+\] (re)

  $ nvlsim stack show megatron-bridge | grep scan_words
    scan_words_per_sm +[0-9.]+ Gwords/s  derived  \[[0-9]\] (re)

  $ nvlsim stack show vllm-0.12 --format json > page.json; python3 - <<'X'
  > import json
  > page = json.load(open("page.json"))
  > print(*page)
  > m = next(m for m in page["members"] if m["pointer"] == "/inference/release_factor")
  > print(m["kind"], m["source"][:20], m["from"], m["value"] > 0)
  > json.dump(page["stack"], open("merged.json", "w"))
  > X
  schema name description members stack
  derived nvlsim fit inference vllm.json, release 0.12 True

The merged stack is a stack file, with the same numbers.

  $ nvlsim stack check merged.json

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 --stack vllm-0.12 --format json | sed '/"stack"/d' > one; nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 --stack ./merged.json --format json | sed '/"stack"/d' | cmp one -

A part is swapped under the same framework and release.

  $ nvlsim run train.json --set /stack/collectives=nccl-2.30
  2> --set#/stack/collectives: unknown collectives library "nccl-2.30"; did you mean "nccl-2.29"?
  [2]

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 --set /collectives=nccl
  2> --set#/collectives: unknown collectives library "nccl"; did you mean one of nccl-2.29?
  [2]

  $ sed 's/"hop": "[0-9.]* us"/"hop": "90 us"/' $SOURCE/platforms/stacks/collectives/nccl-2.29.json > slow.json

  $ nvlsim run train.json --format json > before.json; nvlsim run train.json --set /stack/collectives=./slow.json --format json > after.json; python3 - <<'X'
  > import json
  > a, b = (json.load(open(f"{n}.json")) for n in ("before", "after"))
  > print(b["metrics"]["step_time_s"] > a["metrics"]["step_time_s"], b["inputs"]["stack"]["name"], b["inputs"]["origins"]["/stack/collectives"])
  > X
  True megatron-bridge-26.06 --set

  $ nvlsim explain train.json | grep '^constants of stack'
  constants of stack kernels/training-kernels
  constants of stack kernels/tensorrt-llm-1.3-kernels
  constants of stack collectives/nccl-2.29
  constants of stack training/megatron-core

Files of one's own: over a release, or with releases; the file and the cell are named.

  $ cat > mine.json <<'X'
  > {"schema": "nvlsim.stack/1", "description": "mine", "base": "vllm-0.12", "collectives": "nccl-2.28", "kernels": {"gb300": {"gemm": {"nvfp4": {"lunch": "1 us"}}}}}
  > X
  $ nvlsim stack check mine.json
  2> ./mine.json#/collectives: unknown collectives library "nccl-2.28"; did you mean "nccl-2.29"?
  [2]

  $ cat > ours.json <<'X'
  > {"schema": "nvlsim.stack/1", "description": "ours", "base": "vllm", "releases": {"kind": "derived", "source": "our runs",
  >  "columns": ["/inference/release_factr", "/inference/front_end/request_host"], "rows": {"1": [1, "3 us"], "2": [null, 3]}}}
  > X
  $ nvlsim stack check ours.json
  2> ./ours.json#/releases/rows/1/0: unknown member; did you mean "release_factor"?
  2> ./ours.json#/releases/rows/2/1: expected a time such as "2.5 us", found integer 3
  [2]
  $ sed -i 's/factr/factor/; s/, 3\]/, "3 us"]/' ours.json; nvlsim stack check ours.json ./ours-2.json; nvlsim stack show ./ours-1.json | grep 'release_factor'
    release_factor            1   derived  [3]
  $ nvlsim stack show ours.json | sed -n '/^Releases/,/^$/p'
  Releases
    release            1     2
    release_factor     1     -
    request_host    3 us  3 us
  
  $ nvlsim stack check ./ours-3.json
  2> ./ours-3.json: no such file
  [4]

  $ nvlsim run train.json --set /stack/base=nemo-25.05
  2> --set#/stack/base: the base of a file cannot be overridden; use the other file, or a copy of this one
  [2]

  $ nvlsim stack show vllm-0.13 
  2> unknown stack "vllm-0.13"; did you mean "vllm-0.12"?
  [2]
