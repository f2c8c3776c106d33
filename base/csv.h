// Comma-separated values (RFC 4180), row by row, with the place of every field.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

/// One field, without its quotes; without quotes, it has no blanks around it.
struct CsvField {
  std::string text;
  Mark mark;
};

/// How a table is written.
struct CsvForm {
  char separator = ',';
  bool has_comments = true;  ///< Lines that begin with '#' are skipped.
};

/// One row with at least one field. `count` counts all fields; `fields` holds at most
/// kMaxCsvFields.
struct CsvRow {
  std::vector<CsvField> fields;
  std::size_t count = 0;
};

/// The most fields of a row that are kept.
inline constexpr std::size_t kMaxCsvFields = 100;

/// Reads rows that end in LF or CRLF. A field in quotes may hold commas, line ends and doubled
/// quotes (RFC 4180, section 2). Blank lines are skipped, and lines that begin with '#', unless the
/// form has no comments. It knows no header and no columns.
class CsvReader {
 public:
  /// Errors, added to `problems`: bytes that are not UTF-8, and control characters. Then there are
  /// no rows.
  CsvReader(std::shared_ptr<const Source> source, Diagnostics& problems, CsvForm form = {});

  /// Reads the next row; false at the end. Errors, added to `problems`: a quote that does not
  /// close, text after a closing quote, a quote within a field that is not in quotes.
  bool next(CsvRow& row);

 private:
  char peek() const { return source_->text[at_]; }
  bool at_end() const { return at_ == source_->text.size(); }
  void advance();
  Mark mark(std::size_t begin, std::size_t length) const;
  void error(const Mark& mark, std::string message, std::string help);
  void check_characters();
  bool skip_to_row();
  std::string read_quoted(const Mark& opening);
  std::string read_plain(std::size_t begin);

  std::shared_ptr<const Source> source_;
  Diagnostics* problems_;
  CsvForm form_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
};

}  // namespace plumbline
