// Reading scenarios: one function a section, each with the keys it knows.
// SPDX-License-Identifier: MIT
#include "sim/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/quantity.h"
#include "base/section_reader.h"
#include "models/profile/optimizer_kind.h"
#include "models/profile/profile_reader.h"
#include "sim/scenario/axes.h"
#include "sim/scenario/cluster_section.h"
#include "sim/scenario/model_section.h"
#include "sim/scenario/omissions.h"
#include "sim/scenario/overrides.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/scenario_format.h"
#include "sim/scenario/sequence_order.h"
#include "sim/scenario/stage_number.h"

namespace plumbline {
namespace {

class ScenarioReader {
 public:
  ScenarioReader(const std::string& path, const ModelSection* model)
      : path_(path), known_model_(model) {}

  Result<Scenario> read(const YamlNode& root) {
    if (const YamlNode* kind = kind_of(root)) return other_kind(*kind);
    source_ = root.mark.source.get();
    SectionReader file(root, "", scenario_format(), problems_);
    file.require("version", "this is version: 1");
    file.require("model");
    file.require("schedule");
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
    if (const YamlNode* sweep = file.child("sweep")) read_axes(*sweep, problems_);
    file.finish();
    if (problems_.empty()) resolve_cluster();
    if (problems_.empty()) resolve_sequence();
    if (problems_.empty()) resolve_copies();
    if (problems_.empty()) resolve_batches();
    if (problems_.empty()) resolve_optimizer();
    if (problems_.empty()) derive_layers();
    if (problems_.empty()) {
      if (auto refused = resolve_stage_number(scenario_)) problems_.push_back(*std::move(refused));
    }
    if (problems_.empty()) resolve_group();
    if (problems_.empty()) resolve_recomputation();
    if (problems_.empty()) estimate();
    if (problems_.empty()) check_batches();
    if (problems_.empty()) apply_measured();
    if (!problems_.empty()) return std::move(problems_);
    return std::move(scenario_);
  }

