// Random tensors, three passes, and their differences.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/check/layer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

#include "base/bug.h"
#include "base/random.h"
#include "calibrate/cuda/driver/recording.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/layers/layer.h"
#include "calibrate/cuda/layers/stage.h"
#include "calibrate/cuda/libraries/device_libraries.h"
#include "calibrate/training/reference.h"

namespace plumbline {
namespace {

// Tensors.

/// Uniform numbers, one after the other.
class Numbers {
 public:
  std::vector<float> between(double low, double high, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(low + (high - low) * next());
    return values;
  }
  std::vector<std::int32_t> below(std::int64_t limit, std::int64_t count) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    for (std::int32_t& value : values)
      value = static_cast<std::int32_t>(next() * static_cast<double>(limit));
    return values;
  }

 private:
  double next() { return random_uniform(/*seed=*/1, place_++); }
  std::uint64_t place_ = 0;
};

/// A tensor on the device.
class Tensor {
 public:
  Tensor(const CudaQueue& queue, ElementType type, const std::vector<float>& values)
      : queue_(&queue), type_(type), bytes_(as_elements(type, values.data(), values.size())) {
    upload(bytes_.data());
  }
  /// NaN, as the passes must write all of it.
  Tensor(const CudaQueue& queue, ElementType type, std::int64_t count)
      : Tensor(queue, type,
               std::vector<float>(static_cast<std::size_t>(count),
                                  std::numeric_limits<float>::quiet_NaN())) {}
  Tensor(const CudaQueue& queue, const std::vector<std::int32_t>& whole)
      : queue_(&queue),
        bytes_(whole.size() * sizeof(std::int32_t)),
        values_(whole.begin(), whole.end()) {
    upload(whole.data());
  }

  CUdeviceptr data() const { return memory_.data(); }
  bool empty() const { return bytes_.empty(); }
  /// The given values, rounded to the type.
  Values given() const { return values_.empty() ? values_of(bytes_) : values_; }
  /// The present values.
  Values now() const {
    std::vector<std::byte> bytes(bytes_.size());
    if (bytes.empty()) return {};
    PLUMBLINE_CUDA(*queue_->driver, cuMemcpyDtoHAsync, bytes.data(), data(), bytes.size(),
                   queue_->stream);
    PLUMBLINE_CUDA(*queue_->driver, cuStreamSynchronize, queue_->stream);
    return values_of(bytes);
  }

 private:
  void upload(const void* from) {
    memory_ = CudaScratch(*queue_->driver, bytes_.size());
    if (bytes_.empty()) return;
    PLUMBLINE_CUDA(*queue_->driver, cuMemcpyHtoDAsync, data(), from, bytes_.size(), queue_->stream);
    PLUMBLINE_CUDA(*queue_->driver, cuStreamSynchronize, queue_->stream);
  }
  Values values_of(const std::vector<std::byte>& bytes) const {
    const std::vector<float> floats = as_floats(type_, bytes);
    return {floats.begin(), floats.end()};
  }

