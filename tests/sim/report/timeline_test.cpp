// The picture agrees with the trace, to within a column.
//
// SPDX-License-Identifier: MIT
#include "sim/report/timeline.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/diagnostic.h"
#include "sim/engine/idle.h"
#include "tests/support/examples.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

struct Case {
  std::string file;
  std::vector<std::string> overrides;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"four-stages", {}},     {"four-stages", {"schedule.name=gpipe"}},
      {"slow-link", {}},       {"blocking-transfers", {}},
      {"uneven-stages", {}},   {"shared-device", {}},
      {"two-servers", {}},     {"naive-two-devices", {"plan.data_parallel=1"}},
      {"pipedream-async", {}},
  };
  return all;
}

TEST_CASE("every op fills its time in columns, each edge at most half a column off") {
  for (const Case& c : cases()) {
    const Outcome p = predict_example(c.file, c.overrides);
    const std::size_t columns = 400;
    const TimelineCells cells = timeline_cells(p, columns);
    CAPTURE(c.file);
    const double column = static_cast<double>(p.metrics.makespan.count()) / columns;
    const auto nodes = nodes_by_slot(p.graph);
    for (std::size_t slot = 0; slot < cells.size(); ++slot) {
      REQUIRE(cells[slot].size() == columns);
      std::vector<std::size_t> first(p.graph.size(), columns), end(p.graph.size(), 0);
      for (std::size_t i = 0; i < columns; ++i) {
        const std::uint32_t node = cells[slot][i].node;
        if (node == kNobody) continue;
        first[node] = std::min(first[node], i);
        end[node] = i + 1;
      }
      for (const std::uint32_t node : nodes[slot]) {
        const auto begin_ns =
            static_cast<double>(p.trace.spans[node].begin.time_since_epoch().count());
        const auto took_ns = static_cast<double>(held(p.graph, p.trace, node).count());
        if (took_ns < column) continue;  // an update or a transfer may be narrower
        CHECK(std::abs(static_cast<double>(first[node]) - begin_ns / column) <= 0.5);
        CHECK(std::abs(static_cast<double>(end[node]) - (begin_ns + took_ns) / column) <= 0.5);
      }
    }
  }
}

TEST_CASE("idle columns stand for the idle time, those of communication apart") {
  for (const Case& c : cases()) {
    const Outcome p = predict_example(c.file, c.overrides);
    const std::size_t columns = 600;
    const TimelineCells cells = timeline_cells(p, columns);
    const double column = static_cast<double>(p.metrics.makespan.count()) / columns;
    const auto nodes = nodes_by_slot(p.graph);
    CAPTURE(c.file);
    for (std::size_t slot = 0; slot < cells.size(); ++slot) {
      double idle = 0, waiting = 0;
      for (const TimelineCell& cell : cells[slot]) {
        idle += cell.kind == Shown::idle || cell.kind == Shown::waiting ? 1 : 0;
        waiting += cell.kind == Shown::waiting ? 1 : 0;
      }
      const DeviceMetrics& device = p.metrics.devices[slot];
      const IdleByCause& cause = device.idle_by_cause;
      const Duration communication = cause.transfer + cause.rendezvous + cause.all_reduce;
      double gaps = 1, waits = 1;  // each may be a column off
      for (const IdleGap& gap :
           idle_gaps(p.graph, p.trace, nodes[slot], SimTime(p.metrics.makespan))) {
        ++gaps;
        waits += gap.cause == IdleCause::transfer || gap.cause == IdleCause::rendezvous ||
                         gap.cause == IdleCause::all_reduce
                     ? 1
                     : 0;
      }
      CHECK(std::abs(idle - static_cast<double>(device.idle.count()) / column) <= gaps);
      CHECK(std::abs(waiting - static_cast<double>(communication.count()) / column) <= waits);
    }
  }
}

