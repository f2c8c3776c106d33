// The steps of a program while it is written: what each stream knows to have ended, and memory
// that is used again by those who know.
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

/// A block that somebody holds; who used it last, on each stream.
struct Lease {
  std::uint32_t block = 0;
  std::map<std::uint32_t, std::uint32_t> used;  ///< By stream: the newest step, plus one.
};

/// Free again when nobody holds it.
using Held = std::shared_ptr<Lease>;

/// The block; kNone32 of nothing.
inline std::uint32_t number_of(const Held& held) { return held ? held->block : kNone32; }

/// Appends to the steps and blocks of a program. A clock for each stream says which steps are known
/// to have ended before its next one, by its own order and by waits: so no step waits twice for the
/// same, and none for memory. It outlives all that is held.
class StepList {
 public:
  explicit StepList(CudaProgram& program) : program_(program) {}

  /// Comes first, when the streams are known.
  void open(std::size_t streams);

  /// Lets the stream wait for the steps before whatever comes next on it.
  void wait(std::uint32_t stream, const std::vector<std::uint32_t>& steps);
  /// What it is to wait for.
  const std::vector<std::uint32_t>& due(std::uint32_t stream) const { return due_[stream]; }
  /// The waits of the next step of a stream: those that are not known by others to be over.
  std::vector<std::uint32_t> take_waits(std::uint32_t stream);
  /// Appends a step whose waits were taken. Returns its number.
  std::uint32_t append(CudaStep step);
  /// The last step of each stream among them.
  std::vector<std::uint32_t> newest(const std::vector<std::uint32_t>& steps) const;

  /// A block of a slot that the next step of `stream` may write, after its waits were taken: one
  /// whose users are all known to have ended, or a new one. Nothing for no bytes.
  Held take(std::uint32_t slot, std::size_t bytes, std::uint32_t stream, bool is_gradients = false);
  /// The step uses these, where there are any.
  void used(std::uint32_t step, std::initializer_list<const Held*> all);

 private:
  /// Of each stream: the newest step known to have ended, plus one.
  using Clock = std::vector<std::uint32_t>;

  /// The free blocks of one slot and size.
  struct Shelf {
    std::vector<Lease> free;
  };
  using Shelves = std::map<std::pair<std::uint32_t, std::size_t>, Shelf>;

  CudaProgram& program_;
  Shelves shelves_;
  Shelves gradient_shelves_;
  std::vector<Clock> clocks_;  ///< Of each stream: before its next step.
  std::vector<Clock> ends_;    ///< Of each step: at its end.
  std::vector<std::vector<std::uint32_t>> due_;
};

}  // namespace plumbline
