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

  $ nvlsim kernel gemm --m 64 --n 4096 --k 4096 --platform gb200-nvl72 | grep -c '90 % of measured ones .*(left out of the fit: gemm/bf16 on gb200'
  1
  $ nvlsim kernel scan --tokens 8192 --heads 128 --platform gb200-nvl72 --stack tensorrt-llm-1.3-kernels | grep -E '^(90|note)'
  note                   stack tensorrt-llm-1.3-kernels does not say what scans reach: their roofline

What is wrong is said.

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
