#!/usr/bin/env bash
# Another CMake project uses the library as docs/how-to/library.md says: its CMakeLists.txt, its first program, its commands.
# The program gets what it needs to compile, and none of Plumbline's own flags.
# Usage: tests/outside.sh [FOLDER]    FOLDER: where the project stays, for the next time; build/outside if absent
# SPDX-License-Identifier: MIT
set -eu
export LC_ALL=C
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
mkdir -p "${1:-build/outside}"
folder=$(realpath -e -- "${1:-build/outside}")

block() {  # block LANGUAGE: the page's first block in that language
  awk -v first="\`\`\`$1" '$0 == "```" && inside { exit } inside; $0 == first { inside = 1 }' docs/how-to/library.md
}
block cmake > "$folder/CMakeLists.txt"
block sh > "$folder/commands.sh"
cp examples/library/predict.cpp "$folder/mine.cpp"
# No link: the page's commands go out of this folder by "..". Without tests/, which must not be asked for.
rm -rf -- "$folder/plumbline"
mkdir "$folder/plumbline"
cp -a CMakeLists.txt base calibrate cli cmake examples models schedules sim tools "$folder/plumbline"

cd "$folder"
export CMAKE_EXPORT_COMPILE_COMMANDS=ON
if command -v ccache > /dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
bash -eu commands.sh > output.txt 2>&1 || { tail -n 30 output.txt; echo "FAILED: the commands of docs/how-to/library.md"; exit 1; }

fail() {
  echo "FAILED: $1"
  exit 1
}
said=$(tail -n 1 output.txt)
[[ $said == *'ms, with 100 us an op '* ]] || fail "the program says '$said'"
compiled=$(grep '"command".*mine\.cpp' build/compile_commands.json)
flags=' -std=(gnu|c)[+][+]20 ' leaks=' -[Wf]'
[[ $compiled =~ $flags ]] || fail "the program is not compiled as C++20: $compiled"
[[ ! $compiled =~ $leaks ]] || fail "the program is compiled with flags that are not its own: $compiled"
[ ! -e build/plumbline/plumbline ] || fail "the command was built, too"
echo "passed: $said"
