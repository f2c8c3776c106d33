#!/usr/bin/env bash
# Runs what README.md and the pages of docs/ show: commands against their output, sums against their value.
# SPDX-License-Identifier: MIT
# Usage: tests/docs.sh BINARY [PAGE...]          README.md and all pages of docs/, unless pages are named
# PLUMBLINE_UPDATE_GOLDEN=1 rewrites the shown outputs in place, but for what has become an error: that fails all the same.
#
# A ```console block holds commands after "$ ", each followed by its exact output (stdout and stderr; empty
# lines at the end are layout). A command goes on in lines after "> ". An ```arithmetic block holds lines "EXPRESSION = VALUE  # comment" in plain
# numbers, + - * / and parentheses. Other blocks are not looked at.
#
# What `plumbline run` and `plumbline validate` measure differs from run to run. Their outputs are compared after
# mask(), which leaves what must not differ: words, layout, counts of stages, devices, micro-batches and transfers.
# Where only measured values differ, an update leaves the shown ones. So it is with `plumbline calibrate`, with every
# command that names a file that it wrote (-o FILE), and with those that name a file written by such a command
# (-o FILE or > FILE): a scenario with a measured profile.
#
# Commands with `--backend cpu`, and those that name what they wrote, are skipped where they cannot run: in a build
# without oneDNN, on fewer cores than `--devices` says, and where other work leaves calibrate no core for half a minute.
# Each skip is told. PLUMBLINE_DOCS_REQUIRE_CPU=1 makes it a failure.
set -u
export LC_ALL=C.UTF-8  # the timeline in Unicode
binary=$(realpath -e -- "${1:?usage: tests/docs.sh BINARY [PAGE...]}") || exit 2
shift
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
shown_as=build/release/plumbline
foreign='[^0-9.+*/() -]'
measures='plumbline (run|validate|calibrate) '
computes='--backend cpu'
writes='[[:space:]](-o +|> *)([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+)'
cores='--devices ([0-9]+)'
too_busy='error: too much other work on this machine'
left_out='samples are left out: '
nothing_clean='nothing clean was measured'
disturbed='predicted +disturbed'
number_only='^[[:space:]]*-?[0-9]+(\.[0-9]+)?[[:space:]]*$'
update=${PLUMBLINE_UPDATE_GOLDEN:-}
require_cpu=${PLUMBLINE_DOCS_REQUIRE_CPU:-}
passed=0
failed=0
skipped=0
measured_files=()  # what the document's commands wrote, and what depends on a calibration
missing_files=()   # what skipped commands would have written
is_disturbed=''    # 1 once other work has kept a command of the page from being shown

# Why nothing runs on the cpu backend here; empty = it does. It asks for more cores than there are: that is refused at once.
no_cpu=''
probe=$("$binary" calibrate examples/networks/mlp.network.yaml --backend cpu --devices 1024 2>&1)
[[ $probe != *'without oneDNN'* ]] || no_cpu='this build has no oneDNN'

fail() {  # PLACE MESSAGE
  failed=$((failed + 1))
  printf 'FAILED: %s: %s\n' "$1" "$2"
}

skip() {  # PLACE COMMAND REASON
  if [[ $require_cpu == 1 ]]; then
    fail "$1" "not run, $3: $2"
  else
    skipped=$((skipped + 1))
    printf 'skipped: %s: %s: %s\n' "$1" "$3" "${2%%$'\n'*}"
  fi
}

names_one_of() {  # COMMAND FILE...: a file is known by its last part
  local text=$1 file
  shift
  for file in "$@"; do
    [[ $text != *"${file##*/}"* ]] || return 0
  done
  return 1
}

