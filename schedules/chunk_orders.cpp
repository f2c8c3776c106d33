// One list a device, written op by op. SPDX-License-Identifier: MIT
#include "schedules/chunk_orders.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>

#include "models/bug.h"

namespace plumbline {
namespace {

/// The list of one device of a vee while it is written: its stage on the way down and the one on
/// the way back, each with the micro-batch that its next op has.
class VeeList {
 public:
  VeeList(const ChunkShape& shape, std::uint32_t device)
      : micro_batches_(shape.micro_batches),
        ways_{Way{device, {}}, Way{2 * shape.devices - 1 - device, {}}} {}

  static constexpr std::size_t kDown = 0;
  static constexpr std::size_t kBack = 1;

  void forward(std::size_t way) { add(OpKind::forward, way); }
  void backward(std::size_t way) { add(OpKind::backward, way); }
  /// Its weight part is due from now on.
  void input(std::size_t way) {
    const std::uint32_t m = count(OpKind::backward_input, way);
    add(OpKind::backward_input, way);
    if (m < micro_batches_) due_.push_back({OpKind::backward_weight, {ways_[way].stage}, {m}});
  }
  void weight(std::size_t way) { add(OpKind::backward_weight, way); }
  /// The weight part that is due longest, whatever its way.
  void oldest_weight() {
    if (due_.empty()) return;
    list_.push_back(due_.front());
    due_.pop_front();
  }

  /// How many of the kind have been written, those beyond the last micro-batch counted in.
  std::uint32_t count(OpKind kind, std::size_t way) const {
    // B and I are one row of micro-batches.
    const OpKind row = kind == OpKind::backward ? OpKind::backward_input : kind;
    return ways_[way].next[static_cast<std::size_t>(row)];
  }
  bool has(OpKind kind, std::size_t way) const { return count(kind, way) < micro_batches_; }
  std::vector<Op> take() { return std::move(list_); }

 private:
  struct Way {
    std::uint32_t stage = 0;
    std::array<std::uint32_t, 4> next{};  ///< By kind.
  };

  /// The next one of its kind; nothing beyond the last micro-batch.
  void add(OpKind kind, std::size_t way) {
    const OpKind row = kind == OpKind::backward ? OpKind::backward_input : kind;
    const std::uint32_t m = ways_[way].next[static_cast<std::size_t>(row)]++;
    if (m < micro_batches_) list_.push_back({kind, {ways_[way].stage}, {m}});
  }

