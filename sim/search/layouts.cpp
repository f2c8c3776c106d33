// The open keys of a scenario, one after the other.
//
// SPDX-License-Identifier: MIT
#include "sim/search/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/quantity.h"
#include "base/section_reader.h"
#include "base/yaml.h"
#include "models/import/transformer_misfits.h"
#include "schedules/generators/generators.h"
#include "sim/scenario/cluster_section.h"
#include "sim/scenario/layout_string.h"
#include "sim/scenario/scenario_format.h"
#include "sim/scenario/unlike_devices.h"

namespace plumbline {
namespace {

/// A value of a searched key; nothing if the scenario gives one.
using Choice = std::optional<std::int64_t>;

std::vector<Choice> divisors(std::int64_t whole, std::int64_t max) {
  std::vector<Choice> found;
  for (std::int64_t d = 1; d <= std::min(whole, max); ++d) {
    if (whole % d == 0) found.emplace_back(d);
  }
  return found;
}

/// The facts about the scenario before any open key has a value.
struct Facts {
  std::int64_t gpus = 1;  ///< Or devices, if these are counted.
  bool counts_gpus = false;
  std::int64_t per_server = 1;
  bool has_memory = false;
  std::int64_t mini_batch = 1;
  std::int64_t layers = 1;
  std::int64_t blocks = 1;  ///< The layers that chunks divide.
  std::int64_t group = 1;   ///< Devices of a group, for a model that is known by its costs.
  /// The smallest micro-batch that is tried, in samples. For a group of devices it is that of the
  /// costs, since the sharing among its members is unknown.
  std::int64_t min_batch = 1;
  bool has_batch = true;                      ///< If false, the costs hold for any micro-batch.
  bool selective = false;                     ///< Layers define their selective recomputation.
  std::optional<TransformerOptions> options;  ///< The options that are given.
  std::shared_ptr<const TransformerShape> shape;
};

/// Reads the facts. Adds all errors to `problems`.
Facts read_facts(const YamlNode& root, const ModelSection& model, Diagnostics& problems) {
  Facts facts;
  const Mark whole{root.mark.source};
  SectionReader file(root, "", scenario_format(), problems);
  if (lists_devices(root)) {
    problems.push_back(input_error(file.mark_of("cluster"),
                                   "a search lays a model out on devices that are alike, and "
                                   "cluster.devices lists several kinds",
                                   "cluster.devices=null cluster.gpus=8 cluster.device=h100-sxm; "
                                   "plan.devices: auto chooses who runs which stage"));
    return facts;
  }
  if (auto section = file.section("cluster")) {
    const ClusterChoice cluster = read_cluster_section(*section, problems);
    facts.has_memory = cluster.cluster.memory.has_value();
    if (!cluster.cluster.pair_links.empty()) {
      problems.push_back(input_error(cluster.link_marks.front(),
                                     "a search lays a model out on links that are alike, and "
                                     "cluster.links gives some devices their own",
                                     "cluster.links=null"));
    }
    facts.counts_gpus = cluster.gpus.has_value();
    facts.gpus = cluster.gpus ? cluster.gpus->value : cluster.cluster.device_count();
    facts.per_server = cluster.per_server().value_or(facts.gpus);
    if (!cluster.given && problems.empty())
      problems.push_back(input_error(cluster.mark,
                                     "a search needs to know how many devices there are",
                                     "cluster.gpus, or cluster.devices"));
  } else if (problems.empty()) {
    problems.push_back(input_error(whole, "a search needs to know how many devices there are",
                                   "cluster: {gpus: 128, gpus_per_server: 8}"));
  }
  std::optional<Marked<std::int64_t>> mini_batch;
  if (auto section = file.section("training")) mini_batch = section->count("mini_batch_size");
  if (mini_batch) {
    facts.mini_batch = mini_batch->value;
  } else if (problems.empty()) {
    problems.push_back(input_error(whole,
                                   "a search compares layouts of one mini-batch, and "
                                   "training.mini_batch_size is not given",
                                   "training: {mini_batch_size: 512}, in samples"));
  }
  if (value_at(root, "schedule.file") || value_at(root, "plan.file")) {
    problems.push_back(input_error(whole,
                                   "a search chooses what the files of schedule.file and "
                                   "plan.file fix",
                                   "plumbline sweep varies keys beside them"));
  }
  if (model.transformer) {
    facts.options = model.transformer->options;
    facts.shape = model.transformer->shape;
    facts.blocks = facts.shape->block_layers(facts.options->split_blocks);
    facts.layers = facts.blocks + 2;
    facts.selective = true;
  } else {
    facts.layers = facts.blocks = static_cast<std::int64_t>(model.model->graph.size());
    facts.group = model.model->profile.group.devices;
    const std::optional<std::int64_t> held = model.model->profile.measurements.front().batch;
    facts.has_batch = held || model.batch;
    if (facts.group > 1 && facts.has_batch) facts.min_batch = held ? *held : model.batch->value;
    for (const Measurement& measurement : model.model->profile.measurements) {
      for (const LayerCosts& layer : measurement.layers)
        facts.selective = facts.selective || layer.selective;
    }
  }
  return facts;
}

/// The stages per device, and the value of schedule.chunks if it must be set.
struct Chunks {
  Choice value;
  std::int64_t each = 1;
};

/// Walks through all values of all open keys of one combination.
class Enumeration {
 public:
  Enumeration(const YamlNode& root, Facts facts, std::vector<std::string> overrides)
      : root_(root), facts_(std::move(facts)), overrides_(std::move(overrides)) {}

