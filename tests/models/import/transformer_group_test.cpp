// Groups of devices that share layers, tokens and experts: what each does of the whole.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "models/import/transformer_profile.h"
#include "models/network/model_flops.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kDeepSeek;
using test::kGpt2;
using test::kLlama;
using test::kQwenMoe;
using test::profile_of;
using test::shape_of;
using test::tokens;

TEST_CASE("utilization counts what a group computes once, and no masked scores") {
  for (const std::string& config : {kLlama, kQwenMoe, kDeepSeek}) {
    CAPTURE(config);
    TransformerOptions options = tokens(64);
    const auto flops = [&](std::int64_t samples) {
      return *model_flops(profile_of(config, options).model.profile, samples);
    };
    const double alone = flops(1);
    options.flash_attention = false;
    CHECK(flops(1) == alone);
    options.flash_attention = true;
    options.tensor_parallel = 2;
    CHECK(profile_of(config, options).model.profile.group.devices == 2);
    CHECK(flops(1) == alone);
    CHECK(flops(3) == 3 * alone);
    options.tensor_parallel = 1;
    if (config == kLlama) continue;
    options.expert_parallel = 4;
    CHECK(profile_of(config, options).model.profile.group.devices == 4);
    CHECK(flops(4) == 4 * alone);
  }
}

TEST_CASE(
    "a group that shares experts holds a part of them each, and sends tokens there and back") {
  for (const std::string& config : {kQwenMoe, kDeepSeek}) {
    CAPTURE(config);
    TransformerOptions options = tokens(64, 3);
    options.split_blocks = true;
    const TransformerProfile alone = profile_of(config, options);
    options.expert_parallel = 4;
    const TransformerProfile shared = profile_of(config, options);
    CHECK(shared.totals.parameters.value() == alone.totals.parameters.value());
    CHECK(shared.totals.forward_flops == alone.totals.forward_flops);
    CHECK(shared.model.profile.measurements[0].batch == 12);  // of four devices
    CHECK(alone.model.profile.measurements[0].batch == 3);
    const auto& of_alone = alone.model.profile.measurements[0].layers;
    const auto& of_shared = shared.model.profile.measurements[0].layers;
    for (std::size_t i = 0; i < of_alone.size(); ++i) {
      CAPTURE(i);
      const Layer& layer = alone.model.graph.layers()[i];
      const Bytes held = shared.model.graph.layers()[i].parameters;
      const bool experts = layer.kind == "moe";
      // bf16: six of eight experts of 3 x 32 x 24 numbers are elsewhere.
      CHECK(layer.parameters - held == Bytes{experts ? 2 * 6 * 3 * 32 * 24 : 0});
      // The two that are left are held here alone, all else on each of the four.
      CHECK(layer.replicated == Bytes{});
      CHECK(shared.model.graph.layers()[i].replicated ==
            held - Bytes{experts ? 2 * 2 * 3 * 32 * 24 : 0});
      CHECK(of_shared[i].activation == of_alone[i].activation);
      CHECK(of_shared[i].work->forward.flops == of_alone[i].work->forward.flops);
      // Two copies of 192 tokens of 32 numbers there and two back; a quarter stays.
      const Bytes sent{experts ? 2 * 2 * 2 * 192 * 32 * 3 / 4 : 0};
      CHECK(of_shared[i].work->forward.link_traffic == sent);
      CHECK(of_shared[i].work->backward_input.link_traffic == sent);
      CHECK(of_shared[i].work->backward_weight.link_traffic == Bytes{});
      CHECK((of_shared[i].work->forward.memory_traffic <
             of_alone[i].work->forward.memory_traffic) == experts);
    }
  }
}

TEST_CASE("experts that no token chose are not read") {
  // A token chooses two of the eight experts. One of four devices holds two, and reads them always.
  const auto traffic = [](std::int64_t sequence, std::int64_t devices) {
    TransformerOptions options = tokens(sequence);
    options.split_blocks = true;
    options.expert_parallel = devices;
    const TransformerProfile profile = profile_of(kQwenMoe, options);
    for (std::size_t i = 0; i < profile.model.graph.size(); ++i) {
      if (profile.model.graph.layers()[i].kind == "moe")
        return profile.model.profile.measurements[0].layers[i].work->forward.memory_traffic.count;
    }
    return std::int64_t{0};
  };
  const std::int64_t expert = 2 * 3 * 32 * 24;  // in bf16
  // All but the weights grows by as much with every token.
  const auto step = [&](std::int64_t from, std::int64_t devices) {
    return traffic(from + 1, devices) - traffic(from, devices);
  };
  CHECK(step(1, 1) == step(8, 1) + 2 * expert);
  CHECK(step(3, 1) == step(8, 1) + 2 * expert);
  CHECK(step(4, 1) == step(8, 1));
  CHECK(step(1, 4) == step(8, 4));
  CHECK(step(1, 8) == step(8, 8));
}

