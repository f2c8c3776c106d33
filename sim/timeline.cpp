// Cells first, characters second.
// SPDX-License-Identifier: MIT
#include "sim/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "models/quantity.h"

namespace plumbline {
namespace {

constexpr std::size_t kMostRows = 64;

/// A kind of cell as it is drawn: as a character, in a colour, under a name.
struct Ink {
  std::string_view unicode;
  char ascii;
  std::string_view color;
  std::string_view name;
};

const Ink& ink(Shown kind) {
  static constexpr std::array<Ink, 7> inks = {{{"░", 'f', "34", "forward"},
                                               {"▓", 'B', "32", "backward"},
                                               {"▚", 'W', "36", "weight gradient"},
                                               {"■", 'U', "35", "update"},
                                               {"═", '=', "33", "transfer"},
                                               {"╌", '~', "31", "waiting for communication"},
                                               {"·", '.', "2", "idle"}}};
  return inks[static_cast<std::size_t>(kind)];
}

Shown kind_of(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::forward:
      return Shown::forward;
    case ActivityKind::backward_weight:
      return Shown::backward_weight;
    case ActivityKind::update:
      return Shown::update;
    case ActivityKind::activation_transfer:
    case ActivityKind::gradient_transfer:
      return Shown::transfer;
    default:
      return Shown::backward;
  }
}

bool waits(IdleCause cause) {
  return cause == IdleCause::transfer || cause == IdleCause::rendezvous ||
         cause == IdleCause::all_reduce;
}

class Painter {
 public:
  Painter(const Prediction& p, std::size_t columns)
      : graph_(p.graph), trace_(p.trace), makespan_(p.metrics.makespan), columns_(columns) {}

  TimelineCells paint() {
    const auto nodes = nodes_by_slot(graph_);
    TimelineCells cells;
    cells.dense = shortest_op() * static_cast<double>(columns_) < makespan_s();
    for (const auto& list : nodes) {
      cells.rows.push_back(cells.dense ? dense_row(list) : op_row(list));
    }
    return cells;
  }

 private:
  double makespan_s() const { return static_cast<double>(makespan_.count()); }

  double shortest_op() const {
    double shortest = makespan_s();
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const std::int64_t took = graph_.cost(i).hold.count();
      if (is_op(graph_.activities[i].kind) && took > 0)
        shortest = std::min(shortest, static_cast<double>(took));
    }
    return shortest;
  }

  /// In columns, from the left edge.
  double place(SimTime time) const {
    return static_cast<double>(time.time_since_epoch().count()) * static_cast<double>(columns_) /
           makespan_s();
  }
  std::size_t edge(SimTime time) const {
    return static_cast<std::size_t>(std::llround(place(time)));
  }

  std::vector<TimelineCell> op_row(const std::vector<std::uint32_t>& nodes) const {
    std::vector<TimelineCell> row(columns_);
    for (const IdleGap& gap : idle_gaps(graph_, trace_, nodes, SimTime(makespan_))) {
      if (waits(gap.cause)) fill(row, gap.begin, gap.end, {Shown::waiting, 0, kNobody});
    }
    for (const std::uint32_t node : nodes) {
      const SimTime begin = trace_.spans[node].begin;
      fill(row, begin, begin + held(graph_, trace_, node),
           {kind_of(graph_.activities[node].kind), 1, node});
    }
    return row;
  }

  void fill(std::vector<TimelineCell>& row, SimTime begin, SimTime end,
            const TimelineCell& cell) const {
    for (std::size_t c = edge(begin); c < edge(end); ++c) row[c] = cell;
  }

  std::vector<TimelineCell> dense_row(const std::vector<std::uint32_t>& nodes) const {
    std::vector<TimelineCell> row(columns_);
    for (const std::uint32_t node : nodes) {
      const double begin = place(trace_.spans[node].begin);
      const double end = place(trace_.spans[node].begin + held(graph_, trace_, node));
      for (auto c = static_cast<std::size_t>(begin); c < columns_; ++c) {
        const double part =
            std::min(end, static_cast<double>(c) + 1) - std::max(begin, static_cast<double>(c));
        if (part <= 0) break;
        row[c].busy = std::min(row[c].busy + part, 1.0);
      }
    }
    return row;
  }

  const OpGraph& graph_;
  const Trace& trace_;
  Duration makespan_;
  std::size_t columns_;
};

/// As many of `most` columns as make all ops begin and end between columns, where that takes no
/// more than a quarter of them away.
std::size_t whole_columns(const Prediction& p, std::size_t most) {
  std::int64_t unit = p.metrics.makespan.count();
  for (const Cost& cost : p.graph.costs) {
    unit = std::gcd(unit, cost.hold.count());
    unit = std::gcd(unit, cost.latency.count());
  }
  const auto units = static_cast<std::size_t>(p.metrics.makespan.count() / unit);
  if (units > most) return most;
  const std::size_t columns = most / units * units;
  return 4 * columns >= 3 * most ? columns : most;
}

