// libcublasLt.so.13 without a GPU: descriptors, a few algorithms of different speed, and products
// on the made-up device.
//
// SPDX-License-Identifier: MIT
#include <cublasLt.h>
#include <cuda.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/rehearsal/elements.h"
#include "tests/rehearsal/enqueue.h"

namespace {

using plumbline::rehearsal::load;
using plumbline::rehearsal::store;

struct Descriptor {
  cudaDataType_t type{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::map<int, std::int64_t> attributes{};

  std::int64_t get(int attribute, std::int64_t otherwise) const {
    const auto found = attributes.find(attribute);
    return found == attributes.end() ? otherwise : found->second;
  }
};

template <class Handle>
const Descriptor& told(Handle of) {
  return *reinterpret_cast<const Descriptor*>(of);
}
template <class Handle>
cublasStatus_t made(Handle* to, Descriptor descriptor) {
  *to = reinterpret_cast<Handle>(new Descriptor(std::move(descriptor)));
  return CUBLAS_STATUS_SUCCESS;
}
template <class Handle>
cublasStatus_t gone(Handle of) {
  delete reinterpret_cast<Descriptor*>(of);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Handle>
cublasStatus_t set(Handle of, int attribute, const void* value, std::size_t bytes) {
  std::int64_t number = 0;  // little-endian
  if (bytes > sizeof number) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&number, value, bytes);
  reinterpret_cast<Descriptor*>(of)->attributes[attribute] = number;
  return CUBLAS_STATUS_SUCCESS;
}

/// How an algorithm cuts the result, and what it makes of an SM's speed.
struct Algorithm {
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  double efficiency;
  bool runs;
};
constexpr Algorithm kAlgorithms[] = {{128, 128, 0.80, true}, {128, 256, 0.88, true},
                                     {64, 128, 0.66, true},  {256, 128, 0.86, false},
                                     {64, 64, 0.50, true},   {128, 64, 0.68, true}};

/// Where an element of op(matrix) lies.
struct Steps {
  std::int64_t of_row = 1;
  std::int64_t of_column = 1;
  std::int64_t of_batch = 0;

  Steps(const Descriptor& layout, bool turned)
      : of_row(turned ? layout.leading : 1),
        of_column(turned ? 1 : layout.leading),
        of_batch(layout.get(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0)) {}
  std::size_t place(std::int64_t z, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(z * of_batch + row * of_row + column * of_column);
  }
};

/// A product as it is enqueued.
struct Gemm {
  Descriptor how, a, b, d;
  float alpha = 1, beta = 0;
  const unsigned char* a_data = nullptr;
  const unsigned char* b_data = nullptr;
  unsigned char* d_data = nullptr;

  bool turns_a() const { return how.get(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) != CUBLAS_OP_N; }
  bool turns_b() const { return how.get(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) != CUBLAS_OP_N; }
  std::int64_t depth() const { return turns_a() ? a.rows : a.columns; }
  std::int64_t batch() const { return d.get(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1); }
  double operations() const {
    return 2.0 * static_cast<double>(d.rows) * static_cast<double>(d.columns) *
           static_cast<double>(depth()) * static_cast<double>(batch());
  }

