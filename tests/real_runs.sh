#!/usr/bin/env bash
# Pipelines that PyTorch really runs, on the CPU: their traces are recorded, diagnosed and made scenarios, and what-ifs of
# one run are put beside the others. Times are looked at for their order alone, as other work may slow any of them.
# Usage: tests/real_runs.sh BINARY
# SPDX-License-Identifier: MIT
set -u
binary=$(realpath -e -- "${1:?usage: tests/real_runs.sh BINARY}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../examples/real-runs" || exit 2
python=
for one in python3 /usr/bin/python3; do
  "$one" -c 'import torch.distributed' 2>/dev/null && python=$one && break
done
[[ -n $python ]] || { echo "skipped: no python3 has PyTorch (Debian: apt-get install python3-torch)"; exit 77; }
[[ $(nproc) -ge 2 ]] || { echo "skipped: a pipeline of two processes needs two cores"; exit 77; }
folder=$(mktemp -d) || exit 2
trap 'rm -rf -- "$folder"' EXIT
failed=0
passed=0
check() {  # check WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$folder/said" 2>&1; then
    passed=$((passed + 1))
  else
    echo "$what: $(cat "$folder/said")"
    failed=$((failed + 1))
  fi
}
record() {  # record NAME OPTIONS...
  local name=$1
  shift
  check "recording $name" "$python" -B pipeline.py --batch 32 --width 512 --layers 3 --steps 4 --warm-up 1 \
    --out "$folder/$name" "$@"
}
first_line() {  # first_line NAME EXPECTED
  check "diagnosing $1" "$binary" diagnose "$folder/$1" --no-timeline -o "$folder/$1.yaml"
  local said
  said=$(head -n 1 "$folder/said")
  [[ $said == "$2" ]] && passed=$((passed + 1)) && return
  echo "$1: wanted '$2', got '$said'"
  failed=$((failed + 1))
}

record equal --schedule 1f1b --stages 2 --micro-batches 4 --check
for schedule in naive gpipe 1f1b option-c; do
  record $schedule --schedule $schedule --stages 2 --micro-batches 4
done
record copies --schedule gpipe --stages 1 --micro-batches 4 --replicas 2
record eight --schedule 1f1b --stages 2 --micro-batches 8
first_line naive "naive: 2 stages on 2 devices, 4 micro-batches, 4 iterations"
first_line gpipe "gpipe: 2 stages on 2 devices, 4 micro-batches, 4 iterations"
first_line 1f1b "1f1b: 2 stages on 2 devices, 4 micro-batches, 4 iterations"
first_line option-c "delayed-backward: 2 stages on 2 devices, 4 micro-batches, 4 iterations"
first_line copies "gpipe: 1 stage on 1 device, 4 micro-batches, 4 iterations"
grep -q '2 ranks have each stage' "$folder/said" || { echo "copies: not told"; failed=$((failed + 1)); }
first_line eight "1f1b: 2 stages on 2 devices, 8 micro-batches, 4 iterations"

# From the run of one micro-batch after the other to the three others. The verdict may be any: other work may have slowed
# one of them.
"$binary" validate "$folder/naive.yaml" schedule.name=naive,gpipe,1f1b,delayed-backward --json \
  --against "$folder/naive" "$folder/gpipe" "$folder/1f1b" "$folder/option-c" >"$folder/points.json"
[[ $? -eq 0 || $? -eq 1 || $? -eq 6 ]] || { echo "validate --against failed"; failed=$((failed + 1)); }
check "the order of the predictions" "$python" - "$folder/points.json" <<'END'
import json, sys
points = json.load(open(sys.argv[1]))["points"]
predicted = {point["schedule"]: point["iteration_time_s"]["predicted"] for point in points}
measured = {point["schedule"]: point["iteration_time_s"]["measured"] for point in points}
print(predicted, measured)
for faster in ("gpipe", "1f1b"):
    assert predicted[faster] < predicted["delayed-backward"] < predicted["naive"]
assert all(time > 0 for time in measured.values())
END
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
