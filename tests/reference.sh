#!/usr/bin/env bash
# The pages that scripts/reference writes are of the command as it is. PLUMBLINE_UPDATE_GOLDEN=1 rewrites them.
# SPDX-License-Identifier: MIT
# Usage: tests/reference.sh BINARY
set -u
plumbline=$(realpath -e -- "${1:?usage: tests/reference.sh BINARY}") || exit 2
cd "$(dirname "$0")/.." || exit 1
command -v python3 > /dev/null || { echo "skipped: no python3"; exit 77; }
if [ "${PLUMBLINE_UPDATE_GOLDEN-}" = 1 ]; then scripts/reference "$plumbline" || exit 1; fi
work=$(mktemp -d) || exit 3
trap 'rm -rf -- "$work"' EXIT
scripts/reference "$plumbline" -o "$work" || exit 1
for page in "$work"/*.md; do
  diff -u --label "docs/reference/${page##*/}" --label "of the command" "docs/reference/${page##*/}" "$page" || exit 1
done
echo "docs/reference is what the command says"
