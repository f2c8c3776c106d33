// Ops that take longer while their device sends or receives: a slow model of its own, a closed
// form, what stays as it was.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/engine/simulate.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"
#include "tests/support/predicted.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// A run in small steps: at each instant all nodes are looked at. Times are in nanoseconds, not
/// rounded.
class SlowRun {
 public:
  explicit SlowRun(const OpGraph& graph)
      : graph_(graph),
        begin_(graph.size(), -1),
        left_(graph.size(), 0),
        free_(graph.size(), -1),
        end_(graph.size(), -1) {
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      left_[node] = static_cast<double>(graph.cost(node).hold.count());
      last_of(graph.nodes[node].resource, node);
      if (graph.nodes[node].peer_resource != graph.nodes[node].resource)
        last_of(graph.nodes[node].peer_resource, node);
    }
    for (const Join& join : graph.joins) joins_.emplace_back(join.node, join.inputs);
  }

  std::vector<double> ends() {
    for (;;) {
      while (start_what_can()) {
      }
      const double next = next_change();
      if (next < 0) return end_;
      step_to(next);
    }
  }

 private:
  void last_of(std::uint32_t resource, std::uint32_t node) {
    before_.resize(std::max<std::size_t>(before_.size(), node + 1));
    last_.resize(std::max<std::size_t>(last_.size(), resource + 1), graph_.size());
    if (last_[resource] != graph_.size()) before_[node].push_back(last_[resource]);
    last_[resource] = node;
  }

  bool has_ended(std::uint32_t node) const { return end_[node] >= 0 && end_[node] <= now_; }
  bool can_start(std::uint32_t node) const {
    if (begin_[node] >= 0) return false;
    for (const std::uint32_t before : before_[node]) {
      if (free_[before] < 0) return false;
    }
    const std::uint32_t input = graph_.nodes[node].input;
    if (input != graph_.size() && !has_ended(input)) return false;
    for (const auto& [joined, inputs] : joins_) {
      if (joined != node) continue;
      for (const std::uint32_t one : inputs) {
        if (!has_ended(one)) return false;
      }
    }
    return true;
  }

  bool start_what_can() {
    bool any = false;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (!can_start(node)) continue;
      begin_[node] = now_;
      any = true;
      if (left_[node] <= 0) release(node);
    }
    return any;
  }

  void release(std::uint32_t node) {
    free_[node] = now_;
    end_[node] = now_ + static_cast<double>(graph_.cost(node).latency.count());
  }

  /// How many times longer this node takes now.
  double factor(std::uint32_t node) const {
    double most = 1;
    if (!is_compute(graph_.activities[node].kind)) return most;
    const std::uint32_t slot = graph_.nodes[node].resource;
    for (std::uint32_t other = 0; other < graph_.size(); ++other) {
      const bool is_under_way = begin_[other] >= 0 && !has_ended(other);
      if (!is_under_way || !graph_.holds_channel(other) || graph_.cost(other).bytes.count == 0)
        continue;
      if (graph_.sender(other) != slot && graph_.receiver(other) != slot) continue;
      const bool is_ring = is_collective(graph_.activities[other].kind);
      most = std::max(most, is_ring ? graph_.overlap.collectives : graph_.overlap.transfers);
    }
    return most;
  }

  double next_change() const {
    double next = -1;
    const auto at = [&](double time) { next = next < 0 ? time : std::min(next, time); };
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (begin_[node] >= 0 && free_[node] < 0) at(now_ + left_[node] * factor(node));
      if (end_[node] > now_) at(end_[node]);
    }
    return next;
  }

  void step_to(double next) {
    std::vector<std::uint32_t> over;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (begin_[node] < 0 || free_[node] >= 0) continue;
      left_[node] -= (next - now_) / factor(node);
      if (left_[node] < 1e-6) over.push_back(node);
    }
    now_ = next;
    for (const std::uint32_t node : over) release(node);
  }

  const OpGraph& graph_;
  double now_ = 0;
  std::vector<double> begin_, left_, free_, end_;
  std::vector<std::vector<std::uint32_t>> before_;
  std::vector<std::uint32_t> last_;
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> joins_;
};

