// The longest span of a device; then longer periods until no transfers meet.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/period.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/bug.h"
#include "sim/engine/idle.h"

namespace plumbline {
namespace {

/// A time for which a link or a card is in use.
struct Use {
  SimTime begin;
  SimTime end;
};

/// The uses of every link, and of the sending and the receiving half of every network card, each
/// ascending. Uses of a card by several links may overlap: then they are one.
std::vector<std::vector<Use>> uses_of_links(const OpGraph& graph, const Trace& trace) {
  std::vector<std::vector<Use>> links(graph.channels.size());
  std::map<Card, std::vector<Use>> cards;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (!graph.holds_channel(node)) continue;
    const SimTime begin = trace.spans[node].begin;
    const Use use{begin, begin + held(graph, trace, node)};
    if (use.end <= use.begin) continue;
    links[graph.nodes[node].resource - graph.slots()].push_back(use);
    const Path& path = graph.channel(node).path;
    if (path.out) cards[*path.out].push_back(use);
    if (path.in) cards[*path.in].push_back(use);
  }
  for (auto& [card, uses] : cards) links.push_back(std::move(uses));
  std::erase_if(links, [](const std::vector<Use>& uses) { return uses.empty(); });
  for (std::vector<Use>& uses : links) {
    std::sort(uses.begin(), uses.end(),
              [](const Use& a, const Use& b) { return a.begin < b.begin; });
    std::vector<Use> joined;
    for (const Use& use : uses) {
      const bool goes_on = !joined.empty() && use.begin <= joined.back().end;
      if (!goes_on) joined.push_back(use);
      joined.back().end = std::max(joined.back().end, use.end);
    }
    uses = std::move(joined);
  }
  return links;
}

/// The least shift by which the first of two overlapping uses is cleared, if any overlap: where the
/// uses of a later mini-batch, `shift` later, meet those of this one.
std::optional<Duration> clearing_shift(const std::vector<Use>& uses, Duration shift) {
  auto later = uses.begin();
  for (const Use& use : uses) {
    while (later != uses.end() && later->end + shift <= use.begin) ++later;
    if (later == uses.end()) return std::nullopt;
    if (later->begin + shift < use.end) return use.end - later->begin;
  }
  return std::nullopt;
}

/// The shortest period from `period` on in which the uses of no two mini-batches meet. Every step
/// is as short as can be: shorter ones leave the same two uses in each other's way.
Duration cleared(const std::vector<Use>& uses, Duration period) {
  const Duration all = uses.back().end - uses.front().begin;
  for (std::int64_t apart = 1; apart * period < all;) {
    const auto shift = clearing_shift(uses, apart * period);
    if (!shift) {
      ++apart;
      continue;
    }
    period = Duration((shift->count() + apart - 1) / apart);
    apart = 1;
  }
  return period;
}

}  // namespace

std::vector<DeviceSpan> device_spans(const OpGraph& graph, const Trace& trace) {
  PLUMBLINE_CHECK(!graph.flushes && graph.mini_batches.size() == 1, graph.mini_batches.size());
  std::vector<DeviceSpan> spans;
  for (const std::vector<std::uint32_t>& nodes : nodes_by_slot(graph)) {
    const std::uint32_t last = nodes.back();
    spans.push_back({nodes.front(), last, trace.spans[nodes.front()].begin,
                     trace.spans[last].begin + held(graph, trace, last)});
  }
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    if (activity.kind != ActivityKind::collective_end) continue;
    for (const std::uint32_t slot : graph.stage_slots[activity.stage.value]) {
      if (trace.spans[node].end <= spans[slot].end) continue;
      spans[slot].last = node;
      spans[slot].end = trace.spans[node].end;
    }
  }
  return spans;
}

const DeviceSpan& longest(const std::vector<DeviceSpan>& spans) {
  return *std::max_element(
      spans.begin(), spans.end(),
      [](const DeviceSpan& a, const DeviceSpan& b) { return a.length() < b.length(); });
}

Duration shortest_period(const OpGraph& graph, const Trace& trace) {
  // The trace says what the overhead took: in a measured run it is not the graph's.
  Duration period = longest(device_spans(graph, trace)).length() +
                    held(graph, trace, graph.mini_batches.front().gate);
  if (period.count() == 0) return period;
  const std::vector<std::vector<Use>> links = uses_of_links(graph, trace);
  for (Duration before{-1}; before != period;) {
    before = period;
    for (const std::vector<Use>& uses : links) period = cleared(uses, period);
  }
  return period;
}

}  // namespace plumbline
