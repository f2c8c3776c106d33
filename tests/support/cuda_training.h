// Runs on a fake GPU: small networks, their scenarios, training, and its results.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/program/backend.h"
#include "calibrate/runtime/real_run.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/network_scenario.h"
#include "tests/support/same_training.h"

namespace plumbline::test {

inline constexpr const char* kMlp =
    "version: 1\nkind: network\ninput: {shape: [12]}\nlayers:\n"
    "  - {kind: linear, features: 24}\n  - {kind: relu}\n  - {kind: linear, features: 20}\n"
    "  - {kind: gelu}\n  - {kind: layer_norm}\n  - {kind: linear, features: 16}\n"
    "  - {kind: head, classes: 4}\n";
inline constexpr const char* kGpt =
    "version: 1\nkind: network\ninput: {tokens: 4, vocabulary: 11}\nlayers:\n"
    "  - {kind: embedding, features: 8, positions: true}\n"
    "  - {repeat: 1, layers: [{kind: attention_block, heads: 2}, {kind: mlp_block}]}\n"
    "  - {kind: head}\n";

/// A network whose attention can be fused.
inline constexpr const char* kHalf =
    "version: 1\nkind: network\ndtype: bf16\ninput: {tokens: 5, vocabulary: 11}\nlayers:\n"
    "  - {kind: embedding, features: 16, positions: true}\n"
    "  - {kind: attention_block, heads: 2}\n  - {kind: mlp_block}\n  - {kind: head}\n";
inline constexpr const char* kImages =
    "version: 1\nkind: network\ninput: {shape: [2, 6, 5]}\nlayers:\n"
    "  - {kind: conv2d, channels: 3, padding: 1}\n  - {kind: batch_norm}\n  - {kind: relu}\n"
    "  - {kind: max_pool}\n  - {kind: residual_block, channels: 4, stride: 2}\n"
    "  - {kind: flatten}\n  - {kind: head, classes: 3, norm: false}\n";
inline constexpr const char* kSentences =
    "version: 1\nkind: network\ninput: {tokens: 4, vocabulary: 7}\nlayers:\n"
    "  - {kind: embedding, features: 6}\n  - {kind: lstm, hidden: 5}\n"
    "  - {kind: lstm, hidden: 5, residual: true}\n  - {kind: head, classes: 7}\n";
inline constexpr const char* kTiny =
    "version: 1\nkind: network\ninput: {shape: [6]}\nlayers:\n"
    "  - {kind: linear, features: 5}\n  - {kind: relu}\n"
    "  - {kind: head, classes: 3, norm: false}\n";

/// The driver of a test, with all kernels.
class FakeGpus {
 public:
  explicit FakeGpus(FakeOptions options = {}) : cuda(std::move(options)) {
    cuda.add(emulated_kernels());
  }

  FakeCuda cuda;
};

inline RunOptions few_iterations(std::uint32_t iterations, std::uint32_t warm_up = 0) {
  RunOptions options;
  options.warm_up = warm_up;
  options.iterations = iterations;
  options.max_iterations = iterations;
  return options;
}

inline CudaOptions builtin_kernels(double rate = 0.05) {
  CudaOptions options;
  options.warm_up_seconds = 0;
  options.learning_rate = rate;
  options.builtin_kernels = true;
  return options;
}

struct Trained {
  std::vector<float> parameters;  ///< Layer by layer.
  std::vector<double> losses;
  std::vector<std::string> faults;
  std::string live;
  RealRun run;
};

/// Every measured iteration is executed twice.
inline Trained train(const Scenario& scenario, FakeOptions fake_options = {},
                     std::uint32_t iterations = 1, double rate = 0.05, const Nccl* nccl = nullptr) {
  FakeGpus fake(std::move(fake_options));
  Trained trained;
  {
    CudaOptions options = builtin_kernels(rate);
    options.nccl = nccl != nullptr;
    auto backend = cuda_backend(fake.cuda.driver(), scenario, options, nccl);
    REQUIRE_MESSAGE(backend, (backend ? "" : to_text(backend.problems())));
    auto run = run_scenario(scenario, **backend, few_iterations(iterations));
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    trained.run = *std::move(run);
    const CudaResults results = (*backend)->results();
    trained.losses = results.losses;
    for (const auto& stage : results.parameters)
      trained.parameters.insert(trained.parameters.end(), stage.begin(), stage.end());
  }
  trained.faults = fake.cuda.faults();
  trained.live = fake.cuda.live();
  return trained;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline std::int64_t ns(Duration time) { return time.count(); }

inline void check_clean(const Trained& trained) {
  CHECK(trained.faults == std::vector<std::string>{});
  CHECK(trained.live == "");
}

}  // namespace plumbline::test
