// Two pipelines in opposite directions, merged step by step.
//
// SPDX-License-Identifier: MIT
#include <array>
#include <optional>
#include <utility>

#include "base/bug.h"
#include "schedules/generators/chunk_orders.h"

namespace plumbline {
namespace {

/// One of Chimera's two directions on one device.
struct Way {
  std::uint32_t stage = 0;
  std::uint32_t next_forward = 0;  ///< The next micro-batch.
  std::uint32_t next_backward = 0;
};

/// All devices, in steps of equal length.
class BothWays {
 public:
  explicit BothWays(const ChunkShape& shape) : shape_(shape), held_(shape.devices) {
    for (std::uint32_t device = 0; device < shape.devices; ++device)
      devices_.push_back({Way{device, 0, 0}, Way{shape.devices - 1 - device, 1, 1}});
  }

  OpLists lists() {
    OpLists lists(shape_.devices);
    for (std::uint32_t left = 2 * shape_.devices * shape_.micro_batches; left > 0;) {
      before_ = devices_;  // a step sees the state after the previous step
      for (std::uint32_t device = 0; device < shape_.devices; ++device) {
        const auto op = take(device);
        if (!op) continue;
        lists[device].push_back(*op);
        --left;
      }
    }
    return lists;
  }

 private:
  std::optional<Op> take(std::uint32_t device) {
    Way* backward = nullptr;
    Way* forward = nullptr;
    for (std::uint32_t w = 0; w < 2; ++w) {
      Way& way = devices_[device][w];
      if (can_go_back(way, w, device) &&
          (backward == nullptr || way.next_backward < backward->next_backward))
        backward = &way;
      if (can_go_on(way, w) && held_[device] < shape_.devices &&
          (forward == nullptr || is_before(way, *forward)))
        forward = &way;
    }
    if (backward != nullptr) {
      --held_[device];
      return Op{OpKind::backward, {backward->stage}, {next(backward->next_backward)}};
    }
    if (forward == nullptr) return std::nullopt;
    ++held_[device];
    return Op{OpKind::forward, {forward->stage}, {next(forward->next_forward)}};
  }

  /// Whether `one` goes first: the forward of the older pair of micro-batches, else the one nearer
  /// to the end.
  static bool is_before(const Way& one, const Way& other) {
    if (one.next_forward / 2 != other.next_forward / 2)
      return one.next_forward < other.next_forward;
    return one.stage > other.stage;
  }
  static std::uint32_t next(std::uint32_t& micro_batch) {
    return std::exchange(micro_batch, micro_batch + 2);
  }

  const Way& neighbour(std::uint32_t w, std::uint32_t stage) const {
    return before_[w == 0 ? stage : shape_.devices - 1 - stage][w];
  }
  bool can_go_on(const Way& way, std::uint32_t w) const {
    if (way.next_forward >= shape_.micro_batches) return false;
    return way.stage == 0 || neighbour(w, way.stage - 1).next_forward > way.next_forward;
  }
  bool can_go_back(const Way& way, std::uint32_t w, std::uint32_t device) const {
    if (before_[device][w].next_forward <= way.next_backward) return false;
    return way.stage + 1 == shape_.devices ||
           neighbour(w, way.stage + 1).next_backward > way.next_backward;
  }

  ChunkShape shape_;
  std::vector<std::array<Way, 2>> devices_;
  std::vector<std::array<Way, 2>> before_;
  std::vector<std::uint32_t> held_;  ///< Micro-batches in flight, by device.
};

}  // namespace

OpLists chimera(const ChunkShape& shape) {
  PLUMBLINE_CHECK(shape.devices % 2 == 0 && shape.micro_batches % 2 == 0, shape.devices,
                  shape.micro_batches);
  return BothWays(shape).lists();
}

}  // namespace plumbline
