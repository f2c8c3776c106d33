// Differences to the previous values are nearly all equal in a regular run, so they compress well.
//
// SPDX-License-Identifier: MIT
#include "sim/report/report_columns.h"

#include <algorithm>
#include <array>

#include "base/bug.h"
#include "sim/engine/idle.h"

namespace plumbline {
namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;
/// The largest number of memory points in one file. Each slot gets its share, but at least
/// kFewestMemoryPoints.
constexpr std::size_t kMaxMemoryPoints = 65'536;
constexpr std::size_t kFewestMemoryPoints = 64;
constexpr std::size_t kMemoryPointsOfSlot = 2048;

class Column {
 public:
  explicit Column(std::string& bytes) : bytes_(bytes) {}

  void put(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void put_signed(std::int64_t value) { put(zigzag(value)); }
  static std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  }

 private:
  std::string& bytes_;
};

/// The last value of each kind in a lane.
using ByKind = std::array<std::int64_t, kActivityKinds>;

class RunWriter {
 public:
  RunWriter(const Outcome& outcome, std::int64_t tick_ns, std::string& bytes)
      : outcome_(outcome),
        graph_(outcome.graph),
        spans_(outcome.trace.spans),
        slot_nodes_(nodes_by_slot(outcome.graph)),
        out_(bytes) {
    layout_.tick_ns = tick_ns;
  }

  ColumnLayout write() {
    layout_.makespan = ticks(SimTime(outcome_.metrics.makespan));
    line_up();
    write_items();
    write_gaps();
    write_memory();
    return std::move(layout_);
  }

 private:
  std::int64_t ticks(SimTime time) const {
    return time.time_since_epoch().count() / layout_.tick_ns;
  }
  std::size_t kind(std::uint32_t node) const {
    return static_cast<std::size_t>(graph_.activities[node].kind);
  }

