// CUDA's keywords for the host's compiler. Included before a kernel's source, it makes the kernel's
// functions plain ones.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <math.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace plumbline::test::emulation {

struct Extent3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// The place of the running thread.
struct Place {
  Extent3 thread{0, 0, 0};
  Extent3 block{0, 0, 0};
  Extent3 threads;
  Extent3 blocks;
};

const Place& place();
/// Returns when all threads of the block have called it.
void barrier();
/// Returns when all threads of the warp have called it.
void warp_barrier();
/// The rows that the threads of this thread's warp pass. Valid until its next warp_barrier().
const void* const* rows_of_warp(const void* row);
/// Throws a Bug if a row is not aligned to 16 bytes.
void require_aligned(const void* row);

inline unsigned lane() { return place().thread.x % 32; }

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
// The functions of calibrate/cuda/kernels/warp.h. Every thread of a warp must call them.

inline void warp_load(unsigned (&to)[4], const void* row) {
  namespace emulation = ::plumbline::test::emulation;
  emulation::require_aligned(row);
  const void* const* const rows = emulation::rows_of_warp(row);
  const unsigned lane = emulation::lane();
  for (unsigned i = 0; i < 4; ++i) {
    const auto* pairs = static_cast<const char*>(rows[8 * i + lane / 4]);
    std::memcpy(&to[i], pairs + std::size_t{4} * (lane % 4), sizeof to[i]);
  }
  emulation::warp_barrier();
}

inline void warp_load_turned(unsigned (&to)[4], const void* row) {
  namespace emulation = ::plumbline::test::emulation;
  emulation::require_aligned(row);
  const void* const* const rows = emulation::rows_of_warp(row);
  const unsigned lane = emulation::lane();
  for (unsigned i = 0; i < 4; ++i) {
    std::uint16_t halves[2];
    for (unsigned k = 0; k < 2; ++k) {
      const auto* elements = static_cast<const char*>(rows[8 * i + 2 * (lane % 4) + k]);
      std::memcpy(&halves[k], elements + std::size_t{2} * (lane / 4), sizeof halves[k]);
    }
    to[i] = halves[0] | static_cast<unsigned>(halves[1]) << 16;
  }
  emulation::warp_barrier();
}

inline float warp_exchange(float value, unsigned mask) {
  namespace emulation = ::plumbline::test::emulation;
  const void* const* const values = emulation::rows_of_warp(&value);
  float other = 0;
  std::memcpy(&other, values[emulation::lane() ^ mask], sizeof other);
  emulation::warp_barrier();
  return other;
}

inline void warp_multiply(float (&sums)[4], const unsigned (&left)[4], unsigned right_0,
                          unsigned right_1) {
  namespace emulation = ::plumbline::test::emulation;
  struct Words {
    unsigned left[4];
    unsigned right[2];
  };
  const Words own{{left[0], left[1], left[2], left[3]}, {right_0, right_1}};
  const void* const* const all = emulation::rows_of_warp(&own);
  // The bf16 at an even or odd place of a pair.
  const auto half = [](unsigned word, unsigned odd) {
    return std::bit_cast<float>(odd != 0 ? word & 0xffff0000U : word << 16);
  };
  const unsigned lane = emulation::lane();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8;
    const unsigned column = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned of_group = k % 8 / 2;
      const auto* a = static_cast<const Words*>(all[row % 8 * 4 + of_group]);
      const auto* b = static_cast<const Words*>(all[column * 4 + of_group]);
      sums[i] += half(a->left[row / 8 + k / 8 * 2], k % 2) * half(b->right[k / 8], k % 2);
    }
  }
  emulation::warp_barrier();
}

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
// NOLINTEND(bugprone-reserved-identifier)
