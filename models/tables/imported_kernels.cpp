// Rows that a table can hold, each key once.
//
// SPDX-License-Identifier: MIT
#include "models/tables/imported_kernels.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "models/kernels/kernel_table_format.h"

namespace plumbline {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr double kShortest = kNanosecond / 2;  ///< Less is rounded to 0.
constexpr double kLongest = static_cast<double>(kLargestQuantity) * kNanosecond;

/// A size that no table holds, if the key has one.
std::optional<std::int64_t> wrong_size(const KernelKey& key) {
  const bool counts_bytes = key.group.kernels == KernelClass::collectives;
  const std::int64_t largest = counts_bytes ? kLargestQuantity : kLargestSize;
  for (const std::int64_t size : key.sizes) {
    if (size < 1 || size > largest) return size;
  }
  for (const std::int64_t size : {key.group.query_size, key.group.value_size, key.group.devices}) {
    if (size > kLargestSize) return size;
  }
  return std::nullopt;
}

/// The problems that the reader of a table would find in the row.
Diagnostics problems_of(const TimedKernel& kernel) {
  Diagnostics problems;
  if (!(kernel.seconds >= kShortest && kernel.seconds <= kLongest))  // NaN is neither
    problems.push_back(
        input_error({}, fmt::format("the time is {:g} s", kernel.seconds),
                    fmt::format("a time from {:g} s to {:g} s", kNanosecond, kLongest)));
  if (const auto size = wrong_size(kernel.key))
    problems.push_back(input_error(
        {}, fmt::format("a size is {}", *size),
        fmt::format("sizes from 1 to {}; bytes up to {}", kLargestSize, kLargestQuantity)));
  if (!(kernel.spread >= 0 && kernel.spread <= kLargestSpread))
    problems.push_back(
        input_error({}, fmt::format("the spread is {:g}", kernel.spread),
                    fmt::format("a share of the time, at most {:g}", kLargestSpread)));
  return problems;
}

}  // namespace

Diagnostics ImportedKernels::add(const TimedKernel& kernel) {
  Diagnostics problems = problems_of(kernel);
  if (problems.empty()) keep(kernel);
  return problems;
}

Diagnostics ImportedKernels::add_with_backward(const TimedKernel& kernel) {
  Diagnostics problems = problems_of(kernel);
  if (problems.empty()) with_backward_.push_back(kernel);
  return problems;
}

void ImportedKernels::keep(const TimedKernel& kernel) {
  if (const std::string_view why = why_never_launched(kernel.key); !why.empty())
    return leave_out("no kernels of a layer: " + std::string(why));
  const Duration time{std::llround(kernel.seconds / kNanosecond)};
  KernelRow row{kernel.key, time, kernel.spread, kernel.how, kernel.layout};
  const auto [known, is_new] = rows_.emplace(kernel.key, row);
  if (is_new) return;
  leave_out("slower, or not faster, than another row with the same sizes");
  if (time < known->second.time) known->second = std::move(row);
}

void ImportedKernels::subtract_forwards() {
  for (TimedKernel& both : std::exchange(with_backward_, {})) {
    const KernelRow* forward = find(both.key);
    both.seconds -= forward ? seconds(forward->time) : both.seconds;
    if (both.seconds < kShortest) {
      leave_out("forward and backward together, without the forward alone");
      continue;
    }
    both.key.group.pass = KernelPass::input;
    keep(both);
  }
}

const KernelRow* ImportedKernels::find(const KernelKey& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

KernelTable ImportedKernels::take() {
  subtract_forwards();
  KernelTable table;
  table.provenance = std::move(provenance);
  table.rows.reserve(rows_.size());
  for (auto& [key, row] : rows_) table.rows.push_back(std::move(row));
  rows_.clear();
  return table;
}

}  // namespace plumbline
