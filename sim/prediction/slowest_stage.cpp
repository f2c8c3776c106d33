// The slowest stage, and the reason for it.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "schedules/stages/slowdown.h"
#include "sim/prediction/bubble_terms.h"
#include "sim/prediction/outcome.h"

namespace plumbline {
namespace {

constexpr double kSame = 1e-6;  ///< Relative difference below which two times count as equal.

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}
double mean_of(const std::vector<double>& values) {
  return sum_of(values) / static_cast<double>(values.size());
}

/// The time of each layer for a micro-batch, and the recomputation in it, in nanoseconds.
struct LayerTimes {
  std::vector<double> whole;
  std::vector<double> again;

  explicit LayerTimes(const TrainingSetup& setup) {
    std::vector<LayerCosts> layers = costs_at(setup.model->profile, setup.micro_batch_size).layers;
    keep_others(setup.partition, setup.recomputed, layers);
    const bool recomputes = setup.rules.recompute != Recompute::none;
    for (const LayerCosts& layer : layers) {
      again.push_back(recomputes ? static_cast<double>(layer.again().mean.count()) : 0);
      whole.push_back(static_cast<double>((layer.forward.mean + layer.backward.mean).count()) +
                      again.back());
    }
  }
};

/// The layers that are unlike all others, in a model in which most layers are alike: an embedding,
/// a head. No other layer has the same kind, or the same name apart from its number.
std::vector<bool> unlike_others(const LayerGraph& graph) {
  std::map<std::string, std::size_t> count;
  const auto key = [&](const Layer& layer) {
    std::string text = layer.kind.empty() ? layer.name : layer.kind;
    if (layer.kind.empty())
      std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    return text;
  };
  for (const Layer& layer : graph.layers()) ++count[key(layer)];
  std::size_t max = 0;
  for (const auto& one : count) max = std::max(max, one.second);
  std::vector<bool> unlike;
  for (const Layer& layer : graph.layers())
    unlike.push_back(count[key(layer)] == 1 && max > 1 && 2 * max >= graph.size());
  return unlike;
}

/// The reason why a stage takes longer than the mean: the part without which it would not.
class Reason {
 public:
  Reason(const TrainingSetup& setup, std::uint32_t stage)
      : graph_(setup.model->graph), stages_(setup.partition.stages), times_(setup), stage_(stage) {
    for (const std::uint32_t r : setup.replicas) replicas_.push_back(r);
  }

  std::string text() const {
    if (explains(times_.again)) return "recomputation";
    const std::vector<bool> unlike = unlike_others(graph_);
    std::vector<double> odd(graph_.size(), 0.0);
    for (std::size_t i = 0; i < odd.size(); ++i) odd[i] = unlike[i] ? times_.whole[i] : 0;
    if (explains(odd)) return graph_.layer(longest(odd)).name;
    const LayerId longest_layer = longest(times_.whole);
    if (explains(beyond_median(longest_layer))) return graph_.layer(longest_layer).name;
    if (has_more_layers()) return "more layers";
    return "";
  }

 private:
  /// The time of each stage per device, without `left_out`.
  std::vector<double> without(const std::vector<double>& left_out) const {
    std::vector<double> sums;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      double sum = 0;
      for (const LayerId layer : stages_[s].layers)
        sum += times_.whole[layer.value] - left_out[layer.value];
      sums.push_back(sum / replicas_[s]);
    }
    return sums;
  }
  bool explains(const std::vector<double>& left_out) const {
    double own = 0;
    for (const LayerId layer : stages_[stage_].layers) own += left_out[layer.value];
    if (own <= 0) return false;
    const std::vector<double> rest = without(left_out);
    return rest[stage_] <= mean_of(rest) * (1 + kSame);
  }
  LayerId longest(const std::vector<double>& times) const {
    const auto& layers = stages_[stage_].layers;
    return *std::max_element(layers.begin(), layers.end(),
                             [&](LayerId a, LayerId b) { return times[a.value] < times[b.value]; });
  }
  /// The time by which the layer exceeds the median of all layers. It is 0 if that is at most a
  /// twentieth, or if the layer is the whole stage.
  std::vector<double> beyond_median(LayerId layer) const {
    std::vector<double> sorted = times_.whole;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    std::vector<double> beyond(times_.whole.size(), 0.0);
    const double more = times_.whole[layer.value] - *middle;
    if (stages_[stage_].layers.size() > 1 && more > *middle / 20) beyond[layer.value] = more;
    return beyond;
  }
  /// Whether the stage has more layers than the mean, also per device. Layers that take no time do
  /// not count.
  bool has_more_layers() const {
    std::vector<double> counts;
    std::vector<double> of_device;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto& layers = stages_[s].layers;
      const auto count = std::count_if(layers.begin(), layers.end(), [&](LayerId layer) {
        return times_.whole[layer.value] > 0;
      });
      counts.push_back(static_cast<double>(count));
      of_device.push_back(counts.back() / replicas_[s]);
    }
    return counts[stage_] > mean_of(counts) && of_device[stage_] > mean_of(of_device);
  }

  const LayerGraph& graph_;
  const std::vector<Stage>& stages_;
  LayerTimes times_;
  std::vector<double> replicas_;
  std::uint32_t stage_;
};

std::size_t longest_of(const std::vector<double>& times) {
  return static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin());
}

}  // namespace

std::optional<SlowestStage> slowest_stage(const Outcome& p) {
  const PipelineShape& shape = p.setup.schedule.shape;
  std::vector<double> stages;  // time of a micro-batch per device, on average
  std::vector<double> devices(shape.slots, 0.0);
  std::vector<std::uint32_t> held(shape.slots, 0);
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    double time = 0;
    for (const std::size_t kind : kinds_of_work(p))
      time += static_cast<double>(op_time(p, s, kind).count());
    stages.push_back(time / static_cast<double>(shape.stage_slots[s].size()));
    for (const std::uint32_t slot : shape.stage_slots[s]) {
      devices[slot] += stages.back();
      ++held[slot];
    }
  }
  const bool one_each =
      std::all_of(held.begin(), held.end(), [](std::uint32_t n) { return n == 1; });
  const bool is_device = !one_each && devices[longest_of(devices)] > mean_of(devices) * (1 + kSame);
  if (!one_each && !is_device && shape.positions.size() == shape.slots)
    return std::nullopt;  // the division of work within a device changes nothing
  const std::vector<double>& all = is_device ? devices : stages;
  const double mean = one_each || is_device ? mean_of(devices) : mean_of(stages);
  const std::size_t longest = longest_of(all);
  if (mean <= 0 || all[longest] <= mean * (1 + kSame)) return std::nullopt;
  SlowestStage found;
  found.is_device = is_device;
  found.work_s = all[longest] / 1e9;
  found.above_mean = all[longest] / mean - 1;
  found.stage = static_cast<std::uint32_t>(longest);
  if (is_device) {
    double max = -1;
    for (std::uint32_t s = 0; s < shape.stages(); ++s) {
      const auto& slots = shape.stage_slots[s];
      if (std::find(slots.begin(), slots.end(), longest) == slots.end()) continue;
      found.stages.push_back(s);
      if (stages[s] > max) found.stage = s;
      max = std::max(max, stages[s]);
    }
  } else {
    found.stages = {found.stage};
  }
  const std::size_t slot = is_device ? longest : shape.stage_slots[found.stage].front();
  found.device = p.setup.devices[slot].value * p.setup.copies();
  // Where devices differ, the layers alone do not say why.
  if (p.setup.cluster.runs.empty()) found.why = Reason(p.setup, found.stage).text();
  return found;
}

}  // namespace plumbline
