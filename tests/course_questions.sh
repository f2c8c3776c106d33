#!/usr/bin/env bash
# The pages of docs/course answer all 38 questions of the course, each in one place: under a heading that ends with its number.
# SPDX-License-Identifier: MIT
set -eu
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
answered=$(grep -hoE '^### .*\(question [0-9]+\)$' docs/course/*.md | grep -oE '[0-9]+\)$' | tr -d ')' | sort -n)
if difference=$(diff --label 'the questions' --label 'docs/course' -u <(seq 38) - <<< "$answered"); then
  echo '38 questions, each answered once'
else
  printf 'FAILED: questions without an answer (-), or with two (+):\n%s\n' "$difference"
  exit 1
fi
