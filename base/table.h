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
#include "base/wrap.h"

namespace plumbline {

/// Rows of cells, printed in columns as wide as their widest cell. The first column is aligned
/// left, the others right. No line ends in a space. The first row is the header, where a table has
/// one.
class Table {
 public:
  /// `remark` is printed behind the last column, aligned left; it widens no column.
  void row(std::vector<std::string> cells, std::string remark = "") {
    rows_.push_back(std::move(cells));
    remarks_.push_back(std::move(remark));
  }
  /// Joins rows that have numbers in their first cells and are equal in all others. The joined row
  /// stands where the first of them stood, and is named by `alike_name`; its remark lists numbers
  /// that the name leaves out.
  void join_alike();
  /// Says that the first row is none of titles, which may be broken.
  void has_no_header() { has_header_ = false; }
  /// The number of leading columns that tell rows apart. Where a table is printed in blocks, each
  /// has them; else the first column alone.
  void repeat(std::size_t columns) { repeated_ = columns; }
  /// Names columns, by their titles, that a narrow page may leave out: the first of them first.
  /// Titles that the header does not have are passed over.
  void may_lack(std::vector<std::string> titles) { may_lack_ = std::move(titles); }
  /// The rows as text. Where they are wider than the page, titles are broken over lines,
  /// then columns are left out, and a line below names these. Where that does not suffice, all are
  /// printed, in blocks. Remarks are broken at
  /// spaces.
  std::string print(PageWidth width = std::nullopt) const;
  /// The same as a table in GitHub's Markdown. The first row is its header. Remarks, if any, are a
  /// column; its title is the remark of the header.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> remarks_;  ///< Parallel to rows_.
  std::vector<std::string> may_lack_;
  bool has_header_ = true;
  std::size_t repeated_ = 1;
};

/// `text` escaped for a cell or an item in Markdown.
std::string escaped_markdown(const std::string& text);

/// "1 device", "4 devices", "2 micro-batches".
std::string plural(std::uint64_t count, std::string_view noun);

/// A cell of CSV, quoted where needed (RFC 4180).
std::string csv_cell(const std::string& text);

/// The name of devices that share a row, by their rising numbers: "4-7", "0,2", "0,4,..,60", or
/// "0 and 9 more" where these would be long. Requires: there is one.
std::string alike_name(const std::vector<std::uint32_t>& numbers);

/// 0,1,2,5 as "0-2,5".
std::string ranges(const std::vector<DeviceId>& devices);

/// 0.2727 as "27.27 %".
std::string percent(double fraction);

}  // namespace plumbline
