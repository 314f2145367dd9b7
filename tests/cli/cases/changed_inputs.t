A comparison says which inputs moved. One per cent is planted in a stack file, and the gate names metric, scenario and input.

  $ mkdir one; nvlsim stack show megatron-bridge-26.06 --format json | python3 -c 'import json, sys; json.dump(json.load(sys.stdin)["stack"], sys.stdout)' > one/bridge.json
  $ sed 's#"megatron-bridge-26.06"#"one/bridge.json"#' train.json > a.json; nvlsim run a.json -o before --set /stack/training/time_factor=1 > /dev/null
  $ nvlsim run a.json -o after --set /stack/training/time_factor=1.01 > /dev/null

  $ nvlsim compare before after --fail-if 'step_time_s>+0.5%' | sed -n '/inputs that differ/,$p'
    inputs that differ
      /stack/training/time_factor 1 -> 1.01

  FAIL  step_time_s>+0.5%  train
        changed by \+0\.[0-9]+ %, from [0-9.]+ s to [0-9.]+ s (re)
        inputs: /stack/training/time_factor 1 -> 1.01
  1 of 1 gates failed

The same where the file itself changed, in every format.

  $ python3 - <<'X'
  > import json
  > d = json.load(open("one/bridge.json"))
  > peak = d["kernels"]["gb300"]["gemm"]["mxfp8"]["tensor_rate"]
  > number, unit = (peak["value"] if isinstance(peak, dict) else peak).split()
  > slower = f"{float(number) / 1.01:.6g} {unit}"
  > d["kernels"]["gb300"]["gemm"]["mxfp8"]["tensor_rate"] = {**peak, "value": slower} if isinstance(peak, dict) else slower
  > json.dump(d, open("one/bridge.json", "w"))
  > X
  $ nvlsim run a.json -o after --set /stack/training/time_factor=1 > /dev/null

  $ nvlsim compare before after --fail-if 'step_time_s>+0.1%' --format github
  ::error title=nvlsim gate failed::train: step_time_s>\+0.1%25: changed by .*; inputs: /stack/kernels/gb300/gemm/mxfp8/tensor_rate [0-9.]+ TFLOPS -> [0-9.]+ TFLOPS (re)
  [1]

  $ nvlsim compare before after --fail-if 'step_time_s>+0.1%' --format junit | grep -c 'inputs: /stack/kernels/gb300/gemm/mxfp8/tensor_rate'
  1

  $ nvlsim compare before after --format markdown | grep tensor
  \| `/stack/kernels/gb300/gemm/mxfp8/tensor_rate` \| [0-9.]+ TFLOPS -\\> [0-9.]+ TFLOPS \| (re)

  $ nvlsim compare before after --format json | grep -A 2 '"pointer"'
            "pointer": "/stack/kernels/gb300/gemm/mxfp8/tensor_rate",
            "a": "[0-9.]+ TFLOPS", (re)
            "b": "[0-9.]+ TFLOPS" (re)

Another machine is one input; what is in it is not listed.

  $ nvlsim run a.json --set /platform/use=gb200-nvl72 --set /stack/training/time_factor=1 -o after > /dev/null; nvlsim compare before after | sed -n '/inputs that differ/,$p' | head -2
    inputs that differ
      /platform/use gb300-nvl72 -> gb200-nvl72
