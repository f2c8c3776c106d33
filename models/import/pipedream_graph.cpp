// PipeDream's text format, read line by line. Each fault has its place.
//
// SPDX-License-Identifier: MIT
#include "models/import/pipedream_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "base/quantity.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

constexpr std::size_t kLargestGraph = std::size_t{64} << 20U;
constexpr std::string_view kSeparator = " -- ";

/// A piece of a line with its place.
struct Piece {
  std::string_view text;
  std::size_t column;  ///< From 0.
};

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<Piece> split(Piece piece, std::string_view separator) {
  std::vector<Piece> parts;
  while (true) {
    const std::size_t end = piece.text.find(separator);
    parts.push_back({piece.text.substr(0, end), piece.column});
    if (end == std::string_view::npos) return parts;
    piece.column += end + separator.size();
    piece.text.remove_prefix(end + separator.size());
  }
}

/// Whether the module keeps no activation: it passes on its input, or overwrites it (inplace=True).
bool keeps_no_activation(std::string_view description) {
  const std::string_view name = description.substr(0, description.find('('));
  if (name == "View" || name == "Size" || name == "__getitem__") return true;
  const std::size_t at = description.find("inplace");
  if (at == std::string_view::npos || name == "Sequential") return false;
  return description.substr(at).substr(0, 13) != "inplace=False";
}

