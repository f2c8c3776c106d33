// One function per key that is more than a number.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/plan.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "base/section_reader.h"
#include "base/yaml.h"
#include "models/profile/model_checks.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

class PlanReader {
 public:
  PlanReader(SectionReader& section, Diagnostics& problems)
      : section_(section), problems_(problems) {}

  Plan read() {
    plan_.stages = section_.count("stages");
    plan_.partition_mark = section_.mark_of("partition");
    read_partition();
    plan_.replicas = marked_counts("replicas");
    read_devices();
    plan_.warm_up = marked_counts("warm_up");
    read_copies();
    if (auto model = section_.choice("cost_model", "cost model");
        model && model->value == "published") {
      plan_.cost_model = CostModel::published;
    }
    if (auto transfers = section_.boolean("activation_transfers"))
      plan_.activation_transfers = transfers->value;
    if (auto candidates = section_.count("candidates"))
      plan_.candidates = static_cast<std::uint32_t>(candidates->value);
    if (plan_.is_planned()) report_beside_planner();
    section_.finish();
    return std::move(plan_);
  }

 private:
  void read_partition() {
    const YamlNode* node = section_.child("partition");
    if (!node) return;
    if (node->kind == YamlNode::Kind::sequence) {
      if (node->items.empty()) {
        section_.error(node->mark, "plan.partition is an empty list");
      } else if (node->items.front().kind == YamlNode::Kind::sequence) {
        read_names(*node);
      } else if (auto counts = section_.counts("partition")) {
        plan_.partition = *std::move(counts);
      }
      return;
    }
    if (node->kind == YamlNode::Kind::scalar && is_layout_string(node->text)) {
      auto layout = parse_layout_string(node->text, node->mark);
      if (keep(layout, problems_)) plan_.partition = *std::move(layout);
      return;
    }
    const auto rule = section_.choice("partition", "partition",
                                      "or a list of layers per stage, or a layout as Et|t|tL");
    if (!rule) return;
    if (rule->value == "blocks") plan_.partition = PartitionRule::blocks;
    if (rule->value == "pipedream") plan_.partition = PartitionRule::pipedream;
    if (rule->value == "balanced") plan_.partition = PartitionRule::balanced;
    if (rule->value == "auto") plan_.partition = PartitionRule::with_order;
  }

  /// A list of names for each stage.
  void read_names(const YamlNode& node) {
    StageNames names;
    for (std::size_t s = 0; s < node.items.size(); ++s) {
      const std::string path = fmt::format("plan.partition[{}]", s);
      const YamlNode& stage = node.items[s];
      names.emplace_back();
      if (stage.kind != YamlNode::Kind::sequence || stage.items.empty()) {
        section_.error(stage.mark, fmt::format("{} is no list of layer names", path),
                       "numbers of layers and lists of names do not mix");
        continue;
      }
      for (const YamlNode& item : stage.items) {
        if (auto name = read_text(item, path, problems_)) names.back().push_back(*name);
      }
    }
    plan_.partition = std::move(names);
  }

  std::optional<Marked<std::vector<std::int64_t>>> marked_counts(std::string_view key) {
    if (!section_.has(key)) {
      section_.child(key);
      return std::nullopt;
    }
    auto values = section_.counts(key);
    if (!values) return std::nullopt;
    if (values->empty()) {
      section_.error(section_.mark_of(key),
                     fmt::format("{} is an empty list", section_.path_of(key)));
      return std::nullopt;
    }
    return Marked<std::vector<std::int64_t>>{*std::move(values), section_.mark_of(key)};
  }

