// A written profile reads back as the same model, whatever its numbers and names.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile_writer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/random.h"
#include "models/profile/model_checks.h"
#include "models/profile/op_format.h"
#include "models/profile/profile_reader.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

bool equal(const MeasuredTime& a, const MeasuredTime& b) {
  return a.mean == b.mean && a.median == b.median && a.q1 == b.q1 && a.q3 == b.q3 &&
         a.samples == b.samples;
}

bool equal(const std::optional<Selective>& a, const std::optional<Selective>& b) {
  if (!a || !b) return !a && !b;
  return a->activation == b->activation && equal(a->forward, b->forward) && a->work == b->work;
}

bool equal(const std::shared_ptr<const LayerOps>& a, const std::shared_ptr<const LayerOps>& b) {
  return a && b ? *a == *b : !a && !b;
}

bool equal(const LayerCosts& a, const LayerCosts& b) {
  if (a.split.has_value() != b.split.has_value()) return false;
  if (a.split &&
      !(equal(a.split->input, b.split->input) && equal(a.split->weight, b.split->weight)))
    return false;
  return equal(a.forward, b.forward) && equal(a.backward, b.backward) &&
         equal(a.update, b.update) && a.output == b.output && a.activation == b.activation &&
         a.work == b.work && a.timed == b.timed && equal(a.selective, b.selective) &&
         equal(a.ops, b.ops) && a.temporary == b.temporary;
}

bool equal(const Layer& a, const Layer& b) {
  return a.name == b.name && a.kind == b.kind && a.parameters == b.parameters &&
         a.replicated == b.replicated;
}

bool equal(const Measurement& a, const Measurement& b) {
  return a.batch == b.batch &&
         std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                    [](const LayerCosts& x, const LayerCosts& y) { return equal(x, y); });
}

bool equal(const Block& a, const Block& b) {
  return a.layers == b.layers && a.forward == b.forward && a.backward == b.backward;
}

bool equal(const Overheads& a, const Overheads& b) {
  return a.per_op == b.per_op && a.hand_over == b.hand_over && a.per_iteration == b.per_iteration &&
         a.add_up == b.add_up && a.stash == b.stash;
}

bool equal(const MeasuredLink& a, const MeasuredLink& b) {
  return a.kind == b.kind && a.latency == b.latency && a.bandwidth == b.bandwidth &&
         a.table == b.table && a.busy == b.busy;
}

template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return equal(x, y); });
}

/// "" where both are the same, else the part that differs.
std::string difference(const Model& a, const Model& b) {
  if (a.name != b.name) return "name";
  if (!equal(a.graph.layers(), b.graph.layers())) return "layers";
  if (a.graph.edges() != b.graph.edges()) return "edges";
  if (a.profile.dtype != b.profile.dtype) return "dtype";
  if (a.profile.group != b.profile.group) return "group";
  if (a.profile.provenance != b.profile.provenance) return "provenance";
  if (!equal(a.profile.measurements, b.profile.measurements)) return "measurements";
  if (!equal(a.profile.blocks, b.profile.blocks)) return "blocks";
  if (a.profile.overheads.has_value() != b.profile.overheads.has_value()) return "overheads";
  if (a.profile.overheads && !equal(*a.profile.overheads, *b.profile.overheads)) return "overheads";
  if (!equal(a.profile.links, b.profile.links)) return "links";
  if (a.profile.slowdown != b.profile.slowdown) return "slowdown";
  if (a.profile.in_flight != b.profile.in_flight) return "in_flight";
  if (a.profile.algorithms != b.profile.algorithms) return "algorithms";
  return "";
}

Model read_back(const Model& model) {
  const std::string text = profile_yaml(model);
  auto read = parse_profile(test::text_source("written.yaml", text));
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())) << text.substr(0, 5000));
  return *std::move(read);
}

