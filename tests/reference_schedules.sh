#!/usr/bin/env bash
# The orders of 1f1b and gpipe equal those that PyTorch's runtime executes, and its files are read as those
# schedules. PLUMBLINE_REFERENCE_SCHEDULES
# names a folder of files such as 1F1B_S4_V1_M8.csv in PyTorch's format; skipped visibly without it.
# SPDX-License-Identifier: MIT
set -u
plumbline=$(realpath "$1")
cd "$(dirname "$0")/.." || exit 1
folder=${PLUMBLINE_REFERENCE_SCHEDULES-}
if [ -z "$folder" ]; then
  echo "skipped: PLUMBLINE_REFERENCE_SCHEDULES names no folder"
  exit 77
fi
scenario=$(mktemp)
trap 'rm -f "$scenario"' EXIT
cat > "$scenario" <<'YAML'
version: 1
model: {uniform: {layers: 64, forward: 1 ms, backward: 2 ms}}
cluster: {devices: 2}
schedule: {name: gpipe, micro_batches: 1}
YAML
passed=0
failed=0
for file in "$folder"/*_S*_V1_M*.csv; do
  [[ $(basename "$file") =~ ^(1F1B|GPipe)_S([0-9]+)_V1_M([0-9]+)\.csv$ ]] || continue
  name=${BASH_REMATCH[1],,}
  # Their files end each row with the reduction of the gradients, which is no compute.
  if diff <("$plumbline" schedule "$scenario" "schedule.name=$name" "cluster.devices=${BASH_REMATCH[2]}" \
    "schedule.micro_batches=${BASH_REMATCH[3]}" --format torch-csv) <(sed 's/,[0-9]*REDUCE_GRAD//; s/\r$//' "$file"); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $file"
  fi
  if diff <("$plumbline" schedule "$scenario" "schedule.name=$name" "cluster.devices=${BASH_REMATCH[2]}" \
    "schedule.micro_batches=${BASH_REMATCH[3]}") <("$plumbline" schedule "$scenario" schedule.name=null \
    schedule.micro_batches=null "schedule.file=$file" "cluster.devices=${BASH_REMATCH[2]}"); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: reading $file"
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