/// Turns cells into characters.
class Pen {
 public:
  Pen(const Prediction& p, const TimelineStyle& style) : p_(p), style_(style) {}

  std::string draw() {
    const std::size_t shown = std::min<std::size_t>(p_.graph.slots(), kMostRows);
    const std::size_t name_width =
        fmt::format("device {}", p_.graph.devices[shown - 1].value).size();
    const std::size_t frame = name_width + 5;  // two spaces, a space and two bars
    const std::size_t columns =
        whole_columns(p_, std::max<std::size_t>(style_.width, frame + 4) - frame);
    const TimelineCells cells = timeline_cells(p_, columns);
    std::string text = axis(name_width + 4, columns);
    for (std::size_t slot = 0; slot < shown; ++slot) {
      text += fmt::format("  {:<{}} {}", fmt::format("device {}", p_.graph.devices[slot].value),
                          name_width, bar());
      text += (cells.dense ? dense_row(cells.rows[slot]) : op_row(cells.rows[slot])) + bar() + '\n';
    }
    if (shown < p_.graph.slots())
      text += fmt::format("  ... and {} more devices\n", p_.graph.slots() - shown);
    return text + (cells.dense ? dense_legend(columns) : op_legend(cells));
  }

 private:
  std::string bar() const { return style_.unicode ? "│" : "|"; }

  std::string axis(std::size_t indent, std::size_t columns) const {
    const std::string end = to_text(p_.metrics.makespan);
    const std::size_t gap = columns > end.size() + 1 ? columns - end.size() - 1 : 1;
    return std::string(indent, ' ') + '0' + std::string(gap, ' ') + end + '\n';
  }

  std::string character(Shown kind) const {
    return style_.unicode ? std::string(ink(kind).unicode) : std::string(1, ink(kind).ascii);
  }

  std::string in_color(Shown kind, const std::string& text) const {
    if (!style_.color || text.empty()) return text;
    return fmt::format("\x1b[{}m{}\x1b[0m", ink(kind).color, text);
  }

  /// Equal neighbours are one piece; an op that is wide enough begins with its micro-batch.
  std::string op_row(const std::vector<TimelineCell>& row) {
    std::string text;
    for (std::size_t c = 0; c < row.size();) {
      std::size_t end = c;
      while (end < row.size() && row[end].kind == row[c].kind && row[end].node == row[c].node)
        ++end;
      std::string piece;
      if (row[c].node != kNobody && row[c].kind < Shown::update) {
        const std::string number =
            std::to_string(p_.graph.activities[row[c].node].micro_batch.value);
        if (number.size() < end - c) piece = number;
      }
      numbered_ = numbered_ || !piece.empty();
      for (std::size_t i = c + piece.size(); i < end; ++i) piece += character(row[c].kind);
      text += in_color(row[c].kind, piece);
      c = end;
    }
    return text;
  }

  std::string dense_row(const std::vector<TimelineCell>& row) const {
    static constexpr std::array<std::string_view, 9> blocks = {" ", "▁", "▂", "▃", "▄",
                                                               "▅", "▆", "▇", "█"};
    static constexpr std::string_view shades = " .:-=+*#@";
    std::string text;
    for (const TimelineCell& cell : row) {
      const auto level = static_cast<std::size_t>(std::llround(cell.busy * 8));
      text += style_.unicode ? blocks[level] : shades.substr(level, 1);
    }
    return text;
  }

  std::string op_legend(const TimelineCells& cells) const {
    std::string text = " ";
    for (std::size_t k = 0; k <= static_cast<std::size_t>(Shown::idle); ++k) {
      const auto kind = static_cast<Shown>(k);
      const bool occurs = std::any_of(cells.rows.begin(), cells.rows.end(), [&](const auto& row) {
        return std::any_of(row.begin(), row.end(),
                           [&](const TimelineCell& cell) { return cell.kind == kind; });
      });
      if (occurs) text += fmt::format(" {} {} ", in_color(kind, character(kind)), ink(kind).name);
    }
    while (text.back() == ' ') text.pop_back();
    return text + (numbered_ ? "; numbers are micro-batches\n" : "\n");
  }

  std::string dense_legend(std::size_t columns) const {
    const double column_ns =
        static_cast<double>(p_.metrics.makespan.count()) / static_cast<double>(columns);
    return fmt::format(
        "  a column is {}, longer than the shortest op: its {} is the busy share of it\n",
        to_text(round_up(column_ns)), style_.unicode ? "height" : "shade");
  }

  const Prediction& p_;
  const TimelineStyle& style_;
  bool numbered_ = false;
};

}  // namespace

TimelineCells timeline_cells(const Prediction& prediction, std::size_t columns) {
  return Painter(prediction, columns).paint();
}

std::string timeline(const Prediction& prediction, const TimelineStyle& style) {
  if (prediction.metrics.makespan.count() == 0) return "";
  return Pen(prediction, style).draw();
}

}  // namespace plumbline
