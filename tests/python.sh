#!/usr/bin/env bash
# The Python module: its tests, the examples of docs/how-to/python.md, its types, its installation by pip into an
# environment of its own, and that it shows no symbol of a dependency.
# Usage: tests/python.sh BUILD    BUILD: a folder that CMake has configured, in which the module is built, too
# Ends with 77 where no Python has what it needs: NumPy, pandas, pytest, pybind11, setuptools, and headers.
# SPDX-License-Identifier: MIT
set -eu
export LC_ALL=C.UTF-8
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
build=$(realpath -e -- "${1:?usage: tests/python.sh BUILD}")
root=$PWD

fail() {
  echo "FAILED: $1"
  exit 1
}
python=
for one in python3 /usr/bin/python3; do
  "$one" -c 'import numpy, pandas, pybind11, pytest, setuptools, sysconfig, os, wheel
assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' 2> /dev/null && python=$(command -v "$one") && break
done
[ -n "$python" ] || { echo "no python3 has numpy, pandas, pybind11, pytest, setuptools, wheel and Python.h"; exit 77; }

trap 'cmake -S . -B "$build" -DPLUMBLINE_PYTHON=OFF > /dev/null' EXIT  # as it was
cmake -S . -B "$build" -DPLUMBLINE_PYTHON=ON -DPython_EXECUTABLE="$python" > /dev/null
cmake --build "$build" --target plumbline plumbline_python > "$build/python.txt" 2>&1 || { tail -n 30 "$build/python.txt"; fail "the module is not built"; }

seen=$(nm -DC --defined-only "$build"/python/plumbline/_core*.so | awk '{ $1 = ""; $2 = ""; print }' | grep -vE '^ *(PyInit__core|std::|typeinfo (name )?for std::|vtable for std::|void std::|operator|guard variable for std::)' || true)
[ -z "$seen" ] || fail "the module shows names: $(head -n 5 <<<"$seen")"

PLUMBLINE=$build/plumbline PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p no:cacheprovider tests/python

if "$python" -m mypy --version > /dev/null 2>&1; then
  MYPYPATH=python "$python" -m mypy --strict --cache-dir "$build/mypy" -p plumbline
else
  echo "without mypy (package mypy): the types were not checked"
fi

# As users install it, from another folder.
rm -rf -- "$build/venv" "$build/copy"
if ! "$python" -m venv --system-site-packages "$build/venv" > "$build/python.txt" 2>&1; then
  echo "without venv (package python3-venv): pip was not tried"
  exit 0
fi
PLUMBLINE_BUILD=$build "$build/venv/bin/python" -m pip install -q --no-build-isolation --no-deps . > "$build/python.txt" 2>&1 ||
  { tail -n 30 "$build/python.txt"; fail "pip install ."; }
said=$(cd "$build" && venv/bin/python -c 'import plumbline
print(plumbline.__file__, plumbline.simulate("'"$root"'/examples/four-stages.yaml").iteration_time)')
[[ $said == */venv/*' 0.033' ]] || fail "the installed module says '$said'"
echo "passed"
