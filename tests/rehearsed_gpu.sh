#!/usr/bin/env bash
# The whole loop of --backend cuda, as a user types it, on a made-up GPU: libraries that the program loads as it
# would NVIDIA's, kernels that take their time, streams that compete. What it measures says nothing of a real GPU;
# that a prediction holds does say that calibration, simulation and run mean the same.
# SPDX-License-Identifier: MIT
# Usage: tests/rehearsed_gpu.sh BUILD    PLUMBLINE_REHEARSAL_SEED=N: kernels and launches vary otherwise
set -u
export LC_ALL=C.UTF-8
PLUMBLINE_BUILD=$(realpath -e -- "${1:?usage: tests/rehearsed_gpu.sh BUILD}") || exit 2
export PLUMBLINE_BUILD
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
plumbline=$PWD/tests/rehearsal/plumbline
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
text=''
code=0
call() { code=0; text=$("$plumbline" "$@" 2>&1) || code=$?; }
check() {  # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    printf 'FAILED: %s; exit code %s and\n%s\n' "$what" "$code" "$text"
  fi
}
says() { [[ $text == *"$1"* ]]; }

call calibrate --backend cuda --check --devices 4
check 'a split in 4 is proven' test "$code" -eq 0
check 'on 32 SMs each' says 'device 3    32 SMs of GPU 0; kernels seen on 32, of graphs on 32'
check 'with all streams at once' says 'streams     12, three on each device, of which 12 work at the same time'
check 'both libraries are found' says 'layers      28 in fp32, tf32 and bf16 beside the reference, with cublasLt 13.1.0, cuDNN 9.19.0'
check 'and nothing is plain' test "${text/plain kernel/}" == "$text"

cat >"$work/spin.yaml" <<'END'
version: 1
model:
  batch: 1
  layers:
    - {name: a, forward: 400 us, backward: 800 us, output: 64 KiB, activation: 64 KiB}
    - {name: b, forward: 500 us, backward: 900 us, output: 64 KiB, activation: 64 KiB}
    - {name: c, forward: 400 us, backward: 800 us, output: 64 KiB, activation: 64 KiB}
    - {name: d, forward: 500 us, backward: 900 us, output: 64 KiB, activation: 64 KiB}
cluster: {devices: 4, link: {latency: 20 us, bandwidth: 2 GB/s}}
schedule: {name: 1f1b, micro_batches: 4}
END
call calibrate examples/networks/mlp-wide.network.yaml --backend cuda --devices 4 --batch 512 --most-time 3 -o "$work/mlp.profile.yaml"
check 'layers are calibrated' test "$code" -eq 0
check 'with links' says 'link      copy: '
check 'which take longer while others load the memory' says ' while 2 other devices compute, and '
cp examples/networks/mlp-wide.network.yaml "$work/"
cat >"$work/mlp.yaml" <<'END'
version: 1
model: {network: mlp-wide.network.yaml, profile: mlp.profile.yaml}
cluster: {devices: 4, link: measured}
plan: {partition: balanced}
schedule: {name: 1f1b, micro_batches: 4}
overhead: measured
END
# A sweep of runs of either: after some of them streams have come and gone.
errors_below() {  # MEAN WORST, in %: of the runs of $text
  awk -v mean="$1" -v worst="$2" '/"error":/ { gsub(/[^0-9.e+-]/, "", $2); e = $2 < 0 ? -$2 : $2; sum += e; n++; if (e > most) most = e }
    END { exit !(n > 0 && 100 * sum / n <= mean && 100 * most <= worst) }' <<<"$text"
}
holds() {  # SCENARIO MEAN WORST OVERRIDE...
  local scenario=$1 mean=$2 worst=$3
  shift 3
  for _ in 1 2 3; do  # other work may hold up the host
    call validate "$work/$scenario.yaml" --backend cuda --iterations 5 --json "$@"
    errors_below "$mean" "$worst" && return 0
  done
  return 1
}
check 'spinning kernels take as long as predicted' holds spin 1 1.5 \
  schedule.name=naive,gpipe,1f1b schedule.micro_batches=4,8 schedule.transfers=overlapped,blocking
check 'layers do, too' holds mlp 2 5 schedule.name=naive,gpipe,1f1b schedule.micro_batches=4,8
check 'and pools have the memory that was predicted' test "$(grep -c '"memory": "exact"' <<<"$text")" -eq 6
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
