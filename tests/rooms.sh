#!/usr/bin/env bash
# Every include leads to the room of the file itself, or to one that its CMakeLists.txt says it needs, or that those
# need in turn; no room needs itself by any way. Kernels (.cu), tools, tests and the command are held to it, too.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
floors=(base models schedules sim calibrate library cli wasm tools tests)
mapfile -t sources < <(find "${floors[@]}" \( -name node_modules -o -name page \) -prune -o \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -print | sort)
mapfile -t lists < <(find "${floors[@]}" -name CMakeLists.txt | sort)
awk '
  # A list: plumbline_room(PATH NEEDS a b LINKS ... SOURCES ...), over several lines.
  FILENAME ~ /CMakeLists.txt$/ {
    if (match($0, /^ *plumbline_room(_tests)?\(/)) {
      of_tests = $0 ~ /plumbline_room_tests/
      sub(/^ *plumbline_room(_tests)?\(/, "")
      room = $1; sub(/\)$/, "", room)
      if (of_tests) { needs["tests/" room, room]; tested["tests/" room]; room = "tests/" room } else known[room]
      reading = "needs"; inside = 1
      $1 = ""
      if (!/NEEDS/) reading = ""
    }
    if (inside) {
      ended = /\)/; gsub(/\)/, " ")
      for (i = 1; i <= NF; ++i) {
        if ($i == "NEEDS") reading = "needs"
        else if ($i == "LINKS" || $i == "SOURCES") reading = ""
        else if (reading == "needs") needs[room, $i]
      }
      if (ended) inside = 0
    }
    next
  }
  FNR == 1 && !closed {
    closed = 1
    for (pair in needs) { split(pair, at, SUBSEP); reach[at[1], at[2]] }
    do {
      grown = 0
      for (pair in reach) {
        split(pair, at, SUBSEP)
        for (b in known) if (((at[2], b) in reach) && !((at[1], b) in reach)) { more[at[1], b]; grown = 1 }
      }
      for (pair in more) reach[pair]
    } while (grown)
    for (a in known) if ((a, a) in reach) { print a " needs itself"; ++wrong }
  }
  /^#include "/ {
    split($0, quoted, "\"")
    from = FILENAME; sub(/\/[^\/]*$/, "", from)
    to = quoted[2]; if (!sub(/\/[^\/]*$/, "", to)) to = from  # a file beside
    ++seen
    if (to == from || to ~ /^tests/ || from ~ /^tests\/(support|bench|fuzz|rehearsal)/) next
    if (from ~ /^(cli|wasm|tools|tests\/tools|tests\/cli)$/) {  # above all rooms; the command does not know the tools
      if (to in known || to == "cli" || (to == "tools" && from != "cli")) next
    } else if ((from, to) in reach) next
    print FILENAME ":" FNR ": " from " does not need " to; ++wrong
  }
  END { print (wrong ? wrong " wrong" : seen " includes, all to rooms that are needed"); exit wrong > 0 }
' "${lists[@]}" "${sources[@]}"
