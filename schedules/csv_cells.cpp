// Reading PyTorch's cells: the grammar, the bounds and the two sets of letters.
// SPDX-License-Identifier: MIT
#include "schedules/csv_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace plumbline {
namespace {

constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::string_view kGrammar =
    "a cell reads <stage><op><micro-batch>, such as 2F0; the ops are F, B, I, W (or B, BW, W), "
    "SEND_F, RECV_F, SEND_B, RECV_B, and without a micro-batch UNSHARD, RESHARD, REDUCE_GRAD";

/// The words of the cells, by CellKind.
constexpr std::array<std::string_view, 12> kWords = {"F",       "B",       "I",           "W",
                                                     "SEND_F",  "RECV_F",  "SEND_B",      "RECV_B",
                                                     "UNSHARD", "RESHARD", "REDUCE_GRAD", "BW"};

/// A piece of a row and where it begins, from 0.
struct Piece {
  std::string_view text;
  std::size_t column = 0;
};

Piece trimmed(Piece piece) {
  const std::size_t first = piece.text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {{}, piece.column};
  const std::size_t last = piece.text.find_last_not_of(" \t");
  return {piece.text.substr(first, last - first + 1), piece.column + first};
}

/// Cuts `rest` behind the next `separator` and gives what stood before it.
Piece take(Piece& rest, char separator) {
  const std::size_t end = std::min(rest.text.find(separator), rest.text.size());
  const Piece piece{rest.text.substr(0, end), rest.column};
  const std::size_t next = std::min(end + 1, rest.text.size());
  rest = {rest.text.substr(next), rest.column + next};
  return piece;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }

/// The longest beginning of `text` from `at` whose characters all are of one kind.
std::string_view run_of(std::string_view text, std::size_t at, bool (*is_one)(char)) {
  std::size_t end = at;
  while (end < text.size() && is_one(text[end])) ++end;
  return text.substr(at, end - at);
}

/// The number, or nothing where it is `limit` or more.
std::optional<std::uint32_t> number_below(std::string_view digits, std::uint32_t limit) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
    if (number >= limit) return std::nullopt;
  }
  return static_cast<std::uint32_t>(number);
}

CsvCell cell_at(Piece piece, std::uint32_t number) {
  return {.kind = CellKind::forward,
          .stage = 0,
          .micro_batch = 0,
          .number = number,
          .column = static_cast<std::uint32_t>(piece.column + 1),
          .length = static_cast<std::uint32_t>(std::min<std::size_t>(piece.text.size(), 200))};
}

/// Reads row after row into `cells`, and what is wrong into `problems`.
class CellReader {
 public:
  CellReader(CsvCells& cells, Diagnostics& problems) : cells_(cells), problems_(problems) {}

  void read_row(std::size_t row, std::string_view text) {
    row_ = row;
    const std::size_t ops_before = cells_.ops;
    const std::size_t problems_before = problems_.size();
    cells_.rows.emplace_back();
    number_ = 0;
    for (Piece rest{text, 0}; !rest.text.empty() && problems_.size() < kMostCsvProblems;) {
      ++number_;
      const Piece piece = trimmed(take(rest, ','));
      if (piece.text.empty()) continue;
      if (piece.text.front() == '(') {
        read_overlap(piece);
      } else if (const auto cell = read_cell(piece)) {
        keep_cell(*cell);
      }
    }
    if (cells_.ops == ops_before && problems_.size() == problems_before) {
      const auto length = static_cast<int>(std::clamp<std::size_t>(text.size(), 1, 200));
      problems_.push_back(input_error({cells_.source, static_cast<int>(row) + 1, 1, length},
                                      fmt::format("row {} has no op", row + 1),
                                      "each row is a device, and each device runs ops"));
    }
  }

 private:
  void refuse(Piece piece, const std::string& message, std::string help = "") {
    if (problems_.size() == kMostCsvProblems) return;
    problems_.push_back(
        cell_error(cells_, row_, cell_at(piece, number_), message, std::move(help)));
  }

