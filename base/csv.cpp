// RFC 4180, and the variants that spreadsheets write.
//
// SPDX-License-Identifier: MIT
#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

CsvReader::CsvReader(std::shared_ptr<const Source> source, Diagnostics& problems, CsvForm form)
    : source_(std::move(source)), problems_(&problems), form_(form) {
  check_characters();
}

void CsvReader::advance() {
  if (peek() == '\n') {
    ++line_;
    line_begin_ = at_ + 1;
  }
  ++at_;
}

Mark CsvReader::mark(std::size_t begin, std::size_t length) const {
  return {source_, line_, static_cast<int>(begin - line_begin_) + 1,
          static_cast<int>(std::clamp<std::size_t>(length, 1, 200))};
}

void CsvReader::error(const Mark& mark, std::string message, std::string help) {
  problems_->push_back(input_error(mark, std::move(message), std::move(help)));
}

/// Checks all bytes. Leaves no row to read where one of them is not text.
void CsvReader::check_characters() {
  const std::string_view text = source_->text;
  while (!at_end()) {
    const std::size_t length = utf8_length(text, at_);
    const auto byte = static_cast<unsigned char>(peek());
    if (length == 0 || (byte < 0x20 && byte != '\t' && byte != '\r' && byte != '\n')) {
      error(mark(at_, 1), fmt::format("the byte 0x{:02x} is no UTF-8 text", byte),
            "save the table as CSV in UTF-8");
      at_ = text.size();
      return;
    }
    if (length == 1) {
      advance();
    } else {
      at_ += length;
    }
  }
  at_ = 0;
  line_begin_ = 0;
  line_ = 1;
}

/// Skips to the first character of the next row that counts; false at the end.
bool CsvReader::skip_to_row() {
  const std::string_view text = source_->text;
  while (!at_end()) {
    const std::size_t end = std::min(text.find('\n', at_), text.size());
    const std::string_view line = text.substr(at_, end - at_);
    if (!trimmed(line).empty() && !(form_.has_comments && line.front() == '#')) return true;
    at_ = end;
    if (!at_end()) advance();
  }
  return false;
}

/// The rest of a quoted field after its opening quote, up to and with its closing quote.
std::string CsvReader::read_quoted(const Mark& opening) {
  std::string text;
  while (!at_end()) {
    if (peek() == '"') {
      advance();
      if (at_end() || peek() != '"') return text;
    }
    text += peek();
    advance();
  }
  error(opening, "the quote that opens here is not closed",
        "a quote within quotes is written twice");
  return text;
}

/// An unquoted field, up to its comma or the end of its line.
std::string CsvReader::read_plain(std::size_t begin) {
  while (!at_end() && peek() != form_.separator && peek() != '\n') advance();
  const std::string_view raw = std::string_view(source_->text).substr(begin, at_ - begin);
  if (const std::size_t quote = raw.find('"'); quote != std::string_view::npos) {
    error(mark(begin + quote, 1), "a quote stands within a field that has none around it",
          "put the whole field into quotes, and write this one twice");
  }
  return std::string(trimmed(raw));
}

bool CsvReader::next(CsvRow& row) {
  row.fields.clear();
  row.count = 0;
  if (!skip_to_row()) return false;
  while (true) {
    while (!at_end() && peek() != form_.separator && kBlanks.find(peek()) != std::string_view::npos)
      advance();
    const std::size_t begin = at_;
    CsvField field;
    if (!at_end() && peek() == '"') {
      const Mark opening = mark(begin, 1);
      advance();
      field.text = read_quoted(opening);
      field.mark = opening;
      if (line_ == opening.line) field.mark.length = mark(begin, at_ - begin).length;
      const std::size_t after = at_;
      while (!at_end() && peek() != form_.separator && peek() != '\n') advance();
      const std::string_view rest = std::string_view(source_->text).substr(after, at_ - after);
      if (!trimmed(rest).empty()) {
        const std::size_t blanks = rest.find_first_not_of(kBlanks);
        error(mark(after + blanks, trimmed(rest).size()),
              "text stands between a closing quote and the comma",
              "a quote within quotes is written twice");
      }
    } else {
      field.text = read_plain(begin);
      field.mark = mark(begin, field.text.size());
    }
    ++row.count;
    if (row.count <= kMaxCsvFields) row.fields.push_back(std::move(field));
    if (at_end()) return true;
    const bool ends = peek() == '\n';
    advance();
    if (ends) return true;
  }
}

}  // namespace plumbline
