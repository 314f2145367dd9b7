A model is no scenario, and is told what to do with it.

  $ nvlsim run deepseek-v3
  2> "deepseek-v3" is a model, not a scenario; give a platform and a layout (nvlsim run --model deepseek-v3 --platform gb300-nvl72 --gpus 64 ...), or have them found (nvlsim plan training deepseek-v3 ..., nvlsim plan serving deepseek-v3 ...)
  [2]

A scenario from options: what follows from others is computed, what is taken for granted is told.

  $ nvlsim run --model llama3-8b --platform nd-h100-v5 --gpus 16 --tp 2 --format csv | cut -d, -f1-2
  name,status
  llama3-8b-nd-h100-v5,ok
  2> nvlsim: assumed: stack megatron-bridge-26.06 (--stack)
  2> nvlsim: assumed: precision fp8 (--precision)
  2> nvlsim: assumed: sequences of 4096 tokens (--seq-length)
  2> nvlsim: assumed: about 4096 sequences a step, 16 Mi tokens (--global-batch-size)

  $ nvlsim scenario new --model llama3.1-8b --platform nd-h100-v5 --gpus 8 --tp 2 --input 100 --output-tokens 20 --concurrency 16 -q -o new.json; nvlsim scenario check new.json; nvlsim run new.json --format csv | cut -d, -f1-2
  name,status
  llama3.1-8b-nd-h100-v5,ok

  $ nvlsim run --model llama3-8b --gpus 10 --tp 4 --dp x
  2> --platform#: a model needs a platform (nvlsim platform list)
  [2]

  $ nvlsim run --model llama3-8b --platform nd-h100-v5 --gpus 10 --tp 4 --dp x
  2> --dp#: "x" is not a whole number from 1 to 10000000
  2> --gpus#: 10 is not divisible by tp x pp x cp = 4
  [2]

  $ nvlsim run --model llama3-8b --platform nd-h100-v5 --cp 2 --concurrency 8
  2> --concurrency#: is a serving option, --cp a training option; use one kind
  [2]

  $ nvlsim run train.json --tp 4
  2> --tp#: defines a new scenario and cannot be combined with train.json; change a scenario with --set
  [2]

  $ nvlsim scenario new --model llama3-8b --platform nd-h100-v5 --gpus 8 --tp 2 -q -o /nowhere/x.json
  2> nvlsim: /nowhere/x.json: cannot be written (No such file or directory)
  [4]

Questions that lack something say what.

  $ nvlsim plan
  2> nvlsim: no command given; use one of serving, training, post-training, scaling, next-dollar
  2> Try "nvlsim plan --help".
  [2]

  $ nvlsim plan serving llama3.1-8b
  2> --platform#: a model needs a platform to serve on (nvlsim platform list)
  [2]

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5
  2> --input#: give the mean number of tokens of a prompt
  2> --output-tokens#: give the mean number of tokens of an answer
  2> --ttft#: give at least one limit: --ttft, --tpot or --e2e
  [2]

  $ nvlsim plan serving llama3.1-8 --platform nd-h100-v5
  2> no model, no file and no shipped scenario is called "llama3.1-8"; did you mean "llama3.1-8b"?
  [2]

  $ nvlsim plan training llama3-8b --platform nd-h100-v5 --days 3
  2> --tokens#: --days needs the tokens of the whole run
  [2]

  $ nvlsim plan scaling llama3-8b --gpus 8..16
  2> "llama3-8b" is a model; plan scaling needs a scenario (nvlsim scenario list)
  [2]

  $ nvlsim plan scaling train.json --gpus 16..8
  2> --gpus#: "16..8" is not a list of GPU counts: use 72..9216 (doubling), 72,144,576 or both, from 1 to 10000000
  [2]

  $ nvlsim plan next-dollar train.json --cost nicbandwidth=4 --cost x
  2> --cost#: "x" is not of the form PART=USD, such as nic_bandwidth=400
  [2]

  $ nvlsim plan next-dollar gb300-14-racks-shared
  2> $SOURCE/scenarios/operation/gb300-14-racks-shared.json#/workload/kind: plan next-dollar needs a training or serving scenario
  [2]

