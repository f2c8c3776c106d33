// The printed forms of an order of ops: rows, lists, a grid of steps, a sequence. Cut into words.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

/// The written form of an order.
enum class OrderForm : std::uint8_t {
  rows,       ///< One row per device: CSV, Python's lists, words behind `device 0 |`.
  grid,       ///< One column per device, one line per step: `Step 0: 0F0 ..` under `Rank 0 ..`.
  sequence,   ///< The ops of all stages in the order in which one host launches them.
  host_loop,  ///< The same, where `F0` stands for all stages.
};

/// One word with its place. Rows count from 0, all other numbers from 1.
struct OrderWord {
  std::string_view text;
  std::uint32_t row = 0;
  std::uint32_t number = 0;  ///< Cell in the row, or step in a grid; idle cells count.
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// A row as written.
struct OrderRow {
  std::uint32_t line = 0;              ///< The line in which it begins.
  std::optional<std::uint32_t> label;  ///< The number in `Rank 0:`, `device 0 |` or `0:`.
};

/// A text that is cut into words. Comments (`#` to the end of a line), blank lines, quotes and idle
/// cells (nothing, `None`, `.`) are left out. `[rank0]:` at the front of a line, which torchrun
/// writes, is a label. Before a grid, which one rank prints, it is left out. The class does not
/// know the meaning of words.
class OrderText {
 public:
  /// Decides the form from the whole text. Requires: the source lives as long as this object.
  explicit OrderText(const std::shared_ptr<const Source>& source);

  OrderForm form() const { return form_; }
  /// Whether words name no stage: `F0`. Then each row is a stage, or the sequence is a host's loop.
  bool stageless() const { return stageless_; }
  /// The devices of each stage, from a line `# plan.devices: [[0], [1]]`; empty = no such line.
  const std::vector<std::vector<std::uint32_t>>& devices() const { return devices_; }

  /// Calls `visit` for each word, until it returns false. Returns the error in the form, at most
  /// one.
  Diagnostics each_word(const std::function<bool(const OrderWord&)>& visit);
  /// The rows that each_word met.
  const std::vector<OrderRow>& rows() const { return rows_; }

 private:
  struct Line;
  using Visit = std::function<bool(const OrderWord&)>;

  template <class Each>
  void each_line(Each&& each) const;
  void tell_form();
  void tell_form_of_words();
  Diagnostics walk_rows(const Visit& visit);
  Diagnostics walk_lists(const Visit& visit);
  Diagnostics walk_grid(const Visit& visit);
  Mark mark(const Line& line, std::string_view piece) const;

  const std::shared_ptr<const Source>& source_;
  std::string text_;  ///< The source's text, with `[rank0]:` as an equally long label.
  OrderForm form_ = OrderForm::rows;
  bool lists_ = false;
  bool stageless_ = false;
  std::vector<std::vector<std::uint32_t>> devices_;
  std::vector<OrderRow> rows_;
};

}  // namespace plumbline
