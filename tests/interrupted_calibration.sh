#!/usr/bin/env bash
# A calibration that is interrupted keeps what it has measured, goes on from it, and tidies up behind itself.
# SPDX-License-Identifier: MIT
# Usage: tests/interrupted_calibration.sh BINARY          exit 77: it cannot run here, or other work has the cores
set -u
export LC_ALL=C
plumbline=$(realpath -e -- "${1:?usage: tests/interrupted_calibration.sh BINARY}") || exit 2
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
job=''
trap '[[ -z $job ]] || kill -KILL "$job" 2> /dev/null; rm -rf "$work"' EXIT
network=examples/networks/mlp.network.yaml
profile=$work/mlp.profile.yaml
partial=$profile.partial
passed=0
failed=0
seconds=8
expect() {  # expect NAME WANTED GOT
  if [[ $2 == "$3" ]]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $1: wanted '$2', got '$3'"; fi
}
skip() {
  echo "skipped: $1; until then $passed passed, $failed failed"
  exit $((failed == 0 ? 77 : 1))
}
arguments() {  # one a line
  printf '%s\n' calibrate "$network" --backend cpu --batch 4 --least-time "$seconds" --most-time "$seconds" -o "$profile" "$@"
}
calibrate() {
  local words
  mapfile -t words < <(arguments "$@")
  "$plumbline" "${words[@]}"
}
count() {  # count PATTERN: lines of the partial file; 0 where there is none
  local lines
  lines=$(grep -c "$1" "$partial" 2> /dev/null)
  echo "${lines:-0}"
}
rounds() { count '^round '; }
passes() {  # but for those with one micro-batch in flight, which the profile does not count
  awk '/^one in flight/ { aside = 1 } /^round / { aside = 0 } /^4 0 / && !aside { n++ } END { print n + 0 }' \
    "$partial" 2> /dev/null
}
# Starts a calibration, and sends it this signal as soon as it has kept so many rounds. Sets code and err.
interrupt() {  # interrupt SIGNAL ROUNDS OPTION...
  local signal=$1 wanted=$2 tries words
  shift 2
  mapfile -t words < <(arguments "$@")
  set -m  # else Ctrl-C is ignored in the background
  "$plumbline" "${words[@]}" > "$work/out" 2> "$work/err" &  # no shell between: its end is the end of the lock
  job=$!
  set +m
  for ((tries = 0; tries < 600; tries++)); do
    (($(rounds) < wanted)) || break
    kill -0 "$job" 2> /dev/null || break
    sleep 0.1
  done
  kill "-$signal" -- "-$job" 2> /dev/null
  wait "$job" 2> /dev/null
  code=$?
  job=''
  err=$(sed "s|$work/||g" "$work/err")
}

# Refused before anything is allocated or measured; numbers of this machine are masked.
message=$("$plumbline" calibrate "$network" --backend cpu --batch 1000000000 2>&1)
code=$?
[[ $message != *'without oneDNN'* ]] || skip 'this build has no oneDNN'
expect "a batch that no memory holds is exit 4" 4 $code
expect "and names both sizes and what would fit" \
  "error: micro-batches of 1000000000 samples take 268.3 TiB of memory on 1 device, and <size> are available
  help: --batch <n> is about the largest that fits" \
  "$(sed -E 's/[0-9.]+ [A-Za-z]+ are available/<size> are available/; s/--batch [0-9]+/--batch <n>/' <<< "$message")"
if (($(nproc) < 17)); then
  message=$("$plumbline" calibrate "$network" --backend cpu --devices 17 2>&1)
  expect "a core that is not there is exit 5" 5 $?
  expect "and told" "error: 17 devices, but there <cores>
  help: every device is a core of its own" "$(sed -E 's/there .*/there <cores>/' <<< "$message")"
fi

# A shell that was started with Ctrl-C ignored cannot give it back to what it starts.
ctrl_c=INT
((0x$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status) & 2)) && ctrl_c=TERM

# Ctrl-C in the second round; then kill -9 in a later one; then the profile of both.
interrupt $ctrl_c 1
if [[ $code != 130 && $(cat "$work/err") == *'too much other work'* ]]; then skip 'other work has the cores'; fi
expect "Ctrl-C is exit 130" 130 $code
first=$(passes)
expect "and says in one sentence how to go on" \
  "interrupted: $(count '^4 0 ') passes are kept in mlp.profile.yaml.partial; the same command with --resume goes on" "$err"
expect "no profile is there yet" no "$([[ -e $profile ]] && echo yes || echo no)"
calibrate > "$work/out" 2> "$work/err"
expect "without --resume it is refused" 2 $?
expect "with the two ways out" "mlp.profile.yaml.partial: error: holds what an interrupted calibration has measured
  help: go on with it by --resume, or delete it and calibrate anew" "$(sed "s|$work/||g" "$work/err")"
calibrate --resume --seed 2 > "$work/out" 2> "$work/err"
expect "another seed is refused" 2 $?
expect "with both values" \
  "mlp.profile.yaml.partial:7:7: error: this was measured with 'seed: 1', and now it is '2'" \
  "$(sed "s|$work/||g" "$work/err" | head -n 1)"
expect "a refusal changes nothing" "$first" "$(passes)"
interrupt KILL $(($(rounds) + 2)) --resume  # one more, and the one with one micro-batch in flight
expect "the round with one micro-batch in flight is kept, too" yes \
  "$( (($(count '^one in flight') > 0)) && echo yes || echo no)"
expect "kill -9 is exit 137" 137 $code
second=$(passes)
expect "and what was on the disk is there" yes "$( ((second > first)) && echo yes || echo no)"
# Where other work spoilt all passes of a kind with one in flight, the last session has to walk them again.
spoilt=$(awk '/^one in flight/ { aside = 1 } /^round / { aside = 0 }
  /^4 / && aside { seen[$2 $3] = 1; if ($4 != "-") clean[$2 $3] = 1 }
  END { for (kind in seen) n += !(kind in clean); print n + 0 }' "$partial")
((spoilt == 0)) || skip 'other work has the cores'
printf '4 0 F 12 3' >> "$partial"
seconds=0.1  # less than what is kept: nothing more is measured
calibrate --resume > "$work/out" 2> "$work/err"
code=$?
if [[ $(cat "$work/err") == *'too much other work'* ]]; then skip 'other work has the cores'; fi
expect "it goes on to the end" 0 $code
expect "the cut line is dropped, with a note" 1 "$(grep -c 'partial:[0-9]*: the last line is cut off, and dropped$' "$work/err")"
expect "the profile has the passes of all sessions" "  passes: \"$second\"" "$(grep '^  passes: ' "$profile")"
expect "and says how often it was resumed" '  resumed: "1"' "$(grep '^  resumed: ' "$profile")"
expect "the partial file is gone" no "$([[ -e $partial ]] && echo yes || echo no)"
calibrate --resume > "$work/out" 2> "$work/err"
expect "nothing to resume is told" 1 "$(grep -c 'to go on with: measuring from the beginning$' "$work/err")"
echo "$passed passed, $failed failed"
((failed == 0))
