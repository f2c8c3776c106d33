// Reading cells: the grammar, the bounds and the two sets of letters.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/torch_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "schedules/files/order_line.h"

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

bool is_of_word(char c) { return is_letter(c) || c == '_'; }

/// The longest part of `text` from `at` whose characters all are of one kind.
std::string_view run_of(std::string_view text, std::size_t at, bool (*is_one)(char)) {
  std::size_t end = at;
  while (end < text.size() && is_one(text[end])) ++end;
  return text.substr(at, end - at);
}

/// The number; nothing where it is `limit` or more.
std::optional<std::uint32_t> number_below(std::string_view digits, std::uint32_t limit) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
    if (number >= limit) return std::nullopt;
  }
  return static_cast<std::uint32_t>(number);
}

TorchCell cell_at(const OrderWord& word) {
  return {.kind = CellKind::forward,
          .stage = 0,
          .micro_batch = 0,
          .number = word.number,
          .line = word.line,
          .column = word.column,
          .length = static_cast<std::uint32_t>(std::min<std::size_t>(word.text.size(), 200))};
}

/// A part of a word, with its place.
OrderWord part_of(const OrderWord& word, std::string_view part) {
  OrderWord result = word;
  result.text = trimmed(part);
  result.column += static_cast<std::uint32_t>(result.text.data() - word.text.data());
  return result;
}

/// Reads one word after another into `cells`, and adds errors to `problems`.
class CellReader {
 public:
  CellReader(TorchCells& cells, bool stageless, Diagnostics& problems)
      : cells_(cells), stageless_(stageless), problems_(problems) {}

  /// Reads a word. Returns whether reading goes on.
  bool read(const OrderWord& word) {
    if (word.row >= kMaxCsvStages) {
      problems_.push_back(input_error(
          mark_of(word),
          fmt::format("this is one row more than the {} that are read", kMaxCsvStages)));
      return false;
    }
    const std::size_t problems_before = problems_.size();
    if (word.row >= cells_.rows.size()) cells_.rows.resize(word.row + 1);
    if (word.row >= wrong_.size()) wrong_.resize(word.row + 1, false);
    if (word.text.front() == '(') {
      read_overlap(word);
    } else if (const auto cell = read_cell(word)) {
      keep_cell(word.row, *cell);
    }
    if (problems_.size() > problems_before) wrong_[word.row] = true;
    if (cells_.ops + cells_.communications > kMaxCsvCells) {
      problems_.push_back(input_error(
          mark_of(word),
          fmt::format("with this cell there are more than the {} that are read", kMaxCsvCells)));
      return false;
    }
    return problems_.size() < kMaxCsvProblems;
  }

  /// Reports rows without any op, unless an error in them was reported.
  void tell_empty(const std::vector<OrderRow>& rows) {
    cells_.rows.resize(rows.size());
    wrong_.resize(rows.size(), false);
    for (std::size_t row = 0; row < rows.size() && problems_.size() < kMaxCsvProblems; ++row) {
      const std::vector<TorchCell>& cells = cells_.rows[row];
      const bool has_op = std::any_of(cells.begin(), cells.end(), [](const TorchCell& cell) {
        return is_compute(cell.kind) || cell.kind == CellKind::old_backward;
      });
      if (has_op || wrong_[row]) continue;
      const int line = static_cast<int>(rows[row].line);
      const auto length =
          static_cast<int>(std::clamp<std::size_t>(cells_.source->line(line).size(), 1, 200));
      problems_.push_back(input_error({cells_.source, line, 1, length},
                                      cells_.form == OrderForm::grid
                                          ? fmt::format("rank {} has no op", row)
                                          : fmt::format("row {} has no op", row + 1),
                                      "each row is a device, and each device runs ops"));
    }
  }

 private:
  Mark mark_of(const OrderWord& word) const {
    return {cells_.source, static_cast<int>(word.line), static_cast<int>(word.column),
            static_cast<int>(std::clamp<std::size_t>(word.text.size(), 1, 200))};
  }

  void refuse(const OrderWord& word, const std::string& message, std::string help = "") {
    if (problems_.size() == kMaxCsvProblems) return;
    problems_.push_back(cell_error(cells_, word.row, cell_at(word), message, std::move(help)));
  }

