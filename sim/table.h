// Rows of cells as aligned text.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace plumbline {

/// Rows of cells, printed with columns as wide as their widest cell; the first is to the left, the
/// others to the right. No line ends in a space.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// 0.2727 as "27.27 %".
std::string percent(double fraction);

}  // namespace plumbline
