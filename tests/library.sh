#!/usr/bin/env bash
# The programs in examples/library run, and docs/library.md shows them as they are.
# SPDX-License-Identifier: MIT
# Usage: tests/library.sh FOLDER          where the programs library_sweep, ... are
set -u
export LC_ALL=C
programs=$(realpath -e -- "${1:?usage: tests/library.sh FOLDER}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
page=$(cat docs/library.md)
failed=0
fail() {
  echo "FAILED: $1"
  failed=1
}
for source in examples/library/*.cpp; do
  program=$(sed 1,3d "$source")  # without what it is and its licence
  [[ $page == *$'```cpp\n'"$program"$'\n```'* ]] || fail "docs/library.md does not show $source as it is"
done
contains() {  # contains PROGRAM TEXT
  text=$("$programs/library_$1") || fail "$1 ends with $?"
  [[ $text == *$2* ]] || fail "$1 does not say '$2': $text"
}
contains predict 'ms, with 100 us an op ' && contains sweep 'point 5: 57 ms' && contains search 'tensor 8, ' && contains validate 'gpipe'  # calibrate takes seconds
((failed == 0)) && echo "passed"
exit "$failed"
