// Appends nodes to an op graph: ops, their transfers, all-reduces.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/graph/wiring.h"

namespace plumbline {

/// Writes an OpGraph node by node, in an order that its user decides, and remembers which node
/// brings which tensor. It knows no schedule.
class GraphWriter {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// All arguments must outlive the writer. With `sends_at_once`, an op's result is sent as soon as
  /// the op ends; else add_transfer_to decides its place.
  GraphWriter(const PipelineShape& shape, const StageCosts& costs,
              const std::vector<DeviceId>& devices, const Cluster& cluster, const RunRules& options,
              bool sends_at_once);

  const OpGraph& graph() const { return graph_; }
  const Wiring& wiring() const { return wiring_; }

  void reserve(std::size_t nodes);
  /// Forgets the results of the previous mini-batch.
  void begin_mini_batch(std::uint32_t first_micro_batch);

  /// Whether the producer of the input that `op` gets from another device has been written.
  bool has_input(const Op& op, std::uint32_t copy) const;
  /// The node that brings this input; kNone if the input is already on the device. Requires:
  /// has_input.
  std::uint32_t input_of(const Op& op, std::uint32_t copy) const;

  /// Adds the transfer that brings the input of `op`, if there is one, at this place in the order.
  /// Requires: has_input; not `sends_at_once`. Returns its node; kNone = no transfer.
  std::uint32_t add_transfer_to(const Op& op, std::uint32_t copy);

  /// Adds the op and, if results are sent at once, the transfer of its result; before a B that
  /// recomputes its F early, that F. Returns the op's node.
  std::uint32_t add_op(const Op& op, std::uint32_t copy, std::uint32_t after);

  /// The same for the first or the second op of a pair. The transfers of both begin when the second
  /// has ended: see end_pair().
  std::uint32_t add_paired(const Op& first, const Op& second, bool is_second, std::uint32_t copy,
                           std::uint32_t after);
  void end_pair(const Op& first, const Op& second, std::uint32_t copy, std::uint32_t first_node,
                std::uint32_t second_node);

  /// The same for one of the `parts` of an F, B or W, in their order; the last part sends.
  std::uint32_t add_part(const Op& op, std::uint32_t copy, std::size_t part, std::size_t parts,
                         std::uint32_t after);

  /// Adds producers to wait for to a node of the op that was added last; kNone among them is
  /// ignored.
  void add_waits(std::uint32_t node, const std::vector<std::uint32_t>& producers);

  std::uint32_t add_update(StageId stage, std::uint32_t micro_batch, std::uint32_t slot,
                           std::uint32_t after);

  /// Adds a moment that comes when all of `ready` have come. Returns its node.
  std::uint32_t add_moment(ActivityKind kind, StageId stage, std::uint32_t micro_batch,
                           std::uint32_t resource, std::vector<std::uint32_t> ready);

  /// The moments at which the first and the last phase of a collective end.
  struct CollectiveEnds {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  /// Adds a collective that begins once all of `ready` have ended.
  CollectiveEnds add_collective(const Wiring::Collective& collective, StageId stage,
                                std::uint32_t micro_batch, std::vector<std::uint32_t> ready);

  void add_mini_batch(const MiniBatch& mini_batch) { graph_.mini_batches.push_back(mini_batch); }

  /// Adds the end of the mini-batch: the moment at which all of `ready` have ended, then the
  /// overhead of the iteration.
  std::uint32_t add_gate(std::uint32_t micro_batch, std::vector<std::uint32_t> ready);

  /// The finished graph.
  OpGraph take();

 private:
  /// The source of an op's input.
  struct DataEdge {
    std::uint32_t boundary;
    Wiring::Direction direction;
    std::uint32_t producer;  ///< Stage.
  };

  std::uint32_t add(ActivityKind kind, StageId stage, std::uint32_t micro_batch, std::uint32_t cost,
                    std::uint32_t resource, std::uint32_t second, std::uint32_t after);
  std::optional<DataEdge> source_of(const Op& op) const;
  std::size_t place(const DataEdge& edge, std::uint32_t micro_batch, std::uint32_t copy) const;
  std::uint32_t add_transfer(const DataEdge& edge, StageId consumer, std::uint32_t micro_batch,
                             std::uint32_t copy, std::uint32_t after);
  void send_result(const Op& op, std::uint32_t copy, std::uint32_t node);
  bool recomputes_early(const Op& op) const;
  void add_recomputed_forward(const Op& op, std::uint32_t copy);

  const PipelineShape& shape_;
  const RunRules& options_;
  bool sends_at_once_;
  OpGraph graph_;
  Wiring wiring_;
  /// The node that brings the output of a stage's F (up), or the gradient of its B or I (down), to
  /// the consumer. It is the transfer, or the producer as long as its transfer is not written.
  std::vector<std::uint32_t> produced_;
  std::uint32_t first_micro_batch_ = 0;
};

}  // namespace plumbline
