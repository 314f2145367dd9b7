One kernel of each class: what it is, how long it takes, and where that comes from.

  $ for c in "gemm --m 64 --n 4096 --k 4096 --precision nvfp4" "gemm --m 64 --n 4096 --k 4096 --sparse" "attention --heads 64 --kv-heads 8 --seq 8192" "attention --heads 64 --seq 8192 --window 1024 --backward" "sparse-attention --tokens 8192 --heads 128 --keys 2048" "indexer --tokens 8192 --heads 64 --scored 4096 --precision fp8" "decode --batch 64 --heads 64 --kv-heads 8 --context 8192" "mla --batch 64 --heads 128 --context 8192 --precision fp8" "mla-context --heads 128 --seq 8192 --precision fp8" "absorb --part values --tokens 64 --heads 128" "moe --tokens 4096 --experts 256 --topk 8 --hidden 7168 --inter 2048 --ranks 32" "scan --tokens 8192 --heads 128 --head-dim 64" "scan --delta --backward --tokens 8192 --heads 32" "stream --bytes 1e9" "elementwise --op amax --elements 1e9" "copy --path nvme_read --bytes 1e9"; do nvlsim kernel $c --platform gb300-nvl72 | grep -E '^(kernel|time|power|formula) ' | awk '{ print $1, $2 }' | sed -E 's/^(time|power) .*/\1/' | tr '\n' ' '; echo; done
  kernel gemm/nvfp4 time power formula launch
  kernel gemm/bf16 time power formula launch
  kernel attention time power formula launch
  kernel attention time power formula launch
  kernel attention time power formula launch
  kernel attention time power formula launch
  kernel decode time power formula launch
  kernel mla_decode/fp8 time power formula launch
  kernel mla_context/fp8 time power formula launch
  kernel absorb_values/bf16 time power formula launch
  kernel moe/deepgemm_fp8_block time power formula launch
  kernel stream time power formula kernels
  kernel stream time power formula kernels
  kernel stream time power formula launch
  kernel amax time power formula launch
  kernel stream time power formula launch

Gradients cost more than the forward, a window less than the whole, and a narrower format less.

  $ cat > grows.py <<'EOF'
  > import json, subprocess
  > def time(words):
  >     out = subprocess.run(["nvlsim", "kernel", *words.split(), "--platform", "gb300-nvl72", "--format", "json"], capture_output=True, check=True)
  >     return json.loads(out.stdout)["time_s"]
  > for less, more in [("scan --tokens 8192 --heads 128", "--backward"), ("attention --heads 64 --seq 8192", "--backward"),
  >                    ("attention --heads 64 --seq 8192", "--full"), ("attention --heads 64 --seq 8192 --window 1024", "--window 8192"),
  >                    ("gemm --m 8192 --n 8192 --k 8192 --precision fp8", "--precision bf16"),
  >                    ("decode --heads 8 --context 65536 --batch 64 --precision fp8", "--precision bf16")]:
  >     option = more.split()[0]
  >     rest = less.split(option)[0] if option in less else less
  >     print(more, time(rest + " " + more) > time(less))
  > EOF
  $ python3 grows.py
  --backward True
  --backward True
  --full True
  --window 8192 True
  --precision bf16 True
  --precision bf16 True

A band comes from measured kernels; scans have none, and without what they reach they are said to be a roofline.

  $ nvlsim kernel gemm --m 64 --n 4096 --k 4096 --platform gb200-nvl72 | tr -s ' \n' ' ' | grep -c '90 % of measurements .*(left out of the fit: gemm/bf16 on gb200'
  1
  $ nvlsim kernel scan --tokens 8192 --heads 128 --platform gb200-nvl72 --stack tensorrt-llm-1.3-kernels | grep -E -A1 '^(90|note)'
  note                   stack tensorrt-llm-1.3-kernels has no scan parameters:
                         uses the roofline

No line is wider than a terminal of 80 columns.

  $ for c in "gemm --m 64 --n 4096 --k 4096 --precision nvfp4" "attention --heads 64 --seq 8192" "mla --batch 64 --heads 128 --context 8192" "moe --family cutlass_nvfp4 --tokens 4096 --experts 256 --topk 8 --hidden 7168 --inter 2048" "decode --batch 64 --heads 64 --context 8192" "scan --tokens 8192 --heads 128" "copy --bytes 1e9"; do for p in gb300-nvl72 vera-rubin-nvl72; do nvlsim kernel $c --platform $p --set /gpu/tdp=2.5kW; done; done | awk 'length > 80'

A what-if on the data sheet carries measured rates along, never beyond the peak, and says so.

  $ cat > share.py <<'EOF'
  > import json, subprocess, sys
  > out = subprocess.run("nvlsim kernel gemm --m 16384 --n 16384 --k 16384 --platform gb300-nvl72 --format json".split() + sys.argv[1:], capture_output=True, check=True)
  > d = json.loads(out.stdout)
  > print(round(d["share_of_dense_peak"], 2), d["notes"])
  > EOF
  $ python3 share.py
  0.76
  $ python3 share.py --set /gpu/peaks/bf16/dense=5PFLOPS --set /gpu/peaks/bf16/sparse=10PFLOPS
  0.76 dense peaks against those of the measured gb300: bf16 x2; tensor rates in proportion
  $ python3 share.py --set /gpu/tdp=9kW
  1.0 tdp less idle power 8790 W instead of 1190 W: tensor rates by (7.39)^0.5, none beyond its dense peak
  $ python3 share.py --set /gpu/sm_count=100
  0.76 100 SMs instead of 148: tensor rates are those of the whole GPU and do not follow, nor do exponentials; set /gpu/peaks and /gpu/exponentials too

