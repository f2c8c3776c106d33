// The ops of layers in a profile file: each kind with each key, and what does not fit together.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "base/section_reader.h"
#include "models/profile/op_format.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using Ops = std::shared_ptr<const LayerOps>;

/// A chain of timed layers with these ops; null = none.
Model model_of(const std::vector<Ops>& ops) {
  Model model;
  model.profile.dtype = NumberFormat::bf16;
  std::vector<Layer> layers;
  Measurement& measurement = model.profile.measurements.emplace_back();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    layers.push_back({fmt::format("layer_{}", i), "block", {}});
    measurement.layers.emplace_back().ops = ops[i];
  }
  model.graph = LayerGraph::chain(std::move(layers));
  return model;
}

Ops list_of(std::vector<LayerOp> ops) {
  return std::make_shared<const LayerOps>(LayerOps{NumberFormat::bf16, std::move(ops)});
}

Model read(const std::string& text) {
  auto model = parse_profile(test::text_source("p.yaml", text));
  REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
  return *std::move(model);
}

const std::vector<LayerCosts>& layers_of(const Model& model) {
  return model.profile.measurements.front().layers;
}

/// The problems of a profile of one layer with `costs`, and these lists of ops.
Diagnostics problems(const std::string& costs, const std::string& ops) {
  const auto model = parse_profile(test::text_source(
      "p.yaml", fmt::format("version: 1\nkind: profile\ndtype: bf16\nlayers: [{{name: a, {}}}]\n"
                            "ops: {}\n",
                            costs, ops)));
  return model ? Diagnostics{} : model.problems();
}

/// The first of them.
std::string refusal(const std::string& costs, const std::string& ops) {
  const Diagnostics all = problems(costs, ops);
  return all.empty() ? "" : all.front().message;
}

TEST_CASE("the table of ops has a row for each alternative, in their order") {
  REQUIRE(op_kinds().size() == std::variant_size_v<LayerOp::Shape>);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < op_kinds().size(); ++i) {
    CAPTURE(op_kinds()[i].name);
    CHECK(op_kinds()[i].shape.index() == i);
    CHECK(names.insert(op_kinds()[i].name).second);
  }
}

TEST_CASE("each key of each op is written and read back, and defaults are left out") {
  for (const LayerOpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    // An op with other values than the defaults, which fit together.
    LayerOp::Shape shape = kind.shape;
    std::int64_t value = 10;
    for (const OpKey& key : kind.keys) {
      const bool is_flag = op_value_format(key.name).type == ValueFormat::Type::boolean;
      const bool is_word = op_value_format(key.name).type == ValueFormat::Type::word;
      key.set(shape, is_flag   ? 1 - key.get(shape)
                     : is_word ? 3 + (key.get(kind.shape) == 3 ? 1 : 0)
                               : ++value);
      CHECK(key.get(shape) != key.get(kind.shape));
    }
    if (auto* exchange = std::get_if<ExchangeOp>(&shape)) {
      exchange->near = exchange->devices;
      exchange->network_bytes = 0;
      exchange->repeated = 1;
    }
    const Ops all = list_of({{shape, true}, {kind.shape, false}});
    const std::string text = profile_yaml(model_of({all}));
    CAPTURE(text);
    CHECK(*layers_of(read(text))[0].ops == *all);
    const std::string written = text.substr(text.rfind("- {op: "));
    for (const OpKey& key : kind.keys) {
      CAPTURE(key.name);
      CHECK((written.find(fmt::format("{}: ", key.name)) != std::string::npos) == key.required);
    }
    CHECK(written.find("again") == std::string::npos);
  }
}

TEST_CASE("each kind of exchange is written and read back") {
  const std::size_t kinds = op_value_format("kind").words.size();
  CHECK(kinds == static_cast<std::size_t>(ExchangeKind::exchange_heads) + 1);
  for (std::size_t i = 0; i < kinds; ++i) {
    CAPTURE(i);
    ExchangeOp exchange{static_cast<ExchangeKind>(i), 8, 4, 1024, 0, 1};
    if (is_all_to_all(exchange.kind)) exchange.network_bytes = 3;
    if (exchange.kind == ExchangeKind::gather_keys) exchange.repeated = 4;
    const Ops ops = list_of({{exchange, false}});
    CHECK(*layers_of(read(profile_yaml(model_of({ops}))))[0].ops == *ops);
  }
}

