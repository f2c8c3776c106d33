// libcudnn.so.9 without a GPU: descriptors, a few algorithms, and convolutions on the made-up
// device.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/cudnn.h"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/rehearsal/elements.h"
#include "tests/rehearsal/enqueue.h"

namespace plumbline::cudnn {
namespace {

using rehearsal::load;
using rehearsal::store;

struct Context {
  CUstream stream = nullptr;
};

struct Descriptor {
  std::array<int, 8> numbers{};
};

template <class Of>
const std::array<int, 8>& told(Of of) {
  return reinterpret_cast<const Descriptor*>(of)->numbers;
}
template <class Of>
Status made(Of* to) {
  *to = reinterpret_cast<Of>(new Descriptor);
  return kSuccess;
}
template <class Of>
Status gone(Of of) {
  delete reinterpret_cast<Descriptor*>(of);
  return kSuccess;
}
template <class Of>
Status set(Of of, const std::array<int, 8>& numbers) {
  reinterpret_cast<Descriptor*>(of)->numbers = numbers;
  return kSuccess;
}

enum class Pass { forward, input_gradient, weight_gradient };

struct Convolved {
  Pass pass{};
  std::array<int, 8> x{}, weight{}, how{}, y{};
  unsigned char* x_data = nullptr;
  unsigned char* weight_data = nullptr;
  unsigned char* y_data = nullptr;
  bool adds = false;

  double operations() const {  // of y's places, each a sum over inputs and the window
    return 2.0 * y[2] * y[3] * y[4] * y[5] * weight[3] * weight[4] * weight[5];
  }