TEST_CASE("a group that shares samples does an Nth of all but keys and values, which all gather") {
  for (const std::string& config : {kLlama, kGpt2, kQwenMoe}) {
    CAPTURE(config);
    TransformerOptions options = tokens(64, 2);
    options.split_blocks = true;
    const TransformerProfile alone = profile_of(config, options);
    options.context_parallel = 4;
    const TransformerProfile shared = profile_of(config, options);
    const TransformerShape shape = shape_of(config);
    CHECK(shared.totals.parameters.value() == alone.totals.parameters.value());
    CHECK(shared.totals.forward_flops == alone.totals.forward_flops);
    CHECK(shared.model.profile.measurements[0].batch == alone.model.profile.measurements[0].batch);
    CHECK(shared.model.profile.group.devices == 4);
    CHECK(static_cast<double>(shared.model.profile.group.forward->count) ==
          alone.totals.forward_flops);
    const auto& of_alone = alone.model.profile.measurements[0].layers;
    const auto& of_shared = shared.model.profile.measurements[0].layers;
    for (std::size_t i = 0; i < of_alone.size(); ++i) {
      CAPTURE(i);
      const Layer& layer = shared.model.graph.layers()[i];
      CHECK(layer.parameters == alone.model.graph.layers()[i].parameters);
      CHECK(layer.replicated == layer.parameters);
      CHECK(of_shared[i].activation * 4 == of_alone[i].activation);
      CHECK(of_shared[i].output * 4 == of_alone[i].output);
      const LayerWork& part = *of_shared[i].work;
      const LayerWork& whole = *of_alone[i].work;
      CHECK(part.forward.flops.count * 4 == whole.forward.flops.count);
      CHECK(part.backward_input.flops.count * 4 == whole.backward_input.flops.count);
      CHECK(part.backward_weight.flops.count * 4 == whole.backward_weight.flops.count);
      // In bf16 the keys and values of 128 tokens, of which a quarter is there.
      const std::int64_t gathered =
          layer.kind == "attention" ? 2 * 128 * 2 * shape.key_value_heads * shape.head_dim : 0;
      CHECK(part.forward.link_traffic.count == gathered * 3 / 4);
      CHECK(part.backward_input.link_traffic.count == 2 * gathered * 3 / 4);
      CHECK(part.backward_weight.link_traffic == Bytes{});
      // But for the weights, which each device reads, and what is gathered: a quarter.
      const auto rest = [&](Bytes moved, Bytes of_one, std::int64_t written_and_read) {
        return moved.count - written_and_read * gathered - of_one.count;
      };
      if (layer.kind == "attention" || layer.kind == "mlp") {
        const Bytes weights = layer.parameters;
        CHECK(4 * rest(part.forward.memory_traffic, weights, 2) ==
              rest(whole.forward.memory_traffic, weights, 0));
        CHECK(4 * rest(part.backward_input.memory_traffic, weights, 4) ==
              rest(whole.backward_input.memory_traffic, weights, 0));
        CHECK(4 * rest(part.backward_weight.memory_traffic, weights, 0) ==
              rest(whole.backward_weight.memory_traffic, weights, 0));
      }
    }
  }
}

TEST_CASE("a group within a group: what its devices do adds up to the whole") {
  // Two devices share a layer, four such pairs a sample.
  for (const std::string& config : {kLlama, kGpt2, kQwenMoe}) {
    CAPTURE(config);
    TransformerOptions options = tokens(64, 2);
    options.split_blocks = true;
    const TransformerProfile alone = profile_of(config, options);
    options.tensor_parallel = 2;
    options.sequence_parallel = true;
    const TransformerProfile pair = profile_of(config, options);
    options.context_parallel = 4;
    const TransformerProfile all = profile_of(config, options);
    const DeviceGroup& group = all.model.profile.group;
    CHECK(group.devices == 8);
    CHECK(group.tensor_parallel == 2);
    CHECK(group.replicas() == 4);
    CHECK(static_cast<double>(group.forward->count) == alone.totals.forward_flops);
    CHECK(all.model.profile.measurements[0].batch == 2);
    for (std::size_t i = 0; i < alone.model.graph.size(); ++i) {
      CAPTURE(i);
      const LayerCosts& whole = alone.model.profile.measurements[0].layers[i];
      const LayerCosts& half = pair.model.profile.measurements[0].layers[i];
      const LayerCosts& part = all.model.profile.measurements[0].layers[i];
      const Layer& layer = all.model.graph.layers()[i];
      CHECK(layer.parameters == pair.model.graph.layers()[i].parameters);
      CHECK(layer.replicated == layer.parameters);
      CHECK(part.activation * 4 == half.activation);
      CHECK(part.output * 8 == whole.output);
      CHECK(part.work->forward.flops.count * 4 == half.work->forward.flops.count);
      CHECK(part.work->backward_input.flops.count * 4 == half.work->backward_input.flops.count);
      // The pair's tokens, and of keys and values of half of the heads what others have.
      const bool attends = layer.kind == "attention";
      const TransformerShape shape = shape_of(config);
      const std::int64_t gathered =
          attends ? 2 * 128 * 2 * shape.key_value_heads / 2 * shape.head_dim * 3 / 4 : 0;
      CHECK(part.work->forward.link_traffic.count ==
            half.work->forward.link_traffic.count / 4 + gathered);
      CHECK(part.work->backward_input.link_traffic.count ==
            half.work->backward_input.link_traffic.count / 4 + 2 * gathered);
      CHECK(part.work->forward.network_traffic == Bytes{});
    }
  }
}

