#!/usr/bin/env bash
# The course's options in PyTorch, on the CPU: orders and gradients, the error without the condition, and that
# docs/course/practical-9.md shows what the script prints. Skipped (77) where no python3 has PyTorch.
# SPDX-License-Identifier: MIT
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
script=examples/course/delayed_backward.py
page=docs/course/practical-9.md
passed=0
failed=0

python=''
for candidate in python3 /usr/bin/python3; do  # the first one may be another than Debian's, which has python3-torch
  if "$candidate" -c 'import torch' 2> /dev/null; then
    python=$candidate
    break
  fi
done
if [[ -z $python ]]; then
  echo 'skipped: no python3 with PyTorch (apt-get install python3-torch)'
  exit 77
fi

same() {  # NAME WANTED GOT
  if [[ $2 == "$3" ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf "FAILED: %s: wanted\n%s\ngot\n%s\n" "$1" "$2" "$3"
  fi
}

shown() {  # NAME LINE: stands in the page, as a line or, of an error, as its beginning
  if grep -qF -- "$2" "$page"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s: not in %s: %s\n' "$1" "$page" "$2"
  fi
}

# All options make the gradients of the whole mini-batch, each in its order. The page shows it.
for m in 2 4 8; do
  printed=$("$python" "$script" --micro-batches $m)
  same "exit code with $m micro-batches" 0 $?
  same "options with as good gradients, $m micro-batches" 3 "$(grep -c 'gradients as without micro-batches$' <<< "$printed")"
done
while IFS= read -r line; do
  shown 'an option' "$line"
done < <("$python" "$script")
same 'the order of option C' 'F0 F1 B0 F2 B1 F3 B2 B3' "$("$python" "$script" | sed -n 's/^C  \(.*\)  in flight.*/\1/p')"

# Without its condition option C runs the backward of micro-batch 0 twice, and PyTorch refuses.
printed=$("$python" "$script" --without-condition)
same 'exit code without the condition' 0 $?
same 'the order up to the error' 'F0 B-1 F1 B0 and then' "$(head -n 1 <<< "$printed")"
shown 'the order up to the error' "$(head -n 1 <<< "$printed")"
error='RuntimeError: Trying to backward through the graph a second time'  # what follows may differ between versions
same 'the error' "$error" "$(sed -n 2p <<< "$printed" | cut -c "1-${#error}")"
shown 'the error' "$error"

echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
