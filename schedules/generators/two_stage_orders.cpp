// Orders of devices with two stages: down and back up one pipeline, or in two pipelines of opposite
// directions.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "base/bug.h"
#include "schedules/generators/chunk_orders.h"

namespace plumbline {
namespace {

/// The micro-batches of a device's stage: `first`, `first + step`, ...
struct StageShare {
  std::uint32_t stage = 0;
  std::uint32_t first = 0;
  std::uint32_t step = 1;
};

constexpr std::size_t kDown = 0;
constexpr std::size_t kBack = 1;

/// The list of one device with two stages while it is written. One stage is near the beginning of a
/// pipeline, the other near the end of the same or another pipeline. For each stage it knows the
/// micro-batch of the next op.
class TwoStageList {
 public:
  /// `down` is the stage near the beginning. Each way has `micro_batches`.
  TwoStageList(StageShare down, StageShare back, std::uint32_t micro_batches)
      : micro_batches_(micro_batches), ways_{down, back} {}

  void forward(std::size_t way) { add(OpKind::forward, way); }
  void backward(std::size_t way) { add(OpKind::backward, way); }
  /// Adds an I. Its W is due from now on.
  void input(std::size_t way) {
    const std::uint32_t m = count(OpKind::backward_input, way);
    add(OpKind::backward_input, way);
    if (m < micro_batches_) due_.push_back(op(OpKind::backward_weight, way, m));
  }
  void weight(std::size_t way) { add(OpKind::backward_weight, way); }
  /// Adds the W that has been due longest, on either way.
  void oldest_weight() {
    if (due_.empty()) return;
    list_.push_back(due_.front());
    due_.pop_front();
  }

  /// The number of ops of the kind so far, including those beyond the last micro-batch.
  std::uint32_t count(OpKind kind, std::size_t way) const {
    // B and I share one count.
    const OpKind row = kind == OpKind::backward ? OpKind::backward_input : kind;
    return next_[way][static_cast<std::size_t>(row)];
  }
  bool has(OpKind kind, std::size_t way) const { return count(kind, way) < micro_batches_; }
  std::vector<Op> take() { return std::move(list_); }

 private:
  Op op(OpKind kind, std::size_t way, std::uint32_t k) const {
    const StageShare& on = ways_[way];
    return {kind, {on.stage}, {on.first + k * on.step}};
  }

  /// Adds the next op of its kind; nothing beyond the last micro-batch.
  void add(OpKind kind, std::size_t way) {
    const OpKind row = kind == OpKind::backward ? OpKind::backward_input : kind;
    const std::uint32_t m = next_[way][static_cast<std::size_t>(row)]++;
    if (m < micro_batches_) list_.push_back(op(kind, way, m));
  }

  std::uint32_t micro_batches_;
  std::array<StageShare, 2> ways_;
  std::array<std::array<std::uint32_t, 4>, 2> next_{};  ///< By way and kind.
  std::deque<Op> due_;
  std::vector<Op> list_;
};

template <class Step>
void repeat(std::uint32_t times, Step&& step) {
  for (std::uint32_t i = 0; i < times; ++i) step();
}

/// The list of a device in a vee.
TwoStageList vee_list(const ChunkShape& shape, std::uint32_t device) {
  return {{device}, {2 * shape.devices - 1 - device}, shape.micro_batches};
}

/// The eight phases of DualPipe at one position. There are `depth` positions from the beginning of
/// a pipeline to its turn, or to the middle, where it meets the stages near the end.
std::vector<Op> dual_pipe_list(TwoStageList list, std::uint32_t position, std::uint32_t depth,
                               std::uint32_t micro_batches) {
  const std::uint32_t behind = depth - 1 - position;
  repeat(2 * behind, [&] { list.forward(kDown); });
  repeat(position + 1, [&] {
    list.forward(kDown);
    list.forward(kBack);
  });
  repeat(behind, [&] {
    list.input(kBack);
    list.oldest_weight();
    list.forward(kBack);
  });
  repeat(micro_batches - 2 * depth + position + 1, [&] {
    list.forward(kDown);
    list.backward(kBack);
    list.forward(kBack);
    list.backward(kDown);
  });
  repeat(behind, [&] {
    list.backward(kBack);
    list.forward(kBack);
    list.backward(kDown);
  });
  // Half of these leave their W for later.
  for (std::uint32_t i = 0; i < 2 * (position + 1); ++i) {
    const std::size_t way = i % 2 == 0 ? kBack : kDown;
    if (i < position + 1) {
      list.backward(way);
    } else {
      list.input(way);
    }
  }
  repeat(behind, [&] {
    list.oldest_weight();
    list.input(kDown);
  });
  repeat(position + 1, [&] { list.oldest_weight(); });
  return list.take();
}

}  // namespace

OpLists zero_bubble_v(const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  // Planned for enough micro-batches to fill the pipeline. Those that do not exist are left out.
  const std::uint32_t planned = std::max(2 * p - 1, shape.micro_batches);
  OpLists lists;
  lists.reserve(p);
  for (std::uint32_t device = 0; device < p; ++device) {
    TwoStageList list = vee_list(shape, device);
    const auto split = [&](std::size_t way) {
      list.input(way);
      list.weight(way);
    };
    repeat(2 * (p - device) - 1, [&] { list.forward(kDown); });
    repeat(device, [&] {
      list.forward(kBack);
      list.forward(kDown);
    });
    repeat(p - device, [&] {
      list.forward(kBack);
      split(kBack);
    });
    while (list.count(OpKind::forward, kDown) < planned ||
           list.count(OpKind::forward, kBack) < planned) {
      if (list.count(OpKind::forward, kDown) < planned) list.forward(kDown);
      split(kDown);
      list.forward(kBack);
      split(kBack);
    }
    repeat(device, [&] {
      list.input(kDown);
      list.input(kBack);
    });
    repeat(p - device, [&] { split(kDown); });
    while (list.has(OpKind::backward_weight, kBack)) list.weight(kBack);
    while (list.has(OpKind::backward_weight, kDown)) list.weight(kDown);
    lists.push_back(list.take());
  }
  return lists;
}

OpLists dualpipe_v(const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  PLUMBLINE_CHECK(shape.micro_batches >= 2 * p, shape.micro_batches, p);
  OpLists lists;
  lists.reserve(p);
  for (std::uint32_t device = 0; device < p; ++device)
    lists.push_back(dual_pipe_list(vee_list(shape, device), device, p, shape.micro_batches));
  return lists;
}

OpLists dualpipe(const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  PLUMBLINE_CHECK(p % 2 == 0 && shape.micro_batches % 2 == 0, p, shape.micro_batches);
  PLUMBLINE_CHECK(shape.micro_batches >= 2 * p, shape.micro_batches, p);
  const std::uint32_t each = shape.micro_batches / 2;
  OpLists lists;
  lists.reserve(p);
  for (std::uint32_t device = 0; device < p; ++device) {
    const std::uint32_t other = p - 1 - device;
    const std::uint32_t position = std::min(device, other);
    // Even micro-batches begin on device 0, odd ones on the last.
    const std::uint32_t begins = device < other ? 0 : 1;
    lists.push_back(dual_pipe_list({{position, begins, 2}, {p - 1 - position, 1 - begins, 2}, each},
                                   position, p / 2, each));
  }
  return lists;
}

}  // namespace plumbline
