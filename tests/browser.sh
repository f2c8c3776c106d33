#!/usr/bin/env bash
# Opens the HTML reports of the command in headless Chromium, uses them, and has axe-core look for what keeps people from
# using them; before that the page's pure functions under node.
# Usage: tests/browser.sh BINARY [FOLDER]    FOLDER: where reports and screenshots stay; build/browser if absent
# Where Chromium, node 20 or the packages playwright-core and axe-core cannot be had it says so and ends with 77.
# PLUMBLINE_BROWSER_REQUIRED=1 makes that a failure.
# SPDX-License-Identifier: MIT
set -u
export LC_ALL=C.UTF-8
plumbline=$(realpath -e -- "${1:?usage: tests/browser.sh BINARY [FOLDER]}") || exit 2
cd "$(dirname "$0")/.." || exit 1
folder=${2:-build/browser}
mkdir -p "$folder/shots" && folder=$(realpath "$folder") || exit 1

skip() {
  echo "skipped: $1"
  [ "${PLUMBLINE_BROWSER_REQUIRED-}" = 1 ] && exit 1
  exit 77
}

command -v node > /dev/null || skip "node is not installed"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || skip "node $(node --version) is older than 20"
node --test tests/browser/unit/ > "$folder/unit.txt" 2>&1
unit=$?
grep -E '^# (pass|fail) ' "$folder/unit.txt" | sed 's/^#/functions of the page:/'
[ $unit -eq 0 ] || { grep -A 30 '^not ok' "$folder/unit.txt"; exit 1; }

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "chromium is not installed"
if [ ! -d tests/browser/node_modules/playwright-core ] || [ ! -d tests/browser/node_modules/axe-core ]; then
  command -v npm > /dev/null || skip "npm is not installed"
  (cd tests/browser && npm ci --no-audit --no-fund --loglevel=error) > "$folder/npm.txt" 2>&1 ||
    skip "npm cannot get playwright-core and axe-core: $(tail -n 1 "$folder/npm.txt")"
fi

make() {  # NAME ARGUMENT...: the report of a command
  local name=$1
  shift
  "$plumbline" "$@" --report "$folder/$name.html" > /dev/null 2> "$folder/$name.err"
  local code=$?
  # A validation may find the prediction off on a busy machine, or nothing to say of it, and one run does not fit; their
  # reports are there all the same.
  [ $code -eq 0 ] || [ $name = reserve ] || { [[ $code == [16] ]] && [ "$1" = validate ]; } || { echo "FAILED: plumbline $*"; cat "$folder/$name.err"; exit 1; }
}
many=(simulate tests/browser/many-stages.yaml --no-timeline)
make four simulate examples/four-stages.yaml
make split simulate examples/zero-bubble.yaml
make blocking simulate examples/blocking-transfers.yaml
make irregular simulate examples/two-servers.yaml
make copies simulate examples/overlapped-copies.yaml
make reserve simulate examples/out-of-memory.yaml 'cluster.reserve=200 MiB'
make unlike simulate examples/unlike-devices.yaml
make validated validate examples/for-real.yaml --backend synthetic --spread 0.3 --iterations 5
make large "${many[@]}"
make huge "${many[@]}" schedule.micro_batches=8192
sed "s/^name: \"/&$(head -c 9800 /dev/zero | tr '\0' x) /" tests/browser/hostile.yaml > "$folder/hostile.yaml"
make hostile simulate "$folder/hostile.yaml"

make sweep sweep examples/sweep.yaml
make sweep-formula sweep examples/four-stages.yaml schedule.name=gpipe,1f1b schedule.micro_batches=2,4,8,16,32
make sweep-broken sweep examples/sweep.yaml schedule.recompute=none cluster.link.bandwidth='25 GB/s' plan.stages=2,4,8,32
make sweep-many sweep examples/four-stages.yaml 'schedule.micro_batches=range(4, 104)' 'training.micro_batch_size=range(1, 101)'
make sweep-hostile sweep tests/browser/hostile-sweep.yaml name="<img src=x onerror=globalThis.broken=1>,</script><b>it's" schedule.micro_batches=4,8
make compared compare examples/sweep.yaml schedule.name=gpipe,1f1b,eager-1f1b
"$plumbline" simulate examples/four-stages.yaml --json > "$folder/result.json" || exit 1
make compared-result compare tests/browser/hostile-sweep.yaml examples/two-servers.yaml "$folder/result.json"
for name in sweep sweep-broken; do
  sweep=(examples/sweep.yaml)
  [ $name = sweep ] || sweep+=(schedule.recompute=none cluster.link.bandwidth='25 GB/s' plan.stages=2,4,8,32)
  "$plumbline" sweep "${sweep[@]}" --json > "$folder/$name.json" 2> /dev/null || exit 1
  "$plumbline" sweep "${sweep[@]}" --pareto --json > "$folder/$name.pareto.json" || exit 1
done
mkdir -p "$folder/shards"
for i in 1 2; do "$plumbline" sweep examples/sweep.yaml --shard $i/2 --json > "$folder/shards/$i.json" || exit 1; done
search=(examples/layouts.yaml --free model.context_parallel=1,2 schedule.name=1f1b --top 20)
make search search "${search[@]}"
"$plumbline" search "${search[@]}" --all --json > "$folder/search.json" || exit 1
make merged merge "$folder"/shards/*.json

bytes=$(wc -c < "$folder/huge.html")
echo "1048576 ops are a file of $bytes bytes"
[ "$bytes" -lt 8000000 ] || { echo "FAILED: that is more than 8 MB"; exit 1; }
cp "$folder/four.html" "$folder/again.html"
make four simulate examples/four-stages.yaml
cmp "$folder/four.html" "$folder/again.html" || { echo "FAILED: the same input gives other bytes"; exit 1; }

PLUMBLINE=$plumbline CHROMIUM=$chromium REPORTS=$folder SHOTS=$folder/shots node --test --test-reporter=tap tests/browser/*.test.js > "$folder/browser.txt" 2>&1
code=$?
grep -E '^# [0-9]+ (ops|points): |^# (pass|fail) ' "$folder/browser.txt" | sed 's/^# //'
[ $code -eq 0 ] || { grep -A 30 '^not ok' "$folder/browser.txt" || tail -n 30 "$folder/browser.txt"; exit 1; }
echo "screenshots: $folder/shots"
