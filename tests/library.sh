#!/usr/bin/env bash
# The programs in examples/library run, and docs/how-to/library.md shows them as they are; the README, a part of one.
# SPDX-License-Identifier: MIT
# Usage: tests/library.sh FOLDER          where the programs library_sweep, ... are
set -u
export LC_ALL=C
programs=$(realpath -e -- "${1:?usage: tests/library.sh FOLDER}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
page=$(cat docs/how-to/library.md)
failed=0
fail() {
  echo "FAILED: $1"
  failed=1
}
for source in examples/library/*.cpp; do
  program=$(sed 1,3d "$source")  # without what it is and its licence
  [[ $page == *$'```cpp\n'"$program"$'\n```'* ]] || fail "docs/how-to/library.md does not show $source as it is"
done
# The README shows some lines of the first one.
excerpt=$(awk '/^```cpp$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md)
[[ -n $excerpt && $(cat examples/library/predict.cpp) == *"$excerpt"* ]] || fail "README.md shows what is not in predict.cpp"
contains() {  # contains PROGRAM TEXT
  text=$("$programs/library_$1") || fail "$1 ends with $?"
  [[ $text == *$2* ]] || fail "$1 does not say '$2': $text"
}
contains predict '100 us: 35.3 ms' && contains devices '68 ops; all forwards take 32000000 ns' &&
  contains sweep 'schedule.name=1f1b schedule.micro_batches=16 fits' && contains search '3 layouts for mini-batches' &&
  contains order 'at most 0 % above any order' && contains validate 'gpipe'  # calibrate takes seconds
((failed == 0)) && echo "passed"
exit "$failed"
