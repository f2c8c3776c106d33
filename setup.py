"""Builds plumbline._core with CMake. All else stands in pyproject.toml.

PLUMBLINE_BUILD=<folder> takes a folder in which CMake has built already, such as build/release. Without it, the folder is
build/python. The module calls yaml-cpp, fmt and zlib of the system.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


def version() -> str:
    """The version stands once, in CMakeLists.txt."""
    found = re.search(r"project\(plumbline VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert found, "CMakeLists.txt names no version"
    return found.group(1)


class CMakeBuild(build_ext):
    """Lets CMake build the one target of the module."""

    def build_extension(self, ext: Extension) -> None:
        given = os.environ.get("PLUMBLINE_BUILD")
        folder = Path(given).resolve() if given else ROOT / "build" / "python"
        configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DPLUMBLINE_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}"]
        if not (folder / "CMakeCache.txt").exists():
            options = {
                "CMAKE_BUILD_TYPE": "Release",
                "CMAKE_UNITY_BUILD": "ON",
                "CMAKE_UNITY_BUILD_BATCH_SIZE": "16",
                "PLUMBLINE_TESTS": "OFF",
                "PLUMBLINE_BENCHMARKS": "OFF",
                "PLUMBLINE_INSTALL": "OFF",
            }
            configure += [f"-D{name}={value}" for name, value in options.items()]
            if shutil.which("ninja"):
                configure += ["-G", "Ninja"]
        self.run_command_line(configure)
        self.run_command_line(["cmake", "--build", str(folder), "--target", "plumbline_python", "--parallel", str(os.cpu_count() or 1)])
        built = folder / "python" / "plumbline" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, target)

    def run_command_line(self, command: "list[str]") -> None:
        """Runs it, and tells it where it fails."""
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError:
            sys.exit("plumbline is built by CMake 3.22 or newer, which is not installed (package cmake)")
        except subprocess.CalledProcessError as error:
            sys.exit(f"this command failed: {' '.join(command)} ({error.returncode}); docs/how-to/install.md lists what it needs")


setup(version=version(), ext_modules=[Extension("plumbline._core", sources=[])], cmdclass={"build_ext": CMakeBuild})