written_by() {  # COMMAND: the files in folders after -o and >, one a line
  local text=$1
  while [[ $text =~ $writes ]]; do
    printf '%s\n' "${BASH_REMATCH[2]}"
    text=${text#*"${BASH_REMATCH[0]}"}
  done
}

cannot_run() {  # COMMAND: says why, if so
  if names_one_of "$1" "${missing_files[@]}"; then
    echo 'it needs what was skipped'
  elif [[ $1 == *"$computes"* && -n $no_cpu ]]; then
    echo "$no_cpu"
  elif [[ $1 == *"$computes"* && $1 =~ $cores ]] && ((BASH_REMATCH[1] > $(nproc))); then
    echo "this machine has fewer than ${BASH_REMATCH[1]} cores"
  fi
}

run() {  # COMMAND: prints what a reader would see
  local text
  text=$(bash -c "${1//"$shown_as"/"$binary"}" 2>&1 < /dev/null)
  printf '%s' "${text//"$binary"/"$shown_as"}"
}

mask() {  # of stdin: what is measured becomes <word>, what may be there or not is dropped
  local number='[-+]?[0-9]+(\.[0-9]+)?' unit='(%|(ns|us|ms|s|min|h|B|[KMGT]iB|points|samples.s|[kMGTPE]?FLOP.s)\b)'
  local verdict='(SAME|CLOSE|OFF|INCONCLUSIVE)'
  local machine='(command|commit|compiler|cores|date|device|drift|dropped|host|library|load|noise|passes|system|tool)'
  local causes='(fill|drain|dependency|transfer|all.reduce|rendezvous|update|overhead)'
  sed -E \
    -e '/^note: /d' \
    -e '/^  clock: "[0-9]+ MHz"$/d' `# not every machine tells it` \
    -e '/│|^ *[░▁]/d' `# the drawing of the timeline` \
    -e "/^ *idle, $causes/d" \
    -e '/^ *[-+][0-9.]+ points  /d' `# terms of the bubble, of which one that is 0 is left out` \
    -e "s/^( *device)( +$causes)+\$/\1 <causes>/" \
    -e '/^this machine is .* than when it was calibrated$/d' `# stands in the verdict where it decides` \
    -e "s/^$verdict: .*/<verdict>/" \
    -e "s/\b$verdict\b/<verdict>/g" \
    -e 's/\b(exact|ties|order|differs)\b/<memory>/g' \
    -e 's/^(ranking: [0-9]+ pairs), .*/\1, <order>/' \
    -e 's/^loss .* in the first iteration, .* after [0-9]+$/<losses>/' \
    -e 's/^( *samples.s) .*/\1 <number>/' \
    -e 's/\b[0-9]+ (clean (iterations )?)?of [0-9]+/<clean>/g' \
    -e 's/ with [0-9]+ cores?/ with <cores>/' \
    -e 's/ by oneDNN [0-9.]+/ by <library>/' \
    -e "s/^( *$machine): .*/\1: <text>/" `# provenance in a profile` \
    -e 's/^( *passes +)[0-9]+,/\1<count>,/' \
    -e 's/^interrupted: [0-9]+ passes/interrupted: <count> passes/' \
    -e 's/--batch [0-9]+ is about the largest/--batch <count> is about the largest/' \
    -e 's/\b(samples: )[0-9]+/\1<count>/g' \
    -e "s/; gradients of a replica are added up at $number [kMGT]?B.s//" `# by several cores` \
    -e "s/; weights beside stashed ones are written at $number [kMGT]?B.s//" \
    -e "s/, (add_up|stash): $number [kMGT]?B.s//g" \
    -e 's/; by formula .*//' `# only where stages come out equal` \
    -e 's/\b[0-9]+[FBIWU][0-9]+\b/<op>/g' \
    -e "s/$number $unit/<number>/g" \
    -e "s/^( *\"[a-z0-9_]+\": )($number([eE]$number)?|true|false)/\1<number>/" \
    -e 's/<number>( +<number>)+/<number>/g' `# a row of them, as long as it may be` \
    -e 's/exit code [016]$/exit code <0, 1 or 6>/' \
    -e 's/ +/ /g; s/ $//'
}

has_other_work() {  # whether devices that only wait are disturbed now
  local text
  text=$("$binary" validate examples/for-real.yaml --backend synthetic --iterations 3 2>&1)
  [[ $text == *"$nothing_clean"* || $text =~ $disturbed ]]
}

ticks() {  # what all processes have taken of the cores, what this shell and its commands have, and the time of all cores
  local of_all of_own
  read -r -a of_all < /proc/stat  # cpu user nice system idle iowait irq softirq steal
  read -r -a of_own < "/proc/$$/stat"
  echo $((of_all[1] + of_all[2] + of_all[3] + of_all[6] + of_all[7] + of_all[8])) \
    $((of_own[13] + of_own[14] + of_own[15] + of_own[16])) \
    $((of_all[1] + of_all[2] + of_all[3] + of_all[4] + of_all[5] + of_all[6] + of_all[7] + of_all[8]))
}

had_other_work() {  # TICKS_BEFORE: whether others took more than a twentieth of the cores since
  local before after
  read -r -a before <<< "$1"
  read -r -a after <<< "$(ticks)"
  (((after[0] - before[0] - after[1] + before[1]) * 20 > after[2] - before[2]))
}

# Compares the output of $command with $expected and appends what shall stand there to $document.
finish_command() {  # PLACE
  [[ -n $command ]] || return 0
  local blank_lines='' actual shown now difference reason files masked='' tries before
  while [[ $expected == *$'\n\n' || $expected == $'\n' ]]; do
    expected=${expected%$'\n'}
    blank_lines+=$'\n'
  done
  mapfile -t files < <(written_by "$command")
  [[ ! $command =~ $measures ]] || masked=1
  ! names_one_of "$command" "${measured_files[@]}" || masked=1
  reason=$(cannot_run "$command")
  if [[ -z $reason ]]; then
    names_one_of "$command" "${measured_files[@]}" || rm -f -- "${files[@]/%/.partial}"  # of a test that was killed
    for ((tries = 1; ; tries++)); do
      before=$(ticks)
      actual=$(run "$command")
      if [[ $actual != *"$too_busy"* && $actual != *"$left_out"* && $actual != *"$nothing_clean"* &&
        ! $actual =~ $disturbed ]]; then
        # A pipe may have cut off what tells it, or an earlier command's file may lack what was disturbed.
        [[ -n $masked && $(mask <<< "$actual"$'\n') != "$(mask <<< "$expected")" ]] || break
        [[ -n $is_disturbed ]] || had_other_work "$before" || has_other_work || break
      fi
      ((tries < 6)) || { reason='other work has the cores' && is_disturbed=1 && break; }
      sleep 2
    done
  fi
  if [[ -n $reason ]]; then
    skip "$1" "$command" "$reason"
    missing_files+=("${files[@]}")
    document+=$expected$blank_lines
    command=''
    return 0
  fi
  [[ -z $masked ]] || measured_files+=("${files[@]}")
  [[ -z $actual ]] || actual+=$'\n'
  shown=$expected
  now=$actual
  if [[ -n $masked ]]; then
    shown=$(mask <<< "$expected")
    now=$(mask <<< "$actual")
  fi
  if [[ $now == "$shown" ]]; then
    passed=$((passed + 1))
    actual=$expected
  elif [[ $update == 1 && ($now != *'error: '* || $shown == *'error: '*) ]]; then
    passed=$((passed + 1))
  else
    difference=$(diff -u --label shown --label now <(printf '%s' "$shown") <(printf '%s' "$now"))
    fail "$1" "$command"$'\n'"$difference"
    actual=$expected
  fi
  document+=$actual$blank_lines
  command=''
}

check_sum() {  # PLACE LINE
  local line=${2%%#*} expression value
  [[ $line == *[![:space:]]* ]] || return 0
  expression=${line%=*}
  value=${line##*=}
  if [[ $line != *=* || $expression =~ $foreign || ! $value =~ $number_only ]]; then
    fail "$1" "no line of the form EXPRESSION = VALUE: $2"
  elif awk "BEGIN { x = ($expression); v = ($value); d = x - v; if (d < 0) d = -d; if (v < 0) v = -v;
                    if (d > 1e-9 * (v > 0 ? v : 1)) { printf \"%.12g\n\", x; exit 1 } }" > "$scratch" 2>&1; then
    passed=$((passed + 1))
  else
    fail "$1" "$2   (it is $(head -n 1 "$scratch"))"
  fi
}

check_file() {  # FILE
  measured_files=()
  missing_files=()
  is_disturbed=''
  local file=$1 line block='' command='' expected='' document='' number=0 place=''
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    if [[ $line == '```'* ]]; then
      finish_command "$place"
      if [[ -z $block ]]; then
        block=${line#'```'}
        block=${block:-plain}
      else
        block=''
      fi
    elif [[ $block == console && $line == '$ '* ]]; then
      finish_command "$place"
      command=${line#'$ '}
      expected=''
      place=$file:$number
    elif [[ $block == console && -n $command && -z $expected && $line == '> '* ]]; then
      command+=$'\n'${line#'> '}
    elif [[ $block == console && -n $command ]]; then
      expected+=$line$'\n'
      continue  # finish_command writes it
    elif [[ $block == console ]]; then
      fail "$file:$number" "a console block begins with a command: $line"
    elif [[ $block == arithmetic ]]; then
      check_sum "$file:$number" "$line"
    fi
    document+=$line$'\n'
  done < "$file"
  [[ -z $block ]] || fail "$file:$number" "the last block is not closed"
  if [[ $update == 1 && -z $block ]] && ! printf '%s' "$document" | cmp -s - "$file"; then
    printf '%s' "$document" > "$file.new" && mv -- "$file.new" "$file" || exit 3
    echo "updated $file"
  fi
}

scratch=$(mktemp) || exit 3
trap 'rm -f -- "$scratch"' EXIT
if (($# == 0)); then
  shopt -s globstar
  set -- README.md docs/**/*.md
fi
for file in "$@"; do
  check_file "$file"
done
if ((skipped > 0)); then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
((failed == 0 && passed > 0))
