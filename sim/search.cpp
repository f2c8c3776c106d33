// One scenario for each layout, read from its tree, planned and predicted.
// SPDX-License-Identifier: MIT
#include "sim/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/planning.h"
#include "sim/predict.h"
#include "sim/report.h"
#include "sim/scenario_format.h"

namespace plumbline {
namespace {

/// Errors: an override that cannot be put into the tree.
std::optional<Diagnostics> override_all(YamlNode& root, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const auto change = parse_override(text);
    if (!change) return change.problems();
    if (auto wrong = override_scenario(root, *change)) return wrong;
  }
  return std::nullopt;
}

/// Without what takes a key out that is set later on.
std::vector<std::string> without_undone(std::vector<std::string> overrides) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const std::size_t equals = overrides[i].find('=');
    const bool undone = overrides[i].substr(equals) == "=null" &&
                        std::any_of(overrides.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    overrides.end(), [&](const std::string& later) {
                                      return later.starts_with(overrides[i].substr(0, equals + 1));
                                    });
    if (!undone) kept.push_back(std::move(overrides[i]));
  }
  return kept;
}

/// What of the layers of all stages a settled scenario makes again.
std::string made_again(const Scenario& scenario, const Outcome& outcome) {
  const RecomputeChoice& choice = scenario.schedule.recompute;
  const std::vector<std::uint32_t>& numbers = outcome.pipeline.recomputed;
  const auto word = [&]() -> std::string_view {
    switch (choice.kind) {
      case Recompute::none:
        return "none";
      case Recompute::full:
        return "full";
      case Recompute::layers:
        return "layers";
      case Recompute::selective:
        return "selective";
    }
    return "";
  }();
  if (choice.kind == Recompute::none || numbers.empty()) return std::string(word);
  std::uint64_t sum = 0;
  for (const std::uint32_t number : numbers) sum += number;
  if (sum == 0) return "none";
  const std::size_t layers = scenario.model.graph.size();
  return sum >= layers ? std::string(word) : fmt::format("{} {}/{}", word, sum, layers);
}

/// How the layout came out.
void describe(Layout& layout, const Scenario& scenario, const Outcome& outcome) {
  if (const auto& options = scenario.transformer) {
    layout.tensor = options->tensor_parallel;
    layout.context = options->context_parallel;
    layout.expert = options->expert_parallel;
    layout.sequence = options->sequence;
  }
  layout.stages = static_cast<std::int64_t>(outcome.pipeline.partition.stages.size());
  layout.chunks = scenario.schedule.chunks;
  layout.copies = scenario.copies;
  layout.schedule = scenario.schedule.rule->name;
  layout.micro_batch_size = scenario.micro_batch_size;
  layout.micro_batches = scenario.schedule.micro_batches;
  layout.made_again = made_again(scenario, outcome);
}

}  // namespace

Result<Search> Search::open(const std::string& path, const std::vector<std::string>& arguments,
                            bool free) {
  auto root = read_yaml(path);
  if (!root) return root.problems();
  return make(*std::move(root), arguments, free);
}

Result<Search> Search::parse(const std::shared_ptr<const Source>& source,
                             const std::vector<std::string>& arguments, bool free) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  return make(*std::move(root), arguments, free);
}

Result<Search> Search::make(YamlNode root, const std::vector<std::string>& arguments, bool free) {
  Search search;
  std::erase_if(root.entries, [](const YamlNode::Entry& entry) { return entry.key == "sweep"; });
  search.root_ = std::move(root);
  const YamlNode* name = value_at(search.root_, "name");
  search.name_ =
      name ? name->text
           : printable(std::filesystem::path(search.root_.mark.source->name).stem().string());

  auto all = combinations(arguments);
  if (!all) return all.problems();

  // What is taken out of the scenario.
  std::vector<std::string> taken_out;
  if (free) {
    auto scenario = search.read_as_it_stands(all->front());
    if (!scenario) return scenario.problems();
    for (const std::string& key : layout_keys()) {
      if (value_at(search.root_, key)) taken_out.push_back(key + "=null");
    }
    if (!value_at(search.root_, "training.mini_batch_size")) {
      taken_out.push_back(fmt::format(
          "training.mini_batch_size={}",
          scenario->copies * scenario->schedule.micro_batches * scenario->micro_batch_size));
    }
    search.as_it_stands_ = *std::move(scenario);
  }

  // What the arguments say, and what that leaves open.
  for (const std::vector<std::string>& overrides : *all) {
    Combination combination{taken_out, search.root_, nullptr};
    combination.overrides.insert(combination.overrides.end(), overrides.begin(), overrides.end());
    if (auto wrong = override_all(combination.root, combination.overrides)) return *wrong;
    search.combinations_.push_back(std::move(combination));
    if (auto wrong = search.add_families(search.combinations_.size() - 1)) return *wrong;
  }
  if (search.families_.empty())
    return input_error({search.root_.mark.source}, "there is no layout that the numbers divide",
                       "training.mini_batch_size is a multiple of the copies' micro-batches, and "
                       "devices are filled by copies of the pipeline");
  if (search.open_keys_.empty())
    return input_error({search.root_.mark.source},
                       "the scenario leaves nothing open that a search could choose",
                       "--free searches the keys of the layout that it gives, too");
  return search;
}

