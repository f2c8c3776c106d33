// Reads scenarios: one function per section, each with the keys it knows. Values that depend on
// several sections are resolved afterwards, in scenario_resolver.cpp.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/quantity.h"
#include "base/section_reader.h"
#include "models/profile/profile_reader.h"
#include "sim/scenario/axes.h"
#include "sim/scenario/bare_model.h"
#include "sim/scenario/model_section.h"
#include "sim/scenario/overrides.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/scenario_format.h"
#include "sim/scenario/sharing_keys.h"
#include "sim/scenario/unlike_devices.h"
#include "sim/scenario/written_scenario.h"

namespace plumbline {
namespace {

class ScenarioReader {
 public:
  ScenarioReader(const std::string& path, const ModelSection* model, DerivedModels* derived,
                 std::optional<double> only_length)
      : path_(path), known_model_(model) {
    written_.derived = derived;
    written_.only_length = only_length;
  }

  Result<Scenario> read(const YamlNode& root) {
    if (const YamlNode* kind = value_of(root, "kind")) return other_kind(*kind);
    if (const YamlNode* size = value_of(root, "hidden_size"); size && !value_of(root, "model"))
      return model_config(*size);
    source_ = root.mark.source.get();
    SectionReader file(root, "", scenario_format(), problems_);
    file.require("version", "this is version: 1");
    file.require("model");
    file.require("schedule", "schedule: {name: 1f1b, micro_batches: 8}");
    file.count("version");
    if (auto name = file.text("name")) scenario_.name = name->value;
    if (scenario_.name.empty())
      scenario_.name = printable(std::filesystem::path(path_).stem().string());
    read_model(file);
    read_cluster(file);
    read_plan(file);
    read_schedule(file);
    read_training(file);
    read_overhead(file);
    if (auto noise = file.section("noise")) scenario_.noise = read_noise_section(*noise);
    if (auto goodput = file.section("goodput")) written_.goodput = read_goodput_section(*goodput);
    if (const YamlNode* sweep = file.child("sweep")) read_axes(*sweep, problems_);
    file.finish();
    if (!problems_.empty()) return std::move(problems_);
    return resolve_sections(std::move(written_));
  }

 private:
  Diagnostics model_config(const YamlNode& node) {
    error(node.mark, "this is a model's config.json, and no scenario",
          fmt::format("a scenario names it: model: {{huggingface: {}, sequence: 4096}}", path_));
    return std::move(problems_);
  }
  static std::string other_kind_help(const std::string& kind) {
    std::string help = did_you_mean(kind, {"network", "profile", "kernels"});
    return help.empty() ? "a scenario has no kind; other files say network, profile or kernels"
                        : help;
  }
  Diagnostics other_kind(const YamlNode& node) {
    if (const auto kind = read_text(node, "kind", problems_)) {
      error(node.mark, fmt::format("kind is '{}': this is no scenario", clipped(*kind)),
            *kind == "network" || *kind == "profile"
                ? fmt::format("a scenario names it: model: {{{}: {}}}", *kind, path_)
            : *kind == "kernels"
                ? fmt::format("a scenario names it: cluster: {{device: {{kernels: {}}}}}", path_)
                : other_kind_help(*kind));
    }
    return std::move(problems_);
  }
  void error(const Mark& mark, std::string message, std::string help = "") {
    problems_.push_back(input_error(mark, std::move(message), std::move(help)));
  }

  void read_model(SectionReader& file) {
    auto section = file.section("model");
    scenario_.model_mark = file.mark_of("model");
    if (!section || !section->is_map()) return;
    ModelSection read = known_model_ ? *known_model_ : read_model_section(*section, problems_);
    scenario_.model = std::move(read.model);
    for (const std::string& note : scenario_.model->notes) scenario_.notes.push_back(note);
    scenario_.network = std::move(read.network);
    written_.transformer = std::move(read.transformer);
    written_.batch = read.batch;
  }

