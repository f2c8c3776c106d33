#!/usr/bin/env bash
# What the command promises of its output: -o is atomic, stdout is data, the exit codes are the contract's.
# SPDX-License-Identifier: MIT
set -u
export LC_ALL=C.UTF-8  # the timeline in Unicode
plumbline=$(realpath "$1")
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
expect() {  # expect NAME WANTED GOT
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1: wanted '$2', got '$3'"; fi
}
example=examples/four-stages.yaml
"$plumbline" simulate $example --json > "$work/stdout.json"
expect "exit code" 0 $?
"$plumbline" simulate $example --json -o "$work/file.json" > "$work/empty"
expect "exit code with -o" 0 $?
expect "stdout is empty with -o" "" "$(cat "$work/empty")"
cmp -s "$work/stdout.json" "$work/file.json"
expect "-o writes what stdout would get" 0 $?
expect "no temporary file is left" "empty file.json stdout.json" "$(ls "$work" | tr '\n' ' ' | sed 's/ $//')"
echo old > "$work/kept.json"
"$plumbline" simulate $example schedule.name=nope -o "$work/kept.json" 2> /dev/null
expect "a wrong scenario is exit 2" 2 $?
expect "and leaves the old file" old "$(cat "$work/kept.json")"
"$plumbline" simulate "$work/none.yaml" 2> /dev/null
expect "a missing file is exit 3" 3 $?
"$plumbline" simulate $example -o "$work/no/such/folder.json" 2> /dev/null
expect "an unwritable path is exit 3" 3 $?
"$plumbline" simulate $example cluster.memory="100 MiB" > "$work/table" 2> "$work/err"
expect "out of memory is exit 4" 4 $?
expect "and is told on stderr" 1 "$(grep -c '^error: does not fit: device 0' "$work/err")"
expect "and is still reported" 1 "$(grep -c 'does not fit' "$work/table")"
"$plumbline" simulate $example --json cluster.memory="100 MiB" -o "$work/over.json" 2> /dev/null
expect "out of memory with -o is exit 4" 4 $?
expect "and the JSON is there" 1 "$(grep -c '^ "fits": false' "$work/over.json")"
# A run that deadlocks is left out of a comparison, and told.
"$plumbline" compare --wide $example 'plan.warm_up=[3,2,1,0],[0,0,0,3],[2,2,1,0]' > "$work/compared" 2> "$work/err"
expect "a comparison with a deadlock is exit 4" 4 $?
expect "its sentence begins with the deadlock" 1 "$(tail -n 1 "$work/compared" | grep -c '^warm_up=\[0,0,0,3\] cannot run (the schedule deadlocks: device 0,')"
expect "and stderr tells it whole" 1 "$(grep -c 'error: the schedule deadlocks' "$work/err")"
"$plumbline" compare $example 'plan.warm_up=[3,2,1,0],[0,0,0,3]' > "$work/compared" 2> "$work/err"
expect "with one run left nothing is compared" "4 0" "$? $(wc -c < "$work/compared")"
"$plumbline" schedule $example schedule.name=zb-v --format torch-csv > "$work/order" 2> "$work/err"
expect "an order of raised stages says so beside it" "note: plan.stages is 4, raised to 8: the schedule puts 2 on each device (schedule.chunks)" "$(cat "$work/err")"
# What is no file stays what it is; links and permissions stay; nothing is written over what is read, or twice.
mkfifo "$work/pipe"
cat "$work/pipe" > "$work/piped" &
"$plumbline" simulate $example --json -o "$work/pipe"
expect "-o into a pipe" 0 $?
wait
cmp -s "$work/stdout.json" "$work/piped"
expect "and what comes out of it" 0 $?
[ -p "$work/pipe" ]
expect "which is still one" 0 $?
"$plumbline" simulate $example --json -o /dev/stdout | cmp -s "$work/stdout.json" -
expect "-o /dev/stdout" "0 0" "${PIPESTATUS[*]}"
echo before > "$work/appended"
"$plumbline" simulate $example --json -o /dev/stdout >> "$work/appended"
expect "-o /dev/stdout behind what is there" before "$(head -n 1 "$work/appended")"
echo old > "$work/private.json"
chmod 640 "$work/private.json"
ln -s private.json "$work/link.json"
ln -s later.json "$work/early.json"
for link in link early; do "$plumbline" simulate $example --json -o "$work/$link.json"; done
expect "a file keeps its permissions" 640 "$(stat -c %a "$work/private.json")"
for real in private later; do
  cmp -s "$work/stdout.json" "$work/$real.json"
  expect "a link leads to $real.json" 0 $?
