// The memory that a recorded run really held, beside the predicted one.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/document.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

/// What an allocator held at a time, in microseconds on its own clock.
using MemoryCurve = std::vector<std::pair<std::int64_t, Bytes>>;

/// What the allocator of one device recorded.
struct RecordedMemory {
  std::string source;  ///< The snapshot.
  std::int64_t device = 0;
  Bytes least, peak;  ///< Allocated, over the recording.
  Bytes reserved;     ///< What the allocator had from the system at the end.
  MemoryCurve curve;
};

/// Reads what scripts/memory-snapshot.py writes. Errors: those of read_json; wrong or missing keys,
/// each at its place.
Result<std::vector<RecordedMemory>> read_recorded_memory(const std::string& path);

/// A row for each device: what it holds throughout and at its peak, predicted and recorded, and
/// both curves as lines of bars. Errors: another number of devices than the prediction has.
Result<Document> memory_beside(const Outcome& outcome, const std::vector<RecordedMemory>& recorded);

/// Both curves: device, source (predicted, recorded), time_s, bytes. Times count from the first
/// one of each curve. Requires: as many devices as the prediction has.
std::string memory_csv(const Outcome& outcome, const std::vector<RecordedMemory>& recorded);

}  // namespace plumbline
