// CUDA's words for the host's compiler: included before a kernel's source, it makes its functions
// plain ones. SPDX-License-Identifier: MIT
#pragma once

#include <math.h>

#include <bit>

namespace plumbline::test::emulation {

struct Extent3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// Where the thread that runs is.
struct Place {
  Extent3 thread{0, 0, 0};
  Extent3 block{0, 0, 0};
  Extent3 threads;
  Extent3 blocks;
};

const Place& place();
/// Returns when all threads of the block have called it.
void barrier();

}  // namespace plumbline::test::emulation

// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__
#define __device__
#define __shared__ __thread

#define threadIdx (::plumbline::test::emulation::place().thread)
#define blockIdx (::plumbline::test::emulation::place().block)
#define blockDim (::plumbline::test::emulation::place().threads)
#define gridDim (::plumbline::test::emulation::place().blocks)

inline void __syncthreads() { plumbline::test::emulation::barrier(); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
// NOLINTEND(bugprone-reserved-identifier)
