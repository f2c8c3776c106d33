// Searches CUDA's libraries in the usual places.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace plumbline {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// The entries of a folder that begin with `prefix`, in order; none if it cannot be read.
std::vector<fs::path> entries(const fs::path& folder, std::string_view prefix = "") {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().rfind(prefix, 0) == 0) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> parted_by_colons(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Collects places: each folder once, with the first reason for it.
class Places {
 public:
  Places(const Environment& environment, std::string root)
      : environment_(environment), root_(std::move(root)) {}

  std::string variable(const char* name) const {
    const char* const value = environment_(name);
    return value == nullptr ? "" : value;
  }

  void add(const fs::path& folder, const std::string& reason) {
    if (!is_folder(folder)) return;
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error || std::find(seen_.begin(), seen_.end(), real) != seen_.end()) return;
    seen_.push_back(real);
    places_.push_back({folder.string(), reason});
  }
  /// The loader's own path.
  void add_loader() { places_.push_back({"", "the loader's path"}); }

  /// A CUDA toolkit.
  void add_toolkit(const fs::path& toolkit, const std::string& reason) {
    add(toolkit / "lib64", reason);
    add(toolkit / "lib", reason);
    for (const fs::path& target : entries(toolkit / "targets")) add(target / "lib", reason);
  }
  /// The packages of a Python environment: PyTorch's libraries come in packages.
  void add_python(const fs::path& prefix, const std::string& reason) {
    for (const char* const lib : {"lib", "lib64"}) {
      for (const fs::path& python : entries(prefix / lib, "python3")) {
        for (const char* const packages : {"site-packages", "dist-packages"}) {
          for (const fs::path& package : entries(python / packages / "nvidia"))
            add(package / "lib", reason);
        }
      }
    }
  }
  /// The environments that the first python3 on PATH may belong to.
  void add_python_on_path() {
    for (const std::string& folder : parted_by_colons(variable("PATH"))) {
      const fs::path python = fs::path(folder) / "python3";
      std::error_code error;
      if (!fs::is_regular_file(python, error)) continue;
      const std::string reason = "python3 on PATH";
      const fs::path prefix = fs::path(folder).parent_path();
      add_python(prefix, reason);
      // A virtual environment's python3 is a link to its original, and may itself be behind a link.
      fs::path behind = python;
      for (int hops = 0; hops < 16 && fs::is_symlink(behind, error); ++hops) {
        const fs::path target = fs::read_symlink(behind, error);
        if (error) break;
        behind = (behind.parent_path() / target).lexically_normal();
        add_python(behind.parent_path().parent_path(), reason);
      }
      const fs::path real = fs::canonical(python, error);
      if (!error) add_python(real.parent_path().parent_path(), reason);
      add_python(prefix / "local", reason);  // Debian's /usr/bin/python3
      // pyenv's python3 is a script that chooses among these.
      for (const fs::path& version : entries(prefix / "versions")) add_python(version, reason);
      return;
    }
  }

  fs::path rooted(const char* path) const { return root_ + path; }
  std::vector<LibraryPlace> take() { return std::move(places_); }

 private:
  const Environment& environment_;
  std::string root_;
  std::vector<fs::path> seen_;
  std::vector<LibraryPlace> places_;
};

/// Requires: the library is of this kind.
std::string version_of(const CudaLibraryKind& kind, const CudaLibrary& library) {
  void* const function = library.symbol(std::string(kind.version).c_str());
  if (function == nullptr) return "";
  if (kind.name == kNccl.name) {
    int number = 0;
    if (reinterpret_cast<int (*)(int*)>(function)(&number) != 0) return "";
    return cuda_library_version(static_cast<std::uint64_t>(number));
  }
  return cuda_library_version(reinterpret_cast<std::size_t (*)()>(function)());
}

std::string path_of(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  const bool is_known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0';
  return is_known ? map->l_name : asked;
}

}  // namespace

void* CudaLibrary::symbol(const char* name) const { return dlsym(handle, name); }

