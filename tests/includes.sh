#!/usr/bin/env bash
# Includes point only left: models <- schedules <- sim <- calibrate <- cli.
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.." || exit 1
found=$(grep -nE '^#include "(models|schedules|sim|calibrate|cli)/' $(find models schedules sim calibrate cli -name '*.h' -o -name '*.cpp' 2>/dev/null) |
  awk -F: 'BEGIN { floor["models"]=1; floor["schedules"]=2; floor["sim"]=3; floor["calibrate"]=4; floor["cli"]=5 }
    { split($1, at, "/"); split($3, to, /["\/]/); if (floor[at[1]] < floor[to[2]]) print }')
if [ -n "$found" ]; then
  echo "includes that point right:"
  echo "$found"
  exit 1
fi
echo "1 passed, 0 failed"