Model chain_of(const std::vector<std::string>& names) {
  Model model;
  std::vector<Layer> layers;
  layers.reserve(names.size());
  for (const std::string& name : names) layers.push_back({name, "", {}});
  model.graph = LayerGraph::chain(std::move(layers));
  model.profile.measurements.emplace_back();
  model.profile.measurements.back().layers.resize(names.size());
  return model;
}

/// Texts that some reader of YAML takes for something else, or not at all.
const std::vector<std::string>& awkward_texts() {
  static const std::vector<std::string> kTexts = [] {
    std::vector<std::string> texts = {"plain",
                                      "two words",
                                      "two  spaces",
                                      " leading",
                                      "trailing ",
                                      " ",
                                      "a/b.c-d_e",
                                      "Grün: größer",
                                      "a: b",
                                      "a:b",
                                      ":",
                                      "a:",
                                      "a #b",
                                      "#",
                                      "- a",
                                      "-",
                                      "--- a",
                                      "---",
                                      "...",
                                      "? a",
                                      "?",
                                      "! a",
                                      "!tag",
                                      "&anchor",
                                      "*alias",
                                      "null",
                                      "Null",
                                      "NULL",
                                      "~",
                                      "true",
                                      "False",
                                      "yes",
                                      "No",
                                      "on",
                                      "OFF",
                                      "y",
                                      "N",
                                      "1",
                                      "0",
                                      "010",
                                      "0x1F",
                                      "1e3",
                                      "-1",
                                      "+1",
                                      ".5",
                                      ".inf",
                                      "-.INF",
                                      ".nan",
                                      "1_000",
                                      "12:30:45",
                                      "2026-08-01",
                                      "1.25 ms",
                                      "=",
                                      "<<",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      "{a: b}",
                                      "[a, b]",
                                      "][",
                                      "]]]]]][[[[[[",
                                      "a, b",
                                      ",",
                                      "'",
                                      "\"",
                                      "it's",
                                      "\"quoted\"",
                                      "'quoted'",
                                      "back\\slash",
                                      "ends in \\",
                                      "%directive",
                                      "@at",
                                      "`tick",
                                      "| literal",
                                      "> folded",
                                      "tab\there",
                                      "\t",
                                      "new\nline",
                                      "\n",
                                      "\r\n",
                                      "\x04 end",
                                      "\x7f",
                                      std::string("nul\0nul", 7),
                                      "\x1b[31mred",
                                      "\u0085next",
                                      "\u2028line\u2029paragraph",
                                      "\ufeffmark",
                                      "\uffff",
                                      "\u00a0",
                                      "東京",
                                      "🚀 rocket",
                                      "µs",
                                      "version",
                                      "name: x, forward: 1 ms}",
                                      "</script>",
                                      "$HOME",
                                      "a\\x41",
                                      "\\u0041"};
    texts.push_back(std::string(150, '['));
    texts.push_back(std::string(10'000, 'x'));
    texts.push_back(std::string(9'000, '\x01'));
    return texts;
  }();
  return kTexts;
}

class ModelMaker {
 public:
  explicit ModelMaker(std::uint64_t seed) : seed_(seed) {}

  Model make() {
    Model model;
    if (flip()) model.name = text();
    const auto size = static_cast<std::uint32_t>(1 + below(7));
    add_graph(model, size);
    const std::int64_t measurements = flip() ? 1 : 1 + below(3);
    std::vector<bool> selective;
    selective.reserve(size);
    for (std::uint32_t layer = 0; layer < size; ++layer) selective.push_back(flip());
    if (flip()) model.profile.dtype = static_cast<NumberFormat>(below(4));
    const auto lists = model.profile.dtype ? some_ops(*model.profile.dtype)
                                           : std::vector<std::shared_ptr<const LayerOps>>{nullptr};
    std::int64_t batch = 0;
    for (std::int64_t i = 0; i < measurements; ++i) {
      Measurement& measurement = model.profile.measurements.emplace_back();
      batch += 1 + below(100);
      if (measurements > 1 || flip()) measurement.batch = batch;
      for (std::uint32_t layer = 0; layer < size; ++layer)
        measurement.layers.push_back(costs(selective[layer], one_of(lists)));
    }
    for (std::int64_t i = below(4); i > 0; --i) model.profile.provenance[text()] = text();
    for (std::int64_t i = below(4); i > 0; --i) model.profile.algorithms[text()] = text();
    for (std::int64_t i = below(3); i > 0; --i) {
      Block& block = model.profile.blocks.emplace_back();
      for (std::int64_t k = below(4); k > 0; --k)
        block.layers.push_back({static_cast<std::uint32_t>(below(size))});
      block.forward = time();
      block.backward = time();
    }
    if (DeviceGroup& group = model.profile.group; flip()) {
      group.given = true;
      if (flip()) group.tensor_parallel = 1 + below(10);
      group.devices = group.tensor_parallel * (1 + below(1000));
      if (flip()) group.devices_per_server = group.devices * (1 + below(4));
      if (flip()) group.forward = Flops{quantity()};
    }
    if (flip()) model.profile.overheads = Overheads{time(), time(), time(), {}, {}};
    if (model.profile.overheads && flip())
      model.profile.overheads->add_up = BytesPerSecond{1 + time().count()};
    if (model.profile.overheads && flip())
      model.profile.overheads->stash = BytesPerSecond{1 + time().count()};
    for (std::int64_t i = below(3); i > 0; --i) model.profile.links.push_back(link());
    for (auto* all : {&model.profile.slowdown, &model.profile.in_flight}) {
      for (std::int64_t i = below(3); i > 0; --i) {
        auto& factors = (*all)[text()];
        factors.assign(1, 1.0);
        for (std::int64_t k = below(12); k > 0; --k)
          factors.push_back(random_uniform(seed_, ++place_) * (flip() ? 2 : 1000));
      }
    }
    return model;
  }

 private:
  std::uint64_t bits() { return random_bits(seed_, ++place_); }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(end));
  }
  bool flip() { return below(2) == 0; }
  /// A random number of any size up to the largest that the reader takes.
  std::int64_t quantity() {
    std::int64_t max = 1;
    for (std::int64_t digits = below(16); digits > 0; --digits) max *= 10;
    const std::int64_t value = below(max + 1);
    constexpr std::array<std::int64_t, 6> steps = {1, 1000, 1'000'000, 1024, 1 << 20, 1 << 30};
    const std::int64_t step = steps[static_cast<std::size_t>(below(6))];
    return value <= kLargestQuantity / step ? value * step : value;
  }
  Duration time() { return Duration{quantity()}; }
  MeasuredTime measured_time() {
    MeasuredTime measured;
    measured.mean = time();
    if (flip()) return measured;
    if (flip()) measured.median = time();
    if (flip()) measured.q1 = time();
    if (flip()) measured.q3 = time();
    if (flip()) measured.samples = 1 + below(100'000);
    return measured;
  }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<std::int64_t>(all.size())))];
  }
  LayerOp::Shape shape(NumberFormat dtype) {
    const LayerOpKind& kind = one_of(op_kinds());
    LayerOp::Shape shape = kind.defaults(dtype);
    for (const OpKey& key : kind.keys) {
      const ValueFormat& format = op_value_format(key.name);
      if (!key.required && flip()) continue;
      if (format.type == ValueFormat::Type::word) {
        key.set(shape, below(static_cast<std::int64_t>(format.words.size())));
      } else {
        key.set(shape, format.type == ValueFormat::Type::boolean ? below(2) : 1 + below(2000));
      }
    }
    return shape;
  }
  /// Lists for layers to share, and none. Values that mean nothing together are left out.
  std::vector<std::shared_ptr<const LayerOps>> some_ops(NumberFormat dtype) {
    std::vector<std::shared_ptr<const LayerOps>> lists = {nullptr};
    for (std::int64_t i = below(4); i > 0; --i) {
      LayerOps ops{dtype, {}};
      for (std::int64_t k = 1 + below(5); k > 0; --k) {
        LayerOp& op = ops.ops.emplace_back(LayerOp{shape(dtype), flip()});
        if (auto* linear = std::get_if<LinearOp>(&op.shape)) {
          if (linear->format != NumberFormat::fp8) linear->format = dtype;
        }
        if (auto* attention = std::get_if<AttentionOp>(&op.shape)) {
          if (attention->stride == 1)
            attention->queries = std::min(attention->queries, attention->keys);
          attention->by_chunk = attention->by_chunk && attention->window > 0;
          attention->drops = attention->drops && attention->keeps_scores;
        }
        if (auto* index = std::get_if<IndexOp>(&op.shape); index && index->stride == 1)
          index->queries = std::min(index->queries, index->keys);
        if (auto* exchange = std::get_if<ExchangeOp>(&op.shape)) {
          exchange->near = std::min(exchange->near, exchange->devices);
          if (!is_all_to_all(exchange->kind)) exchange->network_bytes = 0;
          if (exchange->kind != ExchangeKind::gather_keys) {
            exchange->repeated = 1;
            exchange->bytes = quantity();
          }
        }
      }
      lists.push_back(std::make_shared<const LayerOps>(std::move(ops)));
    }
    return lists;
  }
  LayerCosts costs(bool has_selective, const std::shared_ptr<const LayerOps>& ops) {
    LayerCosts costs;
    set_ops(costs, ops);
    costs.forward = measured_time();
    costs.backward = measured_time();
    if (flip()) {
      costs.split = SplitBackward{measured_time(), measured_time()};
      if (flip()) {
        costs.backward = {};
        costs.backward.mean = costs.split->input.mean + costs.split->weight.mean;
      }
    }
    if (flip()) costs.update = measured_time();
    if (flip()) costs.output = {quantity()};
    if (flip()) costs.activation = {quantity()};
    if (has_selective)
      costs.selective = Selective{{below(costs.activation.count + 1)}, measured_time(), {}};
    return costs;
  }
  MeasuredLink link() {
    MeasuredLink link;
    if (flip()) link.kind = text();
    link.latency = time();
    if (flip()) link.bandwidth = BytesPerSecond{std::max<std::int64_t>(quantity(), 1)};
    for (std::int64_t i = below(20); i > 0; --i) link.table.emplace_back(Bytes{quantity()}, time());
    std::uint32_t workers = 0;
    for (std::int64_t i = below(4); i > 0; --i) {
      workers += static_cast<std::uint32_t>(1 + below(100));
      BusyTransfers& busy = link.busy.emplace_back(BusyTransfers{workers, {}});
      for (std::int64_t k = 1 + below(5); k > 0; --k)
        busy.table.emplace_back(Bytes{quantity()}, time());
    }
    return link;
  }
  /// An awkward text, or characters at random.
  std::string text() {
    const auto& awkward = awkward_texts();
    if (flip())
      return awkward[static_cast<std::size_t>(below(static_cast<std::int64_t>(awkward.size())))];
    constexpr std::string_view characters = "ab1 :#-?,[]{}&*!|>'\"%@`\\\t\n\x01~.";
    std::string made;
    for (std::int64_t i = 1 + below(12); i > 0; --i) {
      made +=
          characters[static_cast<std::size_t>(below(static_cast<std::int64_t>(characters.size())))];
    }
    return made;
  }
  void add_graph(Model& model, std::uint32_t size) {
    std::vector<Layer> layers;
    std::set<std::string> used;
    while (layers.size() < size) {
      std::string name = text();
      if (!used.insert(name).second) continue;
      layers.push_back({std::move(name), flip() ? "" : text(), {flip() ? 0 : quantity()}});
      if (flip()) layers.back().replicated = {below(layers.back().parameters.count + 1)};
    }
    if (flip()) {
      model.graph = LayerGraph::chain(std::move(layers));
      return;
    }
    for (Layer& layer : layers) model.graph.add_layer(std::move(layer));
    std::vector<LayerEdge> edges;
    for (std::uint32_t to = 1; to < size; ++to) {
      for (std::uint32_t from = 0; from < to; ++from) {
        if (!flip()) continue;  // some lead back in the file, and never in a cycle
        edges.push_back(seed_ % 2 == 0 ? LayerEdge{{from}, {to}} : LayerEdge{{to}, {from}});
      }
    }
    model.graph.add_edges(edges);
  }

  std::uint64_t seed_;
  std::uint64_t place_ = 0;
};

