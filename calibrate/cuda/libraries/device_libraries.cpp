// Choosing products and convolutions.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/device_libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <variant>

#include "calibrate/cuda/libraries/builtin_convolutions.h"
#include "calibrate/cuda/libraries/builtin_gemm.h"
#include "calibrate/cuda/libraries/cublaslt.h"
#include "calibrate/cuda/libraries/cudnn.h"
#include "calibrate/cuda/libraries/libraries.h"

namespace plumbline {
namespace {

bool has_convolutions(const Network& network) {
  return std::any_of(network.layers.begin(), network.layers.end(), [](const NetworkLayer& layer) {
    return std::holds_alternative<Conv2d>(layer.settings) ||
           std::holds_alternative<ResidualBlock>(layer.settings);
  });
}

std::string plain_instead_of(std::string_view what, std::string_view why) {
  return fmt::format("{} are those of a plain kernel, far from the device's speed: {}", what, why);
}

/// The library's functions. Nothing if the library is missing; then the reason, a sentence that
/// begins with the work that our own kernels now do.
template <class Functions>
std::optional<Functions> found_or_noted(const CudaLibraryKind& kind,
                                        Result<Functions> (*load)(const std::string&),
                                        const std::string& what,
                                        std::vector<std::string>& missing) {
  const auto library = load_cuda_library(kind);
  const Result<Functions> functions =
      library ? load(library->path) : Result<Functions>(library.problems());
  if (functions) return *functions;
  missing.push_back(plain_instead_of(what, functions.problems().front().message));
  return std::nullopt;
}

}  // namespace

DeviceLibraries::DeviceLibraries(CudaDevices& devices, const Network& network, bool own,
                                 const std::optional<Nccl>& nccl)
    : devices_(devices), nccl_(nccl) {
  const bool convolves = has_convolutions(network);
  std::optional<CublasLt> cublaslt;
  std::optional<Cudnn> cudnn;
  if (!own) cublaslt = found_or_noted(kCublasLt, &load_cublaslt, "matrix products", missing_);
  if (!own && convolves) cudnn = found_or_noted(kCudnn, &load_cudnn, "convolutions", missing_);
  // A library that does not start on one device is not used on any: they share their choices.
  const auto on_each = [&](const auto& make) {
    for (std::size_t i = 0; i < devices.all().size(); ++i) {
      PLUMBLINE_CUDA(devices.driver(), cuCtxSetCurrent, devices.all()[i].primary);
      make(of_device_[i], devices.all()[i]);
    }
  };
  of_device_.resize(devices.all().size());
  try {
    if (cublaslt) {
      on_each([&](OfDevice& mine, const CudaDevice&) {
        mine.products = std::make_unique<CublasLtGemm>(devices.driver(), *cublaslt, choices_);
      });
    }
  } catch (const CublasLtError& error) {
    missing_.push_back(plain_instead_of("matrix products", error.what()));
    cublaslt.reset();
  }
  try {
    if (cudnn) {
      on_each([&](OfDevice& mine, const CudaDevice& device) {
        mine.convolutions = start_cudnn(devices.driver(), device, *cudnn, choices_);
      });
    }
  } catch (const CudnnError& error) {
    missing_.push_back(plain_instead_of("convolutions", error.what()));
    cudnn.reset();
  }
  for (OfDevice& mine : of_device_) {
    if (!cublaslt) mine.products = builtin_gemm();
    if (!cudnn && convolves) mine.convolutions = builtin_convolutions();
  }
}

DeviceLibraries::~DeviceLibraries() {
  for (std::size_t i = 0; i < of_device_.size(); ++i) {
    devices_.driver().cuCtxSetCurrent(devices_.all()[i].context);
    of_device_[i] = {};
  }
}

CudaQueue DeviceLibraries::queue(std::size_t device, CUstream stream) {
  CudaQueue queue = bare_queue(devices_.driver(), devices_.all()[device], stream);
  queue.products = of_device_[device].products.get();
  queue.convolutions = of_device_[device].convolutions.get();
  queue.choices = &choices_;
  return queue;
}

std::vector<std::string> DeviceLibraries::missing() const {
  std::vector<std::string> all = missing_;
  std::string_view products, convolutions;
  for (const OfDevice& mine : of_device_) {
    if (products.empty() && mine.products) products = mine.products->trouble();
    if (convolutions.empty() && mine.convolutions) convolutions = mine.convolutions->trouble();
  }
  if (!products.empty()) all.push_back(plain_instead_of("some matrix products", products));
  if (!convolutions.empty()) all.push_back(plain_instead_of("some convolutions", convolutions));
  return all;
}

std::string DeviceLibraries::name() const {
  const OfDevice& first = of_device_.front();
  std::string text(first.products->name());
  if (first.convolutions) {
    text += ", ";
    text += first.convolutions->name();
  }
  return text;
}

Result<std::optional<Nccl>> nccl_for(CudaDevices& devices, bool asked, const Nccl* given) {
  if (!asked || devices.all().size() < 2) return std::optional<Nccl>();
  if (devices.split()) {
    return no_cuda_library(
        fmt::format("--nccl moves tensors between GPUs, and these {} devices are parts of one",
                    devices.all().size()),
        "leave --nccl out: parts of a GPU copy");
  }
  if (given != nullptr) return std::optional<Nccl>(*given);
  const auto library = load_cuda_library(kNccl);
  if (!library) return library.problems();
  const auto functions = load_nccl(library->path);
  if (!functions) return functions.problems();
  return std::optional<Nccl>(*functions);
}

}  // namespace plumbline