TEST_CASE("latent attention gathers keys and values as heads take them") {
  TransformerOptions options = tokens(64);
  options.split_blocks = true;
  const LayerCosts alone = profile_of(kDeepSeek, options).model.profile.measurements[0].layers[1];
  options.context_parallel = 4;
  const TransformerProfile shared = profile_of(kDeepSeek, options);
  const LayerCosts& part = shared.model.profile.measurements[0].layers[1];
  // 64 tokens of 4 heads: keys of 8 + 4 numbers, values of 6, in bf16.
  const std::int64_t gathered = 2 * 64 * 4 * (8 + 4 + 6);
  CHECK(part.work->forward.link_traffic.count == gathered * 3 / 4);
  CHECK(part.work->backward_input.link_traffic.count == 2 * gathered * 3 / 4);
  CHECK(part.work->forward.flops.count * 4 == alone.work->forward.flops.count);
  const std::int64_t weights = shared.model.graph.layers()[1].parameters.count;
  CHECK(4 * (part.work->forward.memory_traffic.count - weights - 2 * gathered) ==
        alone.work->forward.memory_traffic.count - weights);
  const auto& lines = shared.comments.above_layer.at("block_0_attention");
  const std::string line = "link_traffic, forward: of 9216 = e 4 T a (n + r + v) (keys and values)";
  CHECK(std::find(lines.begin(), lines.end(), line) != lines.end());
}

TEST_CASE("devices exchange tokens for heads, each number once there and once back") {
  TransformerOptions options = tokens(64);
  options.split_blocks = true;
  options.context_parallel = 4;
  const TransformerProfile gathered = profile_of(kLlama, options);
  options.context_exchange = ContextExchange::heads;
  const TransformerProfile exchanged = profile_of(kLlama, options);
  const LayerCosts& ring = gathered.model.profile.measurements[0].layers[1];
  const LayerCosts& part = exchanged.model.profile.measurements[0].layers[1];
  // 16 tokens of a device: 4 heads of queries and of what attention makes, keys and values
  // repeated to 4 heads, of 16 numbers in bf16.
  const std::int64_t head = 2 * 16 * 16;
  const std::int64_t all = (4 + 4 + 4 + 4) * head;
  CHECK(part.work->forward.link_traffic.count == all * 3 / 4);
  CHECK(part.work->backward_input.link_traffic.count == all * 3 / 4);
  CHECK(part.work->backward_weight.link_traffic.count == 0);
  CHECK(part.work->forward.flops == ring.work->forward.flops);
  CHECK(part.work->backward_input.flops == ring.work->backward_input.flops);
  // Kept besides: the other copy of keys and values, and attention's output by heads.
  CHECK(part.activation.count == ring.activation.count + 2 * 2 * head + 4 * head);
  const auto& lines = exchanged.comments.above_layer.at("block_0_attention");
  for (const char* line :
       {"link_traffic, forward and backward for the input: of 8192 = e T 2 (a + 2 g) d",
        "  (queries, keys, values and what attention makes of them) 3 / 4; and",
        "  e T (a + 4 g) d = 6144  (queries, keys, values)"}) {
    CAPTURE(line);
    CHECK(std::find(lines.begin(), lines.end(), line) != lines.end());
  }
  const std::string note =
      "4 share the tokens of each sample: tokens for heads in front of attention, and back behind "
      "it; heads of keys and values are repeated 2 times for that";
  CHECK(std::find(exchanged.notes.begin(), exchanged.notes.end(), note) != exchanged.notes.end());
  CHECK(exchanged.model.profile.provenance.at("context_exchange") == "heads");
  CHECK(exchanged.totals.forward_flops == gathered.totals.forward_flops);

  // With scores kept, attention's backward does not read its output, and between servers a half.
  options.flash_attention = false;
  options.devices_per_server = 2;
  const TransformerProfile far = profile_of(kLlama, options);
  options.context_exchange = ContextExchange::keys;
  const TransformerProfile far_ring = profile_of(kLlama, options);
  const LayerCosts& between = far.model.profile.measurements[0].layers[1];
  CHECK(between.activation.count ==
        far_ring.model.profile.measurements[0].layers[1].activation.count + 2 * 2 * head);
  CHECK(between.work->forward.link_traffic.count == all / 4);
  CHECK(between.work->forward.network_traffic.count == all / 2);
}

