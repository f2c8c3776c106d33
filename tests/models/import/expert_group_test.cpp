// Experts on groups of devices: how they are divided, and how tokens reach them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "models/import/transformer_profile.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kDeepSeek;
using test::kQwenMoe;
using test::profile_of;
using test::tokens;

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

}  // namespace
}  // namespace plumbline
