// The passes from a shape to a profile.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_profile.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "models/import/group_traffic.h"
#include "models/import/transformer_misfits.h"
#include "models/import/transformer_ops.h"
#include "models/import/transformer_words.h"

namespace plumbline {
namespace {

Diagnostic refused(std::string message, std::string help) {
  return input_error({}, std::move(message), std::move(help));
}

/// `what` is a count with its limit.
Diagnostic too_large(const std::string& name, std::string_view what,
                     const TransformerOptionNames& names) {
  return refused(fmt::format("layer '{}' has more than the {}", name, what),
                 fmt::format("a shorter {} or a smaller {}; or the sizes in the file are wrong",
                             names.sequence, names.batch));
}

constexpr std::string_view kMostBytes = "10^15 B that are accepted";

/// Errors: a layer that no profile may hold.
std::optional<Diagnostic> check_large(const LayerDerivation& layer, const std::string& name,
                                      SaturatingCount parameter_bytes,
                                      const TransformerOptionNames& names) {
  if (!forward_flops(layer).is_exact() || !input_flops(layer).is_exact())
    return too_large(name, "2^53 FLOPs that are counted", names);
  for (const SaturatingCount& bytes :
       {parameter_bytes, sum(layer.kept), layer.output, layer.forward_traffic, layer.input_traffic,
        layer.weight_traffic, 2 * layer.all_reduced, layer.exchanged, layer.expert_gathered,
        2 * layer.keys_and_values.value, layer.exchanged_heads.value}) {
    if (bytes.value() > kLargestQuantity) return too_large(name, kMostBytes, names);
  }
  return std::nullopt;
}

LayerWork work_of(const LayerDerivation& layer, const ExpertRouting& routing,
                  const TransformerOptions& options) {
  const Sent context = sent_by_context(layer.keys_and_values.value, options);
  const Sent heads = sent_for_heads(layer.exchanged_heads.value, options);
  const Sent tokens =
      sent_to_experts(layer.exchanged, routing, options) +
      sent_by_products({}, layer.expert_gathered, options.expert_tensor_parallel, options);
  const std::int64_t t = options.tensor_parallel;
  const Sent forward =
      sent_by_products(layer.all_reduced, layer.gathered, t, options) + tokens + context + heads;
  const Sent input = sent_by_products(layer.input_all_reduced, layer.input_gathered, t, options) +
                     tokens + context + context + heads;
  const Flops fp8 = {fp8_flops(layer).value()};
  return {.forward = {.flops = {forward_flops(layer).value()},
                      .fp8_flops = fp8,
                      .memory_traffic = {layer.forward_traffic.value()},
                      .link_traffic = forward.link,
                      .network_traffic = forward.network},
          .backward_input = {.flops = {input_flops(layer).value()},
                             .fp8_flops = fp8,
                             .memory_traffic = {layer.input_traffic.value()},
                             .link_traffic = input.link,
                             .network_traffic = input.network},
          .backward_weight = {.flops = {weight_flops(layer).value()},
                              .fp8_flops = fp8,
                              .memory_traffic = {layer.weight_traffic.value()},
                              .link_traffic = {},
                              .network_traffic = {}}};
}

/// What is made again is written, and what it is made of, about as much, is read.
std::optional<Selective> selective_of(const LayerDerivation& layer, const ExpertRouting& routing,
                                      const TransformerOptions& options) {
  const SaturatingCount again = recomputation(layer.kept);
  if (again.value() == 0) return std::nullopt;
  Selective selective;
  selective.activation = {again.value()};
  const Sent sent =
      sent_by_products(layer.again_all_reduced, layer.again_gathered, options.tensor_parallel,
                       options) +
      sent_to_experts(layer.again_exchanged, routing, options) +
      sent_by_products({}, layer.again_expert_gathered, options.expert_tensor_parallel, options) +
      sent_by_context(layer.again_keys_and_values, options) +
      sent_for_heads(layer.again_exchanged_heads, options);
  selective.work = PassWork{.flops = {layer.recompute_flops.value()},
                            .fp8_flops = {layer.recompute_fp8_flops.value()},
                            .memory_traffic = {(2 * again + layer.again_reads).value()},
                            .link_traffic = sent.link,
                            .network_traffic = sent.network};
  return selective;
}

double as_double(SaturatingCount count) {
  return count.is_exact() ? static_cast<double>(count.value())
                          : std::numeric_limits<double>::infinity();
}

TransformerTotals totals_of(const TransformerShape& shape, TransformerOptions options) {
  options.tensor_parallel = 1;
  options.sequence_parallel = false;
  options.expert_parallel = 1;
  options.expert_tensor_parallel = 1;
  // In as many parts of the tokens as are alike, so that those of one are counted exactly.
  options.context_parallel = std::gcd(options.tokens(), options.context_parallel << 16U);
  const auto parts = static_cast<double>(options.context_parallel);
  options.context_exchange = ContextExchange::keys;  // which computes as much
  TransformerTotals totals;
  SaturatingCount idle;
  SaturatingCount borrowed;
  for (const LayerDerivation& layer : derive_layers(shape, options)) {
    totals.parameters += sum(layer.parameters);
    totals.forward_flops += parts * as_double(forward_flops(layer));
    totals.backward_flops +=
        parts * (as_double(input_flops(layer)) + as_double(weight_flops(layer)));
    idle += layer.idle_parameters;
    borrowed += layer.borrowed;
  }
  totals.parameters = {totals.parameters.value() - borrowed.value()};
  totals.active_parameters = {totals.parameters.value() - idle.value()};
  return totals;
}

/// What utilization is counted of: what no device computes twice, nor of scores that are masked;
/// nothing where that is more than is counted.
DeviceGroup group_of(const TransformerShape& shape, TransformerOptions options) {
  if (options.group() == 1 && options.flash_attention) return {};
  DeviceGroup group;
  group.given = true;
  group.devices = options.group();
  group.tensor_parallel = options.tensor_parallel;
  if (group.devices > 1) group.devices_per_server = options.devices_per_server;
  const std::int64_t batches = options.group_batches();
  options.flash_attention = true;
  const double forward = static_cast<double>(batches) * totals_of(shape, options).forward_flops;
  if (forward <= static_cast<double>(kMaxFlops))
    group.forward = Flops{static_cast<std::int64_t>(forward)};
  return group;
}

/// The ops of layers, by their kind.
using OpsOfKinds = std::map<std::string, std::shared_ptr<const LayerOps>>;

/// In the order of the layers: "embedding", "block_0", ...
std::vector<std::string> names_of_layers(const std::vector<LayerDerivation>& derived) {
  std::vector<std::string> names;
  names.reserve(derived.size());
  std::int64_t modules = 0;
  for (const LayerDerivation& layer : derived) {
    std::string layer_name = layer.kind;
    if (layer.role == "mtp") {
      layer_name = fmt::format("mtp_{}", modules++);
    } else if (layer.block >= 0) {
      layer_name = layer.is_part ? fmt::format("block_{}_{}", layer.block, layer.role)
                                 : fmt::format("block_{}", layer.block);
    }
    names.push_back(std::move(layer_name));
  }
  return names;
}

SaturatingCount parameter_bytes(const LayerDerivation& layer, const TransformerOptions& options) {
  return bytes_of(options.dtype) * sum(layer.parameters);
}

/// The model with the block of a layer alone.
TransformerShape shape_of(const LayerDerivation& layer, const TransformerShape& shape) {
  if (layer.role == "mtp") return further_shape(shape);
  return layer.block >= 0 ? shape.of_kind(layer.block_kind) : shape;
}

/// Errors: a layer, or an op of one, that no profile may hold.
Result<OpsOfKinds> ops_of_kinds(const std::vector<LayerDerivation>& derived,
                                const std::vector<std::string>& names,
                                const TransformerShape& shape, const TransformerOptions& options) {
  OpsOfKinds ops;
  for (std::size_t i = 0; i < derived.size(); ++i) {
    const LayerDerivation& layer = derived[i];
    if (auto problem =
            check_large(layer, names[i], parameter_bytes(layer, options), *options.names))
      return *problem;
    const auto [own, is_first] = ops.try_emplace(layer.kind);
    if (!is_first) continue;
    own->second = std::make_shared<const LayerOps>(
        transformer_ops(layer.role, shape_of(layer, shape), options));
    if (largest_bytes(*own->second) > kLargestQuantity)
      return too_large(names[i], kMostBytes, *options.names);
  }
  return ops;
}

LayerGraph graph_of(const std::vector<LayerDerivation>& derived,
                    const std::vector<std::string>& names, const TransformerOptions& options) {
  std::vector<Layer> layers;
  layers.reserve(derived.size());
  for (std::size_t i = 0; i < derived.size(); ++i) {
    const LayerDerivation& layer = derived[i];
    const std::int64_t replicated = replicated_parameters(layer, options).value();
    layers.push_back({names[i],
                      layer.kind,
                      {parameter_bytes(layer, options).value()},
                      Bytes{replicated} * bytes_of(options.dtype)});
    if (layer.borrowed.value() == 0) continue;
    layers.back().tied_to = names.front();  // the embedding
    layers.back().tied = {(bytes_of(options.dtype) * layer.borrowed).value()};
  }
  return LayerGraph::chain(std::move(layers));
}

Measurement measurement_of(const std::vector<LayerDerivation>& derived, const OpsOfKinds& ops,
                           const TransformerShape& shape, const TransformerOptions& options) {
  Measurement measurement;
  measurement.batch = options.batch * options.group_batches();
  measurement.layers.reserve(derived.size());
  for (const LayerDerivation& layer : derived) {
    LayerCosts costs;
    costs.timed = false;
    costs.work = work_of(layer, shape.routing(), options);
    costs.output = {layer.output.value()};
    costs.activation = {sum(layer.kept).value()};
    costs.selective = selective_of(layer, shape.routing(), options);
    set_ops(costs, ops.at(layer.kind));
    measurement.layers.push_back(costs);
  }
  return measurement;
}

/// The notes stand below the symbols; the first layer of each kind shows its formulas.
ProfileComments comments_of(const std::vector<LayerDerivation>& derived,
                            const std::vector<std::string>& names,
                            const std::vector<std::string>& notes, const TransformerShape& shape,
                            const TransformerOptions& options) {
  ProfileComments comments;
  comments.head = head_lines(shape, options);
  for (const std::string& note : notes) comments.head.push_back("note: " + note);
  std::set<std::string_view> shown;
  for (std::size_t i = 0; i < derived.size(); ++i) {
    if (shown.insert(derived[i].kind).second)
      comments.above_layer.emplace(
          names[i], formula_lines(derived[i], shape, shape_of(derived[i], shape), options));
  }
  return comments;
}

}  // namespace

Result<TransformerProfile> transformer_profile(const std::string& name,
                                               const TransformerShape& shape,
                                               const TransformerOptions& options) {
  if (Diagnostics problems = misfits(shape, options); !problems.empty()) return problems;
  const std::vector<LayerDerivation> derived = derive_layers(shape, options);
  const std::vector<std::string> names = names_of_layers(derived);
  const Result<OpsOfKinds> ops = ops_of_kinds(derived, names, shape, options);
  if (!ops) return ops.problems();

  TransformerProfile profile;
  profile.model.name = name;
  profile.model.graph = graph_of(derived, names, options);
  Profile& costs = profile.model.profile;
  costs.dtype = options.dtype;
  costs.provenance = provenance_of(shape, options);
  costs.group = group_of(shape, options);
  costs.measurements.push_back(measurement_of(derived, *ops, shape, options));
  profile.notes = notes_of(shape, options, costs.group);
  profile.uncounted = uncounted(shape, options);
  profile.comments = comments_of(derived, names, profile.notes, shape, options);
  profile.totals = totals_of(shape, options);
  return profile;
}

}  // namespace plumbline
