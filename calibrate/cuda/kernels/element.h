// The common parts of the kernels: element types, names for each type, sums over a block.
//
// SPDX-License-Identifier: MIT
#pragma once

/// Kernels are compiled by nvcc, all files as one. In tests the host's compiler compiles them, and
/// tests/support/cuda_emulation.h stands in for the device. So they use only the language itself,
/// the built-in variables, __syncthreads(), dynamic shared memory and fp32 functions.
///
/// All counts and strides are in elements. Sums are fp32, in an order that the shape alone decides,
/// so the same call makes the same bits.
namespace plumbline::kernels {

/// A bfloat16: the upper half of a float.
struct Bf16 {
  unsigned short bits;
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

/// Rounds to the nearest, ties to even; NaN stays NaN.
__device__ inline void store(float& to, float x) { to = x; }
__device__ inline void store(Bf16& to, float x) {
  const unsigned bits = __float_as_uint(x);
  const bool is_number = (bits & 0x7fffffffU) <= 0x7f800000U;
  const unsigned rounded = is_number ? bits + 0x7fffU + ((bits >> 16) & 1U) : bits | 0x400000U;
  to.bits = static_cast<unsigned short>(rounded >> 16);
}

/// The first element of a thread in a loop over the whole grid; the thread takes every
/// `grid_step`th.
__device__ inline long long grid_first() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline long long grid_step() { return static_cast<long long>(gridDim.x) * blockDim.x; }

/// The dynamic shared memory of a block.
alignas(16) extern __shared__ float shared[];

/// combine(.. combine(value of thread a, value of thread b) ..), returned to all threads of the
/// block. Requires: all threads call it; shared memory has one float per thread; the block has one
/// extent.
template <class Combine>
__device__ float block_combined(float value, const Combine& combine) {
  constexpr unsigned kLanes = 32;
  const unsigned lane = threadIdx.x;
  shared[lane] = value;
  __syncthreads();
  if (lane < kLanes) {
    for (unsigned i = lane + kLanes; i < blockDim.x; i += kLanes) value = combine(value, shared[i]);
    shared[lane] = value;
  }
  __syncthreads();
  value = shared[0];
  for (unsigned i = 1; i < kLanes && i < blockDim.x; ++i) value = combine(value, shared[i]);
  __syncthreads();  // before shared memory is used again
  return value;
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return b > a ? b : a; }
};

__device__ inline float block_sum(float value) { return block_combined(value, Sum()); }
__device__ inline float block_maximum(float value) { return block_combined(value, Larger()); }

namespace of_f32 {
using Element = float;
}
namespace of_bf16 {
using Element = Bf16;
}

}  // namespace plumbline::kernels

/// Called with the name of every kernel; tests make a table of them.
#ifndef PLUMBLINE_KERNEL_NAMED
#define PLUMBLINE_KERNEL_NAMED(name)
#endif

/// Defines plumbline_<name>_f32 and plumbline_<name>_bf16 from a template for both. `Element` is
/// the type in its parameters.
#define PLUMBLINE_KERNEL(name, parameters, arguments)                                        \
  namespace plumbline::kernels::of_f32 {                                                     \
  extern "C" __global__ void plumbline_##name##_f32 parameters { kernels::name arguments; }  \
  PLUMBLINE_KERNEL_NAMED(plumbline_##name##_f32)                                             \
  }                                                                                          \
  namespace plumbline::kernels::of_bf16 {                                                    \
  extern "C" __global__ void plumbline_##name##_bf16 parameters { kernels::name arguments; } \
  PLUMBLINE_KERNEL_NAMED(plumbline_##name##_bf16)                                            \
  }

/// Defines plumbline_<name> from a function for one type.
#define PLUMBLINE_PLAIN_KERNEL(name, parameters, arguments)                           \
  namespace plumbline::kernels {                                                      \
  extern "C" __global__ void plumbline_##name parameters { kernels::name arguments; } \
  PLUMBLINE_KERNEL_NAMED(plumbline_##name)                                            \
  }
