// One scenario for each layout, read from its tree, planned and predicted.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/section_reader.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/scenario/axes.h"
#include "sim/scenario/fingerprint.h"
#include "sim/scenario/named_files.h"
#include "sim/scenario/overrides.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

/// Errors: an override that cannot be put into the tree.
std::optional<Diagnostics> override_all(YamlNode& root, const std::vector<std::string>& overrides) {
  OverrideLog log;  // not reported: the search itself chooses these replacements
  for (const std::string& text : overrides) {
    const auto change = parse_override(text);
    if (!change) return change.problems();
    if (auto wrong = override_scenario(root, *change, log)) return Diagnostics{*std::move(wrong)};
  }
  return std::nullopt;
}

bool is_layout_key(const std::string& key) {
  const std::vector<std::string>& keys = layout_keys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string key_of(const std::string& assignment) {
  return assignment.substr(0, assignment.find('='));
}

/// Whether `text` sets the key at `path`, or all of a section that it is in.
bool sets(const std::string& text, const std::string& path) {
  const std::string key = key_of(text);
  return path == key || path.starts_with(key + '.');
}

/// The overrides without those that remove a key which a later one sets.
std::vector<std::string> without_undone(std::vector<std::string> overrides) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const std::size_t equals = overrides[i].find('=');
    const std::string key = overrides[i].substr(0, equals);
    const bool undone =
        overrides[i].substr(equals) == "=null" &&
        std::any_of(overrides.begin() + static_cast<std::ptrdiff_t>(i) + 1, overrides.end(),
                    [&](const std::string& later) { return sets(later, key); });
    if (!undone) kept.push_back(std::move(overrides[i]));
  }
  return kept;
}

/// The recomputed layers of all stages in a resolved scenario, as text.
std::string recomputation(const Scenario& scenario, const Outcome& outcome) {
  const RecomputeChoice& choice = scenario.schedule.recompute;
  const std::vector<std::uint32_t>& numbers = outcome.setup.recomputed;
  const std::string_view word = name(choice.kind);
  if (choice.kind == Recompute::none || numbers.empty()) return std::string(word);
  std::uint64_t sum = 0;
  for (const std::uint32_t number : numbers) sum += number;
  if (sum == 0) return "none";
  const std::size_t layers = scenario.model->graph.size();
  return sum >= layers ? std::string(word) : fmt::format("{} {}/{}", word, sum, layers);
}

/// Fills the layout with the resolved sizes.
void describe(Layout& layout, const Scenario& scenario, std::int64_t stages) {
  if (const auto& options = scenario.transformer) {
    layout.tensor = options->tensor_parallel;
    layout.context = options->context_parallel;
    layout.expert = options->expert_parallel;
    layout.sequence = options->sequence;
    layout.batches = options->group_batches();
  }
  layout.stages = stages;
  layout.chunks = scenario.schedule.chunks;
  layout.copies = scenario.copies;
  layout.schedule = scenario.schedule.rule->name;
  layout.micro_batch_size = scenario.micro_batch_size;
  layout.micro_batches = scenario.schedule.micro_batches;
}

}  // namespace

Result<Search> Search::open(const std::string& path, const std::vector<std::string>& arguments,
                            bool free) {
  auto opened = open_scenario(path, BareLayout::open);
  if (!opened) return opened.problems();
  return make(*std::move(opened), arguments, free);
}

Result<Search> Search::parse(const std::shared_ptr<const Source>& source,
                             const std::vector<std::string>& arguments, bool free) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  return make(opened_scenario(*std::move(root), BareLayout::open), arguments, free);
}

