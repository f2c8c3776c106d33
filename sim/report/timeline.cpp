// Cells first, characters second.
//
// SPDX-License-Identifier: MIT
#include "sim/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/quantity.h"
#include "base/table.h"
#include "base/wrap.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxRows = 64;

/// The drawing of a kind of cell: its character, its colour and its name.
struct Ink {
  std::string_view unicode;
  char ascii;
  std::string_view color;
  std::string_view name;
};

const Ink& ink(Shown kind) {
  static constexpr std::array<Ink, 8> inks = {{{"░", 'f', "34", "forward"},
                                               {"▓", 'B', "32", "backward"},
                                               {"▚", 'W', "36", "weight gradient"},
                                               {"▒", 'r', "34", "forward again"},
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
  Painter(const Outcome& p, std::size_t columns)
      : graph_(p.graph), trace_(p.trace), makespan_(p.metrics.makespan), columns_(columns) {
    if (p.setup.rules.recompute_early) is_again_ = early_forwards(p.graph);
  }

  TimelineCells paint() {
    TimelineCells rows;
    for (const auto& list : nodes_by_slot(graph_)) rows.push_back(paint_row(list));
    return rows;
  }

 private:
  /// The place of a time, in columns from the left edge.
  double place(SimTime time) const {
    return static_cast<double>(time.time_since_epoch().count()) * static_cast<double>(columns_) /
           static_cast<double>(makespan_.count());
  }
  std::size_t edge(SimTime time) const {
    return static_cast<std::size_t>(std::llround(place(time)));
  }
  SimTime end_of(std::uint32_t node) const {
    return trace_.spans[node].begin + held(graph_, trace_, node);
  }

  std::vector<TimelineCell> paint_row(const std::vector<std::uint32_t>& nodes) const {
    std::vector<TimelineCell> row(columns_);
    for (const IdleGap& gap : idle_gaps(graph_, trace_, nodes, SimTime(makespan_))) {
      if (waits(gap.cause)) fill(row, gap.begin, gap.end, {Shown::waiting, kNobody, {}});
    }
    std::uint32_t op = kNobody;  // the parts of an op are shown as one
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const ActivityKind kind = graph_.activities[*node].kind;
      if (!is_part(kind)) op = *node;
      const bool is_again = !is_again_.empty() && is_again_[*node];
      fill(row, trace_.spans[*node].begin, end_of(*node),
           {is_again ? Shown::recompute : kind_of(op_of(kind)), op, {}});
    }
    add_shares(row, nodes);
    return row;
  }

  void fill(std::vector<TimelineCell>& row, SimTime begin, SimTime end,
            const TimelineCell& cell) const {
    for (std::size_t c = edge(begin); c < edge(end); ++c) row[c] = cell;
  }

  /// Puts busy shares into the columns that contain narrow ops.
  void add_shares(std::vector<TimelineCell>& row, const std::vector<std::uint32_t>& nodes) const {
    bool any = false;
    std::optional<SimTime> first;  // the begin of an op in parts
    for (const std::uint32_t node : nodes) {
      if (!first) first = trace_.spans[node].begin;
      if (is_part(graph_.activities[node].kind)) continue;
      const double begin = place(*std::exchange(first, std::nullopt));
      if (!is_op(graph_.activities[node].kind)) continue;
      const double end = place(end_of(node));
      if (end <= begin || end - begin > 1 - 1e-9) continue;
      any = true;
      for (auto c = static_cast<std::size_t>(begin); c < columns_ && static_cast<double>(c) < end;
           ++c) {
        row[c] = {Shown::idle, kNobody, 0.0};
      }
    }
    if (!any) return;
    for (const std::uint32_t node : nodes) {
      const double begin = place(trace_.spans[node].begin);
      const double end = place(end_of(node));
      for (auto c = static_cast<std::size_t>(begin); c < columns_ && static_cast<double>(c) < end;
           ++c) {
        if (!row[c].busy) continue;
        const double part =
            std::min(end, static_cast<double>(c) + 1) - std::max(begin, static_cast<double>(c));
        row[c].busy = std::min(*row[c].busy + part, 1.0);
      }
    }
  }

  const OpGraph& graph_;
  const Trace& trace_;
  Duration makespan_;
  std::size_t columns_;
  std::vector<bool> is_again_;  ///< By node; empty: none is.
};

/// The number of columns, at most `max`, with which all ops begin and end between columns. If that
/// loses more than a quarter of the columns, `max`.
std::size_t whole_columns(const Outcome& p, std::size_t max) {
  std::int64_t unit = p.metrics.makespan.count();
  std::vector<bool> told(p.graph.costs.size(), false);
  for (const Node& node : p.graph.nodes) {
    if (told[node.cost]) continue;
    told[node.cost] = true;
    unit = std::gcd(unit, p.graph.costs[node.cost].hold.count());
    unit = std::gcd(unit, p.graph.costs[node.cost].latency.count());
  }
  const auto units = static_cast<std::size_t>(p.metrics.makespan.count() / unit);
  if (units > max) return max;
  const std::size_t columns = max / units * units;
  return 4 * columns >= 3 * max ? columns : max;
}

/// Turns cells into characters.
class Pen {
 public:
  Pen(const Outcome& p, const TimelineStyle& style) : p_(p), style_(style) {}

  std::string draw() {
    Picture picture = drawn(name(p_.graph.devices.back().value).size());
    // In a narrower picture more devices look alike, and their name may be longer.
    while (widest_name(picture) > picture.name_width) picture = drawn(widest_name(picture));
    std::string text = axis(picture.name_width + 4, picture.columns);
    const std::size_t shown = std::min(picture.rows.size(), kMaxRows);
    for (std::size_t i = 0; i < shown; ++i) {
      const Row& row = picture.rows[i];
      text += fmt::format("  {:<{}} {}{}{}\n", name(alike_name(row.devices)), picture.name_width,
                          bar(), row.text, bar());
    }
    std::size_t left_out = 0;
    for (std::size_t i = shown; i < picture.rows.size(); ++i)
      left_out += picture.rows[i].devices.size();
    if (left_out > 0) text += fmt::format("  ... and {} more devices\n", left_out);
    return text + legend(picture.cells, picture.columns);
  }

 private:
  /// The devices that are drawn alike, and their drawing.
  struct Row {
    std::vector<std::uint32_t> devices;
    std::string text;
  };
  struct Picture {
    std::size_t name_width;
    std::size_t columns;
    TimelineCells cells;
    std::vector<Row> rows;
  };

  Picture drawn(std::size_t name_width) {
    const std::size_t frame = name_width + 5;  // two spaces, a space and two bars
    const std::size_t columns =
        whole_columns(p_, std::max<std::size_t>(style_.width, frame + 4) - frame);
    Picture picture{name_width, columns, timeline_cells(p_, columns), {}};
    std::unordered_map<std::string, std::size_t> row_of;
    for (std::size_t slot = 0; slot < p_.graph.slots(); ++slot) {
      const auto [place, is_new] = row_of.emplace(row(picture.cells[slot]), picture.rows.size());
      if (is_new) picture.rows.push_back({{}, place->first});
      picture.rows[place->second].devices.push_back(p_.graph.devices[slot].value);
    }
    return picture;
  }

  template <class Devices>
  static std::string name(const Devices& devices) {
    return fmt::format("device {}", devices);
  }

  static std::size_t widest_name(const Picture& picture) {
    std::size_t widest = 0;
    for (const Row& row : picture.rows)
      widest = std::max(widest, name(alike_name(row.devices)).size());
    return widest;
  }

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
  std::string row(const std::vector<TimelineCell>& row) {
    std::string text;
    for (std::size_t c = 0; c < row.size();) {
      if (row[c].busy) {
        text += share(*row[c++].busy);
        continue;
      }
      std::size_t end = c;
      while (end < row.size() && !row[end].busy && row[end].kind == row[c].kind &&
             row[end].node == row[c].node)
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

  std::string share(double busy) const {
    static constexpr std::array<std::string_view, 9> blocks = {" ", "▁", "▂", "▃", "▄",
                                                               "▅", "▆", "▇", "█"};
    static constexpr std::string_view shades = " .:-=+*#@";
    const auto level = static_cast<std::size_t>(std::llround(busy * 8));
    return std::string(style_.unicode ? blocks[level] : shades.substr(level, 1));
  }

  std::string legend(const TimelineCells& cells, std::size_t columns) const {
    const auto occurs = [&](const auto& test) {
      return std::any_of(cells.begin(), cells.end(), [&](const auto& row) {
        return std::any_of(row.begin(), row.end(), test);
      });
    };
    std::string text;
    std::size_t used = 0;  // of the last line, in characters
    const auto add = [&](std::size_t width, std::string_view gap, const std::string& entry) {
      const bool fits = used > 0 && used + gap.size() + width <= style_.width;
      text += fmt::format("{}{}", fits ? gap : text.empty() ? "  " : "\n  ", entry);
      used = (fits ? used + gap.size() : 2) + width;
    };
    for (std::size_t k = 0; k <= static_cast<std::size_t>(Shown::idle); ++k) {
      const auto kind = static_cast<Shown>(k);
      if (occurs([&](const TimelineCell& cell) { return !cell.busy && cell.kind == kind; }))
        add(2 + ink(kind).name.size(), "  ",
            fmt::format("{} {}", in_color(kind, character(kind)), ink(kind).name));
    }
    if (numbered_) {
      const std::string numbers =
          p_.setup.slices > 1 ? "numbers are slices" : "numbers are micro-batches";
      add(numbers.size(), "; ", numbers);
    }
    text += text.empty() ? "" : "\n";
    if (!occurs([](const TimelineCell& cell) { return cell.busy.has_value(); })) return text;
    const double column_ns =
        static_cast<double>(p_.metrics.makespan.count()) / static_cast<double>(columns);
    return text +
           wrapped(fmt::format("  {} how much of a column of {} is busy, where an op is "
                               "narrower",
                               style_.unicode ? "▁ to █" : ". to @", to_text(round_up(column_ns))),
                   style_.width) +
           '\n';
  }

  const Outcome& p_;
  const TimelineStyle& style_;
  bool numbered_ = false;
};

}  // namespace

TimelineCells timeline_cells(const Outcome& outcome, std::size_t columns) {
  return Painter(outcome, columns).paint();
}

std::string timeline(const Outcome& outcome, const TimelineStyle& style) {
  if (outcome.metrics.makespan.count() == 0) return "";
  return Pen(outcome, style).draw();
}

}  // namespace plumbline
