// Sizes for the layers of a trace; traces of several ranks as one chain.
//
// SPDX-License-Identifier: MIT
#include "models/import/trace_model.h"

#include <fmt/format.h>

#include <map>

#include "base/some_of.h"
#include "models/import/range_names.h"

namespace plumbline {
namespace {

/// Merges values: "3" where all agree, else "3, 4".
void merge_provenance(const TraceModel& trace, TraceModel& all) {
  for (const auto& [key, value] : trace.model.profile.provenance) {
    std::string& merged = all.model.profile.provenance[key];
    if (merged.empty())
      merged = value;
    else if (merged != value)
      merged += ", " + value;
  }
}

}  // namespace

Diagnostics add_sizes(const std::vector<CsvLayer>& table, TraceModel& trace) {
  Diagnostics problems;
  const std::vector<Layer>& layers = trace.model.graph.layers();
  std::map<std::string, const CsvLayer*, std::less<>> rows;
  for (const CsvLayer& row : table) rows.emplace(row.layer.name, &row);
  std::vector<Layer> sized = layers;
  std::vector<std::string> names, without;
  names.reserve(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    names.push_back(layers[i].name);
    const auto found = rows.find(layers[i].name);
    if (found == rows.end()) {
      without.push_back(layers[i].name);
      continue;
    }
    const CsvLayer& row = *found->second;
    sized[i].kind = row.layer.kind;
    sized[i].parameters = row.layer.parameters;
    LayerCosts& costs = trace.model.profile.measurements.front().layers[i];
    costs.output = row.costs.output;
    costs.activation = row.costs.activation;
    rows.erase(found);
  }
  for (const auto& [name, row] : rows)
    problems.push_back(input_error(row->mark,
                                   fmt::format("the trace has no layer '{}'", clipped(name)),
                                   did_you_mean(name, names)));
  if (!without.empty())
    trace.notes.push_back(fmt::format(
        "{} not in the table of sizes, and {} sizes of 0: {}",
        without.size() == 1 ? "1 layer is" : fmt::format("{} layers are", without.size()),
        without.size() == 1 ? "has" : "have", some_of(without)));
  trace.model.graph = LayerGraph::chain(std::move(sized));
  return problems;
}

Result<TraceModel> chain_traces(std::vector<TraceModel> traces,
                                const std::vector<std::string>& files) {
  if (traces.size() == 1) return std::move(traces.front());
  TraceModel all;
  Diagnostics problems;
  std::vector<Layer> layers;
  std::map<std::string, std::string> file_of;
  all.model.name = traces.front().model.name;
  all.model.profile.measurements.emplace_back();
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const Model& model = traces[i].model;
    for (Layer layer : model.graph.layers()) {
      if (layer.name == kWholeStage) layer.name = fmt::format("stage{}", i);
      const auto [first, is_new] = file_of.emplace(layer.name, files[i]);
      if (!is_new)
        problems.push_back(input_error({},
                                       fmt::format("{} has a layer '{}', as {} has", files[i],
                                                   clipped(layer.name), first->second),
                                       "the traces of a pipeline's ranks are given in its order, "
                                       "each with layers of its own"));
      layers.push_back(std::move(layer));
    }
    const std::vector<LayerCosts>& costs = model.profile.measurements.front().layers;
    std::vector<LayerCosts>& all_costs = all.model.profile.measurements.front().layers;
    all_costs.insert(all_costs.end(), costs.begin(), costs.end());
    merge_provenance(traces[i], all);
    for (const std::string& note : traces[i].notes) {
      const bool is_warning = note.starts_with("warning: ");
      all.notes.push_back(fmt::format("{}{}: {}", is_warning ? "warning: " : "", files[i],
                                      is_warning ? note.substr(9) : note));
    }
  }
  if (!problems.empty()) return problems;
  all.model.graph = LayerGraph::chain(std::move(layers));
  return all;
}

}  // namespace plumbline