Result<Search> Search::make(OpenedScenario opened, const std::vector<std::string>& arguments,
                            bool free) {
  Search search;
  YamlNode& root = opened.root;
  std::erase_if(root.entries, [](const YamlNode::Entry& entry) { return entry.key == "sweep"; });
  search.root_ = std::move(root);
  SearchFacts& facts = search.facts_;
  facts.file = search.root_.mark.source->name;
  const YamlNode* name = value_at(search.root_, "name");
  facts.scenario = name ? name->text : printable(std::filesystem::path(facts.file).stem().string());
  facts.arguments = arguments;
  facts.free = free;
  facts.fingerprint = search.fingerprint(arguments, free);

  auto all = combinations(arguments);
  if (!all) return all.problems();
  const std::vector<std::vector<std::string>> varying = varying_overrides(*all);
  for (const std::string& text : varying.front()) {
    std::string key = key_of(text);
    if (!is_layout_key(key)) facts.varied_keys.push_back(std::move(key));
  }

  // The keys to remove from the scenario.
  std::vector<std::string> taken_out;
  if (free) {
    auto layout = search.take_layout_out(*all);
    if (!layout) return layout.problems();
    taken_out = *std::move(layout);
  }

  // The values of the arguments, and the keys that they leave open.
  for (const std::vector<std::string>& overrides : *all) {
    Combination combination{taken_out, search.root_, nullptr, nullptr};
    combination.overrides.insert(combination.overrides.end(), overrides.begin(), overrides.end());
    if (auto wrong = override_all(combination.root, taken_out)) return *wrong;
    OverrideLog log;
    Diagnostics wrong = override_by_arguments(combination.root, overrides, log);
    if (!wrong.empty()) return wrong;
    if (auto missing = fit_assumptions(opened.assumed, combination.root))
      return Diagnostics{*missing};
    if (search.combinations_.empty()) {
      if (auto note = assumption_note(opened.assumed, combination.root))
        facts.notes.push_back(*std::move(note));
      facts.notes.insert(facts.notes.end(), log.notes.begin(), log.notes.end());
    }
    search.combinations_.push_back(std::move(combination));
    if (auto refused = search.add_families(search.combinations_.size() - 1)) return *refused;
  }
  if (search.families_.empty())
    return input_error({search.root_.mark.source}, "there is no layout that the numbers divide",
                       "copies of the pipeline fill the GPUs, groups of which share layers, and "
                       "their micro-batches divide training.mini_batch_size");
  if (facts.open_keys.empty())
    return input_error({search.root_.mark.source},
                       "the scenario leaves nothing open that a search could choose",
                       "--free searches the keys of the layout that it gives, too");
  search.note_kept_keys();
  facts.families = search.families_.size();
  if (Diagnostics problems = search.read_any(); !problems.empty()) return problems;
  return search;
}

Result<std::vector<std::string>> Search::take_layout_out(
    const std::vector<std::vector<std::string>>& all) {
  std::vector<std::string> taken_out;
  const bool keeps_recomputation =
      std::any_of(all.begin(), all.end(), [](const std::vector<std::string>& overrides) {
        return std::any_of(overrides.begin(), overrides.end(), [](const std::string& text) {
          return sets(text, "schedule.recompute");
        });
      });
  for (const std::string& key : layout_keys()) {
    // The number of layers belongs to a recomputation that the arguments give.
    if (key == "schedule.recompute_layers" && keeps_recomputation) continue;
    if (value_at(root_, key)) taken_out.push_back(key + "=null");
  }
  StandingScenario& standing = facts_.as_it_stands.emplace();
  const auto scenario = read_as_it_stands(all, standing.chosen);
  const bool has_mini_batch =
      value_at(root_, "training.mini_batch_size") ||
      std::any_of(all.front().begin(), all.front().end(),
                  [](const std::string& text) { return sets(text, "training.mini_batch_size"); });
  if (!scenario) {
    if (!has_mini_batch) return scenario.problems();
    standing.reason = scenario.problems().front().message;
    return taken_out;
  }
  if (!has_mini_batch) {
    taken_out.push_back(fmt::format(
        "training.mini_batch_size={}",
        scenario->copies * scenario->schedule.micro_batches * scenario->micro_batch_size));
  }
  if (const auto outcome = predict(*scenario, Evaluation::fastest)) {
    standing.numbers = numbers_of(*outcome);
  } else {
    standing.reason = outcome.problems().front().message;
  }
  return taken_out;
}

