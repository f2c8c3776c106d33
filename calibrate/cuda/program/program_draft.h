// A program while it is being written, for the writers of its steps.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "calibrate/cuda/program/program.h"
#include "calibrate/cuda/program/step_list.h"
#include "calibrate/runtime/run_plan.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// The compute stream of a slot.
inline std::uint32_t compute_stream(std::uint32_t slot) { return slot; }

/// A program while it is being written: its streams, and the steps and weights so far.
struct ProgramDraft {
  /// The streams of a channel: at the sender, and with communicators at the receiver.
  struct Channel {
    std::uint32_t out = 0;
    std::uint32_t in = 0;
  };

  /// Makes the streams: one for each slot, each channel, and each slot that sends gradients. There
  /// are no steps yet.
  ProgramDraft(const RunPlan& its_plan, const std::vector<StageBytes>& its_sizes,
               const CudaProgramRules& its_rules);
  ProgramDraft(const ProgramDraft&) = delete;
  ProgramDraft& operator=(const ProgramDraft&) = delete;

  /// The steps that a node waits for, besides those of its own stream.
  std::vector<std::uint32_t> needs_of(std::uint32_t node) const;

  /// The communicator of these slots, which are in order of rank. Adds it if it is new.
  std::uint32_t communicator_of(const std::vector<std::uint32_t>& slots);

  /// The index of a slot among a stage's devices.
  std::size_t member(std::uint32_t stage, std::uint32_t slot) const;

  const RunPlan& plan;
  const OpGraph& graph;
  const std::vector<StageBytes>& sizes;
  const CudaProgramRules& rules;
  std::uint32_t copies;
  CudaProgram program;
  StepList steps{program};                           // declared before all that may hold a block
  std::map<std::uint32_t, Channel> channels;         ///< By resource.
  std::map<std::uint32_t, std::uint32_t> gathering;  ///< By slot: its stream for gradients.
  std::vector<std::uint32_t> last;                   ///< The newest step of each stream.
  std::vector<const Join*> joins;
  std::vector<std::vector<std::uint32_t>> sources;  ///< For each node, the steps that end it.
  std::vector<std::vector<std::uint32_t>> index;    ///< [stage][slot], in CudaProgram::stages.
  /// For each stage on a slot, the piece of each version.
  std::vector<std::map<std::uint32_t, std::uint32_t>> weights;

 private:
  void make_streams();
};

}  // namespace plumbline
