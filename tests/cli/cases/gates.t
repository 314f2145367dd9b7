compare takes scenarios, results and folders, and fails on a rule.

  $ nvlsim run train.json serve.json -o a > /dev/null; nvlsim run train.json serve.json --set '/platform/use=gb200-nvl72' -o b > /dev/null; ls a b
  a:
  serve.json
  train.json
  
  b:
  serve.json
  train.json

  $ nvlsim compare a b | grep -E '^(train|serve)|step_time_s|output_tokens_per_s  '
  serve
    output_tokens_per_s +[0-9,]+ tok/s +[0-9,]+ tok/s +-[0-9.]+ % (re)
  train
    step_time_s +[0-9.]+ m?s +[0-9.]+ m?s +\+[0-9.]+ % (re)

  $ nvlsim compare a/train.json b/train.json | head -3
  train
                                                     A +B +change (re)
    step_time_s +[0-9.]+ m?s +[0-9.]+ m?s +\+[0-9.]+ % (re)

  $ nvlsim compare train.json b/train.json > x; nvlsim compare a/train.json b/train.json > y; cmp x y

  $ nvlsim compare a a --fail-if 'step_time_s>+0.1%' --fail-if 'output_tokens_per_s<-0.1%' > /dev/null

  $ nvlsim compare a b --fail-if 'step_time_s>+2%' | tail -5

  FAIL  step_time_s>+2%  train
        changed by \+[0-9.]+ %, from [0-9.]+ s to [0-9.]+ s (re)
        inputs: /platform/use gb300-nvl72 -> gb200-nvl72
  1 of 1 gates failed

  $ nvlsim compare a b --fail-if 'step_time_s>+2%' --format github
  ::error title=nvlsim gate failed::train: step_time_s>\+2%25: changed by \+[0-9.]+ %25, from [0-9.]+ s to [0-9.]+ s \(A = [0-9.]+ s, B = [0-9.]+ s\); inputs: /platform/use gb300-nvl72 -> gb200-nvl72 (re)
  ::notice title=nvlsim inputs changed::serve: /platform/use gb300-nvl72 -> gb200-nvl72
  [1]

  $ nvlsim compare a b --fail-if 'step_time_s>+2%' --format json | grep -E '"(schema|passed|failed|rule)"'
    "schema": "nvlsim.comparison/1",
    "passed": false,
        "rule": "step_time_s>+2%",
        "failed": true,

A gate on what is not there fails.

  $ nvlsim compare a b --fail-if 'cost_per_step_usd>0' | tail -3 | head -1
        B is 0.[0-9]+ USD (re)

  $ nvlsim compare a b --fail-if 'no_such_metric>0' | tail -3
  FAIL  no_such_metric>0
        no_such_metric is not in B
  1 of 1 gates failed

  $ nvlsim run train.json --set /model=llama3.1-405b -o c > /dev/null; nvlsim compare a/train.json c/train.json --fail-if 'step_time_s>+2%' | tail -3
        68.54 GB, communication 859 MB, reserve 859 MB
        inputs: /model llama3-8b -> llama3.1-405b
  1 of 1 gates failed
  2> nvlsim: train is infeasible: .* (re)
  2> nvlsim: B: train is infeasible: .* (re)

Rules that are none.

  $ nvlsim compare a b --fail-if step_time_s
  2> --fail-if#: "step_time_s", column 12: expected one of > >= < <=, found the end
  [2]

  $ nvlsim compare a b --fail-if 'step_time_s>2%%' --fail-if '>1' --fail-if 'mfu=1'
  2> --fail-if#: ">1", column 1: expected a metric, such as step_time_s, found ">1"
  2> --fail-if#: "mfu=1", column 4: expected one of > >= < <=, found "=1"
  2> --fail-if#: "step_time_s>2%%", column 15: expected the end of the rule, found "%"
  [2]

Inputs that are none.

  $ nvlsim compare a nothing
  2> no file and no shipped scenario is called "nothing"
  [2]

  $ mkdir empty; nvlsim compare a empty
  2> empty#: the folder has no results or scenarios (*.json)
  [2]

  $ echo '{"schema": "nvlsim.result/1", "name": 3}' > half.json; nvlsim compare half.json half.json 2>&1 | head -4
  half.json#: required member "status" is missing
  half.json#/bands: expected an object, found nothing
  half.json#/breakdown: expected an object, found nothing
  half.json#/cost: expected an object, found nothing

  $ echo '[]' > none.json; nvlsim compare none.json a
  2> none.json#: expected an object, found array
  [2]

  $ nvlsim compare $SOURCE/platforms/gb300-nvl72.json a
  2> $SOURCE/platforms/gb300-nvl72.json#/schema: this is a platform, not a scenario
  [2]
