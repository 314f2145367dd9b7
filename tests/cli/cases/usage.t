  $ nvlsim
  2> nvlsim: no command given; use one of run, compare, explain, report, pareto, validate, collective, kernel, fit, search, sweep, plan, platform, stack, model, scenario, metrics, completion
  2> Try "nvlsim --help".
  [2]

  $ nvlsim rnu train.json
  2> nvlsim: unknown command "rnu"; did you mean "run"?
  2> Try "nvlsim --help".
  [2]

  $ nvlsim frobnicate
  2> nvlsim: unknown command "frobnicate"
  2> Try "nvlsim --help".
  [2]

  $ nvlsim --verison
  2> nvlsim: unknown option "--verison"; did you mean "--version"?
  2> Try "nvlsim --help".
  [2]

  $ nvlsim run
  2> nvlsim: SCENARIO, or --model with --platform, is required
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim run train.json --formt json
  2> nvlsim: unknown option "--formt"; did you mean "--format"?
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim --quiet run train.json
  2> nvlsim: "--quiet" comes after the command: nvlsim run --quiet
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim run train.json --format=yaml
  2> nvlsim: --format: yaml not in {table,json,csv,megatron-log}
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim run train.json --fidelity perfect
  2> nvlsim: --fidelity: perfect not in {closed,flow,exact}
  2> Try "nvlsim run --help".
  [2]

An empty value, as of a shell variable that is not set, is no value.

  $ nvlsim run train.json --trace "$NOWHERE"; nvlsim run train.json -o ""; nvlsim search train.json --gpus 8 --objective ""
  2> nvlsim: --trace: is empty
  2> Try "nvlsim run --help".
  2> nvlsim: --output: is empty
  2> Try "nvlsim run --help".
  2> nvlsim: --objective: is empty
  2> Try "nvlsim search --help".
  [2]

  $ nvlsim run train.json --trace-ranks 0 --trace-detail layers
  2> nvlsim: --trace-ranks requires --trace
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim run train.json --seed -1
  2> nvlsim: --seed: -1 is less than 0
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim run train.json --seed many
  2> nvlsim: --seed: "many" is not a whole number
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim run train.json --trace-ranks -1
  2> nvlsim: --trace-ranks: -1 is less than 0
  2> Try "nvlsim run --help".
  [2]

  $ nvlsim search train.json --gpus 2.5
  2> nvlsim: --gpus: "2.5" is not a whole number
  2> Try "nvlsim search --help".
  [2]

  $ nvlsim search train.json --gpus 1000000000000000000000
  2> nvlsim: --gpus: 1000000000000000000000 is not between 1 and 10000000
  2> Try "nvlsim search --help".
  [2]

  $ nvlsim collective all_to_all --platform gb300-nvl72 --gpus 8 --skew nan
  2> nvlsim: --skew: "nan" is not a number
  2> Try "nvlsim collective --help".
  [2]

  $ nvlsim collective all_to_all --platform gb300-nvl72 --gpus 8 --skew 1e12
  2> nvlsim: --skew: 1e12 is more than 1000000
  2> Try "nvlsim collective --help".
  [2]

  $ nvlsim run train.json --requests r.jsonl
  2> --requests: train is not a serving scenario
  [2]

  $ nvlsim run train.json serve.json --trace t.json
  2> --trace needs exactly one scenario
  [2]

  $ nvlsim platform
  2> nvlsim: no command given; use one of list, show, check
  2> Try "nvlsim platform --help".
  [2]

  $ nvlsim platform shwo gb300-nvl72
  2> nvlsim: unknown command "shwo"; did you mean "show"?
  2> Try "nvlsim platform --help".
  [2]

  $ nvlsim platform show
  2> nvlsim: NAME is required
  2> Try "nvlsim platform show --help".
  [2]

  $ nvlsim platform show gb300-nvl72 gb200-nvl72
  2> nvlsim: expected one NAME
  2> Try "nvlsim platform show --help".
  [2]

  $ nvlsim compare train.json
  2> nvlsim: B is required
  2> Try "nvlsim compare --help".
  [2]

  $ nvlsim collective all_reduce --platform gb300-nvl72
  2> nvlsim: --gpus is required
  2> Try "nvlsim collective --help".
  [2]

  $ nvlsim collective all_redcue --platform gb300-nvl72 --gpus 8 -b 1Q -d float128
  2> unknown operation "all_redcue"; did you mean "all_reduce"?
  2> -b#: "1Q" is not a size such as 8, 64K, 128M or 16G
  2> -d#: unknown data type "float128"
  [2]

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 -b 1M -e 8
  2> -e#: 8 is less than -b 1M
  [2]

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 --domain-size 80
  2> --domain-size#: 80 exceeds the 72 GPUs of an NVLink domain
  [2]

  $ nvlsim fit
  2> nvlsim: no command given; use one of training, frameworks, inference, loops, collectives, kernels
  2> Try "nvlsim fit --help".
  [2]

  $ nvlsim --version
  nvlsim 0.1.0