done
[ -L "$work/link.json" ] && [ -L "$work/early.json" ]
expect "and stays a link" 0 $?
ln -s middle.json "$work/first.json"
ln -s end.json "$work/middle.json"
"$plumbline" simulate $example --json -o "$work/first.json"
cmp -s "$work/stdout.json" "$work/end.json" && [ -L "$work/middle.json" ]
expect "a chain of links is followed to its end" 0 $?
ln -s circle.json "$work/circle.json"
"$plumbline" simulate $example --json -o "$work/circle.json" 2> /dev/null
expect "links in a circle are exit 3" 3 $?
[ -L "$work/circle.json" ]
expect "and stay" 0 $?
"$plumbline" simulate $example --json -o "" | cmp -s "$work/stdout.json" -
expect "-o '' is stdout" 0 $?
cp $example "$work/mine.yaml"
ln -s mine.yaml "$work/alias.yaml"
for words in "-o mine.yaml" "--report ./mine.yaml" "--trace alias.yaml" "--report t.json --trace t.json" "-o new.html --report ./new.html"; do
  # shellcheck disable=SC2086  # words
  (cd "$work" && "$plumbline" simulate mine.yaml $words > /dev/null 2> err)
  expect "'$words' is exit 2" 2 $?
done
cmp -s $example "$work/mine.yaml"
expect "and nothing is lost" 0 $?
expect "why" "error: --output is 'mine.yaml', which is read" "$(cd "$work" && "$plumbline" simulate mine.yaml -o mine.yaml 2>&1 | head -n 1)"
(cd "$work" && cp "$OLDPWD/examples/orders/zb-h1.csv" order.csv && "$plumbline" simulate mine.yaml schedule.file=order.csv -o order.csv > /dev/null 2>&1)
expect "over what a key is set to is exit 2" 2 $?
mkdir "$work/named"
(
  cd "$work/named" || exit 1
  sed 's|^  partition: pipedream|  file: plan.yaml|' "$OLDPWD/examples/planned.yaml" > from_file.yaml
  "$plumbline" plan "$OLDPWD/examples/planned.yaml" -o plan.yaml > /dev/null
  printf 'version: 1\nsweep: {plan.file: [plan.yaml, other.yaml]}\n' > axes.yaml
  cp plan.yaml before.yaml
)
for words in "simulate from_file.yaml" "sweep axes.yaml" "simulate mine.yaml plan.file=plan.yaml" "sweep mine.yaml plan.file=other.yaml,plan.yaml"; do
  # shellcheck disable=SC2086  # words
  (cd "$work/named" && cp ../mine.yaml . && "$plumbline" $words -o ./plan.yaml 2>&1 > /dev/null | head -n 1 > err)
  expect "'$words' over the plan that it reads" "error: --output is './plan.yaml', which is read" "$(cat "$work/named/err")"
done
cp "$work/named/from_file.yaml" "$work/named/SCENARIO"
for words in "simulate SCENARIO" 'simulate mine.yaml plan={"file":"plan.yaml"}' 'sweep mine.yaml plan={"file":"plan.yaml"},{"stages":4}'; do
  # shellcheck disable=SC2086  # words
  (cd "$work/named" && "$plumbline" $words -o ./plan.yaml 2>&1 > /dev/null | head -n 1 > err)
  expect "'$words' over the plan that it reads" "error: --output is './plan.yaml', which is read" "$(cat "$work/named/err")"
