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

  $ nvlsim run llama2-70b-server-gb200-vm --highest-load --set /workload/load/requests=60 2>&1 | tr -s ' \n' ' ' | grep -o 'only [0-9]* requests count, and the result is reliable from 100 on'
  only 48 requests count, and the result is reliable from 100 on

  $ nvlsim run llama2-70b-server-gb200-vm --highest-load --set /workload/slo=null
  2> $SOURCE/scenarios/inference/llama2-70b-server-gb200-vm.json#/workload: the highest load needs an objective (slo)
  [2]

  $ nvlsim pareto llama3.1-405b-gb300-512
  2> $SOURCE/scenarios/training/llama3.1-405b-gb300-512.json#/workload: a Pareto study needs an inference workload with its own request lengths
  [2]

Caches as flows need a load without a clock; settings without effect are reported.

  $ nvlsim run deepseek-r1-gb300-prefill-decode --fidelity flow --set '/workload/slo={"e2e": "1 h"}'
  2> --set#/simulation/fidelity: flow simulates KV transfers between pools for offline and closed_loop loads only; loads with arrivals, objectives, sessions, preemption or random lengths send caches one after the other; use closed
  [2]
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
