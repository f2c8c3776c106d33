// Megatron-LM's pipeline layouts as text: "Et*3|(tt|)*29,m|L".
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

/// The stages of a layout, each as letters. E is the embedding, t a block, m a module that predicts
/// a further token, L the head and the loss. Stage i of a pipeline of p devices is on device i mod
/// p, as Megatron-LM numbers them.
struct LayoutString {
  std::string text;  ///< As written.
  std::vector<std::string> stages;
};

/// Whether a text is meant as a layout: it contains a |, * or parenthesis, or only the letters E,
/// t, m, L.
bool is_layout_string(std::string_view text);

/// Reads the grammar of Megatron-LM's --pipeline-model-parallel-layout (megatron-core 0.13,
/// transformer/pipeline_parallel_layer_layout.py): `|` ends a stage, `x*n` and `(...)*n` repeat,
/// commas and spaces are ignored. Errors, with the character: another letter; a parenthesis without
/// its partner; a * without a number behind it or without anything before it; more than kMaxLayers
/// letters; an empty stage.
Result<LayoutString> parse_layout_string(const std::string& text, const Mark& mark);

}  // namespace plumbline