done
cmp -s "$work/named/before.yaml" "$work/named/plan.yaml"
expect "which stays" 0 $?
(cd "$work/named" && "$plumbline" plan from_file.yaml -o plan.yaml > /dev/null)
expect "but a plan is made anew" 0 $?
(cd "$work/named" && "$plumbline" simulate from_file.yaml plan.file= plan.partition=pipedream -o plan.yaml)
expect "and what an override takes out is not read" 0 $?
(cd "$work" && "$plumbline" import huggingface mine.yaml --sequence 8 -o alias.yaml > /dev/null 2>&1)
expect "an import over its input is exit 2" 2 $?
[ ! -e "$work/t.json" ] && [ ! -e "$work/new.html" ]
expect "nothing is begun" 0 $?
"$plumbline" simulate $example -o /dev/null --report /dev/null
expect "/dev/null takes it all" 0 $?
if [ -e /dev/full ]; then
  "$plumbline" simulate $example -o /dev/full 2> /dev/null
  expect "-o to a full disk is exit 3" 3 $?
  "$plumbline" simulate $example > /dev/full 2> /dev/null
  expect "a full disk is exit 3" 3 $?
fi
"$plumbline" > "$work/overview"
expect "no subcommand is exit 0" 0 $?
expect "and shows what to try" 1 "$(grep -c '^  plumbline simulate scenario.yaml ' "$work/overview")"
"$plumbline" --help > "$work/help"
expect "--help is exit 0" 0 $?
for words in help "help --help" "-h"; do
  # shellcheck disable=SC2086  # words
  "$plumbline" $words > "$work/told"
  expect "'$words' is exit 0" 0 $?
done
expect "plumbline help is --help" "$(cat "$work/help")" "$("$plumbline" help)"
"$plumbline" simulate --help > "$work/help"
for words in "help simulate" "--help simulate" "simulate $example --help" "simulate -h --width x" "-h simulate"; do
  # shellcheck disable=SC2086  # words
  expect "'$words' is simulate --help" "$(cat "$work/help")" "$("$plumbline" $words)"
done
expect "help of a subcommand below" "$("$plumbline" import csv --help)" "$("$plumbline" help import csv)"
for words in version --version "simulate --version"; do
  # shellcheck disable=SC2086  # words
  expect "'$words'" "$("$plumbline" --version)" "$("$plumbline" $words)"
done
expect "the first word of --version" plumbline "$("$plumbline" --version | cut -d ' ' -f 1)"
# No help has words of the parser's own.
for words in '' import "import csv" "import torch-trace" $("$plumbline" help | sed -n '/^Subcommands:/,$p' | awk '/^  [a-z]/ { print $1 }'); do
  # shellcheck disable=SC2086  # words
  expect "--help of '$words'" 0 "$("$plumbline" $words --help | grep -cE 'Print this help|Display program version')"
done
# What does not fit is told with all that is known of it.
"$plumbline" check examples/out-of-memory.yaml --stages > "$work/told" 2> "$work/err"
expect "check of what does not fit is exit 4" 4 $?
expect "says so" 1 "$(grep -c '^examples/out-of-memory.yaml: does not fit: layers ' "$work/told")"
expect "and prints the table" 1 "$(grep -c '^  stage  layers ' "$work/told")"
expect "with a row for each stage" 4 "$(grep -cE '^  [0-3] ' "$work/told")"
expect "why" 1 "$(grep -c '^error: does not fit: device 1 needs ' "$work/err")"
"$plumbline" check examples/out-of-memory.yaml --graph 2> /dev/null > "$work/told"
expect "its graph as well" 4 $?
expect "is drawn" 1 "$(grep -c '^digraph' "$work/told")"
for words in simulate explain "check -o $work/told"; do
  # shellcheck disable=SC2086  # words
  "$plumbline" $words examples/out-of-memory.yaml > "$work/out" 2> /dev/null
  expect "$words of it is exit 4" 4 $?
  [ -s "$work/out" ] || [ "$words" = "check -o $work/told" ]
  expect "and prints what is known" 0 $?
