// Equal groups of SMs.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace plumbline {

namespace {

Diagnostic too_small(std::string message, std::uint32_t max) {
  Diagnostic small;
  small.message = std::move(message);
  small.help = fmt::format("it can be split into {} device{} at most", std::max(max, 1U),
                           max > 1 ? "s" : "");
  small.fault = Fault::no_device;
  return small;
}

}  // namespace

Result<SmSplit> split_sms(const SmSupply& supply, std::uint32_t groups, const SmRoom& room) {
  const std::uint32_t alignment = std::max<std::uint32_t>(supply.alignment, 1);
  const std::uint32_t asked = std::max<std::uint32_t>(supply.min, 1);
  const std::uint32_t min = (asked + alignment - 1) / alignment * alignment;
  const std::uint32_t max = supply.sms / groups / alignment * alignment;
  if (max < min) {
    return too_small(fmt::format("the GPU has {} SMs, too few for {} groups of {} or more",
                                 supply.sms, groups, min),
                     std::min(supply.sms / min, room(min)));
  }
  std::optional<SmSplit> without_rest;
  for (std::uint32_t each = max; each >= min; each -= alignment) {
    if (room(each) < groups) continue;
    const SmSplit split{groups, each, supply.sms - groups * each};
    if (split.left > 0) return split;
    without_rest = split;
  }
  if (without_rest) return *without_rest;
  const std::uint32_t possible = room(min);
  return too_small(
      fmt::format("the driver makes {} group{} of {} of the GPU's {} SMs, not the {} that are "
                  "asked for",
                  possible, possible == 1 ? "" : "s", min, supply.sms, groups),
      possible);
}

}  // namespace plumbline
