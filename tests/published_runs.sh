#!/usr/bin/env bash
# Published runs are predicted as well as before, and about nine of ten lie within their intervals.
# PLUMBLINE_RUNS names a folder of runs.csv and its scorer evaluate.py; skipped visibly without it, or without Python.
# SPDX-License-Identifier: MIT
# Usage: tests/published_runs.sh BINARY
set -eu
binary=$(realpath -e -- "${1:?usage: tests/published_runs.sh BINARY}")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
folder=${PLUMBLINE_RUNS-}
if [ ! -f "$folder/runs.csv" ]; then
  echo "skipped: no published runs (set PLUMBLINE_RUNS to their folder)"
  exit 77
fi
if ! command -v python3 > /dev/null; then
  echo "skipped: no python3"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export PLUMBLINE=$binary
python3 "$folder/evaluate.py" --out "$work/predictions.csv" --keep "$work/scenarios" > "$work/output.txt" ||
  { tail "$work/output.txt"; exit 1; }
scripts/published-runs "$folder/runs.csv" "$work/predictions.csv" "$work/scenarios" --check
