// Convolutions by cuDNN, found at run time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/cuda/driver/choices.h"
#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/libraries/convolutions.h"

/// The part of cuDNN 9's C interface that is called. The library's header comes with the library,
/// not with CUDA's toolkit, and builds need neither. A test compares this part with the header if
/// that is there.
namespace plumbline::cudnn {

using Handle = struct HandleOfDevice*;
using Tensor = struct TensorDescriptor*;
using Filter = struct FilterDescriptor*;
using Convolution = struct ConvolutionDescriptor*;
/// The library's enumerations are ints here.
using Status = int;

inline constexpr Status kSuccess = 0;
inline constexpr Status kNotSupported = 3000;
inline constexpr int kFloat = 0;  ///< cudnnDataType_t
inline constexpr int kBf16 = 9;
inline constexpr int kNchw = 0;              ///< cudnnTensorFormat_t
inline constexpr int kCrossCorrelation = 1;  ///< cudnnConvolutionMode_t
inline constexpr int kDefaultMath = 0;       ///< cudnnMathType_t: may round fp32 to tf32
inline constexpr int kTensorOpMath = 1;
inline constexpr int kFmaMath = 3;
inline constexpr int kDeterministic = 1;  ///< cudnnDeterminism_t

/// An algorithm with the library's estimates. The struct is the same for all passes; only the
/// numbers of algorithms differ.
struct AlgorithmEstimate {
  int algorithm;
  Status status;
  float time;
  std::size_t memory;
  int determinism;
  int math;
  int reserved[3];
};

/// The library's functions, by their names without `cudnn`.
struct Functions {
  std::size_t (*GetVersion)();
  const char* (*GetErrorString)(Status);
  Status (*Create)(Handle*);
  Status (*Destroy)(Handle);
  Status (*SetStream)(Handle, CUstream);
  Status (*CreateTensorDescriptor)(Tensor*);
  Status (*SetTensor4dDescriptor)(Tensor, int format, int type, int n, int c, int h, int w);
  Status (*DestroyTensorDescriptor)(Tensor);
  Status (*CreateFilterDescriptor)(Filter*);
  Status (*SetFilter4dDescriptor)(Filter, int type, int format, int k, int c, int h, int w);
  Status (*DestroyFilterDescriptor)(Filter);
  Status (*CreateConvolutionDescriptor)(Convolution*);
  Status (*SetConvolution2dDescriptor)(Convolution, int pad_h, int pad_w, int stride_h,
                                       int stride_w, int dilation_h, int dilation_w, int mode,
                                       int compute);
  Status (*SetConvolutionMathType)(Convolution, int math);
  Status (*DestroyConvolutionDescriptor)(Convolution);
  Status (*GetConvolutionForwardAlgorithm_v7)(Handle, Tensor x, Filter w, Convolution, Tensor y,
                                              int asked, int* returned, AlgorithmEstimate*);
  Status (*GetConvolutionBackwardDataAlgorithm_v7)(Handle, Filter w, Tensor dy, Convolution,
                                                   Tensor dx, int asked, int* returned,
                                                   AlgorithmEstimate*);
  Status (*GetConvolutionBackwardFilterAlgorithm_v7)(Handle, Tensor x, Tensor dy, Convolution,
                                                     Filter dw, int asked, int* returned,
                                                     AlgorithmEstimate*);
  Status (*ConvolutionForward)(Handle, const void* alpha, Tensor, const void* x, Filter,
                               const void* w, Convolution, int algorithm, void* workspace,
                               std::size_t bytes, const void* beta, Tensor, void* y);
  Status (*ConvolutionBackwardData)(Handle, const void* alpha, Filter, const void* w, Tensor,
                                    const void* dy, Convolution, int algorithm, void* workspace,
                                    std::size_t bytes, const void* beta, Tensor, void* dx);
  Status (*ConvolutionBackwardFilter)(Handle, const void* alpha, Tensor, const void* x, Tensor,
                                      const void* dy, Convolution, int algorithm, void* workspace,
                                      std::size_t bytes, const void* beta, Filter, void* dw);
};

}  // namespace plumbline::cudnn

/// Every function of the table.
#define PLUMBLINE_CUDNN_CALLS(CALL)              \
  CALL(GetVersion)                               \
  CALL(GetErrorString)                           \
  CALL(Create)                                   \
  CALL(Destroy)                                  \
  CALL(SetStream)                                \
  CALL(CreateTensorDescriptor)                   \
  CALL(SetTensor4dDescriptor)                    \
  CALL(DestroyTensorDescriptor)                  \
  CALL(CreateFilterDescriptor)                   \
  CALL(SetFilter4dDescriptor)                    \
  CALL(DestroyFilterDescriptor)                  \
  CALL(CreateConvolutionDescriptor)              \
  CALL(SetConvolution2dDescriptor)               \
  CALL(SetConvolutionMathType)                   \
  CALL(DestroyConvolutionDescriptor)             \
  CALL(GetConvolutionForwardAlgorithm_v7)        \
  CALL(GetConvolutionBackwardDataAlgorithm_v7)   \
  CALL(GetConvolutionBackwardFilterAlgorithm_v7) \
  CALL(ConvolutionForward)                       \
  CALL(ConvolutionBackwardData)                  \
  CALL(ConvolutionBackwardFilter)

