#!/usr/bin/env bash
# From a config.json on one CPU to the end: its network, its kernels in a table, the two beside each other, and real
# runs beside their predictions.
# SPDX-License-Identifier: MIT
# Usage: tests/kernel_calibration.sh BINARY          exit 77: it cannot run here, or other work has the cores
# A verdict of validate is not judged: OK (0), OFF (1) and INCONCLUSIVE (6) all pass if the times are near each other.
set -u
export LC_ALL=C
plumbline=$(realpath -e -- "${1:?usage: tests/kernel_calibration.sh BINARY}") || exit 2
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
config=$work/tiny.json
table=$work/tiny.kernels.yaml
passed=0
failed=0
expect() {  # expect NAME WANTED GOT
  if [[ $2 == "$3" ]]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $1: wanted '$2', got '$3'"; fi
}
holds() {  # holds NAME CONDITION: an awk expression
  if awk "BEGIN { exit !($2) }"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $1: not $2"; fi
}
skip() {
  echo "skipped: $1; until then $passed passed, $failed failed"
  exit $((failed == 0 ? 77 : 1))
}
calibrate() { "$plumbline" calibrate "$@" > "$work/out" 2> "$work/err"; }

cat > "$config" <<'END'
{"model_type": "llama", "hidden_size": 128, "intermediate_size": 344, "num_hidden_layers": 8, "num_attention_heads": 4,
 "num_key_value_heads": 2, "vocab_size": 512, "hidden_act": "silu", "attention_dropout": 0.0}
END
"$plumbline" list backends --wide | grep -q '^ *cpu .*not here' && skip 'this build has no cpu backend'

# What is wrong is said before anything is measured.
wrong() {  # wrong NAME TEXT ARGUMENT...
  local name=$1 text=$2
  shift 2
  calibrate "$@"
  expect "$name: exit code" 2 $?
  [[ $(< "$work/err") == *"$text"* ]] || { failed=$((failed + 1)) && echo "FAILED: $name: $(< "$work/err")"; }
}
wrong 'no sequence' '--sequence is missing' "$config" --backend cpu -o "$table"
wrong 'a dtype that the cpu has not' 'the cpu backend computes in fp32' "$config" --backend cpu --sequence 32 --dtype bf16
wrong 'an option of networks' '--devices is an option of a network, not of a config.json' \
  "$config" --backend cpu --sequence 32 --devices 2
wrong 'an option of a config.json' '--budget is an option of a config.json, not of a network' \
  examples/networks/llama-small.network.yaml --backend cpu --budget 3
wrong 'resume without a file' '--resume without -o' "$config" --backend cpu --sequence 32 --resume
wrong 'a layout that is not possible' 'no layout is possible' "$config" --backend cpu --sequence 32 --tensor-parallel 3
expect 'nothing was written' no "$([[ -e $table ]] && echo yes || echo no)"

# The table. A slow machine, or one that sanitizes, takes several budgets: what one leaves out, the next goes on with.
calibrate "$config" --backend cpu --sequence 64 --batch 2 --budget "${PLUMBLINE_TEST_BUDGET:-8}" -o "$table"
expect 'the table: exit code' 0 $?
for budget in 15 30 60; do
  [[ $(< "$work/err") == *'too much other work'* ]] && skip 'other work has the cores'
  grep -q 'larger --budget, or --resume, has time for them' "$work/err" || break
  echo "the table: $(grep -oE '[0-9]+ kernels not measured' "$work/err"); $budget s more"
  calibrate "$config" --backend cpu --sequence 64 --batch 2 --budget "$budget" -o "$table" --resume
  expect 'the table goes on: exit code' 0 $?
done
expect 'nothing is left out' '' "$(grep -vE 'kernels? kept in' "$work/err")"
needed=$("$plumbline" kernels "$config" --sequence 64 --batch 2 --dtype fp32 --stack plumbline --list 2> /dev/null | tail -n +2 | wc -l)
expect 'each kernel that is needed has a row' "$needed" "$(grep -c '^  - \[' "$table")"
lacking=$("$plumbline" kernels "$config" --sequence 64 --batch 2 --dtype fp32 --stack plumbline --table "$table" --list 2> /dev/null | tail -n +2 | wc -l)
expect 'the table lacks none' 0 "$lacking"
closure=$(sed -nE 's/^  closure   ([0-9.]+):.*/\1/p' "$work/out")
holds 'kernels alone and blocks in place take about the same' "${closure:-0} > 0.5 && ${closure:-0} < 2"

