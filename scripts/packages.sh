# What building and testing need on Debian and Ubuntu; sourced by the other scripts.
# SPDX-License-Identifier: MIT

plumbline_build_packages=(g++ cmake ninja-build libyaml-cpp-dev libboost-graph-dev libfmt-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev zlib1g-dev libssl-dev libdnnl-dev)
plumbline_test_packages=(doctest-dev libbenchmark-dev python3)
plumbline_python_packages=(python3-dev python3-venv python3-pip python3-setuptools python3-wheel python3-pybind11 pybind11-dev python3-numpy python3-pandas python3-pytest python3-nbclient python3-ipykernel mypy)
plumbline_release_packages=(help2man dpkg-dev mmdebstrap)
plumbline_torch_packages=(python3-torch)
plumbline_slurm_packages=(slurm-wlm munge)
plumbline_browser_packages=(chromium nodejs npm)
plumbline_wasm_packages=(emscripten)
plumbline_site_packages=(python3 mkdocs mkdocs-material)
plumbline_check_packages=(clang clang-format clang-tidy)

# need PACKAGE...: installs those that are missing with apt-get, as root or by sudo; otherwise prints the
# exact command and ends.
need() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null && [ ! -t 0 ]; then
      echo "missing packages; as root run:"
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
      exit 1
    fi
    as_root=(sudo)
  fi
  if ! command -v apt-get >/dev/null; then
    echo "this system has no apt-get; install what corresponds to: ${missing[*]}"
    exit 1
  fi
  echo "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# need_clang: Clang with its sanitizers and its fuzzer, whose runtime is a package of its own where Clang was installed
# without what it recommends.
need_clang() {
  need clang
  local major runtime
  major=$(clang++ -dumpversion | cut -d. -f1)
  runtime=$(clang++ -print-file-name=libclang_rt.fuzzer-"$(uname -m)".a)
  [ -e "$runtime" ] || need "libclang-rt-$major-dev"
}
