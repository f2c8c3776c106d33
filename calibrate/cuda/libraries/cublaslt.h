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

/// From a library's path, or its name, which is looked for as the dynamic linker does; it stays
/// loaded. Errors (no device): it cannot be loaded; it lacks a function.
Result<CublasLt> load_cublaslt(const std::string& path);

/// A call has failed where it should not.
class CublasLtError : public std::runtime_error {
 public:
  /// `cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED, the functionality is not supported, for ...`.
  CublasLtError(const CublasLt& library, std::string_view call, cublasStatus_t status,
                std::string_view product = "");
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_;
};

/// What an algorithm is chosen for: all of a product but where its operands are and by what it is
/// multiplied.
struct GemmShape {
  ElementType type = ElementType::fp32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t batch = 1;
  struct Operand {
    std::int64_t stride = 0;
    std::int64_t step = 0;  ///< 0 where there is one product.
    bool turned = false;
    /// In bytes, at most 16: of its first element and of all that lie strides and steps behind it.
    std::uint32_t alignment = 0;

    friend auto operator<=>(const Operand&, const Operand&) = default;
  };
  Operand a;
  Operand b;
  Operand c;
  bool adds = false;      ///< beta is not 0.
  std::uint32_t sms = 0;  ///< Of the device.

  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

GemmShape shape_of(ElementType type, const CudaGemm& product, std::uint32_t sms);
/// `bf16 512x1024x768 a 768/0@16 b 768/0t@16 c 1024/0@16 sms 32`, with `+` before `c` where it adds
/// and `*12` behind the extents (rows x columns x depth) for a batch.
std::string to_text(const GemmShape& shape);

/// A matrix as the library is told of it: column-major, extents of its memory.
struct ColumnMajor {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  bool turned = false;  ///< The library turns it.

  friend bool operator==(const ColumnMajor&, const ColumnMajor&) = default;
};

/// A row-major matrix is, column by column, its transpose, and C^T = B'^T A'^T: so B is the first
/// operand, and nothing is turned but what the product says.
struct ColumnMajorGemm {
  ColumnMajor first;   ///< B.
  ColumnMajor second;  ///< A.
  ColumnMajor result;  ///< C.
};
ColumnMajorGemm column_major(const GemmShape& shape);

/// An algorithm as text, to be stored: 128 hexadecimal digits; and back, nothing where it is none.
std::string to_text(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> algorithm_from(std::string_view text);

/// The products of one device. For each shape the best few algorithms by the library's own estimate
/// are timed, and the fastest stays; sums are fp32 (of operands rounded to tf32 where the type is
/// that). Has a workspace of its own, so its products stand on one stream.
class CublasLtGemm : public CudaGemms {
 public:
  /// Choices, by shape, that are no algorithms, or do not run here, are made anew. Requires: the
  /// device's context current; driver and choices outlive it. Errors: CublasLtError.
  CublasLtGemm(const CudaDriver& driver, const CublasLt& library, CudaChoices& choices);
  ~CublasLtGemm() override;
  CublasLtGemm(const CublasLtGemm&) = delete;
  CublasLtGemm& operator=(const CublasLtGemm&) = delete;

  /// Where no algorithm runs, it is a plain kernel's product, and the name says so. Waits for the
  /// device. Errors: CublasLtError; CudaError.
  void prepare(const CudaQueue& queue, ElementType type, const CudaGemm& product) override;
  bool is_prepared(const CudaQueue& queue, ElementType type,
                   const CudaGemm& product) const override;
  /// Requires: a product of the same shape was prepared, with operands aligned alike. Errors:
  /// CublasLtError.
  void multiply(const CudaQueue& queue, ElementType type, const CudaGemm& product) override;
  /// "cublasLt 13.1.0".
  std::string_view name() const override { return name_; }
  std::string_view trouble() const override { return trouble_; }

 private:
  class Plan;

  void enqueue(const CudaQueue& queue, const Plan& plan, const CudaGemm& product,
               const cublasLtMatmulAlgo_t& algorithm) const;
  /// Nothing where none runs.
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