  void read_cluster(SectionReader& file) {
    auto section = file.section("cluster");
    written_.cluster.mark = file.mark_of("cluster");
    if (section) written_.cluster = read_cluster_section(*section, problems_);
    scenario_.cluster_mark = written_.cluster.mark;
  }

  void read_plan(SectionReader& file) {
    auto section = file.section("plan");
    scenario_.plan_mark = section ? file.mark_of("plan") : scenario_.cluster_mark;
    if (section) scenario_.plan = read_plan_section(*section, problems_);
  }

  // ---- schedule ----

  /// Whether the sizes of mini-batch and micro-batch determine the number of micro-batches.
  bool sizes_given(const SectionReader& file) const {
    return file.holds("training", "micro_batch_size") && file.holds("training", "mini_batch_size");
  }

  void read_schedule(SectionReader& file) {
    auto section = file.section("schedule");
    if (!section) return;
    ScheduleChoice& choice = scenario_.schedule;
    if (section->has("file")) {
      read_order(*section);
    } else {
      section->child("file");
      section->require("name", fmt::format("one of {}", fmt::join(schedule_names(), ", ")));
      if (!sizes_given(file))
        section->require(
            "micro_batches",
            "micro_batches: 8; or training.mini_batch_size and training.micro_batch_size");
    }
    micro_batches_given_ = section->has("micro_batches") || section->has("file");
    read_name(*section);
    choice.wish = read_order_wish(*section, choice.rule);
    choice.slices = read_slices(*section, choice.rule, choice.file ? &*choice.file : nullptr);
    choice.micro_batches_mark = section->mark_of("micro_batches");
    if (choice.file) choice.micro_batches = choice.file->micro_batches / choice.slices.count;
    if (auto count = section->count("micro_batches")) {
      if (choice.file && count->value != choice.micro_batches && gives_way(count->mark)) {
        note_left_out("schedule.micro_batches");
        count->value = choice.micro_batches;
      } else if (choice.file && count->value != choice.micro_batches) {
        section->error(count->mark,
                       fmt::format("schedule.micro_batches is {}, but schedule.file has {}",
                                   count->value, choice.micro_batches),
                       "leave micro_batches out");
      }
      choice.micro_batches = static_cast<std::uint32_t>(count->value);
    }
    if (auto count = section->count("mini_batches")) {
      choice.mini_batches = static_cast<std::uint32_t>(count->value);
    }
    read_chunks(*section);
    read_group(*section);
    if (auto kind = section->choice("transfers", "kind of transfer")) {
      choice.blocking = kind->value == "blocking";
    }
    read_communication(*section);
    if (auto kind = section->choice("pairs", "kind of pair")) {
      choice.overlaps_pairs = kind->value == "overlapped";
      choice.pairs_mark = kind->mark;
    }
    choice.recompute = read_recomputation(*section);
    choice.offload = section->real("offload");
    if (auto kind = section->choice("weights", "kind of weight versions")) {
      choice.updates.weights = kind->value == "vertical-sync" ? WeightRule::vertical_sync
                               : kind->value == "none"        ? WeightRule::none
                               : kind->value == "two"         ? WeightRule::two
                                                              : WeightRule::stash;
      if (!choice.asynchronous() && kind->value != "stash" && choice.rule) {
        section->error(
            kind->mark,
            fmt::format("schedule.weights does not apply to the schedule '{}'", choice.rule->name),
            "it flushes before each update, so that all weights are of one version");
      }
    }
    if (auto lag = section->count("update_lag"))
      choice.updates.lag = static_cast<std::uint32_t>(lag->value);
    if (auto bucket = section->bytes("bucket")) {
      choice.bucket = bucket->value;
      if (bucket->value.count == 0) section->error(bucket->mark, "schedule.bucket is 0 B");
      if (choice.asynchronous()) {
        scenario_.notes.push_back(fmt::format(
            "schedule.bucket does not apply to the schedule '{}', which reduces the gradients of "
            "each round while later ops run",
            choice.rule->name));
      }
    }
    choice.updates.accumulated = choice.micro_batches;
    section->finish();
  }

