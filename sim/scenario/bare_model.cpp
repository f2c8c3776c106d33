// Assumptions are overrides, so that a message about one shows it as it would be typed.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/bare_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/bug.h"
#include "base/quantity.h"
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
constexpr std::int64_t kMostGpus = 1'000'000;

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

bool is_assumed(const YamlNode* node) {
  return node && node->mark.source && node->mark.source->name == kAssumed;
}

/// Puts `key=value` into the tree as an assumption.
void assume(YamlNode& root, const std::string& assumption) {
  auto change = parse_override(assumption);
  PLUMBLINE_CHECK(change, assumption);
  change->value.mark.source = std::make_shared<const Source>(Source{kAssumed, assumption, ""});
  const auto wrong = apply_override(root, *change);
  PLUMBLINE_CHECK(!wrong, assumption);
}

/// The assumptions that overrides have left in a tree, and how they fit to what is given.
class Assumptions {
 public:
  explicit Assumptions(YamlNode& root) : root_(root) {}

  void fit() {
    fit_servers();
    fit_batches();
  }

 private:
  void replace(const std::string& key, std::int64_t value) {
    if (is_assumed(node_at(root_, key))) assume(root_, fmt::format("{}={}", key, value));
  }
  std::int64_t number(const std::string& key, std::int64_t otherwise) const {
    const YamlNode* node = node_at(root_, key);
    constexpr std::int64_t most = 1'000'000'000;  // so that the product of two is a number
    return node ? std::min(parse_count(node->text).value.value_or(otherwise), most) : otherwise;
  }

  /// NVLink joins 72 GPUs of a GB200 or GB300, of which most use 64.
  void fit_servers() {
    const YamlNode* device = node_at(root_, "cluster.device");
    const YamlNode* preset = node_at(root_, "cluster.device.preset");
    const std::string& name = preset ? preset->text : device->text;
    if (name.starts_with("gb"))
      replace("cluster.gpus_per_server", number("cluster.gpus", 1) % 72 == 0 ? 72 : 64);
  }

  /// Copies divide the mini-batch, and GPUs that share experts the micro-batch.
  void fit_batches() {
    const std::int64_t gpus = std::clamp<std::int64_t>(number("cluster.gpus", 1), 1, kMostGpus);
    const std::int64_t batch = number("training.mini_batch_size", gpus);
    if (batch % gpus != 0) replace("training.mini_batch_size", (batch / gpus + 1) * gpus);
    const std::int64_t experts =
        number("model.expert_parallel", 1) * number("model.expert_tensor_parallel", 1);
    const std::int64_t sharers =
        number("model.tensor_parallel", 1) * number("model.context_parallel", 1);
    if (sharers > 0 && experts > sharers && experts % sharers == 0)
      replace("training.micro_batch_size", experts / sharers);
  }

  YamlNode& root_;
};

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
    assume(opened.root, assumption);
    opened.assumed.push_back(assumption.substr(0, assumption.find('=')));
  }
  return opened;
}

Result<OpenedScenario> open_scenario(const std::string& path, BareLayout layout) {
  auto root = read_yaml(path);
  if (!root) return root.problems();
  return opened_scenario(*std::move(root), layout);
}

void give_way(YamlNode& root, const YamlOverride& change) {
  // What a key decides, and the assumption that would contradict it.
  constexpr std::array<std::array<std::string_view, 3>, 3> decided = {
      {{"schedule", "micro_batches", "training.micro_batch_size"},
       {"plan", "data_parallel", "plan.stages"},
       {"cluster", "devices", "cluster.gpus_per_server"}}};
  for (const auto& [section, key, assumption] : decided) {
    if (change.path.front().text != section) continue;
    const bool is_key = change.path.size() > 1 && change.path[1].text == key;
    const bool has_key = change.path.size() == 1 && node_at(change.value, std::string(key));
    const std::string path(assumption);
    if ((is_key || has_key) && is_assumed(node_at(root, path)))
      static_cast<void>(apply_override(root, path + "=null"));
  }
}

std::optional<Diagnostic> fit_assumptions(const std::vector<std::string>& assumed, YamlNode& root) {
  if (assumed.empty()) return std::nullopt;
  std::vector<std::string> missing;
  if (!node_at(root, "cluster.gpus") && !node_at(root, "cluster.devices"))
    missing.emplace_back("cluster.gpus");
  if (!node_at(root, "cluster.device")) missing.emplace_back("cluster.device");
  if (!missing.empty()) {
    return input_error(root.mark,
                       fmt::format("a config.json alone says nothing of the machine: {} {} missing",
                                   fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"),
                       "cluster.gpus=64 cluster.device=h100-sxm (plumbline list presets)");
  }
  Assumptions(root).fit();
  return std::nullopt;
}

std::optional<std::string> assumption_note(const std::vector<std::string>& assumed,
                                           const YamlNode& root) {
  std::vector<std::string> left;
  for (const std::string& key : assumed) {
    const YamlNode* node = node_at(root, key);
    if (is_assumed(node)) left.push_back(fmt::format("{}={}", key, node->text));
  }
  if (left.empty()) return std::nullopt;
  return fmt::format("assumed, as a config.json says nothing of it: {}", fmt::join(left, ", "));
}

}  // namespace plumbline
