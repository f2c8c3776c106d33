#!/usr/bin/env bash
# Which GPUs the program's kernels have machine code for, as cuobjdump of a CUDA toolkit sees it. Ends with 77 where there
# is no cuobjdump.
# Usage: tests/cuda_image.sh FATBIN
# SPDX-License-Identifier: MIT
set -u
image=$(realpath -e -- "${1:?usage: tests/cuda_image.sh FATBIN}") || exit 2
cuobjdump=$(command -v cuobjdump || true)
[ -n "$cuobjdump" ] || cuobjdump=/usr/local/cuda/bin/cuobjdump
if [ ! -x "$cuobjdump" ]; then
  echo 'SKIPPED: there is no cuobjdump, so nobody says what machine code the program holds'
  exit 77
fi
list=$("$cuobjdump" --list-elf --list-ptx "$image" 2>&1)
echo "$list"
failed=0
for code in sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
  grep -q "$code\\." <<<"$list" || { echo "FAILED: there is no code for $code"; failed=1; }
done
grep -q '_80\.ptx' <<<"$list" || { echo 'FAILED: there is no PTX'; failed=1; }
exit $failed