  void read_name(SectionReader& section) {
    ScheduleChoice& choice = scenario_.schedule;
    const auto name = section.text("name");
    if (!name) return;
    choice.rule = find_schedule_rule(name->value);
    choice.name_mark = name->mark;
    if (!choice.rule) {
      section.choice("name", "schedule", "plumbline list schedules", schedule_abbreviations());
    }
  }

  /// Whether the key at `mark` was written for an order that an override of schedule.file replaces.
  bool gives_way(const Mark& mark) const {
    const ScheduleChoice& choice = scenario_.schedule;
    return choice.file && mark.source.get() == source_ && choice.name_mark.source.get() != source_;
  }
  void note_left_out(std::string_view key) {
    scenario_.notes.push_back(
        fmt::format("{} of the scenario is left out: schedule.file says it in its place", key));
  }

  /// Removes the plan's keys for the order that a file replaces.
  void leave_out_of_plan() {
    Plan& plan = scenario_.plan;
    const ScheduleFile& file = *scenario_.schedule.file;
    if (plan.warm_up && gives_way(plan.warm_up->mark)) {
      note_left_out("plan.warm_up");
      plan.warm_up.reset();
    }
    const bool says_stages = file.form != OrderForm::host_loop;
    if (says_stages && plan.stages && plan.stages->value != file.stages &&
        gives_way(plan.stages->mark)) {
      note_left_out("plan.stages");
      plan.stages.reset();
    }
  }

  void read_group(SectionReader& section) {
    ScheduleChoice& choice = scenario_.schedule;
    const auto group = section.count("group");
    if (!group) return;
    choice.group_mark = group->mark;
    const ChunkRule* const rule = choice.chunk_rule();
    if (rule && rule->takes_group) {
      choice.group = static_cast<std::uint32_t>(group->value);
    } else if (gives_way(group->mark)) {
      note_left_out("schedule.group");
    } else if (choice.rule || choice.file) {
      section.error(group->mark,
                    fmt::format("schedule.group does not apply to {}",
                                choice.rule ? fmt::format("the schedule '{}'", choice.rule->name)
                                            : "an order from schedule.file"),
                    "it is for interleaved-1f1b and interleaved-zb, whose micro-batches go round "
                    "in groups");
    }
  }

  /// Reads whether communication follows the order of the file's cells.
  void read_communication(SectionReader& section) {
    ScheduleChoice& choice = scenario_.schedule;
    const auto kind = section.choice("communication", "order of communication");
    const bool has_cells = choice.file && !choice.file->communication.empty();
    choice.in_order = has_cells && (kind ? kind->value == "in-order" : choice.blocking);
    if (kind && kind->value == "in-order" && !has_cells && problems_.empty()) {
      section.error(kind->mark,
                    choice.file ? "schedule.communication is in-order, but schedule.file has no "
                                  "SEND and RECV cells"
                                : "schedule.communication is in-order, but there is no "
                                  "schedule.file whose SEND and RECV cells give an order",
                    "such cells stand in a row as 0SEND_F0, and 1RECV_F0 in that of stage 1; "
                    "without them schedule.communication: free");
    }
    if (!has_cells) return;
    std::size_t cells = 0;
    for (const auto& row : choice.file->communication) cells += row.size();
    scenario_.notes.push_back(
        choice.in_order
            ? fmt::format("SEND and RECV cells: {}, in whose order devices communicate; a send "
                          "waits for its receive",
                          cells)
            : fmt::format("SEND and RECV cells: {}, checked, but each transfer begins when its "
                          "data is there (schedule.communication: in-order keeps their order)",
                          cells));
  }

