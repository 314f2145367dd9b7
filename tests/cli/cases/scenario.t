Problems of a scenario file are told as file#/json/pointer, all of them, with the nearest name.

  $ sed -e 's/"dp": 8/"dpp": 8, "tp": "2", "precison": 3/' -e 's/8192/"8k"/' train.json > many.json; nvlsim run many.json
  2> many.json#/workload: required member "dp" is missing
  2> many.json#/workload/dpp: unknown member; did you mean "dp"?
  2> many.json#/workload/precison: unknown member; did you mean "precision"?
  2> many.json#/workload/seq_length: expected an integer, found string "8k"
  2> many.json#/workload/tp: expected an integer, found string "2"
  [2]

Unknown and missing members.

  $ sed 's/"seq_length"/"seq_len"/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#/workload: required member "seq_length" is missing
  2> bad.json#/workload/seq_len: unknown member
  [2]

  $ sed 's/"stack": .*/"stak": "x",/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#: required member "stack" is missing
  2> bad.json#/stak: unknown member; did you mean "stack"?
  [2]

Wrong types.

  $ nvlsim run train.json --set /workload/dp=8.0
  2> --set#/workload/dp: expected an integer, found number 8.0
  [2]

  $ nvlsim run train.json --set '/workload/dp="8"'
  2> --set#/workload/dp: expected an integer, found string "8"
  [2]

  $ nvlsim run train.json --set '/workload/sequence_parallel=yes'
  2> --set#/workload/sequence_parallel: expected true or false, found string "yes"
  [2]

  $ nvlsim run train.json --set '/workload/precision=16'
  2> --set#/workload/precision: expected one of fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, found integer 16
  [2]

  $ nvlsim run train.json --set '/workload=[]'
  2> --set#/workload: expected an object, found array
  [2]

  $ nvlsim run train.json --set /stack=7
  2> --set#/stack: expected a string, found integer 7
  [2]

  $ nvlsim run train.json --set '/platform=gb300-nvl72'
  2> --set#/platform: expected an object such as {"use": "gb300-nvl72"}
  [2]

  $ nvlsim run train.json --set '/workload/recompute=["core_atn", 3]'
  2> --set#/workload/recompute: element 0: expected one of core_attn, layernorm, mlp, moe_act, mla_up_proj, moe, shared_experts, mhc; did you mean "core_attn"?
  2> --set#/workload/recompute: element 1: expected one of core_attn, layernorm, mlp, moe_act, mla_up_proj, moe, shared_experts, mhc
  [2]

Out of range.

  $ nvlsim run train.json --set /workload/dp=0 --set /platform/racks=-1 --set /workload/token_budget=-5 --set /simulation/seed=-1
  2> --set#/platform/racks: -1 is less than 1
  2> --set#/simulation/seed: -1 is less than 0
  2> --set#/workload/dp: 0 is less than 1
  2> --set#/workload/token_budget: -5 is not more than 0
  [2]

  $ nvlsim run train.json --set /workload/global_batch_size=99999999999999
  2> --set#/workload/global_batch_size: 99999999999999 is more than 1073741824
  [2]

  $ nvlsim run train.json --set /workload/global_batch_size=99999999999999999999
  2> --set#/workload/global_batch_size: expected an integer, found number 1e+20
  [2]

  $ nvlsim run train.json --set /workload/dp=1000000 --set /workload/pp=1000000
  2> train.json#/workload: tp x pp x cp x dp exceeds 1000000000 GPUs
  [2]

Names of one of several.

  $ nvlsim run train.json --set /workload/precision=nvpf4
  2> --set#/workload/precision: expected one of fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, found "nvpf4"; did you mean "nvfp4"?
  [2]

  $ nvlsim run train.json --set /workload/schedule=1F1B
  2> --set#/workload/schedule: expected one of 1f1b, interleaved, zb_h1, zb_v, dualpipe, found "1F1B"; did you mean "1f1b"?
  [2]

  $ nvlsim run train.json --set /simulation/fidelity=close
  2> --set#/simulation/fidelity: expected one of closed, flow, exact, found "close"; did you mean "closed"?
  [2]

  $ nvlsim run serve.json --set /workload/kind=infrence
  2> --set#/workload/kind: expected one of training, inference, collective, operation, post_training, found "infrence"; did you mean "inference"?
  [2]

Two spellings of one thing.

  $ sed 's/"dp": 8/"dp": 8, "data_parallel_size": 8/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#/workload/data_parallel_size: says the same as "dp"; give one of them
  [2]

