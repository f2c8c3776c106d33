// A config.json that stands where a scenario is asked for.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/yaml.h"

namespace plumbline {

/// The tree of a scenario, and the keys that were assumed in it.
struct OpenedScenario {
  YamlNode root;
  std::vector<std::string> assumed;  ///< Such as `model.sequence`; empty for a written scenario.
};

/// What a model that stands alone is given of a layout.
enum class BareLayout {
  one_stage,  ///< Copies of the whole model, one on each GPU.
  open,       ///< None: a search chooses it.
};

/// Whether the tree is a config.json of Hugging Face: a map with `model_type` or `architectures`,
/// and no scenario's section.
bool is_bare_model(const YamlNode& root);

/// The tree as it is; that of a model that stands alone becomes a scenario of this model. It gets
/// sequences as long as the model takes, at most kAssumedTokens tokens, mini-batches of
/// kAssumedBatchTokens tokens, servers of 8 GPUs, and training in mixed precision with Adam, whose
/// state copies share. Overrides replace each of these, and say how many GPUs of which
/// kind there are.
OpenedScenario opened_scenario(YamlNode root, BareLayout layout);

/// The same for a file. Errors: those of read_yaml.
Result<OpenedScenario> open_scenario(const std::string& path, BareLayout layout);

/// Takes an assumption out of the tree that `change`, about to be applied, decides: a number of
/// micro-batches decides their size, that of copies the stages.
void give_way(YamlNode& root, const YamlOverride& change);

/// Fits what was assumed to the overrides in `root`: batches to GPUs and experts, servers to the
/// device. Errors: overrides have not said how many GPUs of which kind there are, which nobody
/// could assume.
std::optional<Diagnostic> fit_assumptions(const std::vector<std::string>& assumed, YamlNode& root);

/// The assumptions that overrides have left in `root`; nothing if there are none.
std::optional<std::string> assumption_note(const std::vector<std::string>& assumed,
                                           const YamlNode& root);

inline constexpr std::int64_t kAssumedTokens = 8192;
inline constexpr std::int64_t kAssumedBatchTokens = std::int64_t{4} << 20;

}  // namespace plumbline
