--set changes an input, and its problems are told where it was written.

  $ nvlsim run train.json --set /workload/dp
  2> --set#: "/workload/dp" is not of the form POINTER=VALUE, such as /workload/tp=4
  [2]

  $ nvlsim run train.json --set dp=4
  2> --set#dp: a JSON pointer begins with "/", such as "/workload/tp"
  [2]

  $ nvlsim run train.json --set =4
  2> --set#: a JSON pointer begins with "/", such as "/workload/tp"
  [2]

  $ nvlsim run train.json --set /workload/dpp=4
  2> --set#/workload/dpp: unknown member; did you mean "dp"?
  [2]

  $ nvlsim run train.json --set /name/first=x
  2> --set#/name/first: a value of type string has no members
  [2]

  $ nvlsim run train.json --set /workload/recompute/0=x --set '/workload/recompute=["mlp"]' --set /workload/recompute/7=x
  2> --set#/workload/recompute/7: no element "7" in an array of 1
  [2]

Another spelling of a member replaces what the file says; two overrides do not say the same.

  $ nvlsim run train.json --set /workload/data_parallel_size=3
  train: infeasible
    - the global batch of 32 must be a multiple of micro-batch 1 x dp 3
  [3]

  $ nvlsim run train.json --set /workload/data_parallel_size=4 --set /workload/dp=2
  2> --set#/workload/data_parallel_size: says the same as "dp"; give one of them
  [2]

Below /platform, /stack and /model it reaches into the files named there. Quantities need their unit, and the right one.

  $ nvlsim run train.json --set /platform/fabric/nic_bandwidth=400
  2> --set#/platform/fabric/nic_bandwidth: expected a bandwidth such as "900 GB/s", found integer 400
  [2]

  $ nvlsim run train.json --set '/platform/fabric/nic_bandwidth=400 GBps'
  2> --set#/platform/fabric/nic_bandwidth: unknown unit "GBps"; expected a bandwidth such as "900 GB/s"
  [2]

  $ nvlsim run train.json --set '/platform/fabric/nic_bandwidth=400 W'
  2> --set#/platform/fabric/nic_bandwidth: "400 W" is a power; expected a bandwidth such as "900 GB/s"
  [2]

  $ nvlsim run train.json --set '/platform/fabric/nic_bandwidth=-400 Gb/s'
  2> --set#/platform/fabric/nic_bandwidth: "-400 Gb/s" is negative
  [2]

A model file may hold members that are not read, as published ones do; setting one changes nothing, and is refused.

  $ nvlsim run train.json --set /model/hidden_sise=3
  2> --set#/model/hidden_sise: unknown member: setting it changes nothing; did you mean "hidden_size"?
  [2]

  $ nvlsim run train.json --set /model/rope/theta=3
  2> --set#/model/rope/theta: unknown member: setting it changes nothing.* (re)
  [2]

  $ nvlsim run train.json --set /stack/training/time_facto/value=3
  2> --set#/stack/training/time_facto/value: unknown member; did you mean "time_factor"?
  [2]

  $ nvlsim run train.json --set '/platform/gpu/hbm_usable=0 GB' --set '/platform/gpu/hbm_bandwith=8 TB/s'
  2> --set#/platform/gpu/hbm_bandwith: unknown member; did you mean "hbm_bandwidth"?
  2> --set#/platform/gpu/hbm_usable: "0 GB" is zero
  [2]

  $ nvlsim run train.json --set '/platform/gpu/tdp=1,4 kW' --set '/platform/gpu/idle_power=1e999 W'
  2> --set#/platform/gpu/idle_power: "1e999 W" is out of range
  2> --set#/platform/gpu/tdp: unknown unit ",4 kW"; expected a power such as "1.4 kW"
  [2]

  $ nvlsim run train.json --set '/stack/training/time_factor=fast' --set /model/num_attention_heads=0
  2> --set#/model/num_attention_heads: 0 is less than 1
  2> --set#/stack/training/time_factor: expected a number, found string "fast"
  [2]

  $ nvlsim run train.json --set /platform/gpu=h100
  2> --set#/platform/gpu: expected an object, found string "h100"
  [2]

  $ nvlsim run train.json --set '/platform/gpu/peaks/fp4={}'
  2> --set#/platform/gpu/peaks/fp4: unknown precision "fp4"; did you mean "nvfp4"?
  [2]

A scenario's own "set" too.

  $ sed 's|"use": "gb300-nvl72"|"use": "gb300-nvl72", "set": {"/fabric/nic_bandwidth": 800, "gpu/tdp": "1 kW", "/gpu/tdpp": "1 kW"}|' train.json > bad.json
  > nvlsim run bad.json
  2> bad.json#/platform/set/gpu~1tdp: a JSON pointer begins with "/", such as "/workload/tp"
  2> bad.json#/platform/set/~1fabric~1nic_bandwidth: expected a bandwidth such as "900 GB/s", found integer 800
  2> bad.json#/platform/set/~1gpu~1tdpp: unknown member; did you mean "tdp"?
  [2]

Results remember where values came from.

  $ nvlsim run train.json --set '/platform/fabric/nic_bandwidth=400 Gb/s' --set /workload/dp=4 --format json |
  > grep -E '"/(platform/fabric/nic_bandwidth|workload/(dp|tp|seq_length))"'
        "/workload/seq_length": "scenario",
        "/workload/dp": "--set",
        "/workload/tp": "default",
        "/platform/fabric/nic_bandwidth": "--set"