Problems of what --set writes are named as by other commands.

  $ for c in "plan scaling train.json --gpus 8" "plan next-dollar train.json" "plan training train.json --gpus 8" "run train.json"; do nvlsim $c --set /workload/tpp=2 --set /platform/gpu/hbmm=1 --set /stack/training/x=1; done
  2> --set#/platform/gpu/hbmm: unknown member
  2> --set#/stack/training/x: unknown member
  2> --set#/workload/tpp: unknown member; did you mean "pp"?
  2> --set#/platform/gpu/hbmm: unknown member
  2> --set#/stack/training/x: unknown member
  2> --set#/workload/tpp: unknown member; did you mean "pp"?
  2> --set#/platform/gpu/hbmm: unknown member
  2> --set#/stack/training/x: unknown member
  2> --set#/workload/tpp: unknown member; did you mean "pp"?
  2> --set#/platform/gpu/hbmm: unknown member
  2> --set#/stack/training/x: unknown member
  2> --set#/workload/tpp: unknown member; did you mean "pp"?
  [2]

Limits that nothing keeps are no answer, but no error in the question.

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5 --gpus 1 --input 100 --output-tokens 10 --tpot '1 us' -q | grep holds
  no deployment holds any load within the limits

A demand that is not met is told apart from limits that nothing keeps.

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5 --gpus 3 --users 100000 --input 400 --output-tokens 60 --ttft '1 s' --tpot '20 ms' -q | sed -n '/^not/,/^$/p' | grep .
  not enough: 396.7 of 100000 users; about 757 GPUs would hold them, at the same
    load a GPU

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5 --gpus 3 --users 100000 --input 400 --output-tokens 60 --ttft '1 s' --tpot '20 ms' -q > plan.txt
  [3]

The best of all platforms is written, and one that qualifies is enough.

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5,gb300-nvl72 --users 100 --input 400 --output-tokens 60 --ttft '1 s' --tpot '20 ms' -q -o best.json | grep -e best: -e 'nvlsim run'; grep '"use"' best.json
    best: gb300-nvl72 (fewest GPUs)
    nvlsim run best.json
      "use": "gb300-nvl72",

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5,gb300-nvl72 --gpus 1 --input 400 --output-tokens 60 --ttft '1 s' --tpot '3.5 ms' -q > plan.txt; echo $?; grep -e best: -e none plan.txt
  0
    nd-h100-v5   none within the limits
    best: gb300-nvl72 (highest rate)

The limits of each pool are in the answer.

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5 --gpus 2 --input 400 --output-tokens 60 --ttft '1 s' --tpot '20 ms' -q | grep limits
    limits: ttft 1 s, tpot 20 ms, each for 99 % of the requests
    assumed: stack vllm (--stack); limits hold for 99 % of the requests
    prefill limits                                 -    batch 1024, tokens 65536
    decode limits            batch 1024, tokens 8192     batch 1024, tokens 8192

A layout that does not fit is told with what it lacks.

  $ nvlsim plan training llama3-8b --platform nd-h100-v5 --tokens 1e12 --gpus 1 -q | sed -n '/^no layout/,/^$/p' | grep .
  no layout fits at any GPU count that was tried; the closest, on 1 GPU
    (recompute full), needs 137.2 GB; 84.94 GB are usable

Lengths of a trace are those of its requests.

  $ nvlsim plan serving llama3.3-70b-trace-gb300-rack --gpus 2 -q | tr -s ' \n' ' ' | grep -o 'log-normal lengths.*Poisson process'
  log-normal lengths with mean, deviation and bounds of the 600 requests of conversation-azure-format.csv; requests arrive as a Poisson process

Overrides reach the load in the place of a trace, and the trace itself.

  $ nvlsim plan serving llama3.1-8b --platform gb300-nvl72 --gpus 1 --trace "$SOURCE/scenarios/traces/conversation-azure-format.csv" --ttft '1 s' --tpot '30 ms' --set /workload/load/requests=300 --set /workload/load/arrivals=fixed --output traced.json -q | tr -s ' \n' ' ' | grep -o 'log-normal lengths.*azure-format.csv'; grep -o '"arrivals": "[a-z]*"' traced.json
  log-normal lengths with mean, deviation and bounds of the first 300 requests of conversation-azure-format.csv
  "arrivals": "fixed"

  $ nvlsim plan serving llama3.3-70b --platform gb300-nvl72 --gpus 2 --trace nowhere.csv --ttft '1 s' 2>&1 | grep -o 'nowhere.csv: .*'
  nowhere.csv: cannot be read