 private:
  /// A network or a profile in a scenario's place says so.
  static const YamlNode* kind_of(const YamlNode& root) {
    const auto kind =
        std::find_if(root.entries.begin(), root.entries.end(),
                     [](const YamlNode::Entry& entry) { return entry.key == "kind"; });
    return kind == root.entries.end() ? nullptr : &kind->value;
  }
  Diagnostics other_kind(const YamlNode& node) {
    if (const auto kind = read_text(node, "kind", problems_)) {
      error(node.mark, fmt::format("kind is '{}': this is no scenario", clipped(*kind)),
            *kind == "network" || *kind == "profile"
                ? fmt::format("a scenario names it: model: {{{}: {}}}", *kind, path_)
                : "a scenario has no kind");
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
    for (const std::string& note : scenario_.model.notes) scenario_.notes.push_back(note);
    scenario_.network = std::move(read.network);
    transformer_ = std::move(read.transformer);
    batch_ = read.batch;
  }

  void read_cluster(SectionReader& file) {
    auto section = file.section("cluster");
    cluster_.mark = file.mark_of("cluster");
    if (section) cluster_ = read_cluster_section(*section, problems_);
    scenario_.cluster_mark = cluster_.mark;
  }

  void read_plan(SectionReader& file) {
    auto section = file.section("plan");
    scenario_.plan_mark = section ? file.mark_of("plan") : scenario_.cluster_mark;
    if (section) scenario_.plan = read_plan_section(*section, problems_);
  }

  // ---- schedule ----

  /// Whether the sizes of mini-batch and micro-batch say how many micro-batches there are.
  bool sizes_given(const SectionReader& file) const {
    return file.holds("training", "micro_batch_size") && file.holds("training", "mini_batch_size");
  }

  void read_schedule(SectionReader& file) {
    auto section = file.section("schedule");
    if (!section) return;
    ScheduleChoice& choice = scenario_.schedule;
    std::vector<std::string> names;
    for (const ScheduleRule& rule : schedule_rules()) names.emplace_back(rule.name);
    if (section->has("file")) {
      read_order(*section);
    } else {
      section->child("file");
      section->require("name", fmt::format("one of {}", fmt::join(names, ", ")));
      if (!sizes_given(file)) section->require("micro_batches");
    }
    micro_batches_given_ = section->has("micro_batches") || section->has("file");
    read_name(*section);
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
    if (!choice.rule) section.choice("name", "schedule", "plumbline list schedules");
  }

  /// Whether what stands at `mark` was written for the order that schedule.file, given by an
  /// override, replaces.
  bool gives_way(const Mark& mark) const {
    const ScheduleChoice& choice = scenario_.schedule;
    return choice.file && mark.source.get() == source_ && choice.name_mark.source.get() != source_;
  }
  void note_left_out(std::string_view key) {
    scenario_.notes.push_back(
        fmt::format("{} of the scenario is left out: schedule.file says it in its place", key));
  }

  /// What the plan says for the order that a file replaces.
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

  /// Whether communication goes in the order of the file's cells.
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
    micro_batch_size_ = section->count("micro_batch_size");
    mini_batch_size_ = section->count("mini_batch_size");
    if (micro_batch_size_ && mini_batch_size_ && micro_batches_given_) {
      section->error(mini_batch_size_->mark,
                     "training.mini_batch_size stands beside training.micro_batch_size and "
                     "schedule.micro_batches",
                     "the one is split into so many micro-batches, or into some of this size: "
                     "leave one of the three out");
    }
    if (auto factor = section->real("optimizer_state")) {
      scenario_.optimizer_state = factor->value;
      optimizer_.state = true;
    }
    if (auto width = section->real("gradients")) {
      optimizer_.gradients = true;
      scenario_.gradient_width = width->value;
      scenario_.gradient_mark = width->mark;
    }
    if (auto stage = section->count("zero_stage")) {
      scenario_.sharded = static_cast<Sharded>(stage->value);
      scenario_.sharded_mark = stage->mark;
      if (stage->value > 0 && scenario_.schedule.asynchronous()) {
        section->error(stage->mark,
                       fmt::format("training.zero_stage is {}, but the schedule '{}' has no flush",
                                   stage->value, scenario_.schedule.rule->name),
                       "its replicas update one after the other, each when its round is over: "
                       "training.zero_stage: 0");
      }
    }
    if (auto kind = section->choice("gather", "time to gather weights")) {
      scenario_.gather_mark = kind->mark;
      const bool is_ahead = kind->value == "with-forward";
      const bool gathers =
          scenario_.sharded == Sharded::optimizer || scenario_.sharded == Sharded::gradients;
      scenario_.gather_ahead = is_ahead && gathers;
      if (is_ahead && scenario_.sharded == Sharded::nothing) {
        scenario_.notes.emplace_back(
            "training.gather is with-forward, but without training.zero_stage: 1 or 2 no weights "
            "are gathered");
      } else if (is_ahead && !gathers) {
        scenario_.notes.emplace_back(
            "training.gather is with-forward, but with training.zero_stage: 3 every forward and "
            "backward gathers its weights");
      }
    }
    section->finish();
  }

  void read_overhead(SectionReader& file) {
    const YamlNode* node = file.child("overhead");
    if (!node) return;
    if (file.is_word("overhead", "measured")) {
      measured_overhead_ = node->mark;
      return;
    }
    if (file.check_word("overhead", {"measured"})) return;
    auto section = file.section("overhead");
    scenario_.overheads = read_overheads(*section);
    section->finish();
  }

  // ---- what needs several sections ----

  /// How many devices there are, where GPUs are given, and what links them.
  void resolve_cluster() {
    DeviceGroup group = scenario_.model.profile.group;
    if (transformer_) group.devices = transformer_->group();
    if (auto refused = resolve_gpus(cluster_, group)) return problems_.push_back(*refused);
    scenario_.cluster = cluster_.cluster;
    scenario_.cluster_given = cluster_.given;
    scenario_.neighbours_slow = cluster_.neighbours_slow;
  }

  /// Where the stages of a sequence stand.
  void resolve_sequence() {
    if (auto refused = place_sequence(scenario_)) problems_.push_back(*std::move(refused));
  }

