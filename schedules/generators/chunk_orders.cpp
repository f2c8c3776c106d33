// One list per device, written op by op.
//
// SPDX-License-Identifier: MIT
#include "schedules/generators/chunk_orders.h"

#include <algorithm>

#include "base/bug.h"

namespace plumbline {
namespace {

/// The k-th op of this kind on a device of an interleaved pipeline. F go round chunk by chunk in
/// groups of g micro-batches; B, I and W do so from the last chunk.
Op interleaved(const ChunkShape& shape, std::uint32_t g, std::uint32_t device, OpKind kind,
               std::uint32_t k) {
  const std::uint32_t v = shape.chunks;
  const std::uint32_t first = k / (g * v) * g;  // first micro-batch of the group
  const std::uint32_t size = std::min(g, shape.micro_batches - first);
  const std::uint32_t within = k - first * v;
  const std::uint32_t turn = within / size;
  const std::uint32_t chunk = kind == OpKind::forward ? turn : v - 1 - turn;
  return {kind, {chunk * shape.devices + device}, {first + within % size}};
}

/// One list per device. `fill` writes it with add(kind, k), which adds its k-th op of a kind, if
/// there is one.
template <class Fill>
OpLists interleaved_lists(const ChunkShape& shape, Fill&& fill) {
  OpLists lists(shape.devices);
  const std::uint32_t g = shape.group_size();
  for (std::uint32_t device = 0; device < shape.devices; ++device) {
    lists[device].reserve(std::size_t{3} * shape.chunks * shape.micro_batches);
    fill(device, [&](OpKind kind, std::uint32_t k) {
      if (k < shape.chunks * shape.micro_batches)
        lists[device].push_back(interleaved(shape, g, device, kind, k));
    });
  }
  return lists;
}

}  // namespace

std::uint32_t usual_group(const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  const std::uint32_t m = shape.micro_batches;
  const std::uint32_t rounds = std::max(1U, m / p);
  if (m % rounds == 0) return m / rounds;
  std::uint32_t group = p;
  while (m % group != 0 && m % group < p) ++group;
  return group;
}

std::uint32_t ChunkShape::group_size() const {
  return group > 0 ? std::min(group, micro_batches) : usual_group(*this);
}

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
  const std::uint32_t all = v * shape.micro_batches;
  return interleaved_lists(shape, [&](std::uint32_t device, auto&& add) {
    const std::uint32_t warm_up =
        std::min(all, (v - 1) * shape.group_size() + 2 * (p - 1 - device));
    for (std::uint32_t k = 0; k < warm_up; ++k) add(OpKind::forward, k);
    for (std::uint32_t k = 0; k < all; ++k) {
      add(OpKind::forward, warm_up + k);
      add(OpKind::backward, k);
    }
  });
}

OpLists interleaved_zero_bubble(const ChunkShape& shape) {
  const std::uint32_t p = shape.devices;
  const std::uint32_t v = shape.chunks;
  const std::uint32_t all = v * shape.micro_batches;
  return interleaved_lists(shape, [&](std::uint32_t device, auto&& add) {
    const std::uint32_t warm_up = std::min(all, (v - 1) * shape.group_size() + p - 1 - device);
    for (std::uint32_t k = 0; k < warm_up; ++k) add(OpKind::forward, k);
    for (std::uint32_t k = 0; k < all + device; ++k) {
      add(OpKind::forward, warm_up + k);
      add(OpKind::backward_input, k);
      if (k >= device) add(OpKind::backward_weight, k - device);
    }
  });
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

OpLists zero_bubble_h2(const ChunkShape& shape) {
  return greedy_zero_bubble(shape, 2 * shape.devices - 1);
}

OpLists greedy_zero_bubble(const ChunkShape& shape, std::uint32_t max) {
  const std::uint32_t p = shape.devices;
  const std::uint32_t all = shape.micro_batches;
  /// The numbers of ops that a device has done.
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
    const std::vector<Done> before = done;  // a step sees the state after the previous step
    for (std::uint32_t device = 0; device < p; ++device) {
      Done& mine = done[device];
      if (mine.weight == all) continue;
      const std::uint32_t arrived = device == 0 ? all : before[device - 1].forward;
      const std::uint32_t returned = device + 1 == p ? mine.forward : before[device + 1].input;
      if (mine.input < std::min(returned, mine.forward)) {
        lists[device].push_back({OpKind::backward_input, {device}, {mine.input++}});
      } else if (mine.forward < arrived && mine.forward - mine.weight < max) {
        lists[device].push_back({OpKind::forward, {device}, {mine.forward++}});
      } else if (mine.weight < mine.input) {
        lists[device].push_back({OpKind::backward_weight, {device}, {mine.weight++}});
        if (mine.weight == all) ++finished;
      }
    }
  }
  return lists;
}

}  // namespace plumbline
