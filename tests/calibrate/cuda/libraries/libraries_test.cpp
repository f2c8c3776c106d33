// The search for CUDA's libraries, in made-up folders and on this machine.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/libraries.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/support/temporary_folder.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

/// A tree of folders as systems have them.
class Tree : public test::TemporaryFolder {
 public:
  void folder(const char* name) const { fs::create_directories((*this)[name]); }
  void link(const char* from, const char* to) const {
    fs::create_directories(fs::path((*this)[from]).parent_path());
    fs::create_symlink((*this)[to], (*this)[from]);
  }
};

std::vector<LibraryPlace> places(const Tree& tree, const std::map<std::string, std::string>& set) {
  return cuda_library_places(
      [&](const char* name) {
        const auto found = set.find(name);
        return found == set.end() ? nullptr : found->second.c_str();
      },
      tree.path());
}

TEST_CASE(
    "libraries are looked for where the user says, then by the loader, in toolkits, in "
    "Python environments") {
  const Tree tree;
  tree.folder("mine");
  tree.folder("cuda-13.0/lib64");
  tree.folder("cuda-13.0/targets/x86_64-linux/lib");
  tree.folder("usr/local/cuda/lib64");
  tree.folder("venv/lib/python3.12/site-packages/nvidia/cudnn/lib");
  tree.folder("venv/lib/python3.12/site-packages/nvidia/nccl/lib");
  tree.folder("venv/lib/python3.12/site-packages/nvidia/nothing");
  tree.folder("conda/lib/python3.11/site-packages/nvidia/cu13/lib");
  tree.folder("home/.local/lib/python3.12/site-packages/nvidia/cu13/lib");
  const auto found = places(tree, {{"PLUMBLINE_CUDA_LIBRARIES", tree["none"] + ":" + tree["mine"]},
                                   {"CUDA_HOME", tree["cuda-13.0"]},
                                   {"CUDA_PATH", tree["cuda-13.0"]},
                                   {"VIRTUAL_ENV", tree["venv"]},
                                   {"CONDA_PREFIX", tree["conda"]},
                                   {"HOME", tree["home"]}});
  const std::vector<LibraryPlace> expected = {
      {tree["mine"], "PLUMBLINE_CUDA_LIBRARIES"},
      {"", "the loader's path"},
      {tree["cuda-13.0/lib64"], "CUDA_HOME"},
      {tree["cuda-13.0/targets/x86_64-linux/lib"], "CUDA_HOME"},
      {tree["usr/local/cuda/lib64"], "the toolkit's usual place"},
      {tree["venv/lib/python3.12/site-packages/nvidia/cudnn/lib"], "VIRTUAL_ENV"},
      {tree["venv/lib/python3.12/site-packages/nvidia/nccl/lib"], "VIRTUAL_ENV"},
      {tree["conda/lib/python3.11/site-packages/nvidia/cu13/lib"], "CONDA_PREFIX"},
      {tree["conda/lib"], "CONDA_PREFIX"},
      {tree["home/.local/lib/python3.12/site-packages/nvidia/cu13/lib"], "pip install --user"}};
  CHECK(found == expected);
}

TEST_CASE("of the python3 on PATH, its own environment, the one that it links to, and pyenv's") {
  const Tree tree;
  const char* const reason = "python3 on PATH";
  const LibraryPlace loader{"", "the loader's path"};
  tree.file("usr/bin/python3", "");
  tree.folder("usr/local/lib/python3.11/dist-packages/nvidia/cudnn/lib");
  tree.folder("usr/lib/python3.11/site-packages/nvidia/cudnn/lib");
  tree.folder("empty/bin");
  SUBCASE("the system's") {
    const auto found = places(tree, {{"PATH", tree["empty/bin"] + "::" + tree["usr/bin"]}});
    CHECK(found == std::vector<LibraryPlace>{
                       loader,
                       {tree["usr/lib/python3.11/site-packages/nvidia/cudnn/lib"], reason},
                       {tree["usr/local/lib/python3.11/dist-packages/nvidia/cudnn/lib"], reason}});
  }
  SUBCASE("a virtual environment's, which comes before the system's") {
    tree.link("venv/bin/python3", "usr/bin/python3");
    tree.folder("venv/lib/python3.11/site-packages/nvidia/nccl/lib");
    const auto found = places(tree, {{"PATH", tree["venv/bin"] + ":" + tree["usr/bin"]}});
    REQUIRE(found.size() == 3);
    CHECK(found[1].folder == tree["venv/lib/python3.11/site-packages/nvidia/nccl/lib"]);
    CHECK(found[2].folder == tree["usr/lib/python3.11/site-packages/nvidia/cudnn/lib"]);
  }
  SUBCASE("a virtual environment's behind a link") {
    tree.link("venv/bin/python3", "usr/bin/python3");
    tree.link("usr/local/bin/python3", "venv/bin/python3");
    tree.folder("venv/lib/python3.11/site-packages/nvidia/nccl/lib");
    const auto found = places(tree, {{"PATH", tree["usr/local/bin"] + ":" + tree["usr/bin"]}});
    const LibraryPlace behind{tree["venv/lib/python3.11/site-packages/nvidia/nccl/lib"], reason};
    CHECK(std::find(found.begin(), found.end(), behind) != found.end());
  }
  SUBCASE("pyenv's") {
    tree.file("pyenv/shims/python3", "");
    tree.folder("pyenv/versions/3.12.1/lib/python3.12/site-packages/nvidia/cu13/lib");
    const auto found = places(tree, {{"PATH", tree["pyenv/shims"] + ":" + tree["usr/bin"]}});
    REQUIRE(found.size() == 2);
    CHECK(found[1].folder ==
          tree["pyenv/versions/3.12.1/lib/python3.12/site-packages/nvidia/cu13/lib"]);
  }
}

