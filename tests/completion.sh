#!/usr/bin/env bash
# What the completion scripts offer: the one of bash by its function, the one of zsh by pressing Tab.
# Usage: tests/completion.sh BINARY
# Without zsh its half is left out, and told.
# SPDX-License-Identifier: MIT
set -u
export LC_ALL=C.UTF-8
plumbline=$(realpath -e -- "${1:?usage: tests/completion.sh BINARY}") || exit 2
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

expect() {  # NAME WANTED GOT
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1: wanted '$2', got '$3'"; fi
}

"$plumbline" completion bash > "$work/bash" && bash -n "$work/bash" || exit 1
# shellcheck source=/dev/null
. "$work/bash"
expect "it is registered" "complete -F _plumbline plumbline" "$(complete -p plumbline)"

offered() {  # WORD...: what bash offers for the last one, sorted, in one line
  COMP_WORDS=(plumbline "$@")
  COMP_CWORD=$#
  _plumbline
  printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ' | sed 's/ $//'
}
has() {  # WANTED WORD...: WANTED is among what is offered
  local wanted=$1
  shift
  case " $(offered "$@") " in
    *" $wanted "*) expect "$wanted" yes yes ;;
    *) expect "plumbline $*" "$wanted among them" "$(offered "$@")" ;;
  esac
}

expect "subcommands by their beginning" "schedule schema" "$(offered sche)"
"$plumbline" --help > "$work/help"
listed=$(sed -n '/^Subcommands:/,$p' "$work/help" | awk '/^  [a-z]/ { print $1 }' | sort | tr '\n' ' ' | sed 's/ $//')
expect "all subcommands" "$listed" "$(offered '')"
expect "subcommands of import" "csv deepspeed huggingface kernels megatron nanotron pipedream torch-trace torchtitan" "$(offered import '')"
has --distinct search x.yaml --
has --markdown search x.yaml --
has --report search x.yaml --
has --resume search x.yaml --
has --shard search x.yaml --
has --distinct merge x.json --
has --table sweep x.yaml --
has --record simulate x.yaml --
has --record import csv x.csv --
has --record check --
has help ''
has version ''
expect "a choice" "backends presets schedules stacks" "$(offered list '')"
expect "no second choice" "" "$(offered list presets '')"
expect "the kinds of schemas" "kernels network profile record scenario" "$(offered schema '')"
expect "options" "--trace" "$(offered simulate --tr)"
expect "the words of an option" "dot grid sequence torch-csv" "$(offered schedule x.yaml --format '')"
expect "the same behind =" "grid" "$(offered schedule x.yaml --format = gr)"
expect "backends" "cpu cuda synthetic" "$(offered run x.yaml --backend '')"
expect "options of a nested subcommand" "--flash-attention" "$(offered import huggingface --flash)"
expect "files" "examples/four-stages.yaml" "$(offered simulate examples/four)"
expect "files behind an option" "examples/four-stages.yaml" "$(offered simulate x.yaml -o examples/four)"
expect "keys" "schedule.micro_batches=" "$(offered simulate x.yaml schedule.mic)"
expect "keys behind a flag" "schedule.micro_batches=" "$(offered simulate --json x.yaml schedule.mic)"
expect "no keys in the place of the scenario" "" "$(offered simulate schedule.mic)"
has cluster.link.latency= explain x.yaml ''
has overhead.per_op= sweep x.yaml over
expect "words of a key" "pipedream" "$(offered simulate x.yaml schedule.name = pip)"
expect "several words of a key" "gpipe,1f1b" "$(offered sweep x.yaml schedule.name = gpipe,1)"
expect "all words of a key" "full layers none selective" "$(offered simulate x.yaml schedule.recompute =)"
expect "no words for a number" "" "$(offered simulate x.yaml schedule.micro_batches =)"
expect "files of a key" "examples/orders/zb-h1.csv" "$(offered simulate x.yaml schedule.file = examples/orders/zb-h1)"
schedules=$({ "$plumbline" list schedules | grep -E '^[a-z0-9-]+$'; echo auto; } | sort | tr '\n' ' ' | sed 's/ $//')
expect "all schedules" "$schedules" "$(offered simulate x.yaml schedule.name =)"
COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}
expect "a word that = does not part" "schedule.name=gpipe" "$(offered simulate x.yaml schedule.name=gp)"

"$plumbline" completion zsh > "$work/zsh"
if command -v zsh > /dev/null; then
  zsh -n "$work/zsh"
  expect "zsh reads it" 0 $?
  # compadd and compset stand in for those that work only while a line is edited.
  zsh_offered() {  # WORD...: what zsh offers for the last one
    zsh -f -c '
      compdef() { }
      compset() { [[ $2 == "*=" ]] && typed=${typed#*=}; [[ $2 == "*," ]] && typed=${typed##*,}; return 0 }
      compadd() {
        while [[ $1 != -- ]]; do shift; done
        shift
        print -l -- ${(M)@:#$typed*}
      }
      _files() { print files }
      source $1
      shift
      words=(plumbline "$@") CURRENT=$(($# + 1)) typed=$@[-1]
      _plumbline' zsh "$work/zsh" "$@" | sort | tr '\n' ' ' | sed 's/ $//'
  }
  expect "zsh: subcommands" "schedule schema" "$(zsh_offered sche)"
  expect "zsh: a choice" "backends presets schedules" "$(zsh_offered list '')"
  expect "zsh: options" "--trace" "$(zsh_offered simulate --tr)"
  expect "zsh: words of an option" "dot grid sequence torch-csv" "$(zsh_offered schedule x.yaml --format '')"
  expect "zsh: files" "files" "$(zsh_offered simulate '')"
  expect "zsh: keys" "schedule.micro_batches=" "$(zsh_offered simulate x.yaml schedule.mic)"
  expect "zsh: words of a key" "pipedream" "$(zsh_offered simulate x.yaml schedule.name=pip)"
  expect "zsh: several words of a key" "gpipe" "$(zsh_offered sweep x.yaml schedule.name=1f1b,g)"
else
  echo "skipped: zsh is not installed"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
