// Equal groups of SMs. SPDX-License-Identifier: MIT
#include "calibrate/cuda/split.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline {

Result<SmSplit> split_sms(const SmSupply& supply, std::uint32_t groups) {
  const std::uint32_t alignment = std::max<std::uint32_t>(supply.alignment, 1);
  const std::uint32_t asked = std::max<std::uint32_t>(supply.least, 1);
  const std::uint32_t least = (asked + alignment - 1) / alignment * alignment;
  const std::uint32_t each = supply.sms / groups / alignment * alignment;
  if (each < least) {
    const std::uint32_t most = supply.sms / least;
    Diagnostic small;
    small.message = fmt::format("the GPU has {} SMs, too few for {} groups of {} or more",
                                supply.sms, groups, least);
    small.help = fmt::format("it can be split into {} device{} at most", std::max(most, 1U),
                             most > 1 ? "s" : "");
    small.fault = Fault::no_device;
    return small;
  }
  return SmSplit{groups, each, supply.sms - groups * each};
}

}  // namespace plumbline
