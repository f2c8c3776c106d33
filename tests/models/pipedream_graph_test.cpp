// PipeDream's graph.txt.
// SPDX-License-Identifier: MIT
#include "models/pipedream_graph.h"

#include <doctest/doctest.h>

#include "tests/support/builders.h"

namespace plumbline {
namespace {

TEST_CASE("nodes, lists of sizes, in-place layers and inputs are read as they are meant") {
  const auto model = parse_pipedream_graph(test::text_source(
      "small/graph.txt",
      "node1 -- Input0 -- forward_compute_time=600.000, backward_compute_time=0.000, "
      "activation_size=9.0, parameter_size=0.000\n"
      "node2 -- Conv2d(3, 64, kernel_size=(3, 3), bias=False) -- forward_compute_time=1.500, "
      "backward_compute_time=2.250, activation_size=100.000, parameter_size=40.000\n"
      "\tnode1 -- node2\n"
      "\tnode2 -- node3\n"
      "node3 -- ReLU(inplace) -- forward_compute_time=0.001, backward_compute_time=0.000, "
      "activation_size=100.000, parameter_size=0.000 -- stage_id=1\n"
      "node4 -- LSTM(4, 4) -- forward_compute_time=1.000, backward_compute_time=1.000, "
      "activation_size=[6.0; 2.0; 2.0], parameter_size=8.000\r\n"
      "node5 -- Dropout(p=0.5, inplace=False) -- forward_compute_time=0.000, "
      "backward_compute_time=0.000, activation_size=10.000, parameter_size=0.000\n"
      "\tnode3 -- node4\n\n\tnode4 -- node5\n"));
  REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
  CHECK(model->name == "small");
  REQUIRE(model->graph.size() == 4);
  const auto& layers = model->profile.measurements[0].layers;
  CHECK(!model->profile.measurements[0].batch);
  CHECK(model->graph.layer({0}).kind == "Conv2d");
  CHECK(model->graph.layer({0}).parameters == Bytes{40});
  CHECK(layers[0].forward.mean == std::chrono::microseconds(1500));
  CHECK(layers[0].activation == Bytes{100});
  CHECK(layers[1].activation == Bytes{0});
  CHECK(layers[1].output == Bytes{100});
  CHECK(layers[2].output == Bytes{10});
  CHECK(layers[3].activation == Bytes{10});
  CHECK(model->graph.edges() == std::vector<LayerEdge>{{{0}, {1}}, {{1}, {2}}, {{2}, {3}}});
}

}  // namespace
}  // namespace plumbline
