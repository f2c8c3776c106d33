#!/usr/bin/env bash
# The malformed inputs of tests/bad: each must end with the recorded message and exit code.
# Usage: tests/bad.sh BINARY [FILTER]    FILTER: a part of the cases' names
#   X.yaml   `plumbline check tests/bad/X.yaml` (not *.profile.yaml: those are read by the cases)
#   X.args   a command line, one argument a line
#   X.err    stderr of either, run from the root of the repository, then `exit N`
# PLUMBLINE_UPDATE_GOLDEN=1 rewrites the .err files, save where the command succeeds, crashes or hangs.
# SPDX-License-Identifier: MIT
set -u
export LC_ALL=C

[[ $# -ge 1 && -x $1 ]] || { echo "usage: $0 BINARY [FILTER]" >&2; exit 2; }
binary=$(realpath "$1")
filter=${2-}
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
got=$(mktemp) || exit 2
trap 'rm -f "$got"' EXIT

passed=0
failed=0
complain() {
  echo "$1: $2"
  failed=$((failed + 1))
}

for file in tests/bad/*.yaml tests/bad/*.args; do
  [[ $file == *.profile.yaml ]] && continue
  case=$(basename "${file%.*}")
  [[ $case == *"$filter"* ]] || continue
  arguments=(check "$file")
  [[ $file == *.args ]] && mapfile -t arguments <"$file"
  timeout 60 "$binary" ${arguments[@]+"${arguments[@]}"} </dev/null >/dev/null 2>"$got"
  code=$?
  echo "exit $code" >>"$got"
  expected=tests/bad/$case.err
  if [[ $code -lt 2 || $code -gt 4 ]]; then  # 0 accepts it, 70 is a bug, 124 a hang, more a crash
    complain "$case" "a malformed input must exit with 2, 3 or 4, this one:"
    tail -n 5 "$got"
  elif [[ ${PLUMBLINE_UPDATE_GOLDEN-} == 1 ]]; then
    cp "$got" "$expected"
    passed=$((passed + 1))
  elif [[ ! -f $expected ]]; then
    complain "$case" "has no $expected"
  elif difference=$(diff -a -u --label "$expected" --label "$case now" "$expected" "$got"); then
    passed=$((passed + 1))
  else
    complain "$case" "differs"
    echo "$difference"
  fi
done

for expected in tests/bad/*.err; do
  case=$(basename "$expected" .err)
  [[ $case == *"$filter"* ]] || continue
  [[ -f tests/bad/$case.yaml || -f tests/bad/$case.args ]] || complain "$case" "$expected has no case beside it"
done

echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
