// Turns of a burst, and their events read in order.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/stage_timer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/random.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"

namespace plumbline {

CudaStageTimer::CudaStageTimer(const CudaQueue& queue, CUcontext context, const Network& network,
                               const CudaMeasuring& measure_pass, CudaLaunching& launching,
                               double per_op)
    : driver_(*queue.driver),
      context_(context),
      queue_(queue),
      network_(network),
      measuring_pass_(measure_pass),
      stage_(queue_, network, measure_pass.first, measure_pass.last, measure_pass.batch),
      is_first_(measure_pass.first == 0),
      is_last_(measure_pass.last + 1 == network.layers.size()),
      optimizer_(queue_, measure_pass.optimizer, network.element, stage_.parameter_elements(),
                 1e-6),
      launching_(launching),
      per_op_(per_op) {
  const StageLayout& layout = stage_.layout();
  const std::vector<std::byte> parameters = stage_.initial_parameters(measure_pass.seed);
  parameters_ = uploaded(parameters.data(), parameters.size());
  const std::vector<std::byte> zero(layout.parameters());
  gradients_ = uploaded(zero.data(), zero.size());
  const auto batch = static_cast<std::size_t>(measure_pass.batch);
  const std::vector<float> loss_weights(batch, 1.0F / static_cast<float>(measure_pass.batch));
  if (is_last_) loss_weights_ = uploaded(loss_weights.data(), batch * sizeof(float));
  std::optional<TrainingData> data;
  if (is_first_ || is_last_)
    data.emplace(network, measure_pass.batch, measure_pass.devices + 1, measure_pass.seed);
  const Shape& rows = network.layers.back().input;
  const std::size_t labels =
      batch * (rows.extents.size() > 1 ? static_cast<std::size_t>(rows.extents.front()) : 1);
  const auto numbers = static_cast<std::size_t>(network.input.shape.elements()) * batch;
  for (std::uint32_t i = 0; i < measure_pass.devices + 1; ++i) {
    Slot slot;
    const std::uint64_t seed = measure_pass.seed + std::uint64_t{2} * i;
    if (is_first_ && network.input.vocabulary) {
      slot.input = uploaded(data->ids(i), numbers * sizeof(std::int32_t));
    } else if (is_first_) {
      const auto elements = as_elements(network.element, data->input(i), numbers);
      slot.input = uploaded(elements.data(), elements.size());
    } else {
      slot.input = filled(layout.input(), seed, 1);
      slot.input_gradient = CudaScratch(driver_, layout.input());
    }
    if (is_last_) {
      slot.labels = uploaded(data->labels(i), labels * sizeof(std::int32_t));
    } else {
      slot.output_gradient = filled(layout.output(), seed + 1, 1e-3F);
    }
    slot.output = CudaScratch(driver_, layout.output());
    slot.kept = CudaScratch(driver_, layout.kept());
    slot.left = CudaScratch(driver_, layout.left());
    slots_.push_back(std::move(slot));
  }
}

CudaStageTimer::~CudaStageTimer() {
  driver_.cuCtxSetCurrent(context_);
  driver_.cuStreamSynchronize(queue_.stream);
}

CudaScratch CudaStageTimer::uploaded(const void* data, std::size_t bytes) const {
  CudaScratch memory(driver_, bytes);
  if (bytes == 0) return memory;
  PLUMBLINE_CUDA(driver_, cuMemcpyHtoDAsync, memory.data(), data, bytes, queue_.stream);
  PLUMBLINE_CUDA(driver_, cuStreamSynchronize, queue_.stream);  // the host's memory may be freed
  return memory;
}

/// The device fills it, as the host would take seconds.
CudaScratch CudaStageTimer::filled(std::size_t bytes, std::uint64_t seed, float scale) const {
  CudaScratch memory(driver_, bytes);
  const auto count = static_cast<std::int64_t>(bytes) / bytes_of(network_.element);
  const auto own_seed = static_cast<std::uint32_t>(random_bits(seed, measuring_pass_.first));
  if (count > 0) cuda::noise(queue_, network_.element, memory.data(), own_seed, count, scale);
  return memory;
}

CudaStageTensors CudaStageTimer::tensors(std::size_t slot) const {
  const Slot& s = slots_[slot];
  CudaStageTensors t;
  (is_first_ && network_.input.vocabulary ? t.ids : t.input) = s.input.data();
  t.labels = s.labels.data();
  t.output = s.output.data();
  t.kept = s.kept.data();
  t.left = s.left.data();
  t.output_gradient = is_last_ ? loss_weights_.data() : s.output_gradient.data();
  t.input_gradient = s.input_gradient.data();
  t.parameters = parameters_.data();
  t.gradients = gradients_.data();
  return t;
}

void CudaStageTimer::start(std::uint32_t in_flight, Duration before, StageSamples& samples,
                           std::optional<double> stamps) {
  PLUMBLINE_CHECK(in_flight >= 1 && in_flight <= slots_.size(), in_flight, slots_.size());
  prepare();
  in_flight_ = in_flight;
  samples_ = &samples;
  before_ = before;
  counts_ = 0;
  turns_ = 0;
  updated_ = {};
  bare_bursts_ = 0;
  stamps_ = stamps;
  forward_.reset();
  was_measured_.clear();
}

void CudaStageTimer::enqueue_forward(bool updates) {
  rest_ = tasks(updates);
  rest_counts_ = !updates;
  enqueue(rest_.front(), rest_counts_);
  rest_.erase(rest_.begin());
}

void CudaStageTimer::enqueue_backward() {
  for (const Task& task : rest_) enqueue(task, rest_counts_ || is_update(task.pass));
  pending_.back().ends_turn = true;
  ++turn_;
}

const CudaStageTimer::Measurable* CudaStageTimer::piece_of(Pass pass, std::size_t slot) const {
  const auto found = measurables_.find({pass, slot, stage_.layout().layers() > 1});
  if (found == measurables_.end()) return nullptr;
  const bool is_ready = !launching_.replays || !found->second.graphs.empty();
  return is_ready ? &found->second : nullptr;
}

bool CudaStageTimer::can_be_bare() const {
  for (std::size_t slot = 0; slot < in_flight_; ++slot) {
    for (const Pass pass : {Pass::forward, Pass::backward})
      if (piece_of(pass, slot) == nullptr) return false;
  }
  return turn_ + 1 >= in_flight_;
}

void CudaStageTimer::enqueue_piece(Pass pass, std::size_t slot) {
  const Measurable& piece = *piece_of(pass, slot);
  if (launching_.replays) {
    piece.graphs.front().replay(queue_.stream);
  } else {
    stage_.measure_pass(queue_, pass, tensors(slot));
  }
}

void CudaStageTimer::enqueue_untimed_turn() {
  const std::size_t slot = untimed_turn_++ % slots_.size();
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    PLUMBLINE_CHECK(piece_of(pass, slot) != nullptr, slot);
    enqueue_piece(pass, slot);
  }
}