TEST_CASE("whole experts on all devices of groups that share layers and samples") {
  // Two samples of 64 tokens, on four devices each; one of the eight experts on each device.
  for (const std::string& config : {kQwenMoe, kDeepSeek}) {
    CAPTURE(config);
    TransformerOptions options = tokens(64);
    options.split_blocks = true;
    const TransformerProfile alone = profile_of(config, options);
    options.tensor_parallel = 2;
    options.sequence_parallel = true;
    options.context_parallel = 2;
    const TransformerProfile four = profile_of(config, options);
    options.expert_parallel = 8;
    const TransformerProfile all = profile_of(config, options);
    CHECK(all.model.profile.group.devices == 8);
    CHECK(all.model.profile.group.replicas() == 4);
    CHECK(all.model.profile.measurements[0].batch == 2);
    CHECK(static_cast<double>(all.model.profile.group.forward->count) ==
          2 * alone.totals.forward_flops);
    const bool shares = config == kDeepSeek;  // two experts that all tokens go through
    for (std::size_t i = 0; i < alone.model.graph.size(); ++i) {
      CAPTURE(i);
      const LayerCosts& whole = alone.model.profile.measurements[0].layers[i];
      const LayerCosts& part = all.model.profile.measurements[0].layers[i];
      const Layer& layer = all.model.graph.layers()[i];
      const Layer& in_four = four.model.graph.layers()[i];
      if (layer.kind != "moe") {  // as without experts
        CHECK(layer.replicated == layer.parameters);
        CHECK(part.work->forward == four.model.profile.measurements[0].layers[i].work->forward);
        continue;
      }
      // One expert; the norm, the router, and half of each shared expert are others', too.
      const std::int64_t expert = 3 * 32 * 24;
      const std::int64_t others = 32 + 32 * 8 + (shares ? expert : 0);
      CHECK(layer.parameters.count == 2 * (expert + others));
      CHECK(layer.replicated.count == 2 * others);
      CHECK(in_four.parameters.count == 2 * (8 * expert / 2 + others));
      CHECK(8 * part.work->forward.flops.count == 2 * whole.work->forward.flops.count);
      CHECK(8 * part.work->backward_weight.flops.count ==
            2 * whole.work->backward_weight.flops.count);
      CHECK(part.activation * 4 == whole.activation);
      // 16 tokens of a device to two experts each and back, and half of the 32 of its pair.
      const std::int64_t sent = 2 * 2 * 2 * 16 * 32 * 7 / 8;
      const std::int64_t gathered = shares ? 2 * 2 * 32 * 32 / 2 : 0;
      CHECK(part.work->forward.link_traffic.count == sent + gathered);
      CHECK(part.work->backward_input.link_traffic.count == sent + gathered);
    }
  }
}

TEST_CASE("devices that divide experts have thinner ones, and the tokens of each other") {
  for (const std::string& config : {kQwenMoe, kDeepSeek}) {
    CAPTURE(config);
    TransformerOptions options = tokens(64);
    options.split_blocks = true;
    options.tensor_parallel = 2;
    options.sequence_parallel = true;
    options.expert_parallel = 8;
    const TransformerProfile whole = profile_of(config, options);
    options.expert_parallel = 4;
    options.expert_tensor_parallel = 2;
    const TransformerProfile divided = profile_of(config, options);
    CHECK(divided.model.profile.group.devices == 8);
    CHECK(divided.model.profile.measurements[0].batch == whole.model.profile.measurements[0].batch);
    CHECK(divided.totals.parameters.value() == whole.totals.parameters.value());
    CHECK(divided.model.profile.provenance.at("expert_tensor_parallel") == "2");
    // Two copies of 32 tokens of 32 numbers, in bf16.
    const std::int64_t copies = 2 * 2 * 32 * 32;
    for (std::size_t i = 0; i < whole.model.graph.size(); ++i) {
      CAPTURE(i);
      const Layer& layer = divided.model.graph.layers()[i];
      const LayerCosts& before = whole.model.profile.measurements[0].layers[i];
      const LayerCosts& after = divided.model.profile.measurements[0].layers[i];
      // Two halves of experts weigh as much as one.
      CHECK(layer.parameters == whole.model.graph.layers()[i].parameters);
      CHECK(layer.replicated == whole.model.graph.layers()[i].replicated);
      CHECK(after.work->forward.flops == before.work->forward.flops);
      CHECK(after.work->backward_input.flops == before.work->backward_input.flops);
      CHECK(after.work->backward_weight.flops == before.work->backward_weight.flops);
      if (layer.kind != "moe") {
        CHECK(after.work->forward == before.work->forward);
        continue;
      }
      // The other's tokens are kept as well; of what is within experts twice as many, half as wide.
      CHECK(after.activation.count - before.activation.count == copies);
      // There and back to 3 of 4 instead of 7 of 8; and half of both's tokens, there and back.
      const std::int64_t more = 2 * copies * 3 / 4 - 2 * copies * 7 / 8 + 2 * (2 * copies) / 2;
      for (const auto pass : {&LayerWork::forward, &LayerWork::backward_input}) {
        CHECK((after.work.value().*pass).link_traffic.count -
                  (before.work.value().*pass).link_traffic.count ==
              more);
      }
      // Tokens kept: written and read; sums, or their gradients: written and read; and both
      // experts' halves are touched, as the whole one was.
      CHECK(after.work->forward.memory_traffic.count - before.work->forward.memory_traffic.count ==
            2 * copies + 2 * 2 * copies);
      CHECK(after.work->backward_input.memory_traffic.count -
                before.work->backward_input.memory_traffic.count ==
            3 * copies + 2 * 2 * copies);
      CHECK(after.work->backward_weight.memory_traffic.count -
                before.work->backward_weight.memory_traffic.count ==
            2 * copies);
    }
  }
}