  void keep_cell(std::size_t row, const TorchCell& cell) {
    const bool compute = is_compute(cell.kind) || cell.kind == CellKind::old_backward;
    ++(compute ? cells_.ops : cells_.communications);
    cells_.rows[row].push_back(cell);
  }

  std::optional<TorchCell> read_cell(const OrderWord& read) {
    const std::string_view text = read.text;
    const std::string_view stage = run_of(text, 0, is_digit);
    const std::string_view word = run_of(text, stage.size(), is_of_word);
    const std::string_view micro_batch = run_of(text, stage.size() + word.size(), is_digit);
    const std::string_view rest = text.substr(stage.size() + word.size() + micro_batch.size());
    const auto found = std::find(kWords.begin(), kWords.end(), word);
    TorchCell cell = cell_at(read);
    cell.kind = static_cast<CellKind>(found - kWords.begin());
    const auto wrong = [&](const std::string& why, std::string_view help) {
      refuse(read, fmt::format("'{}' {}", clipped(text), why), std::string(help));
      return std::nullopt;
    };
    if (stage.empty() && !stageless_) return wrong("begins with no stage", kGrammar);
    if (!stage.empty() && stageless_)
      return wrong("names a stage, though the first op of the file names none", kGrammar);
    if (word.empty())
      return wrong(stageless_ ? "names no op" : "names no op behind its stage", kGrammar);
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
    const auto s = number_below(stage, kMaxCsvStages);
    if (!s) return wrong(fmt::format("names a stage above {}", kMaxCsvStages - 1), "");
    const auto m = number_below(micro_batch, kMaxCsvMicroBatches);
    if (!m) return wrong(fmt::format("names a micro-batch above {}", kMaxCsvMicroBatches - 1), "");
    const bool is_rank = stageless_ && cells_.form != OrderForm::host_loop;
    cell.stage = is_rank ? read.row : *s;
    cell.micro_batch = *m;
    return cell;
  }

  /// Reads `(2F3;5B1)OVERLAP_F_B`: its two ops in order.
  void read_overlap(const OrderWord& word) {
    const std::size_t close = word.text.find(')');
    if (close == std::string_view::npos || word.text.substr(close + 1) != kOverlap) {
      return refuse(word, fmt::format("'{}' is no pair of ops", clipped(word.text)),
                    "an overlapped pair reads (2F3;5B1)OVERLAP_F_B");
    }
    const std::string_view inside = word.text.substr(1, close - 1);
    const std::size_t middle = inside.find(';');
    if (std::count(inside.begin(), inside.end(), ';') != 1) {
      return refuse(word,
                    fmt::format("'{}' does not join two ops with one ';'", clipped(word.text)),
                    "an overlapped pair reads (2F3;5B1)OVERLAP_F_B");
    }
    bool is_first = true;
    for (const std::string_view text : {inside.substr(0, middle), inside.substr(middle + 1)}) {
      const OrderWord part = part_of(word, text);
      auto cell = read_cell(part);
      if (!cell) continue;
      cell->begins_pair = std::exchange(is_first, false);
      if (!is_compute(cell->kind) && cell->kind != CellKind::old_backward) {
        refuse(part, fmt::format("'{}' is no op of compute, which an overlapped pair is made of",
                                 clipped(part.text)));
      } else {
        keep_cell(word.row, *cell);
      }
    }
    ++cells_.overlapped;
  }

  TorchCells& cells_;
  bool stageless_;
  Diagnostics& problems_;
  std::vector<bool> wrong_;  ///< Whether each row has a wrong word.
};

