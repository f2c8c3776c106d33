// Shapes, names and bytes of networks; the kinds themselves are in layer_kinds.cpp.
//
// SPDX-License-Identifier: MIT
#include "models/network/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/network/exact_elements.h"

namespace plumbline {
namespace {

struct KindName {
  std::string_view operator()(const Linear&) const { return "linear"; }
  std::string_view operator()(const Relu&) const { return "relu"; }
  std::string_view operator()(const Gelu&) const { return "gelu"; }
  std::string_view operator()(const LayerNorm&) const { return "layer_norm"; }
  std::string_view operator()(const AttentionBlock&) const { return "attention_block"; }
  std::string_view operator()(const MlpBlock&) const { return "mlp_block"; }
  std::string_view operator()(const Embedding&) const { return "embedding"; }
  std::string_view operator()(const Head&) const { return "head"; }
  std::string_view operator()(const Conv2d&) const { return "conv2d"; }
  std::string_view operator()(const MaxPool&) const { return "max_pool"; }
  std::string_view operator()(const BatchNorm&) const { return "batch_norm"; }
  std::string_view operator()(const Flatten&) const { return "flatten"; }
  std::string_view operator()(const ResidualBlock&) const { return "residual_block"; }
  std::string_view operator()(const Lstm&) const { return "lstm"; }
  std::string_view operator()(const RmsNorm&) const { return "rms_norm"; }
};

SaturatingCount exact_output_bytes(const Network& network, const NetworkLayer& layer,
                                   std::int64_t batch) {
  PLUMBLINE_CHECK(batch >= 1, batch);
  const bool is_loss = std::holds_alternative<Head>(layer.settings);
  return exact_elements(layer.output) * batch *
         bytes_of(is_loss ? ElementType::fp32 : network.element);
}

SaturatingCount exact_bytes(const std::vector<KeptTensor>& tensors, ElementType element,
                            std::int64_t batch) {
  PLUMBLINE_CHECK(batch >= 1, batch);
  SaturatingCount sum;
  for (const KeptTensor& tensor : tensors) {
    const std::int64_t element_bytes = bytes_of(tensor.statistic ? ElementType::fp32 : element);
    sum += exact_elements(tensor.shape) * (tensor.per_sample ? batch : 1) * element_bytes;
  }
  return sum;
}

}  // namespace

std::int64_t Shape::elements() const {
  const SaturatingCount count = exact_elements(*this);
  PLUMBLINE_CHECK(count.is_exact(), to_text(*this));
  return count.value();
}

std::string to_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.extents, ", "));
}

std::int64_t bytes_of(ElementType type) { return type == ElementType::bf16 ? 2 : 4; }

std::string_view name(ElementType type) { return kElementTypes[static_cast<std::size_t>(type)]; }

std::string_view kind_name(const LayerSettings& settings) {
  return std::visit(KindName{}, settings);
}

AttentionWidths attention_widths(const AttentionBlock& block, std::int64_t features) {
  PLUMBLINE_CHECK(block.heads >= 1, block.heads);
  return {block.heads, block.kv_heads > 0 ? block.kv_heads : block.heads,
          block.head_size > 0 ? block.head_size : features / block.heads};
}

std::int64_t NetworkLayer::parameter_count() const {
  SaturatingCount sum;
  for (const Parameter& parameter : parameters) sum += exact_elements(parameter.shape);
  PLUMBLINE_CHECK(sum.is_exact(), name);
  return sum.value();
}

std::int64_t Network::parameter_count() const {
  SaturatingCount sum;
  for (const NetworkLayer& layer : layers) sum += layer.parameter_count();
  PLUMBLINE_CHECK(sum.is_exact(), name);
  return sum.value();
}

// A batch is not part of a network, so its products are bounded here: 2^53 + 1 B = more than that.

Bytes output_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch) {
  return {exact_output_bytes(network, layer, batch).value()};
}

Bytes activation_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch) {
  const SaturatingCount kept = exact_bytes(layer.kept, network.element, batch);
  return {(exact_output_bytes(network, layer, batch) + kept).value()};
}

Bytes left_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch) {
  return {exact_bytes(layer.left_for_weights, network.element, batch).value()};
}

Bytes parameter_bytes(const Network& network, const NetworkLayer& layer) {
  return {(SaturatingCount(layer.parameter_count()) * bytes_of(network.element)).value()};
}

}  // namespace plumbline
