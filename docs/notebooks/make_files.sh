#!/usr/bin/env bash
# Writes the files that the notebooks read: make_files.sh FOLDER. NVLSIM is the program, TABLES the folder of tables.
set -euo pipefail
nvlsim=${NVLSIM:-nvlsim} tables=${TABLES:-$(dirname "${BASH_SOURCE[0]}")/../../tests/measurements} out=${1:?which folder?}
mkdir -p "$out"/{scaling,serving}

# scaling: the step of 405B on more and more GPUs, the batch growing with them; a replica takes 64 of GB200, 32 of GB300
for gpus in 256 512 1024 2048 4096; do
  for gpu in gb200 gb300; do
    replica=$([[ $gpu == gb200 ]] && echo 64 || echo 32)
    "$nvlsim" run "llama3.1-405b-$gpu-512" --set "/name=$gpu-$gpus" --set "/workload/dp=$((gpus / replica))" \
      --set "/workload/global_batch_size=$((gpus * 7 / 4))" --set /platform/racks=64 -o "$out/scaling" >"$out/table.txt"
  done
done

# serving: more and more clients of a rack
for gpu in gb200 gb300; do
  for clients in 16 64 256 1024; do
    "$nvlsim" run "llama2-70b-offline-$gpu-rack" --set "/name=$gpu-$clients" --set /workload/load/kind=closed_loop \
      --set "/workload/load/concurrency=$((clients * 72))" --set "/workload/load/requests=$((clients * 216))" \
      --set /workload/load/output/mean=128 -o "$out/serving" >"$out/table.txt"
  done
done

"$nvlsim" run llama3.1-405b-gb300-512 --trace "$out/step.trace.json" -o "$out" >"$out/table.txt"
"$nvlsim" validate "$tables"/{training,collectives,memory}.csv --format json >"$out/accuracy.json"
rm "$out/table.txt"