  void compute() const {
    const bool half = x[1] == kBf16;
    const auto count = [](const std::array<int, 8>& of) {
      return static_cast<std::size_t>(of[2]) * of[3] * of[4] * of[5];
    };
    const std::array<int, 8>& to = pass == Pass::forward          ? y
                                   : pass == Pass::input_gradient ? x
                                                                  : weight;
    unsigned char* const data = pass == Pass::forward          ? y_data
                                : pass == Pass::input_gradient ? x_data
                                                               : weight_data;
    std::vector<double> sums(count(to));
    const auto at = [](const std::array<int, 8>& of, int a, int b, int c, int d) {
      return ((static_cast<std::size_t>(a) * of[3] + b) * of[4] + c) * of[5] + d;
    };
    for (int n = 0; n < y[2]; ++n) {
      for (int k = 0; k < y[3]; ++k) {
        for (int row = 0; row < y[4]; ++row) {
          for (int column = 0; column < y[5]; ++column) {
            const std::size_t of_y = at(y, n, k, row, column);
            for (int c = 0; c < weight[3]; ++c) {
              for (int i = 0; i < weight[4]; ++i) {
                for (int j = 0; j < weight[5]; ++j) {
                  const int h = row * how[2] + i - how[0];
                  const int w = column * how[3] + j - how[1];
                  if (h < 0 || h >= x[4] || w < 0 || w >= x[5]) continue;
                  const std::size_t of_x = at(x, n, c, h, w);
                  const std::size_t of_weight = at(weight, k, c, i, j);
                  const auto value = [&](const unsigned char* from, std::size_t place) {
                    return static_cast<double>(load(from, place, half));
                  };
                  if (pass == Pass::forward) {
                    sums[of_y] += value(x_data, of_x) * value(weight_data, of_weight);
                  } else if (pass == Pass::input_gradient) {
                    sums[of_x] += value(y_data, of_y) * value(weight_data, of_weight);
                  } else {
                    sums[of_weight] += value(x_data, of_x) * value(y_data, of_y);
                  }
                }
              }
            }
          }
        }
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
      store(data, i, half, static_cast<float>(sums[i] + (adds ? load(data, i, half) : 0)));
  }
};

/// Shares of what an SM can do; the last one does not run.
constexpr double kEfficiency[] = {0.35, 0.55, 0.45, 0.7};
constexpr int kBroken = 3;

Status offered(Convolution how, int asked, int* returned, AlgorithmEstimate* estimates) {
  *returned = std::min(asked, static_cast<int>(std::size(kEfficiency)));
  for (int i = 0; i < *returned; ++i)
    estimates[i] = {i, kSuccess, 1.0F, std::size_t{1} << 20, i == 2 ? 0 : 1, told(how)[7], {}};
  return kSuccess;
}

unsigned char* bytes(const void* data) {
  return static_cast<unsigned char*>(const_cast<void*>(data));
}

Status enqueue(Handle handle, int algorithm, std::size_t workspace, Convolved convolved) {
  if (algorithm < 0 || algorithm >= kBroken || workspace < std::size_t{1} << 20)
    return kNotSupported;
  const CUstream stream = reinterpret_cast<const Context*>(handle)->stream;
  const unsigned sms = plumbline_rehearsal_sms(stream);
  if (sms == 0) return 2000;  // CUDNN_STATUS_BAD_PARAM
  const bool half = convolved.x[1] == kBf16;
  const double of_sm = (half ? 7000 : 3000) * kEfficiency[algorithm];  // operations in a nanosecond
  const double operations = convolved.operations();
  const double held = std::min<double>(sms, std::max(1.0, operations / 2e6));
  const auto elements = [](const std::array<int, 8>& of) {
    return static_cast<double>(of[2]) * of[3] * of[4] * of[5];
  };
  const double moved =
      (half ? 2 : 4) * (elements(convolved.x) + elements(convolved.weight) + elements(convolved.y));
  auto kept = std::make_unique<Convolved>(convolved);
  const auto act = [](void* of) { static_cast<const Convolved*>(of)->compute(); };
  const auto forget = [](void* of) { delete static_cast<Convolved*>(of); };
  const int result =
      plumbline_rehearsal_enqueue(stream, "cudnn", 3000 + operations / (of_sm * held), moved, held,
                                  rehearsal::computes() ? +act : nullptr, kept.release(), forget);
  return result == 0 ? kSuccess : 5000;  // CUDNN_STATUS_EXECUTION_FAILED
}

bool adds(const void* beta) { return *static_cast<const float*>(beta) != 0; }

}  // namespace
}  // namespace plumbline::cudnn

extern "C" {

using namespace plumbline::cudnn;

std::size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(Status status) {
  return status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS";
}
Status cudnnCreate(Handle* handle) {
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return 1001;
  *handle = reinterpret_cast<Handle>(new Context);
  return kSuccess;
}
Status cudnnDestroy(Handle handle) {
  delete reinterpret_cast<Context*>(handle);
  return kSuccess;
}
Status cudnnSetStream(Handle handle, CUstream stream) {
  reinterpret_cast<Context*>(handle)->stream = stream;
  return kSuccess;
}
Status cudnnCreateTensorDescriptor(Tensor* to) { return made(to); }
Status cudnnSetTensor4dDescriptor(Tensor of, int format, int type, int n, int c, int h, int w) {
  return set(of, {format, type, n, c, h, w});
}
Status cudnnDestroyTensorDescriptor(Tensor of) { return gone(of); }
Status cudnnCreateFilterDescriptor(Filter* to) { return made(to); }
Status cudnnSetFilter4dDescriptor(Filter of, int type, int format, int k, int c, int h, int w) {
  return set(of, {type, format, k, c, h, w});
}
Status cudnnDestroyFilterDescriptor(Filter of) { return gone(of); }
Status cudnnCreateConvolutionDescriptor(Convolution* to) { return made(to); }
Status cudnnSetConvolution2dDescriptor(Convolution of, int pad_h, int pad_w, int stride_h,
                                       int stride_w, int dilation_h, int dilation_w, int mode,
                                       int) {
  return set(of, {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, mode, 0});
}
Status cudnnSetConvolutionMathType(Convolution of, int math) {
  reinterpret_cast<Descriptor*>(of)->numbers[7] = math;
  return kSuccess;
}
Status cudnnDestroyConvolutionDescriptor(Convolution of) { return gone(of); }
Status cudnnGetConvolutionForwardAlgorithm_v7(Handle, Tensor, Filter, Convolution how, Tensor,
                                              int asked, int* returned,
                                              AlgorithmEstimate* estimates) {
  return offered(how, asked, returned, estimates);
}
Status cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle, Filter, Tensor, Convolution how, Tensor,
                                                   int asked, int* returned,
                                                   AlgorithmEstimate* estimates) {
  return offered(how, asked, returned, estimates);
}
Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle, Tensor, Tensor, Convolution how,
                                                     Filter, int asked, int* returned,
                                                     AlgorithmEstimate* estimates) {
  return offered(how, asked, returned, estimates);
}
Status cudnnConvolutionForward(Handle handle, const void*, Tensor x, const void* x_data,
                               Filter weight, const void* weight_data, Convolution how,
                               int algorithm, void*, std::size_t workspace, const void* beta,
                               Tensor y, void* y_data) {
  return enqueue(handle, algorithm, workspace,
                 {Pass::forward, told(x), told(weight), told(how), told(y), bytes(x_data),
                  bytes(weight_data), bytes(y_data), adds(beta)});
}
Status cudnnConvolutionBackwardData(Handle handle, const void*, Filter weight,
                                    const void* weight_data, Tensor y, const void* y_data,
                                    Convolution how, int algorithm, void*, std::size_t workspace,
                                    const void* beta, Tensor x, void* x_data) {
  return enqueue(handle, algorithm, workspace,
                 {Pass::input_gradient, told(x), told(weight), told(how), told(y), bytes(x_data),
                  bytes(weight_data), bytes(y_data), adds(beta)});
}
Status cudnnConvolutionBackwardFilter(Handle handle, const void*, Tensor x, const void* x_data,
                                      Tensor y, const void* y_data, Convolution how, int algorithm,
                                      void*, std::size_t workspace, const void* beta, Filter weight,
                                      void* weight_data) {
  return enqueue(handle, algorithm, workspace,
                 {Pass::weight_gradient, told(x), told(weight), told(how), told(y), bytes(x_data),
                  bytes(weight_data), bytes(y_data), adds(beta)});
}
}
