// A CSV file with a header, plain or gzip: its fields by the names of their columns.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/diagnostic.h"

namespace plumbline {

/// One line of the table. Fields that are wrong are added to the problems.
class CsvLine {
 public:
  CsvLine(const std::map<std::string, std::size_t>& columns, const CsvRow& row,
          Diagnostics& problems)
      : columns_(columns), row_(row), problems_(problems) {}

  /// The text of a column; "" where the table has no such column.
  std::string text(const std::string& column) const;
  bool has(const std::string& column) const { return !text(column).empty(); }
  /// A whole number from 1 on; nothing, with an error, for anything else.
  std::optional<std::int64_t> count(const std::string& column) const;
  /// A number above 0; nothing, with an error, for anything else.
  std::optional<double> positive(const std::string& column) const;
  /// A number from 0 on; 0 where the field is empty.
  double number_or_zero(const std::string& column) const;
  void error(const std::string& column, const std::string& message, std::string help) const;
  /// Problems with the whole line, which have no place yet.
  void errors(Diagnostics problems) const;

 private:
  Mark mark(const std::string& column) const;

  const std::map<std::string, std::size_t>& columns_;
  const CsvRow& row_;
  Diagnostics& problems_;
};

/// A table with a header.
class CsvTable {
 public:
  /// Errors: those of the file; a file without a header; two columns of one name.
  static Result<CsvTable> open(const std::string& path);

  const std::vector<std::string>& header() const { return header_; }
  bool has(const std::string& column) const { return columns_.count(column) > 0; }
  Mark header_mark() const { return header_mark_; }

  /// Calls `read` for each line. Returns all problems, those of lines included: other numbers of
  /// fields than the header has, and what CsvReader finds. Stops after 100.
  Diagnostics each(const std::function<void(const CsvLine&)>& read) const;

 private:
  std::shared_ptr<const Source> source_;
  std::vector<std::string> header_;
  std::map<std::string, std::size_t> columns_;
  Mark header_mark_;
};

}  // namespace plumbline
