// One walk over the graph: transfers, passes and updates as steps.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/program.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/bug.h"
#include "calibrate/cuda/program/gradient_steps.h"
#include "calibrate/cuda/program/node_order.h"
#include "calibrate/cuda/program/program_draft.h"
#include "calibrate/runtime/ledger.h"

namespace plumbline {
namespace {

/// A micro-batch between its F and its last backward on one stage.
struct InFlight {
  Held input;
  Held output;
  Held kept;
  Held checkpoints;
  Held left;
  Held output_gradient;
  Held input_gradient;     ///< Only while a backward computes it.
  std::size_t parts = 0;   ///< The buckets that the last backward, or W, has done.
  std::size_t layers = 0;  ///< The layers in those buckets.
};

class Writer {
 public:
  Writer(const RunPlan& plan, const std::vector<StageBytes>& sizes, const DeviceOrders& orders,
         const CudaProgramRules& rules)
      : plan_(plan),
        graph_(plan.graph),
        sizes_(sizes),
        orders_(orders),
        rules_(rules),
        draft_(plan, sizes, rules) {
    for (std::uint32_t s = 0; s < graph_.stage_slots.size(); ++s) {
      for (const std::uint32_t slot : graph_.stage_slots[s]) add_stage(s, slot);
    }
    ledgers_.reserve(graph_.slots());
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) ledgers_.emplace_back(plan, slot);
    const std::size_t places = graph_.stage_slots.size() * graph_.micro_batches * copies_;
    inputs_.resize(places);
    output_gradients_.resize(places);
  }

  CudaProgramOrFailure write() {
    program_.order.reserve(graph_.size());
    auto failure = take_nodes(graph_, orders_, draft_.joins, [&](std::uint32_t node) {
      write_node(node);
      program_.order.push_back(node);
    });
    if (failure) return {std::nullopt, *std::move(failure)};
    gradients_.clear_leftovers();
    end_iteration();
    mark_signals();
    return {std::move(program_), {}};
  }

 private:
  void add_stage(std::uint32_t stage, std::uint32_t slot) {
    draft_.index[stage][slot] = static_cast<std::uint32_t>(program_.stages.size());
    program_.stages.push_back({stage, slot, 1, 0, gradients_.updated_by(stage, slot)});
    draft_.weights.emplace_back()[0] = 0;
    in_flight_.emplace_back(graph_.micro_batches);
    free_weights_.emplace_back();
  }

  /// Sets the steps that the iteration's end waits for, and the pieces of the newest weights.
  void end_iteration() {
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot)
      program_.awaited.push_back(steps_.take_waits(compute_stream(slot)));
    for (std::uint32_t on = 0; on < program_.stages.size(); ++on)
      program_.stages[on].last_weights = draft_.weights[on].rbegin()->second;
  }

  void mark_signals() {
    for (const CudaStep& step : program_.steps) {
      for (const std::uint32_t before : step.waits) program_.steps[before].signals = true;
    }
    for (const auto& of_slot : program_.awaited) {
      for (const std::uint32_t before : of_slot) program_.steps[before].signals = true;
    }
  }

  /// The place where a stage finds the tensor that its neighbour sent.
  Held& place(std::vector<Held>& of, std::uint32_t stage, std::uint32_t m, std::uint32_t slot) {
    return of[(std::size_t{stage} * graph_.micro_batches + m) * copies_ + slot % copies_];
  }

  // ---- nodes ----

  void write_node(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    switch (activity.kind) {
      case ActivityKind::activation_transfer:
      case ActivityKind::gradient_transfer:
        return write_transfer(node);
      case ActivityKind::all_reduce:
      case ActivityKind::reduce_scatter:
      case ActivityKind::all_gather:
        return gradients_.write_hop(node);
      case ActivityKind::collective_begin:
        draft_.sources[node] = steps_.newest(draft_.needs_of(node));
        return gradients_.begin_collective(node);
      case ActivityKind::collective_step:
      case ActivityKind::collective_end:
      case ActivityKind::flush:
      case ActivityKind::overhead:
        draft_.sources[node] = steps_.newest(draft_.needs_of(node));
        return;
      default:
        return write_compute(node);
    }
  }

