#!/usr/bin/env bash
# What `plumbline diagnose` says of generated traces with a known truth, of real ones with their names taken out, and of
# traces that lack something.
# Usage: tests/diagnose.sh BINARY
# SPDX-License-Identifier: MIT
set -u
binary=$(realpath -e -- "${1:?usage: tests/diagnose.sh BINARY}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
folder=$(mktemp -d) || exit 2
trap 'rm -rf -- "$folder"' EXIT
failed=0
passed=0
complain() {
  echo "$1"
  failed=$((failed + 1))
}

# same OPTIONS...: the truth comes back.
same() {
  if python3 tests/diagnose/compare.py "$binary" "$folder/made" "$@" >"$folder/said" 2>&1; then
    passed=$((passed + 1))
  else
    complain "$(cat "$folder/said")"
  fi
  rm -rf "$folder/made"
}
same --form gpu --iterations 4
same --form gpu --iterations 4 --skew 50000 --base-time
same --form gpu --iterations 4 --skew 5000 --no-pairs --seed 2
same --form gpu --iterations 4 --skew 5000 --old-nccl --gz --seed 3
same --form gpu --iterations 6 --skew 5000 --drift 20
same --form gpu --iterations 4 --skew 5000 --schedule zb --other-threads
same --form gpu --iterations 4 --skew 5000 --schedule gpipe --no-step --stages 3 --micro-batches 5
same --form gpu --iterations 4 --skew 5000 --names classic --straggler 1:1.5
same --form gpu --iterations 4 --skew 5000 --replicas 2 -- --copy 1
same --form gpu --iterations 3 --jitter 0.3 --host-late 40 --stages 6 --micro-batches 12
same --form cpu --iterations 4 --skew 5000
same --form cpu --iterations 4 --names classic --stages 2
same --form legacy --iterations 4 --skew 50000
same --form legacy --iterations 4 --schedule gpipe --seed 5
same --form gpu --iterations 3 --names none --stages 2 --micro-batches 4 --seed 1
same --form gpu --iterations 3 --names none --stages 2 --micro-batches 4 --seed 2 --skew 5000
same --form cpu --iterations 4 --names none --stages 2

# Real traces: the schedule is found, also where no range names an op.
# without_names FROM TO: the traces of a folder without the ranges of ops.
without_names() {
  mkdir -p "$2"
  python3 - "$1" "$2" <<'END'
import glob, gzip, json, os, sys
for path in glob.glob(os.path.join(sys.argv[1], "rank*.json.gz")):
    with gzip.open(path, "rt") as text:
        events = [event for event in json.load(text) if not event["name"].startswith("PP:")]
    with open(os.path.join(sys.argv[2], os.path.basename(path)[:-3]), "w") as text:
        json.dump(events, text)
END
}
for run in naive:naive gpipe:gpipe 1f1b:1f1b option-c:delayed-backward; do
  recorded=examples/real-runs/recorded/${run%:*}
  without_names "$recorded" "$folder/bare"
  for traces in "$recorded" "$folder/bare"; do
    "$binary" diagnose "$traces" --no-timeline >"$folder/said" 2>&1
    expected="${run#*:}: 2 stages on 2 devices, 4 micro-batches, 5 iterations"
    if [[ $(head -n 1 "$folder/said") == "$expected" ]]; then
      passed=$((passed + 1))
    else
      complain "$traces: wanted '$expected', got: $(head -n 3 "$folder/said")"
    fi
  done
  grep -q 'a guess' "$folder/said" || complain "$recorded without names: no note tells of a guess"
done

# The scenario of a run gives it back, and a what-if is beside a run that was recorded.
run=$folder/run.yaml
"$binary" diagnose examples/real-runs/recorded/naive -o "$run" --no-timeline >/dev/null || complain "no scenario was written"
"$binary" validate "$run" --against examples/real-runs/recorded/naive --tolerance 0.1 >"$folder/said" ||
  complain "the scenario is not its run: $(cat "$folder/said")"
"$binary" validate "$run" schedule.name=gpipe,1f1b,delayed-backward --tolerance 0.3 \
  --against examples/real-runs/recorded/{gpipe,1f1b,option-c} >"$folder/said" || complain "what-ifs: $(cat "$folder/said")"
grep -q ' 0 not' "$folder/said" || complain "runs were ranked wrong: $(tail -n 1 "$folder/said")"

# refused CODE WORDS ARGUMENTS...: the command ends with this code, and says these words.
refused() {
  local code=$1 words=$2 rc=0
  shift 2
  "$binary" "$@" >"$folder/said" 2>&1 || rc=$?
  if [[ $rc -eq $code ]] && tr '\n' ' ' <"$folder/said" | sed 's/  */ /g' | grep -qF -- "$words"; then
    passed=$((passed + 1))
  else
    complain "$*: wanted exit $code and '$words', got exit $rc: $(cat "$folder/said")"
  fi
}
gpipe=examples/real-runs/recorded/gpipe
python3 tests/diagnose/make_traces.py "$folder/eight" --form legacy --stages 2 --micro-batches 8 --iterations 3
gzip -dc $gpipe/rank0.json.gz | head -c 100000 >"$folder/rank0.json"
cp $gpipe/rank1.json.gz "$folder/other.json.gz"
refused 2 "no trace has an op of stage 0" diagnose $gpipe/rank1.json.gz
refused 2 "rank1.json.gz: rank 1," diagnose $gpipe/rank1.json.gz
refused 2 "ends in the middle of its JSON" diagnose "$folder/rank0.json" $gpipe/rank1.json.gz
refused 2 "rank1.json.gz: rank 1," diagnose "$folder/rank0.json" $gpipe/rank1.json.gz
refused 2 "is rank 0, and so is" diagnose $gpipe/rank0.json.gz $gpipe/rank0.json.gz
refused 2 "no iteration is whole" diagnose "$folder/eight/rank0.json" $gpipe/rank1.json.gz
refused 3 "rank7.json" diagnose $gpipe/rank7.json
refused 3 "has no file that ends in .json" diagnose docs
refused 2 "diagnose reads one run" diagnose $gpipe examples/real-runs/recorded/1f1b
refused 2 "--skip 9, but there are 5 iterations" diagnose $gpipe --skip 9
refused 2 "--copy 1, but there is 1 copy" diagnose $gpipe --copy 1
refused 2 "--layers has 3 numbers" diagnose $gpipe --layers 1,2,3
refused 2 "has a brace that is no placeholder" diagnose $gpipe --forward 'F{layer}'
refused 2 "another order" validate "$run" --against $gpipe
refused 2 "--against 1 recorded run beside 2 predictions" validate "$run" schedule.name=naive,gpipe --against $gpipe
refused 2 "nothing runs here" validate "$run" --against $gpipe --backend synthetic
refused 2 "needs --backend" validate "$run"
long=$(printf 'a%.0s' {1..300}).json
refused 3 "$long" diagnose "$long"
python3 - $gpipe "$folder/wild" <<'END'
import gzip, json, os, sys
os.makedirs(sys.argv[2])
for rank in range(2):
    with gzip.open(f"{sys.argv[1]}/rank{rank}.json.gz", "rt") as text:
        events = json.load(text)
    ranges = [event for event in events if event["name"].startswith("PP:0F1")]
    for event in ranges:
        event["ts"] = event["dur"] = 8900000000000000
    with open(f"{sys.argv[2]}/rank{rank}.json", "w") as text:
        json.dump(events, text)
    with open(f"{sys.argv[2]}/base{rank}.json", "w") as text:
        json.dump({"baseTimeNanoseconds": 2**63 - 1, "traceEvents": events}, text)
END
refused 2 "has no time that makes sense" diagnose "$folder/wild/rank0.json"
refused 2 "baseTimeNanoseconds is no time" diagnose "$folder/wild/base1.json"
refused 2 "is read" diagnose $gpipe --csv $gpipe/rank1.json.gz
refused 2 "would also write" diagnose $gpipe -o "$folder/x.yaml" --csv "$folder/x.order.csv"
refused 2 "no range is called 'step {micro_batch}'" diagnose $gpipe --forward 'step {micro_batch}'
refused 2 "its times do not go with those of" diagnose $gpipe/rank0.json.gz examples/real-runs/recorded/naive/rank1.json.gz
refused 0 "as a scenario it takes" diagnose $gpipe --name $'a\nb: c'
refused 2 "the scenario has 8 micro-batches, and the run had 4" validate "$run" schedule.micro_batches=8 --against $gpipe

# Memory: a snapshot whose curve is known, beside a prediction. Two devices: 3 MB at rest and 2 x 1 MB on top.
python3 - "$folder" <<'END'
import pickle, sys
for rank in range(2):
    trace = [{"action": "alloc", "addr": 1, "size": 1000000, "stream": 0, "time_us": 1000},
             {"action": "free_requested", "addr": 1, "size": 1000000, "stream": 0, "time_us": 1500},
             {"action": "alloc", "addr": 2, "size": 1000000, "stream": 0, "time_us": 1600},
             {"action": "free_completed", "addr": 1, "size": 1000000, "stream": 0, "time_us": 2000},
             {"action": "free_completed", "addr": 2, "size": 1000000, "stream": 0, "time_us": 3000}]
    segments = [{"device": 0, "total_size": 8000000, "allocated_size": 3000000}]
    with open(f"{sys.argv[1]}/memory{rank}.pickle", "wb") as file:
        pickle.dump({"segments": segments, "device_traces": [trace, []]}, file)
with open(f"{sys.argv[1]}/code.pickle", "wb") as file:
    pickle.dump(print, file)
END
holds() {  # holds FILE TEXT: the file has the text, blanks joined
  if tr -s ' \n' ' ' <"$1" | grep -qF -- "$2"; then passed=$((passed + 1)); else complain "wanted '$2' in $(cat "$1")"; fi
}
scripts/memory-snapshot.py "$folder"/memory?.pickle -o "$folder/memory.json" >"$folder/said" || complain "$(cat "$folder/said")"
holds "$folder/said" "memory1.pickle: device 0, 3000000 to 5000000 bytes allocated, 8000000 reserved"
scripts/memory-snapshot.py "$folder/code.pickle" -o "$folder/none.json" 2>"$folder/said" && complain "a pickle of code was read"
holds "$folder/said" "a snapshot has plain values only"
"$binary" memory examples/worked-example.yaml --against "$folder/memory.json" --csv "$folder/memory.csv" >"$folder/said" ||
  complain "$(cat "$folder/said")"
holds "$folder/said" "2.861 MiB"
holds "$folder/memory.csv" "0,recorded,0.000600,5000000 0,recorded,0.001000,4000000 0,recorded,0.002000,3000000"
refused 2 "2 devices was recorded, and the scenario has 4" memory examples/four-stages.yaml --against "$folder/memory.json"
echo '{"version": 1, "kind": "memory", "devices": [{"source": "a", "device": 0, "peak_bytes": -1}]}' >"$folder/wrong.json"
refused 2 "least_bytes is missing" memory examples/four-stages.yaml --against "$folder/wrong.json"

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
