// The memory and the launches of steps.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/trainer.h"

#include <algorithm>
#include <cstring>

#include "base/bug.h"
#include "calibrate/cuda/driver/copy.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"

namespace plumbline {
namespace {

Pass pass_of(CudaStep::Kind kind) {
  switch (kind) {
    case CudaStep::Kind::forward:
    case CudaStep::Kind::recompute:
      return Pass::forward;
    case CudaStep::Kind::backward:
      return Pass::backward;
    case CudaStep::Kind::backward_input:
      return Pass::backward_input;
    default:
      PLUMBLINE_CHECK(kind == CudaStep::Kind::backward_weight, static_cast<int>(kind));
      return Pass::backward_weight;
  }
}

/// The micro-batches of one mini-batch, or 1 in an asynchronous run.
std::uint32_t mini_batch_of(const RunPlan& plan) {
  return plan.graph.asynchronous() ? 1 : plan.graph.micro_batches / plan.setup.rules.mini_batches;
}

std::uint32_t different_micro_batches(const RunPlan& plan) {
  const std::uint32_t all = plan.graph.asynchronous() ? plan.graph.micro_batches
                                                      : mini_batch_of(plan) * plan.setup.copies();
  return std::min(all, kMaxDifferentMicroBatches);
}

/// Each sample's weight in the loss, so that the gradients of a round are those of its mean loss.
float loss_weight(const RunPlan& plan, const CudaTraining& training, std::uint32_t stage) {
  const std::uint32_t round = plan.graph.asynchronous()
                                  ? training.updates.round_length(static_cast<std::uint32_t>(
                                        plan.graph.stage_slots[stage].size()))
                                  : mini_batch_of(plan);
  return 1.0F / static_cast<float>(training.batch * round * plan.setup.copies());
}

}  // namespace

std::vector<StageBytes> stage_bytes(const RunPlan& plan, const CudaTraining& training) {
  std::vector<StageBytes> all;
  if (training.network == nullptr) {
    all.assign(plan.setup.partition.stages.size(),
               {kCudaAlignment, kCudaAlignment, kCudaAlignment, kCudaAlignment, kCudaAlignment,
                kCudaAlignment, kCudaAlignment, kCudaAlignment});
    return all;
  }
  const auto& stages = plan.setup.partition.stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto& layers = stages[s].layers;
    const StageLayout layout =
        CudaStage::layout_of(*training.network, layers.front().value, layers.back().value,
                             training.batch, plan.recomputation(s));
    all.push_back({layout.parameters(), layout.input(), layout.output(), layout.kept(),
                   layout.left(), layout.checkpoints(), layout.again(),
                   layout.recomputed_at_once()});
    for (std::size_t i = 0; i < layout.layers(); ++i)
      all.back().layers.push_back(layout.parameters_of(i).first);
  }
  return all;
}

CudaTrainer::CudaTrainer(CudaDevices& devices, DeviceLibraries& libraries,
                         const CudaTraining& training, const RunPlan& plan,
                         const CudaProgram& program)
    : devices_(devices),
      libraries_(libraries),
      training_(training),
      plan_(plan),
      program_(program),
      data_(*training.network, training.batch, different_micro_batches(plan), training.seed),
      on_(program.stages.size()),
      blocks_(program.blocks.size()) {
  const Network& network = *training.network;
  const auto batch = static_cast<std::size_t>(training.batch);
  const auto numbers = static_cast<std::size_t>(network.input.shape.elements()) * batch;
  sample_bytes_ =
      numbers * (network.input.vocabulary ? sizeof(std::int32_t)
                                          : static_cast<std::size_t>(bytes_of(network.element)));
  sample_stride_ = (sample_bytes_ + kCudaAlignment - 1) / kCudaAlignment * kCudaAlignment;
  const Shape& rows = network.layers.back().input;
  label_bytes_ = batch * sizeof(std::int32_t) *
                 (rows.extents.size() > 1 ? static_cast<std::size_t>(rows.extents.front()) : 1);
  const std::size_t last = plan.graph.stage_slots.size() - 1;
  for (const CudaStep& step : program.steps) {
    if (step.kind == CudaStep::Kind::forward && program.stages[step.on].stage == last)
      made_losses_.emplace_back(step.on, step.micro_batch);
  }
}

