// Finding the libraries of CUDA: cuBLASLt, cuDNN, NCCL. None of them is linked.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

/// A library that the cuda backend can use.
struct CudaLibraryKind {
  std::string_view name;     ///< "cuBLASLt".
  std::string_view file;     ///< Its soname: "libcublasLt.so.13".
  std::string_view version;  ///< The function that returns its version without a device.
  std::string_view package;  ///< Its name for pip: "nvidia-cublas".
  /// The soname of the version before, which is taken where no place has `file`; "" = there is
  /// none.
  std::string_view older_file{};
};
inline constexpr CudaLibraryKind kCublasLt{"cuBLASLt", "libcublasLt.so.13", "cublasLtGetVersion",
                                           "nvidia-cublas", "libcublasLt.so.12"};
inline constexpr CudaLibraryKind kCudnn{"cuDNN", "libcudnn.so.9", "cudnnGetVersion",
                                        "nvidia-cudnn-cu13"};
inline constexpr CudaLibraryKind kNccl{"NCCL", "libnccl.so.2", "ncclGetVersion",
                                       "nvidia-nccl-cu13"};

/// A loaded library. It stays loaded until the program ends, as its threads and handles do.
struct CudaLibrary {
  std::string path;     ///< The loader's path: "/usr/local/cuda/lib64/libcudnn.so.9".
  std::string version;  ///< "9.19.0".
  void* handle = nullptr;

  /// The function of this name; null if there is none.
  void* symbol(const char* name) const;
};

/// A place that may hold libraries, and the reason for searching it.
struct LibraryPlace {
  std::string folder;  ///< "" = the loader's own path (LD_LIBRARY_PATH, ldconfig).
  std::string reason;  ///< "PLUMBLINE_CUDA_LIBRARIES", "CUDA_HOME", "python3 on PATH".

  bool operator==(const LibraryPlace&) const = default;
};

/// An environment variable's value; nullptr = it is not set.
using Environment = std::function<const char*(const char*)>;

/// The places to search, in this order: the folders of PLUMBLINE_CUDA_LIBRARIES (separated by
/// colons); the loader's own path; lib64, lib and targets/*/lib of CUDA_HOME, CUDA_PATH and
/// /usr/local/cuda; nvidia/*/lib in the site-packages of VIRTUAL_ENV, of CONDA_PREFIX and of the
/// first python3 on PATH (Python is not run). Only folders that exist, each once. `root` is put
/// before the absolute paths that are built in: tests give a tree of their own.
std::vector<LibraryPlace> cuda_library_places(const Environment& environment,
                                              const std::string& root = "");

/// Loads the library from the first place where that works; where none has it, an older one. Errors
/// (no device): no place works; the detail lists the places, and the loader's message for a library
/// that does not load.
Result<CudaLibrary> load_cuda_library(const CudaLibraryKind& kind,
                                      const std::vector<LibraryPlace>& places);

/// The same at cuda_library_places(getenv).
Result<CudaLibrary> load_cuda_library(const CudaLibraryKind& kind);

/// Opens the file at a path, or a name that the loader searches. The library stays open. Errors (no
/// device): it cannot be loaded.
Result<void*> open_cuda_library(std::string_view name, const std::string& path,
                                std::string_view help);
/// Looks up the functions of an open library.
class CudaSymbols {
 public:
  explicit CudaSymbols(void* library) : library_(library) {}

  /// Sets a pointer to the function of this name; null if there is none.
  template <class Pointer>
  void find(Pointer& function, const char* name) {
    function = reinterpret_cast<Pointer>(symbol(name));
  }
  /// The first function that was missing; `path` is the library's.
  std::optional<Diagnostic> missing(const std::string& path, std::string_view help) const;

 private:
  void* symbol(const char* name);

  void* library_;
  std::string missing_;
};

/// The error that a library is missing or not as it should be.
Diagnostic no_cuda_library(std::string message, std::string_view help);

/// A version number as text: 130100 of cuBLASLt is 13.1.0, 91900 of cuDNN 9.19.0, 22809 of NCCL
/// 2.28.9.
std::string cuda_library_version(std::uint64_t number);

}  // namespace plumbline