namespace plumbline {

using Cudnn = cudnn::Functions;

/// Loads the library from its path, or by its name, which the dynamic linker searches. It stays
/// loaded. Errors (no device): it cannot be loaded; it lacks a function.
Result<Cudnn> load_cudnn(const std::string& path);

/// A call has failed that should not fail.
class CudnnError : public std::runtime_error {
 public:
  /// `cudnnConvolutionForward: CUDNN_STATUS_NOT_SUPPORTED, for ...`.
  CudnnError(const Cudnn& library, std::string_view call, cudnn::Status status,
             std::string_view convolution = "");
  cudnn::Status status() const { return status_; }

 private:
  cudnn::Status status_;
};

/// `bf16 8x64x56x56 to 128, kernel 3, stride 1, padding 1`.
std::string to_text(ElementType type, const CudaConvolution& shape);

/// The convolutions of one device. For each shape and pass, it times the algorithms that the
/// library calls deterministic and keeps the fastest. If none runs, a plain kernel does the pass.
/// Sums are fp32; operands are rounded to tf32 for that type. Pictures stay [samples, channels,
/// height, width]. All share one workspace, so they are on one stream.
class CudnnConvolutions : public CudaConvolutions {
 public:
  /// `choices` maps pass, shape and number of SMs to algorithms. Entries that the library does not
  /// offer are chosen anew. Requires: the device's context is current; the choices outlive it.
  /// Errors: CudnnError.
  CudnnConvolutions(const Cudnn& library, CudaChoices& choices);
  ~CudnnConvolutions() override;
  CudnnConvolutions(const CudnnConvolutions&) = delete;
  CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;

  /// Convolves a picture of one number on the queue's stream and waits. Uses the first offered
  /// algorithm that runs. Errors: CudnnError if none runs; CudaError if the stream cannot be used.
  void try_on(const CudaQueue& queue);

  /// Waits for the device. Errors: CudnnError; CudaError.
  void prepare(const CudaQueue& queue, ElementType type, const CudaConvolution& shape) override;
  void forward(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
               CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight, bool adds) override;
  void input_gradient(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
                      CUdeviceptr x_gradient, CUdeviceptr y_gradient, CUdeviceptr weight,
                      bool adds) override;
  void weight_gradient(const CudaQueue& queue, ElementType type, const CudaConvolution& shape,
                       CUdeviceptr weight_gradient, CUdeviceptr y_gradient, CUdeviceptr x) override;
  /// "cuDNN 9.19.0", with " and plain kernels" if plain kernels do some pass.
  std::string_view name() const override { return name_; }
  std::string_view trouble() const override { return trouble_; }

 private:
  class Plan;
  struct Choice {
    int algorithm = 0;
    int math = 0;
    std::size_t memory = 0;  ///< The bytes of its workspace.
  };
  struct Operands {
    CUdeviceptr x = 0;  ///< Or its gradient, like the others.
    CUdeviceptr weight = 0;
    CUdeviceptr y = 0;
  };

  const Plan& plan_of(ElementType type, const CudaConvolution& shape) const;
  std::vector<cudnn::AlgorithmEstimate> estimates(ElementType type, const Plan& plan,
                                                  std::size_t pass, std::string& failed) const;
  /// Errors: CudnnError.
  void estimate(ElementType type, const Plan& plan, std::size_t pass,
                cudnn::AlgorithmEstimate* found, int& count) const;
  void choose(const CudaQueue& queue, ElementType type, Plan& plan, std::size_t pass,
              const Operands& operands);
  void enqueue(const CudaQueue& queue, const Plan& plan, std::size_t pass, const Choice& choice,
               const Operands& operands, bool adds) const;
  void make_room(const CudaQueue& queue, std::size_t bytes);

  Cudnn library_;
  cudnn::Handle handle_ = nullptr;
  std::string name_;
  std::string trouble_;
  std::unique_ptr<CudaConvolutions> plain_;
  CudaChoices& choices_;
  CudaScratch workspace_;
  std::size_t workspace_bytes_ = 0;
  std::size_t needed_ = 0;  ///< Workspace bytes that the choices need.
  std::map<std::pair<ElementType, CudaConvolution>, std::unique_ptr<Plan>> plans_;
};

/// Starts cuDNN for the streams of a device: in the GPU's primary context, as libraries expect. If
/// convolutions on the streams then fail, starts it in the device's context. The device's context
/// is current at the end. Errors: CudnnError; CudaError.
std::unique_ptr<CudnnConvolutions> start_cudnn(const CudaDriver& driver, const CudaDevice& device,
                                               const Cudnn& library, CudaChoices& choices);

}  // namespace plumbline