Pointers may begin with the file they reach into, as in a scenario.

  $ for s in /kernels/gb300/gemm/bf16/tensor_rate=1PFLOPS /stack/kernels/gb300/gemm/bf16/tensor_rate=1PFLOPS /gpu/peaks/bf16/dense=5PFLOPS /platform/gpu/peaks/bf16/dense=5PFLOPS; do python3 share.py --set $s --set /gpu/peaks/bf16/sparse=10PFLOPS | cut -c 1-4; done
  0.4
  0.4
  0.76
  0.76
  $ nvlsim kernel gemm --m 1 --n 1 --k 1 --platform gb300-nvl72 --set /platform/gpu/hbm_bandwidht=1TB/s --set /stack/kernel/x=1
  2> --set#/platform/gpu/hbm_bandwidht: unknown member; did you mean "hbm_bandwidth"?
  2> --set#/stack/kernel/x: unknown member; did you mean "kernels"?
  [2]

What is wrong is said, all of it at once.

  $ nvlsim kernel moe --family cutlas_nvfp4 --tokens 1 --experts 8 --topk 9 --ranks 3 --hidden 64 --inter 64 --platform gb300-nvl72
  2> --ranks#: 8 experts are not divisible by 3 ranks
  2> --topk#: 9 experts per token, but only 8 experts
  2> stack tensorrt-llm-1.3-kernels#/kernels: no parameters "moe/cutlas_nvfp4" for gb300; did you mean "cutlass_nvfp4"?
  [2]
  $ nvlsim kernel attention --heads 64 --kv-heads 7 --seq 128 --queries 256 --full --window 3 --precision nvfp4 --platform gb300-nvl7
  2> --kv-heads#: 64 query heads are not divisible by 7 KV heads
  2> --platform#: unknown platform "gb300-nvl7"; did you mean "gb300-nvl72"?
  2> --precision#: attention runs in bf16, fp16 or fp8, not in nvfp4
  2> --queries#: 256 queries, but only 128 tokens in the sequence
  2> --window#: --window cannot be combined with --full
  [2]
  $ nvlsim kernel mla-context --heads 1.5 --seq 128 --queries 129 --platform gb300-nvl72
  2> --heads#: 1.5 is not a whole number
  2> --queries#: 129 queries, but only 128 tokens in the sequence
  [2]
  $ nvlsim kernel decode --heads 4 --kv-heads 8 --context 10 --platform gb300-nvl72
  2> --kv-heads#: 8 KV heads, but only 4 query heads
  [2]
  $ nvlsim kernel scan --tokens 64 --heads 12 --groups 8 --chunk 128 --platform gb300-nvl72
  2> --chunk#: 128 tokens per chunk, but only 64 tokens
  2> --groups#: 12 heads are not divisible by 8 groups
  [2]
  $ nvlsim kernel indexer --tokens 64 --heads 4 --scored 100 --chosen 200 --platform gb300-nvl72
  2> --chosen#: 200 keys chosen, but only 100 scored
  [2]
  $ nvlsim kernel indexer --tokens 64 --heads 4 --scored 100 --chosen 0 --platform gb300-nvl72
  2> nvlsim: --chosen: 0 is less than 1
  2> Try "nvlsim kernel indexer --help".
  [2]
  $ nvlsim kernel moe --family cutlass_nvfp4 --tokens 1 --experts 8 --topk 0 --hidden 64 --inter 64 --platform gb300-nvl72
  2> nvlsim: --topk: 0 is less than 1
  2> Try "nvlsim kernel moe --help".
  [2]
  $ nvlsim kernel sparse-attention --tokens 1 --heads 8 --keys 5 --v-dim 600 --platform gb300-nvl72
  2> --v-dim#: 600 elements per value exceed the 576 elements of the vector shared with the key
  [2]
  $ nvlsim kernel gemm --m 1 --n 1 --k 1 --groups 2.5 --weights int4 --precision fp8 --platform ndm-a100-v4
  2> --groups#: 2.5 is not a whole number
  2> --precision#: --weights int4 uses 16-bit arithmetic, not fp8
  [2]
  $ nvlsim kernel gemm --m 1 --n 1 --k 1 --sparse --precision fp64 --platform gb300-nvl72
  2> --sparse#: gb300 has no 2:4-sparse peak for fp64
  [2]

  $ nvlsim kernel moe --family cutlas_nvfp4 --tokens 1 --experts 8 --topk 1 --hidden 64 --inter 64 --platform gb300-nvl72
  2> stack tensorrt-llm-1.3-kernels#/kernels: no parameters "moe/cutlas_nvfp4" for gb300; did you mean "cutlass_nvfp4"?
  [2]
  $ nvlsim kernel gemm --m 1 --n 1 --k 1 --weights int4 --platform gb300-nvl72
  2> stack tensorrt-llm-1.3-kernels#/kernels: no parameters "weight_only/int4" for gb300
  [2]

A spread whose quantiles are out of order is refused.

  $ cat > wrong.json <<'EOF'
  > {"schema": "nvlsim.stack/1", "base": "tensorrt-llm-1.3-kernels", "description": "a spread upside down",
  >  "kernel_spreads": {"kind": "derived", "source": "fit-kernels", "families": [
  >    {"family": "gemm/bf16", "gpu": "gb200", "architecture": "blackwell", "rows": 10, "low": 1.2, "median": 1, "high": 1.1}]}}
  > EOF
  $ nvlsim stack check wrong.json
  2> ./wrong.json#/kernel_spreads/families/0/median: must lie between low and high
  [2]