TEST_CASE("divided experts in servers: tokens meet there, or go to other servers alone") {
  struct Case {
    std::int64_t per_server, parts;
    double experts_link, experts_network, parts_link, parts_network;  // of what each sends in all
  };
  const Case cases[] = {
      {8, 2, 3.0 / 4, 0, 1, 0},   {4, 2, 1.0 / 4, 2.0 / 4, 1, 0},
      {2, 2, 0, 3.0 / 4, 1, 0},    // those that divide an expert fill a server
      {2, 4, 0, 1.0 / 2, 1, 0.5},  // or two, and send over two cards
      {4, 4, 0, 1.0 / 2, 1, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.per_server);
    CAPTURE(c.parts);
    TransformerOptions options = tokens(64);
    options.split_blocks = true;
    options.expert_parallel = 8 / c.parts;
    options.expert_tensor_parallel = c.parts;
    options.devices_per_server = c.per_server;
    const TransformerProfile profile = profile_of(kQwenMoe, options);
    const PassWork& work = profile.model.profile.measurements[0].layers[2].work->forward;
    constexpr double there_and_back = 2 * 2 * 2 * 64 * 32;
    const auto parts = static_cast<double>(c.parts);
    const double gathered = there_and_back * parts * (parts - 1) / parts;
    CHECK(static_cast<double>(work.link_traffic.count) ==
          there_and_back * c.experts_link + gathered * c.parts_link);
    CHECK(static_cast<double>(work.network_traffic.count) ==
          there_and_back * c.experts_network + gathered * c.parts_network);
  }
}

TEST_CASE("what goes to other servers goes over the network") {
  struct Case {
    std::int64_t per_server, tensor, context, experts;
    // Shares of what is sent within a pair, around a sample, and to experts.
    double pair_link, sample_link, experts_link;
    double pair_network, sample_network, experts_network;
  };
  const Case cases[] = {
      {16, 2, 4, 1, 1, 1, 1, 0, 0, 0},
      {8, 2, 4, 1, 1, 1, 1, 0, 0, 0},  // just filled
      {4, 2, 4, 1, 1, 0, 1, 0, 1, 0},  // two servers a sample
      {2, 2, 4, 1, 1, 0, 1, 0, 1, 0},  // a pair each
      {1, 2, 4, 1, 1, 0, 1, 1, 1, 0},  // one device each
      {4, 2, 2, 8, 1, 1, 3.0 / 7, 0, 0, 4.0 / 7},
      {2, 2, 2, 8, 1, 0, 1.0 / 7, 0, 1, 6.0 / 7},
      {1, 1, 1, 8, 1, 1, 0, 0, 0, 1},
      {8, 1, 1, 8, 1, 1, 1, 0, 0, 0},
      {2, 4, 1, 1, 1, 1, 1, 0.5, 0, 0},  // over two cards
  };
  for (const Case& c : cases) {
    CAPTURE(c.per_server);
    CAPTURE(c.tensor);
    CAPTURE(c.context);
    CAPTURE(c.experts);
    TransformerOptions options = tokens(64);
    options.split_blocks = true;
    options.tensor_parallel = c.tensor;
    options.sequence_parallel = c.tensor > 1;
    options.context_parallel = c.context;
    options.expert_parallel = c.experts;
    // The kinds of traffic by themselves: a head sends within pairs alone.
    const std::string config = c.tensor == 4 ? R"({"model_type": "llama", "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "vocab_size": 100})"
                                             : kQwenMoe;
    const TransformerProfile near = profile_of(config, options);
    options.devices_per_server = c.per_server;
    const TransformerProfile far = profile_of(config, options);
    CHECK(far.model.profile.group.devices_per_server == c.per_server);
    for (std::size_t i = 0; i < near.model.graph.size(); ++i) {
      const std::string& kind = near.model.graph.layers()[i].kind;
      CAPTURE(kind);
      const PassWork& before = near.model.profile.measurements[0].layers[i].work->backward_input;
      const PassWork& after = far.model.profile.measurements[0].layers[i].work->backward_input;
      const auto sent = [](const PassWork& work) {
        return static_cast<double>(work.link_traffic.count);
      };
      const double pair =
          sent(near.model.profile.measurements[0].layers.back().work->backward_input);
      // An attention gathers twice what a head does, and keys and values besides.
      const double products = kind == "head" || kind == "embedding" ? pair : 2 * pair;
      const bool exchanges = kind == "moe" && c.experts > 1;
      const double rest = exchanges ? 0 : sent(before) - (kind == "embedding" ? 0 : products);
      if (kind == "embedding") continue;  // its backward for the input sends as the head's
      const double own = exchanges ? 0 : products;
      const double tokens_sent = exchanges ? sent(before) : 0;
      CHECK(sent(after) == doctest::Approx(c.pair_link * own + c.sample_link * rest +
                                           c.experts_link * tokens_sent));
      CHECK(static_cast<double>(after.network_traffic.count) ==
            doctest::Approx(c.pair_network * own + c.sample_network * rest +
                            c.experts_network * tokens_sent));
    }
  }
}

