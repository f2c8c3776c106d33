// One kernel after the other, until each is known or the time is over.
//
// SPDX-License-Identifier: MIT
#include "calibrate/kernels/measure_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <stdexcept>

#include "base/number_format.h"
#include "base/statistics.h"
#include "calibrate/measure/sampling.h"
#include "calibrate/runtime/clock.h"
#include "models/kernels/kernel_table_format.h"

namespace plumbline {
namespace {

constexpr double kNanoseconds = 1e9;
/// A sample is at least this long, in ns: shorter kernels run several times for one.
constexpr double kShortestSample = 200e3;
constexpr double kShortestShare = 20e6;
constexpr double kLongestShare = 2e9;

StopLimits limits_of(double share) {
  StopLimits limits;
  limits.max_samples = 2000;
  limits.max_time = Duration{std::llround(share)};
  limits.min_samples = 8;
  limits.half_width = 0.01;
  limits.every = 4;
  return limits;
}

/// The time of one run, in ns, roughly. The first run does not count: libraries, pages and clocks
/// warm up.
double guessed(BenchedKernel& kernel) {
  kernel.nanoseconds(1);
  for (int tries = 0; tries < 5; ++tries) {
    if (const auto time = kernel.nanoseconds(1)) return std::max(*time, 1.0);
  }
  return kShortestSample;
}

/// The row of one kernel. Nothing where no run was clean.
std::optional<KernelRow> measured_row(BenchedKernel& kernel, const KernelKey& key, double share) {
  const auto times = static_cast<std::int64_t>(std::ceil(kShortestSample / guessed(kernel)));
  StopRule rule(limits_of(share));
  std::vector<double> samples;
  const RealTime began = now();
  const auto elapsed = [&] { return Duration{now() - began}; };
  while (!rule.stopped()) {
    if (const auto sample = kernel.nanoseconds(times)) {
      samples.push_back(*sample);
      rule.add(*sample, elapsed());
    } else {
      rule.drop(elapsed());
    }
  }
  if (samples.empty()) return std::nullopt;
  const Statistics statistics = statistics_of(samples);
  KernelRow row;
  row.key = key;
  row.time = Duration{std::max<std::int64_t>(std::llround(statistics.median), 1)};
  row.spread = statistics.relative_spread();
  return row;
}

}  // namespace

MeasuredList measure_kernels(KernelBench& bench, const std::vector<ListedKernel>& kernels,
                             const KernelBudget& budget) {
  MeasuredList list;
  const RealTime began = now();
  const double all = budget.seconds * kNanoseconds;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const ListedKernel& next = kernels[i];
    if (budget.interrupted && budget.interrupted()) {
      list.interrupted = true;
      break;
    }
    const double left = all - static_cast<double>(now() - began);
    if (left <= 0 && list.measured > 0) {
      list.no_time_left.insert(list.no_time_left.end(), kernels.begin() + std::ptrdiff_t(i),
                               kernels.end());
      break;
    }
    if (budget.progress) budget.progress(next.key, list.measured, 1 - std::max(left, 0.0) / all);
    try {
      const std::unique_ptr<BenchedKernel> kernel = bench.prepare(next.key);
      if (!kernel) {
        list.not_computed.push_back(next);
        continue;
      }
      const double of_each = left / static_cast<double>(kernels.size() - i);
      auto row =
          measured_row(*kernel, next.key, std::clamp(2 * of_each, kShortestShare, kLongestShare));
      if (!row) {
        list.no_time_left.push_back(next);
        continue;
      }
      row->how = bench.library(next.key);
      ++list.measured;
      if (budget.measured) budget.measured(*row);
    } catch (const std::bad_alloc&) {
      list.too_large.push_back(next);
    }
  }
  return list;
}

std::string described(const KernelKey& key) {
  const KernelGroup& group = key.group;
  const std::size_t count = size_count(group.kernels);
  const std::vector<std::int64_t> sizes(key.sizes.begin(),
                                        key.sizes.begin() + static_cast<std::ptrdiff_t>(count));
  const std::string_view of = group.kernels == KernelClass::memory
                                  ? kMemoryKinds[static_cast<std::size_t>(group.memory)]
                                  : name_of(group.kernels);
  const std::string_view pass = pass_word(group.kernels, group.pass);
  return fmt::format("{} {} {}, {}", of, pass, fmt::join(sizes, " x "), name_of(group.format));
}

}  // namespace plumbline
