explain takes the main metric apart, or the one that is named.

  $ nvlsim explain train.json | grep -E '^(train|step|kernels|transfers|assumed|constants|sources|notes|band)'
  train: step_time_s = [0-9.]+ m?s (re)
  band
  step_time_s by phase
  step_time_s by bound
  step_time_s critical path
  kernels that take the most time
  transfers that take the most time
  notes
  assumed by default
  constants of platform gb300-nvl72
  constants of stack kernels/training-kernels
  constants of stack kernels/tensorrt-llm-1.3-kernels
  constants of stack collectives/nccl-2.29
  constants of stack training/megatron-core
  sources

  $ nvlsim explain train.json mfu | head -5
  train: mfu = [0-9.]+ % (re)
    x model_flop_per_step +[0-9.]+ [TPE]FLOP (re)
    / dense_peak_flop_per_s +[0-9.]+ PFLOP/s (re)
    / gpus +8 (re)
    / step_time_s +[0-9.]+ m?s (re)

Counts are in digits that a person reads; large ones have a prefix.

  $ nvlsim explain serve.json total_tokens_per_s | sed -n 2p; nvlsim explain train.json tokens_per_s | sed -n 2p
    x total_tokens +[0-9,.]+ (tokens|[MG]tokens) (re)
    x tokens_per_step +([0-9,]+ tokens|[0-9.]+ Mtokens) (re)

  $ nvlsim explain train.json mfu | sed '/^$/,$d' | grep -E '[0-9]e[+-]?[0-9]'
  [1]

  $ nvlsim explain serve.json ttft_s.p99 | grep -E '^(serve|ttft|  - breakdown)'
  serve: ttft_s.p99 = [0-9.]+ m?s (re)
  ttft_s.p99 by stage
  ttft_s.p99 by phase
  ttft_s.p99 by bound
    - breakdown of one request with this value, on replica 0

A load on a clock, too; a rate shows where its median request was, and one in a hundred.

  $ nvlsim explain serve.json --set '/workload/slo={"e2e": "90 s"}' | sed '/^kernels/,$d' | grep -E '^(serve|[a-z0-9_]+.* by |  (queue|prefill|decode) )'
  serve: output_tokens_per_s = [0-9,.]+ tok/s (re)
  makespan_s by phase
    decode +[0-9.]+ m?s +[0-9.]+ % (re)
    prefill +[0-9.]+ m?s +[0-9.]+ % (re)
  makespan_s by bound
  e2e_s.p50 by stage
    prefill +[0-9.]+ m?s +[0-9.]+ % (re)
    decode +[0-9.]+ m?s +[0-9.]+ % (re)
  e2e_s.p99 by stage
    prefill +[0-9.]+ m?s +[0-9.]+ % (re)
    decode +[0-9.]+ m?s +[0-9.]+ % (re)

  $ nvlsim explain serve.json tpot_s | head -1
  serve: tpot_s.mean = [0-9.]+ m?s (re)

  $ nvlsim explain train.json | awk 'length($0) > 80'

A constant keeps its source; one that the user sets says so.

  $ nvlsim explain train.json --set '/platform/gpu/hbm_stream=7 TB/s' --format json | grep -A 4 '"/platform/gpu/hbm_stream"'
        "pointer": "/platform/gpu/hbm_stream",
        "value": "7 TB/s",
        "kind": "assumed",
        "source": "set by the user",
        "from": "--set"

Sensitivity ranks the constants.

  $ nvlsim explain train.json --sensitivity | sed -n '/^sensitivity/,/^where/p' | grep -E '^(sens|where)|time_factor'
  sensitivity
    /stack/training/time_factor +1 +-[0-9.]+ % +\+[0-9.]+ % (re)
  where the bottleneck changes

Some of the constants alone.

  $ nvlsim explain train.json --sensitivity --only /platform | sed -n '/^sensitivity/,/^where/p' | grep -E '^  /' | grep -vc '^  /platform/'
  0
  [1]

  $ nvlsim explain train.json --sensitivity --only /platform/gpus
  2> --only#: this run reads no constant below "/platform/gpus"; it reads some below .*; did you mean "/platform/gpu"\? (re)
  [2]

  $ nvlsim explain train.json --only /platform
  2> --only#: has no effect without --sensitivity
  [2]

What has no value says why, and what is no metric has a nearest name.

  $ nvlsim explain train.json cost_per_step_usd | head -7
  train: cost_per_step_usd = nothing
  
  notes
    - no value: no public price: Azure's Retail Prices API returned none in
      September 2026
    - cost is unknown: no public price: Azure's Retail Prices API returned none in
      September 2026

  $ nvlsim explain train.json step_time
  2> train has no metric "step_time"; did you mean "step_time_s"?
  [2]

  $ nvlsim explain train.json step_time_s.p99
  2> train has no metric "step_time_s.p99"; did you mean "step_time_s"?
  [2]

  $ nvlsim explain train.json mfu.
  2> train has no metric "mfu."; did you mean "mfu"?
  [2]

  $ nvlsim explain train.json ''
  2> METRIC is empty; omit it to explain the main metric
  [2]

  $ nvlsim explain serve.json ttf.p9
  2> serve has no metric "ttf.p9"; did you mean "ttft_s.p90"?
  [2]

  $ nvlsim explain train.json zebra
  2> train has no metric "zebra"; it has step_time_s, tokens_per_s, .*, gpus (re)
  [2]

  $ nvlsim explain train.json --set /workload/global_batch_size=40960 --set /workload/micro_batch_size=512 | head -4
  train: cannot run
  
  notes
    - stage 0 needs [0-9.]+ TB of GPU memory and 298 GB are usable: weights .* (re)

  $ nvlsim explain
  2> nvlsim: SCENARIO is required
  2> Try "nvlsim explain --help".
  [2]