TEST_CASE("sent once to a server, a token takes as many hops as it does choice by choice") {
  // 8 devices with an expert each, 4 to a server; a token has two of them, any or of one half.
  for (const bool limited : {false, true}) {
    CAPTURE(limited);
    std::int64_t links = 0, networks = 0, tokens_seen = 0;
    for (int sender = 0; sender < 8; ++sender) {
      for (int first = 0; first < 8; ++first) {
        for (int second = first + 1; second < 8; ++second) {
          if (limited && first / 4 != second / 4) continue;
          ++tokens_seen;
          std::set<int> servers;
          for (const int device : {first, second}) {
            servers.insert(device / 4);
            // It comes to the device that stands in its server as the sender does in its own.
            links += device % 4 != sender % 4 ? 1 : 0;
          }
          for (const int server : servers) networks += server != sender / 4 ? 1 : 0;
        }
      }
    }
    std::string config = kDeepSeek;
    if (limited) config.insert(1, R"("n_group": 2, "topk_group": 1, )");
    TransformerOptions options = tokens(84);  // so that none is left over
    options.split_blocks = true;
    options.expert_parallel = 8;
    options.devices_per_server = 4;
    options.dispatch = Dispatch::per_server;
    const TransformerProfile profile = profile_of(config, options);
    const auto& layers = profile.model.graph.layers();
    const auto moe = std::find_if(layers.begin(), layers.end(),
                                  [](const Layer& layer) { return layer.kind == "moe"; });
    REQUIRE(moe != layers.end());
    const LayerWork& work = *profile.model.profile.measurements[0]
                                 .layers[static_cast<std::size_t>(moe - layers.begin())]
                                 .work;
    const std::int64_t there_and_back = 2 * 2 * 84 * 32;
    CHECK(work.forward.link_traffic.count == there_and_back * links / tokens_seen);
    CHECK(work.forward.network_traffic.count == there_and_back * networks / tokens_seen);
    CHECK(work.backward_input.link_traffic == work.forward.link_traffic);
    CHECK(work.backward_input.network_traffic == work.forward.network_traffic);
    CHECK(work.backward_weight.network_traffic == Bytes{});
    CHECK(profile.model.profile.provenance.at("dispatch") == "per-server");
    // In one server there is nothing but the link.
    options.devices_per_server.reset();
    const TransformerProfile near = profile_of(config, options);
    for (const LayerCosts& layer : near.model.profile.measurements[0].layers)
      CHECK(layer.work->forward.network_traffic == Bytes{});
  }
}

TEST_CASE("a note tells of copies to other servers, unless somebody chose how tokens go") {
  TransformerOptions options = tokens(64);
  options.expert_parallel = 8;
  options.devices_per_server = 4;
  const auto told = [&](const std::string& config) {
    const std::vector<std::string> notes = profile_of(config, options).uncounted;
    return std::find(notes.begin(), notes.end(),
                     "experts are in 2 servers, and a token is sent there once for each of its 2 "
                     "experts, where recipes of DeepSeek-V3's kind send one copy to each server "
                     "(--dispatch per-server)") != notes.end();
  };
  CHECK(told(kQwenMoe));
  std::string one = kQwenMoe;
  one.replace(one.find("\"num_experts_per_tok\": 2"), 24, "\"num_experts_per_tok\": 1");
  CHECK_FALSE(told(one));
  options.dispatch_given = true;
  CHECK_FALSE(told(kQwenMoe));
  options.dispatch_given = false;
  options.devices_per_server = 8;
  CHECK_FALSE(told(kQwenMoe));
}

TEST_CASE("utilization of large batches is that of small ones") {
  // Beyond 2^53 FLOP are a batch of the group, and the backward of one layer of the whole model.
  const TransformerProfile alone = profile_of(kQwenMoe, tokens(1 << 10));
  TransformerOptions options = tokens(1 << 22);
  options.tensor_parallel = 2;
  options.sequence_parallel = true;
  options.expert_parallel = 8;
  const TransformerProfile group = profile_of(kQwenMoe, options);
  // Scores are 2 T s a d a block, of three, and 2.5 times that backward; the rest is of tokens.
  const auto scores = [](double sequence) { return 3 * 2 * sequence * sequence * 4 * 16; };
  const double more = 1 << 12;
  const double rest = alone.totals.forward_flops - scores(1 << 10);
  const double forward = scores(1 << 22) + rest * more;
  const double backward = 2.5 * scores(1 << 22) + 2 * rest * more;
  CHECK(group.totals.forward_flops == doctest::Approx(forward).epsilon(1e-12));
  CHECK(group.totals.backward_flops == doctest::Approx(backward).epsilon(1e-12));
  REQUIRE(group.model.profile.group.forward);
  const auto counted = static_cast<double>(group.model.profile.group.forward->count);
  CHECK(counted > 0x1p53);
  CHECK(counted == doctest::Approx(4 * forward).epsilon(1e-12));
}

TEST_CASE("a note tells how much of the model is replicated, how often") {
  const auto note = [](const std::string& config, std::int64_t tensor) {
    TransformerOptions options = tokens(64);
    options.expert_parallel = 8;
    options.tensor_parallel = tensor;
    options.sequence_parallel = tensor > 1;
    const std::vector<std::string> notes = profile_of(config, options).notes;
    const auto found = std::find_if(notes.begin(), notes.end(), [](const std::string& text) {
      return text.find(" replicated ") != std::string::npos;
    });
    REQUIRE(found != notes.end());
    return found->substr(0, found->find(':'));
  };
  // All but 2 x 8 experts of 3 x 32 x 24.
  const std::int64_t rest = 68'544 - 2 * 8 * 2304;
  const std::string what = "the " + std::to_string(rest) + " parameters that are no experts' are ";
  CHECK(note(kQwenMoe, 1) == what + "replicated on each device of the group");
  CHECK(note(kQwenMoe, 2) == what + "replicated 4 times in the group");
  std::string tied = kQwenMoe;
  tied.insert(1, R"("tie_word_embeddings": true, )");
  CHECK(note(tied, 1) ==
        "the " + std::to_string(rest - 1600) +
            " parameters that are no experts' are replicated on each device of the "
            "group");
}

