// The data of a run: tensors that move between devices, gradients that are added up, versions of
// weights.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/bug.h"
#include "calibrate/cpu/buffer.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/optimizer.h"
#include "calibrate/cpu/stage.h"
#include "calibrate/runtime/machine.h"
#include "calibrate/runtime/refused_training.h"
#include "calibrate/runtime/thread_core.h"
#include "calibrate/training/training_data.h"

namespace plumbline {
namespace {

/// Buffers of one size that are used again and again, so that a run allocates only at first.
class Pool {
 public:
  explicit Pool(std::size_t floats) : floats_(floats) {}

  Buffer take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return Buffer(floats_);
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give(Buffer buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  std::size_t floats_;
  std::mutex mutex_;
  std::vector<Buffer> free_;
};

/// A buffer of a pool that goes back when nobody holds it.
using Shared = std::shared_ptr<Buffer>;

Shared share(const std::shared_ptr<Pool>& pool) {
  return {new Buffer(pool->take()), [pool](Buffer* buffer) {
            pool->give(std::move(*buffer));
            delete buffer;
          }};
}

/// The gradients of one round of a stage: those of one update, apart for each of its devices.
struct Round {
  std::vector<Shared> of_member;
  std::size_t updated = 0;
};

/// What the devices of a run share.
class Store {
 public:
  Store(const RunPlan& plan, const CpuOptions& options)
      : network_(plan.setup.network),
        plan_(plan),
        options_(options),
        batch_(plan.setup.micro_batch_size),
        copies_(plan.setup.copies()),
        micro_batches_(plan.graph.asynchronous()
                           ? 1
                           : plan.graph.micro_batches / plan.setup.rules.mini_batches),
        updates_(plan.setup.rules.updates),
        optimizer_(optimizer_for(plan.setup.optimizer_state)),
        recompute_(plan.setup.rules.recompute),
        data_(*network_, batch_,
              std::min(
                  plan.graph.asynchronous() ? plan.graph.micro_batches : micro_batches_ * copies_,
                  kMaxDifferentMicroBatches),
              options.seed) {
    const auto stages = plan.graph.stage_slots.size();
    inputs_.resize(stages * plan.graph.micro_batches * copies_);
    output_gradients_.resize(inputs_.size());
    rounds_.resize(stages);
    round_mutexes_ = std::vector<std::mutex>(stages);
    first_weights_.resize(stages);
    common_weights_.resize(stages);
  }

  const Network& network() const { return *network_; }
  const RunPlan& plan() const { return plan_; }
  const CpuOptions& options() const { return options_; }
  const TrainingData& data() const { return data_; }
  std::int64_t batch() const { return batch_; }
  OptimizerKind optimizer() const { return optimizer_; }
  Recompute recompute() const { return recompute_; }

  std::uint32_t copy_of(std::uint32_t slot) const { return slot % copies_; }
  /// The micro-batch's number in the data set.
  std::uint32_t sample_of(std::uint32_t micro_batch, std::uint32_t copy) const {
    return micro_batch * copies_ + copy;
  }

  /// The places where a stage finds what its neighbours made. Written before the transfer starts,
  /// read after it has arrived.
  Shared& input(std::uint32_t stage, std::uint32_t micro_batch, std::uint32_t copy) {
    return inputs_[place(stage, micro_batch, copy)];
  }
  Shared& output_gradient(std::uint32_t stage, std::uint32_t micro_batch, std::uint32_t copy) {
    return output_gradients_[place(stage, micro_batch, copy)];
  }

  /// The micro-batches that one update of a stage covers.
  std::uint32_t round_length(std::uint32_t stage) const {
    if (!plan_.graph.asynchronous()) return micro_batches_;
    return updates_.round_length(static_cast<std::uint32_t>(plan_.graph.stage_slots[stage].size()));
  }
  /// Each sample's weight in the loss: gradients of a round are those of its mean loss.
  float loss_weight(std::uint32_t stage) const {
    return 1.0F / static_cast<float>(batch_ * round_length(stage) * copies_);
  }

