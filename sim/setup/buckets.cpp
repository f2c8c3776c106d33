// Cuts layers into buckets, with the bytes that devices and groups exchange of each.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/buckets.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumbline {
namespace {

/// The gradients of a growing number of parameters. The pieces add up to the whole despite
/// rounding.
class GrowingGradients {
 public:
  explicit GrowingGradients(double width) : width_(width) {}
  /// Adds `more` parameters and returns the bytes of their gradients.
  Bytes add(Bytes more) {
    parameters_ += more;
    const Bytes before = std::exchange(gradients_, gradient_bytes(parameters_, width_));
    return gradients_ - before;
  }

 private:
  double width_;
  Bytes parameters_, gradients_;
};

/// The layers of a stage in buckets, from the last layer to the first.
class BucketFiller {
 public:
  /// Makes buckets with at least `size` bytes of gradients that are reduced together. `alone`: no
  /// other device holds the stage, so that only the group shares.
  BucketFiller(const TrainingSetup& setup, Bytes size, bool alone)
      : setup_(setup), size_(size), alone_(alone) {}

  std::vector<Bucket> fill(const std::vector<LayerCosts>& costs,
                           const std::vector<LayerId>& stage) const {
    std::vector<Bucket> buckets(1);
    GrowingGradients gradients(setup_.gradient_width), reduced(setup_.gradient_width);
    for (auto id = stage.rbegin(); id != stage.rend(); ++id) {
      const Bytes together = shares_passes() ? buckets.back().gradients : buckets.back().reduced;
      if (together >= size_) buckets.emplace_back();
      const LayerCosts& cost = costs[id->value];
      const Layer& layer = setup_.model->graph.layer(*id);
      Bucket& bucket = buckets.back();
      ++bucket.layers;
      bucket.forward += cost.forward.mean;
      bucket.backward += cost.backward.mean;
      bucket.backward_weight += cost.split ? cost.split->weight.mean : Duration{};
      bucket.again += cost.again().mean;
      const Bytes shared = alone_ ? shared_in_group(layer) : layer.parameters;
      const Bytes exchanged = exchanged_by_copies(layer);
      bucket.parameters += shared;
      bucket.gathered += exchanged;
      bucket.gradients += gradients.add(shared);
      bucket.reduced += reduced.add(exchanged);
      if (shares_passes()) add_in_group(layer, cost, bucket);
    }
    return buckets;
  }

 private:
  /// Whether more than an optimizer is shared: gradients of each backward, weights of each pass.
  bool shares_passes() const { return setup_.rules.sharing.state >= Sharded::gradients; }

  static Bytes shared_in_group(const Layer& layer) {
    return layer.reduced_elsewhere.count > 0 ? layer.replicated : Bytes{};
  }

  /// The bytes that copies exchange of a layer. A ring over copies and a group that spans servers
  /// uses the cards of all its members in a server.
  Bytes exchanged_by_copies(const Layer& layer) const {
    if (alone_) return {};
    const DeviceGroup& group = setup_.model->profile.group;
    const Bytes share = shared_in_group(layer) - layer.reduced_elsewhere;
    if (!shares_passes() || share.count == 0 || !group.spans_servers()) return layer.reduced();
    const std::int64_t cards = group.cards();
    return layer.reduced() - share + Bytes{(share.count + cards - 1) / cards};
  }

  /// Adds what the group sends of the layer. With a sharded optimizer a group sends each weight as
  /// often as its gradient.
  void add_in_group(const Layer& layer, const LayerCosts& cost, Bucket& bucket) const {
    if (layer.reduced_elsewhere.count == 0) return;
    const double width = setup_.gradient_width;
    const Duration sent = cost.update_in_group();
    const Duration reduce{std::llround(width / (width + 1) * static_cast<double>(sent.count()))};
    bucket.reduced_in_group.time += reduce;
    bucket.reduced_in_group.bytes += gradient_bytes(layer.reduced_elsewhere, width);
    if (setup_.rules.sharing.state != Sharded::weights && !setup_.rules.gather_ahead) return;
    bucket.gathered_in_group.time += sent - reduce;
    bucket.gathered_in_group.bytes += layer.reduced_elsewhere;
  }

  const TrainingSetup& setup_;
  Bytes size_;
  bool alone_;
};

/// Removes the time of the buckets' group traffic from the update: the group sends it beside the
/// passes.
void take_out_of_update(StageCost& stage, StageSlowdown* slowdown) {
  Duration sent{};
  for (const Bucket& bucket : stage.buckets)
    sent += bucket.reduced_in_group.time + bucket.gathered_in_group.time;
  if (sent.count() == 0) return;
  const auto whole = static_cast<double>(stage.update.count());
  stage.update -= sent;
  stage.update_in_group -= sent;
  stage.update_before -= sent;
  if (slowdown == nullptr) return;
  for (double& slowed : slowdown->update)
    slowed *= static_cast<double>(stage.update.count()) / whole;
}

}  // namespace

bool is_shared(const TrainingSetup& setup, std::size_t stage) {
  if (setup.replicas[stage] * setup.copies() > 1) return true;
  const std::vector<LayerId>& layers = setup.partition.stages[stage].layers;
  return setup.rules.sharing.state >= Sharded::gradients &&
         std::any_of(layers.begin(), layers.end(), [&](LayerId layer) {
           return setup.model->graph.layer(layer).reduced_elsewhere.count > 0;
         });
}

void add_buckets(Bytes min, const std::vector<LayerCosts>& layers, TrainingSetup& setup) {
  for (std::size_t s = 0; s < setup.costs.stages.size(); ++s) {
    StageCost& stage = setup.costs.stages[s];
    const std::vector<LayerId>& held = setup.partition.stages[s].layers;
    if (!is_shared(setup, s)) continue;
    const bool alone = setup.replicas[s] * setup.copies() == 1;
    auto buckets = BucketFiller(setup, min, alone).fill(layers, held);
    // A single bucket is the whole stage. It is used only if gradients or weights are shared.
    if (buckets.size() == 1 && setup.rules.sharing.state < Sharded::gradients) continue;
    stage.buckets = std::move(buckets);
    auto& slowdowns = setup.costs.slowdowns;
    take_out_of_update(stage, slowdowns.empty() ? nullptr : &slowdowns[s]);
  }
}

}  // namespace plumbline
