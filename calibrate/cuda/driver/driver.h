// The CUDA driver as a table of functions, found at run time. The same binary starts without a
// driver, and tests put their own functions in.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

/// Every driver function that is called, by its name in cuda.h. The macros of cuda.h choose the
/// version of a function, both here and at the call.
/// Without these, nothing runs.
#define PLUMBLINE_CUDA_CORE_CALLS(CALL) \
  CALL(cuInit)                          \
  CALL(cuDriverGetVersion)              \
  CALL(cuGetErrorName)                  \
  CALL(cuGetErrorString)                \
  CALL(cuDeviceGet)                     \
  CALL(cuDeviceGetCount)                \
  CALL(cuDeviceGetName)                 \
  CALL(cuDeviceGetUuid)                 \
  CALL(cuDeviceGetAttribute)            \
  CALL(cuDeviceTotalMem)                \
  CALL(cuDeviceCanAccessPeer)           \
  CALL(cuDevicePrimaryCtxRetain)        \
  CALL(cuDevicePrimaryCtxRelease)       \
  CALL(cuCtxSetCurrent)                 \
  CALL(cuCtxGetCurrent)                 \
  CALL(cuCtxPushCurrent)                \
  CALL(cuCtxPopCurrent)                 \
  CALL(cuCtxSynchronize)                \
  CALL(cuCtxEnablePeerAccess)           \
  CALL(cuStreamCreateWithPriority)      \
  CALL(cuStreamDestroy)                 \
  CALL(cuStreamSynchronize)             \
  CALL(cuStreamQuery)                   \
  CALL(cuStreamWaitEvent)               \
  CALL(cuStreamBeginCapture)            \
  CALL(cuStreamEndCapture)              \
  CALL(cuEventCreate)                   \
  CALL(cuEventDestroy)                  \
  CALL(cuEventRecord)                   \
  CALL(cuEventSynchronize)              \
  CALL(cuEventQuery)                    \
  CALL(cuEventElapsedTime)              \
  CALL(cuGraphDestroy)                  \
  CALL(cuGraphExecDestroy)              \
  CALL(cuGraphInstantiate)              \
  CALL(cuGraphLaunch)                   \
  CALL(cuGraphUpload)                   \
  CALL(cuModuleLoadData)                \
  CALL(cuModuleUnload)                  \
  CALL(cuModuleGetFunction)             \
  CALL(cuFuncSetAttribute)              \
  CALL(cuLaunchKernel)                  \
  CALL(cuMemAlloc)                      \
  CALL(cuMemFree)                       \
  CALL(cuMemHostAlloc)                  \
  CALL(cuMemFreeHost)                   \
  CALL(cuMemHostGetDevicePointer)       \
  CALL(cuMemGetInfo)                    \
  CALL(cuMemcpyAsync)                   \
  CALL(cuMemcpyDtoDAsync)               \
  CALL(cuMemcpyDtoHAsync)               \
  CALL(cuMemcpyHtoDAsync)               \
  CALL(cuMemcpyPeerAsync)               \
  CALL(cuMemsetD8Async)                 \
  CALL(cuMemsetD32Async)

/// These split a GPU: a driver for CUDA 12.5 has all of them, one for 12.4 all but
/// cuGreenCtxStreamCreate (cudaTypedefs.h). Whole GPUs do without.
#define PLUMBLINE_CUDA_SPLIT_CALLS(CALL) \
  CALL(cuDeviceGetDevResource)           \
  CALL(cuDevSmResourceSplitByCount)      \
  CALL(cuDevResourceGenerateDesc)        \
  CALL(cuGreenCtxCreate)                 \
  CALL(cuGreenCtxDestroy)                \
  CALL(cuGreenCtxGetDevResource)         \
  CALL(cuGreenCtxStreamCreate)           \
  CALL(cuCtxFromGreenCtx)

/// These say how memory is used, for whoever asks. Every driver for CUDA 11.2 has them.
#define PLUMBLINE_CUDA_OPTIONAL_CALLS(CALL) \
  CALL(cuMemPoolCreate)                     \
  CALL(cuMemPoolDestroy)                    \
  CALL(cuMemPoolGetAttribute)               \
  CALL(cuMemPoolSetAttribute)               \
  CALL(cuMemAllocFromPoolAsync)             \
  CALL(cuMemFreeAsync)

#define PLUMBLINE_CUDA_CALLS(CALL) \
  PLUMBLINE_CUDA_CORE_CALLS(CALL)  \
  PLUMBLINE_CUDA_SPLIT_CALLS(CALL) \
  PLUMBLINE_CUDA_OPTIONAL_CALLS(CALL)

namespace plumbline {

/// The driver's functions; null = the driver lacks it.
struct CudaDriver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration has none
#define PLUMBLINE_CUDA_MEMBER(call) decltype(&::call) call = nullptr;
  PLUMBLINE_CUDA_CALLS(PLUMBLINE_CUDA_MEMBER)
#undef PLUMBLINE_CUDA_MEMBER
  /// A GPU's primary context, once made, stays until the process ends, as libraries that stay
  /// loaded keep objects in it. True on a real machine; false in tests, which check that everything
  /// is given back.
  bool keeps_contexts = false;
};

/// The driver of this machine, initialised. Sets CUDA_DEVICE_MAX_CONNECTIONS to 32. Errors (no
/// device): no driver is installed; it is too old and lacks a function without which nothing runs;
/// it does not start; it shows no device. Each says what to do.
Result<CudaDriver> load_cuda_driver();

/// The functions of a driver's library, by their names there: those that are found. Errors (no
/// device): one is missing without which nothing runs.
Result<CudaDriver> cuda_driver_of(const std::function<void*(const char*)>& symbol);

/// The first function that is missing for splitting a GPU, and which driver brings it; "" if none
/// is missing: "cuGreenCtxCreate, which a driver for CUDA 12.4 brings".
std::string missing_for_split(const CudaDriver& driver);

/// `cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)`.
std::string cuda_failure(const CudaDriver& driver, std::string_view call, CUresult result);

/// A driver call has failed where it should not: memory ran out, the device was lost. The text is
/// cuda_failure's, and what to do about it.
class CudaError : public std::runtime_error {
 public:
  CudaError(const CudaDriver& driver, std::string_view call, CUresult result);
  CUresult result() const { return result_; }

 private:
  CUresult result_;
};

/// Throws CudaError unless the call went well.
void check_cuda(const CudaDriver& driver, std::string_view call, CUresult result);

/// Device memory as the pointer type that libraries take.
inline void* memory_at(CUdeviceptr data) {
  return reinterpret_cast<void*>(data);  // NOLINT(performance-no-int-to-ptr): as CUDA has it
}

/// Calls a function of the driver and checks it: PLUMBLINE_CUDA(driver, cuStreamSynchronize,
/// stream).
#define PLUMBLINE_CUDA(driver, call, ...) \
  ::plumbline::check_cuda(driver, #call, (driver).call(__VA_ARGS__))

}  // namespace plumbline