  /// Where a device adds the gradients of a micro-batch; with the first one of a round there is
  /// none yet, and `fresh`, which is zero, becomes it.
  Shared gradients(std::uint32_t stage, std::uint32_t iteration, std::uint32_t micro_batch,
                   std::uint32_t slot, Shared fresh) {
    const std::lock_guard lock(round_mutexes_[stage]);
    auto& rounds = rounds_[stage];
    while (!rounds.empty() && rounds.begin()->first.first < iteration) rounds.erase(rounds.begin());
    const auto& members = plan_.graph.stage_slots[stage];
    Round& round = rounds[{iteration, micro_batch / round_length(stage)}];
    round.of_member.resize(members.size());
    Shared& own = round.of_member[member(stage, slot)];
    if (!own) own = std::move(fresh);
    return own;
  }

  /// The gradients of all devices of a stage in the round of an update, in their order. The last
  /// device that asks takes the round away.
  std::vector<Shared> round_of(std::uint32_t stage, std::uint32_t iteration,
                               std::uint32_t micro_batch) {
    const std::lock_guard lock(round_mutexes_[stage]);
    const auto found = rounds_[stage].find({iteration, micro_batch / round_length(stage)});
    PLUMBLINE_CHECK(found != rounds_[stage].end(), stage, micro_batch);
    std::vector<Shared> gradients = found->second.of_member;
    if (++found->second.updated == gradients.size()) rounds_[stage].erase(found);
    return gradients;
  }

  void add_losses(std::uint32_t iteration, const float* losses) {
    double sum = 0;
    for (std::int64_t i = 0; i < batch_; ++i) sum += losses[i];
    const std::lock_guard lock(mutex_);
    if (iteration >= losses_.size()) losses_.resize(iteration + 1, {0.0, 0});
    losses_[iteration].first += sum;
    losses_[iteration].second += batch_;
  }

  /// The parameters that a device updates: its share where the optimizer is sharded. Shares begin
  /// at whole lines of the caches.
  ParameterRange updated_by(std::uint32_t stage, std::uint32_t slot, std::size_t floats) const {
    if (plan_.setup.rules.sharded == Sharded::nothing) return {0, floats};
    constexpr std::size_t line = 16;
    const std::size_t members = plan_.graph.stage_slots[stage].size();
    const std::size_t share = (floats + members * line - 1) / (members * line) * line;
    const std::size_t self = member(stage, slot);
    return {std::min(floats, self * share), std::min(floats, (self + 1) * share)};
  }

  /// The weights that a device begins with, which `make` makes. Those of a sharded optimizer are
  /// one piece of memory for all its devices, in which each writes its share when none reads: so
  /// all have them all, as all have the tensors that are sent.
  template <class Make>
  Shared weights_of(std::uint32_t stage, Make&& make) {
    if (plan_.setup.rules.sharded == Sharded::nothing) return make();
    const std::lock_guard lock(mutex_);
    if (!common_weights_[stage]) common_weights_[stage] = make();
    return common_weights_[stage];
  }

  /// Tells the newest weights of a stage's first device.
  void tell_weights(std::uint32_t stage, std::uint32_t slot, const Shared& weights,
                    std::size_t floats) {
    if (plan_.graph.stage_slots[stage].front() != slot) return;
    const std::lock_guard lock(mutex_);
    first_weights_[stage] = {weights, floats};
  }

  /// Needs nothing of the plan, which may be gone after the run.
  CpuResults results() {
    const std::lock_guard lock(mutex_);
    CpuResults results;
    results.losses.reserve(losses_.size());
    for (const auto& [sum, samples] : losses_)
      results.losses.push_back(samples > 0 ? sum / static_cast<double>(samples) : 0);
    for (const auto& [weights, floats] : first_weights_) {
      const float* const data = weights ? weights->data() : nullptr;
      results.parameters.emplace_back(data, data ? data + floats : data);
    }
    return results;
  }

 private:
  std::size_t place(std::uint32_t stage, std::uint32_t micro_batch, std::uint32_t copy) const {
    return (std::size_t{stage} * plan_.graph.micro_batches + micro_batch) * copies_ + copy;
  }
  std::size_t member(std::uint32_t stage, std::uint32_t slot) const {
    const auto& members = plan_.graph.stage_slots[stage];
    return static_cast<std::size_t>(std::find(members.begin(), members.end(), slot) -
                                    members.begin());
  }

