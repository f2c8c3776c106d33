// Sums over layers, and the tensors that cross a cut.
//
// SPDX-License-Identifier: MIT
#include "schedules/stages/stage_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "base/bug.h"

namespace plumbline {

Bytes StageCosts::crossing_made_in(std::uint32_t first, std::uint32_t last) const {
  Bytes sum;
  for (const CrossingTensor& tensor : tensors) {
    if (tensor.made >= first && tensor.made <= last && tensor.last_used > last) sum += tensor.bytes;
  }
  return sum;
}

Bytes StageCosts::only_crossing_made_in(std::uint32_t first, std::uint32_t last) const {
  Bytes sum;
  for (const CrossingTensor& tensor : tensors) {
    if (tensor.made >= first && tensor.made <= last && tensor.first_used > last && !tensor.is_kept)
      sum += tensor.bytes;
  }
  return sum;
}

Checkpoints StageCosts::checkpoints(std::uint32_t s, std::uint32_t last) const {
  Checkpoints sum = stages[s].within;
  for (const CrossingTensor& tensor : tensors) {
    if (tensor.made == s && tensor.first_used > s && tensor.activation)
      sum.add(tensor.first_used <= last ? tensor.bytes : Bytes{}, *tensor.activation);
  }
  return sum;
}

Bytes gradient_bytes(Bytes parameters, double width) {
  if (width == 1) return parameters;  // exact beyond 2^53, too
  constexpr double max = 1e18;
  // Slightly less, so that 110 B x 1.1 are 121 B.
  const double bytes = std::ceil(static_cast<double>(parameters.count) * width * (1 - 1e-12));
  return {static_cast<std::int64_t>(std::min(bytes, max))};
}

namespace {

double sent_s(const MeasuredTime& time, double share) {
  return share > 0 ? share * seconds(time.mean) : 0;
}

void add_sent(const LayerCosts& layer, SentTimes& sum) {
  const SentShares& sent = layer.sent;
  sum.forward += sent_s(layer.forward, sent.forward);
  sum.backward += sent_s(layer.backward, sent.backward);
  if (layer.split) {
    sum.backward_input += sent_s(layer.split->input, sent.backward_input);
    sum.backward_weight += sent_s(layer.split->weight, sent.backward_weight);
  } else {
    sum.backward_input += sent_s(layer.backward, sent.backward);
  }
  if (layer.recomputation == Recomputed::all) {
    sum.again += sent_s(layer.forward, sent.forward);
  } else {
    sum.again += sent_s(layer.again(), sent.again);
  }
}

void add_overlap(const LayerCosts& layer, StageCost& sum) {
  const auto of = [](const MeasuredTime& time, double sending, double computing) {
    return Overlap{sending * seconds(time.mean), computing * seconds(time.mean)};
  };
  const Overlap forward = of(layer.forward, layer.sent.forward, layer.free.forward);
  sum.forward_overlap = sum.forward_overlap + forward;
  sum.backward_overlap =
      sum.backward_overlap + of(layer.backward, layer.sent.backward, layer.free.backward);
  if (layer.recomputation == Recomputed::all) {
    const double computing = forward.computing - seconds(layer.skipped);
    sum.recompute_overlap =
        sum.recompute_overlap + Overlap{forward.sending, std::max(0.0, computing)};
  } else if (!layer.timed) {  // what is recomputed separately hides nothing that it sends
    sum.recompute_overlap =
        sum.recompute_overlap + of(layer.again(), layer.sent.again, 1 - layer.sent.again);
  }
}

}  // namespace

namespace {

std::size_t stage_of(const Partition& partition, LayerId layer) {
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    const std::vector<LayerId>& layers = partition.stages[s].layers;
    if (std::find(layers.begin(), layers.end(), layer) != layers.end()) return s;
  }
  PLUMBLINE_CHECK(false, layer.value);
  return 0;
}

LayerId owner_of(const LayerGraph& graph, LayerId layer) {
  const std::string& name = graph.layer(layer).tied_to;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (graph.layer({i}).name == name) return {i};
  }
  PLUMBLINE_CHECK(false, name);
  return {};
}

