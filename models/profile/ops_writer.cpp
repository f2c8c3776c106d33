// From the members of ops to the keys of their table.
//
// SPDX-License-Identifier: MIT
#include "models/profile/ops_writer.h"

#include <fmt/format.h>

#include "base/bug.h"
#include "base/exact_quantity.h"
#include "base/yaml_text.h"
#include "models/profile/op_format.h"

namespace plumbline {
namespace {

/// Far below what a reader takes for a text, with room for a number behind it.
constexpr std::size_t kLongestName = 1'000;

std::string value_text(const ValueFormat& format, std::int64_t value) {
  switch (format.type) {
    case ValueFormat::Type::word:
      return format.words.at(static_cast<std::size_t>(value));
    case ValueFormat::Type::boolean:
      return value != 0 ? "true" : "false";
    case ValueFormat::Type::bytes:
      return exact_text(Bytes{value});
    default:
      PLUMBLINE_CHECK(value >= format.min && value <= format.max, value);
      return std::to_string(value);
  }
}

Pieces op_pieces(const LayerOp& op, NumberFormat dtype) {
  const LayerOpKind& kind = op_kind_of(op.shape);
  const LayerOp::Shape defaults = kind.defaults(dtype);
  FlowMap map;
  map.add("op", kind.name);
  for (const OpKey& key : kind.keys) {
    const std::int64_t value = key.get(op.shape);
    if (key.required || value != key.get(defaults))
      map.add(key.name, value_text(op_value_format(key.name), value));
  }
  if (op.again) map.add("again", "true");
  return std::move(map).pieces();
}

std::string list_text(const LayerOps& ops) {
  std::string text;
  for (const LayerOp& op : ops.ops) add_lines(text, "    - ", op_pieces(op, ops.dtype));
  return text;
}

}  // namespace

OpTexts::OpTexts(const Model& model) {
  const std::vector<Layer>& layers = model.graph.layers();
  for (const Measurement& measurement : model.profile.measurements) {
    for (std::size_t i = 0; i < measurement.layers.size(); ++i) {
      const auto& ops = measurement.layers[i].ops;
      if (!ops || names_.contains(ops.get())) continue;
      PLUMBLINE_CHECK(model.profile.dtype == ops->dtype && !ops->ops.empty(), layers[i].name);
      add(*ops, layers[i]);
    }
  }
}

void OpTexts::add(const LayerOps& ops, const Layer& layer) {
  const auto [found, is_new] = by_text_.try_emplace(list_text(ops));
  if (is_new) {
    found->second = new_name(layer);
    lists_.push_back({found->second, found->first});
  }
  names_.emplace(&ops, found->second);
}

std::string OpTexts::new_name(const Layer& layer) {
  const std::string& own = layer.kind.empty() ? layer.name : layer.kind;
  const std::string base = own.size() <= kLongestName ? own : "ops";
  std::string name = base;
  // Names are compared as a reader sees them: two may differ by bytes that are no text.
  for (int number = 2; !used_.insert(yaml_scalar(name)).second; ++number)
    name = fmt::format("{}_{}", base, number);
  return name;
}

std::string OpTexts::text() const {
  if (lists_.empty()) return "";
  std::string text = "ops:\n";
  for (const Named& list : lists_) {
    text += yaml_block_key(list.name);
    text.back() = '\n';  // in the place of the blank in front of a value
    text += list.text;
  }
  return text;
}

}  // namespace plumbline