Files.

  $ nvlsim run nofile.json
  2> nofile.json: no such file
  [4]

  $ nvlsim run nofile.json train.json --set /workload/dp=0
  2> nofile.json: no such file
  2> --set#/workload/dp: 0 is less than 1
  [4]

  $ nvlsim scenario check nofile.json train.json none.json
  2> nofile.json: no such file
  2> none.json: no such file
  [4]

  $ nvlsim compare train.json nofile.json --set /workload/dp=0
  2> nofile.json: no such file
  2> --set#/workload/dp: 0 is less than 1
  [4]

  $ mkdir -p mixed; cp train.json mixed/good.json; sed 's/"dp"/"dq"/' train.json > mixed/slip.json; mkdir mixed/folder.json
  $ nvlsim compare mixed train.json
  2> mixed/folder.json: cannot be read
  2> mixed/slip.json#/workload: required member "dp" is missing
  2> mixed/slip.json#/workload/dq: unknown member; did you mean "dp"?
  [4]

  $ printf 'id,model,model\na,b,c\n' > twice.csv; nvlsim validate twice.csv
  2> twice.csv#: column model occurs twice
  [2]

  $ nvlsim run nosuchscenario
  2> no file and no shipped scenario is called "nosuchscenario"
  [2]

  $ nvlsim run llama3.1-405b-gb300-521
  2> no file and no shipped scenario is called "llama3.1-405b-gb300-521"; did you mean "llama3.1-405b-gb300-512"?
  [2]

  $ nvlsim run .
  2> .: is a directory
  [4]

  $ nvlsim validate nofile.csv
  2> nvlsim: nofile.csv: cannot be read
  [4]

  $ : > empty.csv; nvlsim validate empty.csv
  2> empty.csv#: the file is empty: no header line
  [2]

  $ printf 'id,colour\n1,red\n' > odd.csv; nvlsim validate odd.csv
  2> odd.csv#: the header matches no known kind of table (memory, models, kv-capacity, cache-tiers, pairs, inference, kernels, collectives, goodput, posttraining, training)
  [2]

  $ printf 'id,model,system,gpus\n' > own.csv; nvlsim validate own.csv
  2> own.csv#: the table has a header and no rows
  [2]

  $ nvlsim run train.json -o train.json
  2> nvlsim: train.json: cannot be created (Not a directory)
  [4]

  $ nvlsim run train.json -o /proc/none > /dev/null
  2> nvlsim: /proc/none: cannot be created (No such file or directory)
  [4]

  $ mkdir -p out/train.json; nvlsim run train.json -o out; ls out; rm -r out
  train.json
  2> nvlsim: out/train.json: cannot be written (Is a directory)

  $ nvlsim run train.json --trace /nowhere/t.json
  2> nvlsim: /nowhere/t.json: cannot be written (No such file or directory)
  [4]

  $ nvlsim run train.json --trace t.json --trace-ranks 4
  2> --trace-ranks#: no class 4; the run has 1
  [2]

  $ nvlsim run train.json > /dev/full
  2> nvlsim: cannot write to standard output
  [4]

  $ nvlsim run train.json --format json > /dev/full
  2> nvlsim: cannot write to standard output
  [4]

  $ nvlsim run train.json --trace /dev/full
  2> nvlsim: /dev/full: cannot write the trace
  [4]

  $ nvlsim run train.json train.json -o out
  2> two scenarios are called "train"; their results would overwrite each other
  [2]

  $ NVLSIM_DATA=/nowhere nvlsim run train.json
  2> nvlsim: NVLSIM_DATA=/nowhere: the folder has no platforms and scenarios
  [4]

With --format json every failure is one document on stdout as well.

  $ nvlsim rnu --format json 2> /dev/null
  {
    "schema": "nvlsim.error/1",
    "status": "error",
    "exit_code": 2,
    "message": "unknown command \"rnu\"; did you mean \"run\"?",
    "problems": []
  }
  [2]

  $ nvlsim run nofile.json --format json 2> /dev/null
  {
    "schema": "nvlsim.error/1",
    "status": "error",
    "exit_code": 4,
    "message": "nofile.json: no such file",
    "problems": [
      {
        "file": "",
        "pointer": "",
        "what": "nofile.json: no such file",
        "hint": null,
        "text": "nofile.json: no such file"
      }
    ]
  }
  [4]

  $ nvlsim run train.json --format json --set /workload/precision=nvpf4 --set /workload/dp=0
  {
    "schema": "nvlsim.error/1",
    "status": "error",
    "exit_code": 2,
    "message": "--set#/workload/dp: 0 is less than 1\n--set#/workload/precision: expected one of fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, found \"nvpf4\"; did you mean \"nvfp4\"?",
    "problems": [
      {
        "file": "--set",
        "pointer": "/workload/dp",
        "what": "0 is less than 1",
        "hint": null,
        "text": "--set#/workload/dp: 0 is less than 1"
      },
      {
        "file": "--set",
        "pointer": "/workload/precision",
        "what": "expected one of fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, found \"nvpf4\"",
        "hint": "nvfp4",
        "text": "--set#/workload/precision: expected one of fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, found \"nvpf4\"; did you mean \"nvfp4\"?"
      }
    ]
  }
  2> --set#/workload/dp: 0 is less than 1
  2> --set#/workload/precision: expected one of fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, found "nvpf4"; did you mean "nvfp4"?
  [2]

  $ nvlsim run train.json --format json -o train.json 2> /dev/null
  {
    "schema": "nvlsim.error/1",
    "status": "error",
    "exit_code": 4,
    "message": "train.json: cannot be created (Not a directory)",
    "problems": []
  }
  [4]

  $ nvlsim platform show gb300_nvl72 --format json 2> /dev/null
  {
    "schema": "nvlsim.error/1",
    "status": "error",
    "exit_code": 2,
    "message": "unknown platform \"gb300_nvl72\"; did you mean \"gb300-nvl72\"?",
    "problems": [
      {
        "file": "",
        "pointer": "",
        "what": "unknown platform \"gb300_nvl72\"",
        "hint": "gb300-nvl72",
        "text": "unknown platform \"gb300_nvl72\"; did you mean \"gb300-nvl72\"?"
      }
    ]
  }
  [2]