TEST_CASE("lists stand behind the layers, with one name for those that are equal") {
  const LayerOp norm{NormOp{8, 4}, true};
  const LayerOp linear{LinearOp{NumberFormat::bf16, 8, 16, 4, 0}, false};
  const LayerOp in_fp8{LinearOp{NumberFormat::fp8, 8, 16, 4, 2}, false};
  const Model model =
      model_of({list_of({norm, linear}), list_of({norm, linear}), nullptr, list_of({in_fp8})});
  const std::string text = profile_yaml(model);
  CHECK(text.substr(text.find("layers:")) == R"(layers:
  - {name: layer_0, kind: block, forward: 0 s, backward: 0 s, ops: block}
  - {name: layer_1, kind: block, forward: 0 s, backward: 0 s, ops: block}
  - {name: layer_2, kind: block, forward: 0 s, backward: 0 s}
  - {name: layer_3, kind: block, forward: 0 s, backward: 0 s, ops: block_2}
ops:
  block:
    - {op: norm, rows: 8, columns: 4, again: true}
    - {op: linear, rows: 8, outputs: 16, inputs: 4}
  block_2:
    - {op: linear, format: fp8, rows: 8, outputs: 16, inputs: 4, experts: 2}
)");
  const Model back = read(text);
  CHECK(profile_yaml(back) == text);
  CHECK(layers_of(back)[0].ops == layers_of(back)[1].ops);  // one list for both
  CHECK(layers_of(back)[2].ops == nullptr);
}

