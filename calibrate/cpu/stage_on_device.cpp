// Forwards, backwards and updates, each with the tensors that it takes and hands on.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/stage_on_device.h"

#include <algorithm>

#include "base/bug.h"

namespace plumbline {

StageOnDevice::StageOnDevice(RunStore& store, std::uint32_t stage, std::uint32_t slot)
    : store_(store),
      stage_(stage),
      slot_(slot),
      copy_(store.copy_of(slot)),
      is_first_(stage == 0),
      is_last_(stage + 1 == store.plan().graph.stage_slots.size()),
      layers_(store.plan().setup.partition.stages[stage].layers),
      recomputes_(store.plan().recomputes(store.recompute(), stage)),
      recomputes_output_(store.plan().recomputes_output(store.recompute(), stage)),
      kernels_(store.network(), layers_.front().value, layers_.back().value, store.batch(),
               store.plan().recomputation(stage)),
      parameters_(std::make_shared<BufferPool>(kernels_.parameter_floats())),
      outputs_(std::make_shared<BufferPool>(kernels_.output_floats())),
      inputs_(std::make_shared<BufferPool>(kernels_.input_floats())),
      kept_(std::make_shared<BufferPool>(kernels_.kept_floats())),
      left_(std::make_shared<BufferPool>(kernels_.left_floats())),
      checkpoints_(std::make_shared<BufferPool>(kernels_.checkpoint_floats())),
      again_(std::make_shared<BufferPool>(kernels_.recomputed_floats())),
      recomputed_at_once_(std::make_shared<BufferPool>(kernels_.recomputed_at_once_floats())),
      scratch_(kernels_.scratch_floats()),
      in_flight_(store.plan().graph.micro_batches),
      optimizer_(store.optimizer(), store.updated_by(stage, slot, kernels_.parameter_floats()),
                 store.options().learning_rate) {
  weights_[0] = store.weights_of(stage, [&] {
    SharedBuffer first = share(parameters_);
    kernels_.initialise(first->data(), store.options().seed);
    return first;
  });
  loss_weights_.assign(static_cast<std::size_t>(store.batch()), store.loss_weight(stage));
  store.tell_weights(stage_, slot_, weights_[0], kernels_.parameter_floats());
}

void StageOnDevice::run(const Task& task, ActivityKind kind, std::uint32_t m) {
  begin_iteration(task.iteration);
  switch (kind) {
    case ActivityKind::forward:
      return forward(task, m);
    case ActivityKind::backward_part:
      if (recomputes_ && store_.plan().setup.rules.recompute_early && !in_flight_[m].kept)
        return recompute(in_flight_[m], task, m);
      return backward(task, m, /*is_last_part=*/false);
    case ActivityKind::backward:
      return backward(task, m, /*is_last_part=*/true);
    case ActivityKind::backward_input:
      return backward_input(task, m);
    case ActivityKind::weight_part:
    case ActivityKind::backward_weight:
      return backward_weight(task, m, kind == ActivityKind::backward_weight);
    case ActivityKind::update:
      return update(task, m);
    default:
      PLUMBLINE_CHECK(false, static_cast<int>(kind));
  }
}

void StageOnDevice::begin_iteration(std::uint32_t iteration) {
  if (iteration == iteration_) return;
  iteration_ = iteration;
  SharedBuffer newest = weights_.rbegin()->second;
  weights_.clear();
  weights_[0] = std::move(newest);
  for (InFlight& one : in_flight_) one = {};
}

StageTensors StageOnDevice::tensors(const InFlight& one, const Task& task, std::uint32_t m) const {
  StageTensors t;
  const std::uint32_t sample = store_.sample_of(m, copy_);
  t.input = one.input ? one.input->data() : store_.data().input(sample);
  if (is_first_) t.ids = store_.data().ids(sample);
  if (is_last_) t.labels = store_.data().labels(sample);
  t.output = one.output->data();
  t.kept = one.kept->data();
  t.kept_in = one.kept_in;
  if (one.checkpoints) t.checkpoints = one.checkpoints->data();
  t.parameters = weights(task.version);
  return t;
}

const float* StageOnDevice::weights(std::uint32_t version) const {
  const auto found = weights_.find(version);
  PLUMBLINE_CHECK(found != weights_.end(), stage_, version);
  return found->second->data();
}

void StageOnDevice::forward(const Task& task, std::uint32_t m) {
  InFlight& one = in_flight_[m];
  if (!is_first_) one.input = std::move(store_.input(stage_, m, copy_));
  one.output = share(outputs_);
  if (recomputes_ && store_.recompute() == Recompute::layers) {
    one.checkpoints = share(checkpoints_);
    one.kept = share(again_);
    one.kept_in = KeptIn::again;
  } else {
    one.kept = share(kept_);
  }
  kernels_.forward(tensors(one, task, m));
  if (is_last_) {
    store_.add_losses(task.iteration, one.output->data());
  } else {
    store_.input(stage_ + 1, m, copy_) = one.output;
  }
  if (recomputes_output_) one.output = nullptr;
  if (recomputes_) one.kept = nullptr;
}

void StageOnDevice::recompute(InFlight& one, const Task& task, std::uint32_t m) {
  if (!one.output) one.output = share(outputs_);
  one.kept = share(kept_);
  kernels_.forward(tensors(one, task, m));
}

StageTensors StageOnDevice::backward_tensors(const Task& task, std::uint32_t m, bool whole) {
  InFlight& one = in_flight_[m];
  if (!one.kept && !one.checkpoints) recompute(one, task, m);
  if (!one.kept) {
    if (!one.output) one.output = share(outputs_);
    if (whole) {
      one.kept = share(again_);
    } else {
      one.kept = share(recomputed_at_once_);
      one.kept_in = KeptIn::recomputed_at_once;
      kernels_.recomputed_forward(tensors(one, task, m));
    }
  }
  StageTensors t = tensors(one, task, m);
  if (!is_last_ && !one.output_gradient)
    one.output_gradient = std::move(store_.output_gradient(stage_, m, copy_));
  t.output_gradient = is_last_ ? loss_weights_.data() : one.output_gradient->data();
  return t;
}

SharedBuffer StageOnDevice::input_gradient() const { return is_first_ ? nullptr : share(inputs_); }

void StageOnDevice::hand_down(SharedBuffer gradient, std::uint32_t m) {
  if (!is_first_) store_.output_gradient(stage_ - 1, m, copy_) = std::move(gradient);
}

SharedBuffer StageOnDevice::gradients(const Task& task, std::uint32_t m) {
  SharedBuffer sum = store_.gradients(stage_, task.iteration, m, slot_, nullptr);
  if (sum) return sum;
  if (!fresh_gradients_) clear_gradients();  // this round began before the last one was updated
  return store_.gradients(stage_, task.iteration, m, slot_, std::move(fresh_gradients_));
}

void StageOnDevice::clear_gradients() {
  fresh_gradients_ = share(parameters_);
  std::fill_n(fresh_gradients_->data(), kernels_.parameter_floats(), 0.0F);
}

std::pair<std::size_t, std::size_t> StageOnDevice::next_layers(InFlight& one,
                                                               bool is_last_part) const {
  const std::size_t end = kernels_.layers() - one.layers;
  if (is_last_part) return {end, 0};
  const auto& buckets = store_.plan().setup.costs.stages[stage_].buckets;
  const std::size_t layers = buckets[one.parts++].layers;
  one.layers += layers;
  return {end, end - layers};
}

void StageOnDevice::backward(const Task& task, std::uint32_t m, bool is_last_part) {
  InFlight& one = in_flight_[m];
  StageTensors t = backward_tensors(task, m, /*whole=*/true);
  const SharedBuffer sum = gradients(task, m);
  t.gradients = sum->data();
  t.left = scratch_.data();
  if (!one.input_gradient) one.input_gradient = input_gradient();
  if (one.input_gradient) t.input_gradient = one.input_gradient->data();
  const auto [end, begin] = next_layers(one, is_last_part);
  kernels_.backward(t, end, begin);
  if (!is_last_part) return;
  hand_down(std::move(one.input_gradient), m);
  one = {};
}

void StageOnDevice::backward_input(const Task& task, std::uint32_t m) {
  StageTensors t = backward_tensors(task, m, /*whole=*/false);
  const SharedBuffer sum =
      gradients(task, m);  // for parameters whose gradients come with the input's
  t.gradients = sum->data();
  in_flight_[m].left = share(left_);
  t.left = in_flight_[m].left->data();
  SharedBuffer down = input_gradient();
  if (down) t.input_gradient = down->data();
  kernels_.backward_input(t);
  hand_down(std::move(down), m);
}

void StageOnDevice::backward_weight(const Task& task, std::uint32_t m, bool is_last_part) {
  InFlight& one = in_flight_[m];
  StageTensors t = backward_tensors(task, m, /*whole=*/false);
  const SharedBuffer sum = gradients(task, m);
  t.gradients = sum->data();
  t.left = one.left->data();
  const auto [end, begin] = next_layers(one, is_last_part);
  kernels_.backward_weight(t, end, begin);
  if (is_last_part) one = {};
}

void StageOnDevice::update(const Task& task, std::uint32_t m) {
  const std::vector<SharedBuffer> members = store_.round_of(stage_, task.iteration, m);
  const std::uint32_t before = task.version - 1;
  const float* const old_weights = weights(before);
  const bool in_place = task.oldest >= task.version;
  SharedBuffer made = in_place ? weights_[before] : share(parameters_);
  std::vector<const float*> gradients;
  gradients.reserve(members.size());
  for (const SharedBuffer& member : members) {
    if (member) gradients.push_back(member->data());  // a replica may have had no micro-batch
  }
  // Gradients that nobody else reads are cleared while they are in the caches, and are used again.
  const bool again = !fresh_gradients_ && members.size() == 1 && members.front();
  optimizer_.step();
  for (std::size_t i = 0; i < kernels_.layers(); ++i) {
    const auto [first, last] = kernels_.parameters_of(i);
    optimizer_.update({first, last}, gradients, old_weights, made->data());
    if (again) std::fill(members[0]->data() + first, members[0]->data() + last, 0.0F);
  }
  weights_[task.version] = std::move(made);
  if (in_place) weights_.erase(before);
  if (again) fresh_gradients_ = members.front();
  if (!fresh_gradients_) clear_gradients();
  weights_.erase(weights_.begin(), weights_.lower_bound(std::min(task.oldest, task.version)));
  store_.tell_weights(stage_, slot_, weights_.rbegin()->second, kernels_.parameter_floats());
}

}  // namespace plumbline
