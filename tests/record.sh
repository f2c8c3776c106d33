#!/usr/bin/env bash
# Records of commands: what they hold, what `check --record` finds, and that it writes over nothing.
# SPDX-License-Identifier: MIT
# Usage: tests/record.sh BINARY
set -u
export LC_ALL=C.UTF-8
unset COLUMNS
plumbline=$(realpath -- "$1")
cd "$(dirname "$0")/.." || exit 1
examples=$PWD/examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0
expect() {  # expect NAME WANTED GOT
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1: wanted '$2', got '$3'"; fi
}
check() {  # check NAME EXIT_CODE VERDICT FILE [OPTION...]: what the second line of the check says
  local name=$1 code=$2 verdict=$3
  shift 3
  "$plumbline" check --wide --record "$@" > checked 2> err
  expect "$name: exit code" "$code" $?
  expect "$name: verdict" "  $verdict" "$(sed -n 2p checked)"
  expect "$name: stderr" "" "$(cat err)"
}

# ---- What a record holds ----
cp "$examples/four-stages.yaml" s.yaml
"$plumbline" simulate s.yaml > plain.txt
"$plumbline" simulate s.yaml --record r.json > recorded.txt
expect "exit code" 0 $?
expect "the output does not change" "$(cat plain.txt)" "$(cat recorded.txt)"
expect "the words of the command" '"simulate","s.yaml"' "$(tr -d ' \n' < r.json | sed 's/.*"command":\[\([^]]*\)\].*/\1/')"
expect "the input" "$(sha256sum s.yaml | cut -d ' ' -f 1)" "$(grep -A 3 '"path": "s.yaml"' r.json | sed -n 's/.*"sha256": "\(.*\)"/\1/p')"
expect "the output's digest" "$(sha256sum plain.txt | cut -d ' ' -f 1)" "$(grep -A 3 '"stdout"' r.json | sed -n 's/.*"sha256": "\(.*\)",/\1/p')"
expect "the folder" 1 "$(grep -c "\"directory\": \"$work\"" r.json)"
check "at once" 0 "the same: inputs and output" r.json
expect "the table" "version same machine same input s.yaml same exit code same stdout same stderr same" "$(echo $(sed -n '4,$p' checked))"
(cd / && "$plumbline" check --record "$work/r.json" -o "$work/elsewhere.txt") || echo "exit $?"
expect "from another folder" "$(sed -n 2p checked)" "$(sed -n 2p elsewhere.txt)"
COLUMNS=60 "$plumbline" check --record r.json > checked
expect "on another page" 0 $?
"$plumbline" simulate s.yaml schedule.micro_batches=16 --record=q.json --json > /dev/null
check "--record=FILE" 0 "the same: inputs and output" q.json

# ---- Changes ----
sed -i 's/micro_batches: 8/micro_batches: 4/' s.yaml
check "another input" 1 "differs: input s.yaml, stdout" r.json
expect "which is named" 1 "$(grep -c '^  input s.yaml  *changed$' checked)"
expect "and its lines" 1 "$(grep -c '^stdout from line 2 on' checked)"
expect "then" 1 "$(grep -c '^- .* 8 micro-batches' checked)"
expect "now" 1 "$(grep -c '^+ .* 4 micro-batches' checked)"
echo '# the same run' >> s.yaml
"$plumbline" simulate s.yaml --record r.json > /dev/null
sed -i '/^# the same run/d' s.yaml
check "an input that changes nothing" 1 "differs: input s.yaml" r.json
rm s.yaml
check "a missing input" 1 "differs: input s.yaml" r.json
expect "is not run" "  not run again: an input is missing" "$(sed -n 3p checked)"
cp "$examples/four-stages.yaml" s.yaml
"$plumbline" simulate s.yaml --record r.json > /dev/null
sed -i 's/"commit": "[^"]*"/"commit": "0123456789ab"/' r.json
check "another version, the same output" 0 "the same: inputs and output" r.json
expect "which is told" 1 "$(grep -c '^  version  *other  was plumbline .*, commit 0123456789ab$' checked)"
sed -i "s|\"directory\": \"$work\"|\"directory\": \"$work/gone\"|" r.json
check "a folder that is gone" 0 "the same: inputs and output" r.json
expect "is told" 1 "$(grep -c "its folder $work/gone is not here" checked)"

# ---- Files ----
"$plumbline" simulate s.yaml --report page.html --trace t.json.gz -o out.txt --record files.json
expect "exit code with files" 0 $?
expect "the page does not name the record" 0 "$(grep -c 'files.json' page.html)"
expect "files are outputs" "out.txt page.html t.json.gz" "$(echo $(sed -n '/"outputs"/,/"exit_code"/s/.*"path": "\(.*\)",/\1/p' files.json))"
for file in page.html t.json.gz out.txt; do echo mine > $file; done
check "with files" 0 "the same: inputs and output" files.json
expect "files are compared" 3 "$(grep -c '^  file .* same  the file that is here has changed since$' checked)"
expect "and not written over" "mine mine mine" "$(echo $(cat page.html t.json.gz out.txt))"
sed -i '/"path": "page.html"/,/sha256/s/"sha256": "./"sha256": "x/' files.json
check "another page" 1 "differs: file page.html" files.json
"$plumbline" simulate s.yaml -o x.json --record x.json 2> err
expect "the record is no other output" "2 1" "$? $(grep -c '^error: --output and --record are both' err)"
"$plumbline" simulate s.yaml --record s.yaml 2> err
expect "the record is no input" "2 1" "$? $(grep -c "^error: --record is 's.yaml', which is read" err)"
"$plumbline" simulate s.yaml --record no/such/folder.json > out 2> err
expect "a record that cannot be written ends it before it starts" "3 0" "$? $(wc -c < out)"

