// Rows of cells as aligned text.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// Rows of cells, printed in columns as wide as their widest cell. The first column is aligned
/// left, the others right. No line ends in a space.
class Table {
 public:
  /// `remark` is printed behind the last column, aligned left; it widens no column.
  void row(std::vector<std::string> cells, std::string remark = "") {
    rows_.push_back(std::move(cells));
    remarks_.push_back(std::move(remark));
  }
  /// Joins rows below the header that count up in their first cells and are equal in all others.
  /// The joined row has `4-7` in its first cell.
  void join_alike();
  std::string print() const;
  /// The same as a table in GitHub's Markdown. The first row is its header. Remarks, if any, are a
  /// column.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> remarks_;  ///< Parallel to rows_.
};

/// `text` escaped for a cell or an item in Markdown.
std::string escaped_markdown(const std::string& text);

/// Tables and pictures of more devices than this join equal rows.
inline constexpr std::size_t kMaxSeparate = 16;

/// "1 device", "4 devices", "2 micro-batches".
std::string plural(std::uint64_t count, std::string_view noun);

/// A cell of CSV, quoted where needed (RFC 4180).
std::string csv_cell(const std::string& text);

/// 0,1,2,5 as "0-2,5".
std::string ranges(const std::vector<DeviceId>& devices);

/// 0.2727 as "27.27 %".
std::string percent(double fraction);

}  // namespace plumbline
