// Rows that a table can hold, each key once.
//
// SPDX-License-Identifier: MIT
#include "models/tables/imported_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/quantity.h"
#include "models/kernels/kernel_table_format.h"

namespace plumbline {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr double kShortest = kNanosecond * (1 - 1e-9);  ///< Units become seconds with an error.
constexpr double kLongest = static_cast<double>(kLargestQuantity) * kNanosecond;

Duration to_nanoseconds(double seconds) { return Duration{std::llround(seconds / kNanosecond)}; }

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
        input_error({}, fmt::format("the time is {:.15g} s", kernel.seconds),
                    fmt::format("a time from {:g} s to {:.15g} s", kNanosecond, kLongest)));
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

std::string no_kernels(std::string_view why) {
  return fmt::format("no kernels of a layer: {}", why);
}

/// Whether files may time such kernels together with their backwards.
bool is_forward_of_two(const KernelGroup& group) {
  return group.pass == KernelPass::forward &&
         (group.kernels == KernelClass::sdpa || group.kernels == KernelClass::memory);
}

/// A number with or without a sign.
std::optional<double> signed_number(const std::string& text) {
  const bool is_negative = text.starts_with('-');
  const auto parsed = parse_real(is_negative ? text.substr(1) : text);
  if (!parsed.value) return std::nullopt;
  return is_negative ? -*parsed.value : *parsed.value;
}

/// Whether a value stands before another: numbers by their value, then words by their letters.
bool is_before(const std::string& a, const std::string& b) {
  const auto number_a = signed_number(a), number_b = signed_number(b);
  if (number_a && number_b) return *number_a < *number_b;
  if (number_a || number_b) return number_a.has_value();
  return a < b;
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
    return leave_out(no_kernels(why));
  const Duration time = to_nanoseconds(kernel.seconds);
  if (is_forward_of_two(kernel.key.group)) {
    Duration& fastest = forwards_[kernel.key].try_emplace(kernel.how, time).first->second;
    fastest = std::min(fastest, time);
  }
  KernelRow row{kernel.key, time, kernel.spread, kernel.how, kernel.layout};
  const auto [known, is_new] = rows_.emplace(kernel.key, row);
  if (is_new) return;
  leave_out("slower, or not faster, than another row with the same sizes");
  if (time < known->second.time) known->second = std::move(row);
}

void ImportedKernels::subtract_forwards() {
  for (TimedKernel& both : std::exchange(with_backward_, {})) subtract_forward(std::move(both));
}

void ImportedKernels::subtract_forward(TimedKernel both) {
  KernelKey backward = both.key;
  backward.group.pass = KernelPass::input;
  if (const std::string_view why = why_never_launched(backward); !why.empty())
    return leave_out(no_kernels(why));
  const auto of_key = forwards_.find(both.key);
  if (of_key == forwards_.end())
    return leave_out("forward and backward together, without the forward alone");
  const auto forward = of_key->second.find(both.how);
  if (forward == of_key->second.end())
    return leave_out(
        "forward and backward together, where the forward alone is of another library");
  const Duration rest = to_nanoseconds(both.seconds) - forward->second;
  if (rest.count() < 1)
    return leave_out("forward and backward together, in no more time than the forward alone");
  both.key = backward;
  both.seconds = seconds(rest);
  both.how += both.how.empty() ? "less the forward" : ", less the forward";
  keep(both);
}

void ImportedKernels::add_provenance(const std::string& key, const std::string& value) {
  if (value.empty()) return;
  Range& range = provenance_.try_emplace(key, Range{value, value}).first->second;
  if (is_before(value, range.least)) range.least = value;
  if (is_before(range.most, value)) range.most = value;
}

const KernelRow* ImportedKernels::find(const KernelKey& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

KernelTable ImportedKernels::take() {
  subtract_forwards();
  KernelTable table;
  for (const auto& [key, range] : provenance_) {
    table.provenance[key] =
        range.least == range.most ? range.least : fmt::format("{} to {}", range.least, range.most);
  }
  table.rows.reserve(rows_.size());
  for (auto& [key, row] : rows_) table.rows.push_back(std::move(row));
  rows_.clear();
  return table;
}

}  // namespace plumbline
