// Which named range of a trace is which pass of which layer.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/diagnostic.h"

namespace plumbline {

/// What a range marks.
enum class RangePass : std::uint8_t { forward, backward, update };
inline constexpr std::size_t kRangePasses = 3;

/// "forward", ...
std::string_view to_text(RangePass pass);

/// What a name says.
struct RangeMeaning {
  RangePass pass;
  std::string_view layer;
};

/// The names of ranges, a template for each pass: `{layer}` stands for the name of the layer, at
/// least one character, and the rest for itself. A name that fits several templates belongs to the
/// one with most characters of its own.
class RangeNames {
 public:
  /// `layer:{layer}:forward`, `layer:{layer}:backward`, `layer:{layer}:update`.
  RangeNames();

  /// Sets the template of a pass. Errors: not exactly one {layer}.
  std::optional<Diagnostic> set(RangePass pass, const std::string& text);

  /// The pass and layer of a range with this name; nothing where it fits no template.
  std::optional<RangeMeaning> meaning(std::string_view name) const;

  /// The name of the range of this layer.
  std::string name(RangePass pass, std::string_view layer) const;

  /// The template as it was set.
  std::string text(RangePass pass) const { return name(pass, "{layer}"); }

 private:
  struct Template {
    std::string prefix;
    std::string suffix;
  };
  const Template& of(RangePass pass) const { return templates_[static_cast<std::size_t>(pass)]; }

  std::array<Template, kRangePasses> templates_;
};

}  // namespace plumbline