CudaTrainer::~CudaTrainer() {
  communicators_.clear();
  // Memory must be freed in a living context.
  if (!devices_.all().empty()) devices_.driver().cuCtxSetCurrent(devices_.all().front().context);
}

CudaQueue CudaTrainer::on_compute(std::uint32_t slot) const {
  return libraries_.queue(slot, devices_.all()[slot].compute);
}

CudaScratch CudaTrainer::uploaded(std::uint32_t slot, const void* data, std::size_t bytes) {
  const CudaDriver& driver = devices_.driver();
  CudaScratch memory(driver, bytes);
  if (bytes == 0) return memory;
  const CUstream stream = devices_.all()[slot].compute;
  PLUMBLINE_CUDA(driver, cuMemcpyHtoDAsync, memory.data(), data, bytes, stream);
  PLUMBLINE_CUDA(driver, cuStreamSynchronize, stream);  // the host's memory may be freed
  return memory;
}

void CudaTrainer::prepare(std::uint32_t slot) {
  const CudaDriver& driver = devices_.driver();
  if (slot == 0) prepare_communicators();
  for (std::uint32_t on = 0; on < on_.size(); ++on) {
    if (program_.stages[on].slot == slot) prepare_stage(on);
  }
  const CUstream stream = devices_.all()[slot].compute;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const CudaProgram::Block& block = program_.blocks[i];
    if (block.slot != slot) continue;
    blocks_[i] = CudaScratch(driver, block.bytes);
    if (block.is_gradients)
      PLUMBLINE_CUDA(driver, cuMemsetD8Async, blocks_[i].data(), 0, block.bytes, stream);
  }
  PLUMBLINE_CUDA(driver, cuStreamSynchronize, stream);
}

void CudaTrainer::prepare_communicators() {
  if (program_.communicators.empty()) return;
  communicators_.reserve(program_.communicators.size());
  for (const auto& slots : program_.communicators) {
    std::vector<int> gpus;
    gpus.reserve(slots.size());
    for (const std::uint32_t slot : slots) gpus.push_back(devices_.all()[slot].ordinal);
    communicators_.emplace_back(*libraries_.nccl(), gpus);
  }
  PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, devices_.all().front().context);
}

void CudaTrainer::prepare_stage(std::uint32_t on) {
  const StageOnSlot& place = program_.stages[on];
  OnSlot& mine = on_[on];
  const Network& network = *training_.network;
  const auto& layers = plan_.setup.partition.stages[place.stage].layers;
  const CudaQueue on_stream = on_compute(place.slot);
  mine.stage =
      std::make_unique<CudaStage>(on_stream, network, layers.front().value, layers.back().value,
                                  training_.batch, plan_.recomputation(place.stage));
  std::size_t updated = 0;
  for (const ByteRange& range : place.updated) updated += range.size();
  mine.optimizer = std::make_unique<CudaOptimizer>(
      on_stream, training_.optimizer, network.element,
      static_cast<std::int64_t>(updated) / bytes_of(network.element), training_.learning_rate);
  const std::vector<std::byte> parameters = mine.stage->initial_parameters(training_.seed);
  for (std::uint32_t piece = 0; piece < place.weights; ++piece) {
    mine.weights.push_back(uploaded(place.slot, parameters.data(), parameters.size()));
    mine.pieces.push_back(piece);
  }
  const std::uint32_t samples = data_.micro_batches();
  if (place.stage == 0) {
    std::vector<std::byte> all(sample_stride_ * samples);
    for (std::uint32_t m = 0; m < samples; ++m) {
      std::byte* const to = all.data() + m * sample_stride_;
      if (network.input.vocabulary) {
        std::memcpy(to, data_.ids(m), sample_bytes_);
      } else {
        const auto numbers = sample_bytes_ / static_cast<std::size_t>(bytes_of(network.element));
        const auto elements = as_elements(network.element, data_.input(m), numbers);
        std::copy(elements.begin(), elements.end(), to);
      }
    }
    mine.samples = uploaded(place.slot, all.data(), all.size());
  }
  if (place.stage + 1 < plan_.graph.stage_slots.size()) return;
  mine.labels = uploaded(place.slot, data_.labels(0), label_bytes_ * samples);
  const auto batch = static_cast<std::size_t>(training_.batch);
  const std::vector<float> weights(batch, loss_weight(plan_, training_, place.stage));
  mine.loss_weights = uploaded(place.slot, weights.data(), batch * sizeof(float));
  mine.host_losses.assign(batch * plan_.graph.micro_batches, 0.0F);
  mine.losses =
      uploaded(place.slot, mine.host_losses.data(), mine.host_losses.size() * sizeof(float));
}

