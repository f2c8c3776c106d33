// Products by the matrix units: the joint work of the threads of a warp.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

// A warp's 32 lanes share the elements of small matrices as mma.sync.m16n8k16 requires (PTX ISA,
// "Matrix Fragments for mma.m16n8k16"). With group = lane / 4 and of_group = lane % 4, a lane has
//   left [16 x 16]:  rows group (+ 8), columns 2 of_group, + 1 (+ 8): 4 pairs of bf16;
//   right [16 x 8]:  rows 2 of_group, + 1 (+ 8), column group: 2 pairs of bf16;
//   sums [16 x 8]:   rows group (+ 8), columns 2 of_group, + 1: 4 floats.
// All threads of a warp call each of these functions, none of them in a branch of its own.
// tests/support/cuda_emulation.h emulates the hardware's functions on the host.

#ifdef __CUDACC__

#define PLUMBLINE_UNROLL _Pragma("unroll")

/// sums += left x right.
__device__ inline void warp_multiply(float (&sums)[4], const unsigned (&left)[4], unsigned right_0,
                                     unsigned right_1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_0), "r"(right_1));
}

/// Loads four matrices of 8 x 8 elements of 16 bits from shared memory. Lanes 8 i .. 8 i + 7 pass
/// the rows of matrix i, 16 bytes each, aligned to 16 bytes. A lane gets the pair `of_group` of row
/// `group` of each matrix.
__device__ inline void warp_load(unsigned (&to)[4], const void* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// Loads the transposed matrices in the same way.
__device__ inline void warp_load_turned(unsigned (&to)[4], const void* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// The value of the lane whose number differs by the bits of `mask`.
__device__ inline float warp_exchange(float value, unsigned mask) {
  return __shfl_xor_sync(0xffffffffU, value, static_cast<int>(mask));
}

/// Two numbers, rounded to the nearest, as a pair; the first in the lower half.
__device__ inline unsigned bf16_pair(float first, float second) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

/// Stores both at once; `to` is aligned to 4 bytes.
__device__ inline void store_pair(Bf16* to, float first, float second) {
  *reinterpret_cast<unsigned*>(to) = bf16_pair(first, second);
}

#else

#define PLUMBLINE_UNROLL

inline unsigned bf16_pair(float first, float second) {
  Bf16 lower;
  Bf16 upper;
  store(lower, first);
  store(upper, second);
  return lower.bits | static_cast<unsigned>(upper.bits) << 16;
}

inline void store_pair(Bf16* to, float first, float second) {
  store(to[0], first);
  store(to[1], second);
}

#endif

constexpr int kLanes = 32;
constexpr float kLog2E = 1.4426950408889634F;

/// The value combined over the four lanes that share rows of sums.
__device__ inline float group_sum(float value) {
  value += warp_exchange(value, 1);
  return value + warp_exchange(value, 2);
}
__device__ inline float group_maximum(float value) {
  const float other = warp_exchange(value, 1);
  value = other > value ? other : value;
  const float others = warp_exchange(value, 2);
  return others > value ? others : value;
}

/// The sum of the products of the bf16 in two pairs.
__device__ inline float dot(unsigned a, unsigned b) {
  constexpr unsigned kUpper = 0xffff0000U;
  return __uint_as_float(a << 16) * __uint_as_float(b << 16) +
         __uint_as_float(a & kUpper) * __uint_as_float(b & kUpper);
}

/// Rows of bf16 in shared memory: D columns and 16 bytes of padding, so that eight rows at one
/// column lie in different banks.
template <int D>
struct WarpTile {
  static constexpr int kPitch = D + 8;

  /// Loads the left operand: the 16 x 16 elements at this row and column.
  __device__ void left(unsigned (&to)[4], int row, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    warp_load(to, rows + (row + lane % 16) * kPitch + column + lane / 16 * 8);
  }
  /// Loads the right operands of two products, whose columns are 16 rows here: `to[0..1]` and
  /// `to[2..3]`.
  __device__ void right(unsigned (&to)[4], int row, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    warp_load(to, rows + (row + lane / 16 * 8 + lane % 8) * kPitch + column + lane / 8 % 2 * 8);
  }
  /// Loads the right operands of two products, whose columns are 16 columns here.
  __device__ void right_turned(unsigned (&to)[4], int row, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    warp_load_turned(to, rows + (row + lane % 16) * kPitch + column + lane / 16 * 8);
  }

  Bf16* rows;
};

/// sums [16 x 8 N] += left [16 x D] x (`tile`'s 8 N rows [8 N x D], turned). `left(k, to)` gives
/// columns 16 k on.
template <int D, int N, class Left>
__device__ void multiply_rows(float (&sums)[N][4], const Left& left, const WarpTile<D>& tile) {
  static_assert(D % 16 == 0 && N % 2 == 0, "whole fragments");
  PLUMBLINE_UNROLL
  for (int k = 0; k < D / 16; ++k) {
    unsigned a[4];
    left(k, a);
    PLUMBLINE_UNROLL
    for (int j = 0; j < N; j += 2) {
      unsigned b[4];
      tile.right(b, 8 * j, 16 * k);
      warp_multiply(sums[j], a, b[0], b[1]);
      warp_multiply(sums[j + 1], a, b[2], b[3]);
    }
  }
}

/// sums [16 x D] += left [16 x 8 N] x `tile`'s 8 N rows [8 N x D], the left rounded to bf16.
template <int D, int N>
__device__ void multiply_sums(float (&sums)[D / 8][4], const float (&left)[N][4],
                              const WarpTile<D>& tile) {
  static_assert(D % 16 == 0 && N % 2 == 0, "whole fragments");
  PLUMBLINE_UNROLL
  for (int k = 0; k < N / 2; ++k) {
    const float(&near)[4] = left[2 * k];
    const float(&far)[4] = left[2 * k + 1];
    const unsigned a[4] = {bf16_pair(near[0], near[1]), bf16_pair(near[2], near[3]),
                           bf16_pair(far[0], far[1]), bf16_pair(far[2], far[3])};
    PLUMBLINE_UNROLL
    for (int j = 0; j < D / 8; j += 2) {
      unsigned b[4];
      tile.right_turned(b, 16 * k, 8 * j);
      warp_multiply(sums[j], a, b[0], b[1]);
      warp_multiply(sums[j + 1], a, b[2], b[3]);
    }
  }
}

}  // namespace plumbline::kernels
