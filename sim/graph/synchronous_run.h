// Mini-batches one after the other, as nodes: ops, their waits, flushes, updates.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/graph/graph_writer.h"

namespace plumbline {

/// Writes the run of a schedule whose updates come with the mini-batches, with a flush before them
/// or without. An op of a stage with buckets is written as one node
/// per bucket, if buckets matter there. A collective begins when all members have their input.
class SynchronousRun {
 public:
  /// All arguments must outlive the object.
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
  using Weights = std::pair<StageId, std::size_t>;  ///< Of a stage and a bucket.

  /// Gradients of the newest part or op on a stream whose collective is not written yet. The gather
  /// for the next part goes over the links first.
  struct Made {
    const Wiring::Collective* reduction = nullptr;
    Op op;
    Nodes nodes;
  };

  /// The ops of one slot of the schedule, in all copies.
  struct Stream {
    Nodes last;                      ///< The newest op or part of an op, one per copy.
    std::vector<Nodes> parts;        ///< The newest parts or ops, `prefetch` + 1 of them.
    std::set<Weights> whole;         ///< Gathered, beside the device's own share.
    std::optional<Weights> passing;  ///< Freed when another part begins.
    std::map<Weights, Nodes> freed;  ///< The last parts that used weights that were freed.
    std::vector<Made> made;
    Nodes scattered;  ///< The ends of the first phases of its reductions in this mini-batch.
    Nodes reduced;    ///< The ends of these reductions.
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
  void keep(Stream& stream) const;
  static void free_passing(Stream& stream);
  const Wiring::Collective& reduction_of(StageId stage, std::size_t bucket, bool is_last) const;
  std::uint32_t gather(Stream& stream, const Op& op, std::size_t bucket, std::uint32_t gate);
  void write_made(Stream& stream);
  std::uint32_t first_wait(const Op& op, std::uint32_t copy, const Stream& stream,
                           std::uint32_t gate) const;
  void remember(const Op& op, std::size_t bucket, std::uint32_t node);
  std::uint32_t write_end(std::uint32_t first);
  Nodes write_ties(std::uint32_t last_micro_batch, std::uint32_t flush, const Nodes& reductions);
  void write_flush(MiniBatch& mini_batch, std::uint32_t last_micro_batch, Nodes reductions);
  std::vector<Nodes> write_updates(std::uint32_t last_micro_batch, const std::vector<Nodes>& after);
  std::uint32_t write_own_ends(std::uint32_t first);
  Nodes write_gathers(std::uint32_t last_micro_batch, const std::vector<Nodes>& updates);
  void write_gathers_ahead(std::uint32_t gate);
  Nodes write_reductions(std::uint32_t last_micro_batch);
  Nodes members_ready(std::uint32_t stage, std::size_t bucket) const;

  const Schedule& schedule_;
  const StageCosts& costs_;
  const RunRules& options_;
  GraphWriter& writer_;
  std::unique_ptr<const StageEnds> ends_;  ///< Set if first forwards or last gradients matter.
  std::vector<Stream> streams_;            ///< One per slot of the schedule.
  Nodes last_transfer_;  ///< One per slot of the run, if transfers have places of their own.
  /// The nodes that have made the gradients, by stage and bucket; a stage without buckets has one.
  std::vector<std::vector<Nodes>> gradients_;
  /// The moments at which weights gathered ahead are complete, by stage, in the order in which its
  /// first forwards need them. Empty if the weights are always there.
  std::vector<Nodes> weights_;
};

}  // namespace plumbline
