#!/usr/bin/env bash
# The lesson without a browser: its addresses, texts and orders, and its settings for the command, under node.
# SPDX-License-Identifier: MIT
# Usage: tests/lesson.sh BINARY       exits with 77 without node 20
set -eu
cd "$(dirname "$0")/.."
PLUMBLINE=$(realpath -- "$1")
export PLUMBLINE
command -v node >/dev/null || { echo "skipped: there is no node"; exit 77; }
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || { echo "skipped: node $(node --version) is older than 20"; exit 77; }
node --test --test-reporter=spec tests/lesson/
