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

/// Rows of cells, printed with columns as wide as their widest cell; the first is to the left, the
/// others to the right. No line ends in a space.
class Table {
 public:
  /// `remark` stands behind the last column, to the left, and widens none.
  void row(std::vector<std::string> cells, std::string remark = "") {
    rows_.push_back(std::move(cells));
    remarks_.push_back(std::move(remark));
  }
  /// Rows behind the header that count up in their first cells and are alike in all others become
  /// one, with `4-7` in its first.
  void join_alike();
  std::string print() const;
  /// The same as a table of GitHub's Markdown: the first row is its header, and remarks, where
  /// there are any, are a column.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> remarks_;  ///< Parallel to rows_.
};

/// `text` as a cell or an item of Markdown.
std::string escaped_markdown(const std::string& text);

/// Tables and pictures of more devices than that join what is alike.
inline constexpr std::size_t kMaxSeparate = 16;

/// "1 device", "4 devices", "2 micro-batches".
std::string plural(std::uint64_t count, std::string_view noun);

/// A cell of CSV, in quotes where it needs them (RFC 4180).
std::string csv_cell(const std::string& text);

/// 0,1,2,5 as "0-2,5".
std::string ranges(const std::vector<DeviceId>& devices);

/// 0.2727 as "27.27 %".
std::string percent(double fraction);

}  // namespace plumbline
