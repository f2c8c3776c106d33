// PipeDream's graph.txt.
//
// SPDX-License-Identifier: MIT
#include "models/import/pipedream_graph.h"

#include <doctest/doctest.h>

#include "tests/support/text_source.h"

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

/// Node `id` of this stage; "" = without one.
std::string node(int id, const std::string& description, const std::string& stage,
                 const std::string& forward = "1.0") {
  return "node" + std::to_string(id) + " -- " + description +
         " -- forward_compute_time=" + forward +
         ", backward_compute_time=2.0, activation_size=4.0, parameter_size=8.0" +
         (stage.empty() ? "" : " -- stage_id=" + stage) + "\n";
}

std::vector<std::string> notes_of(const std::string& text) {
  const auto model = parse_pipedream_graph(test::text_source("small/graph.txt", text));
  REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
  return model->notes;
}

TEST_CASE("what a PipeDream graph says and a layer does not hold is told") {
  using Notes = std::vector<std::string>;
  const std::string edges = "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n";
  CHECK(notes_of(node(1, "Conv2d(3)", "") + node(2, "ReLU()", "")).empty());
  CHECK(notes_of(node(1, "Conv2d(3)", "0") + node(2, "ReLU()", "0") + node(3, "Linear(4)", "1") +
                 node(4, "ReLU()", "2") + edges) ==
        Notes{"stage_id is not used: plan.partition says what a stage is; [2, 1, 1] is that of the "
              "file"});
  // In topological order; and where a stage is no run of layers, or some layer has none.
  CHECK(notes_of(node(2, "ReLU()", "1") + node(1, "Conv2d(3)", "0") + "\tnode1 -- node2\n") ==
        Notes{"stage_id is not used: plan.partition says what a stage is; [1, 1] is that of the "
              "file"});
  CHECK(notes_of(node(1, "Conv2d(3)", "0") + node(2, "ReLU()", "1") + node(3, "Linear(4)", "0") +
                 "\tnode1 -- node2\n\tnode2 -- node3\n") ==
        Notes{"stage_id is not used: plan.partition says what a stage is"});
  CHECK(notes_of(node(1, "Conv2d(3)", "0") + node(2, "ReLU()", "")) ==
        Notes{"stage_id is not used: plan.partition says what a stage is"});
  CHECK(notes_of(node(1, "Input0", "", "600.0") + node(2, "Input1", "0", "1.5") +
                 node(3, "Linear(4)", "")) ==
        Notes{"Input nodes (data loading) are not counted: 601.5 ms in the forward and 4 ms in the "
              "backward, and 16 B of parameters"});
}

TEST_CASE("the fourth part of a node is its stage and nothing else") {
  const auto problem = [](const std::string& stage) {
    std::string text = node(1, "Conv2d(3)", "0");
    text.replace(text.find("stage_id=0"), 10, stage);
    const auto model = parse_pipedream_graph(test::text_source("graph.txt", text));
    REQUIRE_FALSE(model);
    CHECK(model.problems().front().help == "the fourth part of a node line reads: stage_id=0");
    return model.problems().front().message;
  };
  CHECK(problem("stage_id=a") == "stage_id is 'a', which is not a whole number");
  CHECK(problem("stage_id=-1") == "stage_id is '-1', which is negative");
  CHECK(problem("stage=1") == "'stage=1' is no stage of a node");
  CHECK(problem("") == "'' is no stage of a node");
}

}  // namespace
}  // namespace plumbline