class GraphParser {
 public:
  explicit GraphParser(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

  Result<Model> parse() {
    // Node lines first: edges may name nodes that come later.
    std::string_view rest = source_->text;
    for (int line = 1; !rest.empty(); ++line) {
      const std::size_t end = rest.find('\n');
      std::string_view text = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
      if (without_blanks(text).empty()) continue;
      if (problems_.size() > 100) break;
      line_ = line;
      if (text.front() == '\t') {
        edge_lines_.emplace_back(line, text);
      } else {
        read_node(text);
      }
    }
    for (const auto& [line, text] : edge_lines_) {
      line_ = line;
      read_edge(text);
    }
    model_.graph.add_edges(edges_);
    if (problems_.empty() && model_.graph.size() == 0) {
      return input_error({source_}, "has no layer",
                         "a node line reads: id -- description -- forward_compute_time=1.0, "
                         "backward_compute_time=2.0, activation_size=4.0, parameter_size=0.0");
    }
    if (problems_.empty()) {
      measurement_.layers.shrink_to_fit();
      model_.profile.measurements.push_back(std::move(measurement_));
      model_.profile.provenance = {{"source", "measured"}, {"tool", "PipeDream's profiler"}};
      report_cycle(
          model_.graph, [this](const LayerEdge& edge) { return edge_marks_.at(edge); }, problems_);
    }
    if (!problems_.empty()) return problems_;
    add_notes();
    return std::move(model_);
  }

 private:
  struct Node {
    std::optional<LayerId> layer;  ///< Nothing for an Input node.
    int line;
  };

  void error(Piece at, std::string message, std::string help = "") {
    const Mark mark{source_, line_, static_cast<int>(at.column) + 1,
                    static_cast<int>(std::min<std::size_t>(at.text.size(), 200))};
    problems_.push_back(input_error(mark, std::move(message), std::move(help)));
  }

  void read_node(std::string_view text) {
    const std::vector<Piece> parts = split({text, 0}, kSeparator);
    if (parts.size() < 3 || parts.size() > 4) {
      return error({text, 0},
                   fmt::format("a node line has 3 or 4 parts separated by ' -- ', this one has {}",
                               parts.size()),
                   "an edge line begins with a tab");
    }
    const std::string id(without_blanks(parts[0].text));
    const std::string_view description = without_blanks(parts[1].text);
    if (const auto found = nodes_.find(id); found != nodes_.end()) {
      return error(parts[0], fmt::format("the node '{}' stands here a second time", clipped(id)),
                   fmt::format("the first is on line {}", found->second.line));
    }
    Fields fields;
    if (!read_fields(parts[2], fields)) return;
    std::optional<std::int64_t> stage;
    if (parts.size() == 4) {
      stage = read_stage(parts[3]);
      if (!stage) return;
    }
    if (description.substr(0, 5) == "Input") {
      nodes_[id] = {std::nullopt, line_};
      const auto add = [](std::int64_t& sum, std::int64_t more) {
        sum = std::min(sum + more, kLargestQuantity);
      };
      add(inputs_.forward, fields.forward);
      add(inputs_.backward, fields.backward);
      add(inputs_.parameters, fields.parameters);
      return;
    }
    if (model_.graph.size() == static_cast<std::size_t>(kMaxLayers)) {
      return error(parts[0],
                   fmt::format("this is one layer more than the {} that are read", kMaxLayers));
    }
    const LayerId layer =
        model_.graph.add_layer({.name = id,
                                .kind = std::string(description.substr(0, description.find('('))),
                                .parameters = {fields.parameters}});
    nodes_[id] = {layer, line_};
    LayerCosts costs;
    costs.forward.mean = Duration(fields.forward);
    costs.backward.mean = Duration(fields.backward);
    costs.output = {fields.activation};
    if (!keeps_no_activation(description)) costs.activation = {fields.activation};
    measurement_.layers.push_back(costs);
    stages_.push_back(stage);
  }

  /// Reads "stage_id=3": the stage in which PipeDream's optimizer put the node.
  std::optional<std::int64_t> read_stage(Piece part) {
    constexpr std::string_view name = "stage_id=";
    const std::string_view text = without_blanks(part.text);
    const auto number = text.starts_with(name) ? parse_count(text.substr(name.size()))
                                               : Parsed<std::int64_t>{std::nullopt, ""};
    if (number.value) return number.value;
    error(part,
          text.starts_with(name) ? fmt::format("stage_id is '{}', which {}",
                                               clipped(text.substr(name.size())), number.problem)
                                 : fmt::format("'{}' is no stage of a node", clipped(text)),
          "the fourth part of a node line reads: stage_id=0");
    return std::nullopt;
  }

  /// Notes the facts of the file that the layers do not hold.
  void add_notes() {
    if (inputs_.forward > 0 || inputs_.backward > 0 || inputs_.parameters > 0) {
      std::string what =
          fmt::format("{} in the forward and {} in the backward",
                      to_text(Duration(inputs_.forward)), to_text(Duration(inputs_.backward)));
      if (inputs_.parameters > 0)
        what += fmt::format(", and {} of parameters", to_text(Bytes{inputs_.parameters}));
      model_.notes.push_back(fmt::format("Input nodes (data loading) are not counted: {}", what));
    }
    if (std::any_of(stages_.begin(), stages_.end(), [](const auto& s) { return s.has_value(); }))
      model_.notes.push_back("stage_id is not used: plan.partition says what a stage is" +
                             partition_text());
  }

  /// "; [2, 3] is that of the file"; "" where the file's stages are not runs of consecutive layers.
  std::string partition_text() const {
    std::vector<std::int64_t> counts;
    std::optional<std::int64_t> before;
    for (const LayerId layer : model_.graph.topological_order()) {
      const std::optional<std::int64_t> stage = stages_[layer.value];
      if (!stage || (before && *stage < *before)) return "";
      if (stage != before) counts.push_back(0);
      ++counts.back();
      before = stage;
    }
    constexpr std::size_t max = 64;
    if (counts.size() > max) return "";
    return fmt::format("; [{}] is that of the file", fmt::join(counts, ", "));
  }

  struct Fields {
    std::int64_t forward = -1;
    std::int64_t backward = -1;
    std::int64_t activation = -1;
    std::int64_t parameters = -1;
  };

  bool read_fields(Piece part, Fields& fields) {
    const std::map<std::string_view, std::pair<std::int64_t*, double>> wanted = {
        {"forward_compute_time", {&fields.forward, 1e6}},  // milliseconds to ns
        {"backward_compute_time", {&fields.backward, 1e6}},
        {"activation_size", {&fields.activation, 1}},
        {"parameter_size", {&fields.parameters, 1}}};
    for (const Piece& field : split(part, ", ")) {
      const std::size_t equals = field.text.find('=');
      const auto found = wanted.find(without_blanks(field.text.substr(0, equals)));
      if (equals == std::string_view::npos || found == wanted.end()) {
        error(field, fmt::format("'{}' is no field of a node", clipped(field.text)),
              "the fields are forward_compute_time, backward_compute_time, activation_size, "
              "parameter_size");
        return false;
      }
      const Piece value{field.text.substr(equals + 1), field.column + equals + 1};
      const std::optional<std::int64_t> number =
          read_number(value, found->first, found->second.second);
      if (!number) return false;
      *found->second.first = *number;
    }
    for (const auto& [name, field] : wanted) {
      if (*field.first >= 0) continue;
      error(part, fmt::format("the node has no {}", name));
      return false;
    }
    return true;
  }

  /// A number, or a list of them "[1.0; 2.0]" that stands for its sum, times `scale`.
  std::optional<std::int64_t> read_number(Piece value, std::string_view name, double scale) {
    std::string_view text = without_blanks(value.text);
    std::vector<Piece> parts = {{text, value.column}};
    if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
      parts = split({text.substr(1, text.size() - 2), value.column + 1}, "; ");
    }
    double sum = 0;
    for (const Piece& part : parts) {
      const Parsed<double> number = parse_real(without_blanks(part.text));
      if (!number.value) {
        error(part, fmt::format("{} is '{}', which {}", name, clipped(part.text), number.problem));
        return std::nullopt;
      }
      sum += *number.value * scale;
    }
    if (sum > static_cast<double>(kLargestQuantity)) {
      error(value, fmt::format("{} is '{}', which is larger than any quantity that is accepted",
                               name, clipped(value.text)));
      return std::nullopt;
    }
    return std::llround(sum);
  }