Result<Scenario> Search::read_as_it_stands(const std::vector<std::string>& overrides) const {
  YamlNode root = root_;
  std::vector<std::string> others;  // the layout is the file's
  for (const std::string& text : overrides) {
    const std::vector<std::string>& keys = layout_keys();
    const bool is_layout = std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return text.starts_with(key + '=');
    });
    if (!is_layout) others.push_back(text);
  }
  if (auto wrong = override_all(root, others)) return *wrong;
  auto scenario = read_scenario_tree(root);
  if (!scenario) return scenario;
  return settle_plan(*std::move(scenario));
}

std::optional<Diagnostics> Search::add_families(std::size_t index) {
  Combination& combination = combinations_[index];
  Diagnostics problems;
  SectionReader file(combination.root, "", scenario_format(), problems);
  file.require("model");
  auto section = file.section("model");
  ModelSection model;
  if (section && section->is_map()) model = read_model_section(*section, problems);
  if (!problems.empty()) return problems;
  auto space = layout_space(combination.root, model, combination.overrides);
  if (!space) return space.problems();
  if (!model.transformer)
    combination.model = std::make_shared<const ModelSection>(std::move(model));
  for (LayoutFamily& family : space->families) {
    family.first = layouts_;
    family.combination = index;
    layouts_ += family.layouts();
    families_.push_back(std::move(family));
  }
  for (const std::string& key : space->open_keys) {
    if (std::find(open_keys_.begin(), open_keys_.end(), key) == open_keys_.end())
      open_keys_.push_back(key);
  }
  if (layouts_ > kMostCombinations)
    return Diagnostics{input_error({root_.mark.source},
                                   fmt::format("there are more than {} layouts", kMostCombinations),
                                   "give some of the keys that are open")};
  return std::nullopt;
}

Result<Scenario> Search::scenario(const Layout& layout,
                                  const std::vector<std::string>& more) const {
  const Combination& combination = combinations_[layout.combination];
  YamlNode root = combination.root;
  for (const auto* overrides : {&layout.overrides, &more}) {
    if (auto wrong = override_all(root, *overrides)) return *wrong;
  }
  auto scenario = read_scenario_tree(root, combination.model.get());
  if (!scenario) return scenario;
  return settle_plan(*std::move(scenario));
}

SearchRow Search::predict_layout(const LayoutFamily& family, std::size_t index) const {
  SearchRow found;
  found.row.point = family.first + index;
  found.layout.combination = family.combination;
  found.layout.overrides = family.overrides;
  if (!family.micro_batch_sizes.empty())
    found.layout.overrides.push_back(
        fmt::format("training.micro_batch_size={}", family.micro_batch_sizes[index]));
  found.layout.overrides = without_undone(std::move(found.layout.overrides));
  const auto refuse = [&](const Diagnostics& problems) {
    found.row.reason = problems.front().message;
    return std::move(found);
  };
  const auto settled = scenario(found.layout);
  if (!settled) return refuse(settled.problems());
  const auto outcome = predict(*settled, Evaluation::fastest);
  if (!outcome) return refuse(outcome.problems());
  describe(found.layout, *settled, *outcome);
  found.row.numbers = numbers_of(*outcome);
  found.row.estimated = outcome->pipeline.estimated;
  if (found.row.numbers->fits == false) found.row.reason = shortage(*outcome);
  return found;
}

FamilyResult Search::evaluate(const LayoutFamily& family) const {
  FamilyResult result;
  for (std::size_t i = 0; i < family.layouts(); ++i) {
    result.rows.push_back(predict_layout(family, i));
    const SweepRow& row = result.rows.back().row;
    if (!row.numbers || row.feasible()) continue;
    result.passed_over = family.layouts() - i - 1;
    break;
  }
  return result;
}

}  // namespace plumbline