  std::uint32_t micro_batches_;
  std::array<Way, 2> ways_;
  std::deque<Op> due_;
  std::vector<Op> list_;
};

constexpr std::size_t kDown = VeeList::kDown;
constexpr std::size_t kBack = VeeList::kBack;

template <class Step>
void repeat(std::uint32_t times, Step&& step) {
  for (std::uint32_t i = 0; i < times; ++i) step();
}

}  // namespace

std::vector<std::vector<std::uint32_t>> placed_stages(StagePlacement placement,
                                                      const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  std::vector<std::vector<std::uint32_t>> devices(shape.stages());
  for (std::uint32_t s = 0; s < devices.size(); ++s) {
    const bool back = placement == StagePlacement::vee && s >= p;
    devices[s] = {back ? 2 * p - 1 - s : s % p};
    if (placement == StagePlacement::both) devices[s].push_back(p - 1 - s);
  }
  return devices;
}

OpLists interleaved_1f1b(const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  const std::uint32_t v = shape.chunks;
  PLUMBLINE_CHECK(shape.micro_batches % p == 0, shape.micro_batches, p);
  const std::uint32_t all = v * shape.micro_batches;
  OpLists lists(p);
  for (std::uint32_t device = 0; device < p; ++device) {
    std::vector<Op>& list = lists[device];
    list.reserve(std::size_t{2} * all);
    const auto add = [&](OpKind kind, std::uint32_t k) {
      const std::uint32_t turn = k / p % v;
      const std::uint32_t chunk = kind == OpKind::forward ? turn : v - 1 - turn;
      list.push_back({kind, {chunk * p + device}, {k / (p * v) * p + k % p}});
    };
    const std::uint32_t warm_up = std::min(all, (v - 1) * p + 2 * (p - 1 - device));
    for (std::uint32_t k = 0; k < warm_up; ++k) add(OpKind::forward, k);
    for (std::uint32_t k = 0; k < all; ++k) {
      if (warm_up + k < all) add(OpKind::forward, warm_up + k);
      add(OpKind::backward, k);
    }
  }
  return lists;
}

OpLists looped_breadth_first(const ChunkShape& shape) {
  OpLists lists(shape.devices);
  for (std::uint32_t device = 0; device < shape.devices; ++device) {
    std::vector<Op>& list = lists[device];
    list.reserve(std::size_t{2} * shape.chunks * shape.micro_batches);
    for (std::uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (std::uint32_t m = 0; m < shape.micro_batches; ++m)
        list.push_back({OpKind::forward, {chunk * shape.devices + device}, {m}});
    }
    for (std::uint32_t chunk = shape.chunks; chunk-- > 0;) {
      for (std::uint32_t m = shape.micro_batches; m-- > 0;)
        list.push_back({OpKind::backward, {chunk * shape.devices + device}, {m}});
    }
  }
  return lists;
}

OpLists zero_bubble_h1(const ChunkShape& shape) {
  const std::uint32_t all = shape.micro_batches;
  OpLists lists(shape.devices);
  for (std::uint32_t device = 0; device < shape.devices; ++device) {
    std::vector<Op>& list = lists[device];
    list.reserve(std::size_t{3} * all);
    const auto add = [&](OpKind kind, std::uint32_t m) {
      if (m < all) list.push_back({kind, {device}, {m}});
    };
    const std::uint32_t warm_up = shape.devices - 1 - device;
    for (std::uint32_t m = 0; m < warm_up; ++m) add(OpKind::forward, m);
    for (std::uint32_t k = 0; k < all; ++k) {
      add(OpKind::forward, warm_up + k);
      add(OpKind::backward_input, k);
      if (k >= device) add(OpKind::backward_weight, k - device);
    }
    for (std::uint32_t m = all - std::min(all, device); m < all; ++m)
      add(OpKind::backward_weight, m);
  }
  return lists;
}

OpLists zero_bubble_h2(const ChunkShape& shape) {
  return greedy_zero_bubble(shape, 2 * shape.devices - 1);
}

OpLists greedy_zero_bubble(const ChunkShape& shape, std::uint32_t most) {
  const std::uint32_t p = shape.devices;
  const std::uint32_t all = shape.micro_batches;
  /// How many of each a device has done.
  struct Done {
    std::uint32_t forward = 0;
    std::uint32_t input = 0;
    std::uint32_t weight = 0;
  };
  std::vector<Done> done(p);
  OpLists lists(p);
  for (std::vector<Op>& list : lists) list.reserve(std::size_t{3} * all);
  std::uint32_t finished = 0;
  while (finished < p) {
    const std::vector<Done> before = done;  // what a step finds is what the one before has left
    for (std::uint32_t device = 0; device < p; ++device) {
      Done& mine = done[device];
      if (mine.weight == all) continue;
      const std::uint32_t arrived = device == 0 ? all : before[device - 1].forward;
      const std::uint32_t returned = device + 1 == p ? mine.forward : before[device + 1].input;
      if (mine.input < std::min(returned, mine.forward)) {
        lists[device].push_back({OpKind::backward_input, {device}, {mine.input++}});
      } else if (mine.forward < arrived && mine.forward - mine.weight < most) {
        lists[device].push_back({OpKind::forward, {device}, {mine.forward++}});
      } else if (mine.weight < mine.input) {
        lists[device].push_back({OpKind::backward_weight, {device}, {mine.weight++}});
        if (mine.weight == all) ++finished;
      }
    }
  }
  return lists;
}

OpLists zero_bubble_v(const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  // Laid out for as many micro-batches as it takes to fill the pipeline; those that are not there
  // are left out.
  const std::uint32_t planned = std::max(2 * p - 1, shape.micro_batches);
  OpLists lists;
  lists.reserve(p);
  for (std::uint32_t device = 0; device < p; ++device) {
    VeeList list(shape, device);
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
  for (std::uint32_t device = 0; device < p; ++device) {
    VeeList list(shape, device);
    const std::uint32_t behind = p - 1 - device;
    repeat(2 * behind, [&] { list.forward(kDown); });
    repeat(device + 1, [&] {
      list.forward(kDown);
      list.forward(kBack);
    });
    repeat(behind, [&] {
      list.input(kBack);
      list.oldest_weight();
      list.forward(kBack);
    });
    repeat(shape.micro_batches - 2 * p + device + 1, [&] {
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
    // Half of these leave their weight part for later.
    for (std::uint32_t i = 0; i < 2 * (device + 1); ++i) {
      const std::size_t way = i % 2 == 0 ? kBack : kDown;
      if (i < device + 1) {
        list.backward(way);
      } else {
        list.input(way);
      }
    }
    repeat(behind, [&] {
      list.oldest_weight();
      list.input(kDown);
    });
    repeat(device + 1, [&] { list.oldest_weight(); });
    lists.push_back(list.take());
  }
  return lists;
}

namespace {

/// One of Chimera's two ways on one device.
struct Way {
  std::uint32_t stage = 0;
  std::uint32_t next_forward = 0;  ///< Micro-batches.
  std::uint32_t next_backward = 0;
};

/// All devices in steps of equal length.
class BothWays {
 public:
  explicit BothWays(const ChunkShape& shape) : shape_(shape), held_(shape.devices) {
    for (std::uint32_t device = 0; device < shape.devices; ++device)
      devices_.push_back({Way{device, 0, 0}, Way{shape.devices - 1 - device, 1, 1}});
  }

  OpLists lists() {
    OpLists lists(shape_.devices);
    for (std::uint32_t left = 2 * shape_.devices * shape_.micro_batches; left > 0;) {
      before_ = devices_;  // what a step finds is what the one before has left
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

  /// Of two forwards the one of the older pair of micro-batches, else the one nearer to the end.
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
