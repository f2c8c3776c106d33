// How fast one core runs each kind of layer: the FLOPs of the cost model in a second, for each
// pass.
//
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <iostream>
#include <string>

#include "base/random.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/layer.h"

namespace plumbline {
namespace {

using Floats = std::vector<float>;

struct Size {
  const char* name;
  LayerSettings settings;
  std::vector<std::int64_t> input;
  std::int64_t batch;
};

std::vector<Size> sizes() {
  return {{"linear 256x512x512", Linear{512, true}, {512}, 256},
          {"linear 8x1024x1024", Linear{1024, true}, {1024}, 8},
          {"relu", Relu{}, {32, 32, 32}, 8},
          {"gelu", Gelu{}, {64, 512}, 8},
          {"layer_norm", LayerNorm{}, {64, 128}, 8},
          {"attention_block 64x128", AttentionBlock{4, true}, {64, 128}, 8},
          {"attention_block 512x512", AttentionBlock{8, true}, {512, 512}, 1},
          {"attention_block llama 64x128",
           AttentionBlock{.heads = 4,
                          .kv_heads = 2,
                          .norm = NormKind::rms_norm,
                          .bias = AttentionBias::none,
                          .rotary = 10000},
           {64, 128},
           8},
          {"mlp_block 64x128", MlpBlock{512}, {64, 128}, 8},
          {"mlp_block swiglu 64x128",
           MlpBlock{.hidden = 344,
                    .activation = Activation::silu,
                    .gated = true,
                    .norm = NormKind::rms_norm,
                    .bias = false},
           {64, 128},
           8},
          {"embedding", Embedding{2048, 128, true}, {64}, 8},
          {"head 2048", Head{2048, true, false}, {64, 128}, 8},
          {"conv2d 3 to 32, 32x32", Conv2d{32, 3, 1, 1, true}, {3, 32, 32}, 8},
          {"conv2d 32 to 32, 32x32", Conv2d{32, 3, 1, 1, true}, {32, 32, 32}, 8},
          {"conv2d 128 to 128, 8x8", Conv2d{128, 3, 1, 1, true}, {128, 8, 8}, 8},
          {"max_pool", MaxPool{2, 2, 0}, {32, 32, 32}, 8},
          {"batch_norm", BatchNorm{}, {16, 32, 32}, 8},
          {"flatten", Flatten{}, {128, 4, 4}, 8},
          {"residual_block 16, 32x32", ResidualBlock{16, 1}, {16, 32, 32}, 8},
          {"residual_block 32 to 64, /2", ResidualBlock{64, 2}, {32, 16, 16}, 8},
          {"lstm 128", Lstm{128, false}, {32, 128}, 8}};
}

enum class Pass : std::uint8_t { forward, backward_input, backward_weight };

/// A layer with tensors for one micro-batch.
struct Case {
  NetworkLayer layer;
  std::int64_t batch;
  std::vector<std::int32_t> labels;  ///< Or ids.
  Floats input;
  Floats output;
  Floats output_gradient;
  Floats input_gradient;
  std::vector<Floats> kept;
  std::vector<Floats> left;
  std::vector<Floats> parameters;
  CpuCall call;

  explicit Case(const Size& size) : batch(size.batch) {
    NetworkInput from{{size.input}, std::nullopt};
    const auto* embedding = std::get_if<Embedding>(&size.settings);
    if (embedding != nullptr) from.vocabulary = embedding->vocabulary;
    layer = *derive_layer(size.settings, from, {});
    input = numbers(layer.input.elements(), 1);
    output = numbers(layer.output.elements(), 1);
    output_gradient = numbers(layer.output.elements(), 1);
    input_gradient = input;
    labels.resize(input.size());
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int>(i * 37 % 2000);
    fill(kept, layer.kept);
    fill(left, layer.left_for_weights);
    for (const Parameter& p : layer.parameters) {
      parameters.push_back(numbers(p.shape.elements(), 0.05));
      parameters.back().resize(p.shape.elements());  // they are of no sample
    }
    call.input = input.data();
    call.ids = labels.data();
    call.labels = labels.data();
    call.output = output.data();
    call.output_gradient = output_gradient.data();
    call.input_gradient = input_gradient.data();
    for (Floats& tensor : kept) call.kept.push_back(tensor.data());
    for (Floats& tensor : left) call.left.push_back(tensor.data());
    for (Floats& tensor : parameters) {
      call.parameters.push_back(tensor.data());
      gradients_.emplace_back(tensor.size());
      call.gradients.push_back(gradients_.back().data());
    }
  }
  Case(const Case&) = delete;

  double flops(Pass pass) const {
    const double of_sample = pass == Pass::forward          ? layer.forward_flops
                             : pass == Pass::backward_input ? layer.backward_input_flops
                                                            : layer.backward_weight_flops;
    return of_sample * static_cast<double>(batch);
  }

 private:
  Floats numbers(std::int64_t of_sample, double deviation) const {
    Floats made(batch * of_sample);
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<float>(deviation * random_normal(1, i));
    return made;
  }
  void fill(std::vector<Floats>& tensors, const std::vector<KeptTensor>& of) const {
    for (const KeptTensor& tensor : of) tensors.emplace_back(batch * tensor.shape.elements());
  }

  std::vector<Floats> gradients_;
};

void run_pass(benchmark::State& state, const Size& size, Pass pass) {
  use_one_thread();
  Case made(size);
  const auto layer = cpu_layer(made.layer, made.batch);
  layer->forward(made.call);
  layer->backward_input(made.call);
  for (auto _ : state) {
    if (pass == Pass::forward) layer->forward(made.call);
    if (pass == Pass::backward_input) layer->backward_input(made.call);
    if (pass == Pass::backward_weight) layer->backward_weight(made.call);
    benchmark::ClobberMemory();
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(made.flops(pass), benchmark::Counter::kIsIterationInvariantRate);
}

void register_passes() {
  for (const Size& size : sizes()) {
    const Case made(size);
    const std::string name = size.name;
    const auto add = [&](const char* pass_name, Pass pass) {
      benchmark::RegisterBenchmark((name + " " + pass_name).c_str(), [size, pass](
                                                                         benchmark::State& state) {
        run_pass(state, size, pass);
      })->Unit(benchmark::kMicrosecond);
    };
    add("F", Pass::forward);
    if (!std::holds_alternative<Embedding>(size.settings)) add("I", Pass::backward_input);
    if (made.layer.splits) add("W", Pass::backward_weight);
  }
}

}  // namespace
}  // namespace plumbline

int main(int argc, char** argv) {
  if (plumbline::cpu_library().empty()) {
    std::cerr << "this build has no oneDNN\n";
    return 0;
  }
  plumbline::register_passes();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