TEST_CASE("groups whose devices cannot share evenly are refused") {
  const auto problem = [](const std::string& config, const TransformerOptions& options) {
    const auto profile = transformer_profile("m", shape_of(config), options);
    REQUIRE_FALSE(profile);
    return profile.problems().front().message;
  };
  TransformerOptions options = tokens(60);
  options.context_parallel = 4;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 4, and 8 parts do not divide the 60 tokens of a sample");
  options.sequence = 56;
  options.tensor_parallel = 4;
  options.sequence_parallel = true;
  CHECK(problem(kQwenMoe, options) ==
        "--tensor-parallel is 4, which does not divide the 2 heads of keys and values");
  options.context_parallel = 28;
  options.tensor_parallel = 4;
  CHECK(problem(kGpt2, options) ==
        "--tensor-parallel is 4, which does not divide the 2 tokens of a sample on each device");

  options = tokens(60);
  options.context_exchange = ContextExchange::heads;
  options.context_parallel = 3;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 3, which does not divide the 4 attention heads");
  options.context_parallel = 8;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 8, which does not divide the 60 tokens of a sample");
  options = tokens(64);
  options.context_exchange = ContextExchange::heads;
  options.context_parallel = 4;
  options.tensor_parallel = 2;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 4, which does not divide the 2 attention heads of a tensor-parallel "
        "device");
  const std::string many = R"({"model_type": "llama", "hidden_size": 96, "intermediate_size": 128,
      "num_hidden_layers": 2, "num_attention_heads": 12, "num_key_value_heads": 6, "vocab_size": 9})";
  options.tensor_parallel = 1;
  CHECK(problem(many, options) ==
        "--context-parallel is 4, which does not divide the 6 heads of keys and values, nor they "
        "it");

  options = tokens(64);
  options.expert_parallel = 2;
  CHECK(problem(kLlama, options) == "--expert-parallel is 2, and the model has no experts");
  options.expert_parallel = 3;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel is 3, which does not divide the 8 experts");
  options.expert_parallel = 4;
  options.tensor_parallel = 2;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel with --tensor-parallel needs --sequence-parallel");
  options.sequence_parallel = true;
  options.context_parallel = 4;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel is 4, no multiple of the 8 devices of a sample (--tensor-parallel 2 x "
        "--context-parallel 4)");

  options.expert_tensor_parallel = 3;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel is 4 x --expert-tensor-parallel 3, no multiple of the 8 devices of a "
        "sample (--tensor-parallel 2 x --context-parallel 4)");
  options.context_parallel = 2;
  options.expert_tensor_parallel = 5;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-tensor-parallel is 5, which does not divide the 24 columns of an expert");
  options.expert_tensor_parallel = 6;
  options.devices_per_server = 4;
  CHECK(problem(kQwenMoe, options) ==
        "--devices-per-server is 4, which the group that divides an expert of 6 does not fill");
  options.expert_parallel = 1;
  CHECK(problem(kQwenMoe, options) == "--expert-tensor-parallel is 6 without --expert-parallel");
  options.expert_tensor_parallel = 1;
  options.context_parallel = 4;

  options.devices_per_server = 3;
  CHECK(problem(kQwenMoe, options) ==
        "--devices-per-server is 3, which the tensor-parallel group of 2 does not fill");
  options.devices_per_server = 6;
  CHECK(problem(kQwenMoe, options) ==
        "--devices-per-server is 6, which the group of 8 does not fill");
  // Three devices of a sample: some would have it in two servers.
  options = tokens(48);
  options.context_parallel = 3;
  options.expert_parallel = 24;
  options.devices_per_server = 8;
  std::string experts = kQwenMoe;
  experts.replace(experts.find("\"num_experts\": 8"), 16, "\"num_experts\": 24");
  CHECK(problem(experts, options) ==
        "--devices-per-server is 8, which the group for a sample of 3 does not fill");
  options.devices_per_server = 6;
  CHECK(profile_of(experts, options).model.profile.group.devices == 24);
}

TEST_CASE("what no block has need not be divided") {
  TransformerOptions options = tokens(64);
  options.tensor_parallel = 2;
  std::string odd = kQwenMoe;
  odd.replace(odd.find("96"), 2, "97");
  CHECK_FALSE(transformer_profile("test", shape_of(odd), options));  // block 1 is dense
  odd.replace(odd.find("[1]"), 3, "[]");
  CHECK(transformer_profile("test", shape_of(odd), options));
}

TEST_CASE("a group that computes more than a file may say is told so") {
  std::string long_lived = kLlama;
  long_lived.replace(long_lived.find("\"num_hidden_layers\": 2"), 22,
                     "\"num_hidden_layers\": 2000");
  TransformerOptions options = tokens(std::int64_t{1} << 20);
  options.context_parallel = 32;
  const TransformerProfile max = profile_of(long_lived, options);
  CHECK(max.model.profile.group.forward);
  options.sequence <<= 1;
  options.context_parallel = 64;
  const TransformerProfile more = profile_of(long_lived, options);
  CHECK_FALSE(more.model.profile.group.forward);
  const auto told = [](const TransformerProfile& profile) {
    return std::any_of(profile.notes.begin(), profile.notes.end(), [](const std::string& note) {
      return note.find("more than the 10^18 FLOP") != std::string::npos;
    });
  };
  CHECK_FALSE(told(max));
  CHECK(told(more));
}