  const CudaQueue* queue_;
  ElementType type_ = ElementType::fp32;
  std::vector<std::byte> bytes_;
  Values values_;  ///< For whole numbers.
  CudaScratch memory_;
};

/// The tensors of one micro-batch.
struct Tensors {
  std::vector<Tensor> parameters{};
  std::vector<Tensor> gradients{};
  std::vector<Tensor> kept{};
  std::vector<Tensor> left{};
  std::optional<Tensor> input{};  ///< Or token ids.
  std::optional<Tensor> labels{};
  std::optional<Tensor> output{};
  std::optional<Tensor> output_gradient{};
  std::optional<Tensor> input_gradient{};
};

bool reads_ids(const NetworkLayer& layer) {
  return std::holds_alternative<Embedding>(layer.settings);
}

Tensors tensors_of(const CudaQueue& queue, const NetworkLayer& layer, ElementType type,
                   std::int64_t batch) {
  Numbers numbers;
  Tensors made;
  const std::int64_t inputs = batch * layer.input.elements();
  const std::int64_t outputs = batch * layer.output.elements();
  const auto elements = [&](const KeptTensor& tensor) {
    return tensor.shape.elements() * (tensor.per_sample ? batch : 1);
  };
  const auto* const embedding = std::get_if<Embedding>(&layer.settings);
  const auto* const head = std::get_if<Head>(&layer.settings);
  const ElementType at_end = head ? ElementType::fp32 : type;
  if (embedding) {
    made.input.emplace(queue, numbers.below(embedding->vocabulary, inputs));
  } else {
    made.input.emplace(queue, type, numbers.between(-2, 2, inputs));
  }
  if (head)
    made.labels.emplace(queue, numbers.below(head->classes, inputs / layer.input.extents.back()));
  made.output.emplace(queue, at_end, outputs);
  made.output_gradient.emplace(queue, at_end, numbers.between(-1, 1, outputs));
  made.input_gradient.emplace(queue, type, inputs);
  for (const KeptTensor& tensor : layer.kept) {
    const ElementType of_kept = tensor.statistic ? ElementType::fp32 : type;
    made.kept.emplace_back(queue, of_kept, elements(tensor));
  }
  for (const KeptTensor& tensor : layer.left_for_weights)
    made.left.emplace_back(queue, type, elements(tensor));
  for (const Parameter& parameter : layer.parameters) {
    const std::int64_t count = parameter.shape.elements();
    const bool is_scale = parameter.name.ends_with("scale");
    // Sums of products stay near 1.
    const std::int64_t summed =
        parameter.shape.extents.size() > 1 ? count / parameter.shape.extents.front() : 1;
    const double high = 1.5 / std::sqrt(static_cast<double>(summed));
    made.parameters.emplace_back(
        queue, type,
        is_scale ? numbers.between(0.5, 1.5, count) : numbers.between(-high, high, count));
    made.gradients.emplace_back(queue, type, numbers.between(-1, 1, count));
  }
  return made;
}

CudaCall call_with(const NetworkLayer& layer, const Tensors& t) {
  const auto pointers = [](const std::vector<Tensor>& tensors) {
    std::vector<CUdeviceptr> all;
    all.reserve(tensors.size());
    for (const Tensor& tensor : tensors) all.push_back(tensor.data());
    return all;
  };
  CudaCall call;
  (reads_ids(layer) ? call.ids : call.input) = t.input->data();
  if (t.labels) call.labels = t.labels->data();
  call.output = t.output->data();
  call.output_gradient = t.output_gradient->data();
  if (!reads_ids(layer)) call.input_gradient = t.input_gradient->data();
  call.kept = pointers(t.kept);
  call.left = pointers(t.left);
  call.parameters = pointers(t.parameters);
  call.gradients = pointers(t.gradients);
  return call;
}

// Comparing.

double share_that_differs(const Values& found, const Values& expected) {
  PLUMBLINE_CHECK(found.size() == expected.size(), found.size(), expected.size());
  double largest = std::numeric_limits<double>::min();
  double off = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(expected[i]));
    off = std::max(off, std::abs(found[i] - expected[i]));
  }
  return off / largest;
}

// The proof.

struct Small {
  LayerSettings settings;
  std::vector<std::int64_t> input;
  std::int64_t batch = 1;
};

/// Attention of today's language models: heads share keys, are normalized and turn.
AttentionBlock grouped(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_size,
                       std::int64_t window) {
  return {.heads = heads,
          .kv_heads = kv_heads,
          .head_size = head_size,
          .norm = NormKind::rms_norm,
          .bias = AttentionBias::qkv,
          .qk_norm = true,
          .rotary = 10000,
          .window = window};
}

/// Layers of every kind, none of a size that fits tiles. Attention has the three widths in which it
/// is fused.
std::vector<Small> small_layers() {
  return {{Linear{72, true}, {48}, 33},
          {Linear{30, false}, {5, 17}, 3},
          {Relu{}, {77}, 3},
          {Gelu{}, {77}, 3},
          {Flatten{}, {2, 3, 5}, 2},
          {LayerNorm{}, {50, 72}, 3},
          {RmsNorm{}, {50, 72}, 3},
          {AttentionBlock{2, true}, {70, 64}, 1},
          {AttentionBlock{1, false}, {81, 64}, 1},
          {AttentionBlock{1, true}, {70, 128}, 1},
          {AttentionBlock{3, true}, {5, 15}, 3},
          {grouped(4, 2, 32, 40), {70, 64}, 2},
          {grouped(6, 2, 64, 0), {37, 48}, 1},
          {grouped(2, 1, 128, 9), {70, 64}, 1},
          {grouped(4, 2, 6, 3), {9, 24}, 2},
          {MlpBlock{0}, {7, 24}, 3},
          {MlpBlock{36, Activation::silu, true, NormKind::rms_norm, false}, {7, 24}, 3},
          {MlpBlock{9, Activation::relu}, {7, 24}, 2},
          {Embedding{50, 24, true}, {12}, 3},
          {Head{300, true, true}, {7, 24}, 2},
          {Head{90, true, false, NormKind::rms_norm}, {7, 24}, 2},
          {Conv2d{12, 3, 1, 1, true}, {8, 9, 8}, 4},
          {Conv2d{5, 3, 2, 1, true}, {7, 13, 12}, 2},
          {Conv2d{66, 1, 1, 0, false}, {3, 9, 8}, 2},
          {MaxPool{3, 2, 1}, {5, 9, 7}, 3},
          {BatchNorm{}, {5, 9, 13}, 5},
          {ResidualBlock{16, 2}, {8, 10, 12}, 2},
          {Lstm{20, true}, {5, 20}, 3}};
}