std::string random_training(Dice& dice) {
  constexpr std::array schedules = {"1f1b", "gpipe", "zb-h1", "eager-1f1b", "interleaved-1f1b"};
  const std::string schedule = schedules[static_cast<std::size_t>(dice.roll(0, 4))];
  const std::int64_t devices = dice.roll(1, 3), copies = dice.roll(1, 3);
  const std::int64_t chunks = schedule == "interleaved-1f1b" && devices > 1 ? 2 : 1;
  std::string layers;
  for (std::int64_t i = 0; i < devices * chunks + dice.roll(0, 3); ++i) {
    layers += fmt::format(
        "{}{{name: l{}, forward: {} us, backward: {} us, update: {} us, output: {} KiB, "
        "parameters: "
        "{} KiB}}",
        i == 0 ? "" : ", ", i, dice.roll(1, 300), dice.roll(1, 300), dice.roll(0, 40),
        dice.roll(0, 900), dice.roll(0, 9000));
  }
  const std::int64_t zero = schedule == "zb-h1" ? dice.roll(0, 2) : dice.roll(0, 3);
  return fmt::format(
      "version: 1\nmodel: {{layers: [{}]}}\ncluster: {{devices: {}, link: {{latency: {} us, "
      "bandwidth: {} MB/s}}, overlap_slowdown: {{collectives: {}, transfers: {}}}}}\nplan: "
      "{{stages: "
      "{}, data_parallel: {}}}\nschedule: {{name: {}{}, micro_batches: {}, bucket: {} KiB}}\n"
      "training: {{zero_stage: {}}}\n",
      layers, devices * copies, dice.roll(0, 9), dice.roll(500, 90'000),
      1 + 0.25 * static_cast<double>(dice.roll(0, 4)),
      1 + 0.25 * static_cast<double>(dice.roll(0, 4)), devices * chunks, copies,
      chunks > 1 ? schedule : (schedule == "interleaved-1f1b" ? "1f1b" : schedule),
      chunks > 1 ? ", chunks: 2" : "", devices * dice.roll(1, 2), dice.roll(1, 9000), zero);
}

TEST_CASE("a slow model agrees: ops take longer while their device sends or receives") {
  Dice dice(49);
  int slowed = 0;
  for (std::uint64_t trial = 0; trial < trials(1000); ++trial) {
    const std::string text = random_training(dice);
    CAPTURE(text);
    const Outcome all = predicted(text, Evaluation::events);
    const std::vector<double> ends = SlowRun(all.graph).ends();
    double last = 0;
    for (std::uint32_t node = 0; node < all.graph.size(); ++node) {
      const auto end = static_cast<double>(all.trace.spans[node].end.time_since_epoch().count());
      // The engine rounds each change to a nanosecond.
      CHECK(std::abs(end - ends[node]) <= 1 + 1e-4 * end);
      last = std::max(last, ends[node]);
    }
    const auto makespan = static_cast<double>(all.metrics.makespan.count());
    CHECK(makespan == close_to(last, 2e-5));
    // One copy tells what all of them do.
    CHECK(static_cast<double>(predicted(text).metrics.makespan.count()) ==
          close_to(makespan, 1e-6));
    OpGraph at_rest = all.graph;
    at_rest.overlap = {};
    const Trace plain = longest_path(at_rest);
    slowed += plain.spans.back().end < all.trace.spans.back().end ? 1 : 0;
  }
  CHECK(slowed > static_cast<int>(trials(1000)) / 3);
}

std::string data_parallel(const std::string& cluster) {
  return "version: 1\nmodel: {uniform: {layers: 6, forward: 2 ms, backward: 4 ms, parameters: 10 "
         "MB}}\ncluster: {devices: 2, link: {bandwidth: 5 GB/s}" +
         cluster + "}\nschedule: {name: data-parallel, micro_batches: 1, bucket: 10 MB}\n";
}

TEST_CASE("a backward beside an all-reduce takes what the all-reduce keeps from it longer") {
  // All-reduces take 2 ms. Beside one, a backward of 4 ms gets 2 / 1.25 ms of its work done. The
  // first has none beside it.
  const Outcome slow = predicted(data_parallel(", overlap_slowdown: 1.25"));
  const double more = 5 * (2 - 2 / 1.25);
  CHECK(std::chrono::duration<double, std::milli>(slow.metrics.makespan).count() ==
        doctest::Approx(6 * 6 + 2 + more).epsilon(1e-6));
  CHECK(predicted(data_parallel(", overlap_slowdown: {collectives: 1.25}")).metrics.makespan ==
        slow.metrics.makespan);
  // Transfers between stages are none here, and 1 changes nothing.
  const auto plain = predicted(data_parallel("")).metrics.makespan;
  CHECK(predicted(data_parallel(", overlap_slowdown: {transfers: 3}")).metrics.makespan == plain);
  CHECK(predicted(data_parallel(", overlap_slowdown: 1")).metrics.makespan == plain);
  CHECK(slow.setup.notes.back().find("what their devices send and receive beside them") !=
        std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