TEST_CASE("a profile is written as people would write it") {
  Model model;
  model.name = "mlp";
  model.graph = LayerGraph::chain(
      {{"linear_0", "linear", {4 << 20}}, {"gelu_0", "", {}}, {"loss: mean", "", {}}});
  model.profile.provenance = {
      {"source", "measured"}, {"date", "2026-08-01"}, {"tool", "plumbline 0.1.0"}};
  Measurement& measurement = model.profile.measurements.emplace_back();
  measurement.batch = 32;
  measurement.layers.resize(3);
  LayerCosts& linear = measurement.layers[0];
  linear.forward = {Duration{1'234'567}, microseconds{1220}, microseconds{1200}, microseconds{1270},
                    120};
  linear.split = SplitBackward{};
  linear.split->input.mean = microseconds{1100};
  linear.split->weight.mean = milliseconds{1};
  linear.backward.mean = microseconds{2100};
  linear.update.mean = microseconds{3};
  linear.output = linear.activation = {3 << 20};
  measurement.layers[1].forward.mean = Duration{17};
  measurement.layers[1].output = {1'500'000};
  model.profile.blocks = {{{{0}, {1}}, milliseconds{5}, std::chrono::hours{1}}};
  model.profile.overheads = Overheads{microseconds{2},
                                      microseconds{6},
                                      {},
                                      BytesPerSecond{4'123'456'789},
                                      BytesPerSecond{9'000'000'000}};
  model.profile.links = {{"copy",
                          microseconds{4},
                          BytesPerSecond{11'234'567'890},
                          {{{1024}, Duration{4100}}, {{1 << 20}, microseconds{95}}}}};
  model.profile.slowdown = {{"linear", {1, 1.03, 1.125}}};
  model.profile.in_flight = {{"gelu", {0.75, 1}}};
  model.profile.algorithms = {{"fp32 8x16x16*1", "0000000700000000"}};
  CHECK(profile_yaml(model) == R"(version: 1
kind: profile
model: mlp
provenance:
  date: "2026-08-01"
  source: measured
  tool: plumbline 0.1.0
batch: 32
layers:
  - {name: linear_0, kind: linear, forward: {mean: 1.234567 ms, median: 1.22 ms, q1: 1.2 ms, q3: 1.27 ms, samples: 120},
     backward_input: 1.1 ms, backward_weight: 1 ms, update: 3 us, output: 3 MiB, activation: 3 MiB, parameters: 4 MiB}
  - {name: gelu_0, forward: 17 ns, backward: 0 s, output: 1500 kB}
  - {name: "loss: mean", forward: 0 s, backward: 0 s}
blocks:
  - {layers: [linear_0, gelu_0], forward: 5 ms, backward: 3600 s}
overheads: {per_op: 2 us, hand_over: 6 us, per_iteration: 0 s, add_up: 4.123456789 GB/s, stash: 9 GB/s}
links:
  - {kind: copy, latency: 4 us, bandwidth: 11.23456789 GB/s, table: [[1 KiB, 4.1 us], [1 MiB, 95 us]]}
slowdown:
  linear: [1, 1.03, 1.125]
in_flight:
  gelu: [0.75, 1]
algorithms:
  "fp32 8x16x16*1": "0000000700000000"
)");
  CHECK(difference(read_back(model), model) == "");
}

TEST_CASE("several batch sizes and a graph that is no chain are written with their keys") {
  Model model = chain_of({"a", "b", "c"});
  LayerGraph graph;
  for (const Layer& layer : model.graph.layers()) graph.add_layer(layer);
  graph.add_edges({{{0}, {2}}, {{1}, {2}}});
  model.graph = graph;
  model.profile.measurements.push_back(model.profile.measurements.front());
  model.profile.measurements[0].batch = 8;
  model.profile.measurements[1].batch = 16;
  CHECK(profile_yaml(model) == R"(version: 1
kind: profile
measurements:
  - batch: 8
    layers:
      - {name: a, forward: 0 s, backward: 0 s}
      - {name: b, forward: 0 s, backward: 0 s}
      - {name: c, forward: 0 s, backward: 0 s}
  - batch: 16
    layers:
      - {name: a, forward: 0 s, backward: 0 s}
      - {name: b, forward: 0 s, backward: 0 s}
      - {name: c, forward: 0 s, backward: 0 s}
edges: [[a, c], [b, c]]
)");
  CHECK(difference(read_back(model), model) == "");
  model.graph = LayerGraph();
  for (const std::string name : {"a", "b", "c"}) model.graph.add_layer({name, "", {}});
  CHECK(profile_yaml(model).find("edges: []\n") != std::string::npos);
  CHECK(difference(read_back(model), model) == "");
}

TEST_CASE("a text that YAML could misread comes back as it was, wherever it stands") {
  for (const std::string& text : awkward_texts()) {
    CAPTURE(text);
    Model model = chain_of({text, "other"});
    model.name = text;
    model.profile.provenance = {{text, text}, {"", "empty key"}, {"empty value", ""}};
    model.profile.blocks = {{{{0}, {1}}, {}, {}}};
    model.profile.links.emplace_back().kind = text;
    model.profile.slowdown[text] = {1, 2};
    model.profile.in_flight[text] = {1, 2};
    model.profile.algorithms = {{text, text}};
    LayerGraph graph;
    graph.add_layer({text, text, {}});
    graph.add_layer({"other", "", {}});
    graph.add_edges({{{1}, {0}}});
    model.graph = graph;
    CHECK(difference(read_back(model), model) == "");
  }
}

TEST_CASE("words and numbers that other readers of YAML take for something else are quoted") {
  for (const std::string text :
       {"yes", "No", "on", "OFF", "y", "N", "true", "False", "null", "NULL", "010", "1e3", "0x1F",
        "12:30:45", "2026-08-01", ".inf", "a: b", "#"}) {
    CAPTURE(text);
    CHECK(profile_yaml(chain_of({text})).find("{name: \"" + text + "\", ") != std::string::npos);
  }
  for (const std::string text : {"Yesterday", "nullable", "layer 1", "conv2d_1x1", "a/b.c-d"}) {
    CAPTURE(text);
    CHECK(profile_yaml(chain_of({text})).find("{name: " + text + ", ") != std::string::npos);
  }
  CHECK(profile_yaml(chain_of({"\ufeffa\u2028b\x7f\u0085\n"}))
            .find(R"({name: "\ufeffa\u2028b\x7f\x85\n", )") != std::string::npos);
}

TEST_CASE("brackets in many names do not add up to deep nesting") {
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    names.push_back((i % 3 == 0 ? "open[" : i % 3 == 1 ? "block[" + number + "]" : "][{") + number);
  }
  const Model model = chain_of(names);
  CHECK(difference(read_back(model), model) == "");
  CHECK(profile_yaml(model).find("\"block[1]1\"") != std::string::npos);
}

TEST_CASE("times and sizes keep every digit, in the unit that reads best") {
  const auto forward_of = [](std::int64_t ns) {
    Model model = chain_of({"a"});
    model.profile.measurements[0].layers[0].forward.mean = Duration{ns};
    CHECK(difference(read_back(model), model) == "");
    const std::string text = profile_yaml(model);
    const std::size_t from = text.find("forward: ") + 9;
    return text.substr(from, text.find(',', from) - from);
  };
  CHECK(forward_of(0) == "0 s");
  CHECK(forward_of(1) == "1 ns");
  CHECK(forward_of(999) == "999 ns");
  CHECK(forward_of(1000) == "1 us");
  CHECK(forward_of(1001) == "1.001 us");
  CHECK(forward_of(100'000) == "100 us");
  CHECK(forward_of(1'234'567) == "1.234567 ms");
  CHECK(forward_of(1'000'000'001) == "1.000000001 s");
  CHECK(forward_of(kLargestQuantity) == "1000000 s");
  CHECK(forward_of(kLargestQuantity - 1) == "999999.999999999 s");
  const auto output_of = [](std::int64_t bytes) {
    Model model = chain_of({"a"});
    model.profile.measurements[0].layers[0].output = {bytes};
    CHECK(difference(read_back(model), model) == "");
    const std::string text = profile_yaml(model);
    const std::size_t from = text.find("output: ") + 8;
    return text.substr(from, text.find('}', from) - from);
  };
  CHECK(output_of(1) == "1 B");
  CHECK(output_of(1023) == "1023 B");
  CHECK(output_of(3 << 20) == "3 MiB");
  CHECK(output_of(1 << 20 | 1) == "1048577 B");
  CHECK(output_of(5'000'000'001'000) == "5000000001 kB");
  CHECK(output_of(kLargestQuantity) == "976562500000 KiB");
  CHECK(output_of(900LL << 40U) == "900 TiB");
  // Where I and W together are above what one quantity may be, their sum is not written.
  Model model = chain_of({"a"});
  LayerCosts& costs = model.profile.measurements[0].layers[0];
  costs.split = SplitBackward{};
  costs.split->input.mean = costs.split->weight.mean = Duration{kLargestQuantity};
  costs.backward.mean = Duration{2 * kLargestQuantity};
  CHECK(difference(read_back(model), model) == "");
}

TEST_CASE("what the reader does not take is clipped or replaced in the provenance") {
  Model model = chain_of({"a"});
  model.profile.provenance = {{"long", std::string(9'999, 'x') + "\u00fcber"},
                              {"broken", "caf\xe9"},
                              {"all broken", std::string(9'000, '\xff')}};
  const Model back = read_back(model);
  CHECK(back.profile.provenance.at("long") == std::string(9'999, 'x'));
  CHECK(back.profile.provenance.at("broken") == "caf\uFFFD");
  CHECK(back.profile.provenance.at("all broken").size() == 9'999);
}

TEST_CASE("a thousand models at random come back equal, and are written the same again") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const Model model = ModelMaker(seed).make();
    const Model back = read_back(model);
    CHECK(difference(back, model) == "");
    CHECK(profile_yaml(back) == profile_yaml(model));
  }
}

TEST_CASE("no line is longer than it must be") {
  std::vector<std::string> names;
  for (int i = 0; i < 500; ++i) names.push_back("layer_" + std::to_string(i));
  Model model = chain_of(names);
  LayerGraph graph;
  for (const Layer& layer : model.graph.layers()) graph.add_layer(layer);
  std::vector<LayerEdge> edges;
  for (std::uint32_t i = 0; i + 2 < 500; ++i) edges.push_back({{i}, {i + 2}});
  graph.add_edges(edges);
  model.graph = graph;
  model.profile.blocks.emplace_back();
  for (std::uint32_t i = 0; i < 500; ++i) model.profile.blocks[0].layers.push_back({i});
  model.profile.slowdown["linear"].assign(200, 1.03125);
  const std::string text = profile_yaml(model);
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  CHECK(longest > 100);
  CHECK(longest <= 120);
  CHECK(difference(read_back(model), model) == "");
}

}  // namespace
}  // namespace plumbline
