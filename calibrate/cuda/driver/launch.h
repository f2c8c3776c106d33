// Launching our own kernels: grids, blocks, names for each type.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/rows.h"
#include "models/network/network.h"

namespace plumbline::cuda {

inline constexpr std::int64_t kThreads = 256;
/// The most blocks along the second and third extent of a grid.
inline constexpr std::int64_t kMaxBlocks = 65535;

struct Blocks {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
};

/// The type that kernels count with.
using Count = long long;

inline std::string named(std::string_view kernel, ElementType type) {
  return "plumbline_" + std::string(kernel) + (type == ElementType::bf16 ? "_bf16" : "_f32");
}

inline std::int64_t divided_up(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

/// Requires: the arguments have exactly the kernel's types, `Count` for counts.
template <class... Arguments>
void launch(const CudaQueue& queue, std::string_view kernel, const Blocks& blocks,
            std::int64_t threads, std::int64_t shared_floats, Arguments... arguments) {
  void* pointers[] = {&arguments...};
  PLUMBLINE_CUDA(*queue.driver, cuLaunchKernel, (*queue.kernels)[kernel],
                 static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y),
                 static_cast<unsigned>(blocks.z), static_cast<unsigned>(threads), 1, 1,
                 static_cast<unsigned>(shared_floats * 4), queue.stream, pointers, nullptr);
}

/// Launches a loop over the grid: a few blocks per SM take turns with all elements.
template <class... Arguments>
void launch_over(const CudaQueue& queue, std::string_view kernel, std::int64_t count,
                 Arguments... arguments) {
  constexpr std::int64_t kBlocksOfSm = 16;
  const std::int64_t max = std::max<std::int64_t>(queue.sms, 1) * kBlocksOfSm;
  launch(queue, kernel, {std::clamp<std::int64_t>(divided_up(count, kThreads), 1, max)}, kThreads,
         0, arguments...);
}

/// Launches one block per row, with whole warps of threads and one float of shared memory per
/// thread.
template <class... Arguments>
void launch_rows(const CudaQueue& queue, std::string_view kernel, const Rows& shape,
                 Arguments... arguments) {
  const std::int64_t threads = std::min(divided_up(shape.columns, 32) * 32, kThreads);
  launch(queue, kernel, {shape.rows}, threads, threads, arguments...);
}

/// Launches tiles of kernels/tile.h that cover the results, for each product of `batch`.
template <class... Arguments>
void launch_tiles(const CudaQueue& queue, std::string_view kernel, const Rows& results,
                  std::int64_t batch, Arguments... arguments) {
  constexpr std::int64_t kTile = 64;
  constexpr std::int64_t kSharedFloats = std::int64_t{2} * 16 * (kTile + 1);
  launch(queue, kernel,
         {divided_up(results.columns, kTile), std::min(divided_up(results.rows, kTile), kMaxBlocks),
          std::min(batch, kMaxBlocks)},
         kThreads, kSharedFloats, arguments...);
}

}  // namespace plumbline::cuda