TEST_CASE("with nothing set and nothing installed only the loader is asked") {
  const Tree tree;
  CHECK(places(tree, {}) == std::vector<LibraryPlace>{{"", "the loader's path"}});
}

TEST_CASE("where a library is not installed, the version before it is taken") {
  const Tree tree;
  const CudaLibraryKind kind{"libc", "libplumbline_new.so.13", "gnu_get_libc_version", "x",
                             "libplumbline_new.so.12"};
  tree.folder("empty");
  tree.folder("there");
  // A library that answers with a number of some kind: what it is does not matter here.
  for (const char* const libc : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"}) {
    std::error_code error;
    std::filesystem::create_symlink(libc, tree["there/libplumbline_new.so.12"], error);
    if (!error && std::filesystem::exists(tree["there/libplumbline_new.so.12"])) break;
    std::filesystem::remove(tree["there/libplumbline_new.so.12"], error);
  }
  if (!std::filesystem::exists(tree["there/libplumbline_new.so.12"])) return;
  const std::vector<LibraryPlace> places = {{tree["empty"], "mine"}, {tree["there"], "mine"}};
  CHECK(load_cuda_library(kind, places));
  CudaLibraryKind newest = kind;
  newest.older_file = "";
  CHECK_FALSE(load_cuda_library(newest, places));
  CHECK(kCublasLt.older_file == "libcublasLt.so.12");
}

TEST_CASE("a library that is nowhere is refused with all the places, and why each failed") {
  const Tree tree;
  const CudaLibraryKind kind{"cuNothing", "libplumbline_nothing.so.1", "version", "nvidia-nothing"};
  tree.folder("empty");
  tree.file("broken/libplumbline_nothing.so.1", "no library");
  const auto library = load_cuda_library(
      kind, {{"", "the loader's path"}, {tree["empty"], "CUDA_HOME"}, {tree["broken"], "mine"}});
  REQUIRE_FALSE(library);
  const Diagnostic& problem = library.problems()[0];
  CHECK(problem.message == "cuNothing (libplumbline_nothing.so.1) is not found");
  CHECK(problem.help ==
        "put its folder into PLUMBLINE_CUDA_LIBRARIES, or pip install nvidia-nothing into an "
        "active environment");
  CHECK(problem.fault == Fault::no_device);
  const std::string expected = "  the loader's path: not there\n  " + tree["empty"] +
                               " (CUDA_HOME): not there\n  " + tree["broken"] +
                               " (mine): does not load: ";
  CHECK(problem.detail.substr(0, expected.size()) == expected);
}

TEST_CASE("a library that tells no version is passed over") {
  const CudaLibraryKind kind{"libc", "libc.so.6", "cublasLtGetVersion", "none"};
  const auto library = load_cuda_library(kind, {{"", "the loader's path"}});
  REQUIRE_FALSE(library);
  CHECK(library.problems()[0].detail ==
        "  the loader's path: states no version by cublasLtGetVersion\n");
}

TEST_CASE("version numbers") {
  CHECK(cuda_library_version(130100) == "13.1.0");
  CHECK(cuda_library_version(91900) == "9.19.0");
  CHECK(cuda_library_version(22809) == "2.28.9");
}

TEST_CASE("the libraries of this machine load and tell their versions") {
  for (const CudaLibraryKind& kind : {kCublasLt, kCudnn, kNccl}) {
    const auto library = load_cuda_library(kind);
    if (!library) {
      MESSAGE("SKIPPED: " << to_text(library.problems()));
      continue;
    }
    MESSAGE(kind.name << " " << library->version << ": " << library->path);
    CHECK(fs::exists(library->path));
    CHECK(library->version.find('.') != std::string::npos);
    CHECK(library->symbol(std::string(kind.version).c_str()) != nullptr);
    CHECK(library->symbol("plumbline_nothing") == nullptr);
  }
}

}  // namespace
}  // namespace plumbline
