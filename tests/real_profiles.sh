#!/usr/bin/env bash
# Simulates PipeDream's published profiles where they are at hand: PLUMBLINE_PROFILES names the folder that
# holds <model>/graph.txt, as published with PipeDream (msr-fiddle/pipedream, folder profiler).
# SPDX-License-Identifier: MIT
set -u
plumbline=$(realpath "$1")
cd "$(dirname "$0")/.." || exit 1
folder=${PLUMBLINE_PROFILES-}
if [ ! -f "$folder/vgg16/graph.txt" ]; then
  echo "skipped: no PipeDream profiles (set PLUMBLINE_PROFILES to their folder)"
  exit 77
fi
folder=$(realpath "$folder")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
check() {  # check NAME CONDITION-EXIT-STATUS
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi
}
number() { sed -n "s/^ \"$1\": \([-0-9.e+]*\),*\$/\1/p" "$2"; }
# Of a result on stdin, all but its name and its notes.
numbers() {
  sed -e '/^ "scenario"/d' -e '/^ "notes": \[$/,/^ \]/d' -e '/^ "notes": \[\]/d'
}

for graph in "$folder"/*/graph.txt; do
  model=$(basename "$(dirname "$graph")")
  cat > "$work/$model.yaml" <<YAML
version: 1
model: {pipedream: $graph, batch: 128}
cluster: {devices: 4, memory: 16 GiB, link: {bandwidth: 10 Gbit/s}}
plan: {stages: 4, partition: balanced}
schedule: {name: naive, micro_batches: 8}
training: {micro_batch_size: 16}
YAML
  for schedule in naive gpipe 1f1b eager-1f1b delayed-backward pipedream; do
    "$plumbline" simulate "$work/$model.yaml" schedule.name=$schedule --json > "$work/$model.$schedule.json" 2> "$work/err"
    status=$?
    # 0, or 4 where the peak is beyond 16 GiB; anything else is a fault.
    { [ $status -eq 0 ] || [ $status -eq 4 ]; } && [ ! -s "$work/err" ]
    check "$model $schedule (exit $status)" $?
  done
  awk -v naive="$(number iteration_time_s "$work/$model.naive.json")" -v gpipe="$(number iteration_time_s "$work/$model.gpipe.json")" \
    -v ofob="$(number iteration_time_s "$work/$model.1f1b.json")" 'BEGIN { exit !(naive > 0 && gpipe < naive && ofob < naive) }'
  check "$model: gpipe and 1f1b beat naive" $?
  # Imported, the same model: every number of the JSON is the same; notes on what graph.txt holds besides are of the graph alone.
  "$plumbline" import pipedream "$graph" -o "$work/$model.profile.yaml" > /dev/null 2> "$work/err"
  sed "s|pipedream: [^,]*|profile: $model.profile.yaml|" "$work/$model.yaml" > "$work/$model.imported.yaml"
  "$plumbline" simulate "$work/$model.imported.yaml" schedule.name=1f1b --json 2> /dev/null | numbers > "$work/imported.json"
  numbers < "$work/$model.1f1b.json" | cmp -s - "$work/imported.json"
  check "$model: imported it simulates as the graph itself" $?
done
# VGG-16 by hand: 233.902 + 438.633 ms for a batch of 128 (and 0.4 us of rounding), so eight micro-batches
# of 16 keep the devices busy for 0.672535 s together.
busy=$(sed -n 's/^   "busy_s": \([0-9.e-]*\),$/\1/p' "$work/vgg16.naive.json" | awk '{ sum += $1 } END { print sum }')
awk -v busy="$busy" 'BEGIN { exit !(busy > 0.67253 && busy < 0.67254) }'
check "vgg16: the sum of busy times is $busy, not 0.672535" $?
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
