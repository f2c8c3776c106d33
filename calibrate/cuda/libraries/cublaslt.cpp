// Descriptors, algorithms and their times.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "calibrate/cuda/driver/timing.h"
#include "calibrate/cuda/libraries/builtin_gemm.h"
#include "calibrate/cuda/libraries/libraries.h"

namespace plumbline {
namespace {

constexpr std::size_t kWorkspaceBytes = 32 << 20;
constexpr int kMaxAlgorithms = 8;

constexpr std::string_view kCublasLtHelp =
    "install cuBLAS of CUDA 13, or name the file of libcublasLt.so.13";

/// Throws unless the call went well.
void check(const CublasLt& library, std::string_view call, cublasStatus_t status,
           const GemmShape* shape = nullptr) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw CublasLtError(library, call, status, shape == nullptr ? "" : to_text(*shape));
}

std::string failure(const CublasLt& library, std::string_view call, cublasStatus_t status) {
  return fmt::format("{}: {}, {}", call, library.cublasLtGetStatusName(status),
                     library.cublasLtGetStatusString(status));
}

cudaDataType_t data_type(ElementType type) {
  return type == ElementType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasComputeType_t compute_type(ElementType type) {
  return type == ElementType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace

// The library.

Result<CublasLt> load_cublaslt(const std::string& path) {
  const auto loaded = open_cuda_library("cuBLASLt", path, kCublasLtHelp);
  if (!loaded) return loaded.problems();
  CublasLt library;
  CudaSymbols symbols(*loaded);
#define PLUMBLINE_CUBLASLT_LOAD(call) symbols.find(library.call, #call);
  PLUMBLINE_CUBLASLT_CALLS(PLUMBLINE_CUBLASLT_LOAD)
#undef PLUMBLINE_CUBLASLT_LOAD
  if (auto missing = symbols.missing(path, kCublasLtHelp)) return *std::move(missing);
  return library;
}

CublasLtError::CublasLtError(const CublasLt& library, std::string_view call, cublasStatus_t status,
                             std::string_view product)
    : std::runtime_error(failure(library, call, status) +
                         (product.empty() ? std::string() : fmt::format(", for {}", product))),
      status_(status) {}

// Shapes.

GemmShape shape_of(ElementType type, const CudaGemm& product, std::uint32_t sms) {
  const auto operand = [&](const CudaGemm::Operand& of) {
    constexpr std::uint64_t kMaxAlignment = 16;  // what the widest loads and stores need
    GemmShape::Operand made{of.stride, product.batch > 1 ? of.step : 0, of.turned, 0};
    const auto bytes = static_cast<std::uint64_t>(bytes_of(type));
    const std::uint64_t places = of.data | static_cast<std::uint64_t>(made.stride) * bytes |
                                 static_cast<std::uint64_t>(made.step) * bytes | kMaxAlignment;
    made.alignment = std::uint32_t{1} << static_cast<unsigned>(std::countr_zero(places));
    return made;
  };
  return {type,
          product.rows,
          product.columns,
          product.depth,
          product.batch,
          operand(product.a),
          operand(product.b),
          operand(product.c),
          product.beta != 0,
          sms};
}

std::string to_text(const GemmShape& shape) {
  const auto operand = [](const GemmShape::Operand& of) {
    return fmt::format("{}/{}{}@{}", of.stride, of.step, of.turned ? "t" : "", of.alignment);
  };
  return fmt::format("{} {}x{}x{}{} a {} b {} {}c {} sms {}", name(shape.type), shape.rows,
                     shape.columns, shape.depth,
                     shape.batch > 1 ? fmt::format("*{}", shape.batch) : "", operand(shape.a),
                     operand(shape.b), shape.adds ? "+" : "", operand(shape.c), shape.sms);
}

ColumnMajorGemm column_major(const GemmShape& shape) {
  // Row-major [m, n] is column-major [n, m].
  const auto told = [](const GemmShape::Operand& of, std::int64_t m, std::int64_t n) {
    if (of.turned) std::swap(m, n);
    return ColumnMajor{n, m, of.stride, of.turned};
  };
  return {told(shape.b, shape.depth, shape.columns), told(shape.a, shape.rows, shape.depth),
          told(shape.c, shape.rows, shape.columns)};
}

std::string to_text(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<cublasLtMatmulAlgo_t> algorithm_from(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  cublasLtMatmulAlgo_t algorithm{};
  if (text.size() != kDigits * std::size(algorithm.data)) return std::nullopt;
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i) {
    const std::string_view digits = text.substr(i * kDigits, kDigits);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + kDigits, algorithm.data[i], 16);
    if (error != std::errc() || end != digits.data() + kDigits) return std::nullopt;
  }
  return algorithm;
}

// Plans.

/// The descriptors of a shape, and its chosen algorithm.
class CublasLtGemm::Plan {
 public:
  Plan(const CublasLt& library, const GemmShape& of) : shape(of), library_(library) {
    try {
      create();
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Plan() { destroy(); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const GemmShape shape;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr;
  cublasLtMatrixLayout_t second = nullptr;
  cublasLtMatrixLayout_t result = nullptr;
  std::optional<cublasLtMatmulAlgo_t> algorithm;

 private:
  void create() {
    const ColumnMajorGemm told = column_major(shape);
    check(library_, "cublasLtMatmulDescCreate",
          library_.cublasLtMatmulDescCreate(&product, compute_type(shape.type), CUDA_R_32F),
          &shape);
    describe(CUBLASLT_MATMUL_DESC_TRANSA, operation(told.first));
    describe(CUBLASLT_MATMUL_DESC_TRANSB, operation(told.second));
    describe(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(shape.sms));
    first = layout(told.first, shape.b);
    second = layout(told.second, shape.a);
    result = layout(told.result, shape.c);
  }
  void destroy() {
    for (cublasLtMatrixLayout_t made : {first, second, result}) {
      if (made != nullptr) library_.cublasLtMatrixLayoutDestroy(made);
    }
    if (product != nullptr) library_.cublasLtMatmulDescDestroy(product);
  }

  static std::int32_t operation(const ColumnMajor& matrix) {
    return matrix.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  void describe(cublasLtMatmulDescAttributes_t attribute, std::int32_t value) {
    check(library_, "cublasLtMatmulDescSetAttribute",
          library_.cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value),
          &shape);
  }

  cublasLtMatrixLayout_t layout(const ColumnMajor& matrix, const GemmShape::Operand& operand) {
    cublasLtMatrixLayout_t made = nullptr;
    check(library_, "cublasLtMatrixLayoutCreate",
          library_.cublasLtMatrixLayoutCreate(
              &made, data_type(shape.type), static_cast<std::uint64_t>(matrix.rows),
              static_cast<std::uint64_t>(matrix.columns), matrix.leading),
          &shape);
    if (shape.batch > 1) {
      const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
        return library_.cublasLtMatrixLayoutSetAttribute(made, attribute, &value, sizeof value);
      };
      cublasStatus_t status =
          set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(shape.batch));
      if (status == CUBLAS_STATUS_SUCCESS)
        status = set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, operand.step);
      if (status != CUBLAS_STATUS_SUCCESS) library_.cublasLtMatrixLayoutDestroy(made);
      check(library_, "cublasLtMatrixLayoutSetAttribute", status, &shape);
    }
    return made;
  }

  const CublasLt& library_;
};

// Products.

CublasLtGemm::CublasLtGemm(const CudaDriver& driver, const CublasLt& library, CudaChoices& choices)
    : library_(library),
      workspace_(driver, kWorkspaceBytes),
      plain_(builtin_gemm()),
      choices_(choices) {
  check(library_, "cublasLtCreate", library_.cublasLtCreate(&handle_));
  const std::size_t version = library_.cublasLtGetVersion();
  name_ = fmt::format("cublasLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

CublasLtGemm::~CublasLtGemm() {
  plans_.clear();
  if (handle_ != nullptr) library_.cublasLtDestroy(handle_);
}

void CublasLtGemm::prepare(const CudaQueue& queue, ElementType type, const CudaGemm& product) {
  PLUMBLINE_CHECK(!product.c.turned, product.rows, product.columns);
  const GemmShape shape = shape_of(type, product, queue.sms);
  if (plans_.contains(shape)) return;
  auto plan = std::make_unique<Plan>(library_, shape);
  plan->algorithm = chosen(queue, *plan, product);
  if (plan->algorithm) {
    choices_[to_text(shape)] = to_text(*plan->algorithm);
  } else {
    plain_->prepare(queue, type, product);
    if (!name_.ends_with(kAndPlainKernels)) name_ += kAndPlainKernels;
  }
  plans_.emplace(shape, std::move(plan));
}

bool CublasLtGemm::is_prepared(const CudaQueue& queue, ElementType type,
                               const CudaGemm& product) const {
  return plans_.contains(shape_of(type, product, queue.sms));
}

void CublasLtGemm::multiply(const CudaQueue& queue, ElementType type, const CudaGemm& product) {
  const GemmShape shape = shape_of(type, product, queue.sms);
  const auto plan = plans_.find(shape);
  PLUMBLINE_CHECK(plan != plans_.end(), "a product that was not prepared", to_text(shape));
  if (const auto& algorithm = plan->second->algorithm) {
    enqueue(queue, *plan->second, product, *algorithm);
  } else {
    plain_->multiply(queue, type, product);
  }
}

void CublasLtGemm::enqueue(const CudaQueue& queue, const Plan& plan, const CudaGemm& product,
                           const cublasLtMatmulAlgo_t& algorithm) const {
  const auto memory = [](CUdeviceptr data) {
    return reinterpret_cast<void*>(data);  // NOLINT(performance-no-int-to-ptr): as CUDA has it
  };
  check(library_, "cublasLtMatmul",
        library_.cublasLtMatmul(handle_, plan.product, &product.alpha, memory(product.b.data),
                                plan.first, memory(product.a.data), plan.second, &product.beta,
                                memory(product.c.data), plan.result, memory(product.c.data),
                                plan.result, &algorithm, memory(workspace_.data()), kWorkspaceBytes,
                                queue.stream),
        &plan.shape);
}

/// The algorithm that a profile has chosen, if it runs here.
std::optional<cublasLtMatmulAlgo_t> CublasLtGemm::taken(const CudaQueue& queue, const Plan& plan,
                                                        const CudaGemm& product) {
  const auto told = choices_.find(to_text(plan.shape));
  if (told == choices_.end()) return std::nullopt;
  const auto algorithm = algorithm_from(told->second);
  cublasLtMatmulHeuristicResult_t result{};
  if (!algorithm ||
      library_.cublasLtMatmulAlgoCheck(handle_, plan.product, plan.first, plan.second, plan.result,
                                       plan.result, &*algorithm,
                                       &result) != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > kWorkspaceBytes)
    return std::nullopt;
  try {
    enqueue(queue, plan, product, *algorithm);  // the check does not promise that it runs
    return algorithm;
  } catch (const CublasLtError&) {
    return std::nullopt;
  }
}

std::optional<cublasLtMatmulAlgo_t> CublasLtGemm::chosen(const CudaQueue& queue, const Plan& plan,
                                                         const CudaGemm& product) {
  if (const auto algorithm = taken(queue, plan, product)) return algorithm;
  cublasLtMatmulPreference_t made = nullptr;
  check(library_, "cublasLtMatmulPreferenceCreate", library_.cublasLtMatmulPreferenceCreate(&made),
        &plan.shape);
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                        decltype(library_.cublasLtMatmulPreferenceDestroy)>
      preference(made, library_.cublasLtMatmulPreferenceDestroy);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(library_, "cublasLtMatmulPreferenceSetAttribute",
          library_.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value,
                                                        sizeof value),
          &plan.shape);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
  // Partial sums stay fp32, and are added up in order.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, plan.shape.b.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, plan.shape.a.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, plan.shape.c.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, plan.shape.c.alignment);

  std::array<cublasLtMatmulHeuristicResult_t, kMaxAlgorithms> found{};
  int count = 0;
  std::string failed;  // other than "not supported"
  const auto note = [&](const CublasLtError& error) {
    if (failed.empty() && error.status() != CUBLAS_STATUS_NOT_SUPPORTED) failed = error.what();
  };
  if (const cublasStatus_t status = library_.cublasLtMatmulAlgoGetHeuristic(
          handle_, plan.product, plan.first, plan.second, plan.result, plan.result,
          preference.get(), kMaxAlgorithms, found.data(), &count);
      status != CUBLAS_STATUS_SUCCESS) {
    note(CublasLtError(library_, "cublasLtMatmulAlgoGetHeuristic", status, to_text(plan.shape)));
  }
  std::optional<cublasLtMatmulAlgo_t> best;
  double min = std::numeric_limits<double>::infinity();
  for (int i = 0; i < count; ++i) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    try {
      const double time =
          median_milliseconds(queue, [&] { enqueue(queue, plan, product, found[i].algo); });
      if (is_clearly_faster(time, min)) {
        min = time;
        best = found[i].algo;
      }
    } catch (const CublasLtError& error) {  // not every estimated algorithm runs
      note(error);
    }
  }
  if (!best && trouble_.empty()) trouble_ = std::move(failed);
  return best;
}

}  // namespace plumbline
