#!/usr/bin/env bash
# docs/results/validation.md and the table of accuracy are what the tool makes of docs/results/validation/*.json; scripts/validate
# measures, goes on where it was interrupted, and the tools refuse what they cannot read.
# SPDX-License-Identifier: MIT
# Usage: tests/validation_page.sh BINARIES     the build folder
set -u
export LC_ALL=C
binaries=$(realpath -e -- "${1:?usage: tests/validation_page.sh BINARIES}") || exit 2
page=$binaries/tools/validation_page
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
work=$(mktemp -d) || exit 3
trap 'rm -rf -- "$work"' EXIT
passed=0
failed=0
same() {  # NAME WANTED GOT
  if [[ $2 == "$3" ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s:\n' "$1"
    diff -u --label wanted --label got <(printf '%s\n' "$2") <(printf '%s\n' "$3")
  fi
}
refused() {  # NAME CODE MESSAGE COMMAND...
  local name=$1 wanted="$3"$'\n'"exit $2" got
  shift 3
  got=$("$@" 2>&1 >/dev/null)
  got+=$'\n'"exit $?"
  same "$name" "$wanted" "$got"
}

# The documents are of the results that are committed.
same 'docs/results/validation.md is of docs/results/validation/ (scripts/validation-page writes it)' "$(cat docs/results/validation.md)" "$("$page" page docs/results/validation --resimulated docs/results/resimulated.json)"
same 'docs/results/resimulated.json is what this version predicts of docs/results/validation/gpu-*.json' \
  "$(cat docs/results/resimulated.json)" "$("$page" resimulate docs/results/validation)"
cp docs/results/accuracy.md "$work/accuracy.md"
"$page" table docs/results/validation "$work/accuracy.md"
same "the table of accuracy is of docs/results/validation/" "$(cat docs/results/accuracy.md)" "$(cat "$work/accuracy.md")"

# Another number in a result is another page.
cp -r docs/results/validation "$work/changed"
sed -i 's/"predicted":0.0565,/"predicted":0.0566,/' "$work/changed/practicals-1.json"
[[ $("$page" page "$work/changed") != "$(cat docs/results/validation.md)" ]]
same 'a changed result changes the page' 0 $?

# What cannot be read is told with its place.
mkdir "$work/none"
refused 'a folder without results' 3 "error: '$work/none' holds no results (*.json)
  help: scripts/validate makes them" "$page" page "$work/none"
refused 'no folder' 3 "error: cannot list '$work/nowhere': No such file or directory
  help: scripts/validate makes them" "$page" page "$work/nowhere"
mkdir "$work/wrong"
printf '{"schema_version": 1,\n "result": {"group": "matrx", "name": "x", "command": "y", "short": false, "machine": {}},\n "ranking": {"pairs": 0, "ties": 0, "right": 0, "wrong": 0},\n "points": []}\n' > "$work/wrong/a.json"
refused 'a wrong result' 2 "$(sed "s|WRONG|$work/wrong|" tests/golden/wrong-result.txt)" "$page" page "$work/wrong"
echo '# no marks' > "$work/accuracy.md"
refused 'a page without marks' 2 "$work/accuracy.md: error: has no place for the table of accuracy
  help: it goes between the lines
    <!-- from docs/results/validation/ by scripts/validation-page; do not edit -->
    <!-- end of what scripts/validation-page wrote -->" "$page" table docs/results/validation "$work/accuracy.md"
refused 'a backend that is none' 2 "scripts/validate: error: --only is 'gpu', which is neither synthetic nor cpu
$(scripts/validate --help)" scripts/validate --only gpu
refused 'an option that is none' 2 "scripts/validate: error: '--fast' is no option
$(scripts/validate --help)" scripts/validate --fast

# Of a GPU elsewhere: what a profile says of it stands for the machine.
"$binaries/plumbline" validate examples/worked-example.yaml --backend synthetic --iterations 2 --json -o "$work/raw.json" > "$work/log" 2>&1
there=examples/profiles/nvidia-h100-80gb-hbm3/mlp-4.profile.yaml
mkdir "$work/gpu"
"$page" condense "$work/raw.json" -o "$work/gpu/gpu-mlp-4.json" --group gpu-networks --name 'mlp on 4' --command x \
  --there "$there" --profile "$there"
same 'a result of a GPU elsewhere' 0 $?
"$page" page "$work/gpu" > "$work/page.md"
for line in '| processor | NVIDIA H100 80GB HBM3 |' '| cores | 4 x 32 SMs |' '## Networks trained on a GPU' '| mlp on 4 | gpipe | 2 | 3 |'; do
  grep -qF "$line" "$work/page.md"
  same "has the line '$line'" 0 $?
done
refused 'a profile that is not there' 3 "$work/none.yaml: error: cannot be read: No such file or directory" "$page" condense \
  "$work/raw.json" -o "$work/gpu/none.json" --group gpu-networks --name x --command x --there "$work/none.yaml"
refused 'a folder without results of a GPU' 3 "scripts/validation-page: error: '$work/none' holds no results (*.json); scripts/validate-gpu makes them" \
  scripts/validation-page --gpu "$work/none"
refused 'a folder of a GPU without one' 2 'usage: scripts/validation-page --gpu FOLDER' scripts/validation-page --gpu

# It runs, keeps what is complete, and makes again what is not.
results=$work/results
scripts/validate --quick --only synthetic --binaries "$binaries" -o "$results" > "$work/log" 2>&1
same 'scripts/validate --quick' 0 $?
same 'its results' 'examples.json matrix-2.json practicals-1.json practicals-2.json' "$(cd "$results" && echo *.json)"
rm "$results/matrix-2.json"
printf '{' > "$results/practicals-2.json"  # as a full disk would leave it
before_kept=$(sha256sum "$results"/examples.json "$results"/practicals-1.json)
scripts/validate --quick --only synthetic --binaries "$binaries" -o "$results" > "$work/log" 2>&1
same 'scripts/validate, again' 0 $?
same 'what was kept' "$before_kept" "$(sha256sum "$results"/examples.json "$results"/practicals-1.json)"
same 'and told so' 2 "$(grep -c ': kept$' "$work/log")"
"$page" page "$results" -o "$work/page.md"
same 'a page is made of them' 0 $?
grep -q 'of a short run' "$work/page.md"
same 'which says that they are short' 0 $?
"$page" current "$results/matrix-2.json" > /dev/null 2> "$work/why"
same 'short results do not stand for full ones' "1 $results/matrix-2.json: it is of a short run" "$? $(cat "$work/why")"

# On cpu: skipped where there is none, or where other work leaves no clean pass.
scripts/validate --quick --only cpu --binaries "$binaries" -o "$work/cpu" > "$work/log" 2>&1
code=$?
if [[ $code == 5 ]]; then
  echo "skipped: cpu: $(head -n 1 "$work/log")"
elif grep -q 'too much other work on this machine' "$work/log"; then
  echo 'skipped: cpu: other work has the cores'
else
  same 'scripts/validate --quick --only cpu' 0 "$code"
  "$page" page "$work/cpu" | grep -q '^| gpt-small | 2 |'
  same 'a row of the network' 0 $?
  same 'its results' 'copies-gpt-small links-gpt-small network-gpt-small recomputation-gpt-small schedules-gpt-small' \
    "$(cd "$work/cpu" && echo *.json | sed 's/\.json//g')"
  "$page" page "$work/cpu" | grep -q '^| gpt-small shared | 1f1b | 2 | 2 |'
  same 'a row of the copies with a shared optimizer' 0 $?
  "$page" page "$work/cpu" | grep -q '^| gpt-small in buckets | 1f1b | 2 | 2 |'
  same 'a row of the copies whose gradients leave in buckets' 0 $?
  "$page" page "$work/cpu" | grep -q '^| gpt-small layers | 1f1b | 2 | 4 |'
  same 'a row of a run that computes each layer again' 0 $?
fi

echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