TEST_CASE("a name that a layer's kind has already is not given twice") {
  Model model = model_of({list_of({{NormOp{1, 1}, false}}), list_of({{NormOp{2, 1}, false}}),
                          list_of({{NormOp{3, 1}, false}})});
  std::vector<Layer> layers = model.graph.layers();
  layers[1].kind = "block_2";
  layers[2].kind = std::string(9'000, 'x');
  model.graph = LayerGraph::chain(layers);
  const Model back = read(profile_yaml(model));
  for (std::size_t i = 0; i < 3; ++i) CHECK(*layers_of(back)[i].ops == *layers_of(model)[i].ops);
  layers[1].kind = "caf\xe9";
  layers[2].kind = "caf\xe8";
  model.graph = LayerGraph::chain(layers);
  const Model broken = read(profile_yaml(model));
  for (std::size_t i = 0; i < 3; ++i) CHECK(*layers_of(broken)[i].ops == *layers_of(model)[i].ops);
}

TEST_CASE("ops hold and send up to 10^15 B, and nothing overflows") {
  constexpr std::int64_t most = kLargestQuantity;
  const Ops ops =
      list_of({{LinearOp{NumberFormat::bf16, most / 10, 1, 3, 0}, false},
               {NormOp{most, most}, false},
               {ExchangeOp{ExchangeKind::gather_keys, most, most, 10, 0, most / 10}, false},
               {ExchangeOp{ExchangeKind::to_experts, most, 1, most, most, 1}, false}});
  CHECK(*layers_of(read(profile_yaml(model_of({ops}))))[0].ops == *ops);
  const auto is_refused = [](const std::string& op) {
    return refusal("forward: 1 ms, backward: 1 ms, ops: x", "{x: [{op: " + op + "}]}") ==
           "ops.x holds or sends more than the 10^15 B that are accepted";
  };
  const std::string number = std::to_string(most);
  CHECK(is_refused(fmt::format("linear, rows: {0}, outputs: {0}, inputs: {0}", number)));
  CHECK(
      is_refused(fmt::format("attention, batch: {0}, queries: {0}, keys: {0}, heads: {0}, "
                             "key_heads: {0}, query_size: {0}, value_size: {0}",
                             number)));
  CHECK(is_refused(fmt::format("lookup, rows: 1, columns: 1, table_rows: {0}", number)));
  CHECK(
      is_refused("exchange, kind: gather-keys, devices: 2, near: 1, bytes: 1 TB, repeated: 1001"));
  CHECK(refusal("flops: 1 TFLOP, ops: x",
                "{x: [{op: attention, batch: 1000, queries: 1000000, keys: 1000000, heads: 1000, "
                "key_heads: 1, query_size: 100, value_size: 100}]}") ==
        "layers[0].flops of forward is 1 TFLOP, but the layer's ops have more than 10^18 FLOP");
}

TEST_CASE("of temporary tensors those of tokens grow with the batch, gradients of weights do not") {
  Profile profile;
  Measurement& measurement = profile.measurements.emplace_back();
  measurement.batch = 2;
  LayerCosts costs;
  // bf16: 2 x 16 x 4 of the weights, 2 x 8 x (16 + 4) of the tokens.
  set_ops(costs, list_of({{LinearOp{NumberFormat::bf16, 8, 16, 4, 0}, false}}));
  measurement.layers.push_back(costs);
  const auto held = [&](std::int64_t size) { return costs_at(profile, size).layers[0].temporary; };
  CHECK(held(2) == Bytes{128 + 320});
  CHECK(held(1) == Bytes{128 + 160});
  CHECK(held(8) == Bytes{128 + 4 * 320});
  std::vector<LayerCosts> layers = {costs};
  cut_into_slices(layers, 4);
  CHECK(layers[0].temporary == Bytes{128 + 80});
}

TEST_CASE("a product in a format that the device has no peak for is refused") {
  CHECK(refusal("flops: 1 GFLOP, ops: x",
                "{x: [{op: linear, format: fp32, rows: 8, outputs: 8, "
                "inputs: 8}]}") == "ops.x[0].format is fp32, in a profile of bf16");
}

TEST_CASE("a layer with ops holds their temporary tensors while its backward runs") {
  const Ops ops = list_of({{LinearOp{NumberFormat::bf16, 8, 16, 4, 0}, false}});
  const Model back = read(profile_yaml(model_of({ops, nullptr})));
  CHECK(layers_of(back)[0].temporary == Bytes{temporary_bytes(*ops).all});
  CHECK(layers_of(back)[1].temporary == Bytes{});
}

TEST_CASE("ops and flops of a layer say the same") {
  const std::string linear = "{x: [{op: linear, rows: 8, outputs: 16, inputs: 4}]}";
  CHECK(refusal("flops: 1024 FLOP, ops: x", linear) == "");
  // FLOPs that cannot be read are compared with nothing.
  CHECK(problems("flops: 1 FLIP, ops: x", linear).size() == 1);
  CHECK(refusal("flops: 1025 FLOP, ops: x", linear) ==
        "layers[0].flops of forward is 1.025 kFLOP, but the layer's ops have 1.024 kFLOP");
  CHECK(refusal("flops: {forward: 1024 FLOP, backward_input: 1024 FLOP}, ops: x", linear) ==
        "layers[0].flops of backward_weight is 0 FLOP, but the layer's ops have 1.024 kFLOP");
  CHECK(refusal("memory_traffic: 1 kB, ops: x", linear) ==
        "layers[0].flops of forward is 0 FLOP, but the layer's ops have 1.024 kFLOP");
  // So it is beside times, for the utilization; without FLOPs there is nothing to compare.
  CHECK(refusal("forward: 1 ms, backward: 1 ms, flops: 1025 FLOP, ops: x", linear) ==
        "layers[0].flops of forward is 1.025 kFLOP, but the layer's ops have 1.024 kFLOP");
  CHECK(refusal("forward: 1 ms, backward: 1 ms, ops: x", linear) == "");
  const std::string fp8 = "{x: [{op: linear, format: fp8, rows: 8, outputs: 16, inputs: 4}]}";
  CHECK(refusal("flops: 1024 FLOP, fp8_flops: 1024 FLOP, ops: x", fp8) == "");
  CHECK(refusal("flops: 1024 FLOP, ops: x", fp8) ==
        "layers[0].fp8_flops of forward is 0 FLOP, but the layer's ops have 1.024 kFLOP");
}

TEST_CASE("sums of FLOPs beyond 2^53 may be off by their last digits") {
  std::string ops = "{x: [";
  for (int i = 0; i < 3; ++i)
    ops += "{op: linear, rows: 100001, outputs: 100001, inputs: 1000003}, ";
  ops += "]}";
  const std::int64_t each = std::int64_t{2} * 100'001 * 100'001 * 1'000'003;
  REQUIRE(static_cast<std::int64_t>(3.0 * static_cast<double>(each)) != 3 * each);
  CHECK(refusal(fmt::format("flops: {} FLOP, ops: x", 3 * each), ops) == "");
  CHECK(refusal(fmt::format("flops: {} FLOP, ops: x", 3 * each + 1'000'000), ops) != "");
}

TEST_CASE("ops that send stand beside the traffic of the layer") {
  const auto exchange = [](const std::string& rest) {
    return "{x: [{op: exchange, " + rest + "}]}";
  };
  const std::string in_server = exchange("kind: add-sums, devices: 4, near: 4, bytes: 1 kB");
  const std::string beyond = exchange("kind: add-sums, devices: 4, near: 2, bytes: 1 kB");
  const std::string experts =
      exchange("kind: to-experts, devices: 4, near: 2, bytes: 1 kB, network_bytes: 1 kB");
  CHECK(refusal("memory_traffic: 1 kB, link_traffic: 1 kB, ops: x", in_server) == "");
  CHECK(refusal("memory_traffic: 1 kB, network_traffic: 1 kB, ops: x", in_server) ==
        "layers[0].ops has exchanges in a server, but the layer has no link_traffic");
  CHECK(refusal("memory_traffic: 1 kB, network_traffic: 1 kB, ops: x", beyond) == "");
  CHECK(refusal("memory_traffic: 1 kB, link_traffic: 1 kB, ops: x", beyond) ==
        "layers[0].ops has exchanges between servers, but the layer has no network_traffic");
  CHECK(refusal("memory_traffic: 1 kB, link_traffic: 1 kB, network_traffic: 1 kB, ops: x",
                experts) == "");
  CHECK(refusal("memory_traffic: 1 kB, network_traffic: 1 kB, ops: x", experts) ==
        "layers[0].ops has exchanges in a server, but the layer has no link_traffic");
  CHECK(refusal("memory_traffic: 1 kB, link_traffic: 1 kB, ops: x", experts) ==
        "layers[0].ops has exchanges between servers, but the layer has no network_traffic");
  CHECK(refusal("memory_traffic: 1 kB, ops: x",
                exchange("kind: add-sums, devices: 1, near: 1, bytes: 1 kB")) == "");
}

TEST_CASE("each size of an op must be there") {
  for (const LayerOpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    for (const OpKey& missing : kind.keys) {
      if (!missing.required) continue;
      std::string op = fmt::format("op: {}", kind.name);
      for (const OpKey& key : kind.keys) {
        if (!key.required || key.name == missing.name) continue;
        const bool is_word = op_value_format(key.name).type == ValueFormat::Type::word;
        const bool is_size = op_value_format(key.name).type == ValueFormat::Type::bytes;
        op += fmt::format(", {}: {}", key.name, is_word ? "add-sums" : is_size ? "1 B" : "1");
      }
      CHECK(refusal("forward: 1 ms, backward: 1 ms, ops: x", fmt::format("{{x: [{{{}}}]}}", op)) ==
            fmt::format("ops.x[0].{} is missing", missing.name));
    }
  }
}

/// The row of a kind in the table of docs/how-to/huggingface.md.
std::string docs_row(const LayerOpKind& kind) {
  std::string needed, further;
  for (const OpKey& key : kind.keys)
    (key.required ? needed : further) += fmt::format("`{}`, ", key.name);
  const auto listed = [](const std::string& keys) { return keys.substr(0, keys.size() - 2); };
  std::string text(kind.text.substr(0, kind.text.size() - 1));
  return fmt::format("| `{}` | {} | {}{} |", kind.name, text, listed(needed),
                     further.empty() ? "" : fmt::format(" ({})", listed(further)));
}

TEST_CASE("the docs have each op with its keys, and each kind of exchange") {
  const auto page = read_file("docs/how-to/huggingface.md", 1 << 20);
  REQUIRE(page);
  const auto has = [&](const std::string& text) {
    return (*page)->text.find('\n' + text) != std::string::npos;
  };
  for (const LayerOpKind& kind : op_kinds()) CHECK_MESSAGE(has(docs_row(kind)), docs_row(kind));
  for (const std::string& word : op_value_format("kind").words)
    CHECK_MESSAGE(has(fmt::format("| `{}` | ", word)), word);
}

}  // namespace
}  // namespace plumbline
