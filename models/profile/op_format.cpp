// The table of ops.
//
// SPDX-License-Identifier: MIT
#include "models/profile/op_format.h"

#include <array>
#include <optional>
#include <string>
#include <variant>

#include "base/bug.h"

namespace plumbline {
namespace {

using namespace format;

/// The names of ExchangeKind, in the order of the enumeration.
constexpr std::array<std::string_view, 12> kExchangeKinds = {
    "gather-tokens", "scatter-sums", "copy-tokens",   "add-sums",
    "scatter-rows",  "add-rows",     "add-losses",    "gather-keys",
    "to-experts",    "gather-rows",  "scatter-parts", "exchange-heads"};

template <class Member>
struct MemberOf;
template <class Type, class Op>
struct MemberOf<Type Op::*> {
  using OfType = Type;
  using OfOp = Op;
};

/// The value of a flag that is not given.
constexpr std::int64_t kNotGiven = -1;

template <class Type>
std::int64_t number_of(const Type& value) {
  return static_cast<std::int64_t>(value);
}
template <class Type>
std::int64_t number_of(const std::optional<Type>& value) {
  return value ? number_of(*value) : kNotGiven;
}

/// A key that is always there.
template <auto Member>
OpKey needed(std::string_view name) {
  using Type = typename MemberOf<decltype(Member)>::OfType;
  using Op = typename MemberOf<decltype(Member)>::OfOp;
  return {
      .name = name,
      .required = true,
      .get = [](const LayerOp::Shape& shape) { return number_of(std::get<Op>(shape).*Member); },
      .set = [](LayerOp::Shape& shape,
                std::int64_t value) { std::get<Op>(shape).*Member = static_cast<Type>(value); }};
}

/// A key that is there where its value is not the default.
template <auto Member>
OpKey further(std::string_view name) {
  OpKey key = needed<Member>(name);
  key.required = false;
  return key;
}

template <class Op>
std::vector<OpKey> rows_and(std::vector<OpKey> further) {
  std::vector<OpKey> keys = {needed<&Op::rows>("rows"), needed<&Op::columns>("columns")};
  keys.insert(keys.end(), further.begin(), further.end());
  return keys;
}

std::vector<LayerOpKind> make_kinds() {
  return {
      {"linear",
       "A product with weights, rows x inputs times inputs x outputs.",
       LinearOp{},
       {further<&LinearOp::format>("format"), needed<&LinearOp::rows>("rows"),
        needed<&LinearOp::outputs>("outputs"), needed<&LinearOp::inputs>("inputs"),
        further<&LinearOp::experts>("experts")}},
      {"attention",
       "Causal attention over the heads of this device.",
       AttentionOp{},
       {needed<&AttentionOp::batch>("batch"), needed<&AttentionOp::queries>("queries"),
        needed<&AttentionOp::keys>("keys"), needed<&AttentionOp::heads>("heads"),
        needed<&AttentionOp::key_heads>("key_heads"),
        needed<&AttentionOp::query_size>("query_size"),
        needed<&AttentionOp::value_size>("value_size"),
        further<&AttentionOp::keeps_scores>("keeps_scores"), further<&AttentionOp::drops>("drops"),
        further<&AttentionOp::window>("window"), further<&AttentionOp::by_chunk>("by_chunk"),
        further<&AttentionOp::stride>("stride")}},
      {"norm", "A norm of each row.", NormOp{}, rows_and<NormOp>({})},
      {"rotation", "The rotation of queries and keys by their positions.", RotationOp{},
       rows_and<RotationOp>({further<&RotationOp::joins>("joins")})},
      {"activation", "The activation of an MLP.", ActivationOp{},
       rows_and<ActivationOp>({further<&ActivationOp::gated>("gated")})},
      {"residual", "The sum of a layer's output and its input.", ResidualOp{},
       rows_and<ResidualOp>({further<&ResidualOp::drops>("drops")})},
      {"sum", "The sum of two tensors, or two tensors joined.", SumOp{}, rows_and<SumOp>({})},
      {"routing",
       "The choice of each token's experts from the router's scores.",
       RoutingOp{},
       {needed<&RoutingOp::rows>("rows"), needed<&RoutingOp::experts>("experts")}},
      {"permute", "Rows in the order of their experts, or back.", PermuteOp{},
       rows_and<PermuteOp>(
           {further<&PermuteOp::passes>("passes"), further<&PermuteOp::sums>("sums")})},
      {"loss", "The loss from logits.", LossOp{},
       rows_and<LossOp>({further<&LossOp::fused>("fused")})},
      {"lookup", "The rows of a table, one for each token, and the gradient of the table.",
       LookupOp{},
       rows_and<LookupOp>({needed<&LookupOp::table_rows>("table_rows"),
                           further<&LookupOp::positions>("positions"),
                           further<&LookupOp::drops>("drops")})},
      {"exchange",
       "What devices that share the layer send each other.",
       ExchangeOp{},
       {needed<&ExchangeOp::kind>("kind"), needed<&ExchangeOp::devices>("devices"),
        needed<&ExchangeOp::near>("near"), needed<&ExchangeOp::bytes>("bytes"),
        further<&ExchangeOp::network_bytes>("network_bytes"),
        further<&ExchangeOp::repeated>("repeated")}},
      {"index",
       "The scores of an index, by which each token chooses the keys that attention reaches.",
       IndexOp{},
       {needed<&IndexOp::batch>("batch"), needed<&IndexOp::queries>("queries"),
        needed<&IndexOp::keys>("keys"), needed<&IndexOp::heads>("heads"),
        needed<&IndexOp::size>("size"), further<&IndexOp::weighted>("weighted"),
        further<&IndexOp::stride>("stride")}},
      {"scan",
       "States that pass from token to token in chunks: a state-space model, or linear attention.",
       ScanOp{},
       {needed<&ScanOp::batch>("batch"), needed<&ScanOp::tokens>("tokens"),
        needed<&ScanOp::heads>("heads"), needed<&ScanOp::key_heads>("key_heads"),
        needed<&ScanOp::key_size>("key_size"), needed<&ScanOp::value_size>("value_size"),
        needed<&ScanOp::chunk>("chunk"), further<&ScanOp::delta>("delta")}},
      {"convolution", "A convolution of each column with the rows before it, and its activation.",
       ConvolutionOp{}, rows_and<ConvolutionOp>({needed<&ConvolutionOp::width>("width")})},
  };
}

/// The keys of all kinds; ops that share a key share its meaning. It is over 80 lines as it is a
/// table of data.
std::vector<KeyFormat> op_values() {
  return {
      {"format",
       {words({kNumberFormats.begin(), kNumberFormats.end()})},
       "linear: the numbers that it multiplies; absent: the profile's dtype."},
      {"rows", {count(1)}, "The rows of its input: tokens, or tokens times experts of each."},
      {"columns", {count(1)}, "The numbers of a row."},
      {"outputs", {count(1)}, "linear: the columns of its output."},
      {"inputs", {count(1)}, "linear: the columns of its input."},
      {"experts",
       {count(1)},
       "linear: the experts of a device, each with a matrix of its own and an equal part of the "
       "rows; absent: one matrix for all rows. routing: those that are chosen from."},
      {"batch", {count(1)}, "attention, index, scan: samples."},
      {"queries", {count(1)}, "attention, index: tokens of a sample on this device."},
      {"keys",
       {count(1)},
       "attention, index: all tokens of a sample; fewer where a key stands for several."},
      {"heads",
       {count(1)},
       "attention, index: heads of queries. scan: heads of values, each with a state."},
      {"key_heads", {count(1)}, "attention: heads of keys and values. scan: heads of keys."},
      {"query_size", {count(1)}, "attention: numbers in a head of queries and keys."},
      {"value_size", {count(1)}, "attention, scan: numbers in a head of values."},
      {"keeps_scores",
       {boolean()},
       "attention: whether its scores are kept, and its products, softmax and mask are kernels "
       "of their own.",
       "false"},
      {"drops",
       {boolean()},
       "attention, residual, lookup: whether dropout is part of it; of attention only where it "
       "keeps its scores.",
       "false"},
      {"window",
       {count(1)},
       "attention: the most keys that a token reaches: a sliding window, or those that an index "
       "has chosen; absent: all before it."},
      {"by_chunk",
       {boolean()},
       "attention: whether a token reaches those of its chunk of so many tokens instead.",
       "false"},
      {"stride", {count(1)}, "attention, index: tokens that a key stands for.", "1"},
      {"size", {count(1)}, "index: numbers in a head."},
      {"weighted",
       {count(0)},
       "index: 1 where the scores of its heads are multiplied with weights and added up.",
       "0"},
      {"tokens", {count(1)}, "scan: tokens of a sample."},
      {"key_size", {count(1)}, "scan: numbers in a key, the size of a state."},
      {"chunk", {count(1)}, "scan: tokens of a chunk, within which products take its place."},
      {"delta",
       {boolean()},
       "scan: whether a token first takes from the state what it holds under its key (delta "
       "rule).",
       "false"},
      {"width", {count(1)}, "convolution: rows of its kernel."},
      {"joins",
       {boolean()},
       "rotation: whether it also joins the rotated and the plain part of each head.",
       "false"},
      {"gated", {boolean()}, "activation: whether it reads two tensors of its size.", "true"},
      {"passes",
       {count(1)},
       "permute: twice where a device sorts rows again behind the exchange.",
       "1"},
      {"sums", {count(0)}, "permute: tokens whose rows are added up on the way back.", "0"},
      {"fused",
       {boolean()},
       "loss: whether cross entropy keeps one copy of the logits, in fp32; false: its steps are "
       "ops of their own. Absent: one copy is kept, and kernels are those of the software stack."},
      {"table_rows", {count(1)}, "lookup: the rows of the table."},
      {"positions",
       {boolean()},
       "lookup: whether a second table, of positions, is added.",
       "false"},
      {"kind",
       {words({kExchangeKinds.begin(), kExchangeKinds.end()})},
       "exchange: what is sent, and with that the collective of each pass."},
      {"devices", {count(1)}, "exchange: how many take part."},
      {"near", {count(1)}, "exchange: how many of them are in one server."},
      {"bytes",
       {bytes()},
       "exchange: the whole tensor; of to-experts and exchange-heads what a device sends within "
       "its server."},
      {"network_bytes",
       {bytes()},
       "exchange to-experts and exchange-heads: what a device sends to other servers.",
       "0 B"},
      {"repeated",
       {count(1)},
       "exchange gather-keys: heads of queries that share one of keys.",
       "1"},
  };
}

KeyFormat kind_key() {
  std::vector<std::string> names;
  for (const LayerOpKind& kind : op_kinds()) names.emplace_back(kind.name);
  return {
      .name = "op", .values = {words(std::move(names))}, .text = "What it does.", .required = true};
}

}  // namespace

LayerOp::Shape LayerOpKind::defaults(NumberFormat dtype) const {
  LayerOp::Shape made = shape;
  if (auto* linear = std::get_if<LinearOp>(&made)) linear->format = dtype;
  return made;
}

const std::vector<LayerOpKind>& op_kinds() {
  static const std::vector<LayerOpKind> kinds = make_kinds();
  return kinds;
}

const SectionFormat& op_format() {
  static const SectionFormat op = [] {
    SectionFormat built = {
        .name = "op",
        .text =
            "A step of a layer's forward; it knows its backward. Sizes are those of a "
            "micro-batch on one device.",
        .keys = op_values()};
    built.keys.insert(built.keys.begin(), kind_key());
    built.keys.push_back(
        {"again", {boolean()}, "Whether `recompute: selective` recomputes it.", "false"});
    for (const LayerOpKind& kind : op_kinds()) {
      FormatCase one{"op", std::string(kind.name), {"op", "again"}, {}};
      for (const OpKey& key : kind.keys) {
        one.keys.push_back(key.name);
        if (key.required) one.required.push_back(key.name);
      }
      built.cases.push_back(std::move(one));
    }
    return built;
  }();
  return op;
}

const SectionFormat& ops_format() {
  static const SectionFormat ops = {
      .name = "ops",
      .text = "Lists of ops by a name, each in the order of a layer's forward.",
      .keys = {},
      .other_keys = {list({section(&op_format)}, 1)}};
  return ops;
}

KeyFormat ops_key() {
  return {"ops",
          {section(&ops_format)},
          "Lists of ops, which layers name: with them, times are estimated kernel by kernel."};
}

const ValueFormat& op_value_format(std::string_view key) {
  const KeyFormat* known = op_format().find(key);
  PLUMBLINE_CHECK(known, key);
  return known->values.front();
}

}  // namespace plumbline
