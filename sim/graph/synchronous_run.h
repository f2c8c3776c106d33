// Mini-batches one after the other, as nodes: ops, what they wait for, flushes, updates.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/graph/graph_writer.h"

namespace plumbline {

/// Writes the run of a schedule with a flush. Each op whose stage is cut into buckets where that
/// matters stands as one node a bucket; collectives begin when all members have what they give.
class SynchronousRun {
 public:
  /// All of these must outlive it.
  SynchronousRun(const Schedule& schedule, const StageCosts& costs, const RunRules& options,
                 GraphWriter& writer);
  ~SynchronousRun();
  SynchronousRun(const SynchronousRun&) = delete;
  SynchronousRun& operator=(const SynchronousRun&) = delete;

  void write();

 private:
  static constexpr std::uint32_t kNone = GraphWriter::kNone;
  using Nodes = std::vector<std::uint32_t>;
  class StageEnds;

  /// Gradients that the newest part on a stream has made, whose collective is not written yet: the
  /// gather for the part behind it goes over the links first.
  struct Made {
    const Wiring::Collective* reduction = nullptr;
    Op op;
    Nodes nodes;
  };

  /// The ops of one slot of the schedule, in all copies.
  struct Stream {
    Nodes last;    ///< The newest op, or part of one: of each copy.
    Nodes before;  ///< The one before it.
    /// The stage and bucket whose weights are whole on top of what each device holds.
    std::optional<std::pair<StageId, std::size_t>> whole;
    std::optional<Made> made;
    Nodes reduced;  ///< The ends of its reductions in this mini-batch.
  };

  std::size_t buckets(StageId stage) const { return costs_.stages[stage.value].buckets.size(); }
  void write_ops(std::uint32_t gate);
  void write_ops_and_transfers(std::uint32_t gate);
  void write_transfer(const Op& feeds, std::uint32_t copy);
  void write_op(std::size_t index, std::uint32_t gate);
  bool is_cut(std::size_t index) const;
  const Nodes* weights_for(std::size_t index) const;
  void write_whole(const Op& op, std::uint32_t gate, const Nodes* weights);
  void write_paired(std::size_t index, std::uint32_t gate, const Nodes* weights);
  void write_parts(const Op& op, std::uint32_t gate, const Nodes* weights, bool makes_last);
  std::uint32_t gather(Stream& stream, const Op& op, std::size_t bucket, std::uint32_t gate);
  void write_made(Stream& stream);
  std::uint32_t first_wait(const Op& op, std::uint32_t copy, const Stream& stream,
                           std::uint32_t gate) const;
  void remember(const Op& op, std::size_t bucket, std::uint32_t node);
  std::uint32_t write_end(std::uint32_t first);
  Nodes write_gathers(std::uint32_t last_micro_batch, const std::vector<Nodes>& updates);
  void write_gathers_ahead(std::uint32_t gate);
  Nodes write_reductions(std::uint32_t last_micro_batch);
  Nodes members_ready(std::uint32_t stage, std::size_t bucket) const;

  const Schedule& schedule_;
  const StageCosts& costs_;
  const RunRules& options_;
  GraphWriter& writer_;
  std::unique_ptr<const StageEnds> ends_;  ///< Where first forwards or last gradients matter.
  std::vector<Stream> streams_;            ///< By slot of the schedule.
  Nodes last_transfer_;  ///< By slot of the run, where transfers have places of their own.
  /// Of each stage and bucket, the nodes that have made its gradients; one bucket where none are
  /// given.
  std::vector<std::vector<Nodes>> gradients_;
  /// Of each stage, the moments at which weights gathered ahead are there, as its first forwards
  /// need them; empty where they always are.
  std::vector<Nodes> weights_;
};

}  // namespace plumbline