  std::shared_ptr<const Network> network_;
  const RunPlan& plan_;
  CpuOptions options_;
  std::int64_t batch_;
  std::uint32_t copies_;
  std::uint32_t micro_batches_;  ///< Of a mini-batch; 1 where asynchronous.
  UpdateRule updates_;
  OptimizerKind optimizer_;
  Recompute recompute_;
  TrainingData data_;
  std::vector<Shared> inputs_;
  std::vector<Shared> output_gradients_;
  /// Of each stage: by iteration and round.
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, Round>> rounds_;
  std::vector<std::mutex> round_mutexes_;
  std::mutex mutex_;  ///< Of what follows.
  std::vector<std::pair<double, std::int64_t>> losses_;
  std::vector<std::pair<Shared, std::size_t>> first_weights_;  ///< Of each stage, with its size.
  std::vector<Shared> common_weights_;                         ///< Of each stage.
};

/// One stage on one device.
class StageOnDevice {
 public:
  StageOnDevice(Store& store, std::uint32_t stage, std::uint32_t slot)
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
        parameters_(std::make_shared<Pool>(kernels_.parameter_floats())),
        outputs_(std::make_shared<Pool>(kernels_.output_floats())),
        inputs_(std::make_shared<Pool>(kernels_.input_floats())),
        kept_(std::make_shared<Pool>(kernels_.kept_floats())),
        left_(std::make_shared<Pool>(kernels_.left_floats())),
        checkpoints_(std::make_shared<Pool>(kernels_.checkpoint_floats())),
        again_(std::make_shared<Pool>(kernels_.recomputed_floats())),
        recomputed_at_once_(std::make_shared<Pool>(kernels_.recomputed_at_once_floats())),
        scratch_(kernels_.scratch_floats()),
        in_flight_(store.plan().graph.micro_batches),
        optimizer_(store.optimizer(), store.updated_by(stage, slot, kernels_.parameter_floats()),
                   store.options().learning_rate) {
    weights_[0] = store.weights_of(stage, [&] {
      Shared first = share(parameters_);
      kernels_.initialise(first->data(), store.options().seed);
      return first;
    });
    loss_weights_.assign(static_cast<std::size_t>(store.batch()), store.loss_weight(stage));
    store.tell_weights(stage_, slot_, weights_[0], kernels_.parameter_floats());
  }