/// Sorts labelled rows by their labels. Errors: a label twice, or only some rows with labels.
void order_rows(TorchCells& cells, const std::vector<OrderRow>& rows, Diagnostics& problems) {
  const auto labelled =
      std::count_if(rows.begin(), rows.end(), [](const OrderRow& row) { return row.label; });
  if (labelled == 0 || rows.size() != cells.rows.size()) return;
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rows[a].label.value_or(0) < rows[b].label.value_or(0);
  });
  bool is_counted = true;  // the labels are 0, 1, ...
  std::vector<std::vector<TorchCell>> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const OrderRow& row = rows[order[i]];
    const Mark mark{cells.source, static_cast<int>(row.line), 1, 1};
    if (!row.label) {
      problems.push_back(input_error(mark, "this row has no rank, though others have",
                                     "a row reads Rank 0: 0F0, 0F1, ..., or has its ops alone"));
      return;
    }
    if (i > 0 && row.label == rows[order[i - 1]].label) {
      problems.push_back(input_error(mark, fmt::format("rank {} has two rows", *row.label),
                                     "each row is the order of one device"));
      return;
    }
    is_counted = is_counted && *row.label == i;
    sorted.push_back(std::move(cells.rows[order[i]]));
  }
  cells.rows = std::move(sorted);
  if (is_counted) return;
  std::vector<std::uint32_t> labels;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 8); ++i)
    labels.push_back(*rows[order[i]].label);
  cells.order_of_rows =
      fmt::format("rows: those of {}{}, as devices 0 to {}", fmt::join(labels, ", "),
                  order.size() > 8 ? ", ..." : "", order.size() - 1);
}

/// Reads the words of the text.
void read_words(TorchCells& cells, Diagnostics& problems) {
  OrderText text(cells.source);
  cells.form = text.form();
  cells.devices = text.devices();
  CellReader reader(cells, text.stageless(), problems);
  const Diagnostics wrong =
      text.each_word([&](const OrderWord& word) { return reader.read(word); });
  problems.insert(problems.end(), wrong.begin(), wrong.end());
  if (!wrong.empty() || problems.size() >= kMaxCsvProblems) return;
  if (text.rows().empty()) {
    problems.push_back(input_error({cells.source}, "has no row", std::string(kGrammar)));
    return;
  }
  if (text.rows().size() > kMaxCsvStages) {
    if (!problems.empty()) return;
    problems.push_back(input_error(
        {cells.source}, fmt::format("has {} rows, more than {}", text.rows().size(), kMaxCsvStages),
        "each row is the order of one device"));
    return;
  }
  reader.tell_empty(text.rows());
  if (problems.empty()) order_rows(cells, text.rows(), problems);
}

/// Decides between the old letters (B, W, BW) and the present ones (I, W, B), and turns old ones
/// into present ones.
void resolve_letters(TorchCells& cells, Diagnostics& problems) {
  std::size_t row_of_input = 0;
  const TorchCell* input = nullptr;
  bool weight = false;
  bool old = false;
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
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
    for (TorchCell& cell : row) {
      if (cell.kind == CellKind::backward) {
        cell.kind = CellKind::backward_input;
      } else if (cell.kind == CellKind::old_backward) {
        cell.kind = CellKind::backward;
      }
    }
  }
}

}  // namespace

Result<TorchCells> read_torch_cells(std::shared_ptr<const Source> source) {
  TorchCells cells;
  cells.source = std::move(source);
  Diagnostics problems;
  read_words(cells, problems);
  if (problems.empty()) resolve_letters(cells, problems);
  if (!problems.empty()) return problems;
  return cells;
}

std::string cell_name(const TorchCells& cells, CellKind kind, std::uint32_t stage,
                      std::uint32_t micro_batch) {
  if (cells.old_letters && kind == CellKind::backward) {
    kind = CellKind::old_backward;
  } else if (cells.old_letters && kind == CellKind::backward_input) {
    kind = CellKind::backward;
  }
  const bool takes_micro_batch = kind < CellKind::unshard || kind == CellKind::old_backward;
  const bool names_stage = cells.form != OrderForm::host_loop;
  return fmt::format("{}{}{}", names_stage ? std::to_string(stage) : "",
                     kWords[static_cast<std::size_t>(kind)],
                     takes_micro_batch ? std::to_string(micro_batch) : "");
}

std::string place_name(const TorchCells& cells, std::size_t row, std::uint32_t number) {
  if (cells.is_sequence()) return fmt::format("op {}", number);
  if (cells.form == OrderForm::grid) return fmt::format("rank {}, step {}", row, number - 1);
  return fmt::format("row {}, cell {}", row + 1, number);
}

Diagnostic cell_error(const TorchCells& cells, std::size_t row, const TorchCell& cell,
                      const std::string& message, std::string help) {
  return input_error({cells.source, static_cast<int>(cell.line), static_cast<int>(cell.column),
                      static_cast<int>(cell.length)},
                     fmt::format("{}: {}", place_name(cells, row, cell.number), message),
                     std::move(help));
}

}  // namespace plumbline
