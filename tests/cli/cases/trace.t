A trace says what it is of, and is compressed when its name says so.

  $ nvlsim run train.json --seed 7 --trace a.trace.json > /dev/null; head -1 a.trace.json
  {"displayTimeUnit":"ns","metadata":{"tool": "nvlsim", "version": "[0-9.]+", "scenario": "train", "seed": 7, "digest": "[0-9a-f]{16}", "classes_of_the_run": 1, "max_events": 1000000, "left_out": \[\]},"traceEvents":\[ (re)

  $ nvlsim run train.json --seed 7 --trace b.trace.json.gz > /dev/null; gzip -cd b.trace.json.gz | cmp - a.trace.json

  $ nvlsim run train.json --trace no/such/folder.json.gz > /dev/null
  2> nvlsim: no/such/folder.json.gz: cannot be written (No such file or directory)
  [4]

  $ nvlsim run train.json --trace /dev/full > /dev/null
  2> nvlsim: .*cannot write.* (re)
  [4]

A closed loop shows what runs, waits and is cached over time, as a load on a clock does.

  $ nvlsim run llama2-70b-offline-gb200-rack --set /workload/load/requests=144 --trace loop.json > /dev/null; grep -o '"name":"[^"]*requests"\|"name":"KV cache[^"]*"' loop.json | sort -u
  "name":"KV cache used (fraction)"
  "name":"queued requests"
  "name":"requests"
  "name":"running requests"
