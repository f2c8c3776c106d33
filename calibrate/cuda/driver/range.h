// Names for profilers such as Nsight Systems, for the work that the host is enqueuing.
//
// SPDX-License-Identifier: MIT
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace plumbline {

/// A named range of this thread, from here to the end of the scope. No effect without a profiler,
/// or where the toolkit has no NVTX.
class CudaRange {
 public:
  explicit CudaRange([[maybe_unused]] const char* name) {
#if __has_include(<nvtx3/nvToolsExt.h>)
    nvtxRangePushA(name);
#endif
  }
  ~CudaRange() {
#if __has_include(<nvtx3/nvToolsExt.h>)
    nvtxRangePop();
#endif
  }
  CudaRange(const CudaRange&) = delete;
  CudaRange& operator=(const CudaRange&) = delete;
};

}  // namespace plumbline