/// The allowed error as a share of the largest element: the rounding of every step, with a margin.
/// Wrong code is off by the element's whole size.
double allowed(ElementType type) {
  if (type == ElementType::bf16) return 0.06;
  return type == ElementType::tf32 ? 0.02 : 1e-4;
}

}  // namespace

std::vector<TensorDifference> differences_from_reference(const CudaQueue& queue,
                                                         const NetworkLayer& layer,
                                                         ElementType type, std::int64_t batch,
                                                         CheckedAs as) {
  const auto kernels = cuda_layer(queue, layer, type, batch);
  const auto enqueue_passes = [&](const CudaCall& call) {
    kernels->forward(queue, call);
    kernels->backward_input(queue, call);
    kernels->backward_weight(queue, call);
  };
  const Tensors t = tensors_of(queue, layer, type, batch);
  const CudaCall call = call_with(layer, t);
  CudaRecording graph;  // lives until the comparison is done
  if (as == CheckedAs::graph) {
    graph = CudaRecording(*queue.driver, queue.stream, [&] { enqueue_passes(call); });
    graph.replay(queue.stream);
  } else {
    enqueue_passes(call);
  }

  std::vector<Values> parameters;
  parameters.reserve(t.parameters.size());
  for (const Tensor& parameter : t.parameters) parameters.push_back(parameter.given());
  const Values input = t.input->given();
  const Values labels = t.labels ? t.labels->given() : Values{};
  const Values output_gradient = t.output_gradient->given();
  const ReferenceCall truth{layer, batch, parameters, input, labels};
  const ReferenceForward forward = reference_forward(truth);
  const ReferenceBackward backward = reference_backward_input(truth, forward, output_gradient);
  const std::vector<Values> gradients =
      reference_backward_weight(truth, forward, backward, output_gradient);

  std::vector<TensorDifference> found;
  const auto compare = [&](const std::string& name, const Tensor& tensor, const Values& expected) {
    found.push_back({name, share_that_differs(tensor.now(), expected)});
  };
  compare("output", *t.output, forward.output);
  for (std::size_t i = 0; i < t.kept.size(); ++i)
    compare(layer.kept[i].name, t.kept[i], forward.kept[i]);
  for (std::size_t i = 0; i < t.left.size(); ++i)
    compare(layer.left_for_weights[i].name, t.left[i], backward.left[i]);
  if (!reads_ids(layer)) compare("input gradient", *t.input_gradient, backward.input_gradient);
  for (std::size_t i = 0; i < t.gradients.size(); ++i) {
    const Parameter& parameter = layer.parameters[i];
    const Values& added = parameter.with_input ? backward.parameter_gradients[i] : gradients[i];
    Values sum = t.gradients[i].given();
    PLUMBLINE_CHECK(sum.size() == added.size(), sum.size(), added.size());
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += added[j];
    compare(parameter.name + " gradient", t.gradients[i], sum);
  }
  return found;
}

namespace {

/// All checked layers as one network, which says which libraries are needed.
Network small_network(const std::vector<Small>& all) {
  Network network;
  for (const Small& small : all) {
    NetworkInput input{{small.input}, std::nullopt};
    if (const auto* embedding = std::get_if<Embedding>(&small.settings))
      input.vocabulary = embedding->vocabulary;
    auto layer = derive_layer(small.settings, input, {});
    PLUMBLINE_CHECK(layer, network.layers.size());
    network.layers.push_back(*std::move(layer));
  }
  return network;
}

/// "linear on [48], fp32".
std::string layer_text(const NetworkLayer& layer, ElementType type) {
  return fmt::format("{} on {}, {}", kind_name(layer.settings), to_text(layer.input), name(type));
}

/// Compares layer by layer, and keeps the one with the largest error.
class LayerCheck {
 public:
  LayerCheck(const CudaQueue& queue, CudaCheck& check) : queue_(queue), check_(check) {
    queue_.choices = nullptr;  // any algorithm, not the fastest
  }

