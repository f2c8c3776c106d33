// Micro-batches cut into slices along their sequence: the scenario's keys and the limits.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/files/schedule_file.h"
#include "schedules/generators/generators.h"
#include "schedules/stages/recompute.h"

namespace plumbline {

class SectionReader;

/// The slices of each micro-batch.
struct SliceChoice {
  std::uint32_t count = 1;
  /// The relative time of each slice, with mean 1; empty: all the same.
  std::vector<double> work;
  Mark mark;
};

/// Reads `slices` of a schedule section: their number, or a list of their relative times. `rule`
/// and `file` are those of the section. Errors: a schedule without slices; a number of slices that
/// does not divide the count of micro-batch numbers in the file.
SliceChoice read_slices(SectionReader& schedule, const ScheduleRule* rule,
                        const ScheduleFile* file);

/// Errors: slices on a stage with replicas, where a slice would miss the state that the slices
/// before it left.
std::optional<Diagnostic> check_slices_on(const SliceChoice& slices,
                                          const std::vector<std::uint32_t>& replicas);

/// Errors, at its place in the file: a slice before those that it needs. A forward needs the slice
/// before it, a backward the slice behind it.
std::optional<Diagnostic> check_slices_in(const SliceChoice& slices, const ScheduleFile& file);

/// Notes on the unit of the numbers in a run with slices, and on the effects that are left out.
/// Requires: more than one slice.
std::vector<std::string> notes_on(const SliceChoice& slices, Recompute recompute,
                                  bool is_estimated);

}  // namespace plumbline
