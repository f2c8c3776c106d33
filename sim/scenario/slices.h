// Micro-batches cut along their sequence: what a scenario says of it, and where it does not go.
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
  /// What each takes, as many numbers whose mean is 1; empty: all the same.
  std::vector<double> work;
  Mark mark;
};

/// Reads `slices` of a schedule section: a number of them, or a list of what each takes. `rule` and
/// `file` as the section has them. Errors: a schedule that takes none; as many as do not divide the
/// file's numbers.
SliceChoice read_slices(SectionReader& schedule, const ScheduleRule* rule,
                        const ScheduleFile* file);

/// Errors: slices of a stage with replicas, which would not have what the slices before them left.
std::optional<Diagnostic> check_slices_on(const SliceChoice& slices,
                                          const std::vector<std::uint32_t>& replicas);

/// Errors, where the file has it: a slice before those that it needs: forward before the one before
/// it, backward before the one behind it.
std::optional<Diagnostic> check_slices_in(const SliceChoice& slices, const ScheduleFile& file);

/// What the numbers of such a run count, and what it leaves out. Requires: more than one slice.
std::vector<std::string> notes_on(const SliceChoice& slices, Recompute recompute,
                                  bool is_estimated);

}  // namespace plumbline