  void run(const Task& task, ActivityKind kind, std::uint32_t m) {
    begin_iteration(task.iteration);
    switch (kind) {
      case ActivityKind::forward:
        return forward(task, m);
      case ActivityKind::backward_part:
      case ActivityKind::backward:
        return backward(task, m, kind == ActivityKind::backward);
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

 private:
  /// A micro-batch between its F and its last backward.
  struct InFlight {
    Shared input;
    Shared output;
    Shared kept;
    KeptIn kept_in = KeptIn::kept;
    Shared checkpoints;
    Shared left;
    Shared output_gradient;
    Shared input_gradient;   ///< While a backward makes it.
    std::size_t parts = 0;   ///< Of the last backward, or of W, so many buckets are done, of which
    std::size_t layers = 0;  ///< each had some layers.
  };

  /// Versions are counted anew in each iteration: the newest becomes 0.
  void begin_iteration(std::uint32_t iteration) {
    if (iteration == iteration_) return;
    iteration_ = iteration;
    Shared newest = weights_.rbegin()->second;
    weights_.clear();
    weights_[0] = std::move(newest);
    for (InFlight& one : in_flight_) one = {};
  }

  StageTensors tensors(const InFlight& one, const Task& task, std::uint32_t m) const {
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

  const float* weights(std::uint32_t version) const {
    const auto found = weights_.find(version);
    PLUMBLINE_CHECK(found != weights_.end(), stage_, version);
    return found->second->data();
  }

  void forward(const Task& task, std::uint32_t m) {
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

  /// The tensors of a backward, what the forward kept made again where it was not kept. Where
  /// layers are run again by themselves, a whole backward does that.
  StageTensors backward_tensors(const Task& task, std::uint32_t m, bool whole) {
    InFlight& one = in_flight_[m];
    if (!one.kept) {
      if (!one.output) one.output = share(outputs_);
      if (!one.checkpoints) {
        one.kept = share(kept_);
        kernels_.forward(tensors(one, task, m));
      } else if (whole) {
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

  /// Makes room for the gradient that the stage below gets.
  Shared input_gradient() const { return is_first_ ? nullptr : share(inputs_); }

  void hand_down(Shared gradient, std::uint32_t m) {
    if (!is_first_) store_.output_gradient(stage_ - 1, m, copy_) = std::move(gradient);
  }

  Shared gradients(const Task& task, std::uint32_t m) {
    Shared sum = store_.gradients(stage_, task.iteration, m, slot_, nullptr);
    if (sum) return sum;
    if (!fresh_gradients_) clear_gradients();  // a round before the last one is updated
    return store_.gradients(stage_, task.iteration, m, slot_, std::move(fresh_gradients_));
  }

  /// Makes ready where the next round is added up. It is a part of every update.
  void clear_gradients() {
    fresh_gradients_ = share(parameters_);
    std::fill_n(fresh_gradients_->data(), kernels_.parameter_floats(), 0.0F);
  }

  /// The layers that a part of a backward is over, from the last one down: those of the next
  /// bucket, and of the last part all that are left. Counts them as done.
  std::pair<std::size_t, std::size_t> next_layers(InFlight& one, bool is_last_part) const {
    const std::size_t end = kernels_.layers() - one.layers;
    if (is_last_part) return {end, 0};
    const auto& buckets = store_.plan().setup.costs.stages[stage_].buckets;
    const std::size_t layers = buckets[one.parts++].layers;
    one.layers += layers;
    return {end, end - layers};
  }

  void backward(const Task& task, std::uint32_t m, bool is_last_part) {
    InFlight& one = in_flight_[m];
    StageTensors t = backward_tensors(task, m, /*whole=*/true);
    const Shared sum = gradients(task, m);
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

  void backward_input(const Task& task, std::uint32_t m) {
    StageTensors t = backward_tensors(task, m, /*whole=*/false);
    const Shared sum = gradients(task, m);  // for parameters whose gradients come with the input's
    t.gradients = sum->data();
    in_flight_[m].left = share(left_);
    t.left = in_flight_[m].left->data();
    Shared down = input_gradient();
    if (down) t.input_gradient = down->data();
    kernels_.backward_input(t);
    hand_down(std::move(down), m);
  }

  void backward_weight(const Task& task, std::uint32_t m, bool is_last_part) {
    InFlight& one = in_flight_[m];
    StageTensors t = backward_tensors(task, m, /*whole=*/false);
    const Shared sum = gradients(task, m);
    t.gradients = sum->data();
    t.left = one.left->data();
    const auto [end, begin] = next_layers(one, is_last_part);
    kernels_.backward_weight(t, end, begin);
    if (is_last_part) one = {};
  }

  void update(const Task& task, std::uint32_t m) {
    const std::vector<Shared> members = store_.round_of(stage_, task.iteration, m);
    const std::uint32_t before = task.version - 1;
    const float* const old_weights = weights(before);
    const bool in_place = task.oldest >= task.version;
    Shared made = in_place ? weights_[before] : share(parameters_);
    std::vector<const float*> gradients;
    gradients.reserve(members.size());
    for (const Shared& member : members) {
      if (member) gradients.push_back(member->data());  // a replica may have had no micro-batch
    }
    // Gradients that nobody else reads are cleared while the caches hold them, and serve again.
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

  Store& store_;
  std::uint32_t stage_;
  std::uint32_t slot_;
  std::uint32_t copy_;
  bool is_first_;
  bool is_last_;
  const std::vector<LayerId>& layers_;
  bool recomputes_;
  bool recomputes_output_;
  CpuStage kernels_;
  std::shared_ptr<Pool> parameters_;
  std::shared_ptr<Pool> outputs_;
  std::shared_ptr<Pool> inputs_;
  std::shared_ptr<Pool> kept_;
  std::shared_ptr<Pool> left_;
  std::shared_ptr<Pool> checkpoints_;
  std::shared_ptr<Pool> again_;
  std::shared_ptr<Pool> recomputed_at_once_;
  Buffer scratch_;
  std::vector<InFlight> in_flight_;
  std::map<std::uint32_t, Shared> weights_;  ///< By version.
  std::vector<float> loss_weights_;
  Optimizer optimizer_;
  Shared fresh_gradients_;  ///< Zero, for the next round; nothing while none is ready.
  std::uint32_t iteration_ = 0;
};

class CpuWorker : public Worker {
 public:
  CpuWorker(std::shared_ptr<Store> store, std::uint32_t slot)
      : store_(std::move(store)), slot_(slot) {}

  void prepare() override {
    use_one_thread();
    pin_to_core(slot_, store_->plan().graph.slots());
    const OpGraph& graph = store_->plan().graph;
    stages_.resize(graph.stage_slots.size());
    for (std::uint32_t s = 0; s < stages_.size(); ++s) {
      const auto& slots = graph.stage_slots[s];
      if (std::find(slots.begin(), slots.end(), slot_) != slots.end())
        stages_[s] = std::make_unique<StageOnDevice>(*store_, s, slot_);
    }
  }

  Work run(const Task& task, const std::atomic<bool>&) override {
    const Activity& activity = store_->plan().graph.activities[task.node];
    const RealTime cpu_before = thread_cpu_time();
    stages_[activity.stage.value]->run(task, activity.kind, activity.micro_batch.value);
    const RealTime cpu = thread_cpu_time() - cpu_before;
    const RealTime end = now();
    return {end, end - task.begin - cpu};
  }

 private:
  std::shared_ptr<Store> store_;
  std::uint32_t slot_;
  std::vector<std::unique_ptr<StageOnDevice>> stages_;  ///< Of this device; else nothing.
};

class CpuBackendOnNetwork : public CpuBackend {
 public:
  explicit CpuBackendOnNetwork(const CpuOptions& options) : options_(options) {}

  std::string_view name() const override { return "cpu"; }
  std::string device_text() const override {
    return "a core each, fp32 kernels by " + cpu_library();
  }
  bool has_own_overheads() const override { return true; }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    store_ = std::make_shared<Store>(plan, options_);
    devices_ = plan.graph.slots();
    std::vector<std::unique_ptr<Worker>> workers;
    workers.reserve(plan.graph.slots());
    for (std::uint32_t slot = 0; slot < plan.graph.slots(); ++slot)
      workers.push_back(std::make_unique<CpuWorker>(store_, slot));
    return workers;
  }
  std::map<std::string, std::string> provenance() const override {
    return cpu_provenance(devices_);
  }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> remarks;
    const std::vector<double> losses = results().losses;
    if (!losses.empty()) {
      remarks.push_back(fmt::format("loss {:.4g} in the first iteration, {:.4g} after {}",
                                    losses.front(), losses.back(), losses.size()));
    }
    if (devices_ > usable_cores()) {
      remarks.push_back(
          fmt::format("{} devices took turns on {} core{}: the times are not those of {} cores",
                      devices_, usable_cores(), usable_cores() == 1 ? "" : "s", devices_));
    }
    return remarks;
  }
  CpuResults results() const override {
    PLUMBLINE_CHECK(store_ != nullptr, name());
    return store_->results();
  }

 private:
  CpuOptions options_;
  std::shared_ptr<Store> store_;
  std::uint32_t devices_ = 0;
};

}  // namespace

std::map<std::string, std::string> cpu_provenance(std::uint32_t busy) {
  return {{"backend", "cpu"},
          {"device", printable(processor_name())},
          {"library", cpu_library()},
          {"cores", std::to_string(usable_cores())},
          {"busy_cores", std::to_string(busy)}};
}

std::optional<Diagnostic> check_for_cpu(const Network& network, const Mark& mark) {
  if (cpu_library().empty()) {
    Diagnostic missing =
        input_error({}, "this build has no cpu backend: it was made without oneDNN",
                    "install libdnnl-dev and build again");
    missing.fault = Fault::no_device;
    return missing;
  }
  if (network.element != ElementType::fp32) {
    return input_error(mark,
                       fmt::format("the network '{}' is {}, and the cpu backend computes in fp32",
                                   clipped(network.name), name(network.element)));
  }
  if (!std::holds_alternative<Head>(network.layers.back().settings)) {
    return input_error(mark,
                       fmt::format("the network '{}' does not end in a head, so it has no loss",
                                   clipped(network.name)),
                       "put {kind: head, classes: N} at its end");
  }
  return std::nullopt;
}

Result<std::unique_ptr<CpuBackend>> cpu_backend(const Scenario& scenario,
                                                const CpuOptions& options) {
  if (!scenario.network) {
    return input_error(
        scenario.model_mark,
        "the cpu backend executes networks, and the model is known by its times alone",
        "model: {network: FILE, profile: FILE}; --backend synthetic runs any model");
  }
  if (auto refused = check_for_cpu(*scenario.network, scenario.model_mark)) return *refused;
  if (auto refused = check_training(scenario)) return *refused;
  return std::unique_ptr<CpuBackend>(std::make_unique<CpuBackendOnNetwork>(options));
}

}  // namespace plumbline
