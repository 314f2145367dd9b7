Traces are known by their columns; what cannot be read is told line by line.

  $ printf 'a,b\n1,2\n' > odd.csv; nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/load/file=odd.csv
  2> odd.csv#: unknown request file format with columns a, b; the generic format has arrival_s, input_tokens, output_tokens
  [2]

  $ printf 'arrival_s,input_tokens,output_tokens\n0,10,x\n-,10,1\n2,10\n' > bad.csv; nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/load/file=bad.csv
  2> bad.csv#: line 2: output_tokens: "x" is not a number of tokens
  2> bad.csv#: line 3: arrival_s: "-" is not a time
  2> bad.csv#: line 4: 2 cells, but the header has 3
  [2]

  $ printf 'input_tokens,output_tokens\n10,3\n' > untimed.csv; nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/load/file=untimed.csv
  2> --set#/workload/load: untimed.csv has no arrival times; give requests_per_s
  [2]

  $ nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/load/file=absent.csv
  2> --set#/workload/load/file: absent.csv: cannot be read
  [4]

  $ printf 'arrival_s,input_tokens,output_tokens\n0,10,4\n1,10,4\n' > timed.csv
  $ nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/load/file=timed.csv --set /workload/load/requests_per_s=2 --set /workload/load/concurrency=8
  2> --set#/workload/load/concurrency: is a member of closed_loop
  2> --set#/workload/load/requests_per_s: timed.csv has arrival times, so a rate has no effect; use rate_scale to make arrivals faster or slower
  [2]

  $ sed 's/"offline"/"closedloop", "concurrency": 8/' serve.json > slip.json; nvlsim run slip.json
  2> slip.json#/workload/load/kind: expected one of .* did you mean "closed_loop"\? (re)
  [2]

  $ nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/load/file=timed.csv --set /workload/load/arrivals=gamma --set /workload/load/burstiness=2
  2> --set#/workload/load/arrivals: is a member of a load with requests_per_s
  2> --set#/workload/load/burstiness: is a member of a load with requests_per_s
  [2]

Requests of equal replicas are simulated once, and say how many they stand for.

  $ nvlsim run llama2-70b-offline-gb200-rack --set /workload/load/requests=720 --requests r.jsonl > /dev/null; wc -l < r.jsonl; head -1 r.jsonl | grep -o '"workers": 72'
  10
  "workers": 72

A trace that is shorter than what was asked for says so.

  $ printf 'arrival_s,input_tokens,output_tokens\n0,10,4\n1,10,4\n' > short.csv
  $ nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/load/file=short.csv --set /workload/load/requests=5 | grep -A 1 'the trace has'
    - the trace has only 2 of the 5 requests asked for
    .* (re)

An objective that no load keeps, and one that is missing.

  $ nvlsim run llama2-70b-server-gb200-vm --highest-load --set /workload/load/requests=20 --set '/workload/slo={"ttft": "1 us"}' --format csv | cut -d, -f1-2
  name,status
  llama2-70b-server-gb200-vm,infeasible

The highest load of a few requests is chance, and says so.

  $ nvlsim run llama2-70b-server-gb200-vm --highest-load --set /workload/load/requests=60 2>&1 | tr -s ' \n' ' ' | grep -o 'only [0-9]* requests were measured, and a reliable result needs 100'
  [1]

  $ nvlsim run llama2-70b-server-gb200-vm --highest-load --set /workload/slo=null
  2> $SOURCE/scenarios/inference/llama2-70b-server-gb200-vm.json#/workload: the highest load needs an objective (slo)
  [2]

  $ nvlsim pareto llama3.1-405b-gb300-512
  2> $SOURCE/scenarios/training/llama3.1-405b-gb300-512.json#/workload: a Pareto study needs an inference workload that states request lengths
  [2]