TEST_CASE("where ops are narrower than columns the shares add up to the busy time") {
  for (const Case& c : cases()) {
    const Outcome p = predict_example(c.file, c.overrides);
    for (const std::size_t columns : {3U, 5U}) {
      const TimelineCells cells = timeline_cells(p, columns);
      CAPTURE(c.file);
      const double column =
          static_cast<double>(p.metrics.makespan.count()) / static_cast<double>(columns);
      for (std::size_t slot = 0; slot < cells.size(); ++slot) {
        double busy = 0;
        for (const TimelineCell& cell : cells[slot]) {
          const double share = cell.busy.value_or(cell.node == kNobody ? 0 : 1);
          CHECK(share >= 0);
          CHECK(share <= 1);
          busy += share;
        }
        // Columns with shares are exact; one without is at most half a column off at each edge.
        CHECK(std::abs(busy * column - static_cast<double>(p.metrics.devices[slot].busy.count())) <=
              1e-9 * static_cast<double>(p.metrics.makespan.count()) +
                  (std::all_of(
                       cells[slot].begin(), cells[slot].end(),
                       [](const TimelineCell& cell) { return cell.busy || cell.node == kNobody; })
                       ? 0
                       : 2 * column));
      }
    }
  }
}

TEST_CASE("one narrow op makes shares of its columns alone") {
  const Outcome p = predict_example(
      "naive-two-devices",
      {"schedule.micro_batches=1", "model.uniform.forward=1 ms", "model.uniform.backward=20 ms"});
  // 0F0 and 1F0 are a third of a column of 3 ms wide; 1B0 begins in the same one.
  CHECK(timeline(p, {.width = 27, .unicode = true, .color = false}) ==
        "            0        42 ms\n"
        "  device 0 │▃······0▓▓▓▓▓▓│\n"
        "  device 1 │▅0▓▓▓▓▓·······│\n"
        "  ▓ backward  · idle\n"
        "  numbers are micro-batches\n"
        "  ▁ to █ how much of a\n"
        "    column of 3 ms is busy,\n"
        "    where an op is narrower\n");
}

TEST_CASE("GPipe on two devices as text, in every style") {
  const Outcome p = predict_example("naive-two-devices",
                                    {"schedule.name=gpipe", "schedule.micro_batches=3",
                                     "model.uniform.forward=1 ms", "model.uniform.backward=2 ms"});
  CHECK(timeline(p, {.width = 37, .unicode = true, .color = false}) ==
        "            0                  12 ms\n"
        "  device 0 │0░1░2░······0▓▓▓1▓▓▓2▓▓▓│\n"
        "  device 1 │··0░1░2░0▓▓▓1▓▓▓2▓▓▓····│\n"
        "  ░ forward  ▓ backward  · idle\n  numbers are micro-batches\n");
  CHECK(timeline(p, {.width = 37, .unicode = false, .color = false}) ==
        "            0                  12 ms\n"
        "  device 0 |0f1f2f......0BBB1BBB2BBB|\n"
        "  device 1 |..0f1f2f0BBB1BBB2BBB....|\n"
        "  f forward  B backward  . idle\n  numbers are micro-batches\n");
  const std::string colored = timeline(p, {.width = 37, .unicode = false, .color = true});
  CHECK(colored.find("\x1b[34m0f\x1b[0m\x1b[34m1f\x1b[0m") != std::string::npos);
  CHECK(timeline(p, {.width = 20, .unicode = false, .color = false}).find("how much of") !=
        std::string::npos);
}

TEST_CASE("rows of a narrow picture are as long as each other, however their names are") {
  const Outcome p =
      predict_example("four-stages", {"model.uniform.layers=64", "plan.stages=32",
                                      "cluster.devices=32", "schedule.micro_batches=2"});
  for (std::size_t width = 24; width < 60; ++width) {
    const std::string text = timeline(p, {.width = width, .unicode = false, .color = false});
    std::size_t length = 0;
    for (auto at = text.find("\n  device"); at != std::string::npos;
         at = text.find("\n  device", at + 1)) {
      const std::size_t own = text.find('\n', at + 1) - at;
      CHECK((length == 0 || own == length));
      length = own;
    }
    CHECK(length > 0);
  }
}

TEST_CASE("a run that takes no time has no picture") {
  const Outcome p = predict_example("naive-two-devices",
                                    {"model.uniform.forward=0 s", "model.uniform.backward=0 s"});
  CHECK(timeline(p, {}).empty());
}

}  // namespace
}  // namespace plumbline::test