  void read_chunks(SectionReader& section) {
    ScheduleChoice& choice = scenario_.schedule;
    const ChunkRule* const rule = choice.chunk_rule();
    if (rule) choice.chunks = rule->usual_chunks();
    const auto chunks = section.count("chunks");
    if (!chunks) return;
    if (gives_way(chunks->mark)) return note_left_out("schedule.chunks");
    const std::int64_t min = rule ? rule->min_chunks : 1;
    const std::int64_t max = rule ? rule->max_chunks : 1;
    choice.chunks = static_cast<std::uint32_t>(std::clamp(chunks->value, min, max));
    if (choice.chunks == chunks->value) return;
    const std::string whose =
        choice.rule ? fmt::format("the schedule '{}'", choice.rule->name) : "schedule.file";
    section.error(
        chunks->mark,
        fmt::format("schedule.chunks is {}, but {} has {}", chunks->value, whose,
                    chunks->value < min && min != max
                        ? fmt::format("{} or more stages on each device", min)
                        : fmt::format("{} stage{} on each device", max, max == 1 ? "" : "s")),
        rule ? ""
             : "interleaved-1f1b and interleaved-zb take any number from 2, looped-bfs from 1");
  }

  void read_order(SectionReader& section) {
    ScheduleChoice& choice = scenario_.schedule;
    if (section.has("name")) {
      section.error(section.mark_of("name"), "schedule.name stands beside schedule.file",
                    "the file gives the order; leave one of them out");
    }
    const auto path = section.file("file");
    if (!path) return;
    choice.name_mark = path->mark;
    auto file = plumbline::read_schedule_file(path->value);
    if (!file) return section.add_file_problems("file", path->mark, file.problems());
    choice.file = *std::move(file);
    for (const std::string& note : choice.file->notes) scenario_.notes.push_back(note);
    leave_out_of_plan();
  }

  // ---- training and overhead ----

  void read_training(SectionReader& file) {
    auto section = file.section("training");
    if (!section) return;
    written_.micro_batch_size = section->count("micro_batch_size");
    written_.mini_batch_size = section->count("mini_batch_size");
    if (written_.micro_batch_size && written_.mini_batch_size && micro_batches_given_) {
      section->error(written_.mini_batch_size->mark,
                     "training.mini_batch_size stands beside training.micro_batch_size and "
                     "schedule.micro_batches",
                     "the one is split into so many micro-batches, or into some of this size: "
                     "leave one of the three out");
    }
    if (auto factor = section->real("optimizer_state")) {
      scenario_.optimizer_state = factor->value;
      written_.optimizer.state = true;
    }
    if (auto width = section->real("gradients")) {
      written_.optimizer.gradients = true;
      scenario_.gradient_width = width->value;
      scenario_.gradient_mark = width->mark;
    }
    SharingKeys keys = read_sharing_keys(*section, scenario_.notes);
    scenario_.sharing = keys.sharing;
    scenario_.sharded_mark = keys.state_mark;
    scenario_.degree_mark = keys.degree_mark;
    scenario_.shares_in_servers = keys.shares_in_servers;
    scenario_.reshard_mark = keys.reshard_mark;
    if (keys.sharing.shares() && scenario_.schedule.asynchronous()) {
      section->error(
          keys.state_mark,
          fmt::format("training.zero_stage is {}, but the schedule '{}' has no flush",
                      static_cast<int>(keys.sharing.state), scenario_.schedule.rule->name),
          "its replicas update one after the other, each when its round is over: "
          "training.zero_stage: 0");
    }
    if (auto kind = section->choice("gather", "time to gather weights")) {
      scenario_.gather_mark = kind->mark;
      const bool is_ahead = kind->value == "with-forward";
      const bool gathers = scenario_.sharing.state == Sharded::optimizer ||
                           scenario_.sharing.state == Sharded::gradients;
      scenario_.gather_ahead = is_ahead && gathers;
      if (is_ahead && scenario_.sharing.state == Sharded::nothing) {
        scenario_.notes.emplace_back(
            "training.gather is with-forward, but without training.zero_stage: 1 or 2 no weights "
            "are gathered");
      } else if (is_ahead && !gathers) {
        scenario_.notes.emplace_back(
            "training.gather is with-forward, but with training.zero_stage: 3 every forward and "
            "backward gathers its weights");
      }
    }
    written_.tokens = read_token_keys(*section);
    written_.lengths = read_lengths(*section);
    read_flush(*section);
    section->finish();
  }

