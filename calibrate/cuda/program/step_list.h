// The steps of a program while it is written. It tracks which steps each stream knows to have
// ended, and reuses memory by that.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "calibrate/cuda/program/program.h"

namespace plumbline {

/// A block that somebody holds, and its last user on each stream.
struct Lease {
  std::uint32_t block = 0;
  std::map<std::uint32_t, std::uint32_t> used;  ///< By stream: its newest step, plus one.
};

/// A shared hold on a block: the block is free again when nobody holds it.
using Held = std::shared_ptr<Lease>;

/// The held block's number; kNone32 if nothing is held.
inline std::uint32_t number_of(const Held& held) { return held ? held->block : kNone32; }

/// Appends to the steps and blocks of a program. A clock per stream says which steps are known to
/// have ended before its next one, by its own order and by waits. So no step waits twice for the
/// same step, and none waits for memory. It outlives all that is held.
class StepList {
 public:
  explicit StepList(CudaProgram& program) : program_(program) {}

  /// Must be called first, when the streams are known.
  void open(std::size_t streams);

  /// Lets the stream's next step wait for these steps.
  void wait(std::uint32_t stream, const std::vector<std::uint32_t>& steps);
  /// The steps that the stream's next step is to wait for.
  const std::vector<std::uint32_t>& due(std::uint32_t stream) const { return due_[stream]; }
  /// The waits of the next step of a stream, except those that other waits imply.
  std::vector<std::uint32_t> take_waits(std::uint32_t stream);
  /// Appends a step whose waits were taken. Returns its number.
  std::uint32_t append(CudaStep step);
  /// The last of these steps on each stream.
  std::vector<std::uint32_t> newest(const std::vector<std::uint32_t>& steps) const;

  /// A block of a slot that the next step of `stream` may write: one whose users are all known to
  /// have ended, or a new one. Nothing for 0 bytes. Requires: that step's waits were taken.
  Held take(std::uint32_t slot, std::size_t bytes, std::uint32_t stream, bool is_gradients = false);
  /// Notes that the step uses these blocks; empty holds are skipped.
  void used(std::uint32_t step, std::initializer_list<const Held*> all);

 private:
  /// For each stream, the newest step known to have ended, plus one.
  using Clock = std::vector<std::uint32_t>;

  /// The free blocks of one slot and size.
  struct Shelf {
    std::vector<Lease> free;
  };
  using Shelves = std::map<std::pair<std::uint32_t, std::size_t>, Shelf>;

  CudaProgram& program_;
  Shelves shelves_;
  Shelves gradient_shelves_;
  std::vector<Clock> clocks_;  ///< Per stream, before its next step.
  std::vector<Clock> ends_;    ///< Per step, at its end.
  std::vector<std::vector<std::uint32_t>> due_;
};

}  // namespace plumbline
