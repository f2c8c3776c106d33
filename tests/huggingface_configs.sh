#!/usr/bin/env bash
# Imports published models where their config.json files are at hand, and compares the parameters with those of the
# models: PLUMBLINE_HF_CONFIGS names a folder of <model>.json and a README.md with a table, | <model>.json | parameters |
# active for a token (or "same") | ...
# SPDX-License-Identifier: MIT
set -u
plumbline=$(realpath "$1")
cd "$(dirname "$0")/.." || exit 1
folder=${PLUMBLINE_HF_CONFIGS-}
if [ ! -f "$folder/README.md" ]; then
  echo "skipped: no configs of published models (set PLUMBLINE_HF_CONFIGS to their folder)"
  exit 77
fi
folder=$(realpath "$folder")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
expect() {  # expect NAME WANTED GOT
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1: wanted '$2', got '$3'"; fi
}
check() {  # check MODEL PARAMETERS ACTIVE
  "$plumbline" import huggingface "$folder/$1.json" --sequence 1024 -o "$work/$1.profile.yaml" > "$work/table" 2> "$work/err"
  expect "$1: exit code" 0 $?
  expect "$1: parameters" "$2" "$(sed -n 's/^ *parameters  *\([0-9,]*\)$/\1/p' "$work/table" | tr -d ,)"
  expect "$1: active for a token" "$3" "$(sed -n 's/^ *active for a token  *\([0-9,]*\)$/\1/p' "$work/table" | tr -d ,)"
  "$plumbline" check "$work/$1.profile.yaml" > "$work/out" 2>&1
  expect "$1: the profile reads" 0 $?
  printf 'version: 1\nmodel: {profile: %s}\ncluster: {device: h200-sxm, devices: 8, link: device}\nplan: {stages: 8}\nschedule: {name: 1f1b, micro_batches: 16}\n' \
    "$work/$1.profile.yaml" > "$work/$1.yaml"
  "$plumbline" simulate "$work/$1.yaml" --json > "$work/json" 2> "$work/err"
  expect "$1: is told as estimated" 1 "$(grep -c 'layer times: kernel by kernel, for h200-sxm' "$work/json")"
}
while IFS='|' read -r _ file parameters active _; do
  file=${file// /}
  parameters=${parameters// /}
  active=${active// /}
  [ "${file##*.}" = json ] || continue
  [ "$active" != same ] || active=$parameters
  check "${file%.json}" "$parameters" "$active"
done < "$folder/README.md"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