A key twice, in a deep place too.

  $ sed 's/"dp": 8/"dp": 8, "dp": 4/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#/workload/dp: duplicate key
  [2]

  $ sed 's/"racks": 1/"use": "x"/; s/{"use": "gb300-nvl72"}/{"use": "gb300-nvl72", "use": "gb200-nvl72"}/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#/platform/use: duplicate key
  [2]

Syntax.

  $ sed 's/"dp": 8/"dp": 8,/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#: line 13, column 3: expected a name in double quotes, found "}"; remove the comma before it
  [2]

  $ sed "s/\"dp\": 8/'dp': 8/" train.json > bad.json; nvlsim run bad.json
  2> bad.json#: line 12, column 5: expected a name in double quotes, found "'"; strings take double quotes
  [2]

  $ sed 's/"dp": 8/"dp": 8 \/\/ replicas/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#: line 12, column 13: expected "," or "}", found "/"; JSON has no comments
  [2]

  $ sed 's/"dp": 8/"dp": NaN/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#: line 12, column 11: expected a value, found "NaN"; JSON has no NaN and no infinity
  [2]

  $ sed 's/"dp": 8/"dp": 1e999/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#: line 12, column 11: a number is out of range
  [2]

  $ head -c 200 train.json > bad.json; nvlsim run bad.json
  2> bad.json#: line 9, column 5: a string has no closing quote
  [2]

  $ cat train.json train.json > bad.json; nvlsim run bad.json
  2> bad.json#: line 15, column 1: unexpected "{" after the end of the document
  [2]

Too deep, too large.

  $ printf '%070d' 0 | sed 's/0/[/g' > bad.json; nvlsim run bad.json
  2> bad.json#: nested deeper than 64 levels
  [2]

  $ head -c 67108865 /dev/zero | tr '\0' ' ' > bad.json; nvlsim run bad.json
  2> bad.json#: larger than 64 MiB
  [2]

What is no scenario.

  $ : > bad.json; nvlsim run bad.json
  2> bad.json#: line 1, column 1: the text is empty
  [2]

  $ printf '\377\376\000\001' > bad.json; nvlsim run bad.json
  2> bad.json#: byte 3 is 0: this is not a text file
  [2]

  $ echo '[1, 2]' > bad.json; nvlsim run bad.json
  2> bad.json#: expected an object, found array
  [2]

  $ echo '{"hidden_size": 4096}' > bad.json; nvlsim run bad.json
  2> bad.json#: not a scenario: a scenario has "schema": "nvlsim.scenario/1"
  [2]

  $ nvlsim run $SOURCE/platforms/gb300-nvl72.json
  2> $SOURCE/platforms/gb300-nvl72.json#/schema: this is a platform, not a scenario
  [2]

  $ nvlsim run $SOURCE/platforms/stacks/collectives/nccl-2.29.json
  2> $SOURCE/platforms/stacks/collectives/nccl-2.29.json#/schema: this is a stack, not a scenario
  [2]

  $ nvlsim run train.json -o out > /dev/null; nvlsim run out/train.json
  2> out/train.json#/schema: this is a result, not a scenario
  [2]

  $ sed 's/scenario.1/scenario\/2/' train.json > bad.json; nvlsim run bad.json
  2> bad.json#/schema: expected nvlsim.scenario/1, found "nvlsim.scenario/2"; did you mean "nvlsim.scenario/1"?
  [2]

Platforms, stacks and models that do not exist.

  $ nvlsim run train.json --set /platform/use=gb300_nvl72 --set /stack=megatron-bridge-26.6 --set /model=lama3-8b
  2> --set#/model: unknown model "lama3-8b"; did you mean "llama3-8b"?
  2> --set#/platform/use: unknown platform "gb300_nvl72"; did you mean "gb300-nvl72"?
  2> --set#/stack: unknown stack "megatron-bridge-26.6"; did you mean "megatron-bridge-26.06"?
  [2]

  $ nvlsim run train.json --set /platform/use=gb300
  2> --set#/platform/use: unknown platform "gb300"; did you mean one of gb300-400g, gb300-nvl144, gb300-nvl576, gb300-nvl72, gb300-roce?
  [2]

  $ nvlsim run train.json --set /model=gpt-17
  2> --set#/model: unknown model "gpt-17"; did you mean "mpt-1b"?
  [2]

  $ nvlsim run train.json --set /model=./gpt.json
  2> --set#/model: ./gpt.json: no such file
  [4]

  $ nvlsim run train.json --set /stack=nccl-2.29
  2> --set#/stack: stack "nccl-2.29" has no "training" section
  [2]

