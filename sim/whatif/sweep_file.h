// Results of sweeps in files: written, read back, put together; and what an interrupted sweep
// keeps.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// What a result says that it is, and what the work of one is called.
inline constexpr const char* kSweepKind = "sweep";

/// The largest result that is read.
inline constexpr std::size_t kLargestSweepFile = std::size_t{8} << 30U;

/// A result and the file that it was read from.
struct SweepFile {
  std::shared_ptr<const Source> source;
  SweepResult result;
};

/// Reads what `sweep --json` wrote. Errors: no JSON, no result of a sweep, one by another version
/// of the tool, a row that is damaged.
Result<SweepFile> parse_sweep_file(const std::shared_ptr<const Source>& source,
                                   const std::string& version);

/// The shards of one sweep as the whole, its rows by their points; a whole one alone is itself.
/// Errors: another sweep among them, shards that do not belong together, one that is missing,
/// stands twice or lacks rows. Requires: files.
Result<SweepResult> merge(std::vector<SweepFile> files);

/// A row in a line, as in the JSON of a result; no newline.
std::string row_json(const SweepResult& header, const SweepRow& row);

/// The first line of what an interrupted sweep keeps, with a newline: which sweep it is. The others
/// are rows.
std::string partial_header(const SweepResult& header, const std::string& version);

/// The rows that an interrupted sweep kept.
struct PartialSweep {
  std::vector<SweepRow> rows;
  std::size_t kept_bytes = 0;  ///< What of the text is whole: the rest of a last line is dropped.
};

/// Reads the rows of the sweep that `header` describes. A last line that is not whole is dropped,
/// the header's too. Errors: another sweep, shard or version of the tool; a damaged line; a row
/// that stands twice.
Result<PartialSweep> parse_partial(const std::shared_ptr<const Source>& source,
                                   const SweepResult& header, const std::string& version);

}  // namespace plumbline
