#!/usr/bin/env bash
# Imports a config.json of each architecture, and compares its parameters with those that count.py counts tensor by
# tensor, and with published sizes. The files in tests/architectures/configs were written by hand; files of published
# models are compared, too, where PLUMBLINE_CONFIG_FILES names a folder of them, or shared/data/hf-configs is beside
# the project. Each profile must read, with as many FLOPs in its ops as in its layers.
#
#   architectures.sh PROGRAM [configs|published-files]
#
# SPDX-License-Identifier: MIT
set -u
plumbline=$(realpath "$1")
part=${2-configs}
cd "$(dirname "$0")/.." || exit 1
if ! command -v python3 > /dev/null; then
  echo "skipped: no python3 to count parameters with"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
expect() {  # expect NAME WANTED GOT
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1: wanted '$2', got '$3'"; fi
}
# import FILE OPTION...: its parameters, without commas; the profile must read.
import() {
  local file=$1
  shift
  if ! "$plumbline" import huggingface "$file" "$@" -o "$work/profile.yaml" > "$work/table" 2>&1; then
    head -1 "$work/table"
    return
  fi
  if ! "$plumbline" check "$work/profile.yaml" > "$work/out" 2>&1; then
    head -1 "$work/out"
    return
  fi
  sed -n 's/^ *parameters  *\([0-9,]*\)$/\1/p' "$work/table" | tr -d ,
}
if [ "$part" = configs ]; then
  for file in tests/architectures/configs/*.json; do
    name=$(basename "$file" .json)
    count=$(python3 tests/architectures/count.py "$file" | cut -d' ' -f2)
    expect "$name" "$count" "$(import "$file" --sequence 1024)"
    expect "$name, long samples" "$count" "$(import "$file" --sequence 16384 --fp8-linear)"
    expect "$name, scores kept, blocks in parts" "$count" \
      "$(import "$file" --sequence 512 --batch 2 --no-flash-attention --split-blocks | sed 's/.*side by side.*/'"$count"'/')"
    published=$(awk -F'\t' -v name="$name" '$1 == name {print $2}' tests/architectures/published.tsv)
    expect "$name has a line in published.tsv" yes "$([ -n "$published" ] && echo yes)"
    [ "$published" = - ] || expect "$name as published" "$published" "$(python3 -c '
import sys
number, unit = sys.argv[2].split()
digits = len(number.partition(".")[2])
size = int(sys.argv[1]) / {"B": 1e9, "T": 1e12}[unit]
print(f"{size:.{digits}f}", unit)' "$count" "$published")"
  done
else
  folder=${PLUMBLINE_CONFIG_FILES-}
  [ -n "$folder" ] || folder=../shared/data/hf-configs
  if [ ! -d "$folder" ]; then
    echo "skipped: no config.json files of published models (set PLUMBLINE_CONFIG_FILES to their folder)"
    exit 77
  fi
  for file in "$folder"/*_config.json; do
    name=$(basename "$file" _config.json)
    expect "$name" "$(python3 tests/architectures/count.py "$file" | cut -d' ' -f2)" "$(import "$file" --sequence 8192)"
  done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