done
told=$("$plumbline" bubble --stages 4 --micro-batches 8 --chunks 2 2>&1)
expect "an option that is none is exit 2" 2 $?
[ "$told" = "error: '--chunks' is no option of plumbline bubble
  help: such as: plumbline bubble --stages 4 --micro-batches 16; plumbline bubble --help says what it takes" ]
expect "and is told by its name" 0 $?
told=$("$plumbline" --jsn simulate $example 2>&1)
[ "$told" = "error: '--jsn' is no option of plumbline
  help: plumbline --help says what it takes" ]
expect "in front of a command as well" 0 $?
told=$("$plumbline" simulate $example --no-timelin 2>&1)
[ "$told" = "error: '--no-timelin' is no option of plumbline simulate
  help: did you mean '--no-timeline'?" ]
expect "with the one that is like it" 0 $?
expect "a page is at most 10000 columns wide" 1 "$(($(COLUMNS=100000000 "$plumbline" simulate $example | wc -c) < 1000000))"
"$plumbline" simulate --json $example > "$work/again.json"
cmp -s "$work/stdout.json" "$work/again.json"
expect "the same input gives the same bytes" 0 $?
# What plan -o writes is read back as the same plan; drawings are what they were.
planned=examples/planned.yaml
"$plumbline" plan $planned -o "$work/plan.yaml" > /dev/null
expect "plan is exit 0" 0 $?
"$plumbline" simulate $planned --json | grep -v '^  "planned' > "$work/planned.json"
sed 's|^  partition: pipedream|  file: '"$work"'/plan.yaml|' $planned > "$work/from_file.yaml"
"$plumbline" simulate "$work/from_file.yaml" --json > "$work/from_file.json"
diff "$work/planned.json" "$work/from_file.json"
expect "a written plan is the planned one" 0 $?
for json in planned published; do
  golden=tests/golden/plan-$json.json
  "$plumbline" plan $planned plan.cost_model=${json/planned/calibrated} --json | grep -v planning_time_s > "$work/plan.json"
  [ "${PLUMBLINE_UPDATE_GOLDEN-}" = 1 ] && cp "$work/plan.json" $golden
  diff $golden "$work/plan.json"
  expect "plan --json, $json" 0 $?
done
"$plumbline" schedule examples/naive-two-devices.yaml schedule.micro_batches=1 --format dot > "$work/ops.dot"
"$plumbline" check examples/branching.yaml --graph "model.layers.0.name=a \"quoted\" <name>" \
  'model.edges=[["a \"quoted\" <name>", left]]' > "$work/layers.dot"
for dot in ops layers; do
  [ "${PLUMBLINE_UPDATE_GOLDEN-}" = 1 ] && cp "$work/$dot.dot" tests/golden/$dot.dot
  diff tests/golden/$dot.dot "$work/$dot.dot"
  expect "$dot as dot" 0 $?
done
expect "ASCII where the locale is not UTF-8" 1 "$(LC_ALL=C "$plumbline" simulate $example | grep -c 'f forward  B backward  \. idle')"
expect "Unicode where it is" 1 "$("$plumbline" simulate $example | grep -c '░ forward  ▓ backward')"
expect "--no-timeline" 0 "$("$plumbline" simulate $example --no-timeline | grep -c forward)"
expect "--width" 79 "$("$plumbline" simulate $example --width 79 | grep -m1 '^  device 0 │' | tr -d '\n' | wc -m)"
expect "no colour in a file" 0 "$("$plumbline" simulate $example | grep -c $'\x1b')"
# The JSON as a whole, every key in its order: one synchronous run, one asynchronous.
for name in four-stages pipedream-async; do
  golden=tests/golden/$name.json
  "$plumbline" simulate "examples/$name.yaml" --json > "$work/now.json"
  [ "${PLUMBLINE_UPDATE_GOLDEN-}" = 1 ] && cp "$work/now.json" "$golden"
  diff -u "$golden" "$work/now.json"
  expect "$golden is what the command prints" 0 $?
done
# What import writes is the model that a scenario would read directly.
graph=examples/import/lstm/graph.txt
printf 'version: 1\nmodel: {pipedream: %s}\ncluster: {devices: 3, link: {bandwidth: 1 GB/s}}\nplan: {partition: balanced}\nschedule: {name: 1f1b, micro_batches: 4}\n' \
  "$PWD/$graph" > "$work/direct.yaml"
sed "s|pipedream: [^}]*|profile: lstm.profile.yaml|" "$work/direct.yaml" > "$work/imported.yaml"
"$plumbline" import pipedream $graph -o "$work/lstm.profile.yaml" > /dev/null 2> "$work/told"
expect "import tells what a PipeDream graph's inputs take" 1 "$(grep -c '^note: Input nodes (data loading) are not counted: 7 ms' "$work/told")"
expect "and so does a scenario" 1 "$("$plumbline" simulate "$work/direct.yaml" --no-timeline | grep -c '^note: Input nodes (data loading) are not counted: 7 ms')"
for name in direct imported; do
  # What the graph says and a profile does not hold is told where the graph is read.
  "$plumbline" simulate "$work/$name.yaml" --json | grep -vE '^ "scenario"|Input nodes' > "$work/$name.json"
done
diff "$work/direct.json" "$work/imported.json"
expect "an imported PipeDream graph simulates as the graph itself" 0 $?
expect "and that is no empty answer" 1 "$(grep -c '"makespan_s": 0.0[0-9]*[1-9]' "$work/imported.json")"
"$plumbline" import torch-trace examples/import/mlp.pt.trace.json > "$work/mlp.profile.yaml" 2> "$work/err"
expect "import's notes go to stderr" 2 "$(grep -c '^note: ' "$work/err")"
gzip -c examples/import/mlp.pt.trace.json > "$work/mlp.pt.trace.json.gz"
"$plumbline" import torch-trace "$work/mlp.pt.trace.json.gz" 2> /dev/null | grep -v '^  file:' > "$work/gz.yaml"
grep -v '^  file:' "$work/mlp.profile.yaml" | diff - "$work/gz.yaml"
expect "a compressed trace is the same trace" 0 $?
# A table of kernels: check tells of times that no layer has, and import of files in any order makes one table.
printf 'version: 1\nkind: kernels\ndevice: NVIDIA H100 80GB HBM3\nsdpa:\n- [bf16, forward, 1, 64, 64, 8, 8, 64, 64, false, 1 us]\n- [bf16, forward, 1, 64, 64, 8, 8, 64, 64, true, 1 us]\n' \
  > "$work/unused.yaml"
expect "check tells of times that no layer has" "note: 1 time that no layer has: attention that is not causal" \
  "$("$plumbline" check "$work/unused.yaml" | tail -n 1)"
printf 'kind,dtype,pass,a,b,c,d,e,f,us\nsdpa,bf16,fwd+bwd,1,64,8,8,64,64,1500\n' > "$work/both.csv"
printf 'kind,dtype,pass,a,b,c,d,e,f,us\nsdpa,bf16,fwd,1,64,8,8,64,64,400\n' > "$work/forward.csv"
for order in both,forward forward,both; do
  "$plumbline" import kernels "$work/${order%,*}.csv" "$work/${order#*,}.csv" --from csv --device H100 2> "$work/err" |
    grep -c '64, true, \(400 us\|1.1 ms, .*less the forward.*\)\]$' > "$work/rows"
  expect "import finds the forwards of $order" 2 "$(cat "$work/rows")"
  expect "and leaves nothing out of $order" "" "$(cat "$work/err")"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
