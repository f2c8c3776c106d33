// What the values of the facade hold, and the ways between them and the rooms.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <plumbline/plumbline.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "base/diagnostic.h"
#include "base/huge_pages.h"
#include "base/wrap.h"
#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The version that JSON and pages tell.
inline constexpr const char* kLibraryVersion = PLUMBLINE_VERSION;

/// The faults as the facade has them. Requires: at least one.
v1::Error error_of(const Diagnostics& problems);

/// What a caller gets who has stopped the work.
v1::Error stopped_error(const std::string& message);

/// The scenario of an input. Errors: those of parse_scenario() or read_scenario().
Result<Scenario> scenario_of(const v1::Input& input, const v1::Settings& settings);

/// The width of a page, within those that are believed; 0 = as wide as the text.
inline PageWidth page_of(std::size_t width) {
  return width == 0 ? PageWidth() : PageWidth(std::clamp(width, kMinPageWidth, kMaxPageWidth));
}

/// The text of an input as the rooms read it. Requires: the input is a text.
std::shared_ptr<const Source> source_of(const v1::Input& input);

}  // namespace plumbline

namespace plumbline::v1 {

struct Scenario::Inside {
  Settings settings;  ///< With which it was read.
  plumbline::Scenario scenario;
};

/// The columns of a run's ops, and their memory.
struct OpColumns {
  explicit OpColumns(const plumbline::Outcome& outcome);

  HugeBlock block;
  Ops ops;
};

/// The same for its transfers.
struct TransferColumns {
  explicit TransferColumns(const plumbline::Outcome& outcome);

  HugeBlock block;
  Transfers transfers;
};

struct Run::Inside {
  Scenario asked;                      ///< With its open choices made.
  mutable plumbline::Outcome outcome;  ///< Its bubble_terms belong to with_terms().
  std::vector<Device> devices;

  /// The outcome with the terms of its bubble, which are found when first asked for.
  const plumbline::Outcome& with_terms() const;
  const Ops& ops() const;
  const Transfers& transfers() const;
  /// One entry per device.
  const std::vector<std::vector<MemoryStep>>& memory_steps() const;

  Inside(Scenario scenario, plumbline::Outcome predicted);

 private:
  mutable std::once_flag terms_found_, ops_made_, transfers_made_, steps_made_;
  mutable std::optional<OpColumns> ops_;
  mutable std::optional<TransferColumns> transfers_;
  mutable std::vector<std::vector<MemoryStep>> steps_;
};

}  // namespace plumbline::v1