void CudaStageTimer::enqueue_bare_turn(bool first, bool last) {
  const auto stamp = [&](std::size_t i) {
    PLUMBLINE_CUDA(driver_, cuEventRecord, bare_.stamps[i], queue_.stream);
  };
  enqueue_piece(Pass::forward, turn_ % in_flight_);
  enqueue_piece(Pass::backward, *oldest());
  ++turn_;
  if (first) {
    bare_.turns = 0;
    bare_.counts = counts_ != 0;
    if (bare_.stamps.all().empty()) bare_.stamps = CudaEvents(driver_, 2, CU_EVENT_DEFAULT);
    stamp(0);
  } else {
    ++bare_.turns;
  }
  if (last) stamp(1);
}

void CudaStageTimer::take(const Bare& bare) {
  const double turn = between(bare.stamps[0], bare.stamps[1]) / static_cast<double>(bare.turns);
  turn_time_ = turn;
  if (!bare.counts) return;
  ++bare_bursts_;
  if (!samples_->takes(Pass::turn)) return;
  const PassTimes times{Pass::turn, {std::max<std::int64_t>(std::llround(turn - 2 * per_op_), 0)}};
  samples_->add(times, before_ + Duration{now() - counts_});
  was_measured_.push_back(times);
}

void CudaStageTimer::enqueue_update_at_once() { enqueue(task_of(Pass::update_at_once, 0), true); }

