// Every combination of several values of several keys, each predicted.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/axes.h"
#include "sim/scenario/scenario_text.h"
#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// A scenario with axes. Points are numbered from 0. Several threads may use it at once. It
/// contains no threads and no order of rows.
class Sweep {
 public:
  /// The axes of `arguments` (see read_axes) and those of the scenario's `sweep` section; the same
  /// key's axis in the arguments replaces the section's. Errors: those of the axes; no axis; too
  /// many points; errors that the scenario has at every point.
  static Result<Sweep> open(const std::string& path, const std::vector<std::string>& arguments);
  static Result<Sweep> parse(const std::shared_ptr<const Source>& source,
                             const std::vector<std::string>& arguments);

  /// Names, axes and points; no rows yet.
  const SweepResult& header() const { return header_; }
  std::uint64_t points() const { return header_.points; }

  /// The scenario at a point, with its plan resolved. Requires: point < points().
  Result<Scenario> scenario(std::uint64_t point) const;

  /// The result of `predict` for that scenario, or the reason for none. Requires: point < points().
  SweepRow evaluate(std::uint64_t point) const;

 private:
  Sweep(ScenarioText text, std::vector<Axis> axes);

  static Result<Sweep> make(Result<ScenarioText> text, const std::vector<std::string>& arguments);
  Result<Scenario> read(std::uint64_t point) const;
  Diagnostics problems_everywhere() const;
  std::string name() const;
  std::string fingerprint() const;

  ScenarioText text_;
  std::vector<Axis> axes_;
  SweepResult header_;
};

}  // namespace plumbline
