// From the table of ops to their members.
//
// SPDX-License-Identifier: MIT
#include "models/profile/ops_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/exact_quantity.h"
#include "models/profile/op_format.h"

namespace plumbline {
namespace {

std::optional<std::int64_t> read_word(SectionReader& op, std::string_view key,
                                      const std::vector<std::string>& offered) {
  const auto word = op.choice(key, fmt::format("{} of this op", key));
  if (!word) return std::nullopt;
  return std::find(offered.begin(), offered.end(), word->value) - offered.begin();
}

std::optional<std::int64_t> read_value(SectionReader& op, std::string_view key) {
  const ValueFormat& format = op_value_format(key);
  switch (format.type) {
    case ValueFormat::Type::word:
      return read_word(op, key, format.words);
    case ValueFormat::Type::boolean: {
      const auto flag = op.boolean(key);
      return flag ? std::optional<std::int64_t>(flag->value) : std::nullopt;
    }
    case ValueFormat::Type::bytes: {
      const auto size = op.bytes(key);
      return size ? std::optional(size->value.count) : std::nullopt;
    }
    default: {
      const auto number = op.count(key);
      return number ? std::optional(number->value) : std::nullopt;
    }
  }
}

/// Adds an error where a part is more than the whole.
void check_part(SectionReader& op, std::string_view part, std::int64_t some, std::string_view whole,
                std::int64_t all) {
  if (some <= all) return;
  op.error(op.mark_of(part), fmt::format("{} is {}, more than the {} of {}", op.path_of(part), some,
                                         all, op.path_of(whole)));
}

/// Adds an error for a key that means nothing beside the op's other values.
void check_idle(SectionReader& op, std::string_view key, bool is_used, std::string_view needs) {
  if (is_used || !op.has(key)) return;
  op.error(op.mark_of(key), fmt::format("{} stands without {}", op.path_of(key), needs),
           "it would change nothing");
}

/// Checks the keys of an op against each other.
struct KeysCheck {
  SectionReader& op;
  NumberFormat dtype;  ///< The profile's.

