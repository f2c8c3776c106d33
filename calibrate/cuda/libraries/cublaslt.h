// Matrix products by cuBLASLt, found at run time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "calibrate/cuda/driver/choices.h"
#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/libraries/gemm.h"

/// Every function of the library that is called.
#define PLUMBLINE_CUBLASLT_CALLS(CALL)       \
  CALL(cublasLtCreate)                       \
  CALL(cublasLtDestroy)                      \
  CALL(cublasLtGetStatusName)                \
  CALL(cublasLtGetStatusString)              \
  CALL(cublasLtGetVersion)                   \
  CALL(cublasLtMatmul)                       \
  CALL(cublasLtMatmulDescCreate)             \
  CALL(cublasLtMatmulDescDestroy)            \
  CALL(cublasLtMatmulDescSetAttribute)       \
  CALL(cublasLtMatrixLayoutCreate)           \
  CALL(cublasLtMatrixLayoutDestroy)          \
  CALL(cublasLtMatrixLayoutSetAttribute)     \
  CALL(cublasLtMatmulPreferenceCreate)       \
  CALL(cublasLtMatmulPreferenceDestroy)      \
  CALL(cublasLtMatmulPreferenceSetAttribute) \
  CALL(cublasLtMatmulAlgoGetHeuristic)       \
  CALL(cublasLtMatmulAlgoCheck)

namespace plumbline {

/// The library's functions.
struct CublasLt {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define PLUMBLINE_CUBLASLT_MEMBER(call) decltype(&::call) call = nullptr;
  PLUMBLINE_CUBLASLT_CALLS(PLUMBLINE_CUBLASLT_MEMBER)
#undef PLUMBLINE_CUBLASLT_MEMBER
};

/// Loads the library from its path, or by its name, which the dynamic linker searches. It stays
/// loaded. Errors (no device): it cannot be loaded; it lacks a function.
Result<CublasLt> load_cublaslt(const std::string& path);

/// A call has failed that should not fail.
class CublasLtError : public std::runtime_error {
 public:
  /// `cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED, the functionality is not supported, for ...`.
  CublasLtError(const CublasLt& library, std::string_view call, cublasStatus_t status,
                std::string_view product = "");
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_;
};

/// The shape for which an algorithm is chosen: all of a product except its operands' addresses and
/// its factors.
struct GemmShape {
  ElementType type = ElementType::fp32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t batch = 1;
  struct Operand {
    std::int64_t stride = 0;
    std::int64_t step = 0;  ///< 0 for a single product.
    bool turned = false;
    /// The alignment in bytes, at most 16, of its first element and of all elements at its strides
    /// and steps.
    std::uint32_t alignment = 0;

    friend auto operator<=>(const Operand&, const Operand&) = default;
  };
  Operand a;
  Operand b;
  Operand c;
  bool adds = false;      ///< Whether beta is not 0.
  std::uint32_t sms = 0;  ///< The device's SMs.

  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

GemmShape shape_of(ElementType type, const CudaGemm& product, std::uint32_t sms);
/// The shape as text: `bf16 512x1024x768 a 768/0@16 b 768/0t@16 c 1024/0@16 sms 32`. The extents
/// are rows x columns x depth. `+` stands before `c` where it adds, and `*12` behind the extents
/// for a batch.
std::string to_text(const GemmShape& shape);

/// A matrix as the library describes it: column-major, with the extents of its memory.
struct ColumnMajor {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  bool turned = false;  ///< The library turns it.

  friend bool operator==(const ColumnMajor&, const ColumnMajor&) = default;
};

/// A row-major product as a column-major one. A row-major matrix, read column by column, is its
/// transpose, and C^T = B'^T A'^T. So B is the first operand, and only operands that are stored
/// turned are turned.
struct ColumnMajorGemm {
  ColumnMajor first;   ///< B.
  ColumnMajor second;  ///< A.
  ColumnMajor result;  ///< C.
};
ColumnMajorGemm column_major(const GemmShape& shape);

/// An algorithm as text for storage: 128 hexadecimal digits. And back; nothing if the text is no
/// algorithm.
std::string to_text(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> algorithm_from(std::string_view text);

/// The matrix products of one device. For each shape, it times the best few algorithms by the
/// library's own estimate and keeps the fastest. Sums are fp32; operands are rounded to tf32 for
/// that type. It has its own workspace, so its products are on one stream.
class CublasLtGemm : public CudaGemms {
 public:
  /// `choices` maps shapes to algorithms. Entries that are no algorithms or do not run here are
  /// chosen anew. Requires: the device's context is current; driver and choices outlive it. Errors:
  /// CublasLtError.
  CublasLtGemm(const CudaDriver& driver, const CublasLt& library, CudaChoices& choices);
  ~CublasLtGemm() override;
  CublasLtGemm(const CublasLtGemm&) = delete;
  CublasLtGemm& operator=(const CublasLtGemm&) = delete;

  /// If no algorithm runs, a plain kernel computes the product, and the name says so. Waits for the
  /// device. Errors: CublasLtError; CudaError.
  void prepare(const CudaQueue& queue, ElementType type, const CudaGemm& product) override;
  bool is_prepared(const CudaQueue& queue, ElementType type,
                   const CudaGemm& product) const override;
  /// Requires: a product of the same shape and alignment was prepared. Errors: CublasLtError.
  void multiply(const CudaQueue& queue, ElementType type, const CudaGemm& product) override;
  /// "cublasLt 13.1.0".
  std::string_view name() const override { return name_; }
  std::string_view trouble() const override { return trouble_; }

 private:
  class Plan;

  void enqueue(const CudaQueue& queue, const Plan& plan, const CudaGemm& product,
               const cublasLtMatmulAlgo_t& algorithm) const;
  /// Nothing if no algorithm runs.
  std::optional<cublasLtMatmulAlgo_t> chosen(const CudaQueue& queue, const Plan& plan,
                                             const CudaGemm& product);
  std::optional<cublasLtMatmulAlgo_t> taken(const CudaQueue& queue, const Plan& plan,
                                            const CudaGemm& product);

  CublasLt library_;
  cublasLtHandle_t handle_ = nullptr;
  CudaScratch workspace_;
  std::string name_;
  std::string trouble_;
  std::map<GemmShape, std::unique_ptr<Plan>> plans_;
  std::unique_ptr<CudaGemms> plain_;
  CudaChoices& choices_;
};

}  // namespace plumbline
