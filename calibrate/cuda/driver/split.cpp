// Equal groups of SMs. SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace plumbline {

namespace {

Diagnostic too_small(std::string message, std::uint32_t most) {
  Diagnostic small;
  small.message = std::move(message);
  small.help = fmt::format("it can be split into {} device{} at most", std::max(most, 1U),
                           most > 1 ? "s" : "");
  small.fault = Fault::no_device;
  return small;
}

}  // namespace

Result<SmSplit> split_sms(const SmSupply& supply, std::uint32_t groups, const SmRoom& room) {
  const std::uint32_t alignment = std::max<std::uint32_t>(supply.alignment, 1);
  const std::uint32_t asked = std::max<std::uint32_t>(supply.least, 1);
  const std::uint32_t least = (asked + alignment - 1) / alignment * alignment;
  const std::uint32_t most = supply.sms / groups / alignment * alignment;
  if (most < least) {
    return too_small(fmt::format("the GPU has {} SMs, too few for {} groups of {} or more",
                                 supply.sms, groups, least),
                     std::min(supply.sms / least, room(least)));
  }
  for (std::uint32_t each = most; each >= least; each -= alignment) {
    if (room(each) >= groups) return SmSplit{groups, each, supply.sms - groups * each};
  }
  const std::uint32_t possible = room(least);
  return too_small(
      fmt::format("the driver makes {} group{} of {} of the GPU's {} SMs, not the {} that are "
                  "asked for",
                  possible, possible == 1 ? "" : "s", least, supply.sms, groups),
      possible);
}

}  // namespace plumbline