  void read_edge(std::string_view text) {
    const std::vector<Piece> ends = split({text.substr(1), 1}, kSeparator);
    if (ends.size() != 2) return error({text, 0}, "an edge line reads: tab, from, ' -- ', to");
    std::optional<LayerId> layers[2];
    for (int i = 0; i < 2; ++i) {
      const auto found = nodes_.find(std::string(without_blanks(ends[i].text)));
      if (found == nodes_.end()) {
        return error(ends[i], fmt::format("the edge names '{}', which is no node",
                                          clipped(without_blanks(ends[i].text))));
      }
      layers[i] = found->second.layer;
    }
    if (!layers[0] || !layers[1]) return;  // data loading
    if (*layers[0] == *layers[1]) return error(ends[0], "the edge joins a node to itself");
    edges_.push_back({*layers[0], *layers[1]});
    edge_marks_[{*layers[0], *layers[1]}] = {
        source_, line_, 2, static_cast<int>(std::min<std::size_t>(text.size() - 1, 200))};
  }

  std::shared_ptr<const Source> source_;
  int line_ = 0;
  Model model_;
  Measurement measurement_;
  /// Sums over all Input nodes.
  struct {
    std::int64_t forward = 0, backward = 0, parameters = 0;
  } inputs_;
  std::vector<std::optional<std::int64_t>> stages_;  ///< One per layer, where given.
  std::map<std::string, Node> nodes_;
  std::vector<LayerEdge> edges_;
  std::map<LayerEdge, Mark> edge_marks_;
  std::vector<std::pair<int, std::string_view>> edge_lines_;
  Diagnostics problems_;
};

}  // namespace

Result<Model> parse_pipedream_graph(const std::shared_ptr<const Source>& source) {
  auto model = GraphParser(source).parse();
  if (model) {
    const std::filesystem::path path(source->name);
    model->name = path.filename() == "graph.txt" ? path.parent_path().filename().string()
                                                 : path.stem().string();
  }
  return model;
}

Result<Model> read_pipedream_graph(const std::string& path) {
  auto source = read_file(path, kLargestGraph);
  if (!source) return source.problems();
  return parse_pipedream_graph(*source);
}

}  // namespace plumbline
