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
  "$plumbline" sweep "${fast[@]}" --table name,micro_batches,iteration_time_s > "$work/picked"
  "$plumbline" merge "${files[@]}" --table name,micro_batches,iteration_time_s > "$work/merged"
  same "merge of $shards, as a table" "$work/picked" "$work/merged"
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
  "interrupted: $(($(wc -l < "$work/half.csv") - 1)) of 18000 points are printed; with -o FILE an interrupted sweep can go on" \
  "$(cat "$work/err")"

# ---- The job array's body, as Slurm would start it ----
array() {  # array TASK
  SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_COUNT=3 SLURM_CPUS_PER_TASK=2 PLUMBLINE=$plumbline \
    bash examples/slurm/shards.sbatch "$work/array" sweep "${fast[@]}"
}
for task in 1 2 3 2; do  # one of them twice
  array "$task"
  expect "task $task" 0 $?
done
SHARDS=3 SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=1 PLUMBLINE=$plumbline \
  bash examples/slurm/shards.sbatch "$work/array" sweep "${fast[@]}"
expect "one task of three again" 0 $?
"$plumbline" merge "$work"/array/shard-*.json > "$work/merged"
same "an array's shards merge to the whole" "$work/one" "$work/merged"

# ---- Searches ----
search=(examples/layouts.yaml --free model.context_parallel=1)
for format in "" --json --csv --markdown; do
  "$plumbline" search "${search[@]}" $format --jobs 1 > "$work/search-one$format"
  expect "a search $format" 0 $?
  "$plumbline" search "${search[@]}" $format --jobs 3 > "$work/search-three$format"
  same "does not depend on its threads $format" "$work/search-one$format" "$work/search-three$format"
done
expect "its CSV has a header and the rows" 11 "$(wc -l < "$work/search-one--csv")"
one_line() { sed -e ':more' -e '/\\$/{N; s/ \\\n */ /; b more' -e '}'; }  # lines that end in a backslash go on
best=$(one_line < "$work/search-one" | sed -n 's/^  plumbline simulate \(.*\)/\1/p')
expect "the first, as it tells it, has the time that it tells" \
  "$(sed -n 's/.*"iteration_time_s": *\([0-9.]*\).*/\1/p' "$work/search-one--json" | sed -n 2p)" \
  "$(eval "'$plumbline' simulate $best --json" | sed -n 's/.*"iteration_time_s": *\([0-9.]*\).*/\1/p')"
# What its JSON tells of each row is what simulate says of the row's overrides.
again() {  # again NAME ARGUMENT...: a search, and the best of it simulated
  local name=$1 line
  shift
  line=$("$plumbline" search "$@" --top 1 | one_line | sed -n 's/^  plumbline simulate //p')
  expect "$name: the same number" \
    "$("$plumbline" search "$@" --top 1 --json | sed -n 's/^  {.*"throughput_samples_per_s":\([0-9.e+]*\).*/\1/p')" \
    "$(eval "'$plumbline' simulate $line --json" | sed -n 's/^ "throughput_samples_per_s": \([0-9.e+]*\),*/\1/p')"
}
standing() {  # standing NAME ARGUMENT...: the scenario as it stands, and simulate of the same command line
  local name=$1
  shift
  expect "$name: as it stands" \
    "$("$plumbline" simulate "$@" --json | sed -n 's/^ "throughput_samples_per_s": \([0-9.e+]*\),*/\1/p')" \
    "$("$plumbline" search "$@" --free --top 1 --json | sed -n 's/^ "as_it_stands": {.*"throughput_samples_per_s":\([0-9.e+]*\),"dev.*/\1/p')"
}
again "another mini-batch" "${search[@]}" schedule.name=1f1b cluster.gpus=256 training.mini_batch_size=1024
again "a schedule" "${search[@]}" schedule.name=zb-h1 cluster.gpus=64
again "kept" examples/layouts.yaml training.micro_batch_size=null schedule.recompute=null schedule.recompute_layers=null
again "a whole section" "${search[@]}" 'plan={stages: 4, partition: balanced, data_parallel: fill}'
quick=(examples/layouts.yaml model.context_parallel=1 model.tensor_parallel=8 model.sequence_parallel=true)
standing "the file" "${quick[@]}" schedule.name=1f1b
standing "more GPUs" "${quick[@]}" schedule.name=1f1b cluster.gpus=256 training.mini_batch_size=1024
standing "another plan" "${quick[@]}" schedule.name=1f1b plan.stages=8 training.mini_batch_size=256
standing "another schedule" "${quick[@]}" schedule.name=gpipe schedule.recompute_layers=null schedule.recompute=full

# Bounds leave out what need not be simulated; the rows are those of all layouts.
numbers() { sed -n '/^ "rows"/,$p' "$1"; }
for more in "" "--objective per-device" "--distinct --top 12" "--where pipeline<=4"; do
  # shellcheck disable=SC2086
  "$plumbline" search "${search[@]}" cluster.gpus=64,128 --json $more > "$work/by-bounds"
  # shellcheck disable=SC2086
  "$plumbline" search "${search[@]}" cluster.gpus=64,128 --json $more --all > "$work/by-all"
  expect "the best by bounds are those of all $more" "$(numbers "$work/by-all")" "$(numbers "$work/by-bounds")"
  expect "and bounds are of use $more" 1 "$(grep -c '^ "slower_by_bounds": [1-9]' "$work/by-bounds")"
  expect "all are all $more" 1 "$(grep -c '^ "slower_by_bounds": 0,' "$work/by-all")"