# It is not overwritten, but gone on with.
cp "$table" "$work/before"
wrong 'a table that is there' 'is there: a calibration would overwrite it' "$config" --backend cpu --sequence 64 -o "$table"
expect 'it is as before' '' "$(diff "$table" "$work/before")"
calibrate "$config" --backend cpu --sequence 64,32 --batch 2 --budget 20 -o "$table" --resume
expect 'more lengths: exit code' 0 $?
holds 'the rows of before are kept' "$(grep -cFf <(grep '^  - \[' "$work/before") "$table") == $needed"
holds 'there are more of them' "$(grep -c '^  - \[' "$table") > $needed"
sed -i 's/^  processor: .*/  processor: another/' "$table"
wrong 'another machine' 'has other times: its provenance has processor: another' \
  "$config" --backend cpu --sequence 64 -o "$table" --resume
cp "$work/before" "$table"
sed 's/"hidden_act": "silu"/"hidden_act": "gelu"/' "$config" > "$work/gelu.json"
wrong 'another function' 'has other times: its provenance has forms: rms_norm; silu, gated; heads of 32, and here it is rms_norm; gelu' \
  "$work/gelu.json" --backend cpu --sequence 64 -o "$table" --resume
calibrate "$work/nowhere.json" --backend cpu --sequence 64
expect 'a file that is not there' 3 $?
expect 'a file that is not there is named' 1 "$(grep -c 'nowhere.json: error: cannot be read' "$work/err")"
calibrate "$config" --backend cpu --sequence 16 --stack torch-compile --budget 5 -o "$work/products.yaml"
expect 'products of another framework: exit code' 0 $?
expect 'they are all that is measured' gemm: "$(grep -oE '^(gemm|sdpa|memory):' "$work/products.yaml")"

# A prediction by it alone.
cp "$work/before" "$table"
cat > "$work/table.yaml" <<'END'
version: 1
model: {huggingface: tiny.json, sequence: 64, dtype: fp32}
cluster:
  devices: 2
  device: {peak: 60 GFLOP/s, memory_bandwidth: 10 GB/s, kernels: tiny.kernels.yaml, stack: plumbline}
  link: {latency: 1 us, bandwidth: 20 GB/s}
plan: {stages: 2, partition: balanced}
schedule: {name: 1f1b, micro_batches: 4}
training: {micro_batch_size: 2, optimizer_state: 0.0, gradients: 1.0}
END
"$plumbline" simulate "$work/table.yaml" --no-timeline > "$work/out" 2> "$work/err"
expect 'simulated: exit code' 0 $?
[[ $(tr -s '\n ' ' ' < "$work/out") == *'layer times: 100 % by measured kernels'* ]] || {
  failed=$((failed + 1)) && echo "FAILED: all kernels are measured: $(tail -n 8 "$work/out")"
}

# The network, walked and run.
"$plumbline" import huggingface "$config" --network --sequence 64 --dtype fp32 -o "$work/tiny.network.yaml" > "$work/out"
expect 'the network: exit code' 0 $?
calibrate "$work/tiny.network.yaml" --backend cpu --devices 2 --batch 2 --most-time 6 -o "$work/tiny.profile.yaml"
code=$?
[[ $(< "$work/err") == *'too much other work'* ]] && skip 'other work has the cores'
expect 'its profile: exit code' 0 "$code"
cat > "$work/run.yaml" <<'END'
version: 1
model: {network: tiny.network.yaml, profile: tiny.profile.yaml}
cluster: {devices: 2, link: {latency: 1 us, bandwidth: 20 GB/s}}
plan: {stages: 2, partition: balanced}
schedule: {name: 1f1b, micro_batches: 4}
training: {micro_batch_size: 2}
END
for settings in schedule.name=gpipe schedule.name=1f1b schedule.name=zb-h1 'schedule.name=1f1b schedule.recompute=full'; do
  # shellcheck disable=SC2086
  "$plumbline" validate "$work/run.yaml" $settings --backend cpu > "$work/out" 2> "$work/err"
  code=$?
  expect "$settings: it runs beside its prediction" yes "$( ((code == 0 || code == 1 || code == 6)) && echo yes || echo "exit code $code: $(< "$work/err")")"
  grep -q '^nothing clean was measured' "$work/out" && echo "$settings: other work has the cores" && continue
  off=$(sed -nE 's/^  iteration time .* ([+-][0-9.]+) %.*/\1/p' "$work/out" | head -n 1)
  echo "$settings: ${off:-?} %"
  holds "$settings: they are near each other" "${off:-99} > -30 && ${off:-99} < 30"
done
echo "$passed passed, $failed failed"
((failed == 0))
