// Assumptions are overrides, so that a message about one shows it as it would be typed.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/bare_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/bug.h"
#include "base/section_reader.h"
#include "models/architectures/huggingface.h"

namespace plumbline {
namespace {

/// The name of a file; that of its folder where the file is called config.json.
std::string name_of(const std::string& path) {
  const std::filesystem::path file(path);
  const bool is_usual = file.filename() == "config.json" && file.has_parent_path();
  const std::filesystem::path named = is_usual ? file.parent_path().filename() : file.stem();
  return printable(named.string());
}

std::int64_t tokens_of(const std::shared_ptr<const Source>& source) {
  const auto shape = parse_huggingface(source);
  if (!shape || shape->positions == 0) return kAssumedTokens;
  return std::min(shape->positions, kAssumedTokens);
}

std::vector<std::string> assumptions(std::int64_t tokens, BareLayout layout) {
  std::vector<std::string> all = {
      fmt::format("model.sequence={}", tokens),
      fmt::format("training.mini_batch_size={}",
                  std::max<std::int64_t>(1, kAssumedBatchTokens / tokens)),
      "training.gradients=2",
      "training.optimizer_state=6",
      "training.zero_stage=1",
      "training.gather=with-forward",
      "schedule.bucket=160 MB",
      "cluster.gpus_per_server=8",
      "cluster.reserve=6 GiB"};
  if (layout == BareLayout::one_stage) {
    for (const char* one :
         {"model.sequence_parallel=true", "plan.stages=1", "plan.data_parallel=fill",
          "schedule.name=1f1b", "training.micro_batch_size=1"})
      all.emplace_back(one);
  }
  return all;
}

/// The name of the source of assumed values.
constexpr const char* kAssumed = "<assumed>";

std::string key_of_assumption(const std::string& text) { return text.substr(0, text.find('=')); }

/// The node under a path of keys; null where there is none.
const YamlNode* node_at(const YamlNode& root, const std::string& path) {
  const YamlNode* node = &root;
  for (std::size_t from = 0; node && from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const std::string key = path.substr(from, dot - from);
    const auto entry = std::find_if(node->entries.begin(), node->entries.end(),
                                    [&](const YamlNode::Entry& one) { return one.key == key; });
    node = entry == node->entries.end() ? nullptr : &entry->value;
    from = dot + 1;
  }
  return node;
}

void add(YamlNode& map, const std::string& key, const std::string& text) {
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.text = text;
  value.mark = map.mark;
  map.entries.push_back({key, map.mark, std::move(value)});
}

}  // namespace

bool is_bare_model(const YamlNode& root) {
  if (root.kind != YamlNode::Kind::map) return false;
  const auto has = [&](std::string_view key) {
    return std::any_of(root.entries.begin(), root.entries.end(),
                       [&](const YamlNode::Entry& entry) { return entry.key == key; });
  };
  const bool is_config = has("model_type") || has("architectures");
  return is_config && !has("model") && !has("schedule") && !has("cluster");
}

OpenedScenario opened_scenario(YamlNode root, BareLayout layout) {
  if (!is_bare_model(root)) return {std::move(root), {}};
  const std::shared_ptr<const Source>& source = root.mark.source;
  OpenedScenario opened;
  opened.root.kind = YamlNode::Kind::map;
  opened.root.mark = root.mark;
  add(opened.root, "version", "1");
  add(opened.root, "name", name_of(source->name));
  YamlNode model;
  model.kind = YamlNode::Kind::map;
  model.mark = root.mark;
  add(model, "huggingface", std::filesystem::path(source->name).filename().string());
  opened.root.entries.push_back({"model", root.mark, std::move(model)});
  for (const std::string& assumption : assumptions(tokens_of(source), layout)) {
    auto change = parse_override(assumption);
    PLUMBLINE_CHECK(change, assumption);
    change->value.mark.source = std::make_shared<const Source>(Source{kAssumed, assumption, ""});
    const auto wrong = apply_override(opened.root, *change);
    PLUMBLINE_CHECK(!wrong, assumption);
    opened.assumed.push_back(assumption);
  }
  return opened;
}

Result<OpenedScenario> open_scenario(const std::string& path, BareLayout layout) {
  auto root = read_yaml(path);
  if (!root) return root.problems();
  return opened_scenario(*std::move(root), layout);
}

std::optional<Diagnostic> missing_machine(const std::vector<std::string>& assumed,
                                          const YamlNode& root) {
  if (assumed.empty()) return std::nullopt;
  std::vector<std::string> missing;
  for (const char* key : {"cluster.gpus", "cluster.device"}) {
    if (!node_at(root, key)) missing.emplace_back(key);
  }
  if (missing.empty()) return std::nullopt;
  return input_error(root.mark,
                     fmt::format("a config.json alone says nothing of the machine: {} {} missing",
                                 fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"),
                     "cluster.gpus=64 cluster.device=h100-sxm (plumbline list presets)");
}

std::optional<std::string> assumption_note(const std::vector<std::string>& assumed,
                                           const YamlNode& root) {
  std::vector<std::string> left;
  for (const std::string& assumption : assumed) {
    const YamlNode* node = node_at(root, key_of_assumption(assumption));
    if (node && node->mark.source && node->mark.source->name == kAssumed)
      left.push_back(assumption);
  }
  if (left.empty()) return std::nullopt;
  return fmt::format("assumed, as a config.json says nothing of it: {}", fmt::join(left, ", "));
}

}  // namespace plumbline
