// Convolutions by cuDNN without a device: what it is told and what is chosen. A library of our own
// stands in for it, which convolves as its descriptors say.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/cudnn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "calibrate/training/reference_math.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/host_device.h"
#include "tests/support/layer_cases.h"
#include "tests/support/same_call.h"

#if __has_include(<cudnn.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>

namespace plumbline {
namespace {

#define PLUMBLINE_CUDNN_SAME(call) \
  static_assert(test::SameCall<decltype(Cudnn::call), decltype(&::cudnn##call)>::value);
PLUMBLINE_CUDNN_CALLS(PLUMBLINE_CUDNN_SAME)
#undef PLUMBLINE_CUDNN_SAME

static_assert(cudnn::kSuccess == CUDNN_STATUS_SUCCESS);
static_assert(cudnn::kNotSupported == CUDNN_STATUS_NOT_SUPPORTED);
static_assert(cudnn::kFloat == CUDNN_DATA_FLOAT);
static_assert(cudnn::kBf16 == CUDNN_DATA_BFLOAT16);
static_assert(cudnn::kNchw == CUDNN_TENSOR_NCHW);
static_assert(cudnn::kCrossCorrelation == CUDNN_CROSS_CORRELATION);
static_assert(cudnn::kDefaultMath == CUDNN_DEFAULT_MATH);
static_assert(cudnn::kTensorOpMath == CUDNN_TENSOR_OP_MATH);
static_assert(cudnn::kFmaMath == CUDNN_FMA_MATH);
static_assert(cudnn::kDeterministic == CUDNN_DETERMINISTIC);
static_assert(sizeof(cudnn::AlgorithmEstimate) == sizeof(cudnnConvolutionFwdAlgoPerf_t));
static_assert(sizeof(cudnn::AlgorithmEstimate) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t));
static_assert(sizeof(cudnn::AlgorithmEstimate) == sizeof(cudnnConvolutionBwdFilterAlgoPerf_t));
static_assert(offsetof(cudnn::AlgorithmEstimate, memory) ==
              offsetof(cudnnConvolutionFwdAlgoPerf_t, memory));
static_assert(offsetof(cudnn::AlgorithmEstimate, determinism) ==
              offsetof(cudnnConvolutionFwdAlgoPerf_t, determinism));

}  // namespace
}  // namespace plumbline
#pragma GCC diagnostic pop
#endif

namespace plumbline {
namespace {

using test::difference;
using test::Floats;
using test::HostDevice;
using test::Numbers;
using test::Stored;

// The library.

/// A descriptor of any kind: the numbers that it was set to, in order.
struct CudnnDescriptor {
  std::vector<int> numbers;
  int math = -1;
};

/// An algorithm that it offers.
struct Offer {
  double milliseconds = 1;
  bool runs = true;
  bool is_deterministic = true;
  std::size_t memory = 0;
  int math = cudnn::kDefaultMath;
};

/// The settings and counts of the fake functions; reset by each test.
struct FakeCudnn {
  bool starts = true;
  int alive = 0;  ///< Handles and descriptors.
  std::vector<Offer> offers = {{}};
  cudnn::Status broken_by =
      cudnn::kNotSupported;  ///< The status of an algorithm that does not run.
  std::vector<int> ran{};
  int math = -1;        ///< Math type of the last call.
  int asked_math = -1;  ///< Math type of the last query for algorithms.
  double clock = 0;
};
FakeCudnn fake_cudnn;

template <class Handle>
cudnn::Status made(Handle* to) {
  ++fake_cudnn.alive;
  *to = reinterpret_cast<Handle>(new CudnnDescriptor);
  return cudnn::kSuccess;
}

template <class Handle>
cudnn::Status gone(Handle of) {
  --fake_cudnn.alive;
  delete reinterpret_cast<CudnnDescriptor*>(of);
  return cudnn::kSuccess;
}

template <class Handle>
CudnnDescriptor& told(Handle of) {
  return *reinterpret_cast<CudnnDescriptor*>(of);
}

cudnn::Status offer(cudnn::Convolution how, int asked, int* returned,
                    cudnn::AlgorithmEstimate* estimates) {
  fake_cudnn.asked_math = told(how).math;
  *returned = std::min(asked, static_cast<int>(fake_cudnn.offers.size()));
  for (int i = 0; i < *returned; ++i) {
    const Offer& one = fake_cudnn.offers[static_cast<std::size_t>(i)];
    estimates[i] = {i, cudnn::kSuccess, 1, one.memory, one.is_deterministic ? 1 : 0, one.math, {}};
  }
  return cudnn::kSuccess;
}

/// The window that three descriptors tell, which have to agree.
reference::Window window_of(cudnn::Tensor x, cudnn::Filter weight, cudnn::Convolution how,
                            cudnn::Tensor y) {
  const std::vector<int>& image = told(x).numbers;        // format, type, n, c, h, w
  const std::vector<int>& filter = told(weight).numbers;  // type, format, k, c, h, w
  const std::vector<int>& steps = told(how).numbers;      // padding, stride, dilation, mode, type
  const std::vector<int>& output = told(y).numbers;
  REQUIRE(image[0] == cudnn::kNchw);
  REQUIRE(filter[1] == cudnn::kNchw);
  REQUIRE(image[1] == filter[0]);
  REQUIRE(filter[4] == filter[5]);
  REQUIRE(steps[0] == steps[1]);
  REQUIRE(steps[2] == steps[3]);
  REQUIRE(steps[4] == 1);
  REQUIRE(steps[5] == 1);
  REQUIRE(steps[6] == cudnn::kCrossCorrelation);
  REQUIRE(steps[7] == cudnn::kFloat);
  REQUIRE(filter[3] == image[3]);
  const reference::Window window{image[2],  image[3], image[4], image[5],
                                 filter[4], steps[2], steps[0]};
  REQUIRE(output == std::vector<int>{cudnn::kNchw, image[1], image[2], filter[2],
                                     static_cast<int>(window.places(image[4])),
                                     static_cast<int>(window.places(image[5]))});
  fake_cudnn.math = told(how).math;
  return window;
}

/// fp32 is computed; bf16 only runs.
template <class Compute>
cudnn::Status run(int algorithm, std::size_t bytes, const void* alpha, const void* beta,
                  cudnn::Tensor x, void* to, Compute&& compute) {
  const Offer& chosen = fake_cudnn.offers.at(static_cast<std::size_t>(algorithm));
  if (!chosen.runs) return fake_cudnn.broken_by;
  REQUIRE(bytes >= chosen.memory);
  fake_cudnn.ran.push_back(algorithm);
  fake_cudnn.clock += chosen.milliseconds;
  REQUIRE(*static_cast<const float*>(alpha) == 1);
  if (told(x).numbers[1] != cudnn::kFloat) return cudnn::kSuccess;
  const Values made = compute();
  const bool adds = *static_cast<const float*>(beta) != 0;
  auto* const elements = static_cast<float*>(to);
  for (std::size_t i = 0; i < made.size(); ++i)
    elements[i] = static_cast<float>(made[i] + (adds ? elements[i] : 0));
  return cudnn::kSuccess;
}

Values values(const void* data, const std::vector<int>& extents) {
  std::size_t count = 1;
  for (std::size_t i = 2; i < 6; ++i) count *= static_cast<std::size_t>(extents[i]);
  const auto* const first = static_cast<const float*>(data);
  return {first, first + count};
}

Cudnn fake_cudnn_library() {
  fake_cudnn = {};
  Cudnn f{};
  f.GetVersion = []() -> std::size_t { return 91900; };
  f.GetErrorString = [](cudnn::Status status) {
    return status == cudnn::kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS";
  };
  f.Create = [](cudnn::Handle* handle) {
    return fake_cudnn.starts ? made(handle) : cudnn::Status{1001};
  };
  f.Destroy = gone<cudnn::Handle>;
  f.SetStream = [](cudnn::Handle, CUstream) { return cudnn::kSuccess; };
  f.CreateTensorDescriptor = made<cudnn::Tensor>;
  f.SetTensor4dDescriptor = [](cudnn::Tensor of, int format, int type, int n, int c, int h, int w) {
    told(of).numbers = {format, type, n, c, h, w};
    return cudnn::kSuccess;
  };
  f.DestroyTensorDescriptor = gone<cudnn::Tensor>;
  f.CreateFilterDescriptor = made<cudnn::Filter>;
  f.SetFilter4dDescriptor = [](cudnn::Filter of, int type, int format, int k, int c, int h, int w) {
    told(of).numbers = {type, format, k, c, h, w};
    return cudnn::kSuccess;
  };
  f.DestroyFilterDescriptor = gone<cudnn::Filter>;
  f.CreateConvolutionDescriptor = made<cudnn::Convolution>;
  f.SetConvolution2dDescriptor = [](cudnn::Convolution of, int pad_h, int pad_w, int stride_h,
                                    int stride_w, int dilation_h, int dilation_w, int mode,
                                    int compute) {
    told(of).numbers = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, mode, compute};
    return cudnn::kSuccess;
  };
  f.SetConvolutionMathType = [](cudnn::Convolution of, int math) {
    told(of).math = math;
    return cudnn::kSuccess;
  };
  f.DestroyConvolutionDescriptor = gone<cudnn::Convolution>;
  f.GetConvolutionForwardAlgorithm_v7 = [](cudnn::Handle, cudnn::Tensor, cudnn::Filter,
                                           cudnn::Convolution how, cudnn::Tensor, int asked,
                                           int* returned, cudnn::AlgorithmEstimate* estimates) {
    return offer(how, asked, returned, estimates);
  };
  f.GetConvolutionBackwardDataAlgorithm_v7 =
      [](cudnn::Handle, cudnn::Filter, cudnn::Tensor, cudnn::Convolution how, cudnn::Tensor,
         int asked, int* returned,
         cudnn::AlgorithmEstimate* estimates) { return offer(how, asked, returned, estimates); };
  f.GetConvolutionBackwardFilterAlgorithm_v7 =
      [](cudnn::Handle, cudnn::Tensor, cudnn::Tensor, cudnn::Convolution how, cudnn::Filter,
         int asked, int* returned,
         cudnn::AlgorithmEstimate* estimates) { return offer(how, asked, returned, estimates); };
  f.ConvolutionForward = [](cudnn::Handle, const void* alpha, cudnn::Tensor x, const void* x_data,
                            cudnn::Filter weight, const void* weight_data, cudnn::Convolution how,
                            int algorithm, void*, std::size_t bytes, const void* beta,
                            cudnn::Tensor y, void* y_data) {
    const reference::Window window = window_of(x, weight, how, y);
    return run(algorithm, bytes, alpha, beta, x, y_data, [&] {
      return reference::convolution(values(x_data, told(x).numbers),
                                    values(weight_data, told(weight).numbers), window);
    });
  };
  f.ConvolutionBackwardData = [](cudnn::Handle, const void* alpha, cudnn::Filter weight,
                                 const void* weight_data, cudnn::Tensor y, const void* y_data,
                                 cudnn::Convolution how, int algorithm, void*, std::size_t bytes,
                                 const void* beta, cudnn::Tensor x, void* x_data) {
    const reference::Window window = window_of(x, weight, how, y);
    return run(algorithm, bytes, alpha, beta, x, x_data, [&] {
      return reference::convolution_input_gradient(
          values(y_data, told(y).numbers), values(weight_data, told(weight).numbers), window);
    });
  };
  f.ConvolutionBackwardFilter = [](cudnn::Handle, const void* alpha, cudnn::Tensor x,
                                   const void* x_data, cudnn::Tensor y, const void* y_data,
                                   cudnn::Convolution how, int algorithm, void*, std::size_t bytes,
                                   const void* beta, cudnn::Filter weight, void* weight_data) {
    const reference::Window window = window_of(x, weight, how, y);
    return run(algorithm, bytes, alpha, beta, x, weight_data, [&] {
      return reference::convolution_weight_gradient(values(y_data, told(y).numbers),
                                                    values(x_data, told(x).numbers), window);
    });
  };
  return f;
}

/// A host device with events by the library's clock.
struct FakeConvolutions {
  HostDevice device;
  CudaChoices choices;
  std::unique_ptr<CudnnConvolutions> convolutions;

