// Results of sweeps in files: written, read back, merged; and the rows that an interrupted sweep
// keeps.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// The kind that a result names, and the noun for the work behind one.
inline constexpr const char* kSweepKind = "sweep";

/// The largest result file that is read, in bytes.
inline constexpr std::size_t kLargestSweepFile = std::size_t{8} << 30U;

/// A result and the file that it was read from.
struct SweepFile {
  std::shared_ptr<const Source> source;
  SweepResult result;
};

/// Reads a file that `sweep --json` wrote. Errors: no JSON, no result of a sweep, a result of
/// another version of the tool, a damaged row.
Result<SweepFile> parse_sweep_file(const std::shared_ptr<const Source>& source,
                                   const std::string& version);

/// Merges the shards of one sweep into the whole, with rows in the order of their points. A single
/// whole sweep stays as it is. Errors: shards of another sweep; shards that do not belong together;
/// a shard that is missing, stands twice or lacks rows. Requires: files.
Result<SweepResult> merge(std::vector<SweepFile> files);

/// A row in a line, as in the JSON of a result; no newline.
std::string row_json(const SweepResult& header, const SweepRow& row);

/// The first line of the file that an interrupted sweep keeps, with a newline. It identifies the
/// sweep. The other lines are rows.
std::string partial_header(const SweepResult& header, const std::string& version);

/// The rows that an interrupted sweep kept.
struct PartialSweep {
  std::vector<SweepRow> rows;
  std::size_t kept_bytes =
      0;  ///< The length of the complete lines; an incomplete last line is dropped.
};

/// Reads the rows of the sweep that `header` describes. An incomplete last line is dropped, even if
/// it is the header. Errors: another sweep, shard or version of the tool; a damaged line; a row
/// that stands twice.
Result<PartialSweep> parse_partial(const std::shared_ptr<const Source>& source,
                                   const SweepResult& header, const std::string& version);

}  // namespace plumbline
