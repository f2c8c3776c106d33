// Templates of range names.
// SPDX-License-Identifier: MIT
#include "models/range_names.h"

#include <fmt/format.h>

#include "models/bug.h"

namespace plumbline {
namespace {

constexpr std::string_view kLayer = "{layer}";
constexpr std::array<RangePass, kRangePasses> kPasses = {RangePass::forward, RangePass::backward,
                                                         RangePass::update};

}  // namespace

std::string_view to_text(RangePass pass) {
  constexpr std::array<std::string_view, kRangePasses> names = {"forward", "backward", "update"};
  return names[static_cast<std::size_t>(pass)];
}

RangeNames::RangeNames() {
  for (const RangePass pass : kPasses) {
    const auto wrong = set(pass, fmt::format("layer:{}:{}", kLayer, to_text(pass)));
    PLUMBLINE_CHECK(!wrong, to_text(pass));
  }
}

std::optional<Diagnostic> RangeNames::set(RangePass pass, const std::string& text) {
  const std::size_t at = text.find(kLayer);
  if (at == std::string::npos || text.find(kLayer, at + 1) != std::string::npos) {
    return input_error(
        {},
        fmt::format("--{} is '{}', which does not hold {{layer}} once", to_text(pass),
                    clipped(text)),
        fmt::format("{{layer}} stands for the layer's name, as in {}", this->text(pass)));
  }
  templates_[static_cast<std::size_t>(pass)] = {text.substr(0, at),
                                                text.substr(at + kLayer.size())};
  return std::nullopt;
}

std::optional<RangeMeaning> RangeNames::meaning(std::string_view name) const {
  std::optional<RangeMeaning> best;
  std::size_t most = 0;
  for (const RangePass pass : kPasses) {
    const auto& [prefix, suffix] = of(pass);
    const std::size_t own = prefix.size() + suffix.size();
    if (name.size() <= own || (best && own <= most)) continue;
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    best = {pass, name.substr(prefix.size(), name.size() - own)};
    most = own;
  }
  return best;
}

std::string RangeNames::name(RangePass pass, std::string_view layer) const {
  return fmt::format("{}{}{}", of(pass).prefix, layer, of(pass).suffix);
}

}  // namespace plumbline
