#!/usr/bin/env bash
# scripts/validate-gpu: without a GPU it says so; rehearsed on cores it keeps to its budget and goes on where it stopped.
# SPDX-License-Identifier: MIT
# Usage: tests/validate_gpu.sh BINARY      exit code 77: nothing runs on the cores of this machine or build, or other work keeps them
set -u
export LC_ALL=C
binary=$(realpath -e -- "${1:?usage: tests/validate_gpu.sh BINARY}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
text=''
code=0
call() { code=0; text=$(scripts/validate-gpu --plumbline "$binary" "$@" 2>&1) || code=$?; }
check() {  # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    printf 'FAILED: %s; exit code %s and\n%s\n' "$what" "$code" "$text"
  fi
}
says() { [[ $text == *"$1"* ]]; }

for wrong in '--budget 0' '--budget soon' '--speed' '-o'; do
  # shellcheck disable=SC2086  # words
  call $wrong
  check "'$wrong' is refused" test "$code" -eq 2
done
if [[ $("$binary" list backends) == *'no CUDA driver'* ]]; then
  call -o "$work/gpu"
  check 'without a driver it ends with 5' test "$code" -eq 5
  check 'and says why' says 'there is no CUDA driver on this machine'
  check 'and writes nothing' test ! -e "$work/gpu"
fi

if [[ $("$binary" list backends --json) != *'"available": true'*'"available": true'* ]] || [ "$(nproc)" -lt 2 ]; then
  echo "skipped: nothing runs on two cores here ($passed passed, $failed failed before that)"
  [ "$failed" -eq 0 ] && exit 77
  exit 1
fi
call --rehearse -o "$work/r" --budget 1
if says 'too much other work on this machine'; then
  echo "skipped: other work keeps this machine from measuring ($passed passed, $failed failed before that)"
  [ "$failed" -eq 0 ] && exit 77
  exit 1
fi
check 'the first call measures' test -f "$work/r/mlp-2.profile.yaml"
[ -f "$work/r/mlp-2.json" ] || check 'and tells what its budget did not hold' says 'left for the next call: validate-mlp-2'
check 'which is no failure' test "$code" -eq 0
call --rehearse -o "$work/r" --budget 9
check 'the second one keeps what is there' says 'calibrate-mlp-2: kept'
check 'and does the rest' test -f "$work/r/mlp-2.json"
check 'the practicals, too' test -f "$work/r/mlp-2-blocking.json"
check 'without a failure' test "$code" -eq 0
call --rehearse -o "$work/r" --budget 1
check 'a third one has nothing to do' says 'validate-mlp-2: kept'
for name in machine.txt spin-2.json spin-2.yaml mlp-2.json mlp-2.profile.yaml mlp-2.yaml mlp.network.yaml validate-mlp-2.txt; do
  check "the archive holds $name" grep -qx "r/$name" <(tar -tzf "$work/r.tar.gz")
done
cd "$work" && rm -rf r && tar -xzf r.tar.gz
code=0
text=$("$binary" simulate r/mlp-2.yaml 2>&1) || code=$?
check 'the scenario of an archive can be read elsewhere' test "$code" -eq 0
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
