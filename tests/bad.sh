#!/usr/bin/env bash
# The malformed inputs of tests/bad: each must end with the recorded message and exit code.
# Usage: tests/bad.sh BINARY [FILTER]      FILTER: a part of a case's path, as sweep/ or partition-empty
#        tests/bad.sh --extract FOLDER     only writes the cases' files, in a folder for each case
# A case is one file, in a folder for each command (for `check`, and a topic):
#   == arguments         a command line, one argument a line; without it: check FILE, the first one
#   == file NAME         a file that it reads
#   == escaped NAME      the same, as printf's %b has it: bytes that are no text, a last line without its end
#   == stderr            what the command says, run where those files are, then `exit N`
# PLUMBLINE_UPDATE_GOLDEN=1 rewrites what is said, save where the command succeeds, crashes or hangs.
# SPDX-License-Identifier: MIT
set -u
export LC_ALL=C

usage() { echo "usage: $0 BINARY [FILTER] | --extract FOLDER" >&2; exit 2; }
[[ $# -ge 1 ]] || usage
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
filter=
if [[ $1 == --extract ]]; then
  [[ $# -eq 2 ]] || usage
  mkdir -p "$2" && folder=$(realpath "$2") || exit 2
else
  [[ -x $1 ]] || usage
  binary=$(realpath "$1")
  filter=${2-}
  folder=$(mktemp -d) || exit 2
  trap 'rm -rf -- "$folder"' EXIT
fi
cd "$here/bad" || exit 2

mapfile -t cases < <(find . -name '*.case' -printf '%P\n' | sort | grep -F -- "$filter")
[[ ${#cases[@]} -gt 0 ]] || { echo "no case has '$filter' in its path"; exit 1; }
printf '%s\n' "${cases[@]%.case}" | sed "s|^|$folder/|" | xargs -d '\n' mkdir -p || exit 2
awk -v folder="$folder" '
  FNR == 1 && !/^== / { print FILENAME ": does not begin with == arguments, == file or == escaped" > "/dev/stderr"; exit 1 }
  FNR == 1 { close(to); at = FILENAME; sub(/\.case$/, "", at); at = folder "/" at "/" }
  /^== arguments$/ { close(to); to = at ".arguments"; printf "" > to; next }
  /^== file / { close(to); name = substr($0, 9); to = at name; printf "" > to }
  /^== escaped / { close(to); name = substr($0, 12); to = at ".escaped." name; printf "" > to }
  /^== (file|escaped) / { if (!((at) in first)) { first[at]; print name > (at ".first"); close(at ".first") } next }
  /^== stderr$/ { close(to); to = at ".stderr"; printf "" > to; next }
  { print > to }
' "${cases[@]}" || exit 2
find "$folder" -name '.escaped.*' | while read -r escaped; do
  name=$(basename "$escaped")
  printf '%b' "$(cat "$escaped")" > "$(dirname "$escaped")/${name#.escaped.}"
  rm "$escaped"
done
[[ $1 == --extract ]] && exit 0

passed=0
failed=0
complain() {
  echo "$1: $2"
  failed=$((failed + 1))
}
for file in "${cases[@]}"; do
  case=${file%.case}
  cd "$folder/$case" || exit 2
  ln -s "$here/../examples" "$here" .  # what several cases read
  if [[ -f .arguments ]]; then mapfile -t arguments <.arguments; else arguments=(check "$(cat .first)"); fi
  timeout 60 "$binary" ${arguments[@]+"${arguments[@]}"} </dev/null >/dev/null 2>.got
  code=$?
  echo "exit $code" >>.got
  if [[ $code -lt 2 || $code -gt 4 ]]; then  # 0 accepts it, 70 is a bug, 124 a hang, more a crash
    complain "$case" "a malformed input must exit with 2, 3 or 4, this one:"
    tail -n 5 .got
  elif [[ ${PLUMBLINE_UPDATE_GOLDEN-} == 1 ]]; then
    { sed '/^== stderr$/,$d' "$here/bad/$file"; echo "== stderr"; cat .got; } >.new
    if cmp -s .new "$here/bad/$file" || cp .new "$here/bad/$file"; then
      passed=$((passed + 1))
    else
      complain "$case" "cannot be written"
    fi
  elif [[ ! -f .stderr ]]; then
    complain "$case" "says nothing of stderr"
  elif cmp -s .stderr .got; then
    passed=$((passed + 1))
  else
    complain "$case" "differs"
    diff -a -u --label "tests/bad/$file" --label "$case now" .stderr .got
  fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