Inputs that a scenario names by path count from its folder, and tell their own problems.

  $ mkdir -p here; sed 's/"llama3-8b"/"shapes\/m.json"/' train.json > here/t.json; mkdir -p here/shapes
  > echo '{"model_type": "brain", "hidden_size": "big"}' > here/shapes/m.json; nvlsim run here/t.json
  2> here/shapes/m.json#/model_type: model_type "brain" is not supported; supported: llama, .* (re)
  [2]

  $ echo '{"model_type": "llama", "hidden_size": 0, "num_layers": 2}' > here/shapes/m.json; nvlsim run here/t.json
  2> here/shapes/m.json#: required member "intermediate_size" is missing
  2> here/shapes/m.json#: required member "num_attention_heads" is missing
  2> here/shapes/m.json#: required member "num_hidden_layers" is missing
  2> here/shapes/m.json#: required member "vocab_size" is missing
  2> here/shapes/m.json#/hidden_size: 0 is less than 1
  [2]

  $ cp train.json here/shapes/m.json; nvlsim run here/t.json
  2> here/shapes/m.json#/schema: this is a scenario, not a model
  [2]

  $ printf '{"model_type": "llama", "vocab_size": 10, "vocab_size": 10' > here/shapes/m.json; nvlsim run here/t.json
  2> here/shapes/m.json#: line 1, column 59: the text ends too early; expected "," or "}"
  2> here/shapes/m.json#/vocab_size: duplicate key
  [2]

  $ rm here/shapes/m.json; nvlsim run here/t.json
  2> here/t.json#/model: here/shapes/m.json: no such file
  [4]

A base is looked up beside the file, then among what ships. Its racks count unless the scenario says otherwise.

  $ cp train.json here/t.json; mkdir here/p; sed -i 's/"gb300-nvl72"/"p\/ours.json"/' here/t.json
  > echo '{"schema": "nvlsim.platform/1", "base": "gb300-nvl72", "racks": 2}' > here/p/ours.json
  > nvlsim run here/t.json --format json --set /workload/dp=128 --set /workload/global_batch_size=128 | grep -E '"status"|"racks"|"/platform/racks"'
    "status": "ok",
          "racks": 2
        "racks": 2
        "/platform/racks": "default",

  $ nvlsim run here/t.json --set /workload/dp=128 --set /workload/global_batch_size=128 --set /platform/racks=1 | head -3
  train: infeasible
    - tp 1 x pp 1 x cp 1 x dp 128 = 128 GPUs need 2 NVLink domains at 64 GPUs
      each; the platform has 1

  $ echo '{"schema": "nvlsim.platform/1", "base": "gb300-nvl27"}' > here/p/ours.json; nvlsim run here/t.json
  2> here/p/ours.json#/base: unknown platform "gb300-nvl27"; did you mean "gb300-nvl72"?
  [2]

  $ echo '{"schema": "nvlsim.platform/1", "base": "ours"}' > here/p/ours.json; nvlsim run here/t.json
  2> here/p/ours.json#/base: "ours" is its own base
  [2]

What is read is not written over, and nothing written twice.

  $ cp train.json again.json; nvlsim run again.json --trace again.json
  2> --trace#: again.json is already used for the scenario and would be overwritten
  [2]
  $ nvlsim run again.json --trace x.json -o . --set '/name="x"' | head -1
  2> --trace#: x.json is already used for -o and would be overwritten
  $ nvlsim report again.json -o again.json
  2> -o#: again.json is read as an input and would be overwritten
  [2]
  $ cmp train.json again.json

Empty names, and what is set in a file that the scenario does not have.

  $ nvlsim run train.json --set /platform/use= --set /model=
  2> --set#/model: must not be empty
  2> --set#/platform/use: must not be empty
  [2]
  $ nvlsim run ring-all-reduce-72-exact --set /model/num_hidden_layers=1 --set /stack/nccl=1
  2> --set#/model/num_hidden_layers: the scenario has no model; this override has no effect
  2> --set#/stack/nccl: the scenario has no stack; this override has no effect
  [2]
  $ nvlsim run train.json --set /platform/base=gb200-nvl72
  2> --set#/platform/base: the base of a file cannot be overridden; use the other file, or a copy of this one
  [2]