  void operator()(const LinearOp& linear) const {
    if (linear.format == dtype || linear.format == NumberFormat::fp8) return;
    op.error(op.mark_of("format"),
             fmt::format("{} is {}, in a profile of {}", op.path_of("format"),
                         name_of(linear.format), name_of(dtype)),
             "the peak of the device is that of the profile's dtype; fp8 has one of its own");
  }
  void operator()(const AttentionOp& attention) const {
    check_stride(attention.queries, attention.keys, attention.stride);
    check_idle(op, "drops", attention.keeps_scores, "keeps_scores: true");
    check_idle(op, "by_chunk", attention.window > 0, "window");
  }
  void operator()(const IndexOp& index) const {
    check_stride(index.queries, index.keys, index.stride);
  }
  /// Keys that stand for several tokens each: the last of them may be cut off.
  void check_stride(std::int64_t queries, std::int64_t keys, std::int64_t stride) const {
    if (stride == 1) check_part(op, "queries", queries, "keys", keys);
  }
  void operator()(const ExchangeOp& exchange) const {
    check_part(op, "near", exchange.near, "devices", exchange.devices);
    check_idle(op, "network_bytes", is_all_to_all(exchange.kind),
               "kind: to-experts or exchange-heads");
    check_idle(op, "repeated", exchange.kind == ExchangeKind::gather_keys, "kind: gather-keys");
  }
  template <class Other>
  void operator()(const Other& /*op*/) const {}
};

/// Reads an op; nothing where its kind is not known.
std::optional<LayerOp> read_op(const YamlNode& node, const std::string& path, NumberFormat dtype,
                               Diagnostics& problems) {
  SectionReader section(node, path, op_format(), problems);
  section.require("op");
  const auto name = section.choice("op", "op that is known");
  if (!name) return std::nullopt;
  const LayerOpKind& kind =
      *std::find_if(op_kinds().begin(), op_kinds().end(),
                    [&](const LayerOpKind& each) { return each.name == name->value; });
  LayerOp op{kind.defaults(dtype), false};
  const std::size_t problems_before = problems.size();
  for (const OpKey& key : kind.keys) {
    if (key.required) section.require(key.name);
    if (const auto value = read_value(section, key.name)) key.set(op.shape, *value);
  }
  if (const auto again = section.boolean("again")) op.again = again->value;
  section.finish();
  if (problems.size() == problems_before) std::visit(KeysCheck{section, dtype}, op.shape);
  return op;
}

OpFlops flops_in_fp8(const LayerOps& ops) {
  LayerOps in_fp8{ops.dtype, {}};
  if (ops.dtype == NumberFormat::fp8) return {};  // all numbers are, and no product stands out
  for (const LayerOp& op : ops.ops) {
    const auto* linear = std::get_if<LinearOp>(&op.shape);
    if (linear && linear->format == NumberFormat::fp8) in_fp8.ops.push_back(op);
  }
  return flops_of(in_fp8);
}

std::string flops_text(double flops) {
  return flops <= static_cast<double>(kMaxFlops)
             ? exact_text(Flops{static_cast<std::int64_t>(flops)})
             : "more than 10^18 FLOP";
}

/// Adds an error where ops have other FLOPs than the work of their layer, in one of its passes.
void check_flops(SectionReader& layer, std::string_view key, Flops PassWork::*part,
                 const LayerWork& work, const OpFlops& ops, double last_digits) {
  struct Pass {
    std::string_view name;
    Flops given;
    double of_ops;
  };
  for (const Pass& pass : {Pass{"forward", work.forward.*part, ops.forward},
                           Pass{"backward_input", work.backward_input.*part, ops.input},
                           Pass{"backward_weight", work.backward_weight.*part, ops.weights}}) {
    const double off = std::abs(pass.of_ops - static_cast<double>(pass.given.count));
    if (off <= last_digits * pass.of_ops) continue;
    return layer.error(
        layer.mark_of(layer.has(key) ? key : "ops"),
        fmt::format("{} of {} is {}, but the layer's ops have {}", layer.path_of(key), pass.name,
                    exact_text(pass.given), flops_text(pass.of_ops)),
        "both say what it computes: correct one, or take ops out");
  }
}

bool is_sent(const LayerWork& work, Bytes PassWork::*way) {
  return (work.forward.*way).count > 0 || (work.backward_input.*way).count > 0 ||
         (work.backward_weight.*way).count > 0;
}

/// Adds an error where ops send over a way over which the work of their layer sends nothing.
void check_traffic(SectionReader& layer, std::string_view key, std::string_view where, bool sends,
                   bool has_traffic) {
  if (!sends || has_traffic) return;
  layer.error(
      layer.mark_of("ops"),
      fmt::format("{} has exchanges {}, but the layer has no {}", layer.path_of("ops"), where, key),
      "both say what it sends: give that, or take ops out");
}

}  // namespace

NamedOps::NamedOps(SectionReader& section, std::optional<NumberFormat> dtype, Diagnostics& problems)
    : path_(section.path_of("ops")), problems_(problems) {
  auto lists = section.section("ops");
  if (!lists || !lists->is_map()) return;
  const YamlNode* node = section.child("ops");
  if (!dtype && !section.has("dtype"))
    section.error(section.mark_of("ops"),
                  fmt::format("{} stands without {}", path_, section.path_of("dtype")),
                  "the time of an op depends on the numbers that it moves: dtype: bf16");
  for (const YamlNode::Entry& entry : node->entries)
    read_list(*lists, entry, dtype.value_or(NumberFormat::bf16));
}

void NamedOps::read_list(SectionReader& lists, const YamlNode::Entry& entry, NumberFormat dtype) {
  const std::string path = lists.path_of(clipped(entry.key));
  const std::size_t problems_before = problems_.size();
  LayerOps read{dtype, {}};
  if (entry.value.kind != YamlNode::Kind::sequence || entry.value.items.empty())
    lists.error(entry.mark, fmt::format("{} is no list of ops", path),
                "such as [{op: linear, rows: 8192, outputs: 4096, inputs: 4096}]");
  for (std::size_t i = 0; i < entry.value.items.size(); ++i) {
    if (const auto op =
            read_op(entry.value.items[i], fmt::format("{}[{}]", path, i), dtype, problems_))
      read.ops.push_back(*op);
  }
  if (largest_bytes(read) > kLargestQuantity)
    lists.error(entry.mark,
                fmt::format("{} holds or sends more than the 10^15 B that are accepted", path));
  Named& named = lists_[entry.key];
  named.mark = entry.mark;
  if (problems_.size() != problems_before) return;
  named.sums = sums_of(read);
  named.ops = std::make_shared<const LayerOps>(std::move(read));
}

NamedOps::Sums NamedOps::sums_of(const LayerOps& ops) {
  Sums sums{flops_of(ops), flops_in_fp8(ops)};
  sums.last_digits = static_cast<double>(ops.ops.size()) * std::numeric_limits<double>::epsilon();
  for (const LayerOp& op : ops.ops) {
    const auto* exchange = std::get_if<ExchangeOp>(&op.shape);
    if (!exchange || exchange->devices == 1) continue;
    // An all-to-all goes both ways; all else goes around a ring, over the network where it leaves
    // the server.
    const bool is_near = is_all_to_all(exchange->kind) || exchange->near == exchange->devices;
    sums.on_link = sums.on_link || (exchange->bytes > 0 && is_near);
    sums.on_network =
        sums.on_network || exchange->network_bytes > 0 || (exchange->bytes > 0 && !is_near);
  }
  return sums;
}

void NamedOps::check_work(SectionReader& layer, const Sums& ops, const LayerWork& work) {
  check_flops(layer, "flops", &PassWork::flops, work, ops.flops, ops.last_digits);
  check_flops(layer, "fp8_flops", &PassWork::fp8_flops, work, ops.fp8_flops, ops.last_digits);
  check_traffic(layer, "link_traffic", "in a server", ops.on_link,
                is_sent(work, &PassWork::link_traffic));
  check_traffic(layer, "network_traffic", "between servers", ops.on_network,
                is_sent(work, &PassWork::network_traffic));
}

void NamedOps::give_ops(SectionReader& layer, LayerCosts& costs, bool is_sound) {
  const auto name = layer.text("ops");
  if (!name) return;
  const auto found = lists_.find(name->value);
  if (found == lists_.end()) {
    std::vector<std::string> names;
    names.reserve(lists_.size());
    for (const auto& [each, list] : lists_) names.push_back(each);
    std::string help = did_you_mean(name->value, names);
    if (help.empty()) help = fmt::format("{} holds lists of ops by their names", path_);
    return layer.error(name->mark,
                       fmt::format("{} is '{}', which is no list of {}", layer.path_of("ops"),
                                   clipped(name->value), path_),
                       std::move(help));
  }
  Named& named = found->second;
  named.is_used = true;
  set_ops(costs, named.ops);
  if (named.ops && costs.work && is_sound) check_work(layer, named.sums, *costs.work);
}

void NamedOps::report_unused() {
  for (const auto& [name, list] : lists_) {
    if (list.is_used) continue;
    problems_.push_back(input_error(
        list.mark, fmt::format("{}.{} is named by no layer", path_, clipped(name)),
        fmt::format("a layer that does this says ops: {}; or take the list out", clipped(name))));
  }
}

}  // namespace plumbline
