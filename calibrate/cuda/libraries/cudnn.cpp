// Descriptors, algorithms and their times.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "calibrate/cuda/driver/driver.h"
#include "calibrate/cuda/driver/timing.h"
#include "calibrate/cuda/libraries/builtin_convolutions.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"
#include "calibrate/cuda/libraries/libraries.h"

namespace plumbline {
namespace {

/// Algorithms with larger workspaces are tried only if no other runs.
constexpr std::size_t kLikedWorkspace = std::size_t{256} << 20;
constexpr int kMaxEstimates = 16;

constexpr std::size_t kForwardPass = 0;
constexpr std::size_t kInputPass = 1;
constexpr std::size_t kWeightPass = 2;
constexpr std::size_t kConvolutionPasses = 3;
constexpr std::array<const char*, kConvolutionPasses> kPassCalls = {
    "cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter"};

constexpr std::string_view kCudnnHelp =
    "install cuDNN 9 for CUDA 13, or name the folder of libcudnn.so.9 in "
    "PLUMBLINE_CUDA_LIBRARIES";

int math_for(ElementType type) {
  if (type == ElementType::fp32) return cudnn::kFmaMath;
  return type == ElementType::tf32 ? cudnn::kDefaultMath : cudnn::kTensorOpMath;
}

/// The key of one pass in choices.
std::string key_of(const std::string& convolution, std::size_t pass, std::uint32_t sms) {
  constexpr std::array<std::string_view, kConvolutionPasses> names = {"forward", "input gradient",
                                                                      "weight gradient"};
  return fmt::format("{} of {}, {} SMs", names[pass], convolution, sms);
}

std::string text_of(const cudnn::AlgorithmEstimate& estimate) {
  return fmt::format("algorithm {}, math {}", estimate.algorithm, estimate.math);
}

}  // namespace

// The library.

Result<Cudnn> load_cudnn(const std::string& path) {
  const auto loaded = open_cuda_library("cuDNN", path, kCudnnHelp);
  if (!loaded) return loaded.problems();
  Cudnn library{};
  CudaSymbols symbols(*loaded);
#define PLUMBLINE_CUDNN_LOAD(call) symbols.find(library.call, "cudnn" #call);
  PLUMBLINE_CUDNN_CALLS(PLUMBLINE_CUDNN_LOAD)
#undef PLUMBLINE_CUDNN_LOAD
  if (auto missing = symbols.missing(path, kCudnnHelp)) return *std::move(missing);
  return library;
}

CudnnError::CudnnError(const Cudnn& library, std::string_view call, cudnn::Status status,
                       std::string_view convolution)
    : std::runtime_error(
          fmt::format("{}: {}", call, library.GetErrorString(status)) +
          (convolution.empty() ? std::string() : fmt::format(", for {}", convolution))),
      status_(status) {}

std::string to_text(ElementType type, const CudaConvolution& c) {
  return fmt::format("{} {}x{}x{}x{} to {}, kernel {}, stride {}, padding {}", name(type),
                     c.samples, c.inputs, c.height, c.width, c.outputs, c.kernel, c.stride,
                     c.padding);
}

// Plans.

/// The descriptors of a shape, and its chosen algorithms.
namespace {

/// Keeps the first error other than "not supported".
void note(const CudnnError& error, std::string& first) {
  if (first.empty() && error.status() != cudnn::kNotSupported) first = error.what();
}

}  // namespace

class CudnnConvolutions::Plan {
 public:
  Plan(const Cudnn& library, ElementType type, const CudaConvolution& shape)
      : text(to_text(type, shape)), library_(library) {
    try {
      create(type, shape);
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Plan() { destroy(); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void check(std::string_view call, cudnn::Status status) const {
    if (status != cudnn::kSuccess) throw CudnnError(library_, call, status, text);
  }

  const std::string text;
  cudnn::Tensor x = nullptr;
  cudnn::Tensor y = nullptr;
  cudnn::Filter weight = nullptr;
  cudnn::Convolution convolution = nullptr;
  /// The choice of each pass. Nothing if no algorithm runs: then a plain kernel does the pass.
  std::array<std::optional<Choice>, kConvolutionPasses> choices{};

 private:
  void create(ElementType type, const CudaConvolution& c) {
    const int element = type == ElementType::bf16 ? cudnn::kBf16 : cudnn::kFloat;
    const auto whole = [&](std::int64_t extent) {
      PLUMBLINE_CHECK(extent <= std::numeric_limits<int>::max(), text, extent);
      return static_cast<int>(extent);
    };
    const auto tensor = [&](cudnn::Tensor& made, std::int64_t channels, std::int64_t height,
                            std::int64_t width) {
      check("cudnnCreateTensorDescriptor", library_.CreateTensorDescriptor(&made));
      check("cudnnSetTensor4dDescriptor",
            library_.SetTensor4dDescriptor(made, cudnn::kNchw, element, whole(c.samples),
                                           whole(channels), whole(height), whole(width)));
    };
    tensor(x, c.inputs, c.height, c.width);
    tensor(y, c.outputs, c.places(c.height), c.places(c.width));
    check("cudnnCreateFilterDescriptor", library_.CreateFilterDescriptor(&weight));
    check("cudnnSetFilter4dDescriptor",
          library_.SetFilter4dDescriptor(weight, element, cudnn::kNchw, whole(c.outputs),
                                         whole(c.inputs), whole(c.kernel), whole(c.kernel)));
    check("cudnnCreateConvolutionDescriptor", library_.CreateConvolutionDescriptor(&convolution));
    check("cudnnSetConvolution2dDescriptor",
          library_.SetConvolution2dDescriptor(convolution, whole(c.padding), whole(c.padding),
                                              whole(c.stride), whole(c.stride), 1, 1,
                                              cudnn::kCrossCorrelation, cudnn::kFloat));
  }
  void destroy() {
    if (x != nullptr) library_.DestroyTensorDescriptor(x);
    if (y != nullptr) library_.DestroyTensorDescriptor(y);
    if (weight != nullptr) library_.DestroyFilterDescriptor(weight);
    if (convolution != nullptr) library_.DestroyConvolutionDescriptor(convolution);
  }

  const Cudnn& library_;
};

// Convolutions.

CudnnConvolutions::CudnnConvolutions(const Cudnn& library, CudaChoices& choices)
    : library_(library), plain_(builtin_convolutions()), choices_(choices) {
  const cudnn::Status status = library_.Create(&handle_);
  if (status != cudnn::kSuccess) throw CudnnError(library_, "cudnnCreate", status);
  name_ = "cuDNN " + cuda_library_version(library_.GetVersion());
}

CudnnConvolutions::~CudnnConvolutions() {
  plans_.clear();
  library_.Destroy(handle_);
}

void CudnnConvolutions::try_on(const CudaQueue& queue) {
  const Plan plan(library_, ElementType::fp32, {1, 1, 1, 1, 1});
  const CudaScratch numbers(*queue.driver, 3 * sizeof(float));
  const Operands operands{numbers.data(), numbers.data() + sizeof(float),
                          numbers.data() + 2 * sizeof(float)};
  PLUMBLINE_CUDA(*queue.driver, cuMemsetD8Async, numbers.data(), 0, 3 * sizeof(float),
                 queue.stream);
  std::array<cudnn::AlgorithmEstimate, kMaxEstimates> found{};
  int count = 0;
  estimate(ElementType::fp32, plan, kForwardPass, found.data(), count);
  std::optional<CudnnError> failed;
  for (int i = 0; i < count; ++i) {
    const cudnn::AlgorithmEstimate& estimate = found[static_cast<std::size_t>(i)];
    if (estimate.status != cudnn::kSuccess || estimate.memory > kLikedWorkspace) continue;
    try {
      make_room(queue, estimate.memory);
      enqueue(queue, plan, kForwardPass, {estimate.algorithm, cudnn::kFmaMath, estimate.memory},
              operands, /*adds=*/false);
      PLUMBLINE_CUDA(*queue.driver, cuStreamSynchronize, queue.stream);
      return;
    } catch (const CudnnError& error) {  // another one may run
      if (!failed) failed = error;
    }
  }
  PLUMBLINE_CUDA(*queue.driver, cuStreamSynchronize, queue.stream);
  if (failed) throw CudnnError(*failed);
  plan.check(kPassCalls[kForwardPass], cudnn::kNotSupported);  // the library offers no algorithm
}

void CudnnConvolutions::prepare(const CudaQueue& queue, ElementType type,
                                const CudaConvolution& shape) {
  if (plans_.contains({type, shape})) return;
  auto plan = std::make_unique<Plan>(library_, type, shape);
  const auto operand = [&](std::int64_t elements) {
    CudaScratch memory(*queue.driver, static_cast<std::size_t>(elements * bytes_of(type)));
    cuda::noise(queue, type, memory.data(), static_cast<std::uint32_t>(elements), elements);
    return memory;
  };
  const CudaScratch x = operand(shape.input_elements());
  const CudaScratch weight = operand(shape.weights());
  const CudaScratch y = operand(shape.output_elements());
  for (std::size_t pass = 0; pass < kConvolutionPasses; ++pass) {
    const Operands operands{x.data(), weight.data(), y.data()};
    choose(queue, type, *plan, pass, operands);
  }
  const bool all = std::all_of(plan->choices.begin(), plan->choices.end(),
                               [](const auto& choice) { return choice.has_value(); });
  if (!all) {
    plain_->prepare(queue, type, shape);
    if (!name_.ends_with(kAndPlainKernels)) name_ += kAndPlainKernels;
  }
  // Work on the operands must end before they are freed.
  PLUMBLINE_CUDA(*queue.driver, cuStreamSynchronize, queue.stream);
  plans_.emplace(std::pair(type, shape), std::move(plan));
}

/// The algorithms that the library offers, if any.
std::vector<cudnn::AlgorithmEstimate> CudnnConvolutions::estimates(ElementType type,
                                                                   const Plan& plan,
                                                                   std::size_t pass,
                                                                   std::string& failed) const {
  std::array<cudnn::AlgorithmEstimate, kMaxEstimates> found{};
  int count = 0;
  try {
    estimate(type, plan, pass, found.data(), count);
  } catch (const CudnnError& error) {
    note(error, failed);
    return {};
  }
  return {found.begin(), found.begin() + count};
}

void CudnnConvolutions::estimate(ElementType type, const Plan& plan, std::size_t pass,
                                 cudnn::AlgorithmEstimate* found, int& count) const {
  plan.check("cudnnSetConvolutionMathType",
             library_.SetConvolutionMathType(plan.convolution, math_for(type)));
  switch (pass) {
    case kForwardPass:
      plan.check(
          "cudnnGetConvolutionForwardAlgorithm_v7",
          library_.GetConvolutionForwardAlgorithm_v7(handle_, plan.x, plan.weight, plan.convolution,
                                                     plan.y, kMaxEstimates, &count, found));
      break;
    case kInputPass:
      plan.check("cudnnGetConvolutionBackwardDataAlgorithm_v7",
                 library_.GetConvolutionBackwardDataAlgorithm_v7(handle_, plan.weight, plan.y,
                                                                 plan.convolution, plan.x,
                                                                 kMaxEstimates, &count, found));
      break;
    default:
      plan.check("cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                 library_.GetConvolutionBackwardFilterAlgorithm_v7(handle_, plan.x, plan.y,
                                                                   plan.convolution, plan.weight,
                                                                   kMaxEstimates, &count, found));
  }
}

/// Chooses the fastest deterministic algorithm that runs. In fp32 no operand is rounded to less.
/// For other types an algorithm has the arithmetic of its estimate.
void CudnnConvolutions::choose(const CudaQueue& queue, ElementType type, Plan& plan,
                               std::size_t pass, const Operands& operands) {
  std::string failed;
  std::vector<cudnn::AlgorithmEstimate> fit = estimates(type, plan, pass, failed);
  fit.erase(std::remove_if(fit.begin(), fit.end(),
                           [](const cudnn::AlgorithmEstimate& estimate) {
                             return estimate.status != cudnn::kSuccess ||
                                    estimate.determinism != cudnn::kDeterministic;
                           }),
            fit.end());
  std::stable_sort(fit.begin(), fit.end(),
                   [](const auto& one, const auto& other) { return one.memory < other.memory; });
  // The earlier choice comes first, and is the only one tried if it still runs.
  std::string& chosen = choices_[key_of(plan.text, pass, queue.sms)];
  const std::string known = chosen;
  std::stable_partition(fit.begin(), fit.end(),
                        [&](const auto& estimate) { return text_of(estimate) == known; });
  double min = std::numeric_limits<double>::infinity();
  for (const cudnn::AlgorithmEstimate& estimate : fit) {
    if (estimate.memory > kLikedWorkspace && plan.choices[pass]) break;
    const Choice choice{estimate.algorithm,
                        type == ElementType::fp32 ? cudnn::kFmaMath : estimate.math,
                        estimate.memory};
    try {
      make_room(queue, estimate.memory);
      // All algorithms are timed adding to the output, as all must be able to do that.
      const double time = median_milliseconds(
          queue, [&] { enqueue(queue, plan, pass, choice, operands, /*adds=*/true); });
      if (!is_clearly_faster(time, min)) continue;
      min = time;
      plan.choices[pass] = choice;
      chosen = text_of(estimate);
      if (chosen == known) break;
    } catch (const CudnnError& error) {  // not every estimated algorithm runs
      note(error, failed);
    } catch (const CudaError& error) {
      if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
    }
  }
  if (!plan.choices[pass]) {
    choices_.erase(key_of(plan.text, pass, queue.sms));
    if (trouble_.empty()) trouble_ = std::move(failed);
  }
  // A failed allocation has left a smaller workspace than the other choices need.
  if (const auto& choice = plan.choices[pass]) needed_ = std::max(needed_, choice->memory);
  make_room(queue, needed_);
}

void CudnnConvolutions::make_room(const CudaQueue& queue, std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  PLUMBLINE_CUDA(*queue.driver, cuStreamSynchronize, queue.stream);
  workspace_ = {};
  workspace_bytes_ = 0;
  workspace_ = CudaScratch(*queue.driver, bytes);
  workspace_bytes_ = bytes;
}

void CudnnConvolutions::enqueue(const CudaQueue& queue, const Plan& plan, std::size_t pass,
                                const Choice& choice, const Operands& operands, bool adds) const {
  const float alpha = 1;
  const float beta = adds ? 1 : 0;
  void* const x = memory_at(operands.x);
  void* const y = memory_at(operands.y);
  void* const weight = memory_at(operands.weight);
  void* const workspace = memory_at(workspace_.data());
  plan.check("cudnnSetStream", library_.SetStream(handle_, queue.stream));
  plan.check("cudnnSetConvolutionMathType",
             library_.SetConvolutionMathType(plan.convolution, choice.math));
  cudnn::Status status = cudnn::kSuccess;
  switch (pass) {
    case kForwardPass:
      status = library_.ConvolutionForward(handle_, &alpha, plan.x, x, plan.weight, weight,
                                           plan.convolution, choice.algorithm, workspace,
                                           workspace_bytes_, &beta, plan.y, y);
      break;
    case kInputPass:
      status = library_.ConvolutionBackwardData(handle_, &alpha, plan.weight, weight, plan.y, y,
                                                plan.convolution, choice.algorithm, workspace,
                                                workspace_bytes_, &beta, plan.x, x);
      break;
    default:
      status = library_.ConvolutionBackwardFilter(handle_, &alpha, plan.x, x, plan.y, y,
                                                  plan.convolution, choice.algorithm, workspace,
                                                  workspace_bytes_, &beta, plan.weight, weight);
  }
  plan.check(kPassCalls[pass], status);
}

const CudnnConvolutions::Plan& CudnnConvolutions::plan_of(ElementType type,
                                                          const CudaConvolution& shape) const {
  const auto plan = plans_.find({type, shape});
  PLUMBLINE_CHECK(plan != plans_.end(), "a convolution that was not prepared",
                  to_text(type, shape));
  return *plan->second;
}

void CudnnConvolutions::forward(const CudaQueue& queue, ElementType type,
                                const CudaConvolution& shape, CUdeviceptr y, CUdeviceptr x,
                                CUdeviceptr weight, bool adds) {
  const Plan& plan = plan_of(type, shape);
  if (const auto& choice = plan.choices[kForwardPass]) {
    enqueue(queue, plan, kForwardPass, *choice, {x, weight, y}, adds);
  } else {
    plain_->forward(queue, type, shape, y, x, weight, adds);
  }
}

void CudnnConvolutions::input_gradient(const CudaQueue& queue, ElementType type,
                                       const CudaConvolution& shape, CUdeviceptr x_gradient,
                                       CUdeviceptr y_gradient, CUdeviceptr weight, bool adds) {
  const Plan& plan = plan_of(type, shape);
  if (const auto& choice = plan.choices[kInputPass]) {
    enqueue(queue, plan, kInputPass, *choice, {x_gradient, weight, y_gradient}, adds);
  } else {
    plain_->input_gradient(queue, type, shape, x_gradient, y_gradient, weight, adds);
  }
}

void CudnnConvolutions::weight_gradient(const CudaQueue& queue, ElementType type,
                                        const CudaConvolution& shape, CUdeviceptr weight_gradient,
                                        CUdeviceptr y_gradient, CUdeviceptr x) {
  const Plan& plan = plan_of(type, shape);
  if (const auto& choice = plan.choices[kWeightPass]) {
    enqueue(queue, plan, kWeightPass, *choice, {x, weight_gradient, y_gradient}, /*adds=*/true);
  } else {
    plain_->weight_gradient(queue, type, shape, weight_gradient, y_gradient, x);
  }
}

std::unique_ptr<CudnnConvolutions> start_cudnn(const CudaDriver& driver, const CudaDevice& device,
                                               const Cudnn& library, CudaChoices& choices) {
  const auto started_in = [&](CUcontext context) {
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, context);
    auto convolutions = std::make_unique<CudnnConvolutions>(library, choices);
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, device.context);
    convolutions->try_on(bare_queue(driver, device, device.compute));
    return convolutions;
  };
  try {
    return started_in(device.primary);
  } catch (const std::runtime_error&) {
    return started_in(device.context);
  }
}

}  // namespace plumbline