# ---- Files that files name ----
"$plumbline" import huggingface "$examples/configs/small-llama.json" --sequence 512 -o m.yaml --record import.json > /dev/null 2> err
expect "an import" 0 $?
check "an import" 0 "the same: inputs and output" import.json
printf 'version: 1\nmodel: {profile: m.yaml}\ncluster: {device: h100-sxm, devices: 2}\nschedule: {name: 1f1b, micro_batches: 4}\n' > of-profile.yaml
"$plumbline" simulate of-profile.yaml --record nested.json > /dev/null 2> err
expect "a scenario with a profile" "0 " "$? $(cat err)"
expect "both are inputs" "m.yaml of-profile.yaml" "$(echo $(sed -n '/"inputs"/,/"outputs"/s/.*"path": "\(.*\)",/\1/p' nested.json))"

# ---- Commands ----
check_command() {  # check_command WORD...: it works, and its record is the same
  check_failure 0 "$@"
}
check_failure() {  # check_failure CODE WORD...: it ends with this code, and its record is the same
  local code=$1
  shift
  rm -f command.json
  "$plumbline" "$@" --record command.json > /dev/null 2> err
  expect "exit code of $*" "$code" $?
  check "$*" 0 "the same: inputs and output" command.json
}
check_command compare s.yaml schedule.name=gpipe,1f1b
check_command explain s.yaml
check_command plan s.yaml plan.partition=null --json
check_command sweep s.yaml schedule.micro_batches=2,4,8 -o rows.txt
check_command sweep s.yaml schedule.name=gpipe,1f1b schedule.micro_batches=2,4,8 --table name,micro_batches,fits
check_command search "$examples/layouts.yaml" cluster.gpus=64 --top 2 --jobs 2
check_command kernels "$examples/configs/small-llama.json" --sequence 512 --list
check_command import torch-trace "$examples/import/mlp.pt.trace.json" --batch 64
expect "a file that is read in chunks" "$(sha256sum "$examples/import/mlp.pt.trace.json" | cut -d ' ' -f 1)" "$(grep -A 3 'mlp.pt.trace.json",$' command.json | sed -n 's/.*"sha256": "\(.*\)"/\1/p')"
check_command import csv "$examples/import/layers.csv" -o layers.yaml
for i in 1 2; do "$plumbline" sweep s.yaml schedule.micro_batches=2,4,8 --shard $i/2 --json -o $i.json; done
check_command merge 1.json 2.json --csv
check_failure 2 simulate s.yaml schedule.name=nope
check_failure 3 simulate none.yaml
check_failure 4 simulate s.yaml cluster.memory='100 MiB'
expect "a failed command has its exit code" 1 "$(grep -c '"exit_code": 4' command.json)"
expect "and its message" 1 "$(sed -n '/"stderr"/,$p' command.json | grep -c 'does not fit: device 0')"
"$plumbline" sweep s.yaml schedule.micro_batches=2,4 -o rows.txt --record command.json
touch rows.txt.partial
check "a sweep with an interrupted one beside it" 0 "the same: inputs and output" command.json
"$plumbline" run s.yaml --backend synthetic --iterations 2 --warm-up 0 --record run.json > /dev/null
expect "a run" 0 $?
check "a run" 0 "the same: inputs, version and machine" run.json
expect "is not run again" 1 "$(grep -c '^  not run again: run measures' checked)"
expect "its backend" 1 "$(grep -c '"backend": "synthetic"' run.json)"
"$plumbline" check --record run.json --rerun > checked
expect "unless that is asked for" 1 "$(grep -c '^  exit code  *same$' checked)"

# ---- What is wrong ----
refuse() {  # refuse NAME EXIT_CODE MESSAGE WORD...
  local name=$1 code=$2 message=$3
  shift 3
  "$plumbline" "$@" > out 2> err
  expect "$name: exit code" "$code" $?
  expect "$name: message" 1 "$(grep -c -e "$message" err)"
}
head -c 300 r.json > cut.json
refuse "a broken record" 2 'cut.json:.*not valid JSON' check --record cut.json
# A record that asks to write records writes nothing.
"$plumbline" simulate s.yaml -o victim.txt --record hostile.json > /dev/null
echo mine > victim.txt
sed -i 's/^  "victim.txt"$/  "victim.txt",\n  "--record",\n  "second.json"/' hostile.json
"$plumbline" check --record hostile.json > /dev/null 2>&1
expect "a record in a record writes over nothing" "mine" "$(cat victim.txt; ls second.json 2> /dev/null)"
refuse "no record" 2 'is no record of a command' check --record "$examples/configs/small-llama.json"
refuse "a record without --record" 2 "help: plumbline check --record r.json" check r.json
refuse "no file" 3 'none.json: error: cannot be read' check --record none.json
sed 's/"simulate"/"check"/' r.json > other.json
refuse "a command that has no record" 2 "'check' is no subcommand that is recorded" check --record other.json
refuse "check without anything" 2 'plumbline check needs SCENARIO' check
refuse "a scenario and a record" 2 'do not go together' check s.yaml --record r.json
refuse "--rerun alone" 2 'rerun' check s.yaml --rerun
refuse "schedule has no record" 2 "'--record' is no option of plumbline schedule" schedule s.yaml --record x.json

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