Result<Scenario> Search::read_as_it_stands(const std::vector<std::vector<std::string>>& all,
                                           std::vector<std::string>& chosen) const {
  const std::vector<std::string> varying = varying_overrides(all).front();
  std::vector<std::string> standing;
  for (const std::string& text : all.front()) {
    const bool varies = std::find(varying.begin(), varying.end(), text) != varying.end();
    const std::string key = key_of(text);
    const YamlNode* own = varies ? value_at(root_, key) : nullptr;
    if (!own) standing.push_back(text);
    if (varies) {
      chosen.push_back(!own                                  ? text
                       : own->kind == YamlNode::Kind::scalar ? key + '=' + own->text
                                                             : key + " of the file");
    }
  }
  YamlNode root = root_;
  auto scenario = read_overridden(root, standing);
  if (!scenario) return scenario;
  return resolve_plan(*std::move(scenario));
}

void Search::note_kept_keys() {
  for (const std::string& key : layout_keys()) {
    const bool is_open =
        std::find(facts_.open_keys.begin(), facts_.open_keys.end(), key) != facts_.open_keys.end();
    if (!is_open && value_at(combinations_.front().root, key)) facts_.kept_keys.push_back(key);
  }
}

std::string Search::fingerprint(const std::vector<std::string>& arguments, bool free) const {
  Fingerprint print;
  print.add(root_.mark.source->text);
  print.add(named_files(root_));
  print.add(free ? "free" : "");
  for (const std::string& argument : arguments) {
    print.add(argument);
    const auto axes = read_axes({argument});
    if (!axes) continue;  // reported where the argument is used
    for (const Axis& axis : *axes) {
      for (const YamlOverride& change : axis.changes)
        print.add(named_files(axis.key, change.value));
    }
  }
  return print.hex();
}

Diagnostics Search::read_any() {
  constexpr std::size_t max_probed = 1000;
  Diagnostics everywhere;
  for (std::size_t i = 0; i < std::min(families_.size(), max_probed); ++i) {
    const auto scenario = read(layout_of(families_[i], 0), {});
    if (scenario) {
      rates_ = scenario->rates;
      note_what_holds(*scenario);
      return {};
    }
    if (i == 0) everywhere = scenario.problems();
    std::erase_if(everywhere, [&](const Diagnostic& problem) {
      return std::none_of(
          scenario.problems().begin(), scenario.problems().end(),
          [&](const Diagnostic& other) { return other.message == problem.message; });
    });
    if (everywhere.empty()) return {};
  }
  return families_.size() <= max_probed ? everywhere : Diagnostics{};
}

/// Keeps the notes of `one` layout that the last readable layout has, too. They hold for any
/// layout.
void Search::note_what_holds(const Scenario& one) {
  std::vector<std::string> notes = one.notes;
  for (std::size_t i = families_.size(); i-- > 0;) {
    const auto other = read(layout_of(families_[i], 0), {});
    if (!other) continue;
    std::erase_if(notes, [&](const std::string& note) {
      return std::find(other->notes.begin(), other->notes.end(), note) == other->notes.end();
    });
    break;
  }
  facts_.notes.insert(facts_.notes.end(), notes.begin(), notes.end());
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
  if (model.transformer) {
    combination.derived = std::make_shared<DerivedModels>();
  } else {
    combination.model = std::make_shared<const ModelSection>(std::move(model));
  }
  for (LayoutFamily& family : space->families) {
    family.number = families_.size();
    family.first = facts_.layouts;
    family.combination = index;
    facts_.layouts += family.layouts();
    families_.push_back(std::move(family));
  }
  for (const std::string& key : space->open_keys) {
    std::vector<std::string>& open = facts_.open_keys;
    if (std::find(open.begin(), open.end(), key) == open.end()) open.push_back(key);
  }
  if (facts_.layouts > kMaxCombinations)
    return Diagnostics{input_error({root_.mark.source},
                                   fmt::format("there are more than {} layouts", kMaxCombinations),
                                   "give some of the keys that are open")};
  return std::nullopt;
}

