#!/usr/bin/env bash
# Whether this machine's GPU can be split into devices that keep to themselves and work at the same time. Ends with 77
# where there is no GPU, once the command has said so as it should.
# Usage: tests/cuda_check.sh BINARY
# SPDX-License-Identifier: MIT
set -u
export LC_ALL=C.UTF-8
plumbline=$(realpath -e -- "${1:?usage: tests/cuda_check.sh BINARY}") || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

check() {  # DEVICES: leaves the exit code in code
  "$plumbline" calibrate --backend cuda --check --devices "$1" >"$work/out" 2>"$work/err"
  code=$?
}

check 1
if [[ $code -eq 5 ]]; then
  # It says why in one sentence and what to do, and nothing on stdout.
  if [[ -s $work/out || $(grep -c '^error: ' "$work/err") -ne 1 || $(grep -c '^  help: ' "$work/err") -ne 1 ]]; then
    echo "FAILED: without a device:"
    cat "$work/out" "$work/err"
    exit 1
  fi
  echo "SKIPPED: $(head -n 1 "$work/err")"
  exit 77
fi

failed=0
for devices in 1 2 4 8; do
  check "$devices"
  if [[ $code -eq 5 ]] && grep -q ', too few for ' "$work/err"; then
    head -n 1 "$work/err"  # a small GPU
    continue
  fi
  if [[ $code -ne 0 || -s $work/err || $(grep -c '^device ' "$work/out") -ne $devices ]]; then
    failed=$((failed + 1))
    echo "FAILED: $devices devices: exit $code"
  fi
  cat "$work/out" "$work/err"
done
check 1024
if [[ $code -ne 5 ]]; then
  failed=$((failed + 1))
  echo "FAILED: 1024 devices: exit $code"
  cat "$work/out" "$work/err"
fi
[[ $failed -eq 0 ]]
