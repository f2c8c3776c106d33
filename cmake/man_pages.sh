#!/usr/bin/env bash
# A man page for the command and for each of its subcommands, from their --help.
# Usage: cmake/man_pages.sh BINARY HELP2MAN FOLDER
# SPDX-License-Identifier: MIT
set -eu
export LC_ALL=C COLUMNS=80
binary=$1 help2man=$2 folder=$3
version=$("$binary" --version)
page() {  # page NAME HELP-COMMAND SUMMARY
  "$help2man" --no-info --section=1 --name="$3" --version-string="${version##* }" "$2" |
    sed -E "s/^\.TH \"?[A-Z0-9_.-]+\"?/.TH ${1^^}/" > "$folder/$1.1"
}
# The subcommands: the lines of the list that begin with a name.
mapfile -t commands < <("$binary" --help | awk '/^Subcommands:/ { inside = 1; next } /^[^ ]/ { inside = 0 } inside && /^  [a-z]/ { print $1 }')
[ "${#commands[@]}" -gt 10 ] || { echo "no list of subcommands in --help"; exit 1; }
page plumbline "$binary" "predict pipeline-parallel training"
for command in "${commands[@]}"; do
  case $command in help | version) continue ;; esac
  page "plumbline-$command" "$binary $command" "$("$binary" "$command" --help | head -n 1)"
done
