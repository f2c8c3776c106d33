// Templates of range names.
//
// SPDX-License-Identifier: MIT
#include "models/import/range_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bug.h"

namespace plumbline {
namespace {

constexpr std::string_view kLayer = "{layer}";

std::string option(RangePass pass) {
  std::string name = fmt::format("--{}", to_text(pass));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

std::string_view to_text(RangePass pass) {
  constexpr std::array<std::string_view, kRangePasses> names = {
      "forward", "backward", "backward_input", "backward_weight", "update"};
  return names[static_cast<std::size_t>(pass)];
}

RangeNames::RangeNames() {
  for (const RangePass pass : kAllRangePasses) {
    const auto wrong = set(pass, fmt::format("layer:{}:{}", kLayer, to_text(pass)));
    PLUMBLINE_CHECK(!wrong, to_text(pass));
    templates_[static_cast<std::size_t>(pass)].is_set = false;
  }
}

std::optional<Diagnostic> RangeNames::set(RangePass pass, const std::string& text) {
  const std::size_t at = text.find(kLayer);
  const bool names_layer = at != std::string::npos;
  if (text.empty())
    return input_error({}, fmt::format("{} is empty, which names no range", option(pass)),
                       fmt::format("give the name of a range, as in {}", this->text(pass)));
  if (names_layer && text.find(kLayer, at + 1) != std::string::npos)
    return input_error(
        {}, fmt::format("{} is '{}', which holds {{layer}} twice", option(pass), clipped(text)),
        fmt::format("{{layer}} stands for the layer's name, as in {}", this->text(pass)));
  if (!names_layer && text.find('{') != std::string::npos)
    return input_error(
        {},
        fmt::format("{} is '{}', which holds a brace and no {{layer}}", option(pass),
                    clipped(text)),
        fmt::format("{{layer}} stands for the layer's name, as in {}", this->text(pass)));
  templates_[static_cast<std::size_t>(pass)] = {
      text.substr(0, at), names_layer ? text.substr(at + kLayer.size()) : "", names_layer, true};
  return std::nullopt;
}

Diagnostics RangeNames::misfits() const {
  Diagnostics problems;
  const auto given = [&](RangePass pass) { return of(pass).is_set; };
  const Template& forward = of(RangePass::forward);
  for (const RangePass pass : kAllRangePasses) {
    for (const RangePass before : kAllRangePasses) {
      if (before < pass && text(before) == text(pass))
        problems.push_back(input_error({},
                                       fmt::format("{} and {} are both '{}'", option(before),
                                                   option(pass), clipped(text(pass))),
                                       "give the ranges of different passes different names"));
    }
    if (pass != RangePass::forward && given(pass) && of(pass).names_layer != forward.names_layer)
      problems.push_back(input_error(
          {},
          fmt::format("{} is '{}' and {} is '{}': one of them holds {{layer}} and the other does "
                      "not",
                      option(RangePass::forward), clipped(text(RangePass::forward)), option(pass),
                      clipped(text(pass))),
          "with {layer} every layer has ranges of its own; without it, a range holds a whole "
          "stage"));
  }
  const bool has_backward = given(RangePass::backward) ||
                            (given(RangePass::backward_input) && given(RangePass::backward_weight));
  if (!forward.names_layer && !has_backward)
    problems.push_back(input_error(
        {},
        fmt::format("--forward is '{}', without {{layer}}, and no backward is named beside it",
                    clipped(text(RangePass::forward))),
        "name the range of the backward with --backward, or those of its parts with "
        "--backward-input and --backward-weight"));
  return problems;
}

std::optional<RangeMeaning> RangeNames::meaning(std::string_view name) const {
  std::optional<RangeMeaning> best;
  std::size_t max = 0;
  for (const RangePass pass : kAllRangePasses) {
    const auto& [prefix, suffix, names_layer, is_set] = of(pass);
    const std::size_t own = prefix.size() + suffix.size();
    if (best && own <= max) continue;
    if (!names_layer) {
      if (name != prefix) continue;
      best = {pass, kWholeStage};
    } else {
      if (name.size() <= own || !name.starts_with(prefix) || !name.ends_with(suffix)) continue;
      best = {pass, name.substr(prefix.size(), name.size() - own)};
    }
    max = own;
  }
  return best;
}

std::string RangeNames::name(RangePass pass, std::string_view layer) const {
  if (!of(pass).names_layer) return of(pass).prefix;
  return fmt::format("{}{}{}", of(pass).prefix, layer, of(pass).suffix);
}

}  // namespace plumbline
