// Groups of devices that share layers, tokens and experts: what each does of the whole.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>

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