  void read_devices() {
    if (!section_.has("devices")) {
      section_.child("devices");
      return;
    }
    const YamlNode& given = *section_.child("devices");
    if (given.kind == YamlNode::Kind::scalar) {
      plan_.devices_open = given.text == "auto";
      if (!plan_.devices_open) {
        section_.error(given.mark,
                       fmt::format("plan.devices is '{}', which is neither a list nor auto",
                                   clipped(given.text)),
                       "such as [[0], [1]], with the devices of each stage");
      }
      return;
    }
    const std::vector<YamlNode>* nodes = section_.list("devices");
    if (!nodes) return;
    if (nodes->empty())
      section_.error(section_.mark_of("devices"), "plan.devices is an empty list");
    std::vector<std::vector<std::int64_t>> devices;
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      const std::string path = fmt::format("plan.devices[{}]", i);
      const YamlNode& node = (*nodes)[i];
      std::vector<std::int64_t>& replicas = devices.emplace_back();
      // A stage's devices are a list; one number stands for a list of one.
      const std::vector<YamlNode> alone = {node};
      const std::vector<YamlNode>& items =
          node.kind == YamlNode::Kind::sequence ? node.items : alone;
      if (items.empty()) section_.error(node.mark, fmt::format("{} is an empty list", path));
      for (const YamlNode& item : items) {
        if (auto device = read_count(item, path, 0, kMaxDevices - 1, problems_))
          replicas.push_back(*device);
      }
    }
    plan_.devices = Marked<std::vector<std::vector<std::int64_t>>>{std::move(devices),
                                                                   section_.mark_of("devices")};
  }

  void read_copies() {
    const YamlNode* node = section_.child("data_parallel");
    if (!node) return;
    const bool is_number = node->text.empty() || parse_count(node->text).value;
    if (is_number) {
      if (auto copies = section_.count("data_parallel")) plan_.data_parallel = *copies;
    } else if (auto word = section_.choice("data_parallel", "number of copies", "or a number")) {
      plan_.fills_cluster = true;
      plan_.data_parallel.mark = word->mark;
    }
  }

  void report_beside_planner() {
    const auto refuse = [&](const Mark& mark, std::string_view key) {
      section_.error(mark, fmt::format("plan.{} stands beside partition: pipedream", key),
                     "the planner chooses it");
    };
    if (plan_.replicas) refuse(plan_.replicas->mark, "replicas");
    if (plan_.devices) refuse(plan_.devices->mark, "devices");
    if (plan_.warm_up) refuse(plan_.warm_up->mark, "warm_up");
    if (plan_.data_parallel.value > 1) refuse(plan_.data_parallel.mark, "data_parallel above 1");
    if (plan_.fills_cluster) refuse(plan_.data_parallel.mark, "data_parallel: fill");
  }

  SectionReader& section_;
  Diagnostics& problems_;
  Plan plan_;
};

/// Reads a plan from its file. Errors: other keys of the section beside the file.
Plan read_plan_file(SectionReader& section, const Marked<std::string>& name,
                    Diagnostics& problems) {
  for (const KeyFormat& known : plan_format().keys) {
    const std::string_view key = known.name;
    if (key == "file") continue;
    if (!section.has(key)) continue;
    section.error(section.mark_of(key), fmt::format("plan.{} stands beside plan.file", key),
                  "the file gives the whole plan: leave one of them out");
    section.child(key);
  }
  section.finish();
  const auto root = read_yaml(name.value);
  if (!root) {
    section.add_file_problems("file", name.mark, root.problems());
    return {};
  }
  SectionReader file(*root, "plan", plan_format(), problems);
  if (file.has("file")) file.error(file.mark_of("file"), "a plan file names another plan file");
  file.child("file");
  return PlanReader(file, problems).read();
}

}  // namespace

std::optional<std::size_t> Plan::written_stages() const {
  if (const auto* counts = std::get_if<std::vector<std::int64_t>>(&partition))
    return counts->size();
  if (const auto* names = std::get_if<StageNames>(&partition)) return names->size();
  if (const auto* layout = std::get_if<LayoutString>(&partition)) return layout->stages.size();
  return std::nullopt;
}

Plan read_plan_section(SectionReader& section, Diagnostics& problems) {
  if (const auto name = section.file("file")) return read_plan_file(section, *name, problems);
  return PlanReader(section, problems).read();
}

}  // namespace plumbline