  void write_transfer(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t from = graph_.sender(node);
    const std::uint32_t to = graph_.receiver(node);
    const std::uint32_t s = activity.stage.value;
    const std::uint32_t m = activity.micro_batch.value;
    const bool up = activity.kind == ActivityKind::activation_transfer;
    Held& there = place(up ? inputs_ : output_gradients_, s, m, to);
    PLUMBLINE_CHECK(there != nullptr, to_text(activity));
    if (rules_.communicators) return write_exchange(node, there, from, to);
    const std::uint32_t stream = graph_.blocking
                                     ? compute_stream(from)
                                     : draft_.channels.at(graph_.nodes[node].resource).out;
    steps_.wait(stream, draft_.needs_of(node));
    if (graph_.blocking && draft_.last[compute_stream(to)] != kNone32) {
      steps_.wait(stream, {draft_.last[compute_stream(to)]});
    }
    if (graph_.blocking) steps_.wait(stream, steps_.due(compute_stream(to)));
    CudaStep step;
    step.kind = CudaStep::Kind::copy;
    step.node = node;
    step.slot = from;
    step.stream = stream;
    step.sends = !graph_.blocking;
    step.waits = steps_.take_waits(stream);
    Held arrived = steps_.take(to, program_.blocks[there->block].bytes, stream);
    step.from = {number_of(there), 0};
    step.to = {number_of(arrived), 0};
    step.bytes = program_.blocks[there->block].bytes;
    const std::uint32_t done = steps_.append(std::move(step));
    draft_.last[stream] = done;
    steps_.used(done, {&there, &arrived});
    there = std::move(arrived);
    program_.step_of[node] = done;
    draft_.sources[node] = {done};
    if (graph_.blocking) steps_.wait(compute_stream(to), {done});
  }

  /// Writes a send and its receive. If they block, neither needs to wait for the other's stream, as
  /// neither ends before the other has begun.
  void write_exchange(std::uint32_t node, Held& there, std::uint32_t from, std::uint32_t to) {
    const ProgramDraft::Channel channel =
        graph_.blocking ? ProgramDraft::Channel{compute_stream(from), compute_stream(to)}
                        : draft_.channels.at(graph_.nodes[node].resource);
    const auto needs = draft_.needs_of(node);
    const auto step_on = [&](CudaStep::Kind kind, std::uint32_t slot, std::uint32_t stream) {
      steps_.wait(stream, needs);
      CudaStep step;
      step.kind = kind;
      step.node = node;
      step.slot = slot;
      step.stream = stream;
      step.sends = !graph_.blocking;
      step.waits = steps_.take_waits(stream);
      step.bytes = program_.blocks[there->block].bytes;
      step.communicator = draft_.communicator_of({from, to});
      return step;
    };
    CudaStep send = step_on(CudaStep::Kind::send, from, channel.out);
    CudaStep receive = step_on(CudaStep::Kind::receive, to, channel.in);
    Held arrived = steps_.take(to, receive.bytes, channel.in);
    send.from = {number_of(there), 0};
    receive.to = {number_of(arrived), 0};
    send.together = 2;
    const std::uint32_t sent = steps_.append(std::move(send));
    const std::uint32_t received = steps_.append(std::move(receive));
    draft_.last[channel.out] = sent;
    draft_.last[channel.in] = received;
    steps_.used(sent, {&there});
    steps_.used(received, {&arrived});
    there = std::move(arrived);
    program_.step_of[node] = received;
    draft_.sources[node] = {sent, received};  // each may end a little before the other
  }

  void write_compute(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t slot = graph_.nodes[node].resource;
    const std::uint32_t stream = compute_stream(slot);
    steps_.wait(stream, draft_.needs_of(node));
    Ledger& ledger = ledgers_[slot];
    const std::uint32_t version = ledger.version_of(node);
    const std::uint32_t oldest = ledger.oldest_needed(node);
    ledger.begin(node, time_++);
    CudaStep step;
    step.node = node;
    step.slot = slot;
    step.stream = stream;
    step.on = draft_.index[activity.stage.value][slot];
    step.micro_batch = activity.micro_batch.value;
    step.sample = activity.micro_batch.value * copies_ + slot % copies_;
    if (activity.kind == ActivityKind::update) {
      write_update(std::move(step), version, oldest);
    } else {
      write_pass(std::move(step), op_of(activity.kind), is_part(activity.kind), version);
    }
    draft_.last[stream] = program_.step_of[node];
    draft_.sources[node] = {draft_.last[stream]};
    ledger.end(node, time_++);
  }