void CudaTrainer::enqueue(const CudaStep& step, CUstream stream) {
  switch (step.kind) {
    case CudaStep::Kind::update:
      return enqueue_update(step);
    case CudaStep::Kind::copy:
      return enqueue_copy(step, stream);
    case CudaStep::Kind::add_up:
      return enqueue_sum(step, stream);
    default:
      return enqueue_pass(step);
  }
}

void CudaTrainer::enqueue_together(std::span<const CudaStep> steps,
                                   const std::vector<CUstream>& streams) {
  const NcclCommunicator& communicator = communicators_[steps.front().communicator];
  if (steps.front().kind == CudaStep::Kind::send) {
    communicator.transfer(0, {piece(steps[0].from), streams[0]}, 1,
                          {piece(steps[1].to), streams[1]}, steps[0].bytes);
    return;
  }
  std::vector<NcclEnd> ends;
  ends.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) ends.push_back({piece(steps[i].to), streams[i]});
  const ElementType type = training_.network->element;
  communicator.all_reduce(ends, type,
                          steps.front().bytes / static_cast<std::size_t>(bytes_of(type)));
}

void CudaTrainer::enqueue_pass(const CudaStep& step) {
  OnSlot& mine = on_[step.on];
  const CudaQueue on_stream = on_compute(step.slot);
  const std::uint32_t stage = program_.stages[step.on].stage;
  const std::size_t sample = step.sample % data_.micro_batches();
  CudaStageTensors t;
  t.input = block(step.input);
  if (stage == 0) {
    const CUdeviceptr data = mine.samples.data() + sample * sample_stride_;
    (training_.network->input.vocabulary ? t.ids : t.input) = data;
  }
  t.output = block(step.output);
  t.output_gradient = block(step.output_gradient);
  if (mine.losses.data() != 0) {
    t.labels = mine.labels.data() + sample * label_bytes_;
    t.output = mine.losses.data() + static_cast<std::size_t>(step.micro_batch) *
                                        static_cast<std::size_t>(training_.batch) * sizeof(float);
    t.output_gradient = mine.loss_weights.data();
  }
  t.kept = block(step.kept);
  t.kept_in = step.kept_in;
  t.checkpoints = block(step.checkpoints);
  t.left = block(step.left);
  t.input_gradient = block(step.input_gradient);
  t.parameters = weights(step.on, step.weights);
  t.gradients = block(step.gradients);
  if (step.recomputes && step.kept_in == KeptIn::kept)
    mine.stage->measure_pass(on_stream, Pass::forward, t);
  if (step.recomputes && step.kept_in == KeptIn::recomputed_at_once)
    mine.stage->measure_again(on_stream, t);
  const Pass pass = pass_of(step.kind);
  if (pass == Pass::backward || pass == Pass::backward_weight) {
    mine.stage->walk_down(on_stream, pass, t, step.end, step.begin);
  } else {
    mine.stage->measure_pass(on_stream, pass, t);
  }
  if (step.clears) {
    PLUMBLINE_CUDA(devices_.driver(), cuMemsetD8Async, t.gradients, 0,
                   program_.blocks[step.gradients].bytes, on_stream.stream);
  }
}

void CudaTrainer::enqueue_update(const CudaStep& step) {
  OnSlot& mine = on_[step.on];
  const CudaQueue on_stream = on_compute(step.slot);
  const CUdeviceptr before = weights(step.on, step.weights);
  const CUdeviceptr after = weights(step.on, step.made);
  if (mine.stage->parameter_elements() == 0) return;
  mine.optimizer->step(on_stream);
  const std::int64_t element = bytes_of(training_.network->element);
  std::int64_t state = 0;
  for (const ByteRange& range : program_.stages[step.on].updated) {
    const auto first = static_cast<std::int64_t>(range.begin) / element;
    const auto last = static_cast<std::int64_t>(range.end) / element;
    mine.optimizer->update(on_stream, {first, last, state}, block(step.gradients), before, after);
    state += last - first;
  }
  if (step.clears) {
    PLUMBLINE_CUDA(devices_.driver(), cuMemsetD8Async, block(step.gradients), 0,
                   program_.blocks[step.gradients].bytes, on_stream.stream);
  }
}