TEST_CASE("sequence parallelism sends what tensor parallelism does, and hands on a share") {
  for (const std::string& config : {kLlama, kGpt2, kQwenMoe, kDeepSeek}) {
    CAPTURE(config);
    TransformerOptions options = tokens(64);
    options.split_blocks = true;
    options.tensor_parallel = 2;
    const TransformerProfile whole = profile_of(config, options);
    options.sequence_parallel = true;
    const TransformerProfile shared = profile_of(config, options);
    CHECK(shared.totals.parameters.value() == whole.totals.parameters.value());
    CHECK(shared.totals.forward_flops == whole.totals.forward_flops);
    const auto& of_whole = whole.model.profile.measurements[0].layers;
    const auto& of_shared = shared.model.profile.measurements[0].layers;
    const auto sent = [](const LayerCosts& costs) {
      return costs.work->forward.link_traffic + costs.work->backward_input.link_traffic +
             costs.work->backward_weight.link_traffic;
    };
    for (std::size_t i = 0; i < of_whole.size(); ++i) {
      CAPTURE(i);
      CHECK(sent(of_shared[i]) == sent(of_whole[i]));
      CHECK(2 * of_shared[i].output.count == of_whole[i].output.count);
      CHECK(of_shared[i].activation < of_whole[i].activation);
      CHECK(of_shared[i].work->forward.flops == of_whole[i].work->forward.flops);
      if (i == 0) continue;
      // Memory: less of what is kept and of the input; what is gathered is written and read.
      const std::int64_t all = 2 * 64 * shape_of(config).hidden;
      const std::int64_t kept = of_whole[i].activation.count - of_shared[i].activation.count;
      const auto less = [&](PassWork LayerWork::*pass) {
        return (of_whole[i].work.value().*pass).memory_traffic.count -
               (of_shared[i].work.value().*pass).memory_traffic.count;
      };
      CHECK(less(&LayerWork::forward) == all / 2 + 2 * kept - 2 * all);
      CHECK(less(&LayerWork::backward_input) == 3 * kept - 2 * all);
      CHECK(less(&LayerWork::backward_weight) == 2 * kept - 2 * all);
    }
    // Gathered in front of attention and scattered behind it: half of 2 x 64 x hidden, twice.
    CHECK(of_shared[1].work->forward.link_traffic.count == 2 * 64 * shape_of(config).hidden);
    // The embedding only scatters, the head only gathers.
    CHECK(of_shared.front().work->forward.link_traffic.count == 64 * shape_of(config).hidden);
    CHECK(of_shared.back().work->forward.link_traffic.count == 64 * shape_of(config).hidden);
  }
}

TEST_CASE("sequence parallelism needs a group that divides the sequence") {
  TransformerOptions options = tokens(63);
  options.sequence_parallel = true;
  const auto alone = transformer_profile("m", shape_of(kLlama), options);
  REQUIRE_FALSE(alone);
  CHECK(alone.problems().front().message == "--sequence-parallel without --tensor-parallel");
  options.tensor_parallel = 2;
  const auto uneven = transformer_profile("m", shape_of(kLlama), options);
  REQUIRE_FALSE(uneven);
  CHECK(uneven.problems().front().message ==
        "--tensor-parallel is 2, which does not divide the 63 tokens of a sample");
}

TEST_CASE("split blocks add up to whole ones, and groups of devices to one") {
  const auto sums = [](const TransformerProfile& profile) {
    std::vector<std::int64_t> sum(5);
    const std::vector<LayerCosts>& costs = profile.model.profile.measurements[0].layers;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      sum[0] += profile.model.graph.layers()[i].parameters.count;
      sum[1] += costs[i].activation.count;
      sum[2] += costs[i].work->forward.flops.count;
      sum[3] += costs[i].work->backward_input.flops.count;
      sum[4] += costs[i].work->forward.memory_traffic.count;
    }
    return sum;
  };
  for (const std::string& config : {kLlama, kGpt2, kQwenMoe, kDeepSeek}) {
    TransformerOptions options = tokens(64);
    const TransformerProfile whole = profile_of(config, options);
    options.split_blocks = true;
    const TransformerProfile split = profile_of(config, options);
    CHECK(sums(split) == sums(whole));
    CHECK(split.model.graph.size() > whole.model.graph.size());
    options.tensor_parallel = 2;
    const TransformerProfile shared = profile_of(config, options);
    CHECK(shared.totals.parameters.value() == whole.totals.parameters.value());
    CHECK(shared.totals.forward_flops == whole.totals.forward_flops);
    // A ring of two sends as many bytes as it reduces: 2 x 64 x hidden.
    CHECK(shared.model.profile.measurements[0].layers[1].work->forward.link_traffic.count ==
          128 * shape_of(config).hidden);
    CHECK(whole.model.profile.measurements[0].layers[1].work->forward.link_traffic.count == 0);
  }
}

}  // namespace
}  // namespace plumbline