  /// Sets the layers of a step: for a part that is not the last one, those of its bucket; for the
  /// last part all layers that are left.
  void choose_layers(CudaStep& step, InFlight& one, bool goes_on, std::uint32_t stage) const {
    const auto& layers = plan_.setup.partition.stages[stage].layers;
    if (one.layers > 0) step.end = layers.size() - one.layers;
    if (!goes_on) return;
    one.layers += plan_.setup.costs.stages[stage].buckets[one.parts++].layers;
    step.begin = layers.size() - one.layers;
  }

  static void name_operands(CudaStep& step, const InFlight& one, const Held& gradients) {
    step.input = number_of(one.input);
    step.output = number_of(one.output);
    step.kept = number_of(one.kept);
    step.checkpoints = number_of(one.checkpoints);
    step.left = number_of(one.left);
    step.output_gradient = number_of(one.output_gradient);
    step.input_gradient = number_of(one.input_gradient);
    step.gradients = number_of(gradients);
  }

  /// `goes_on` means that the step is a part, but not the last one.
  void write_pass(CudaStep step, ActivityKind kind, bool goes_on, std::uint32_t version) {
    const std::uint32_t s = program_.stages[step.on].stage;
    const std::uint32_t m = step.micro_batch;
    const std::uint32_t slot = step.slot;
    const std::uint32_t stream = compute_stream(slot);
    const StageBytes& bytes = sizes_[s];
    const bool is_first = s == 0;
    const bool is_last = s + 1 == sizes_.size();
    InFlight& one = in_flight_[step.on][m];
    step.waits = steps_.take_waits(stream);
    const auto found = draft_.weights[step.on].find(version);
    PLUMBLINE_CHECK(found != draft_.weights[step.on].end(), s, version);
    step.weights = found->second;
    const bool recomputes = plan_.recomputes(rules_.recompute, s);
    if (recomputes && rules_.recompute == Recompute::layers) {
      // A split backward needs the activations of all layers, from I until W.
      const bool in_turn = kind == ActivityKind::forward || kind == ActivityKind::backward;
      step.kept_in = in_turn ? KeptIn::again : KeptIn::recomputed_at_once;
    }
    const auto make_room = [&] {
      if (!is_last && !one.output) one.output = steps_.take(slot, bytes.output, stream);
      one.kept = steps_.take(slot, bytes.in(step.kept_in), stream);
    };
    Held gradients;
    if (kind == ActivityKind::forward) {
      step.kind = CudaStep::Kind::forward;
      if (!is_first) one.input = std::move(place(inputs_, s, m, slot));
      make_room();
      if (step.kept_in != KeptIn::kept)
        one.checkpoints = steps_.take(slot, bytes.checkpoints, stream);
    } else if (goes_on && recomputes && !one.kept && plan_.setup.rules.recompute_early) {
      step.kind = CudaStep::Kind::recompute;
      make_room();
    } else {
      const bool begins = one.parts == 0;
      if (recomputes && !one.kept && kind != ActivityKind::backward_weight && begins) {
        step.recomputes = true;
        make_room();
      }
      if (!is_last && !one.output_gradient)
        one.output_gradient = std::move(place(output_gradients_, s, m, slot));
      gradients = gradients_.gradients_of(s, m, slot, stream);
      if (kind == ActivityKind::backward) {
        step.kind = CudaStep::Kind::backward;
      } else if (kind == ActivityKind::backward_input) {
        step.kind = CudaStep::Kind::backward_input;
        one.left = steps_.take(slot, bytes.left, stream);
      } else {
        step.kind = CudaStep::Kind::backward_weight;
      }
      if (!is_first && kind != ActivityKind::backward_weight && begins)
        one.input_gradient = steps_.take(slot, bytes.input, stream);
      if (kind != ActivityKind::backward_input) choose_layers(step, one, goes_on, s);
    }
    PLUMBLINE_CHECK(is_first || one.input != nullptr, s, m);
    name_operands(step, one, gradients);
    const std::uint32_t node = step.node;
    const std::uint32_t done = steps_.append(std::move(step));
    program_.step_of[node] = done;
    steps_.used(done, {&one.input, &one.output, &one.kept, &one.checkpoints, &one.left,
                       &one.output_gradient, &one.input_gradient, &gradients});
    if (goes_on) return;
    if (one.input_gradient)
      place(output_gradients_, s - 1, m, slot) = std::move(one.input_gradient);
    if (kind == ActivityKind::forward) {
      if (!is_last) place(inputs_, s + 1, m, slot) = one.output;
      if (plan_.recomputes_output(rules_.recompute, s)) one.output = nullptr;
      if (recomputes) one.kept = nullptr;
    }
    if (kind == ActivityKind::backward || kind == ActivityKind::backward_weight) one = {};
  }

