// Times of the kernels that a model's layouts need, the weightiest first.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/measure/kernel_bench.h"
#include "models/kernels/kernel_table.h"
#include "models/tables/kernel_list.h"

namespace plumbline {

struct KernelBudget {
  double seconds = 120;  ///< For all kernels together; the first one is measured in any case.
  /// Called with the kernel that is next, how many are measured, and the share of the time that has
  /// passed.
  std::function<void(const KernelKey& next, std::size_t measured, double share)> progress;
  std::function<bool()> interrupted;  ///< Asked before each kernel.
  /// Called with each row as it is measured.
  std::function<void(const KernelRow& row)> measured;
};

/// What came of a list of kernels.
struct MeasuredList {
  std::size_t measured = 0;
  std::vector<ListedKernel> not_computed;  ///< The device's backend has no such kernel.
  std::vector<ListedKernel> too_large;     ///< The memory does not hold their operands.
  std::vector<ListedKernel> no_time_left;
  bool interrupted = false;
};

/// Measures in the order of the list. Each kernel runs until the 95 % interval of its mean is
/// narrower than 1 %, or its noise is stable, or its share of the time is used up: twice what is
/// left for each of the rest, between 20 ms and 2 s. Its time is the median; its spread the
/// distance between the quartiles, relative to that.
MeasuredList measure_kernels(KernelBench& bench, const std::vector<ListedKernel>& kernels,
                             const KernelBudget& budget);

/// "gemm forward 4096 x 6144 x 4096, fp32": for people.
std::string described(const KernelKey& key);

}  // namespace plumbline
