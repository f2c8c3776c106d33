// Turns enqueued ahead, and their events read in order.
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/walker.h"

#include <cmath>
#include <utility>

#include "models/random.h"

namespace plumbline {
namespace {

/// The device has always something to do, and what is enqueued ends soon.
constexpr std::size_t kTurnsAhead = 3;
constexpr std::size_t kMostGaps = 10'000;

}  // namespace

CudaWalker::CudaWalker(const CudaDriver& driver, const CudaDevice& device, CudaProducts& products,
                       const Network& network, const CudaWalk& walk)
    : driver_(driver),
      context_(device.context),
      queue_{&driver, device.kernels.get(), &products, device.compute, device.sms},
      network_(network),
      walk_(walk),
      stage_(queue_, network, walk.first, walk.last, walk.batch),
      is_first_(walk.first == 0),
      is_last_(walk.last + 1 == network.layers.size()),
      optimizer_(queue_, walk.optimizer, network.element, stage_.parameter_elements(), 1e-6) {
  const StageLayout& layout = stage_.layout();
  const std::vector<std::byte> parameters = stage_.initial_parameters(walk.seed);
  parameters_ = uploaded(parameters.data(), parameters.size());
  const std::vector<std::byte> zero(layout.parameters());
  gradients_ = uploaded(zero.data(), zero.size());
  const auto batch = static_cast<std::size_t>(walk.batch);
  const std::vector<float> loss_weights(batch, 1.0F / static_cast<float>(walk.batch));
  if (is_last_) loss_weights_ = uploaded(loss_weights.data(), batch * sizeof(float));
  const TrainingData data(network, walk.batch, walk.devices + 1, walk.seed);
  const Shape& rows = network.layers.back().input;
  const std::size_t labels =
      batch * (rows.extents.size() > 1 ? static_cast<std::size_t>(rows.extents.front()) : 1);
  const auto numbers = static_cast<std::size_t>(network.input.shape.elements()) * batch;
  for (std::uint32_t i = 0; i < walk.devices + 1; ++i) {
    Slot slot;
    const std::uint64_t seed = walk.seed + std::uint64_t{2} * i;
    if (is_first_ && network.input.vocabulary) {
      slot.input = uploaded(data.ids(i), numbers * sizeof(std::int32_t));
    } else if (is_first_) {
      const auto elements = as_elements(network.element, data.input(i), numbers);
      slot.input = uploaded(elements.data(), elements.size());
    } else {
      slot.input = filled(layout.input(), seed, 1);
      slot.input_gradient = CudaScratch(driver, layout.input());
    }
    if (is_last_) {
      slot.labels = uploaded(data.labels(i), labels * sizeof(std::int32_t));
    } else {
      slot.output_gradient = filled(layout.output(), seed + 1, 1e-3);
    }
    slot.output = CudaScratch(driver, layout.output());
    slot.kept = CudaScratch(driver, layout.kept());
    slot.left = CudaScratch(driver, layout.left());
    slots_.push_back(std::move(slot));
  }
}

CudaWalker::~CudaWalker() {
  driver_.cuCtxSetCurrent(context_);
  driver_.cuStreamSynchronize(queue_.stream);
}

CudaScratch CudaWalker::uploaded(const void* data, std::size_t bytes) const {
  CudaScratch memory(driver_, bytes);
  if (bytes == 0) return memory;
  PLUMBLINE_CUDA(driver_, cuMemcpyHtoDAsync, memory.data(), data, bytes, queue_.stream);
  PLUMBLINE_CUDA(driver_, cuStreamSynchronize, queue_.stream);  // the host's memory may go
  return memory;
}

CudaScratch CudaWalker::filled(std::size_t bytes, std::uint64_t seed, double scale) const {
  std::vector<float> values(bytes / static_cast<std::size_t>(bytes_of(network_.element)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(scale * random_normal(seed, i));
  const auto elements = as_elements(network_.element, values.data(), values.size());
  return uploaded(elements.data(), elements.size());
}

CudaStageTensors CudaWalker::tensors(std::size_t slot) const {
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

void CudaWalker::start(Duration before, StageSamples& samples) {
  samples_ = &samples;
  before_ = before;
  counts_ = 0;
  turns_ = 0;
  walked_.clear();
  has_last_ = false;
}

bool CudaWalker::go_on() {
  bool any = read();
  while (ahead_ < kTurnsAhead) {
    enqueue_turn();
    any = true;
  }
  return any;
}

void CudaWalker::stop() {
  PLUMBLINE_CUDA(driver_, cuStreamSynchronize, queue_.stream);
  read();
}

void CudaWalker::enqueue_turn() {
  const std::size_t window = slots_.size();
  enqueue(Pass::forward,
          [&](CudaStamps stamps) { stage_.forward(queue_, tensors(turn_ % window), stamps); });
  if (turn_ + 1 >= window) {
    const std::size_t oldest = (turn_ + 1) % window;
    if (turn_ % 4 == 3) {
      enqueue(Pass::backward_input,
              [&](CudaStamps stamps) { stage_.backward_input(queue_, tensors(oldest), stamps); });
      enqueue(Pass::backward_weight,
              [&](CudaStamps stamps) { stage_.backward_weight(queue_, tensors(oldest), stamps); });
    } else {
      enqueue(Pass::backward,
              [&](CudaStamps stamps) { stage_.backward(queue_, tensors(oldest), stamps); });
    }
    if (turn_ % 8 == 7) enqueue(Pass::update, [&](CudaStamps stamps) { update(stamps); });
  }
  pending_.back().ends_turn = true;
  ++ahead_;
  ++turn_;
}

template <class Body>
void CudaWalker::enqueue(Pass pass, Body&& body) {
  Pending pending;
  pending.pass = pass;
  pending.counts = counts_ != 0;
  if (free_.empty()) {
    pending.stamps = CudaEvents(driver_, stage_.layout().layers() + 1, CU_EVENT_DEFAULT);
  } else {
    pending.stamps = std::move(free_.back());
    free_.pop_back();
  }
  body(pending.stamps.all());
  pending_.push_back(std::move(pending));
}

void CudaWalker::update(CudaStamps stamps) {
  const StageLayout& layout = stage_.layout();
  const std::int64_t element = bytes_of(network_.element);
  for (std::size_t i = 0; i < layout.layers(); ++i) {
    PLUMBLINE_CUDA(driver_, cuEventRecord, stamps[i], queue_.stream);
    if (i == 0 && layout.parameters() > 0) optimizer_.step(queue_);
    const auto [first, last] = layout.parameters_of(i);
    if (first == last) continue;
    optimizer_.update(queue_, static_cast<std::int64_t>(first) / element,
                      static_cast<std::int64_t>(last) / element, {gradients_.data()},
                      parameters_.data(), parameters_.data());
    PLUMBLINE_CUDA(driver_, cuMemsetD8Async, gradients_.data() + first, 0, last - first,
                   queue_.stream);
  }
  PLUMBLINE_CUDA(driver_, cuEventRecord, stamps[layout.layers()], queue_.stream);
}

bool CudaWalker::read() {
  bool any = false;
  while (!pending_.empty()) {
    const CUresult result = driver_.cuEventQuery(pending_.front().stamps.back());
    if (result == CUDA_ERROR_NOT_READY) break;
    check_cuda(driver_, "cuEventQuery", result);
    Pending pending = std::move(pending_.front());
    pending_.pop_front();
    if (pending.ends_turn) {
      --ahead_;
      if (pending.counts) ++turns_;
    }
    take(std::move(pending));
    any = true;
  }
  return any;
}

void CudaWalker::take(Pending pending) {
  const CudaEvents& stamps = pending.stamps;
  if (pending.counts && has_last_ && gaps_.size() < kMostGaps)
    gaps_.push_back(between(last_stamps_.back(), stamps[0]));
  if (pending.counts && samples_->takes(pending.pass)) {
    const std::size_t layers = stage_.layout().layers();
    const bool backwards = pending.pass != Pass::forward && pending.pass != Pass::update;
    PassTimes times{pending.pass, std::vector<std::int64_t>(layers)};
    for (std::size_t i = 0; i < layers; ++i) {
      times.layers[backwards ? layers - 1 - i : i] =
          std::llround(between(stamps[i], stamps[i + 1]));
    }
    samples_->add(times, before_ + Duration{now() - counts_});
    walked_.push_back(std::move(times));
  }
  if (has_last_) free_.push_back(std::move(last_stamps_));
  last_stamps_ = std::move(pending.stamps);
  has_last_ = true;
}

double CudaWalker::between(CUevent first, CUevent second) const {
  float milliseconds = 0;
  PLUMBLINE_CUDA(driver_, cuEventElapsedTime, &milliseconds, first, second);
  return double{milliseconds} * 1e6;
}

}  // namespace plumbline
