#!/usr/bin/env bash
# Other projects use the library as docs/how-to/library.md says: installed, by CMake and by pkg-config, and as a folder of
# their own. Each gets what it needs to compile, and none of Plumbline's own flags; each program says the same.
# Usage: tests/outside.sh BUILD [FOLDER]
#   BUILD: the folder of a build with PLUMBLINE_INSTALL
#   FOLDER: where the projects stay, for the next time; build/outside if absent
# SPDX-License-Identifier: MIT
set -eu
export LC_ALL=C
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
build=$(realpath -e -- "${1:?usage: tests/outside.sh BUILD [FOLDER]}")
mkdir -p "${2:-build/outside}"
folder=$(realpath -e -- "${2:-build/outside}")
root=$PWD

fail() {
  echo "FAILED: $1"
  exit 1
}
quiet() {  # quiet COMMAND...: its output only where it fails
  "$@" > "$folder/output.txt" 2>&1 || { tail -n 30 "$folder/output.txt"; fail "$*"; }
}
block() {  # block LANGUAGE NUMBER: the page's block of that number in that language
  awk -v first="\`\`\`$1" -v wanted="$2" '$0 == "```" { inside = 0 } inside; $0 == first { inside = ++seen == wanted }' docs/how-to/library.md
}
says() {  # says PROGRAM: what the first program of the page says
  local said
  said=$(cd "$root" && "$1") || fail "$1 ends with $?"
  [[ $said == *'overhead.per_op=100 us: 35.3 ms'* ]] || fail "$1 says '$said'"
}

# Installed.
PREFIX=$folder/prefix
export PREFIX
rm -rf -- "$PREFIX" "$folder/installed"
quiet cmake --build "$build" --target plumbline plumbline_archive plumbline_measure_archive plumbline_extras
quiet cmake --install "$build" --prefix "$PREFIX"
[ "$(block sh 1 | tail -n 1)" = 'cmake --install build/release --prefix "$PREFIX"' ] || fail "the page installs in another way"
seen=$(find "$PREFIX" -name 'libplumbline*.a' -exec nm -gC --defined-only {} +)
others=$(grep -E '^[0-9a-f]+ ' <<<"$seen" | grep -vE ' plumbline::v1::' || true)
[ -z "$others" ] || fail "the archives show names that are not of the facade: $(head -n 3 <<<"$others")"
"$PREFIX/bin/plumbline" --version > /dev/null || fail "the installed command does not start"

mkdir -p "$folder/installed"
block cmake 1 > "$folder/installed/CMakeLists.txt"
cp examples/library/predict.cpp "$folder/installed/mine.cpp"
quiet cmake -S "$folder/installed" -B "$folder/installed/build" -G Ninja "-DCMAKE_PREFIX_PATH=$PREFIX" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
quiet cmake --build "$folder/installed/build"
says "$folder/installed/build/mine"

# By pkg-config; with the library that measures, too.
(
  cd "$folder/installed"
  PKG_CONFIG_PATH=$(dirname "$(find "$PREFIX" -name plumbline.pc)")
  export PKG_CONFIG_PATH
  command -v pkg-config > /dev/null || { echo "without pkg-config (package pkg-config): its files were not tried"; exit 0; }
  compile=$(cd "$root" && block sh 2 | tail -n 1)
  quiet bash -eu -c "$compile"
  says "$folder/installed/mine"
  cp "$root/examples/library/validate.cpp" .
  quiet bash -eu -c 'c++ -std=c++20 validate.cpp $(pkg-config --cflags --libs plumbline-measure) -o validate'
  said=$(cd "$root" && "$folder/installed/validate") || fail "validate ends with $?"
  [[ $said == *'schedule.name=gpipe: predicted 33 ms'* ]] || fail "validate says '$said'"
)

# As a folder of the project. No link to it: without tests/, which must not be asked for.
rm -rf -- "$folder/inside"
mkdir -p "$folder/inside/plumbline"
cp -a CMakeLists.txt base calibrate cli cmake examples include library models schedules sim tools "$folder/inside/plumbline"
block cmake 1 | sed 's/find_package(plumbline REQUIRED)/add_subdirectory(plumbline EXCLUDE_FROM_ALL)/' > "$folder/inside/CMakeLists.txt"
grep -q add_subdirectory "$folder/inside/CMakeLists.txt" || fail "the page's project does not find the package"
cp examples/library/predict.cpp "$folder/inside/mine.cpp"
# The rooms themselves are not built once more: the programs of tests/library.sh link them.
quiet cmake -S "$folder/inside" -B "$folder/inside/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
steps=$(ninja -C "$folder/inside/build" -t commands mine)
[[ $steps == *libplumbline_library_predict.a* ]] || fail "the folder's library is not built"
[[ ! $steps =~ plumbline/(cli|tests|calibrate|library/measure)/ ]] || fail "more is built than what is linked"

for project in installed inside; do
  compiled=$(grep '"command".*mine\.cpp' "$folder/$project/build/compile_commands.json")
  flags=' -std=(gnu|c)[+][+]20 ' leaks=' -[Wf]|OWN_SOURCES'
  [[ $compiled =~ $flags ]] || fail "$project: the program is not compiled as C++20: $compiled"
  [[ ! $compiled =~ $leaks ]] || fail "$project: the program is compiled with flags that are not its own: $compiled"
done
command=$(sed -nE 's/^ *"command": "(.*)",?$/\1/p' <<<"$compiled")
(cd "$folder/inside/build" && quiet bash -eu -c "${command// -o / -fsyntax-only -o }")
echo "passed: installed, by pkg-config, and as a folder"