Refused shapes are named, and launch commands have limits, hosts and the checkpoint's format.

  $ nvlsim plan serving deepseek-r1 --platform gb300-nvl72 --gpus 24 --input 1024 --output-tokens 256 --ttft '2 s' --tpot '33 ms' -q --launch all > lines.txt; sed -n '/^launch/,$p' lines.txt | grep -c '.\{81\}'; sed -e ':a' -e '/ \\$/N; s/ \\\n */ /; ta' lines.txt > plan.txt; grep -e 'heads$' plan.txt; grep -e 'KV cache [a-z0-9]* (' plan.txt; sed -n '/^launch/,$p' plan.txt | grep -e '^launch' -e checkpoint -e hosts; grep -o -e '--max[^ ]* [0-9]*' -e '--data-parallel-[al][^ ]* [^ ]*' -e '--nnodes.*5000' -e '--chunked[^ ]* [0-9]*' -e 'mpirun.*trtllm-serve' -e '--ep-num[^ ]* [0-9]*' -e 'num_redundant_experts": [0-9]*' -e 'num_slots: [0-9]*' plan.txt
  0
    tp 12: tp 12 does not divide 128 attention heads
    tp 18: tp 18 does not divide 128 attention heads
    tp 24: tp 24 does not divide 128 attention heads
    tp 3: tp 3 does not divide 128 attention heads
    tp 6: tp 6 does not divide 128 attention heads
    tp 9: tp 9 does not divide 128 attention heads
      checkpoints of routed models (--weights); KV cache fp8 (--kv-cache)
  launch with vllm
    # the checkpoint must have nvfp4 weights, attention bf16; replace the model's
    # name if your checkpoint differs
    # each on 3 hosts of 4 GPUs: the command on HOST0, and on each other with
  launch with sglang
    # the checkpoint must have nvfp4 weights, attention bf16; replace the model's
    # name if your checkpoint differs
    # each on 3 hosts of 4 GPUs: the command on each, with its RANK
  launch with tensorrt-llm
    # the checkpoint must have nvfp4 weights, attention bf16; replace the model's
    # name if your checkpoint differs
    # each on 3 hosts of 4 GPUs: through mpirun, one process a GPU
  launch with dynamo
    # the checkpoint must have nvfp4 weights, attention bf16; replace the model's
    # name if your checkpoint differs
    # each on 3 hosts of 4 GPUs: the command on HOST0, and on each other with
  --max-num-seqs 1024
  --max-num-batched-tokens 32768
  num_redundant_experts": 8
  --data-parallel-address HOST0
  --max-num-seqs 1024
  --max-num-batched-tokens 8192
  --max-running-requests 2048
  --chunked-prefill-size 65536
  --ep-num-redundant-experts 8
  --nnodes 3 --node-rank RANK --dist-init-addr HOST0:5000
  --max-running-requests 12288
  --chunked-prefill-size 98304
  --max_batch_size 1024
  --max_num_tokens 32768
  num_slots: 264
  mpirun -n 12 -H HOSTS trtllm-llmapi-launch trtllm-serve
  --max_batch_size 1024
  --max_num_tokens 8192
  --max-num-seqs 1024
  --max-num-batched-tokens 32768
  num_redundant_experts": 8
  --data-parallel-address HOST0
  --max-num-seqs 1024
  --max-num-batched-tokens 8192

The scenario of the answer runs as it was planned.

  $ nvlsim plan serving llama3.1-8b --platform nd-h100-v5 --gpus 1 --input 100 --output-tokens 10 --tpot '20 ms' -o one.json | sed -n '/^run it/,/one.json/p'
  run it
    nvlsim run one.json

  $ nvlsim run one.json | grep -o 'the objective is met'
  the objective is met
