#!/usr/bin/env bash
# Runs every examples/*.yaml and compares output and exit code with tests/golden/examples/NAME.txt.
# SPDX-License-Identifier: MIT
# Usage: tests/examples.sh BINARY      PLUMBLINE_UPDATE_GOLDEN=1 writes the golden files instead.
set -u
export LC_ALL=C.UTF-8  # the timeline in Unicode
binary=$(realpath -e -- "${1:?usage: tests/examples.sh BINARY}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
golden=tests/golden/examples
passed=0
failed=0

for scenario in examples/*.yaml; do
  file=$golden/$(basename -- "$scenario" .yaml).txt
  text=$("$binary" simulate "$scenario" 2>&1)
  text+=$'\n'"exit code $?"
  if [[ ${PLUMBLINE_UPDATE_GOLDEN:-} == 1 ]]; then
    mkdir -p -- "$golden" && printf '%s\n' "$text" > "$file" || exit 3
  fi
  if difference=$(diff -u --label "$file" --label "$scenario, now" -- "$file" - <<< "$text" 2>&1); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n%s\n' "$scenario" "$difference"
  fi
done

# A golden file without its scenario tests nothing.
for file in "$golden"/*.txt; do
  [[ -e $file ]] || continue
  scenario=examples/$(basename -- "$file" .txt).yaml
  [[ -e $scenario ]] && continue
  if [[ ${PLUMBLINE_UPDATE_GOLDEN:-} == 1 ]]; then
    rm -- "$file"
  else
    failed=$((failed + 1))
    printf 'FAILED: %s: there is no %s\n' "$file" "$scenario"
  fi
done

echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
