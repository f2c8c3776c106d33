// Activations in the host's memory: what a layer still keeps, and what its passes take.
//
// SPDX-License-Identifier: MIT
#include "models/profile/offload.h"

#include <doctest/doctest.h>

namespace plumbline {
namespace {

using std::chrono::microseconds;

/// A layer of 100 kB, whose copy takes 50 us at 1 GB/s where half of it is offloaded.
LayerCosts layer_of(microseconds forward, microseconds backward) {
  LayerCosts layer;
  layer.forward.mean = forward;
  layer.backward.mean = backward;
  layer.activation = {100'000};
  layer.temporary = {7};
  return layer;
}

Profile profile_of(std::vector<LayerCosts> layers) {
  Profile profile;
  profile.measurements = {{std::nullopt, std::move(layers)}};
  return profile;
}

constexpr BytesPerSecond kGigabyte{1'000'000'000};

TEST_CASE("a share of what layers keep is offloaded, and their passes wait for the copies") {
  Profile profile = profile_of({layer_of(microseconds(80), microseconds(160)),
                                layer_of(microseconds(40), microseconds(160)),
                                layer_of(microseconds(10), microseconds(20)), LayerCosts{}});
  const OffloadedLayers effect = offload_activations(profile, 0.5, kGigabyte);
  const std::vector<LayerCosts>& layers = profile.measurements[0].layers;
  const std::vector<std::pair<int, int>> times = {{80, 160}, {50, 160}, {50, 50}, {0, 0}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CHECK(layers[i].forward.mean == microseconds(times[i].first));
    CHECK(layers[i].backward.mean == microseconds(times[i].second));
    CHECK(layers[i].activation == Bytes{i < 3 ? 50'000 : 0});
    CHECK(layers[i].temporary == Bytes{i < 3 ? 100'007 : 0});  // that of two layers
  }
  CHECK(effect.layers == 3);
  CHECK(effect.bytes == Bytes{150'000});
  CHECK(effect.longer_forwards == 2);
  CHECK(effect.forward == microseconds(10 + 40));
  CHECK(effect.longer_backwards == 1);
  CHECK(effect.backward == microseconds(30));
}

TEST_CASE("nothing is offloaded of a share of 0, and all of a share of 1") {
  Profile none = profile_of({layer_of(microseconds(1), microseconds(1))});
  CHECK(offload_activations(none, 0, kGigabyte).layers == 0);
  CHECK(none.measurements[0].layers[0].activation == Bytes{100'000});
  CHECK(none.measurements[0].layers[0].forward.mean == microseconds(1));
  Profile all = profile_of({layer_of(microseconds(1), microseconds(1))});
  CHECK(offload_activations(all, 1, kGigabyte).layers == 1);
  CHECK(all.measurements[0].layers[0].activation == Bytes{});
  CHECK(all.measurements[0].layers[0].forward.mean == microseconds(100));
}

TEST_CASE("what is made again stays, and the first part of a split backward waits") {
  LayerCosts layer = layer_of(microseconds(80), microseconds(80));
  layer.split = SplitBackward{};
  layer.split->input.mean = microseconds(60);
  layer.split->weight.mean = microseconds(20);
  layer.selective = Selective{};
  layer.selective->activation = {60'000};
  layer.recomputation = Recomputed::selective;
  Profile profile = profile_of({layer});
  offload_activations(profile, 0.5, BytesPerSecond{250'000'000});  // 20 kB in 80 us
  const LayerCosts& left = profile.measurements[0].layers[0];
  CHECK(left.activation == Bytes{80'000});
  CHECK(left.selected() == Bytes{60'000});
  CHECK(left.split->input.mean == microseconds(80));
  CHECK(left.split->weight.mean == microseconds(20));
}

TEST_CASE("what a longer pass sends and computes is a smaller share of it") {
  LayerCosts layer = layer_of(microseconds(10), microseconds(200));
  layer.sent.forward = 0.5;
  layer.free.forward = 0.25;
  layer.sent.backward = 0.5;
  Profile profile = profile_of({layer});
  offload_activations(profile, 0.5, kGigabyte);
  const LayerCosts& longer = profile.measurements[0].layers[0];
  CHECK(longer.sent.forward == doctest::Approx(0.1));  // 5 of 50 us
  CHECK(longer.free.forward == doctest::Approx(0.05));
  CHECK(longer.sent.backward == 0.5);
}

TEST_CASE("of layers with ops the blocks alone are offloaded") {
  LayerCosts head = layer_of(microseconds(80), microseconds(160));
  head.ops = std::make_shared<const LayerOps>(
      LayerOps{NumberFormat::bf16, {{LinearOp{}, false}, {LossOp{}, false}}});
  LayerCosts block = layer_of(microseconds(80), microseconds(160));
  block.ops = std::make_shared<const LayerOps>(LayerOps{NumberFormat::bf16, {{LinearOp{}, false}}});
  Profile profile = profile_of({head, block});
  CHECK(offload_activations(profile, 0.5, kGigabyte).layers == 1);
  CHECK(profile.measurements[0].layers[0].activation == Bytes{100'000});
  CHECK(profile.measurements[0].layers[1].activation == Bytes{50'000});
}

}  // namespace
}  // namespace plumbline