  /// What the group that a device stands for holds of each layer more than once.
  void resolve_group() {
    Model& model = scenario_.model;
    const DeviceGroup& group = model.profile.group;
    bool is_timed = false;
    for (std::uint32_t i = 0; i < model.graph.size(); ++i) {
      const Layer& layer = model.graph.layer({i});
      if (layer.replicated == Bytes{}) continue;
      is_timed = is_timed || model.profile.measurements.front().layers[i].timed;
      if (group.given) continue;
      return error(scenario_.model_mark,
                   fmt::format("layer '{}' has {} of replicated parameters, but the model has no "
                               "group of devices",
                               clipped(layer.name), to_text(layer.replicated)),
                   "group: {devices: 8} in the profile, or in model beside layers written there");
    }
    if (is_timed && group.replicas() > 1) {
      scenario_.notes.emplace_back(
          "layers with times have replicated parameters: their group adds up the gradients within "
          "the update that they give, if any");
    }
    if (scenario_.sharded != Sharded::nothing) model.graph.share_steps(group.replicas());
    if (group_comes_first(group)) share_reductions(group);
  }

  /// Whether a group adds up gradients before the copies of a stage do. Where they share the
  /// optimizer alone both orders send as much, but the copies' rings need not wait for the flush:
  /// they come first where the group's are no wider.
  bool group_comes_first(const DeviceGroup& group) const {
    return scenario_.sharded != Sharded::optimizer || !group.spans_servers() || group.cards() > 1;
  }

  /// Copies add up what their group leaves each device, of layers whose updates are known to hold
  /// what the group sends; the others' may hold anything.
  void share_reductions(const DeviceGroup& group) {
    Model& model = scenario_.model;
    const std::vector<LayerCosts>& costs = model.profile.measurements.front().layers;
    for (std::uint32_t i = 0; i < model.graph.size(); ++i) {
      if (!costs[i].timed && !costs[i].update_given)
        model.graph.share_reduction({i}, group.replicas());
    }
  }

  /// What layers make again where each says it for itself.
  void resolve_recomputation() {
    if (scenario_.schedule.recompute.kind != Recompute::selective) return;
    bool any = false;
    for (Measurement& measurement : scenario_.model.profile.measurements) {
      for (LayerCosts& layer : measurement.layers) {
        layer.recomputation = Recomputed::selective;
        any = any || layer.selective;
      }
    }
    if (!any) {
      error(scenario_.schedule.recompute.mark,
            "schedule.recompute is 'selective', but no layer says what it makes again",
            "selective: {activation: 8 MiB, forward: 10 us} beside a layer's activation; plumbline "
            "import huggingface writes it");
    }
  }

  /// Times for the layers that give FLOPs and bytes instead.
  void estimate() {
    Model& model = scenario_.model;
    if (!needs_estimate(model.profile)) {
      if (!cluster_.device) return;
      scenario_.notes.emplace_back(
          "the model gives its times: none is estimated for cluster.device");
      // Times of unknown numbers say nothing of which peak they are below.
      if (!model.profile.dtype && !cluster_.device->peak) return;
      if (const auto roofline = roofline_of(*cluster_.device, model.profile.dtype))
        scenario_.peak = peak_of_mix(model.profile, *roofline);
      return;
    }
    if (!cluster_.device) {
      return error(scenario_.model_mark,
                   "the model gives FLOPs instead of times, and there is no cluster.device to "
                   "estimate times for",
                   "such as cluster: {device: h100-sxm} (plumbline list presets)");
    }
    const auto roofline = roofline_of(*cluster_.device, model.profile.dtype);
    if (!keep(roofline, problems_)) return;
    scenario_.peak = peak_of_mix(model.profile, *roofline);
    scenario_.efficiency = roofline->efficiency;
    if (auto problem =
            estimate_times(model, *roofline, {scenario_.optimizer_state, scenario_.gradient_width},
                           cluster_.device->mark))
      return problems_.push_back(*std::move(problem));
    if (transformer_ && !(optimizer_.state && optimizer_.gradients))
      model.profile.estimated += "; Adam is assumed (training.optimizer_state, training.gradients)";
  }

