// Calls of dnnl_sgemm, which is the same in oneDNN 2 and 3.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/gemm.h"

#include "base/bug.h"

#if defined(PLUMBLINE_HAS_ONEDNN)
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace plumbline {
namespace {

void flush_denormals() {
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8040U);  // flush results to zero, take operands as zero
#endif
}

}  // namespace

#if defined(PLUMBLINE_HAS_ONEDNN)

void multiply(const GemmSize& size, const Operand& a, const Operand& b, const Target& target) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', size.rows, size.columns,
                 size.depth, target.factor, a.values, a.stride, b.values, b.stride, target.keep,
                 target.values, target.stride);
  PLUMBLINE_CHECK(status == dnnl_success, static_cast<int>(status), size.rows, size.columns,
                  size.depth, a.stride, b.stride, target.stride);
}

std::string matrix_library() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

void use_one_thread() {
  flush_denormals();
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
  // This finds the OpenMP runtime that the library has loaded. If we linked one, it could be a
  // second one (libomp beside libgomp), and the library would not see its setting.
  // The setting belongs to the calling thread.
  void* const found = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  PLUMBLINE_CHECK(found != nullptr, matrix_library());
  reinterpret_cast<void (*)(int)>(found)(1);
#elif DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "this oneDNN runs threads of its own: one with OpenMP or without threads is needed"
#endif
}

#else

void multiply(const GemmSize& size, const Operand&, const Operand&, const Target&) {
  PLUMBLINE_CHECK(!matrix_library().empty(), size.rows, size.columns, size.depth);
}

std::string matrix_library() { return ""; }

void use_one_thread() { flush_denormals(); }

#endif

}  // namespace plumbline