Result<Scenario> Search::read(const Layout& layout, const std::vector<std::string>& more) const {
  const Combination& combination = combinations_[layout.combination];
  YamlNode root = combination.root;
  for (const auto* overrides : {&layout.overrides, &more}) {
    if (auto wrong = override_all(root, *overrides)) return *wrong;
  }
  const bool same_model = std::none_of(more.begin(), more.end(), [](const std::string& text) {
    return key_of(text) == "model" || key_of(text).starts_with("model.");
  });
  return read_scenario_tree(root, combination.model.get(),
                            same_model ? combination.derived.get() : nullptr);
}

Result<Scenario> Search::scenario(const Layout& layout,
                                  const std::vector<std::string>& more) const {
  auto scenario = read(layout, more);
  if (!scenario) return scenario;
  return resolve_plan(*std::move(scenario));
}

Layout Search::layout_of(const LayoutFamily& family, std::size_t index) const {
  Layout layout;
  layout.combination = family.combination;
  layout.overrides = family.overrides;
  if (!family.micro_batch_sizes.empty())
    layout.overrides.push_back(
        fmt::format("training.micro_batch_size={}", family.micro_batch_sizes[index]));
  layout.overrides = without_undone(std::move(layout.overrides));
  return layout;
}

SearchRow Search::predict_layout(const LayoutFamily& family, std::size_t index) const {
  SearchRow found;
  found.row.point = family.first + index;
  found.layout = layout_of(family, index);
  auto written = read(found.layout);
  if (!written) return refused(family, index, written.problems());
  const auto settled = settle_and_predict(*std::move(written));
  if (!settled) return refused(family, index, settled.problems());
  const Outcome& outcome = settled->outcome;
  describe(found.layout, settled->scenario,
           static_cast<std::int64_t>(outcome.setup.partition.stages.size()));
  found.layout.recomputation = recomputation(settled->scenario, outcome);
  found.row.numbers = numbers_of(outcome);
  found.row.estimated = outcome.setup.estimated;
  if (found.row.numbers->fits == false) found.row.reason = shortage(outcome);
  return found;
}

Result<LayoutBounds> Search::bounds(const LayoutFamily& family, std::size_t index) const {
  LayoutBounds found{{}, layout_of(family, index)};
  const auto written = read(found.layout);
  if (!written) return written.problems();
  const auto run = run_bounds(*written);
  if (!run) return run.problems();
  found.run = *run;
  if (run->stages > 0) describe(found.layout, *written, run->stages);
  return found;
}

SearchRow Search::refused(const LayoutFamily& family, std::size_t index,
                          const Diagnostics& problems) const {
  SearchRow row;
  row.row.point = family.first + index;
  row.layout = layout_of(family, index);
  row.row.reason = problems.front().message;
  return row;
}

FamilyResult Search::evaluate(const LayoutFamily& family, const std::atomic<bool>* stop) const {
  FamilyResult result;
  result.family = family.number;
  for (std::size_t i = 0; i < family.layouts(); ++i) {
    if (stop && *stop) break;
    result.rows.push_back(predict_layout(family, i));
    const SweepRow& row = result.rows.back().row;
    if (!row.numbers || row.feasible()) continue;
    result.passed_over = family.layouts() - i - 1;
    break;
  }
  return result;
}

std::optional<Search> open_again(const SearchFacts& facts) {
  auto search = Search::open(facts.file, facts.arguments, facts.free);
  if (!search || search->facts().fingerprint != facts.fingerprint) return std::nullopt;
  return *std::move(search);
}

}  // namespace plumbline