  /// How many copies of the pipeline run, and the micro-batch size where a mini-batch is split.
  void resolve_copies() {
    const Plan& plan = scenario_.plan;
    scenario_.copies = plan.data_parallel.value;
    if (plan.fills_cluster) fill_cluster();
    if (scenario_.schedule.whole_model()) {
      resolve_whole_model();
    } else if (scenario_.schedule.asynchronous() && scenario_.copies > 1) {
      error(plan.data_parallel.mark,
            fmt::format("plan.data_parallel is {}, but the schedule '{}' has no flush",
                        scenario_.copies, scenario_.schedule.rule->name),
            "it replicates single stages: plan.replicas");
    }
  }

  /// `data_parallel: fill`: as if the number of copies stood there.
  void fill_cluster() {
    Plan& plan = scenario_.plan;
    if (scenario_.schedule.whole_model()) return;  // it fills the cluster anyway
    if (!scenario_.cluster_given) {
      return error(plan.data_parallel.mark,
                   "plan.data_parallel is 'fill', but the number of devices is not given",
                   "cluster.devices, or cluster.gpus");
    }
    const auto copies = copies_that_fill(scenario_);
    if (!keep(copies, problems_)) return;
    plan.data_parallel.value = *copies;
    scenario_.copies = *copies;
  }

  /// The number of micro-batches, or their size, where a mini-batch is split into them.
  void resolve_batches() {
    if (!mini_batch_size_) return;
    const bool by_count = !micro_batch_size_;
    const std::int64_t parts =
        scenario_.copies * (by_count ? scenario_.schedule.micro_batches : micro_batch_size_->value);
    if (const std::int64_t rest = mini_batch_size_->value % parts; rest != 0)
      return report_rest(parts, rest, by_count);
    const std::int64_t quotient = mini_batch_size_->value / parts;
    if (by_count) {
      micro_batch_size_ = {quotient, mini_batch_size_->mark};
      return;
    }
    if (quotient > kMaxMicroBatches) {
      return error(mini_batch_size_->mark,
                   fmt::format("training.mini_batch_size is {}, in {} micro-batches of {}: more "
                               "than {}",
                               mini_batch_size_->value, quotient, micro_batch_size_->value,
                               kMaxMicroBatches));
    }
    scenario_.schedule.micro_batches = static_cast<std::uint32_t>(quotient);
    scenario_.schedule.micro_batches_mark = mini_batch_size_->mark;
    scenario_.schedule.updates.accumulated = scenario_.schedule.micro_batches;
  }

  /// A mini-batch that `parts` micro-batches, or copies of micro-batches, do not divide.
  void report_rest(std::int64_t parts, std::int64_t rest, bool by_count) {
    const std::int64_t size = mini_batch_size_->value;
    std::string what = by_count ? fmt::format("{} micro-batches on each of {} copies",
                                              scenario_.schedule.micro_batches, scenario_.copies)
                                : fmt::format("micro-batches of {} on each of {} copies",
                                              micro_batch_size_->value, scenario_.copies);
    error(mini_batch_size_->mark,
          by_count ? fmt::format("training.mini_batch_size is {}, which {} parts do not divide: {} "
                                 "is left",
                                 size, parts, rest)
                   : fmt::format("training.mini_batch_size is {}, which {} do not divide: {} is "
                                 "left",
                                 size,
                                 scenario_.copies > 1
                                     ? what
                                     : fmt::format("micro-batches of {}", micro_batch_size_->value),
                                 rest),
          fmt::format("{}{}{}", size > rest ? fmt::format("{} or ", size - rest) : "",
                      size - rest + parts, by_count && scenario_.copies > 1 ? ": " + what : ""));
  }

  /// What the optimizer of a model that is known by its shape holds, where the file does not say.
  void resolve_optimizer() {
    if (!transformer_) return;
    const NumberFormat weights = transformer_->options.dtype;
    const OptimizerBytes adam = usual_adam(weights);
    if (!optimizer_.state) scenario_.optimizer_state = adam.state;
    if (!optimizer_.gradients) scenario_.gradient_width = adam.gradients;
    if (auto note = assumed_optimizer(optimizer_, weights))
      scenario_.notes.push_back(*std::move(note));
  }

