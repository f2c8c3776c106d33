// The report on a found order: its time, its bound, the published orders beside it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/wrap.h"
#include "sim/planning/found_order.h"

namespace plumbline {

/// What is told of an order.
struct OrderReport {
  const OrderAnswer& answer;
  const TrainingSetup& setup;        ///< With the order.
  std::string compared;              ///< The name of another order; "" = none.
  std::optional<double> compared_s;  ///< Its time.
};

/// A few lines, broken to fit the page.
std::string order_text(const OrderReport& report, PageWidth width);

/// The same as JSON, with the ops of each device in their order. Times are in seconds.
std::string order_json(const OrderReport& report, const std::string& version);

}  // namespace plumbline