  LayoutSpace space() {
    each_sharing();
    return std::move(space_);
  }

 private:
  bool is_open(std::string_view key) const { return !value_at(root_, key); }

  /// The schedule of the scenario; null if it is open.
  const ScheduleRule* given_rule() const {
    const YamlNode* name = value_at(root_, "schedule.name");
    return name ? find_schedule_rule(name->text) : nullptr;
  }

  /// Whether the number of copies follows from the number of stages.
  bool fills() const {
    const YamlNode* copies = value_at(root_, "plan.data_parallel");
    return copies && copies->text == "fill";
  }

  void note_open(std::string_view key) {
    std::vector<std::string>& keys = space_.open_keys;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.emplace_back(key);
  }

  /// Sets `key` for all that `inside` enumerates.
  template <class Inside>
  void with(std::string_view key, const std::string& value, Inside&& inside) {
    note_open(key);
    overrides_.push_back(fmt::format("{}={}", key, value));
    inside();
    overrides_.pop_back();
  }
  template <class Inside>
  void with(std::string_view key, Choice value, Inside&& inside) {
    if (!value) return inside();
    with(key, std::to_string(*value), inside);
  }

  /// Enumerates tensor, context and expert parallelism, for a model given by its config.json on
  /// counted GPUs.
  void each_sharing() {
    if (!facts_.options || !facts_.counts_gpus) {
      if (facts_.options) batches_ = facts_.options->group_batches();
      return each_plan(facts_.options ? facts_.options->group() : facts_.group);
    }
    for (const Choice tensor : tensors()) {
      with("model.tensor_parallel", tensor, [&] {
        const std::int64_t t = tensor.value_or(facts_.options->tensor_parallel);
        for (const Choice context : contexts(t)) {
          with("model.context_parallel", context, [&] {
            const std::int64_t each = t * context.value_or(facts_.options->context_parallel);
            for (const Choice expert : experts(each)) {
              with("model.expert_parallel", expert, [&] {
                const std::int64_t e = expert.value_or(facts_.options->expert_parallel);
                each_sequence_sharing(t, each, std::max(expert_devices(e), each));
              });
            }
          });
        }
      });
    }
  }

  /// Sets sequence parallelism: devices that share layers also share norms, unless the scenario
  /// says otherwise.
  void each_sequence_sharing(std::int64_t tensor, std::int64_t each, std::int64_t group) {
    batches_ = group / each;
    const std::int64_t tokens = facts_.options->sequence / std::max<std::int64_t>(each / tensor, 1);
    if (tensor == 1 || !is_open("model.sequence_parallel") || tokens % tensor != 0)
      return each_plan(group);
    overrides_.emplace_back("model.sequence_parallel=true");
    each_plan(group);
    overrides_.pop_back();
  }

  std::vector<Choice> tensors() const {
    if (!is_open("model.tensor_parallel")) return {std::nullopt};
    const TransformerShape& shape = *facts_.shape;
    std::vector<Choice> values;
    for (const Choice t : divisors(facts_.gpus, facts_.per_server)) {
      if (may_divide(shape, *t)) values.push_back(t);
    }
    return values;
  }

  /// The values of context parallelism that leave each device 1024 tokens. With fewer tokens,
  /// attention no longer takes most of the time.
  std::vector<Choice> contexts(std::int64_t tensor) const {
    if (!is_open("model.context_parallel")) return {std::nullopt};
    constexpr std::int64_t min_tokens = 1024;
    std::vector<Choice> values;
    for (const Choice c : divisors(facts_.gpus / tensor, facts_.gpus)) {
      const std::int64_t sequence = facts_.options->sequence;
      if (*c > 1 && !may_share_samples(*facts_.shape, *facts_.options)) continue;
      if (*c == 1 || (sequence % (2 * *c) == 0 && sequence / *c >= min_tokens)) values.push_back(c);
    }
    return values;
  }

  /// The devices that share experts with `parallel` of them, each divided as the scenario says.
  std::int64_t expert_devices(std::int64_t parallel) const {
    TransformerOptions options = *facts_.options;
    options.expert_parallel = parallel;
    return options.expert_devices();
  }