void CudaStageTimer::finish(bool counts) {
  if (pending_.empty() && bare_.turns == 0) return;
  PLUMBLINE_CUDA(driver_, cuStreamSynchronize, queue_.stream);
  bare_.counts = bare_.counts && counts;
  for (Pending& pending : pending_) pending.counts = pending.counts && counts;
  if (bare_.turns > 0) {
    take(bare_);
    bare_.turns = 0;
    return;
  }
  std::size_t turns = 0;
  CUevent end = nullptr;  // of the last turn
  for (const Pending& pending : pending_) {
    if (pending.ends_turn) ++turns;
    if (pending.ends_turn) end = pending.stamps.all().back();
    if (pending.ends_turn && pending.counts) ++turns_;
    take(pending);
  }
  turn_time_ = between(pending_.front().stamps[0], end) / static_cast<double>(turns);
  for (Pending& pending : pending_)
    old_stamps_[pending.parts()].push_back(std::move(pending.stamps));
  pending_.clear();
}

std::size_t CudaStageTimer::cycle() const {
  // The most turns between two I and W that are timed in the two ways. F and B of a buffer take two
  // sweeps.
  constexpr std::size_t kBothWays = 20;
  return std::max(kBothWays, 2 * slots_.size() + 2);
}

std::vector<CudaStageTimer::Task> CudaStageTimer::tasks(bool updates) {
  std::vector<Task> all;
  const auto add = [&](Pass pass, std::size_t slot) { all.push_back(task_of(pass, slot)); };
  add(Pass::forward, turn_ % in_flight_);
  const auto slot = oldest();
  if (!slot) return all;
  // Every fourth backward of each buffer; the buffers take turns.
  if ((backwards_[*slot]++ + *slot) % 4 == 3) {
    add(Pass::backward_input, *slot);
    add(Pass::backward_weight, *slot);
  } else {
    add(Pass::backward, *slot);
  }
  if (updates && (turn_ + measuring_pass_.device) % 4 == 3)
    add(Pass::update, 0);  // the devices take turns
  return all;
}

std::optional<std::size_t> CudaStageTimer::oldest() const {
  if (turn_ + 1 < in_flight_) return std::nullopt;
  return (turn_ + 1) % in_flight_;
}

/// F and B, which are pieces in bare turns, are counted per buffer, from different numbers on.
std::size_t& CudaStageTimer::count_of(Pass pass, std::size_t slot) {
  const bool by_buffer = pass == Pass::forward || pass == Pass::backward;
  const std::size_t buffer = by_buffer ? slot : 0;
  return passes_.try_emplace({pass, buffer}, buffer).first->second;
}

/// The next pass of this kind: layer by layer and as a piece in turn.
CudaStageTimer::Measurable& CudaStageTimer::measurable(Pass pass, std::size_t slot) {
  return measurable(pass, slot, stage_.layout().layers() > 1 && count_of(pass, slot) % 2 == 1);
}

CudaStageTimer::Measurable& CudaStageTimer::measurable(Pass pass, std::size_t slot, bool is_piece) {
  Measurable& found = measurables_[{pass, slot, is_piece}];
  found.is_piece = is_piece;
  found.parts = is_piece ? 1 : stage_.layout().layers();
  return found;
}

void CudaStageTimer::prepare() {
  if (std::exchange(is_prepared_, true)) return;
  const auto prepare_pass = [&](Pass pass, std::size_t slot, bool is_piece) {
    const Task task{pass, slot, &measurable(pass, slot, is_piece)};
    for (std::size_t part = 0; part < task.measurable->parts; ++part) measure_pass(task, part);
    PLUMBLINE_CUDA(driver_, cuStreamSynchronize, queue_.stream);
    if (launching_.replays) record(task);
  };
  const bool has_pieces = stage_.layout().layers() > 1;
  for (const bool is_piece : {false, true}) {
    if (is_piece && !has_pieces) continue;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      for (const Pass pass :
           {Pass::forward, Pass::backward, Pass::backward_input, Pass::backward_weight})
        prepare_pass(pass, slot, is_piece);
    }
    for (const Pass pass : {Pass::update, Pass::update_at_once}) prepare_pass(pass, 0, is_piece);
  }
}

void CudaStageTimer::enqueue(const Task& task, bool counts) {
  Measurable& measurable = *task.measurable;
  if (!launching_.replays) measurable.graphs.clear();  // if one pass cannot be recorded, none is
  Pending pending;
  pending.pass = task.pass;
  pending.is_piece = measurable.is_piece;
  pending.stamps = new_stamps(measurable.parts);
  for (std::size_t part = 0; part < measurable.parts; ++part) {
    PLUMBLINE_CUDA(driver_, cuEventRecord, pending.stamps[part], queue_.stream);
    if (measurable.graphs.empty()) {
      measure_pass(task, part);
    } else {
      measurable.graphs[part].replay(queue_.stream);
    }
  }
  PLUMBLINE_CUDA(driver_, cuEventRecord, pending.stamps.back(), queue_.stream);
  ++count_of(task.pass, task.slot);
  pending.counts = counts && counts_ != 0;
  pending_.push_back(std::move(pending));
}