  /// Sums are fp32, in the order of the depth.
  void compute() const {
    const bool half = d.type == CUDA_R_16BF;
    const Steps of_a(a, turns_a());
    const Steps of_b(b, turns_b());
    const Steps of_d(d, false);
    const std::int64_t terms = depth();
    std::vector<float> left(static_cast<std::size_t>(terms * d.rows));  // by depth, then row
    std::vector<float> sums(static_cast<std::size_t>(d.rows));
    for (std::int64_t z = 0; z < batch(); ++z) {
      for (std::int64_t k = 0, i = 0; k < terms; ++k)
        for (std::int64_t row = 0; row < d.rows; ++row, ++i)
          left[static_cast<std::size_t>(i)] = load(a_data, of_a.place(z, row, k), half);
      for (std::int64_t column = 0; column < d.columns; ++column) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (std::int64_t k = 0; k < terms; ++k) {
          const float by = load(b_data, of_b.place(z, k, column), half);
          const float* const from = left.data() + k * d.rows;
          for (std::size_t row = 0; row < sums.size(); ++row) sums[row] += from[row] * by;
        }
        for (std::int64_t row = 0; row < d.rows; ++row) {
          const std::size_t to = of_d.place(z, row, column);
          const float before = beta == 0 ? 0 : beta * load(d_data, to, half);
          store(d_data, to, half, alpha * sums[static_cast<std::size_t>(row)] + before);
        }
      }
    }
  }
};

/// Nanoseconds on so many SMs, and how many of them it keeps busy.
std::pair<double, double> time_of(const Gemm& product, const Algorithm& algorithm, double sms) {
  const auto tiles = static_cast<double>(
      product.batch() * ((product.d.rows + algorithm.tile_rows - 1) / algorithm.tile_rows) *
      ((product.d.columns + algorithm.tile_columns - 1) / algorithm.tile_columns));
  const bool half = product.d.type == CUDA_R_16BF;
  const double operations_of_sm = half ? 7000 : 3000;  // dense, bf16 or tf32; in a nanosecond
  const double tile = 2.0 * static_cast<double>(algorithm.tile_rows * algorithm.tile_columns) *
                      static_cast<double>(product.depth()) /
                      (operations_of_sm * algorithm.efficiency);
  return {2200 + std::ceil(tiles / sms) * tile, std::min(tiles, sms)};
}

bool has_context() {
  CUcontext context = nullptr;
  return cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!has_context()) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS";
}
const char* cublasLtGetStatusString(cublasStatus_t) { return "made up"; }
std::size_t cublasLtGetVersion() { return 130100; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t,
                                        cudaDataType_t type) {
  return made(to, {type});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of) { return gone(of); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  return set(of, attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  return made(to,
              {type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of) { return gone(of); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t of,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  return set(of, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  return made(to, {});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t of) { return gone(of); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  return set(of, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int max,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  *count = std::min(max, static_cast<int>(std::size(kAlgorithms)));
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  *result = {};
  const std::uint64_t number = algorithm->data[0];
  return number < std::size(kAlgorithms) && kAlgorithms[number].runs ? CUBLAS_STATUS_SUCCESS
                                                                     : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void*,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, std::size_t,
                              cudaStream_t on) {
  if (!has_context()) return CUBLAS_STATUS_EXECUTION_FAILED;
  const std::uint64_t number = algorithm->data[0];
  if (number >= std::size(kAlgorithms) || !kAlgorithms[number].runs)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  auto product = std::make_unique<Gemm>(Gemm{
      told(how), told(a_layout), told(b_layout), told(d_layout), *static_cast<const float*>(alpha),
      *static_cast<const float*>(beta), static_cast<const unsigned char*>(a),
      static_cast<const unsigned char*>(b), static_cast<unsigned char*>(d)});
  const auto stream = reinterpret_cast<CUstream>(on);
  const unsigned sms = plumbline_rehearsal_sms(stream);
  if (sms == 0) return CUBLAS_STATUS_INVALID_VALUE;
  const auto [nanoseconds, held] = time_of(*product, kAlgorithms[number], sms);
  const double width = product->d.type == CUDA_R_16BF ? 2 : 4;
  const double bytes = width * static_cast<double>(product->batch()) *
                       static_cast<double>(product->a.rows * product->a.columns +
                                           product->b.rows * product->b.columns +
                                           product->d.rows * product->d.columns);
  const auto act = [](void* of) { static_cast<const Gemm*>(of)->compute(); };
  const auto forget = [](void* of) { delete static_cast<Gemm*>(of); };
  return plumbline_rehearsal_enqueue(stream, "cublasLt", nanoseconds, bytes, held,
                                     plumbline::rehearsal::computes() ? +act : nullptr,
                                     product.release(), forget) == 0
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
