#!/usr/bin/env bash
# What sweeps promise of their files: interrupted or killed, they go on; shards merge to the same bytes; the job array.
# SPDX-License-Identifier: MIT
# Usage: tests/sweep.sh BINARY
set -u
export LC_ALL=C
plumbline=$(realpath -- "$1")
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
expect() {  # expect NAME WANTED GOT
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1: wanted '$2', got '$3'"; fi
}
same() {  # same NAME FILE FILE
  cmp -s -- "$2" "$3"
  expect "$1" 0 $?
}
fast=(examples/four-stages.yaml schedule.name=gpipe,1f1b 'schedule.micro_batches=range(2,40,3)' training.mini_batch_size=null,128)
# Points that take some milliseconds each, so that a run can be met in its middle.
slow=(examples/sweep.yaml 'schedule.micro_batches=range(1000,1060)' schedule.recompute=none cluster.link.bandwidth="25 GB/s"
      'training.optimizer_state=range(0,4)' --jobs 2)

wait_for_rows() {  # wait_for_rows FILE COUNT
  for _ in $(seq 3000); do
    [ "$(cat -- "$1" 2> /dev/null | wc -l)" -gt "$2" ] && return 0
    sleep 0.01
  done
  echo "FAILED: no $2 rows in $1"
  return 1
}
rows() { echo $(($(wc -l < "$1") - 1)); }

# ---- Order of output, whatever the threads do ----
for format in '' --csv --json --markdown; do
  "$plumbline" sweep "${fast[@]}" $format --jobs 1 > "$work/one$format"
  expect "exit code, $format" 0 $?
  "$plumbline" sweep "${fast[@]}" $format --jobs 5 > "$work/five$format"
  same "the same bytes on five threads, $format" "$work/one$format" "$work/five$format"
done

# ---- Shards ----
for shards in 1 2 3 7; do
  files=()
  for i in $(seq "$shards"); do
    "$plumbline" sweep "${fast[@]}" --shard "$i/$shards" --json -o "$work/$i-$shards.json"
    expect "shard $i of $shards" 0 $?
    files=("$work/$i-$shards.json" "${files[@]}")
  done
  for format in '' --csv --json --markdown; do
    "$plumbline" merge "${files[@]}" $format -o "$work/merged"
    expect "merge of $shards, exit code, $format" 0 $?
    same "merge of $shards, $format" "$work/one$format" "$work/merged"
  done
  "$plumbline" sweep "${fast[@]}" --pareto --objective bubble --where 'peak_memory_bytes < 400 MiB' > "$work/picked"
  "$plumbline" merge "${files[@]}" --pareto --objective bubble --where 'peak_memory_bytes < 400 MiB' > "$work/merged"
  same "merge of $shards, picked" "$work/picked" "$work/merged"
done
echo old > "$work/kept"
"$plumbline" merge "$work/1-2.json" -o "$work/kept" 2> "$work/err"
expect "a missing shard is exit 2" 2 $?
expect "and is named" 1 "$(grep -c '^error: of 2 shards 2 is missing$' "$work/err")"
expect "and leaves the old file" old "$(cat "$work/kept")"
head -c 1000 "$work/1-2.json" > "$work/cut.json"
"$plumbline" merge "$work/cut.json" "$work/2-2.json" -o "$work/kept" 2> "$work/err"
expect "a cut file is exit 2" 2 $?
expect "and its end is shown" 1 "$(grep -c 'cut.json:[0-9]*:[0-9]*: error: not valid JSON from here on$' "$work/err")"
"$plumbline" merge "$work/1-2.json" "$work/2-2.json" -o "$work/no/folder.json" 2> /dev/null
expect "an unwritable path is exit 3" 3 $?
"$plumbline" merge "$work/1-2.json" "$work/none.json" 2> /dev/null
expect "a file that is not there is exit 3" 3 $?

# ---- Killed, and gone on with ----
"$plumbline" sweep "${slow[@]}" --csv > "$work/whole.csv" || echo "exit $?"
"$plumbline" sweep "${slow[@]}" --csv -o "$work/killed.csv" &
pid=$!
wait_for_rows "$work/killed.csv.partial" 5
kill -9 "$pid"
wait "$pid" 2> /dev/null
expect "killed, there is no result" 1 "$([ -e "$work/killed.csv" ]; echo $?)"
kept=$(rows "$work/killed.csv.partial")
printf '{"point":' >> "$work/killed.csv.partial"  # a row under way
"$plumbline" sweep "${slow[@]}" --csv -o "$work/killed.csv" 2> "$work/err"
expect "without --resume it does not begin anew" 2 $?
expect "and says so" 1 "$(grep -c 'holds the rows of an interrupted sweep$' "$work/err")"
"$plumbline" sweep "${slow[@]}" --csv -o "$work/killed.csv" --resume plan.stages=4 2> "$work/err"
expect "another sweep does not go on with it" 2 $?
expect "and says so" 1 "$(grep -c 'holds rows of another sweep' "$work/err")"
expect "which leaves the rows" "$kept" "$(rows "$work/killed.csv.partial")"

