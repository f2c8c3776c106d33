// From keys to the options of transformer_profile().
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/transformer_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/section_reader.h"
#include "base/table.h"
#include "models/architectures/huggingface.h"
#include "models/import/transformer_profile.h"
#include "models/profile/profile_reader.h"

namespace plumbline {
namespace {

constexpr TransformerOptionNames kScenarioNames = {
    .sequence = "model.sequence",
    .batch = "training.micro_batch_size",
    .dtype = "model.dtype",
    .tensor_parallel = "model.tensor_parallel",
    .sequence_parallel = "model.sequence_parallel",
    .context_parallel = "model.context_parallel",
    .context_exchange = "model.context_exchange",
    .expert_parallel = "model.expert_parallel",
    .expert_tensor_parallel = "model.expert_tensor_parallel",
    .dispatch = "model.dispatch",
    .devices_per_server = "cluster.gpus_per_server",
    .fp8_linear = "model.fp8_linear",
    .fp8_dispatch = "model.fp8_dispatch",
    .cross_entropy = "model.cross_entropy",
    .mtp = "model.mtp",
    .split_blocks = "model.split_blocks",
    .dropout = "model.dropout",
};

/// The model's name: that of its file, or, for a config.json, the model's family.
std::string name_of(const std::string& path, const TransformerShape& shape) {
  const std::string stem = printable(std::filesystem::path(path).stem().string());
  return stem == "config" ? shape.family : stem;
}

}  // namespace

const std::vector<std::string_view>& transformer_keys() {
  static const std::vector<std::string_view> keys = {"sequence",
                                                     "tensor_parallel",
                                                     "sequence_parallel",
                                                     "context_parallel",
                                                     "context_exchange",
                                                     "expert_parallel",
                                                     "dispatch",
                                                     "flash_attention",
                                                     "fused_swiglu",
                                                     "fp8_linear",
                                                     "fp8_dispatch",
                                                     "mtp",
                                                     "split_blocks",
                                                     "dropout",
                                                     "attention_dropout",
                                                     "hidden_dropout",
                                                     "cross_entropy",
                                                     "expert_tensor_parallel",
                                                     "like"};
  return keys;
}

std::optional<TransformerChoice> read_transformer(SectionReader& section) {
  TransformerChoice choice;
  TransformerOptions& options = choice.options;
  options.names = &kScenarioNames;
  choice.mark = section.mark_of("huggingface");
  section.require("sequence", "tokens of a sample");
  const auto sequence = section.count("sequence");
  if (sequence) options.sequence = sequence->value;
  if (const auto format = read_dtype(section)) {
    options.dtype = *format;
    options.dtype_given = true;
  }
  const auto take = [&](std::string_view key, std::int64_t& value) {
    if (const auto count = section.count(key)) value = count->value;
  };
  take("tensor_parallel", options.tensor_parallel);
  take("context_parallel", options.context_parallel);
  if (const auto exchange = section.choice("context_exchange", "exchange of attention"))
    options.context_exchange = context_exchange_of(exchange->value);
  take("expert_parallel", options.expert_parallel);
  take("expert_tensor_parallel", options.expert_tensor_parallel);
  if (const auto dispatch = section.choice("dispatch", "way to experts")) {
    options.dispatch = dispatch_of(dispatch->value);
    options.dispatch_given = true;
  }
  // With one GPU the flag has no effect, so that a sweep of tensor_parallel may begin with 1.
  if (const auto flag = section.boolean("sequence_parallel"))
    options.sequence_parallel = flag->value && options.tensor_parallel > 1;
  if (const auto flag = section.boolean("flash_attention")) options.flash_attention = flag->value;
  if (const auto flag = section.boolean("fused_swiglu")) options.fused_swiglu = flag->value;
  if (const auto flag = section.boolean("fp8_linear")) options.fp8_linear = flag->value;
  if (const auto flag = section.boolean("fp8_dispatch")) options.fp8_dispatch = flag->value;
  if (const auto way = section.choice("cross_entropy", "cross entropy"))
    options.fused_loss = way->value == kCrossEntropies[0];
  if (const auto flag = section.boolean("mtp")) options.mtp = flag->value;
  if (const auto flag = section.boolean("split_blocks")) options.split_blocks = flag->value;
  const auto take_rate = [&](std::string_view key, std::optional<double>& value) {
    if (const auto rate = section.real(key)) value = rate->value;
  };
  take_rate("dropout", options.dropout);
  take_rate("attention_dropout", options.attention_dropout);
  take_rate("hidden_dropout", options.hidden_dropout);
  const auto path = section.file("huggingface");
  const auto like = section.choice("like", "architecture that is read");
  if (!path || !sequence || (section.has("like") && !like)) return std::nullopt;
  const auto shape = read_huggingface(path->value, like ? like->value : "");
  if (!shape) {
    section.add_file_problems("huggingface", path->mark, shape.problems());
    return std::nullopt;
  }
  choice.name = name_of(path->value, *shape);
  choice.file = path->value;
  choice.shape = std::make_shared<const TransformerShape>(*shape);
  return choice;
}

namespace {

Result<DerivedModel> derived(const TransformerChoice& choice, const TransformerOptions& options) {
  auto profile = transformer_profile(choice.name, *choice.shape, options);
  if (!profile) return profile.problems();
  return DerivedModel{std::move(profile->model), std::move(profile->uncounted)};
}

}  // namespace

Result<DerivedModel> DerivedModels::of(const TransformerChoice& choice,
                                       const TransformerOptions& options) {
  const auto find = [&]() -> std::shared_ptr<const Result<DerivedModel>> {
    const auto found = std::find_if(known_.begin(), known_.end(),
                                    [&](const auto& one) { return one.first == options; });
    return found == known_.end() ? nullptr : found->second;
  };
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = find()) return *found;
  }
  auto made = std::make_shared<const Result<DerivedModel>>(derived(choice, options));
  const std::lock_guard lock(mutex_);
  if (const auto found = find()) return *found;  // another thread was faster
  known_.emplace_back(options, made);
  return *made;
}

Result<SharedValue<Model>> derive_model(const TransformerChoice& choice,
                                        std::int64_t micro_batch_size,
                                        std::optional<std::int64_t> per_server,
                                        const Mark& size_mark, std::vector<std::string>& notes,
                                        DerivedModels* known) {
  TransformerOptions options = choice.options;
  const std::int64_t batches = options.group_batches();
  if (batches > 1 && micro_batch_size % batches != 0) {
    return input_error(
        size_mark,
        fmt::format("a micro-batch has {}, which {} micro-batches of a group do not divide",
                    plural(static_cast<std::uint64_t>(micro_batch_size), "sample"), batches),
        "of a group that shares experts each part trains a micro-batch of its own: "
        "training.micro_batch_size is that of all of them");
  }
  options.batch = batches > 0 ? micro_batch_size / batches : micro_batch_size;
  options.devices_per_server = per_server;
  auto model = known ? known->of(choice, options) : derived(choice, options);
  if (!model) {
    Diagnostics problems = model.problems();
    for (Diagnostic& problem : problems) problem.mark = choice.mark;
    return problems;
  }
  if (options.context_exchange != ContextExchange::keys && options.context_parallel == 1)
    notes.emplace_back("model.context_exchange changes nothing: model.context_parallel is 1");
  for (std::string& note : model->uncounted) notes.push_back(std::move(note));
  return std::move(model->model);
}

}  // namespace plumbline
