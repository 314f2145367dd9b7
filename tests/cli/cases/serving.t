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
    output_tokens_per_s            84,509 tok/s     90 %: 45,552 .. 156,783
    output_tokens_per_s_per_gpu     1,174 tok/s        90 %: 632.7 .. 2,178
    total_tokens_per_s            759,638 tok/s   90 %: 0.4095 M .. 1.409 M
    requests_per_s                  91.62 req/s          90 %: 49.38 .. 170
    goodput_requests_per_s          91.62 req/s
    total_tokens_per_s_per_gpu     10,551 tok/s       90 %: 5,687 .. 19,573
    output_tokens_per_s_per_user    44.96 tok/s        90 %: 24.23 .. 83.41
    energy_per_million_tokens_J        1.178 MJ
    cost_per_million_tokens_usd               -
    power_W_per_gpu                     822.9 W
    memory_peak_bytes                  274.1 GB
    kv_cache_used_fraction              7.597 %
    makespan_s                          86.81 s  90 %: 46.79 s .. 2.684 min
    gpus                                     72
    offered_requests_per_s                    -
    requests_in_flight                     2048
    time_in_system_s                    22.35 s
    measured_requests                      2049
    slo_attained_fraction                 100 %
    prefix_cache_hit_fraction               0 %
    preemptions                               0
    recomputed_tokens                         0

                 mean       p50       p90       p95       p99       max
    ttft_s    1.473 s   1.443 s   1.889 s   1.976 s   2.088 s   2.509 s
    tpot_s   22.24 ms  22.51 ms  23.19 ms   23.2 ms   23.2 ms   23.2 ms
    itl_s    22.47 ms  23.14 ms  23.27 ms  23.32 ms  23.32 ms  23.36 ms
    e2e_s     21.92 s   21.84 s   24.01 s   24.37 s   24.85 s   25.34 s
    queue_s  487.6 ms  473.2 ms  767.9 ms  827.5 ms  883.5 ms   1.381 s

  breakdown
    mean_over_gpus
      gemm_s                         31.02 s   35.7 %  #######
      attention_s                    15.13 s   17.4 %  ###
      memory_bound_s                 13.88 s   16.0 %  ###
      ep_s                           13.33 s   15.4 %  ###
      host_s                         1.821 s    2.1 %
      idle_s                         11.63 s   13.4 %  ###
      makespan_s                     86.81 s
    links
      prefill worker 8: nvlink out   5.168 %           96 % ep.exchange, peak 77 %
      prefill worker 5: nvlink out    5.15 %           96 % ep.exchange, peak 77 %
      prefill worker 2: nvlink out   5.146 %           96 % ep.exchange, peak 77 %
      prefill worker 7: nvlink out   5.144 %           96 % ep.exchange, peak 77 %
      prefill worker 9: nvlink out   5.142 %           96 % ep.exchange, peak 77 %
      prefill worker 6: nvlink out   5.132 %           96 % ep.exchange, peak 77 %
      prefill worker 3: nvlink out   5.125 %           96 % ep.exchange, peak 77 %
      prefill worker 1: nvlink out   5.112 %           96 % ep.exchange, peak 77 %
      prefill worker 4: nvlink out   5.111 %           96 % ep.exchange, peak 77 %
      prefill worker 10: nvlink out  5.104 %           96 % ep.exchange, peak 77 %
      prefill worker 8: nvlink in    4.964 %           100 % ep.exchange, peak 66
                                                       %
      prefill worker 5: nvlink in    4.947 %           100 % ep.exchange, peak 65
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
    gpus_J                5.143 MJ
    cpus_J                156.2 kJ
    trays_and_switches_J  1.172 MJ
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
    - rates and latencies cover 43.21 to 65.76 s, when every client has finished
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