CudaEvents CudaStageTimer::new_stamps(std::size_t parts) {
  std::vector<CudaEvents>& old = old_stamps_[parts];
  if (old.empty()) return {driver_, parts + 1, CU_EVENT_DEFAULT};
  CudaEvents stamps = std::move(old.back());
  old.pop_back();
  return stamps;
}

/// The layer at a place of the pass, or the piece.
void CudaStageTimer::measure_pass(const Task& task, std::size_t place) {
  const bool is_piece = task.measurable->is_piece;
  if (is_update(task.pass)) {
    update(place, is_piece ? stage_.layout().layers() : place + 1);
  } else if (is_piece) {
    stage_.measure_pass(queue_, task.pass, tensors(task.slot));
  } else {
    stage_.measure_layer(queue_, task.pass, tensors(task.slot), stage_.layer_at(task.pass, place));
  }
}

void CudaStageTimer::record(const Task& task) {
  std::vector<CudaRecording> graphs;
  const std::size_t parts = task.measurable->parts;
  graphs.reserve(parts);
  const bool is_recorded = launching_.try_to(driver_, [&] {
    for (std::size_t part = 0; part < parts; ++part)
      graphs.emplace_back(driver_, queue_.stream, [&] { measure_pass(task, part); });
  });
  if (is_recorded) task.measurable->graphs = std::move(graphs);
}

/// Updates as a run updates a whole stage.
void CudaStageTimer::update(std::size_t from, std::size_t to) {
  const StageLayout& layout = stage_.layout();
  const std::int64_t element = bytes_of(network_.element);
  if (from == 0 && layout.parameters() > 0) optimizer_.step(queue_);
  const std::size_t first = layout.parameters_of(from).first;
  const std::size_t last = layout.parameters_of(to - 1).second;
  if (first == last) return;
  const auto begin = static_cast<std::int64_t>(first) / element;
  optimizer_.update(queue_, {begin, static_cast<std::int64_t>(last) / element, begin},
                    gradients_.data(), parameters_.data(), parameters_.data());
  PLUMBLINE_CUDA(driver_, cuMemsetD8Async, gradients_.data() + first, 0, last - first,
                 queue_.stream);
}

void CudaStageTimer::take(const Pending& pending) {
  const CudaEvents& stamps = pending.stamps;
  if (pending.counts && is_update(pending.pass))
    updated_[pending.pass == Pass::update_at_once ? 1 : 0][pending.is_piece ? 1 : 0] = true;
  if (!pending.counts || !samples_->takes(pending.pass)) return;
  PassTimes times{pending.pass, std::vector<std::int64_t>(pending.parts())};
  for (std::size_t i = 0; i < pending.parts(); ++i) {
    const bool is_turned = !pending.is_piece && !is_update(pending.pass);
    times.layers[is_turned ? stage_.layer_at(pending.pass, i) : i] =
        std::llround(between(stamps[i], stamps[i + 1]));
  }
  samples_->add(times, before_ + Duration{now() - counts_});
  was_measured_.push_back(std::move(times));
  if (stamps_) take_turn(pending);
}

/// A forward and a backward that were timed as pieces, one after the other, are a turn.
void CudaStageTimer::take_turn(const Pending& pending) {
  if (pending.parts() > 1) return;
  const double time = between(pending.stamps[0], pending.stamps.all().back());
  if (pending.pass == Pass::forward) forward_ = time;
  if (pending.pass != Pass::backward || !forward_ || !samples_->takes(Pass::turn)) return;
  const double turn = *forward_ + time - 2 * *stamps_;
  const PassTimes times{Pass::turn, {std::max<std::int64_t>(std::llround(turn), 0)}};
  samples_->add(times, before_ + Duration{now() - counts_});
  was_measured_.push_back(times);
}

double CudaStageTimer::between(CUevent first, CUevent second) const {
  float milliseconds = 0;
  PLUMBLINE_CUDA(driver_, cuEventElapsedTime, &milliseconds, first, second);
  return double{milliseconds} * 1e6;
}

}  // namespace plumbline
