#!/usr/bin/env bash
# The engine as a WebAssembly module: built, then its JSON of every example compared with the command's, in node.
# SPDX-License-Identifier: MIT
# Usage: tests/wasm.sh BINARY FOLDER     FOLDER: where the command's JSON stays; exits with 77 without Emscripten or node
set -eu
cd "$(dirname "$0")/.."
plumbline=$(realpath -- "$1")
folder=$2
command -v node >/dev/null || { echo "skipped: there is no node"; exit 77; }
scripts/wasm
rm -rf "$folder"
mkdir -p "$folder"
for file in examples/*.yaml; do
  name=$(basename "$file" .yaml)
  rc=0
  "$plumbline" simulate "$file" --json > "$folder/$name.json" 2> "$folder/$name.err" || rc=$?
  # Some examples do not fit (4), and one needs a file that is not there (2); the module must say the same.
  [[ $rc == [024] ]] || { echo "FAILED: plumbline simulate $file ends with $rc"; exit 1; }
done
node tests/wasm/examples.mjs build/wasm/engine "$folder"
node tests/wasm/page.mjs build/wasm/engine
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || true
if [ -n "$chromium" ] && [ -d tests/browser/node_modules/playwright-core ] && [ -d tests/browser/node_modules/axe-core ]; then
  node tests/wasm/disk.cjs build/wasm/engine "$chromium" "$plumbline"
  node tests/wasm/lesson.cjs build/wasm/lesson "$chromium" "$plumbline"
else
  echo "SKIPPED: the pages in a browser: there is no Chromium, or tests/browser.sh has not fetched its packages"
fi
size=$(gzip -9 -c build/wasm/engine/plumbline_engine.js | wc -c)
echo "the module is $size bytes, compressed"
[ "$size" -lt 2000000 ] || { echo "FAILED: that is more than two million bytes"; exit 1; }