  /// The layers of a model that is known by its shape, for this micro-batch on these servers.
  void derive_layers() {
    if (!transformer_) return;
    if (!micro_batch_size_)
      micro_batch_size_ = {transformer_->options.group_batches(), transformer_->mark};
    auto model = derive_model(*transformer_, micro_batch_size_->value, cluster_.per_server(),
                              micro_batch_size_->mark, scenario_.notes);
    if (keep(model, problems_)) scenario_.model = *std::move(model);
    scenario_.transformer = transformer_->options;
    for (std::string& note : omissions(cluster_, scenario_.model.profile.group))
      scenario_.notes.push_back(std::move(note));
  }

  /// `data-parallel`: one stage, and a copy of it on every device.
  void resolve_whole_model() {
    const Plan& plan = scenario_.plan;
    const auto refuse = [&](const Mark& mark, std::string_view key) {
      error(mark, fmt::format("{} does not go with the schedule 'data-parallel'", key),
            "it runs the whole model, as one stage, on every device");
    };
    if (plan.stages && plan.stages->value > 1) refuse(plan.stages->mark, "plan.stages above 1");
    if (plan.written_stages().value_or(1) > 1) {
      refuse(plan.partition_mark, "plan.partition with several stages");
    }
    if (plan.is_planned()) refuse(plan.partition_mark, "plan.partition: pipedream");
    if (plan.replicas && (plan.replicas->value.size() > 1 || plan.replicas->value.front() > 1))
      refuse(plan.replicas->mark, "plan.replicas above 1");
    if (plan.data_parallel.value > 1) refuse(plan.data_parallel.mark, "plan.data_parallel above 1");
    if (plan.devices) refuse(plan.devices->mark, "plan.devices");
    if (!scenario_.cluster_given) {
      error(scenario_.schedule.name_mark,
            "the schedule 'data-parallel' uses every device, but cluster.devices is not given");
    }
    scenario_.copies = scenario_.cluster.device_count();
  }

  /// Settles the batch that the model's times cover and the micro-batch size.
  void check_batches() {
    Profile& profile = scenario_.model.profile;
    std::vector<Measurement>& held = profile.measurements;
    std::optional<std::int64_t> batch = batch_ ? std::optional(batch_->value) : std::nullopt;
    if (!held.front().batch) {
      held.front().batch = batch;
    } else if (batch && !profile.holds(*batch)) {
      std::vector<std::string> sizes;
      sizes.reserve(held.size());
      for (const Measurement& m : held) sizes.push_back(std::to_string(*m.batch));
      return error(batch_->mark,
                   fmt::format("model.batch is {}, but the profile is for {}", *batch,
                               fmt::join(sizes, ", ")),
                   "leave model.batch out and set training.micro_batch_size");
    } else if (!batch) {
      batch = held.front().batch;
      if (held.size() > 1 && !micro_batch_size_) {
        scenario_.notes.push_back(
            fmt::format("the profile holds {} batch sizes; the smallest, {}, is the micro-batch",
                        held.size(), *batch));
      }
    }
    if (scenario_.model.name.empty()) scenario_.model.name = scenario_.name;
    if (!micro_batch_size_ && !batch)
      scenario_.notes.emplace_back(
          "neither model.batch nor training.micro_batch_size is given: a micro-batch counts as one "
          "sample");
    if (micro_batch_size_ && !batch && !held.front().batch) {
      scenario_.notes.push_back(
          fmt::format("model.batch is not given: the layers' times are taken to be those of a "
                      "micro-batch of {}, whatever its size",
                      micro_batch_size_->value));
    }
    scenario_.micro_batch_size = micro_batch_size_ ? micro_batch_size_->value : batch.value_or(1);
    const bool has_outputs = std::any_of(held[0].layers.begin(), held[0].layers.end(),
                                         [](const LayerCosts& l) { return l.output.count > 0; });
    const bool has_activations =
        std::any_of(held[0].layers.begin(), held[0].layers.end(),
                    [](const LayerCosts& l) { return l.activation.count > 0; });
    if (has_outputs && !has_activations) {
      scenario_.notes.emplace_back(
          "the layers give no activation sizes, so the memory shown holds no activations");
    }
    note_closure();
    note_optimizer();
  }