  void write_update(CudaStep step, std::uint32_t version, std::uint32_t oldest) {
    const std::uint32_t s = program_.stages[step.on].stage;
    const std::uint32_t stream = compute_stream(step.slot);
    const std::uint32_t m = step.micro_batch;
    const Held own = gradients_.take_gradients(s, m, step.slot, step.node);
    step.waits = steps_.take_waits(stream);
    step.kind = CudaStep::Kind::update;
    step.gradients = number_of(own);
    step.clears = own != nullptr;
    const std::uint32_t before = version - 1;
    std::map<std::uint32_t, std::uint32_t>& weights = draft_.weights[step.on];
    const auto old = weights.find(before);
    PLUMBLINE_CHECK(old != weights.end(), s, before);
    step.weights = old->second;
    if (oldest >= version) {
      step.made = step.weights;
      weights.erase(old);
    } else {
      step.made = new_weights(step.on);
    }
    weights[version] = step.made;
    const auto needed = weights.lower_bound(std::min(oldest, version));
    for (auto gone = weights.begin(); gone != needed; ++gone)
      free_weights_[step.on].push_back(gone->second);
    weights.erase(weights.begin(), needed);
    const std::uint32_t node = step.node;
    const std::uint32_t done = steps_.append(std::move(step));
    program_.step_of[node] = done;
    steps_.used(done, {&own});
    gradients_.end_update(s, m);
  }

  std::uint32_t new_weights(std::uint32_t on) {
    std::vector<std::uint32_t>& free = free_weights_[on];
    if (free.empty()) return program_.stages[on].weights++;
    const std::uint32_t piece = free.back();
    free.pop_back();
    return piece;
  }

  const RunPlan& plan_;
  const OpGraph& graph_;
  const std::vector<StageBytes>& sizes_;
  const DeviceOrders& orders_;
  const CudaProgramRules& rules_;
  ProgramDraft draft_;  // declared before the members that may hold blocks
  CudaProgram& program_ = draft_.program;
  StepList& steps_ = draft_.steps;
  std::uint32_t copies_ = draft_.copies;
  GradientSteps gradients_{draft_};
  std::vector<Ledger> ledgers_;
  RealTime time_ = 0;
  std::vector<Held> inputs_;
  std::vector<Held> output_gradients_;
  std::vector<std::vector<InFlight>> in_flight_;          ///< [stage on a slot][micro-batch].
  std::vector<std::vector<std::uint32_t>> free_weights_;  ///< By stage on a slot: pieces.
};

}  // namespace

std::size_t CudaProgram::bytes_of(std::uint32_t slot, const std::vector<StageBytes>& sizes) const {
  std::size_t bytes = 0;
  for (const Block& block : blocks) bytes += block.slot == slot ? block.bytes : 0;
  for (const StageOnSlot& on : stages)
    bytes += on.slot == slot ? on.weights * sizes[on.stage].parameters : 0;
  return bytes;
}

CudaProgramOrFailure cuda_program(const RunPlan& plan, const std::vector<StageBytes>& sizes,
                                  const DeviceOrders& orders, const CudaProgramRules& rules) {
  PLUMBLINE_CHECK(
      orders.size() == plan.graph.slots() && sizes.size() == plan.graph.stage_slots.size(),
      orders.size(), sizes.size());
  return Writer(plan, sizes, orders, rules).write();
}

}  // namespace plumbline
