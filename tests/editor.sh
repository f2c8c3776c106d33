#!/usr/bin/env bash
# The schemas under schema/ are what the command prints; an editor's language server completes, explains and checks with them.
# Usage: tests/editor.sh BINARY [FOLDER]    FOLDER: where outputs stay; build/editor if absent
# Where node 20 or the package yaml-language-server cannot be had it says so and ends with 77.
# PLUMBLINE_EDITOR_REQUIRED=1 makes that a failure. PLUMBLINE_UPDATE_GOLDEN=1 rewrites schema/.
# SPDX-License-Identifier: MIT
set -u
export LC_ALL=C.UTF-8
plumbline=$(realpath -e -- "${1:?usage: tests/editor.sh BINARY [FOLDER]}") || exit 2
cd "$(dirname "$0")/.." || exit 1
folder=${2:-build/editor}
mkdir -p "$folder" || exit 1

skip() {
  echo "skipped: $1"
  [ "${PLUMBLINE_EDITOR_REQUIRED-}" = 1 ] && exit 1
  exit 77
}

bash tests/schemas.sh "$plumbline" || exit 1

command -v node > /dev/null || skip "node is not installed"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || skip "node $(node --version) is older than 20"
if [ ! -d tests/editor/node_modules/yaml-language-server ]; then
  command -v npm > /dev/null || skip "npm is not installed"
  (cd tests/editor && npm ci --no-audit --no-fund --loglevel=error) > "$folder/npm.txt" 2>&1 ||
    skip "npm cannot get yaml-language-server: $(tail -n 1 "$folder/npm.txt")"
fi
timeout 300 node --test --test-reporter=tap tests/editor/schema.test.js > "$folder/editor.txt" 2>&1
code=$?
grep -E '^# [0-9]+ malformed |^# (pass|fail) ' "$folder/editor.txt" | sed 's/^# //'
[ $code -eq 0 ] || { grep -A 30 '^not ok' "$folder/editor.txt" || tail -n 30 "$folder/editor.txt"; exit 1; }
