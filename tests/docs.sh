#!/usr/bin/env bash
# Runs what README.md and docs/*.md show: commands against their output, sums against their value.
# SPDX-License-Identifier: MIT
# Usage: tests/docs.sh BINARY          PLUMBLINE_UPDATE_GOLDEN=1 rewrites the shown outputs in place.
#
# A ```console block holds commands after "$ ", each followed by its exact output (stdout and stderr; empty
# lines at the end are layout). An ```arithmetic block holds lines "EXPRESSION = VALUE  # comment" in plain
# numbers, + - * / and parentheses. Other blocks are not looked at.
#
# What `plumbline run` and `plumbline validate` measure differs from run to run. Their outputs are compared after
# mask(), which leaves what must not differ: words, layout, counts of stages, devices, micro-batches and transfers.
# Where only measured values differ, an update leaves the shown ones.
set -u
export LC_ALL=C.UTF-8  # the timeline in Unicode
binary=$(realpath -e -- "${1:?usage: tests/docs.sh BINARY}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
shown_as=build/release/plumbline
foreign='[^0-9.+*/() -]'
measures='plumbline (run|validate) '
number_only='^[[:space:]]*-?[0-9]+(\.[0-9]+)?[[:space:]]*$'
update=${PLUMBLINE_UPDATE_GOLDEN:-}
passed=0
failed=0

fail() {  # PLACE MESSAGE
  failed=$((failed + 1))
  printf 'FAILED: %s: %s\n' "$1" "$2"
}

run() {  # COMMAND: prints what a reader would see
  local text
  text=$(bash -c "${1//"$shown_as"/"$binary"}" 2>&1 < /dev/null)
  printf '%s' "${text//"$binary"/"$shown_as"}"
}

mask() {  # of stdin: what is measured becomes <word>, what may be there or not is dropped
  local number='[-+]?[0-9]+(\.[0-9]+)?' unit='(%|(ns|us|ms|s|min|h|B|[KMGT]iB|points|samples.s)\b)'
  local verdict='(SAME|CLOSE|OFF|INCONCLUSIVE)'
  local causes='(fill|drain|dependency|transfer|all.reduce|rendezvous|update|overhead)'
  sed -E \
    -e '/^note: /d' \
    -e '/│|^ *[░▁]/d' `# the drawing of the timeline` \
    -e "/^ *idle, $causes/d" \
    -e "s/^( *device)( +$causes)+\$/\1 <causes>/" \
    -e "s/^$verdict: .*/<verdict>/" \
    -e "s/\b$verdict\b/<verdict>/g" \
    -e 's/\b(exact|ties|differs)\b/<memory>/g' \
    -e 's/^(ranking: [0-9]+ pairs), .*/\1, <order>/' \
    -e 's/^( *samples.s) .*/\1 <number>/' \
    -e 's/\b[0-9]+ (clean (iterations )?)?of [0-9]+/<clean>/g' \
    -e 's/ with [0-9]+ cores?/ with <cores>/' \
    -e 's/\b[0-9]+[FBIWU][0-9]+\b/<op>/g' \
    -e "s/$number $unit/<number>/g" \
    -e "s/^( *\"[a-z0-9_]+\": )($number([eE]$number)?|true|false)/\1<number>/" \
    -e 's/<number>( +<number>)+/<number>/g' `# a row of them, as long as it may be` \
    -e 's/exit code [01]$/exit code <0 or 1>/' \
    -e 's/ +/ /g; s/ $//'
}

# Compares the output of $command with $expected and appends what shall stand there to $document.
finish_command() {  # PLACE
  [[ -n $command ]] || return 0
  local blank_lines='' actual shown now difference
  while [[ $expected == *$'\n\n' || $expected == $'\n' ]]; do
    expected=${expected%$'\n'}
    blank_lines+=$'\n'
  done
  actual=$(run "$command")
  [[ -z $actual ]] || actual+=$'\n'
  shown=$expected
  now=$actual
  if [[ $command =~ $measures ]]; then
    shown=$(mask <<< "$expected")
    now=$(mask <<< "$actual")
  fi
  if [[ $now == "$shown" ]]; then
    passed=$((passed + 1))
    actual=$expected
  elif [[ $update == 1 ]]; then
    passed=$((passed + 1))
  else
    difference=$(diff -u --label shown --label now <(printf '%s' "$shown") <(printf '%s' "$now"))
    fail "$1" "$command"$'\n'"$difference"
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
for file in README.md docs/*.md; do
  [[ -e $file ]] || continue
  check_file "$file"
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