  void keep_cell(const CsvCell& cell) {
    const bool compute = is_compute(cell.kind) || cell.kind == CellKind::old_backward;
    ++(compute ? cells_.ops : cells_.communications);
    cells_.rows.back().push_back(cell);
  }

  std::optional<CsvCell> read_cell(Piece piece) {
    const std::string_view text = piece.text;
    const std::string_view stage = run_of(text, 0, is_digit);
    const std::string_view word = run_of(text, stage.size(), is_letter);
    const std::string_view micro_batch = run_of(text, stage.size() + word.size(), is_digit);
    const std::string_view rest = text.substr(stage.size() + word.size() + micro_batch.size());
    const auto found = std::find(kWords.begin(), kWords.end(), word);
    CsvCell cell = cell_at(piece, number_);
    cell.kind = static_cast<CellKind>(found - kWords.begin());
    const auto wrong = [&](const std::string& why, std::string_view help) {
      refuse(piece, fmt::format("'{}' {}", clipped(text), why), std::string(help));
      return std::nullopt;
    };
    if (stage.empty()) return wrong("begins with no stage", kGrammar);
    if (word.empty()) return wrong("names no op behind its stage", kGrammar);
    if (found == kWords.end()) {
      return wrong(fmt::format("names '{}', which is no op", clipped(word)), kGrammar);
    }
    const bool takes_micro_batch =
        is_compute(cell.kind) || is_transfer(cell.kind) || cell.kind == CellKind::old_backward;
    if (!rest.empty()) {
      return wrong(fmt::format("has '{}' behind its end", clipped(rest)),
                   "PyTorch passes over this without a word; the cell must end there");
    }
    if (micro_batch.empty() && takes_micro_batch) return wrong("names no micro-batch", kGrammar);
    if (!micro_batch.empty() && !takes_micro_batch) {
      return wrong(fmt::format("names a micro-batch, but {} takes none", word), kGrammar);
    }
    const auto s = number_below(stage, kMostCsvStages);
    if (!s) return wrong(fmt::format("names a stage above {}", kMostCsvStages - 1), "");
    const auto m = number_below(micro_batch, kMostCsvMicroBatches);
    if (!m) return wrong(fmt::format("names a micro-batch above {}", kMostCsvMicroBatches - 1), "");
    cell.stage = *s;
    cell.micro_batch = *m;
    return cell;
  }

  /// `(2F3;5B1)OVERLAP_F_B`: its two ops in order.
  void read_overlap(Piece piece) {
    const std::size_t close = piece.text.find(')');
    if (close == std::string_view::npos || piece.text.substr(close + 1) != kOverlap) {
      return refuse(piece, fmt::format("'{}' is no pair of ops", clipped(piece.text)),
                    "an overlapped pair reads (2F3;5B1)OVERLAP_F_B");
    }
    Piece rest{piece.text.substr(1, close - 1), piece.column + 1};
    if (std::count(rest.text.begin(), rest.text.end(), ';') != 1) {
      return refuse(piece,
                    fmt::format("'{}' does not join two ops with one ';'", clipped(piece.text)),
                    "an overlapped pair reads (2F3;5B1)OVERLAP_F_B");
    }
    const Piece first = trimmed(take(rest, ';'));
    for (const Piece part : {first, trimmed(rest)}) {
      auto cell = read_cell(part);
      if (!cell) continue;
      cell->begins_pair = part.column == first.column;
      if (!is_compute(cell->kind) && cell->kind != CellKind::old_backward) {
        refuse(part, fmt::format("'{}' is no op of compute, which an overlapped pair is made of",
                                 clipped(part.text)));
      } else {
        keep_cell(*cell);
      }
    }
    ++cells_.overlapped;
  }

  CsvCells& cells_;
  Diagnostics& problems_;
  std::size_t row_ = 0;
  std::uint32_t number_ = 0;
};