  void line_up() {
    std::vector<std::vector<std::uint32_t>> lanes = slot_nodes_;
    lanes.resize(graph_.slots() + graph_.channels.size() + 1);
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const std::uint32_t resource = graph_.nodes[node].resource;
      if (resource < graph_.slots()) continue;
      lanes[std::min<std::size_t>(resource, lanes.size() - 1)].push_back(node);
    }
    item_of_.assign(graph_.size(), kNobody);
    for (const auto& lane : lanes) {
      starts_.push_back(nodes_.size());
      for (const std::uint32_t node : lane) {
        // A blocking transfer has two items. Others refer to the sender's.
        if (item_of_[node] == kNobody) item_of_[node] = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back(node);
      }
    }
    starts_.push_back(nodes_.size());
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const auto items = static_cast<std::uint32_t>(lanes[lane].size());
      if (lane < graph_.slots()) {
        layout_.slot_items.push_back(items);
        layout_.slot_busy.push_back(busy(lanes[lane]));
      } else if (lane + 1 < lanes.size()) {
        layout_.channel_items.push_back(items);
      } else {
        layout_.moment_items = items;
      }
    }
  }

  std::int64_t busy(const std::vector<std::uint32_t>& nodes) const {
    std::int64_t sum = 0;
    for (const std::uint32_t node : nodes) {
      // The page assumes that a node on a stream holds it during its whole span.
      PLUMBLINE_CHECK(graph_.cost(node).latency.count() == 0, node);
      sum += ticks(spans_[node].end) - ticks(spans_[node].begin);
    }
    return sum;
  }

  /// Calls `write(node, item, before)` for every item of every lane. `before` is the node before it
  /// in the lane, or kNobody. `begin_lane` is called before each lane.
  template <class Begin, class Write>
  void each_item(const Begin& begin_lane, const Write& write) {
    for (std::size_t lane = 0; lane + 1 < starts_.size(); ++lane) {
      begin_lane();
      std::uint32_t before = kNobody;
      for (std::size_t item = starts_[lane]; item < starts_[lane + 1]; ++item) {
        write(nodes_[item], item, before);
        before = nodes_[item];
      }
    }
  }

  void write_items() {
    std::int64_t last = 0;
    ByKind of_kind{};
    const auto begin_lane = [&] {
      last = 0;
      of_kind.fill(0);
    };
    const auto difference = [&](std::int64_t value) {
      out_.put_signed(value - last);
      last = value;
    };
    const auto difference_in_kind = [&](std::uint32_t node, std::int64_t value) {
      out_.put_signed(value - of_kind[kind(node)]);
      of_kind[kind(node)] = value;
    };
    each_item(begin_lane,
              [&](std::uint32_t node, std::size_t, std::uint32_t) { out_.put(kind(node)); });
    each_item(begin_lane, [&](std::uint32_t node, std::size_t, std::uint32_t) {
      difference(graph_.activities[node].stage.value);
    });
    each_item(begin_lane, [&](std::uint32_t node, std::size_t, std::uint32_t) {
      difference_in_kind(node, graph_.activities[node].micro_batch.value);
    });
    each_item(begin_lane, [&](std::uint32_t node, std::size_t, std::uint32_t) {
      difference(graph_.nodes[node].cost);
    });
    each_item(begin_lane, [&](std::uint32_t node, std::size_t, std::uint32_t before) {
      out_.put_signed(ticks(spans_[node].begin) -
                      (before == kNobody ? 0 : ticks(spans_[before].end)));
    });
    each_item(begin_lane, [&](std::uint32_t node, std::size_t, std::uint32_t) {
      difference_in_kind(node, ticks(spans_[node].end) - ticks(spans_[node].begin));
    });
    std::array<bool, kActivityKinds> told{};
    const auto begin_releases = [&] { told.fill(false); };
    each_item(begin_releases, [&](std::uint32_t node, std::size_t item, std::uint32_t before) {
      const std::uint32_t by = spans_[node].released_by;
      if (by == kNobody) return out_.put(0);
      if (by == before) return out_.put(1);
      const std::size_t k = kind(node);
      const std::int64_t reference = told[k] ? of_kind[k] : static_cast<std::int64_t>(item);
      out_.put(2 + Column::zigzag(static_cast<std::int64_t>(item_of_[by]) - reference));
      told[k] = true;
      of_kind[k] = item_of_[by];
    });
  }

  void write_gaps() {
    const SimTime end(outcome_.metrics.makespan);
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      const auto gaps = idle_gaps(graph_, outcome_.trace, slot_nodes_[slot], end);
      layout_.slot_gaps.push_back(static_cast<std::uint32_t>(gaps.size()));
      std::int64_t cursor = 0;
      for (const IdleGap& gap : gaps) {
        out_.put(static_cast<std::uint64_t>(ticks(gap.begin) - cursor));
        cursor = ticks(gap.end);
      }
      for (const IdleGap& gap : gaps)
        out_.put(static_cast<std::uint64_t>(ticks(gap.end) - ticks(gap.begin)));
      for (const IdleGap& gap : gaps) out_.put(static_cast<std::uint64_t>(gap.cause));
    }
  }

  struct MemoryPoint {
    std::int64_t at = 0;
    std::int64_t bytes = 0;
    std::int64_t activations = 0;  ///< Those among the bytes.
  };

  /// Adds the points of an instant at which the curve changes: the maximum at that instant, then
  /// the value after it.
  static void add_point(std::vector<MemoryPoint>& curve, const MemoryPoint& max,
                        const MemoryPoint& left) {
    if (max.bytes > left.bytes) curve.push_back(max);
    if (!holds_same(curve.back(), left)) curve.push_back(left);
  }

  static bool holds_same(const MemoryPoint& a, const MemoryPoint& b) {
    return a.bytes == b.bytes && a.activations == b.activations;
  }

  std::vector<MemoryPoint> memory_curve(const std::vector<MemoryStep>& steps, Bytes fixed) const {
    std::vector<MemoryPoint> curve = {{0, fixed.count, 0}};
    for (std::size_t i = 0; i < steps.size();) {
      const SimTime at = steps[i].at;
      MemoryPoint max, left;
      for (; i < steps.size() && steps[i].at == at; ++i) {
        left = {ticks(at), (fixed + steps[i].activations + steps[i].buffers).count,
                steps[i].activations.count};
        if (left.bytes > max.bytes) max = left;
      }
      add_point(curve, max, left);
    }
    return curve;
  }

  /// At most `max` points: the largest one of every slice of the run.
  std::vector<MemoryPoint> sampled(const std::vector<MemoryPoint>& curve, std::size_t max) const {
    std::vector<MemoryPoint> samples;
    samples.reserve(max);
    const auto slices = static_cast<std::int64_t>(max);
    const std::int64_t width = layout_.makespan / slices + 1;
    std::size_t next = 0;
    MemoryPoint held;
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      MemoryPoint largest = held;
      for (; next < curve.size() && curve[next].at < (slice + 1) * width; ++next) {
        held = curve[next];
        if (held.bytes > largest.bytes) largest = held;
      }
      largest.at = slice * width;
      if (samples.empty() || !holds_same(samples.back(), largest)) samples.push_back(largest);
    }
    return samples;
  }

  void write_memory() {
    const auto steps =
        memory_steps(graph_, outcome_.trace, outcome_.setup.costs,
                     outcome_.setup.schedule.shape.positions, memory_rules(outcome_.setup));
    const std::size_t max =
        std::clamp(kMaxMemoryPoints / graph_.slots(), kFewestMemoryPoints, kMemoryPointsOfSlot);
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      const MemoryParts& peak = outcome_.memory[slot].peak;
      auto curve = memory_curve(steps[slot], peak.sum() - peak.activations - peak.buffers);
      layout_.memory_sampled.push_back(curve.size() > max);
      if (curve.size() > max) curve = sampled(curve, max);
      layout_.memory_points.push_back(static_cast<std::uint32_t>(curve.size()));
      std::int64_t last = 0;
      for (const MemoryPoint& point : curve) {
        out_.put(static_cast<std::uint64_t>(point.at - last));
        last = point.at;
      }
      last = 0;
      for (const MemoryPoint& point : curve) {
        out_.put_signed(point.bytes - last);
        last = point.bytes;
      }
      last = 0;
      for (const MemoryPoint& point : curve) {
        out_.put_signed(point.activations - last);
        last = point.activations;
      }
    }
  }

  const Outcome& outcome_;
  const OpGraph& graph_;
  const std::vector<Span>& spans_;
  const std::vector<std::vector<std::uint32_t>> slot_nodes_;
  std::vector<std::uint32_t> nodes_;    ///< The node of each item.
  std::vector<std::uint32_t> item_of_;  ///< The item of each node.
  std::vector<std::size_t> starts_;     ///< First item of each lane, and the end.
  ColumnLayout layout_;
  Column out_;
};

}  // namespace

std::int64_t tick_for(Duration makespan) {
  std::int64_t tick_ns = 1;
  while (makespan.count() / tick_ns >= kExact) tick_ns *= 1000;
  return tick_ns;
}

ColumnLayout append_columns(const Outcome& outcome, std::int64_t tick_ns, std::string& bytes) {
  return RunWriter(outcome, tick_ns, bytes).write();
}

}  // namespace plumbline