  void read_flush(SectionReader& section) {
    const auto flush = section.choice("flush", "kind of flush");
    if (!flush) return;
    scenario_.flush_mark = flush->mark;
    scenario_.flushes = flush->value == "all";
    if (scenario_.flushes) return;
    const auto refuse = [&](const std::string& why, const std::string& help) {
      section.error(flush->mark, "training.flush is none, but " + why, help);
    };
    ScheduleChoice& choice = scenario_.schedule;
    if (choice.asynchronous()) {
      refuse(fmt::format("the schedule '{}' has no flush to leave out", choice.rule->name),
             "its devices never wait for the end of a mini-batch: leave training.flush out");
    } else if (scenario_.gather_ahead) {
      refuse(
          "training.gather is with-forward: weights that are gathered ahead of a mini-batch are "
          "simulated with a flush only",
          "training.gather: behind-update, or training.flush: all");
    } else if (scenario_.sharing.state == Sharded::weights) {
      refuse(
          "training.zero_stage is 3: weights that are gathered ahead of a mini-batch's forwards "
          "are "
          "simulated with a flush only",
          "training.zero_stage: 2 or less, or training.flush: all");
    } else if (choice.in_order && !choice.blocking) {
      refuse(
          "schedule.communication is in-order: transfers that wait for others of their device are "
          "simulated with a flush only",
          "schedule.communication: free, or training.flush: all");
    }
    if (choice.mini_batches > 1) {
      scenario_.notes.emplace_back(
          "schedule.mini_batches is left out: without a flush (training.flush: none) one "
          "mini-batch shows the period");
      choice.mini_batches = 1;
    }
  }

  void read_overhead(SectionReader& file) {
    const YamlNode* node = file.child("overhead");
    if (!node) return;
    if (file.is_word("overhead", "measured")) {
      written_.measured_overhead = node->mark;
      return;
    }
    if (file.check_word("overhead", {"measured"})) return;
    auto section = file.section("overhead");
    scenario_.overheads = read_overheads(*section);
    written_.per_op_given = section->has("per_op");
    section->finish();
  }

