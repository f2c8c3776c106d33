#!/usr/bin/env bash
# The schemas under schema/ are what the command prints. PLUMBLINE_UPDATE_GOLDEN=1 rewrites them.
# SPDX-License-Identifier: MIT
# Usage: tests/schemas.sh BINARY
set -u
plumbline=$(realpath -e -- "${1:?usage: tests/schemas.sh BINARY}") || exit 2
cd "$(dirname "$0")/.." || exit 1
for kind in scenario profile network kernels record; do
  file=schema/$kind.schema.json
  [ "${PLUMBLINE_UPDATE_GOLDEN-}" = 1 ] && mkdir -p schema && "$plumbline" schema "$kind" -o "$file"
  "$plumbline" schema "$kind" | diff -u --label "$file" --label "plumbline schema $kind" "$file" - || exit 1
done
echo "schema/ is what the command prints"
