// Fields by the names of their columns.
//
// SPDX-License-Identifier: MIT
#include "models/tables/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <istream>
#include <iterator>
#include <utility>

#include "base/gzip_file.h"
#include "base/quantity.h"

namespace plumbline {
namespace {

constexpr std::size_t kMostProblems = 100;

/// The text of a file, decompressed where it is gzip.
Result<std::shared_ptr<const Source>> read_compressed(const std::string& path) {
  constexpr std::size_t max_bytes = std::size_t{256} << 20U;
  auto source = std::make_shared<Source>();
  source->name = path;
  const auto fail = [&](std::string message) {
    return Diagnostic{.mark = {source},
                      .message = std::move(message),
                      .help = {},
                      .detail = {},
                      .fault = Fault::file};
  };
  GzipFile file(path);
  std::istream stream(&file);
  std::string chunk(std::size_t{1} << 16U, '\0');
  while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) ||
         stream.gcount() > 0) {
    source->text.append(chunk, 0, static_cast<std::size_t>(stream.gcount()));
    if (source->text.size() > max_bytes)
      return fail(fmt::format("is larger than {} MiB, the most that is read", max_bytes >> 20U));
  }
  if (!file.problem().empty()) return fail(file.problem());
  if (source->text.starts_with("\xEF\xBB\xBF")) source->text.erase(0, 3);  // a byte-order mark
  return std::shared_ptr<const Source>(std::move(source));
}

}  // namespace

std::string CsvLine::text(const std::string& column) const {
  const auto at = columns_.find(column);
  return at == columns_.end() || at->second >= row_.fields.size() ? ""
                                                                  : row_.fields[at->second].text;
}

Mark CsvLine::mark(const std::string& column) const {
  const auto at = columns_.find(column);
  return at == columns_.end() || at->second >= row_.fields.size() ? row_.fields.front().mark
                                                                  : row_.fields[at->second].mark;
}

void CsvLine::error(const std::string& column, const std::string& message, std::string help) const {
  problems_.push_back(
      input_error(mark(column), fmt::format("{} {}", column, message), std::move(help)));
}

void CsvLine::errors(Diagnostics problems) const {
  for (Diagnostic& problem : located(std::move(problems), row_.fields.front().mark))
    problems_.push_back(std::move(problem));
}

std::optional<std::int64_t> CsvLine::count(const std::string& column) const {
  const auto parsed = parse_count(text(column));
  if (parsed.value && *parsed.value >= 1) return parsed.value;
  error(column, fmt::format("is '{}'", clipped(text(column))),
        fmt::format("a whole number from 1 to {}", kLargestQuantity));
  return std::nullopt;
}

std::optional<double> CsvLine::positive(const std::string& column) const {
  const auto parsed = parse_real(text(column));
  if (parsed.value && *parsed.value > 0) return parsed.value;
  error(column, fmt::format("is '{}'", clipped(text(column))), "a number above 0");
  return std::nullopt;
}

double CsvLine::number_or_zero(const std::string& column) const {
  if (!has(column)) return 0;
  const auto parsed = parse_real(text(column));
  if (!parsed.value)
    error(column, fmt::format("is '{}'", clipped(text(column))), "a number from 0 on");
  return parsed.value.value_or(0);
}

Result<CsvTable> CsvTable::open(const std::string& path) {
  auto source = read_compressed(path);
  if (!source) return source.problems();
  CsvTable table;
  table.source_ = *std::move(source);
  Diagnostics problems;
  CsvReader reader(table.source_, problems);
  CsvRow row;
  const bool has_header = reader.next(row);
  if (!problems.empty()) return problems;
  if (!has_header)
    return input_error({table.source_}, "the table is empty", "its first line names its columns");
  table.header_mark_ = row.fields.front().mark;
  for (const CsvField& field : row.fields) {
    const bool is_new = table.columns_.emplace(field.text, table.header_.size()).second;
    if (!is_new && !field.text.empty())  // spreadsheets write columns without a name
      problems.push_back(input_error(
          field.mark, fmt::format("the column '{}' stands here a second time", clipped(field.text)),
          "each column once"));
    table.header_.push_back(field.text);
  }
  if (!problems.empty()) return problems;
  return table;
}

Diagnostics CsvTable::each(const std::function<void(const CsvLine&)>& read) const {
  Diagnostics problems;
  CsvReader reader(source_, problems);
  CsvRow row;
  reader.next(row);  // the header
  while (problems.size() < kMostProblems && reader.next(row)) {
    if (row.count != header_.size()) {
      problems.push_back(
          input_error(row.fields.front().mark,
                      fmt::format("the line has {} field{}, and the header {}", row.count,
                                  row.count == 1 ? "" : "s", header_.size()),
                      fmt::format("{}", fmt::join(header_, ","))));
      continue;
    }
    read(CsvLine(columns_, row, problems));
  }
  return problems;
}

}  // namespace plumbline