  /// Checks one layer. Errors: CudaError if nothing runs any more.
  void look_at(const std::string& what, const NetworkLayer& layer, ElementType type,
               std::int64_t batch) {
    std::vector<TensorDifference> found;
    const auto run = [&](CheckedAs as) {
      return why_not_run(*queue_.driver, [&] {
        found = differences_from_reference(queue_, layer, type, batch, as);
      });
    };
    if (const auto failure = run(CheckedAs::enqueued)) {
      check_.failures.push_back(fmt::format("layer {} does not run: {}", what, *failure));
      return;
    }
    if (!judge(what, allowed(type), found)) return;
    if (const auto failure = run(CheckedAs::graph)) {
      if (unrecorded_++ == 0) why_unrecorded_ = fmt::format("{}: {}", what, *failure);
      return;
    }
    judge(what + ", replayed as a graph,", allowed(type), found);
  }

  std::string text() const {
    std::string text = fmt::format("            furthest off is {}\n",
                                   furthest_.empty() ? "none: no layer ran" : furthest_);
    if (unrecorded_ > 0) {
      text += fmt::format("            {} cannot be recorded and replayed as graphs, such as {}\n",
                          unrecorded_, why_unrecorded_);
    }
    return text;
  }

 private:
  /// Whether no tensor differs by more than `limit`.
  bool judge(const std::string& what, double limit,
             const std::vector<TensorDifference>& differences) {
    bool is_right = true;
    for (const auto& [tensor, share] : differences) {
      if (share / limit > worst_) {
        worst_ = share / limit;
        furthest_ = fmt::format("{}: its {} by {:.2g} of its largest element, {:.2g} allowed", what,
                                tensor, share, limit);
      }
      if (share <= limit) continue;
      is_right = false;
      check_.failures.push_back(fmt::format(
          "layer {} is not the reference's: its {} differs by {:.2g} of its largest element", what,
          tensor, share));
    }
    return is_right;
  }

  CudaQueue queue_;
  CudaCheck& check_;
  double worst_ = 0;  ///< As a share of the allowed error.
  std::string furthest_;
  int unrecorded_ = 0;  ///< Layers, counted once per type.
  std::string why_unrecorded_;
};

}  // namespace

std::optional<Diagnostic> check_cuda_layers(const CudaDriver& driver, std::uint32_t devices,
                                            bool own, CudaCheck& check) {
  auto opened = open_cuda_devices(driver, devices, /*one_gpu=*/false);
  if (!opened) return opened.problems().front();
  const std::vector<Small> all = small_layers();
  const Network network = small_network(all);
  std::string at;  // the layer under check
  try {
    DeviceLibraries libraries(**opened, network, own, std::nullopt);
    const CudaDevice& device = (*opened)->all().front();
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, device.context);
    LayerCheck layers(libraries.queue(0, device.compute), check);
    for (const ElementType type : {ElementType::fp32, ElementType::tf32, ElementType::bf16}) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        at = layer_text(network.layers[i], type);
        layers.look_at(at, network.layers[i], type, all[i].batch);
      }
    }
    check.text +=
        fmt::format("layers      {} in fp32, tf32 and bf16 beside the reference, with {}\n{}",
                    all.size(), libraries.name(), layers.text());
    for (const std::string& missing : libraries.missing())
      check.text += fmt::format("            {}\n", missing);
    // Loaded libraries may change where kernels run: so prove again, with all of them loaded.
    if ((*opened)->split()) {
      for (const std::string& failure : prove_cuda_devices(**opened).failures)
        check.failures.push_back("with the libraries in use, " + failure);
    }
  } catch (const std::runtime_error& error) {  // from the driver or a library
    const std::string since = at.empty() ? "" : fmt::format(" from {} on", at);
    check.failures.push_back(fmt::format("layers do not run{}: {}", since, error.what()));
  }
  driver.cuCtxSetCurrent(nullptr);
  return std::nullopt;
}

}  // namespace plumbline