std::vector<LibraryPlace> cuda_library_places(const Environment& environment,
                                              const std::string& root) {
  Places places(environment, root);
  // The user's folders come first.
  for (const std::string& folder : parted_by_colons(places.variable("PLUMBLINE_CUDA_LIBRARIES")))
    places.add(folder, "PLUMBLINE_CUDA_LIBRARIES");
  places.add_loader();
  // Then toolkits.
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string toolkit = places.variable(name); !toolkit.empty())
      places.add_toolkit(toolkit, name);
  places.add_toolkit(places.rooted("/usr/local/cuda"), "the toolkit's usual place");
  // Then Python environments.
  for (const char* const name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = places.variable(name);
    if (prefix.empty()) continue;
    places.add_python(prefix, name);
    if (name == std::string_view("CONDA_PREFIX")) places.add(fs::path(prefix) / "lib", name);
  }
  places.add_python_on_path();
  if (const std::string home = places.variable("HOME"); !home.empty())
    places.add_python(fs::path(home) / ".local", "pip install --user");
  return places.take();
}

namespace {

/// The library of this name in the first place where it loads. Adds to `looked_at` what was wrong
/// with the others.
std::optional<CudaLibrary> load_file(const CudaLibraryKind& kind, std::string_view file,
                                     const std::vector<LibraryPlace>& places,
                                     std::string& looked_at) {
  for (const LibraryPlace& place : places) {
    const bool is_loader = place.folder.empty();
    const fs::path path = fs::path(place.folder) / file;
    std::error_code error;
    std::string outcome = "not there";
    if (is_loader || fs::exists(path, error)) {
      CudaLibrary library;
      library.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library.handle != nullptr) {
        library.version = version_of(kind, library);
        if (!library.version.empty()) {
          library.path = path_of(library.handle, path.string());
          return library;
        }
        dlclose(library.handle);
        outcome = fmt::format("states no version by {}", kind.version);
      } else if (const char* const said = dlerror(); said != nullptr) {
        const bool is_absent =
            is_loader && std::string_view(said).rfind(fmt::format("{}: cannot open", file), 0) == 0;
        if (!is_absent) outcome = fmt::format("does not load: {}", said);
      }
    }
    looked_at += is_loader ? fmt::format("  {}: {}\n", place.reason, outcome)
                           : fmt::format("  {} ({}): {}\n", place.folder, place.reason, outcome);
  }
  return std::nullopt;
}

}  // namespace

Result<CudaLibrary> load_cuda_library(const CudaLibraryKind& kind,
                                      const std::vector<LibraryPlace>& places) {
  std::string looked_at;
  if (auto found = load_file(kind, kind.file, places, looked_at)) return *std::move(found);
  std::string also;  // the same places
  if (!kind.older_file.empty()) {
    if (auto found = load_file(kind, kind.older_file, places, also)) return *std::move(found);
  }
  Diagnostic missing;
  missing.message = fmt::format("{} ({}) is not found", kind.name, kind.file);
  missing.help = fmt::format(
      "put its folder into PLUMBLINE_CUDA_LIBRARIES, or pip install {} into an active environment",
      kind.package);
  missing.detail = std::move(looked_at);
  missing.fault = Fault::no_device;
  return missing;
}

Result<CudaLibrary> load_cuda_library(const CudaLibraryKind& kind) {
  return load_cuda_library(
      kind, cuda_library_places([](const char* name) -> const char* { return std::getenv(name); }));
}

std::string cuda_library_version(std::uint64_t number) {
  return fmt::format("{}.{}.{}", number / 10'000, number / 100 % 100, number % 100);
}

void* CudaSymbols::symbol(const char* name) {
  void* const found = dlsym(library_, name);
  if (found == nullptr && missing_.empty()) missing_ = name;
  return found;
}

std::optional<Diagnostic> CudaSymbols::missing(const std::string& path,
                                               std::string_view help) const {
  if (missing_.empty()) return std::nullopt;
  return no_cuda_library(fmt::format("'{}' lacks {}", path, missing_), help);
}

Diagnostic no_cuda_library(std::string message, std::string_view help) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.help = help;
  diagnostic.fault = Fault::no_device;
  return diagnostic;
}

Result<void*> open_cuda_library(std::string_view name, const std::string& path,
                                std::string_view help) {
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded != nullptr) return loaded;
  const char* const why = dlerror();
  return no_cuda_library(fmt::format("{} cannot be loaded: {}", name, why == nullptr ? path : why),
                         help);
}

}  // namespace plumbline
