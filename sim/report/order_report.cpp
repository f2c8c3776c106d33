// One line for each number.
//
// SPDX-License-Identifier: MIT
#include "sim/report/order_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/quantity.h"

namespace plumbline {
namespace {

std::string time_in_words(double time_s) { return to_text(round_up(time_s * 1e9 - 0.5)); }

/// "3.2 % longer".
std::string beside(double time_s, double found_s) {
  const double change = found_s > 0 ? time_s / found_s - 1 : 0;
  if (std::abs(change) < 5e-6) return "the same";
  return fmt::format("{:.{}f} % {}", 100 * std::abs(change), std::abs(change) < 1e-3 ? 3 : 1,
                     change > 0 ? "longer" : "shorter");
}

std::string reason_text(const OrderReport& report) {
  const OrderBound& bound = report.answer.bound;
  const std::string device = std::to_string(report.setup.devices[bound.device].value);
  switch (bound.reason) {
    case BoundReason::work:
      return fmt::format("the work of device {}, with what comes before and after it", device);
    case BoundReason::chain:
      return "the ops of one micro-batch, one after the other";
    case BoundReason::memory:
      return fmt::format("the work of device {}, whose memory is full before the first backward",
                         device);
    case BoundReason::turn:
      return fmt::format(
          "the memory of device {}: each micro-batch takes its place for a whole "
          "round trip",
          device);
  }
  return "";
}

}  // namespace

std::string order_text(const OrderReport& report) {
  const OrderAnswer& answer = report.answer;
  std::string text = fmt::format("order: {} from the first op to the last, {}\n",
                                 time_in_words(answer.time_s), gap_text(answer));
  text += fmt::format("lower bound: {}, by {}\n",
                      time_in_words(static_cast<double>(answer.bound.time) * 1e-9),
                      reason_text(report));
  std::size_t shown = 0;
  std::string too_large;
  for (const NamedOrder& named : answer.named) {
    if (!named.fits) {
      too_large += (too_large.empty() ? "" : ", ") + named.name;
    } else if (shown++ < 4) {
      text += fmt::format("{}: {}, {}\n", named.name, time_in_words(named.time_s),
                          beside(named.time_s, answer.time_s));
    }
  }
  if (!too_large.empty()) text += fmt::format("too little memory for {}\n", too_large);
  if (report.compared_s) {
    text += fmt::format("{}: {}, {}\n", report.compared, time_in_words(*report.compared_s),
                        beside(*report.compared_s, answer.time_s));
  }
  return text;
}

}  // namespace plumbline
