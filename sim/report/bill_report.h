// A bill for people: lines of a summary, columns of rows.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/prediction/outcome.h"
#include "sim/whatif/sweep_result.h"

namespace plumbline {

class Table;

/// "632.4k USD".
std::string money_text(double amount, const std::string& currency);
/// "213.4 MWh".
std::string energy_text(double kwh);
/// "41.3", "0.0124".
std::string days_text(double days);

/// "31.61 s an iteration, 132.7k tokens/s, at most 60.2 GiB on a device; 1308 days, 10.05M USD".
std::string bill_sentence(const Outcome& outcome);

/// Adds a line for each figure that is known: tokens, goodput and its parts, days, cost, energy.
void add_bill_lines(const Outcome& outcome, Table& table);

/// The columns of goodput, days, cost and energy that some row has.
class BillColumns {
 public:
  explicit BillColumns(const std::vector<const SweepNumbers*>& rows);

  std::vector<std::string> titles() const;
  /// A cell for each column.
  std::vector<std::string> cells(const Bill& bill) const;
  /// The keys of the columns of data (CSV): those that some row has.
  std::vector<std::string> keys() const;
  /// A cell for each of these keys, unrounded.
  std::vector<std::string> data(const Bill& bill) const;

 private:
  bool goodput_ = false, tokens_ = false, days_ = false, cost_ = false, energy_ = false;
};

}  // namespace plumbline
