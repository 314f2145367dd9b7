What cannot run is a result with its reasons, and exit code 3.

  $ nvlsim run train.json --set /model=llama3.1-405b --set /workload/dp=1 > big.txt; code=$?; head -2 big.txt; grep -cE '[TGM]B +[0-9.]+ %' big.txt; exit $code
  train: infeasible
    - stage 0 needs [0-9.]* TB of GPU memory and 298 GB are usable: weights [0-9.]* (re)
  9
  [3]

  $ nvlsim run train.json --set /model=llama3.1-405b --set /workload/dp=1 --format json | grep -E '"(schema|status|metrics|peak_bytes|usable_bytes)"'
    "schema": "nvlsim.result/1",
    "status": "infeasible",
        "schema": "nvlsim.scenario/1",
        "schema": "nvlsim.platform/1",
    "metrics": {},
      "peak_bytes": .*, (re)
      "usable_bytes": 298013687808.0,

  $ nvlsim run train.json --set /model=llama3.1-405b --set /workload/dp=1 --trace t.json > /dev/null; ls t.json
  2> ls: cannot access 't.json': No such file or directory
  [2]

An impossible layout.

  $ nvlsim run train.json --set /workload/tp=3 --set /workload/vp=2 --set /workload/dp=100 --set /workload/ep=2 | head -12
  train: infeasible
    - tensor parallelism must divide the attention heads (32 is not divisible by
      3)
    - tensor parallelism must divide the FFN width (14336 is not divisible by 3)
    - expert parallelism needs a model with routed experts
    - the global batch of 32 must be a multiple of micro-batch 1 x dp 100
    - context and sequence parallelism must divide the sequence (8192 is not
      divisible by 3)
    - vp needs pp > 1

  $ nvlsim run train.json --set /workload/pp=4 --set /workload/vp=4 --set /workload/dp=2 --set /workload/global_batch_size=12 | head -3
  train: infeasible
    - schedule interleaved needs a multiple of pp 4 micro-batches; the global
      batch gives each replica 6

  $ nvlsim run train.json --set /placement/gpus_per_rack=80 --set /workload/pp=33 --set /workload/dp=1 | head -2
  train: infeasible
    - the placement uses 80 GPUs of an NVLink domain, which has only 72

  $ nvlsim run train.json --set /workload/dp=1 --set /workload/global_batch_size=1073741824 | head -3
  train: infeasible
    - the step has 1.07e+09 passes of micro-batches through model chunks; the
      limit is 4e+06

  $ nvlsim run serve.json --set /workload/layout/tp=3 --set /workload/layout/replicas=100 | head -5
  serve: infeasible
    - tp 3 does not divide 28672 MLP columns
    - tp 3 does not divide 64 attention heads
    - tp 3 neither divides 8 KV heads nor is a multiple of them
  

Of several scenarios the highest code counts, and the others keep their results.

  $ sed 's/"train"/"big"/; s/"llama3-8b"/"llama3.1-405b"/' train.json > big.json; nvlsim run train.json big.json --format csv | cut -d, -f1,2
  name,status
  train,ok
  big,infeasible
  2> nvlsim: big is infeasible: .* (re)

  $ nvlsim run big.json train.json --format csv | cut -d, -f1-3 > /dev/null; nvlsim run big.json train.json -o out > /dev/null; echo $?; ls out
  3
  big.json
  train.json
  2> nvlsim: big is infeasible: .* (re)
  2> nvlsim: big is infeasible: .* (re)
