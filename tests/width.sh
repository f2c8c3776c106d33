#!/usr/bin/env bash
# Runs commands on a page of 100 columns: no line of what they print, nor of their messages, is wider.
# SPDX-License-Identifier: MIT
# Usage: tests/width.sh BINARY
set -u
export LC_ALL=C.UTF-8
binary=$(realpath -e -- "${1:?usage: tests/width.sh BINARY}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
passed=0
failed=0
work=$(mktemp -d) || exit 3
trap 'rm -rf -- "$work"' EXIT

fits_in() {  # COLUMNS ARGUMENT...: of a command that works, or says that something does not fit or is wrong
  local columns=$1 wide code
  shift
  COLUMNS=$columns "$binary" "$@" > "$work/out" 2>&1
  code=$?
  wide=$(grep -E "^.{$((columns + 1))}" "$work/out")
  if [[ $code == [024] && -s $work/out && -z $wide ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: plumbline %s: exit code %s; wider than %s columns:\n%s\n' "$*" "$code" "$columns" "${wide%%$'\n'*}"
  fi
}
fits() { fits_in 100 "$@"; }

for scenario in examples/*.yaml; do
  fits simulate "$scenario"
  fits_in 60 simulate "$scenario"
  fits explain "$scenario"
  fits check --stages "$scenario"
  fits schedule "$scenario"
done
for mistake in examples/mistakes/*.yaml; do fits check "$mistake"; done
for network in examples/networks/*.yaml; do fits check "$network"; done
for kind in schedules presets stacks backends; do fits list "$kind"; done
fits bubble --stages 4 --micro-batches 16
fits bubble --stages 2,4,8 --micro-batches 4,8,16
fits bubble --stages x --micro-batches 16
fits plan examples/planned.yaml
fits plan examples/zero-bubble.yaml
fits compare examples/practical-{a,b,c}.yaml
fits compare examples/layouts.yaml schedule.micro_batches=64,128 schedule.name=1f1b,gpipe
fits sweep examples/sweep.yaml
fits sweep examples/four-stages.yaml schedule.name=1f1b,gpipe schedule.micro_batches=4,8,16 cluster.memory=1GB,80GB
fits search examples/layouts.yaml
fits search examples/estimated-transformer.yaml
fits explain examples/four-stages.yaml --op 2B3

# The help of every command.
fits
commands=$("$binary" help | sed -n '/^Subcommands:/,$s/^  \([a-z]\+\)  .*/\1/p')
for command in $commands; do fits help "$command"; done
[[ $commands == *simulate*version* ]] || { failed=$((failed + 1)); echo "FAILED: the help lists no commands"; }
for kind in csv huggingface kernels; do fits import "$kind" --help; done

printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed == 0 ]]