  std::vector<Choice> experts(std::int64_t each) const {
    if (!is_open("model.expert_parallel") || !facts_.shape->has_experts()) return {std::nullopt};
    std::vector<Choice> values;
    if (facts_.options->expert_tensor_parallel == 1) values.emplace_back(1);
    for (const Choice e : divisors(facts_.gpus, facts_.shape->experts)) {
      if (*e > 1 && expert_devices(*e) % each == 0 && facts_.shape->experts % *e == 0)
        values.push_back(e);
    }
    return values;
  }

  /// Enumerates schedules, stages and copies over devices of `group` GPUs.
  void each_plan(std::int64_t group) {
    if (facts_.counts_gpus && facts_.gpus % group != 0) return;
    const std::int64_t devices = facts_.counts_gpus ? facts_.gpus / group : facts_.gpus;
    if (!is_open("schedule.name")) return each_depth(devices, given_rule());
    for (const char* name : {"1f1b", "interleaved-1f1b", "data-parallel"}) {
      const ScheduleRule* const rule = find_schedule_rule(name);
      if (rule->whole_model && !takes_whole_model()) continue;
      with("schedule.name", name, [&] { each_depth(devices, rule); });
    }
  }

  /// Enumerates the number of devices of a copy. The plan decides it, else the divisors of the
  /// number of devices.
  void each_depth(std::int64_t devices, const ScheduleRule* rule) {
    rule_ = rule;
    if (plan_is_fixed()) {
      const bool whole = rule && rule->whole_model;
      const Choice copies = whole ? Choice(devices) : given_count("plan.data_parallel");
      return each_chunks(rule, 0, [&](const Chunks&) { each_recomputation(copies); });
    }
    if (const Choice stages = given_stages()) {
      return each_chunks(rule, 0, [&](const Chunks& chunks) {
        const std::int64_t depth = *stages / chunks.each;
        if (*stages % chunks.each == 0 && devices % depth == 0 && takes_turns(depth, chunks))
          each_recomputation(devices / depth);
      });
    }
    for (const Choice depth : divisors(devices, facts_.layers)) {
      each_chunks(rule, *depth, [&](const Chunks& chunks) {
        const std::int64_t stages = *depth * chunks.each;
        if (stages > facts_.layers || !takes_turns(*depth, chunks)) return;
        with("plan.stages", Choice(stages), [&] { each_recomputation(devices / *depth); });
      });
    }
  }

  /// Whether chunks make sense: on a single device there is nothing to interleave with.
  static bool takes_turns(std::int64_t depth, const Chunks& chunks) {
    return depth > 1 || chunks.each == 1;
  }

  /// Enumerates the chunks of a pipeline of `depth` devices; 0 = any number.
  template <class Inside>
  void each_chunks(const ScheduleRule* rule, std::int64_t depth, Inside&& inside) {
    for (const Chunks& chunks : chunks_of(rule, depth))
      with("schedule.chunks", chunks.value, [&] { inside(chunks); });
  }

  /// The numbers of chunks: 2, 4 and 8, and the numbers that cut the blocks of each device evenly.
  std::vector<Chunks> chunks_of(const ScheduleRule* rule, std::int64_t depth) const {
    const ChunkRule* const chunks = rule && rule->chunks ? &*rule->chunks : nullptr;
    if (const Choice given = given_count("schedule.chunks")) {
      const bool fits =
          chunks ? *given >= chunks->min_chunks && *given <= chunks->max_chunks : *given == 1;
      if (!fits && is_open("schedule.name")) return {};
      return {{std::nullopt, chunks ? *given : 1}};
    }
    if (!chunks) return {{std::nullopt, 1}};
    if (chunks->min_chunks == chunks->max_chunks) return {{std::nullopt, chunks->max_chunks}};
    std::set<std::int64_t> counts = {2, 4, 8};
    if (depth > 0 && facts_.blocks % depth == 0) {
      for (const Choice count : divisors(facts_.blocks / depth, chunks->max_chunks))
        counts.insert(*count);
    }
    std::vector<Chunks> values;
    for (const std::int64_t count : counts) {
      if (count > 1 && count >= chunks->min_chunks && count <= chunks->max_chunks)
        values.push_back({count, count});
    }
    return values;
  }

  /// Whether pipelines are copied. They are not if updates come without a flush, or if a planner
  /// replicates stages.
  bool makes_copies() const {
    const YamlNode* partition = value_at(root_, "plan.partition");
    if (partition && partition->text == "pipedream") return false;
    return !rule_ || (!rule_->asynchronous && !rule_->whole_model);
  }