/// The tables that stages on different devices hold, one for each layer that others are tied to.
std::vector<TiedTable> tied_tables(const LayerGraph& graph, const Partition& partition,
                                   double gradient_width) {
  std::map<std::uint32_t, TiedTable> tables;  // by the layer whose table it is
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Layer& layer = graph.layer({i});
    if (layer.tied.count == 0 || shares_table(graph, partition, {i})) continue;
    const LayerId owner = owner_of(graph, {i});
    TiedTable& table = tables[owner.value];
    table.stages.push_back(static_cast<std::uint32_t>(stage_of(partition, owner)));
    table.stages.push_back(static_cast<std::uint32_t>(stage_of(partition, {i})));
    table.gradients = std::max(table.gradients, gradient_bytes(layer.tied, gradient_width));
  }
  std::vector<TiedTable> found;
  for (auto& [owner, table] : tables) {
    std::sort(table.stages.begin(), table.stages.end());
    table.stages.erase(std::unique(table.stages.begin(), table.stages.end()), table.stages.end());
    found.push_back(std::move(table));
  }
  return found;
}

}  // namespace

bool shares_table(const LayerGraph& graph, const Partition& partition, LayerId layer) {
  if (graph.layer(layer).tied_to.empty()) return false;
  const auto devices = [&](LayerId of) {
    std::vector<DeviceId> sorted = partition.stages[stage_of(partition, of)].devices;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  };
  return devices(layer) == devices(owner_of(graph, layer));
}

StageCosts stage_costs(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                       const Partition& partition, double gradient_width) {
  PLUMBLINE_CHECK(costs.size() == graph.size(), costs.size(), graph.size());
  StageCosts result;
  std::vector<std::uint32_t> stage_of(graph.size(), 0);
  for (std::uint32_t s = 0; s < partition.stages.size(); ++s) {
    StageCost sum;
    for (const LayerId layer : partition.stages[s].layers) {
      const LayerCosts& cost = costs[layer.value];
      stage_of[layer.value] = s;
      sum.forward += cost.forward.mean;
      sum.backward += cost.backward.mean;
      sum.backward_input += cost.split ? cost.split->input.mean : cost.backward.mean;
      sum.backward_weight += cost.split ? cost.split->weight.mean : Duration{};
      sum.again += cost.again().mean;
      sum.update += cost.update.mean;
      sum.update_in_group += cost.update_in_group();
      if (graph.layer(layer).reduced_elsewhere.count > 0)
        sum.update_before += cost.update_in_group();
      add_sent(cost, sum.sent);
      add_overlap(cost, sum);
      sum.parameters += graph.layer(layer).parameters;
      sum.stepped += graph.layer(layer).stepped();
      sum.gathered += graph.layer(layer).reduced();
      sum.activation += cost.activation;
      sum.temporary = std::max(sum.temporary, cost.temporary);
    }
    sum.gradients = gradient_bytes(sum.parameters, gradient_width);
    sum.reduced = gradient_bytes(sum.gathered, gradient_width);
    result.stages.push_back(sum);
  }
  result.tied = tied_tables(graph, partition, gradient_width);
  std::vector<std::uint32_t> last_used(graph.size(), 0);
  std::vector<std::uint32_t> first_used(graph.size(), std::numeric_limits<std::uint32_t>::max());
  for (const LayerEdge& edge : graph.edges()) {
    PLUMBLINE_CHECK(stage_of[edge.to.value] >= stage_of[edge.from.value], edge.from.value,
                    edge.to.value);
    last_used[edge.from.value] = std::max(last_used[edge.from.value], stage_of[edge.to.value]);
    first_used[edge.from.value] = std::min(first_used[edge.from.value], stage_of[edge.to.value]);
  }
  result.cut_bytes_.assign(partition.stages.size(), Bytes{});
  for (std::uint32_t layer = 0; layer < graph.size(); ++layer) {
    const LayerCosts& cost = costs[layer];
    const bool crosses = last_used[layer] > stage_of[layer];
    const bool is_input = first_used[layer] == stage_of[layer];
    const bool keeps_output = cost.recomputation != Recomputed::all;
    const bool is_settled = is_input || !crosses || keeps_output;
    if (is_settled) result.stages[stage_of[layer]].within.add(cost, is_input);
    if (!crosses) continue;
    result.tensors.push_back({stage_of[layer], first_used[layer], last_used[layer], cost.output,
                              is_settled ? std::nullopt : std::optional(cost.activation),
                              keeps_output});
    for (std::uint32_t s = stage_of[layer]; s < last_used[layer]; ++s)
      result.cut_bytes_[s] += cost.output;
  }
  return result;
}

}  // namespace plumbline