  /// A note where layers that were also timed as one piece do not add up to it.
  void note_closure() {
    const Profile& profile = scenario_.model.profile;
    double worst = 0;
    for (const Block& block : profile.blocks) {
      double sum = 0;
      for (const LayerId layer : block.layers) {
        const LayerCosts& costs = profile.measurements.front().layers[layer.value];
        sum += seconds(costs.forward.mean) + seconds(costs.backward.mean);
      }
      const double whole = seconds(block.forward) + seconds(block.backward);
      if (sum > 0 && std::abs(whole / sum - 1) > std::abs(worst)) worst = whole / sum - 1;
    }
    if (std::abs(worst) <= 0.01) return;
    scenario_.notes.push_back(fmt::format(
        "layers that the profile also times as one piece take {:.1f} % {} there than they add up "
        "to; predictions add them up",
        100 * std::abs(worst), worst > 0 ? "longer" : "less"));
  }

  /// A note where the profile's updates were measured with another optimizer than a run will use.
  void note_optimizer() {
    const auto& provenance = scenario_.model.profile.provenance;
    const auto measured = provenance.find("optimizer");
    const std::string_view wanted = name(optimizer_for(scenario_.optimizer_state));
    if (measured == provenance.end() || measured->second == wanted) return;
    scenario_.notes.push_back(fmt::format(
        "the profile's updates were measured with {}; a run with training.optimizer_state {} makes "
        "those of {}, which plumbline calibrate --optimizer {} measures",
        clipped(measured->second), scenario_.optimizer_state, wanted, wanted));
  }

  /// `link: measured` and `overhead: measured` take what the profile holds.
  void apply_measured() {
    const Profile& profile = scenario_.model.profile;
    if (cluster_.measured_link) {
      if (profile.links.empty())
        return error(*cluster_.measured_link,
                     "cluster.link is 'measured', but the model holds no measured links",
                     "only a profile with links does");
      const MeasuredLink& link = link_for(profile.links, /*blocking=*/false);
      const MeasuredLink& sending = link_for(profile.links, scenario_.schedule.blocking);
      scenario_.cluster.levels.front().link = {link.latency, link.bandwidth};
      if (sending.kind != link.kind) scenario_.blocking_link = {sending.latency, sending.bandwidth};
      scenario_.link_measured = true;
      if (profile.links.size() > 1) {
        scenario_.notes.push_back(fmt::format(
            "the profile holds {} links; '{}' is taken{}", profile.links.size(), sending.kind,
            sending.kind == link.kind ? "" : fmt::format(", and '{}' for all-reduces", link.kind)));
      }
    }
    if (measured_overhead_) {
      if (!profile.overheads)
        return error(*measured_overhead_,
                     "overhead is 'measured', but the model holds no measured overheads",
                     "only a profile with overheads does");
      scenario_.overheads = *profile.overheads;
    }
  }

  std::string path_;
  const Source* source_ = nullptr;  ///< What was written, beside what overrides set.
  const ModelSection* known_model_;
  Scenario scenario_;
  Diagnostics problems_;
  std::optional<Marked<std::int64_t>> batch_;
  std::optional<Marked<std::int64_t>> micro_batch_size_;
  std::optional<Marked<std::int64_t>> mini_batch_size_;
  bool micro_batches_given_ = false;
  OptimizerKeys optimizer_;
  ClusterChoice cluster_;
  std::optional<TransformerChoice> transformer_;
  std::optional<Mark> measured_overhead_;
};

}  // namespace

Result<Scenario> read_scenario_tree(const YamlNode& root, const ModelSection* model) {
  auto scenario = ScenarioReader(root.mark.source->name, model).read(root);
  if (scenario) scenario->source = root.mark.source;
  return scenario;
}

Result<Scenario> read_overridden(YamlNode& root, const std::vector<std::string>& overrides) {
  OverrideLog log;
  if (Diagnostics problems = override_by_arguments(root, overrides, log); !problems.empty())
    return problems;
  auto scenario = read_scenario_tree(root);
  if (scenario) scenario->notes.insert(scenario->notes.begin(), log.notes.begin(), log.notes.end());
  return scenario;
}

Result<Scenario> read_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  auto root = read_yaml(path);
  if (!root) return root.problems();
  return read_overridden(*root, overrides);
}

Result<Scenario> parse_scenario(const std::shared_ptr<const Source>& source,
                                const std::vector<std::string>& overrides) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  return read_overridden(*root, overrides);
}

}  // namespace plumbline