  explicit FakeConvolutions(const Cudnn& functions = fake_cudnn_library())
      : convolutions(std::make_unique<CudnnConvolutions>(functions, choices)) {
    device.queue.convolutions = convolutions.get();
    test::note_events_by(fake_cudnn.clock, device.driver);
  }

  void prepare(const CudaConvolution& shape, ElementType type = ElementType::fp32) {
    convolutions->prepare(device.queue, type, shape);
  }
};

constexpr CudaConvolution kSomeShape{2, 3, 6, 5, 4, 3, 2, 1};

TEST_CASE("cudnn: every pass is told as it is, and adds where it should") {
  const reference::Window window{2, 3, 6, 5, 3, 2, 1};
  FakeConvolutions fake;
  fake.prepare(kSomeShape);
  Numbers numbers(1);
  const ElementType type = ElementType::fp32;
  Stored x(type, numbers.between(-1, 1, kSomeShape.input_elements()));
  Stored weight(type, numbers.between(-1, 1, kSomeShape.weights()));
  Stored y(type, numbers.between(-1, 1, kSomeShape.output_elements()));
  const auto plus = [](Values sum, const Values& term, bool adds) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = term[i] + (adds ? sum[i] : 0);
    return sum;
  };
  for (const bool adds : {false, true}) {
    CAPTURE(adds);
    Stored made = y;
    fake.convolutions->forward(fake.device.queue, type, kSomeShape, made.data(), x.data(),
                               weight.data(), adds);
    CHECK(difference(made.floats(),
                     plus(y.values(), reference::convolution(x.values(), weight.values(), window),
                          adds)) < 1e-6);
    made = x;
    fake.convolutions->input_gradient(fake.device.queue, type, kSomeShape, made.data(), y.data(),
                                      weight.data(), adds);
    CHECK(difference(made.floats(), plus(x.values(),
                                         reference::convolution_input_gradient(
                                             y.values(), weight.values(), window),
                                         adds)) < 1e-6);
  }
  Stored made = weight;
  fake.convolutions->weight_gradient(fake.device.queue, type, kSomeShape, made.data(), y.data(),
                                     x.data());
  CHECK(difference(made.floats(),
                   plus(weight.values(),
                        reference::convolution_weight_gradient(y.values(), x.values(), window),
                        true)) < 1e-6);
  CHECK(fake.convolutions->name() == "cuDNN 9.19.0");
}

TEST_CASE("cudnn: the fastest of the algorithms that run and make the same bits stays") {
  FakeConvolutions fake;
  fake_cudnn.offers = {{.milliseconds = 3},
                       {.milliseconds = 1, .runs = false},
                       {.milliseconds = 0.5, .is_deterministic = false},
                       {.milliseconds = 2, .memory = 4096},
                       {.milliseconds = 0.1, .memory = std::size_t{1} << 40}};
  fake.prepare(kSomeShape);
  const std::size_t tried = fake_cudnn.ran.size();
  fake.prepare(kSomeShape);  // it is known
  CHECK(fake_cudnn.ran.size() == tried);
  for (const int never : {1, 2, 4})
    CHECK(std::find(fake_cudnn.ran.begin(), fake_cudnn.ran.end(), never) == fake_cudnn.ran.end());
  Stored x(ElementType::fp32, kSomeShape.input_elements());
  Stored weight(ElementType::fp32, kSomeShape.weights());
  Stored y(ElementType::fp32, kSomeShape.output_elements());
  fake.convolutions->forward(fake.device.queue, ElementType::fp32, kSomeShape, y.data(), x.data(),
                             weight.data(), false);
  fake.convolutions->input_gradient(fake.device.queue, ElementType::fp32, kSomeShape, x.data(),
                                    y.data(), weight.data(), false);
  fake.convolutions->weight_gradient(fake.device.queue, ElementType::fp32, kSomeShape,
                                     weight.data(), y.data(), x.data());
  CHECK(std::vector<int>(fake_cudnn.ran.end() - 3, fake_cudnn.ran.end()) ==
        std::vector<int>{3, 3, 3});
}

TEST_CASE("cudnn: what fails is trouble only where nothing else runs") {
  for (const bool other_runs : {true, false}) {
    FakeConvolutions fake;
    fake_cudnn.offers = {{.runs = false}, {.runs = other_runs}};
    fake_cudnn.broken_by = 5000;  // executing has failed
    fake.prepare(kSomeShape);
    CHECK(fake.convolutions->name().ends_with(" and plain kernels") == !other_runs);
    CHECK(fake.convolutions->trouble().empty() == other_runs);
  }
}

TEST_CASE("cudnn: fp32 stays fp32; elsewhere an algorithm has the arithmetic of its estimate") {
  FakeConvolutions fake;
  fake_cudnn.offers = {{.milliseconds = 2, .math = cudnn::kTensorOpMath},
                       {.milliseconds = 1, .math = cudnn::kDefaultMath}};
  struct Of {
    ElementType type;
    int asked;
    int used;
  };
  for (const Of& of : {Of{ElementType::fp32, cudnn::kFmaMath, cudnn::kFmaMath},
                       Of{ElementType::tf32, cudnn::kDefaultMath, cudnn::kDefaultMath},
                       Of{ElementType::bf16, cudnn::kTensorOpMath, cudnn::kDefaultMath}}) {
    fake.prepare(kSomeShape, of.type);
    CHECK(fake_cudnn.asked_math == of.asked);
    Stored x(of.type, kSomeShape.input_elements());
    Stored weight(of.type, kSomeShape.weights());
    Stored y(of.type, kSomeShape.output_elements());
    fake.convolutions->forward(fake.device.queue, of.type, kSomeShape, y.data(), x.data(),
                               weight.data(), false);
    CHECK(fake_cudnn.ran.back() == 1);
    CHECK(fake_cudnn.math == of.used);
  }
}

TEST_CASE("cudnn: a large workspace is taken where nothing else runs, and else a plain kernel") {
  Numbers numbers(3);
  const ElementType type = ElementType::fp32;
  Stored x(type, numbers.between(-1, 1, kSomeShape.input_elements()));
  Stored weight(type, numbers.between(-1, 1, kSomeShape.weights()));
  const Stored gradients(type, numbers.between(-1, 1, kSomeShape.output_elements()));
  const reference::Window window{2, 3, 6, 5, 3, 2, 1};
  for (const bool has_large : {false, true}) {
    CAPTURE(has_large);
    FakeConvolutions fake;
    fake_cudnn.offers = {{.runs = false}, {.is_deterministic = false}};
    if (has_large) fake_cudnn.offers.push_back({.memory = std::size_t{300} << 20});
    fake.prepare(kSomeShape);
    CHECK(fake.convolutions->name() ==
          (has_large ? "cuDNN 9.19.0" : "cuDNN 9.19.0 and plain kernels"));
    fake_cudnn.ran.clear();
    Stored y(type, kSomeShape.output_elements());
    fake.convolutions->forward(fake.device.queue, type, kSomeShape, y.data(), x.data(),
                               weight.data(), false);
    CHECK(difference(y.floats(), reference::convolution(x.values(), weight.values(), window)) <
          1e-6);
    y = gradients;
    Stored made(type, kSomeShape.input_elements());
    fake.convolutions->input_gradient(fake.device.queue, type, kSomeShape, made.data(), y.data(),
                                      weight.data(), false);
    CHECK(difference(made.floats(), reference::convolution_input_gradient(
                                        y.values(), weight.values(), window)) < 1e-6);
    made = Stored(type, Floats(kSomeShape.weights(), 0));
    fake.convolutions->weight_gradient(fake.device.queue, type, kSomeShape, made.data(), y.data(),
                                       x.data());
    CHECK(difference(made.floats(), reference::convolution_weight_gradient(y.values(), x.values(),
                                                                           window)) < 1e-6);
    CHECK(fake_cudnn.ran == (has_large ? std::vector<int>{2, 2, 2} : std::vector<int>{}));
  }
}

TEST_CASE(
    "cudnn: an algorithm whose workspace has no room is not taken, and takes none from others") {
  FakeConvolutions fake;
  static decltype(CudaDriver::cuMemAlloc) host_alloc;
  host_alloc = fake.device.driver.cuMemAlloc;
  fake.device.driver.cuMemAlloc = [](CUdeviceptr* data, std::size_t bytes) {
    return bytes > (std::size_t{64} << 20) ? CUDA_ERROR_OUT_OF_MEMORY : host_alloc(data, bytes);
  };
  fake_cudnn.offers = {{.milliseconds = 1, .memory = std::size_t{128} << 20},
                       {.milliseconds = 2, .memory = std::size_t{1} << 20}};
  fake.prepare(kSomeShape);
  Stored x(ElementType::fp32, kSomeShape.input_elements());
  Stored weight(ElementType::fp32, kSomeShape.weights());
  Stored y(ElementType::fp32, kSomeShape.output_elements());
  // The library looks at the size of the workspace.
  fake.convolutions->forward(fake.device.queue, ElementType::fp32, kSomeShape, y.data(), x.data(),
                             weight.data(), false);
  CHECK(fake_cudnn.ran.back() == 1);
}

TEST_CASE("cudnn: choices are taken back where the library still offers them") {
  const auto ran_with = [](const CudaChoices& choices, bool second_runs = true) {
    FakeConvolutions fake;
    fake.choices = choices;
    fake_cudnn.offers = {{.milliseconds = 1}, {.milliseconds = 3, .runs = second_runs}};
    fake.prepare(kSomeShape);
    const auto timed = fake_cudnn.ran;
    return std::pair(fake.choices, std::set<int>(timed.begin(), timed.end()));
  };
  const auto [chosen, timed] = ran_with({});
  REQUIRE(chosen.size() == 3);
  CHECK(timed == std::set<int>{0, 1});
  CudaChoices others = chosen;
  for (auto& [key, algorithm] : others) {
    CHECK(algorithm == "algorithm 0, math 0");
    algorithm = "algorithm 1, math 0";
  }
  CHECK(ran_with(others) == std::pair(others, std::set<int>{1}));  // although it is slower
  CHECK(ran_with(others, /*second_runs=*/false).first == chosen);
  CudaChoices strange = chosen;
  for (auto& [key, algorithm] : strange) algorithm = "algorithm 7, math 0";
  CHECK(ran_with(strange) == std::pair(chosen, std::set<int>{0, 1}));
}

TEST_CASE("cudnn: where it cannot even say what it could do, a plain kernel does it") {
  Cudnn functions = fake_cudnn_library();
  functions.GetConvolutionBackwardFilterAlgorithm_v7 =
      [](cudnn::Handle, cudnn::Tensor, cudnn::Tensor, cudnn::Convolution, cudnn::Filter, int, int*,
         cudnn::AlgorithmEstimate*) { return cudnn::kNotSupported; };
  FakeConvolutions fake(functions);
  fake.prepare(kSomeShape);
  CHECK(fake.convolutions->name().ends_with(" and plain kernels"));
  CHECK(fake.convolutions->trouble().empty());
  CHECK(fake.choices.size() == 2);
  functions.GetConvolutionBackwardFilterAlgorithm_v7 =
      [](cudnn::Handle, cudnn::Tensor, cudnn::Tensor, cudnn::Convolution, cudnn::Filter, int, int*,
         cudnn::AlgorithmEstimate*) { return cudnn::Status{5000}; };  // executing has failed
  FakeConvolutions lost(functions);
  lost.prepare(kSomeShape);
  CHECK(std::string(lost.convolutions->trouble())
            .starts_with("cudnnGetConvolutionBackwardFilterAlgorithm_v7: "));
}

TEST_CASE("cudnn: what it makes is destroyed; a library that does not start is told") {
  {
    FakeConvolutions fake;
    fake.prepare(kSomeShape);
    CHECK(fake_cudnn.alive == 5);
    fake.convolutions.reset();
    CHECK(fake_cudnn.alive == 0);
  }
  const Cudnn functions = fake_cudnn_library();
  fake_cudnn.starts = false;
  CudaChoices choices;
  CHECK_THROWS_WITH_AS(CudnnConvolutions(functions, choices), "cudnnCreate: CUDNN_STATUS",
                       CudnnError);
}

TEST_CASE("cudnn: it starts in the GPU's own context, or else in that of its streams") {
  FakeCuda fake;
  const auto opened = open_cuda_devices(fake.driver(), 2, true);
  REQUIRE(opened);
  const CudaDevice& device = (*opened)->all()[1];
  REQUIRE(device.primary != device.context);
  static const CudaDriver* driver = nullptr;
  static std::vector<CUcontext> started;
  static bool takes_streams_of_others = true;
  driver = &fake.driver();
  Cudnn functions = fake_cudnn_library();
  functions.Create = [](cudnn::Handle* handle) {
    CUcontext current = nullptr;
    driver->cuCtxGetCurrent(&current);
    started.push_back(current);
    return made(handle);
  };
  functions.SetStream = [](cudnn::Handle, CUstream) {
    CUcontext current = nullptr;
    driver->cuCtxGetCurrent(&current);
    const bool takes = takes_streams_of_others || started.back() == current;
    return takes ? cudnn::kSuccess : cudnn::Status{2007};
  };
  CudaChoices choices;
  for (const bool takes : {true, false}) {
    CAPTURE(takes);
    started.clear();
    takes_streams_of_others = takes;
    {
      const auto convolutions = start_cudnn(*driver, device, functions, choices);
      CHECK(fake_cudnn.alive == 1);
    }
    CHECK(fake_cudnn.alive == 0);
    const std::vector<CUcontext> wanted =
        takes ? std::vector{device.primary} : std::vector{device.primary, device.context};
    CHECK(started == wanted);
  }
}

TEST_CASE("cudnn: it is tried with what it offers until something runs") {
  FakeCuda fake;
  const auto opened = open_cuda_devices(fake.driver(), 1, false);
  REQUIRE(opened);
  const CudaDevice& device = (*opened)->all().front();
  const Cudnn functions = fake_cudnn_library();
  CudaChoices choices;
  Offer broken;
  broken.runs = false;
  Offer needy;
  needy.memory = std::size_t{1} << 20;
  fake_cudnn.offers = {broken, needy};
  CHECK_NOTHROW(start_cudnn(fake.driver(), device, functions, choices));
  CHECK(fake_cudnn.ran == std::vector{1});
  for (const std::vector<Offer>& none : {std::vector{broken, broken}, std::vector<Offer>{}}) {
    fake_cudnn.offers = none;
    CHECK_THROWS_WITH_AS(start_cudnn(fake.driver(), device, functions, choices),
                         "cudnnConvolutionForward: CUDNN_STATUS_NOT_SUPPORTED, for fp32 1x1x1x1 to "
                         "1, kernel 1, stride 1, padding 0",
                         CudnnError);
  }
  CHECK(fake_cudnn.alive == 0);
}

TEST_CASE("cudnn: a file that is not there, and one that is another library") {
  const auto missing = load_cudnn("/nowhere/libcudnn.so");
  REQUIRE_FALSE(missing);
  CHECK(missing.problems().front().fault == Fault::no_device);
  CHECK(missing.problems().front().message.starts_with(
      "cuDNN cannot be loaded: /nowhere/libcudnn.so: "));
  const auto other = load_cudnn("libc.so.6");
  REQUIRE_FALSE(other);
  CHECK(other.problems().front().message == "'libc.so.6' lacks cudnnGetVersion");
}

TEST_CASE("cudnn: the real library has every function that is called") {
  const auto real = load_cudnn("libcudnn.so.9");
  const auto in_toolkit = load_cudnn("/usr/local/cuda/lib64/libcudnn.so.9");
  if (!real && !in_toolkit) {
    MESSAGE("skipped: ", real.problems().front().message);
    return;
  }
  const Cudnn& library = real ? *real : *in_toolkit;
  CHECK(library.GetVersion() >= 90000);
  // Descriptors need no device.
  cudnn::Tensor tensor = nullptr;
  REQUIRE(library.CreateTensorDescriptor(&tensor) == cudnn::kSuccess);
  CHECK(library.SetTensor4dDescriptor(tensor, cudnn::kNchw, cudnn::kBf16, 2, 3, 6, 5) ==
        cudnn::kSuccess);
  CHECK(library.SetTensor4dDescriptor(tensor, cudnn::kNchw, cudnn::kBf16, 2, -3, 6, 5) !=
        cudnn::kSuccess);
  CHECK(library.DestroyTensorDescriptor(tensor) == cudnn::kSuccess);
  cudnn::Filter filter = nullptr;
  REQUIRE(library.CreateFilterDescriptor(&filter) == cudnn::kSuccess);
  CHECK(library.SetFilter4dDescriptor(filter, cudnn::kFloat, cudnn::kNchw, 4, 3, 3, 3) ==
        cudnn::kSuccess);
  CHECK(library.DestroyFilterDescriptor(filter) == cudnn::kSuccess);
  cudnn::Convolution convolution = nullptr;
  REQUIRE(library.CreateConvolutionDescriptor(&convolution) == cudnn::kSuccess);
  CHECK(library.SetConvolution2dDescriptor(convolution, 1, 1, 2, 2, 1, 1, cudnn::kCrossCorrelation,
                                           cudnn::kFloat) == cudnn::kSuccess);
  for (const int math : {cudnn::kDefaultMath, cudnn::kTensorOpMath, cudnn::kFmaMath})
    CHECK(library.SetConvolutionMathType(convolution, math) == cudnn::kSuccess);
  CHECK(library.DestroyConvolutionDescriptor(convolution) == cudnn::kSuccess);
  CHECK(std::string(library.GetErrorString(cudnn::kNotSupported)) == "CUDNN_STATUS_NOT_SUPPORTED");
}

}  // namespace
}  // namespace plumbline