"$plumbline" sweep "${slow[@]}" --csv -o "$work/killed.csv" --resume 2> "$work/err" &
pid=$!
wait_for_rows "$work/killed.csv.partial" $((kept + 3))
"$plumbline" sweep "${slow[@]}" --csv -o "$work/killed.csv" --resume 2> "$work/err2"
expect "two at once is exit 3" 3 $?
expect "and is told" 1 "$(grep -c 'another sweep is writing it$' "$work/err2")"
kill -TERM "$pid"  # a shell starts what is in its background with SIGINT ignored
wait "$pid"
expect "interrupted is exit 130" 130 $?
more=$(rows "$work/killed.csv.partial")
expect "it says how to go on" \
  "interrupted: $more of 720 points are in $work/killed.csv.partial; the same command with --resume goes on" \
  "$(cat "$work/err")"
"$plumbline" sweep "${slow[@]}" --csv -o "$work/killed.csv" --resume
expect "at last, it ends" 0 $?
same "with the rows of a sweep in one go" "$work/whole.csv" "$work/killed.csv"
expect "and keeps nothing else" killed.csv "$(cd "$work" && echo killed*)"

"$plumbline" sweep "${slow[@]}" 'schedule.mini_batches=range(1,26)' --csv > "$work/half.csv" 2> "$work/err" &
pid=$!
sleep 1.5
kill -TERM "$pid"
wait "$pid"
expect "without -o interrupted is exit 130" 130 $?
expect "what is done is told" \
  "interrupted: $(($(wc -l < "$work/half.csv") - 1)) of 18000 points are done and told; with -o FILE an interrupted sweep can go on" \
  "$(cat "$work/err")"

# ---- The job array's body, as Slurm would start it ----
array() {  # array TASK
  SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_COUNT=3 SLURM_CPUS_PER_TASK=2 PLUMBLINE=$plumbline \
    bash examples/slurm/sweep.sbatch "$work/array" "${fast[@]}"
}
for task in 1 2 3 2; do  # one of them twice
  array "$task"
  expect "task $task" 0 $?
done
SHARDS=3 SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=1 PLUMBLINE=$plumbline \
  bash examples/slurm/sweep.sbatch "$work/array" "${fast[@]}"
expect "one task of three again" 0 $?
"$plumbline" merge "$work"/array/shard-*.json > "$work/merged"
same "an array's shards merge to the whole" "$work/one" "$work/merged"

# ---- Searches ----
search=(examples/layouts.yaml --free model.context_parallel=1)
for format in "" --json --csv; do
  "$plumbline" search "${search[@]}" $format --jobs 1 > "$work/search-one$format"
  expect "a search $format" 0 $?
  "$plumbline" search "${search[@]}" $format --jobs 3 > "$work/search-three$format"
  same "does not depend on its threads $format" "$work/search-one$format" "$work/search-three$format"
done
expect "its CSV has a header and the rows" 11 "$(wc -l < "$work/search-one--csv")"
best=$(sed -n 's/^  plumbline simulate \(.*\)/\1/p' "$work/search-one")
expect "the first, as it tells it, has the time that it tells" \
  "$(sed -n 's/.*"iteration_time_s": *\([0-9.]*\).*/\1/p' "$work/search-one--json" | sed -n 2p)" \
  "$(eval "'$plumbline' simulate $best --json" | sed -n 's/.*"iteration_time_s": *\([0-9.]*\).*/\1/p')"
"$plumbline" search "${search[@]}" cluster.gpus=2048,4096,8192 training.mini_batch_size=16384 --jobs 1 --csv > "$work/half" 2> "$work/err" &
pid=$!
sleep 1.5
kill -TERM "$pid"
wait "$pid"
expect "an interrupted search is exit 130" 130 $?
expect "and says so" 1 "$(grep -c '^interrupted: [0-9]* of [0-9]* layouts are done and told$' "$work/err")"

echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
