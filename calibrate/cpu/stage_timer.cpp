// Passes in their order, timed by two clocks.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/stage_timer.h"

#include <algorithm>

#include "base/bug.h"
#include "base/random.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/runtime/thread_core.h"

namespace plumbline {
namespace {

void fill(const Buffer& buffer, std::size_t floats, std::uint64_t seed, double scale) {
  for (std::size_t i = 0; i < floats; ++i)
    buffer.data()[i] = static_cast<float>(scale * random_normal(seed, i));
}

}  // namespace

StageTimer::StageTimer(const Network& network, const TimerTask& task)
    : task_(task),
      stage_(network, task.first, task.last, task.batch),
      data_(network, task.batch, task.devices + 1, task.seed),
      is_first_(task.first == 0),
      is_last_(task.last + 1 == network.layers.size()),
      parameters_(stage_.parameter_floats()),
      gradients_(stage_.parameter_floats()),
      scratch_(stage_.scratch_floats()),
      optimizer_(task.optimizer, {0, stage_.parameter_floats()}, 1e-6),
      loss_weights_(static_cast<std::size_t>(task.batch), 1.0F / static_cast<float>(task.batch)) {
  stage_.initialise(parameters_.data(), task.seed);
  std::fill_n(gradients_.data(), stage_.parameter_floats(), 0.0F);
  slots_.reserve(task.devices + 1);
  for (std::uint32_t i = 0; i < task.devices + 1; ++i) {
    slots_.push_back({Buffer(stage_.input_floats()), Buffer(stage_.output_floats()),
                      Buffer(stage_.kept_floats()), Buffer(stage_.left_floats()),
                      Buffer(stage_.output_floats()), Buffer(stage_.input_floats())});
    const std::uint64_t seed = task.seed + std::uint64_t{2} * i;
    fill(slots_.back().input, stage_.input_floats(), seed, 1);
    fill(slots_.back().output_gradient, stage_.output_floats(), seed + 1, 1e-3);
  }
}

void StageTimer::start(std::uint32_t in_flight, Duration before, StageSamples& samples) {
  PLUMBLINE_CHECK(in_flight >= 1 && in_flight <= slots_.size(), in_flight, slots_.size());
  in_flight_ = in_flight;
  before_ = before;
  samples_ = &samples;
  was_measured_.clear();
  turns_ = 0;
  is_done_ = samples.is_done();
}

void StageTimer::measure_pass(Measuring& with) {
  use_one_thread();
  pin_to_core(task_.device, task_.devices);
  wake_exactly();
  const std::size_t window = in_flight_;
  for (; !with.stop.load(std::memory_order_relaxed); ++turn_) {
    const RealTime counts = with.measuring.load(std::memory_order_relaxed);
    take(with, Pass::forward, counts,
         [&](Stamps* stamps) { stage_.forward(tensors(turn_ % window), stamps); });
    if (turn_ + 1 < window) continue;
    const std::size_t oldest = (turn_ + 1) % window;
    if (turn_ % 4 == 3) {
      take(with, Pass::backward_input, counts,
           [&](Stamps* stamps) { stage_.backward_input(tensors(oldest), stamps); });
      take(with, Pass::backward_weight, counts,
           [&](Stamps* stamps) { stage_.backward_weight(tensors(oldest), stamps); });
    } else {
      take(with, Pass::backward, counts, [&](Stamps* stamps) {
        StageTensors t = tensors(oldest);
        t.left = scratch_.data();  // one for all micro-batches, as in a run
        stage_.backward(t, stamps);
      });
    }
    if (turn_ % 8 == 7) take(with, Pass::update, counts, [&](Stamps* stamps) { update(stamps); });
    is_done_.store(samples_->is_done(), std::memory_order_relaxed);
    if (counts != 0) turns_.fetch_add(1, std::memory_order_relaxed);
  }
}

StageTensors StageTimer::tensors(std::size_t slot) {
  Slot& s = slots_[slot];
  const auto sample = static_cast<std::uint32_t>(slot);
  StageTensors t;
  t.input = is_first_ ? data_.input(sample) : s.input.data();
  if (is_first_) t.ids = data_.ids(sample);
  if (is_last_) t.labels = data_.labels(sample);
  t.output = s.output.data();
  t.kept = s.kept.data();
  t.left = s.left.data();
  t.output_gradient = is_last_ ? loss_weights_.data() : s.output_gradient.data();
  t.input_gradient = is_first_ ? nullptr : s.input_gradient.data();
  t.parameters = parameters_.data();
  t.gradients = gradients_.data();
  return t;
}

void StageTimer::update(Stamps* stamps) {
  optimizer_.step();
  for (std::size_t i = 0; i < stage_.layers(); ++i) {
    stamps->push_back(now());
    const auto [first, last] = stage_.parameters_of(i);
    optimizer_.update({first, last}, {gradients_.data()}, parameters_.data(), parameters_.data());
    std::fill(gradients_.data() + first, gradients_.data() + last, 0.0F);
  }
  stamps->push_back(now());
}

template <class Body>
void StageTimer::take(Measuring& with, Pass pass, RealTime counts, Body&& body) {
  stamps_.clear();
  RealTime& last = last_[static_cast<std::size_t>(pass)];
  if (!with.turns.begin(last, with.stop)) return;
  const RealTime cpu_before = thread_cpu_time();
  body(&stamps_);
  const RealTime cpu = thread_cpu_time() - cpu_before;
  with.turns.end();
  const RealTime wall = stamps_.back() - stamps_.front();
  const bool is_clean = !is_contaminated({Duration{wall}, Duration{cpu}});
  if (is_clean) last = wall;  // an interrupted pass would make the others sleep too long
  if (counts == 0 || !samples_->takes(pass)) return;
  PassTimes times{pass, {}};
  if (is_clean) {
    const std::size_t layers = stage_.layers();
    const bool backwards = pass != Pass::forward && pass != Pass::update;
    times.layers.resize(layers);
    for (std::size_t i = 0; i < layers; ++i)
      times.layers[backwards ? layers - 1 - i : i] = stamps_[i + 1] - stamps_[i];
  }
  samples_->add(times, before_ + Duration{stamps_.back() - counts});
  was_measured_.push_back(std::move(times));
}

}  // namespace plumbline