  /// Whether the plan allows one stage with a copy on every device.
  bool takes_whole_model() const {
    for (const char* key : {"plan.replicas", "plan.devices", "plan.partition"}) {
      if (!is_open(key)) return false;
    }
    return is_open("plan.data_parallel") && given_count("plan.stages").value_or(1) == 1;
  }

  /// Whether something other than the number of stages decides the devices of a copy.
  bool plan_is_fixed() const {
    return !makes_copies() || !is_open("plan.replicas") || !is_open("plan.devices") ||
           (!is_open("plan.data_parallel") && !fills());
  }

  /// The number of stages, given directly or by a partition that is written out.
  Choice given_stages() const {
    const YamlNode* partition = value_at(root_, "plan.partition");
    if (partition && !partition->items.empty())
      return static_cast<std::int64_t>(partition->items.size());
    if (partition && is_layout_string(partition->text)) {
      const auto layout = parse_layout_string(partition->text, partition->mark);
      if (layout) return static_cast<std::int64_t>(layout->stages.size());
    }
    return given_count("plan.stages");
  }

  /// The count at this key, if it is a valid one; its reader reports errors.
  Choice given_count(std::string_view key) const {
    const YamlNode* node = value_at(root_, key);
    if (!node) return std::nullopt;
    const auto count = parse_count(node->text);
    return count.value && *count.value >= 1 ? Choice(*count.value) : std::nullopt;
  }

  void each_recomputation(Choice copies) {
    if (!is_open("schedule.recompute") || !facts_.has_memory) return add_family(copies);
    std::vector<std::string> kinds = {"none"};
    if (facts_.selective) kinds.emplace_back("selective");
    kinds.emplace_back("layers");
    for (const std::string& kind : kinds) {
      with("schedule.recompute", kind, [&] {
        if (kind == "none" || !is_open("schedule.recompute_layers")) return add_family(copies);
        overrides_.emplace_back("schedule.recompute_layers=fit");
        add_family(copies);
        overrides_.pop_back();
      });
    }
  }

  /// Adds a family with micro-batches of 1, 2, 4, ... samples per part of a group.
  void add_family(Choice copies) {
    LayoutFamily family;
    family.overrides = overrides_;
    if (is_open("plan.data_parallel") && makes_copies())
      family.overrides.emplace_back("plan.data_parallel=fill");
    if (is_open("plan.partition")) family.overrides.emplace_back("plan.partition=balanced");
    if (is_open("training.micro_batch_size") && is_open("schedule.micro_batches")) {
      const std::int64_t batch_unit = batches_ * facts_.min_batch;
      const std::int64_t each = batch_unit * copies.value_or(1);
      for (std::int64_t size = 1; size * each <= facts_.mini_batch; size *= 2) {
        if (facts_.mini_batch % (size * each) == 0)
          family.micro_batch_sizes.push_back(size * batch_unit);
        if (!facts_.has_batch) break;
      }
      if (facts_.has_batch) note_open("training.micro_batch_size");
      if (family.micro_batch_sizes.empty()) return;
    }
    space_.families.push_back(std::move(family));
  }

  const YamlNode& root_;
  Facts facts_;
  std::vector<std::string> overrides_;
  const ScheduleRule* rule_ = nullptr;  ///< The rule being enumerated; null if it is unknown.
  std::int64_t batches_ = 1;            ///< Micro-batches that a group trains at a time.
  LayoutSpace space_;
};

}  // namespace

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> keys = {"model.tensor_parallel",
                                                "model.sequence_parallel",
                                                "model.context_parallel",
                                                "model.expert_parallel",
                                                "model.expert_tensor_parallel",
                                                "plan.stages",
                                                "plan.partition",
                                                "plan.replicas",
                                                "plan.devices",
                                                "plan.warm_up",
                                                "plan.data_parallel",
                                                "schedule.name",
                                                "schedule.chunks",
                                                "schedule.group",
                                                "schedule.micro_batches",
                                                "training.micro_batch_size",
                                                "schedule.recompute",
                                                "schedule.recompute_layers"};
  return keys;
}

const YamlNode* value_at(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  while (node) {
    const std::size_t dot = path.find('.');
    const auto entry =
        std::find_if(node->entries.begin(), node->entries.end(),
                     [&](const YamlNode::Entry& e) { return e.key == path.substr(0, dot); });
    if (entry == node->entries.end() || entry->value.kind == YamlNode::Kind::null) return nullptr;
    node = &entry->value;
    if (dot == std::string_view::npos) break;
    path = path.substr(dot + 1);
  }
  return node;
}

Result<LayoutSpace> layout_space(const YamlNode& root, const ModelSection& model,
                                 std::vector<std::string> overrides) {
  Diagnostics problems;
  Facts facts = read_facts(root, model, problems);
  if (!problems.empty()) return problems;
  return Enumeration(root, std::move(facts), std::move(overrides)).space();
}

}  // namespace plumbline