  std::string path_;
  const Source* source_ = nullptr;  ///< The written scenario, without overrides.
  const ModelSection* known_model_;
  WrittenScenario written_;
  Scenario& scenario_ = written_.scenario;
  Diagnostics problems_;
  bool micro_batches_given_ = false;
};

/// `only_length`, if given, is taken for all micro-batches.
Result<Scenario> read_tree(const YamlNode& root, const ModelSection* model, DerivedModels* derived,
                           std::optional<double> only_length) {
  if (lists_devices(root)) {
    return read_unlike_devices(
        root, [&](const YamlNode& tree) { return read_tree(tree, model, derived, only_length); });
  }
  auto scenario = ScenarioReader(root.mark.source->name, model, derived, only_length).read(root);
  if (scenario) scenario->source = root.mark.source;
  return scenario;
}

/// Reads the scenario, and once more for each length that its micro-batches have.
Result<Scenario> read_each_length(const YamlNode& root, const ModelSection* model,
                                  DerivedModels* derived) {
  auto scenario = read_tree(root, model, derived, std::nullopt);
  if (!scenario || !scenario->lengths) return scenario;
  MicroBatchLengths lengths = *scenario->lengths;
  for (const double length : lengths.lengths) {
    auto one = read_tree(root, model, derived, length);
    if (!one) return one.problems();
    lengths.scenarios.push_back(std::make_shared<const Scenario>(*std::move(one)));
  }
  scenario->lengths = std::make_shared<const MicroBatchLengths>(std::move(lengths));
  return scenario;
}

bool leaves_placement_open(const YamlNode& root) {
  const YamlNode* const schedule = value_of(root, "schedule");
  const YamlNode* const placement = schedule ? value_of(*schedule, "placement") : nullptr;
  return placement && placement->text == "auto";
}

/// Reads the scenario with each placement. The first that it can have holds the others. Their
/// limits of activations are those of all stages of a device, so that all have the same memory. On
/// one device all placements are the same.
/// Errors: those of the first placement, if it can have none.
Result<Scenario> read_each_placement(YamlNode root, const ModelSection* model,
                                     DerivedModels* derived) {
  std::vector<Scenario> read;
  std::vector<std::pair<OpenPlacement, std::string>> impossible;
  Diagnostics problems;
  for (const OpenPlacement one :
       {OpenPlacement::straight, OpenPlacement::looped, OpenPlacement::vee}) {
    if (!read.empty() && stage_count(read.front()) == 1) {
      impossible.emplace_back(one, "there is one device");
      continue;
    }
    entry_of(entry_of(root, "schedule")->value, "placement")->value.text = name(one);
    auto scenario = read_each_length(root, model, derived);
    if (scenario) {
      OrderWish& wish = *scenario->schedule.wish;
      if (wish.in_flight) wish.in_flight->value *= scenario->schedule.chunks;
      read.push_back(*std::move(scenario));
      continue;
    }
    impossible.emplace_back(one, scenario.problems().front().message);
    if (problems.empty()) problems = scenario.problems();
  }
  if (read.empty()) return problems;
  Scenario first = std::move(read.front());
  read.erase(read.begin());
  first.schedule.wish->impossible = std::move(impossible);
  first.schedule.wish->others = std::make_shared<const std::vector<Scenario>>(std::move(read));
  return first;
}

}  // namespace

Result<Scenario> read_scenario_tree(const YamlNode& root, const ModelSection* model,
                                    DerivedModels* derived) {
  return leaves_placement_open(root) ? read_each_placement(root, model, derived)
                                     : read_each_length(root, model, derived);
}

void put_notes_first(const std::vector<std::string>& notes, Scenario& scenario) {
  const auto put = [&](Scenario& one) {
    one.notes.insert(one.notes.begin(), notes.begin(), notes.end());
  };
  put(scenario);
  if (!scenario.schedule.wish || !scenario.schedule.wish->others) return;
  std::vector<Scenario> others = *scenario.schedule.wish->others;
  for (Scenario& other : others) put(other);
  scenario.schedule.wish->others = std::make_shared<const std::vector<Scenario>>(std::move(others));
}

Result<Scenario> read_overridden(YamlNode& root, const std::vector<std::string>& overrides) {
  OpenedScenario opened{std::move(root), {}};
  auto scenario = read_opened(opened, overrides);
  root = std::move(opened.root);
  return scenario;
}

Result<Scenario> read_opened(OpenedScenario& opened, const std::vector<std::string>& overrides) {
  OverrideLog log;
  if (Diagnostics problems = override_by_arguments(opened.root, overrides, log); !problems.empty())
    return problems;
  if (auto missing = fit_assumptions(opened.assumed, opened.root)) return Diagnostics{*missing};
  auto scenario = read_scenario_tree(opened.root);
  if (!scenario) return scenario;
  if (auto note = assumption_note(opened.assumed, opened.root))
    log.notes.insert(log.notes.begin(), *std::move(note));
  put_notes_first(log.notes, *scenario);
  return scenario;
}

Result<Scenario> read_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  auto opened = open_scenario(path, BareLayout::one_stage);
  if (!opened) return opened.problems();
  return read_opened(*opened, overrides);
}

Result<Scenario> parse_scenario(const std::shared_ptr<const Source>& source,
                                const std::vector<std::string>& overrides) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  OpenedScenario opened = opened_scenario(*std::move(root), BareLayout::one_stage);
  return read_opened(opened, overrides);
}

}  // namespace plumbline