done

small=("${search[@]}" schedule.name=1f1b cluster.gpus=64,128 --distinct)
for format in "" --json --csv --markdown; do
  "$plumbline" search "${small[@]}" --top 3 $format --wide --report "$work/one.html" > "$work/search$format"
  expect "the best of each size $format" 0 $?
done
expect "the page is one" 1 "$(grep -c '<!DOCTYPE html>' "$work/one.html")"
for shards in 1 3; do
  files=()
  for i in $(seq "$shards"); do
    "$plumbline" search "${search[@]}" schedule.name=1f1b cluster.gpus=64,128 --shard "$i/$shards" --json -o "$work/search-$i.json"
    expect "shard $i of $shards of a search" 0 $?
    files=("$work/search-$i.json" "${files[@]}")
  done
  for format in "" --json --csv --markdown; do
    "$plumbline" merge "${files[@]}" --distinct --top 3 --wide $format > "$work/merged"
    expect "merge of $shards parts of a search $format" 0 $?
    same "is the search $format" "$work/search$format" "$work/merged"
  done
done
(cd "$work" && "$plumbline" merge search-[123].json --distinct --top 3 --wide) > "$work/merged"
expect "merge elsewhere" 0 $?
expect "says what it could not try" 1 "$(grep -c '^the scenario (examples/layouts.yaml) is not here as it was searched' "$work/merged")"
grep -vE '^(if devices reached|if [a-z ]+ ran at 80 %|numbers? [0-9]|no other layout|of [0-9]+ pairs|the scenario \()' "$work/search" > "$work/without"
expect "and has all else" "$(cat "$work/without")" "$(grep -vE '^(if devices reached|if [a-z ]+ ran at 80 %|numbers? [0-9]|no other layout|of [0-9]+ pairs|the scenario \()' "$work/merged")"
"$plumbline" merge "$work/search-1.json" "$work/1-2.json" 2> "$work/err"
expect "a part of a search and one of a sweep are exit 2" 2 $?
expect "which is told" 1 "$(grep -c 'is no part of a search$' "$work/err")"
"$plumbline" merge "$work/search-1.json" --table a,b,fits 2> "$work/err"
expect "a search is no table of two keys" "2 1" "$? $(grep -c -e '--table with a search' "$work/err")"
"$plumbline" merge "$work/search-1.json" 2> "$work/err"
expect "a missing part is exit 2" 2 $?
expect "and is named" 1 "$(grep -c '^error: of 3 shards 2, 3 are missing$' "$work/err")"

slow_search=("${search[@]}" --all cluster.gpus=1024,2048 training.mini_batch_size=8192 schedule.name=1f1b --jobs 2)
"$plumbline" search "${slow_search[@]}" > "$work/search-whole.txt"
"$plumbline" search "${slow_search[@]}" -o "$work/search.txt" &
pid=$!
wait_for_rows "$work/search.txt.partial" 5
kill -9 "$pid"
wait "$pid" 2> /dev/null
expect "killed, there is no result of the search" 1 "$([ -e "$work/search.txt" ]; echo $?)"
"$plumbline" search "${slow_search[@]}" -o "$work/search.txt" 2> "$work/err"
expect "without --resume it does not begin anew" 2 $?
expect "and says so" 1 "$(grep -c 'holds the rows of an interrupted search$' "$work/err")"
"$plumbline" search "${slow_search[@]}" --resume 2> "$work/err"
expect "--resume without -o is exit 2" 2 $?
kept=$(rows "$work/search.txt.partial")
"$plumbline" search "${slow_search[@]}" -o "$work/search.txt" --resume 2> "$work/err" &
pid=$!
wait_for_rows "$work/search.txt.partial" $((kept + 3))
kill -TERM "$pid"
wait "$pid"
expect "interrupted is exit 130" 130 $?
expect "it says how to go on" 1 "$(grep -c '^interrupted: [0-9]* of [0-9]* layouts are in .*/search.txt.partial; the same command with --resume goes on$' "$work/err")"
"$plumbline" search "${slow_search[@]}" -o "$work/search.txt" --resume
expect "at last, it ends" 0 $?
same "as a search in one go" "$work/search-whole.txt" "$work/search.txt"
expect "and keeps nothing else" search.txt "$(cd "$work" && echo search.txt*)"

"$plumbline" search "${search[@]}" --all cluster.gpus=2048,4096,8192 training.mini_batch_size=16384 --jobs 1 --csv > "$work/half" 2> "$work/err" &
pid=$!
sleep 1.5
kill -TERM "$pid"
wait "$pid"
expect "an interrupted search is exit 130" 130 $?
expect "and says so" 1 "$(grep -c '^interrupted: [0-9]* of [0-9]* layouts are printed; with --all -o FILE an interrupted search goes on$' "$work/err")"

echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
