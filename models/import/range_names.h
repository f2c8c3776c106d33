// The pass and the layer of each named range of a trace.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace plumbline {

/// The pass that a range marks.
enum class RangePass : std::uint8_t { forward, backward, backward_input, backward_weight, update };
inline constexpr std::size_t kRangePasses = 5;
inline constexpr std::array<RangePass, kRangePasses> kAllRangePasses = {
    RangePass::forward, RangePass::backward, RangePass::backward_input, RangePass::backward_weight,
    RangePass::update};

/// "forward", "backward_input", ...
std::string_view to_text(RangePass pass);

/// Whether a pass runs in autograd: the backward or one of its parts.
inline bool is_backward(RangePass pass) {
  return pass == RangePass::backward || pass == RangePass::backward_input ||
         pass == RangePass::backward_weight;
}

/// The layer's name where the ranges of a trace name no layer.
inline constexpr std::string_view kWholeStage = "stage";

/// The meaning of a range's name.
struct RangeMeaning {
  RangePass pass;
  std::string_view layer;
};

/// The names of ranges: one template for each pass. `{layer}` stands for the name of the layer, at
/// least one character; all other text stands for itself. A template without `{layer}` is the whole
/// name of a range around one pass of a whole stage. That stage is then one layer: kWholeStage. A
/// name that fits several templates belongs to the template with the most characters of its own.
class RangeNames {
 public:
  /// `layer:{layer}:forward`, `layer:{layer}:backward`, `layer:{layer}:backward_input`, ...
  RangeNames();

  /// Sets the template of a pass. Errors: an empty text, several {layer}, other braces but no
  /// {layer}.
  std::optional<Diagnostic> set(RangePass pass, const std::string& text);

  /// The errors of the templates together: two equal ones; some with {layer} and some without; a
  /// forward without {layer} and no backward beside it.
  Diagnostics misfits() const;

  /// The pass and layer of a range with this name; nothing where the name fits no template.
  std::optional<RangeMeaning> meaning(std::string_view name) const;

  /// The name of the range of this layer.
  std::string name(RangePass pass, std::string_view layer) const;

  /// The template as it was set.
  std::string text(RangePass pass) const { return name(pass, "{layer}"); }

 private:
  struct Template {
    std::string prefix;
    std::string suffix;
    bool names_layer = true;
    bool is_set = false;  ///< Set by set(), not by default.
  };
  const Template& of(RangePass pass) const { return templates_[static_cast<std::size_t>(pass)]; }

  std::array<Template, kRangePasses> templates_;
};

}  // namespace plumbline