void read_rows(CsvCells& cells, Diagnostics& problems) {
  std::string_view rest = cells.source->text;
  rest = rest.substr(0, rest.find_last_not_of(" \t\r\n") + 1);  // npos + 1 = 0
  if (rest.empty()) {
    problems.push_back(input_error({cells.source}, "has no row", std::string(kGrammar)));
  }
  CellReader reader(cells, problems);
  for (std::size_t row = 0; !rest.empty() && problems.size() < kMostCsvProblems; ++row) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    const Mark mark{cells.source, static_cast<int>(row) + 1, 1, 1};
    if (row == kMostCsvStages) {
      problems.push_back(input_error(
          mark, fmt::format("this is one row more than the {} that are read", kMostCsvStages)));
      return;
    }
    reader.read_row(row, text);
    if (cells.ops + cells.communications > kMostCsvCells) {
      problems.push_back(input_error(
          mark, fmt::format("with this row there are more cells than the {} that are read",
                            kMostCsvCells)));
      return;
    }
  }
}

/// Tells the old letters (B, W, BW) from the present ones (I, W, B) and turns them into those.
void settle_letters(CsvCells& cells, Diagnostics& problems) {
  std::size_t row_of_input = 0;
  const CsvCell* input = nullptr;
  bool weight = false;
  bool old = false;
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      weight |= cell.kind == CellKind::backward_weight;
      old |= cell.kind == CellKind::old_backward;
      if (cell.kind != CellKind::backward_input || input != nullptr) continue;
      input = &cell;
      row_of_input = row;
    }
  }
  if (old && input != nullptr) {
    problems.push_back(cell_error(
        cells, row_of_input, *input,
        fmt::format("{}I{} stands in one file with BW", input->stage, input->micro_batch),
        "PyTorch's old letters are B, W and BW for both; its present ones I, W and B for both"));
  }
  cells.split_backward = old || weight || input != nullptr;
  cells.old_letters = old || (weight && input == nullptr);
  if (!cells.old_letters) return;
  for (auto& row : cells.rows) {
    for (CsvCell& cell : row) {
      if (cell.kind == CellKind::backward) {
        cell.kind = CellKind::backward_input;
      } else if (cell.kind == CellKind::old_backward) {
        cell.kind = CellKind::backward;
      }
    }
  }
}

}  // namespace

Result<CsvCells> read_csv_cells(std::shared_ptr<const Source> source) {
  CsvCells cells;
  cells.source = std::move(source);
  Diagnostics problems;
  read_rows(cells, problems);
  if (problems.empty()) settle_letters(cells, problems);
  if (!problems.empty()) return problems;
  return cells;
}

std::vector<CsvCell> read_csv_row(const std::shared_ptr<const Source>& source, std::uint32_t row) {
  CsvCells cells;
  cells.source = source;
  Diagnostics problems;
  CellReader(cells, problems).read_row(row, source->line(static_cast<int>(row) + 1));
  return std::move(cells.rows.front());
}

std::string cell_name(const CsvCells& cells, CellKind kind, std::uint32_t stage,
                      std::uint32_t micro_batch) {
  if (cells.old_letters && kind == CellKind::backward) {
    kind = CellKind::old_backward;
  } else if (cells.old_letters && kind == CellKind::backward_input) {
    kind = CellKind::backward;
  }
  const bool takes_micro_batch = kind < CellKind::unshard || kind == CellKind::old_backward;
  return fmt::format("{}{}{}", stage, kWords[static_cast<std::size_t>(kind)],
                     takes_micro_batch ? std::to_string(micro_batch) : "");
}

Diagnostic cell_error(const CsvCells& cells, std::size_t row, const CsvCell& cell,
                      const std::string& message, std::string help) {
  return input_error({cells.source, static_cast<int>(row) + 1, static_cast<int>(cell.column),
                      static_cast<int>(cell.length)},
                     fmt::format("row {}, cell {}: {}", row + 1, cell.number, message),
                     std::move(help));
}

}  // namespace plumbline