Caches as flows need a load without a clock; settings without effect are reported.

  $ nvlsim run deepseek-r1-gb300-prefill-decode --fidelity flow --set '/workload/slo={"e2e": "1 h"}'
  deepseek-r1-gb300-prefill-decode: ok

  metrics
    output_tokens_per_s            84,589 tok/s     90 %: 45,595 .. 156,930
    output_tokens_per_s_per_gpu     1,175 tok/s        90 %: 633.3 .. 2,180
    total_tokens_per_s            760,369 tok/s   90 %: 0.4099 M .. 1.411 M
    requests_per_s                  91.71 req/s        90 %: 49.43 .. 170.1
    goodput_requests_per_s          91.71 req/s
    total_tokens_per_s_per_gpu     10,561 tok/s       90 %: 5,692 .. 19,592
    output_tokens_per_s_per_user    44.95 tok/s        90 %: 24.23 .. 83.39
    energy_per_million_tokens_J        1.178 MJ
    cost_per_million_tokens_usd               -
    power_W_per_gpu                     823.4 W
    memory_peak_bytes                  274.1 GB
    kv_cache_used_fraction              7.567 %
    makespan_s                          86.76 s  90 %: 46.77 s .. 2.683 min
    gpus                                     72
    offered_requests_per_s                    -
    requests_in_flight                     2048
    time_in_system_s                    22.33 s
    measured_requests                      2049
    slo_attained_fraction                 100 %
    prefix_cache_hit_fraction               0 %
    preemptions                               0
    recomputed_tokens                         0

                 mean       p50       p90       p95       p99       max
    ttft_s    1.425 s   1.419 s   1.749 s   1.799 s   1.884 s       2 s
    tpot_s   22.25 ms  22.53 ms   23.2 ms  23.21 ms  23.21 ms  23.21 ms
    itl_s    22.48 ms  23.14 ms  23.27 ms  23.31 ms  23.31 ms  23.31 ms
    e2e_s     21.87 s   21.82 s   23.95 s   24.28 s   24.84 s    25.3 s
    queue_s  527.3 ms    521 ms  798.4 ms  855.6 ms   1.029 s   1.239 s

  breakdown
    mean_over_gpus
      gemm_s                         31.08 s   35.8 %  #######
      attention_s                    15.08 s   17.4 %  ###
      memory_bound_s                 13.88 s   16.0 %  ###
      ep_s                           13.34 s   15.4 %  ###
      host_s                         1.823 s    2.1 %
      idle_s                         11.55 s   13.3 %  ###
      makespan_s                     86.76 s
    links
      prefill worker 8: nvlink out   5.137 %           96 % ep.exchange, peak 77 %
      prefill worker 7: nvlink out   5.135 %           96 % ep.exchange, peak 77 %
      prefill worker 2: nvlink out   5.134 %           96 % ep.exchange, peak 77 %
      prefill worker 4: nvlink out   5.132 %           96 % ep.exchange, peak 77 %
      prefill worker 3: nvlink out   5.127 %           96 % ep.exchange, peak 77 %
      prefill worker 6: nvlink out   5.127 %           96 % ep.exchange, peak 77 %
      prefill worker 5: nvlink out   5.127 %           96 % ep.exchange, peak 77 %
      prefill worker 10: nvlink out  5.118 %           96 % ep.exchange, peak 77 %
      prefill worker 9: nvlink out   5.117 %           96 % ep.exchange, peak 77 %
      prefill worker 1: nvlink out   5.113 %           96 % ep.exchange, peak 77 %
      prefill worker 8: nvlink in    4.932 %           100 % ep.exchange, peak 64
                                                       %
      prefill worker 7: nvlink in    4.931 %           100 % ep.exchange, peak 65
                                                       %

  memory
    where                 each decode GPU
    peak_bytes                   274.1 GB
    usable_bytes                   298 GB
    items
      weights                    36.64 GB   13.4 %  1.03 B (nvfp4) x 35.7 G
                                                    projection weights on TP rank
                                                    1/1 + 2 B x 1.007 M norm
                                                    weights
      vocabulary_weights         3.707 GB    1.4 %  2 B (bf16) x 1.853 G embedding
                                                    and LM head weights / TP 1
      workspace                  3.691 GB    1.3 %  2 B x 16384 tokens x (2 x 7168
                                                    hidden + 98304 in the widest
                                                    part of a layer)
      cuda_graphs                311.1 MB    0.1 %  100 kB x 51 batch sizes x 61
                                                    layers
      reserve                      600 MB    0.2 %  CUDA context, kernels and
                                                    libraries
      group_reserve                3.5 GB    1.3 %  buffers of collective
                                                    libraries
      kv_cache                   225.6 GB   82.3 %  6421997 tokens x 35136 B
                                                    (fp8); kv_fraction 0.905 of
                                                    the memory that is free before
                                                    weights are loaded, including
                                                    them

  energy
    gpus_J                5.144 MJ
    cpus_J                156.2 kJ
    trays_and_switches_J  1.171 MJ
    supply_losses_J       200.1 kJ

  cost
    run_usd  -

  notes
    - 2048 clients start together and send their next request when the last one
      ends
    - when the cache is full, the request admitted last gives its part up and
      computes it again later
    - each prompt goes to the prefill worker (of 10) with the fewest tokens left
      to compute; its KV cache to the decode worker
    - the first token is streamed when the decode worker starts on the request
    - rates and latencies cover 43.21 to 65.77 s, when every client has finished
      its first request and none its last
    - the objective is met: 100 % of the requests are within every limit; each
      limit requires 99 %
    - cost is unknown: no public price: Azure's Retail Prices API returned none in
      September 2026
  $ nvlsim run llama3.3-70b-trace-gb300-rack --set /workload/engine/batch_wait_iterations=20 --set /workload/engine/rank_wait_iterations=5 2>&1 | grep 'has no effect'
    - batch_wait_iterations has no effect: batch_wait_ratio is 0, so prompts do
    - rank_wait_iterations has no effect: attention_dp is 1, so there are no other

A Pareto study of a rack tries sizes that leave GPUs over.

  $ nvlsim pareto deepseek-r1-gb300-prefill-decode --gpus 72 --concurrency 64 --set '/workload/load={"kind": "closed_loop", "concurrency": 64, "requests": 64, "input": {"mean": 500}, "output": {"mean": 20}}' | grep -o 'ep [0-9]* x[0-9]*' | sort -u
  ep 16 x4
  ep 2 x36
  ep 32 x2
  ep 4 x18
  ep 64 x1
  ep 8 x9
