// The numbers of a software stack by name, with their units, for whoever prints them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "models/kernels/software_stack.h"

namespace plumbline {

/// One number of a software stack.
struct StackNumber {
  std::string_view name;  ///< As in SoftwareStack.
  std::string_view unit;  ///< "s", "B"; "" = a ratio, or yes (1) and no (0).
  std::string_view meaning;
  /// Chosen so that published trainings come out right, where no table has it; else what the
  /// frameworks' sources and papers say.
  bool from_runs = false;
  std::variant<double SoftwareStack::*, bool SoftwareStack::*> member;

  /// A yes is 1.
  double of(const SoftwareStack& stack) const;
  bool is_choice() const { return std::holds_alternative<bool SoftwareStack::*>(member); }
};

/// All of them, in the order of SoftwareStack. Its kernels of attention are no number: see
/// name_of().
std::span<const StackNumber> stack_numbers();

/// "flash-1", "flash-2", "newest".
std::string_view name_of(AttentionKind kind);

}  // namespace plumbline