void CudaTrainer::enqueue_copy(const CudaStep& step, CUstream stream) {
  copy_between(devices_.driver(), {devices_.all()[slot_of(step.from)], piece(step.from)},
               {devices_.all()[slot_of(step.to)], piece(step.to)}, step.bytes, stream);
}

void CudaTrainer::enqueue_sum(const CudaStep& step, CUstream stream) {
  std::vector<CUdeviceptr> members;
  members.reserve(step.members.size());
  for (const CudaPiece& member : step.members) members.push_back(piece(member));
  const ElementType type = training_.network->element;
  cuda::add_up(bare_queue(devices_.driver(), devices_.mover(step.slot), stream), type,
               piece(step.to), members, static_cast<std::int64_t>(step.bytes) / bytes_of(type));
}

void CudaTrainer::end_iteration() {
  phase_ = is_alternating() ? 1 - phase_ : 0;
  for (std::size_t on = 0; on < on_.size(); ++on)
    std::swap(on_[on].pieces[0], on_[on].pieces[program_.stages[on].last_weights]);
}

bool CudaTrainer::is_alternating() const {
  return std::any_of(program_.stages.begin(), program_.stages.end(),
                     [](const StageOnSlot& stage) { return stage.last_weights != 0; });
}

void CudaTrainer::bring_losses(std::uint32_t slot) {
  for (std::size_t on = 0; on < on_.size(); ++on) {
    OnSlot& mine = on_[on];
    if (program_.stages[on].slot != slot || mine.losses.data() == 0) continue;
    PLUMBLINE_CUDA(devices_.driver(), cuMemcpyDtoHAsync, mine.host_losses.data(),
                   mine.losses.data(), mine.host_losses.size() * sizeof(float),
                   devices_.all()[slot].compute);
  }
}

std::optional<double> CudaTrainer::mean_loss() const {
  const auto batch = static_cast<std::size_t>(training_.batch);
  double all = 0;
  for (const auto& [on, micro_batch] : made_losses_) {
    const float* losses = on_[on].host_losses.data() + micro_batch * batch;
    double sum = 0;
    for (std::size_t i = 0; i < batch; ++i) sum += losses[i];
    all += sum;
  }
  return all / static_cast<double>(batch * std::max<std::size_t>(made_losses_.size(), 1));
}

std::vector<float> CudaTrainer::parameters(std::uint32_t stage) {
  const std::uint32_t slot = plan_.graph.stage_slots[stage].front();
  const auto at =
      std::find_if(program_.stages.begin(), program_.stages.end(),
                   [&](const StageOnSlot& one) { return one.stage == stage && one.slot == slot; });
  OnSlot& mine = on_[static_cast<std::size_t>(at - program_.stages.begin())];
  const StageLayout& layout = mine.stage->layout();
  std::vector<std::byte> bytes(layout.parameters());
  if (bytes.empty()) return {};
  const CUstream stream = devices_.all()[slot].compute;
  PLUMBLINE_CUDA(devices_.driver(), cuMemcpyDtoHAsync, bytes.data(),
                 mine.weights[mine.pieces[0]].data(), bytes.size(), stream);
  PLUMBLINE_CUDA(devices_.driver(), cuStreamSynchronize, stream);
  const std::vector<float> all = as_floats(training_.network->element, bytes);
  const auto element = static_cast<std::size_t>(bytes_of(training_.network->element));
  std::vector<float> dense;
  for (std::size_t i = 0; i < layout.layers(); ++i) {
    for (std::size_t p = 0; p < layout[i].parameters.size(); ++p) {
      const auto first =
          all.begin() + static_cast<std::ptrdiff_t>(layout[i].parameters[p] / element);
      dense.insert(dense.end(), first, first + layout[i].layer->parameters[p].shape.elements());
    }
  }
  return dense;
}

std::optional<std::size_t> CudaTrainer::allocated(std::uint32_t slot) const {
  std::size_t bytes = 0;
  for (const CudaProgram::Block& block : program_.blocks)
    bytes += block.slot == slot ? block.bytes : 0;
  for (std::size_t on = 0; on < on_.size(); ++on) {
    if (program_.stages[on].slot != slot || !on_[on].stage) continue;
    bytes += on_[on].weights.size() * on_[on].stage->layout().parameters();
    bytes += on_[on].optimizer->bytes();
  }
  return bytes;
}

}  // namespace plumbline
