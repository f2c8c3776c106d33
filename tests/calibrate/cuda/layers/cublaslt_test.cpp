// Products by cuBLASLt without a device: what it is told, what is chosen, what is stored. A library
// of our own stands in for it, which multiplies as its descriptors say.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/cublaslt.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "calibrate/cuda/layers/layer.h"
#include "tests/support/host_device.h"
#include "tests/support/layer_cases.h"

namespace plumbline {
namespace {

using test::difference;
using test::Floats;
using test::gemm_case;
using test::GemmCase;
using test::HostDevice;
using test::product_of;
using test::Stored;

// The library.

/// A descriptor of any kind: attributes by number, and what it was created with.
struct Descriptor {
  cublasComputeType_t compute{};
  cudaDataType_t type{};
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t leading = 0;
  std::map<int, std::int64_t> attributes{};
};

/// The settings and counts of the fake functions; reset by each test.
struct Library {
  bool starts = true;
  int descriptors = 0;  ///< Descriptors that are not destroyed.
  int handles = 0;
  std::vector<double> times = {1};  ///< Times of the offered algorithms, in ms.
  std::set<int> broken{};           ///< Offered, but they do not run,
  cublasStatus_t broken_by = CUBLAS_STATUS_NOT_SUPPORTED;  ///< and say so.
  std::vector<int> ran{};
  Descriptor last_gemm{};
  Descriptor last_preference{};
  double clock = 0;  ///< In ms.
};
Library library;

template <class Handle>
cublasStatus_t created(Handle* made, Descriptor descriptor) {
  ++library.descriptors;
  *made = reinterpret_cast<Handle>(new Descriptor(std::move(descriptor)));
  return CUBLAS_STATUS_SUCCESS;
}

template <class Handle>
cublasStatus_t destroyed(Handle made) {
  --library.descriptors;
  delete reinterpret_cast<Descriptor*>(made);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Handle>
Descriptor& described(Handle made) {
  return *reinterpret_cast<Descriptor*>(made);
}

template <class Handle>
cublasStatus_t set(Handle made, int attribute, const void* value, std::size_t bytes) {
  std::int64_t number = 0;  // little-endian
  if (bytes > sizeof number) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&number, value, bytes);
  described(made).attributes[attribute] = number;
  return CUBLAS_STATUS_SUCCESS;
}

/// An element of op(matrix), column-major; `z` is its place in the batch.
std::size_t place(const Descriptor& layout, bool turned, std::int64_t z, std::int64_t row,
                  std::int64_t column) {
  if (turned) std::swap(row, column);
  PLUMBLINE_CHECK(row < static_cast<std::int64_t>(layout.rows), row, layout.rows);
  PLUMBLINE_CHECK(column < static_cast<std::int64_t>(layout.columns), column, layout.columns);
  const auto step = layout.attributes.find(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  return (step == layout.attributes.end() ? 0 : z * step->second) + column * layout.leading + row;
}

/// fp32 and tf32 as they are defined by their descriptors; other types only run.
cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                        const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                        cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                        cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                        std::size_t workspace_bytes, cudaStream_t) {
  const auto number = static_cast<int>(algorithm->data[0]);
  if (library.broken.contains(number)) return library.broken_by;
  library.ran.push_back(number);
  library.clock += library.times.at(number);
  REQUIRE(c == d);
  REQUIRE(c_layout == d_layout);
  REQUIRE(workspace != nullptr);
  REQUIRE(workspace_bytes == 32 << 20);
  Descriptor& how = described(product);
  library.last_gemm = how;
  const Descriptor& of_a = described(a_layout);
  const Descriptor& of_b = described(b_layout);
  const Descriptor& of_d = described(d_layout);
  REQUIRE(of_a.type == of_d.type);
  REQUIRE(of_b.type == of_d.type);
  if (of_d.type != CUDA_R_32F) return CUBLAS_STATUS_SUCCESS;
  const bool a_turned = how.attributes[CUBLASLT_MATMUL_DESC_TRANSA] == CUBLAS_OP_T;
  const bool b_turned = how.attributes[CUBLASLT_MATMUL_DESC_TRANSB] == CUBLAS_OP_T;
  const auto depth = static_cast<std::int64_t>(a_turned ? of_a.rows : of_a.columns);
  REQUIRE(depth == static_cast<std::int64_t>(b_turned ? of_b.columns : of_b.rows));
  const auto batch = of_d.attributes.find(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  const std::int64_t products = batch == of_d.attributes.end() ? 1 : batch->second;
  const float by = *static_cast<const float*>(alpha);
  const float keeps = *static_cast<const float*>(beta);
  for (std::int64_t z = 0; z < products; ++z) {
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(of_d.rows); ++row) {
      for (std::int64_t column = 0; column < static_cast<std::int64_t>(of_d.columns); ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          sum +=
              static_cast<double>(static_cast<const float*>(a)[place(of_a, a_turned, z, row, k)]) *
              static_cast<const float*>(b)[place(of_b, b_turned, z, k, column)];
        }
        float& to = static_cast<float*>(d)[place(of_d, false, z, row, column)];
        to = static_cast<float>(by * sum + (keeps == 0 ? 0 : keeps * to));
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

CublasLt fake_library() {
  library = {};
  CublasLt made;
  made.cublasLtCreate = [](cublasLtHandle_t* handle) {
    if (!library.starts) return CUBLAS_STATUS_NOT_INITIALIZED;
    ++library.handles;
    *handle = reinterpret_cast<cublasLtHandle_t>(&library);
    return CUBLAS_STATUS_SUCCESS;
  };
  made.cublasLtDestroy = [](cublasLtHandle_t) {
    --library.handles;
    return CUBLAS_STATUS_SUCCESS;
  };
  made.cublasLtGetStatusName = [](cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS";
  };
  made.cublasLtGetStatusString = [](cublasStatus_t) { return "it is not to be"; };
  made.cublasLtGetVersion = []() -> std::size_t { return 130102; };
  made.cublasLtMatmul = multiply;
  made.cublasLtMatmulDescCreate = [](cublasLtMatmulDesc_t* to, cublasComputeType_t compute,
                                     cudaDataType_t type) {
    return created(to, {compute, type});
  };
  made.cublasLtMatmulDescDestroy = destroyed<cublasLtMatmulDesc_t>;
  made.cublasLtMatmulDescSetAttribute =
      [](cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t attribute, const void* value,
         std::size_t bytes) { return set(of, attribute, value, bytes); };
  made.cublasLtMatrixLayoutCreate = [](cublasLtMatrixLayout_t* to, cudaDataType type,
                                       std::uint64_t rows, std::uint64_t columns,
                                       std::int64_t leading) {
    return created(to, {{}, type, rows, columns, leading});
  };
  made.cublasLtMatrixLayoutDestroy = destroyed<cublasLtMatrixLayout_t>;
  made.cublasLtMatrixLayoutSetAttribute =
      [](cublasLtMatrixLayout_t of, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
         std::size_t bytes) { return set(of, attribute, value, bytes); };
  made.cublasLtMatmulPreferenceCreate = [](cublasLtMatmulPreference_t* to) {
    return created(to, {});
  };
  made.cublasLtMatmulPreferenceDestroy = destroyed<cublasLtMatmulPreference_t>;
  made.cublasLtMatmulPreferenceSetAttribute =
      [](cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t attribute,
         const void* value, std::size_t bytes) { return set(of, attribute, value, bytes); };
  made.cublasLtMatmulAlgoGetHeuristic =
      [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference,
         int max, cublasLtMatmulHeuristicResult_t* results, int* count) {
        library.last_preference = described(preference);
        *count = std::min(max, static_cast<int>(library.times.size()));
        for (int i = 0; i < *count; ++i) results[i].algo.data[0] = static_cast<std::uint64_t>(i);
        return CUBLAS_STATUS_SUCCESS;
      };
  made.cublasLtMatmulAlgoCheck = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                    cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm,
                                    cublasLtMatmulHeuristicResult_t* result) {
    result->workspaceSize = 0;
    return algorithm->data[0] < library.times.size() ? CUBLAS_STATUS_SUCCESS
                                                     : CUBLAS_STATUS_NOT_SUPPORTED;
  };
  return made;
}

/// A host device with products by that library, and events by its clock.
struct FakeGemm {
  CublasLt functions = fake_library();
  HostDevice device;
  CudaChoices choices;
  CublasLtGemm products{device.driver, functions, choices};
  CudaQueue queue{&device.driver, &device.kernels, &products, nullptr, nullptr, 24};

  FakeGemm() { test::note_events_by(library.clock, device.driver); }

  void prepare(const CudaGemm& product, ElementType type = ElementType::fp32) {
    products.prepare(queue, type, product);
  }
};

TEST_CASE("cublaslt: products are told column by column, turned, strided and in batches") {
  FakeGemm fake;
  for (const CudaGemm& size :
       {product_of(1, 1, 1), product_of(3, 5, 7, 2), product_of(6, 4, 9), product_of(2, 8, 3, 4)}) {
    for (const int turned : {0, 1, 2, 3}) {
      for (const std::int64_t apart : {0, 3}) {
        CAPTURE(size.rows);
        CAPTURE(turned);
        CAPTURE(apart);
        CudaGemm product = size;
        product.alpha = 0.5F;
        product.beta = turned % 2 == 0 ? 0.0F : 2.0F;
        GemmCase ready = gemm_case(ElementType::fp32, product, turned, apart);
        fake.prepare(ready.product);
        GemmCase c = gemm_case(ElementType::fp32, product, turned, apart);
        fake.products.multiply(fake.queue, ElementType::fp32, c.product);
        CHECK(difference(c.c.floats(), c.expected) < 2e-7);
      }
    }
  }
}

TEST_CASE("cublaslt: types are computed as they say, for the SMs of the queue") {
  FakeGemm fake;
  const auto compute = [&](ElementType type) {
    fake.prepare(gemm_case(type, product_of(2, 3, 4), 0, 0).product, type);
    return library.last_gemm.compute;
  };
  CHECK(compute(ElementType::fp32) == CUBLAS_COMPUTE_32F);
  CHECK(compute(ElementType::tf32) == CUBLAS_COMPUTE_32F_FAST_TF32);
  CHECK(compute(ElementType::bf16) == CUBLAS_COMPUTE_32F);
  CHECK(library.last_gemm.attributes[CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET] == 24);
  auto& preference = library.last_preference.attributes;
  CHECK(preference[CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES] == 32 << 20);
  CHECK(preference[CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK] ==
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  CHECK(fake.products.name() == "cublasLt 13.1.2");
}

TEST_CASE("cublaslt: the fastest of the offered algorithms stays, those that do not run do not") {
  FakeGemm fake;
  library.times = {3, 2, 1, 5};
  library.broken = {2};
  const GemmCase c = gemm_case(ElementType::fp32, product_of(2, 3, 4), 0, 0);
  fake.prepare(c.product);
  library.ran.clear();
  fake.products.multiply(fake.queue, ElementType::fp32, c.product);
  CHECK(library.ran == std::vector<int>{1});
  // A shape is timed once.
  fake.prepare(c.product);
  CHECK(library.ran == std::vector<int>{1});
  CHECK(fake.products.trouble().empty());  // not supported is no trouble
}

TEST_CASE("cublaslt: of those that hardly differ the library's first stays") {
  for (const double later : {0.99, 0.97}) {
    FakeGemm fake;
    library.times = {1, later};
    const GemmCase c = gemm_case(ElementType::fp32, product_of(2, 3, 4), 0, 0);
    fake.prepare(c.product);
    library.ran.clear();
    fake.products.multiply(fake.queue, ElementType::fp32, c.product);
    CHECK(library.ran == std::vector<int>{later < 0.98 ? 1 : 0});
  }
}

TEST_CASE("cublaslt: an error that is more than not being supported is kept, and told") {
  FakeGemm fake;
  library.broken = {0};
  library.broken_by = CUBLAS_STATUS_EXECUTION_FAILED;
  fake.prepare(gemm_case(ElementType::fp32, product_of(2, 3, 4), 0, 0).product);
  CHECK(fake.products.name() == "cublasLt 13.1.2 and plain kernels");
  CHECK(std::string(fake.products.trouble()).starts_with("cublasLtMatmul: "));
  CHECK(std::string(fake.products.trouble()).find("fp32 2x3x4") != std::string::npos);
}

TEST_CASE("cublaslt: a shape for which nothing runs is a plain kernel's, and the name says so") {
  for (const bool any_offered : {true, false}) {
    FakeGemm fake;
    library.broken = {0};
    if (!any_offered) library.times.clear();
    CudaGemm product = product_of(2, 3, 4, 5);
    product.beta = 1;
    GemmCase c = gemm_case(ElementType::fp32, product, 2, 0);
    fake.prepare(c.product);
    CHECK(fake.products.name() == "cublasLt 13.1.2 and plain kernels");
    CHECK(fake.choices.empty());
    fake.products.multiply(fake.queue, ElementType::fp32, c.product);
    CHECK(difference(c.c.floats(), c.expected) < 2e-7);
    library.broken.clear();
    library.times = {1};
    fake.prepare(gemm_case(ElementType::fp32, product_of(6, 4, 9), 0, 0).product);
    CHECK(fake.products.name() == "cublasLt 13.1.2 and plain kernels");
    CHECK(fake.choices.size() == 1);
  }
}

TEST_CASE("cublaslt: choices are stored and taken back without timing") {
  CudaChoices choices;
  const GemmCase c = gemm_case(ElementType::fp32, product_of(2, 3, 4), 0, 0);
  {
    FakeGemm fake;
    library.times = {3, 1};
    fake.prepare(c.product);
    choices = fake.choices;
  }
  REQUIRE(choices.size() == 1);
  CHECK(choices.begin()->second == "0000000000000001" + std::string(112, '0'));
  // How often it was run to be chosen, more than once where it was timed; and which one stays.
  const auto ran_with = [&](const std::string& text, std::set<int> broken = {}) {
    FakeGemm fake;
    library.times = {1, 3};
    library.broken = std::move(broken);
    fake.choices = {{choices.begin()->first, text}};
    fake.prepare(c.product);
    const bool timed = library.ran.size() > 1;
    library.ran.clear();
    fake.products.multiply(fake.queue, ElementType::fp32, c.product);
    return std::pair(timed, library.ran.back());
  };
  CHECK(ran_with(choices.begin()->second) == std::pair(false, 1));
  CHECK(ran_with(choices.begin()->second, {1}) == std::pair(true, 0));
  // A text that is no algorithm, or none here, leads to a new choice.
  CHECK(ran_with("0000000000000007" + std::string(112, '0')) == std::pair(true, 0));
  CHECK(ran_with("1") == std::pair(true, 0));
  CHECK(ran_with(std::string(127, '0') + "g") == std::pair(true, 0));
  CHECK(ran_with(std::string(112, '0') + "-000000000000001") == std::pair(true, 0));
}

TEST_CASE("cublaslt: nothing is left behind") {
  {
    FakeGemm fake;
    for (const std::int64_t rows : {1, 2, 3})
      fake.prepare(gemm_case(ElementType::fp32, product_of(rows, 3, 4, 2), 0, 0).product);
    CHECK(library.descriptors == 3 * 4);
    library.broken = {0};
    const GemmCase c = gemm_case(ElementType::fp32, product_of(9, 3, 4), 0, 0);
    fake.prepare(c.product);
    CHECK(library.descriptors == 4 * 4);
  }
  CHECK(library.descriptors == 0);
  CHECK(library.handles == 0);
}

TEST_CASE("cublaslt: algorithms survive being text") {
  cublasLtMatmulAlgo_t algorithm{};
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = 0x0123456789abcdefULL * (i + 1);
  const auto again = algorithm_from(to_text(algorithm));
  REQUIRE(again);
  CHECK(std::equal(std::begin(algorithm.data), std::end(algorithm.data), again->data));
  CHECK(to_text(algorithm).size() == 128);
}

TEST_CASE("cublaslt: a shape knows how its operands are aligned") {
  const auto alignment = [](CUdeviceptr data, std::int64_t stride, std::int64_t step,
                            std::int64_t batch) {
    CudaGemm product = product_of(2, 3, 4, batch);
    product.a = {data, stride, step, false};
    return shape_of(ElementType::bf16, product, 1).a.alignment;
  };
  CHECK(alignment(256, 64, 0, 1) == 16);
  CHECK(alignment(24, 64, 0, 1) == 8);
  CHECK(alignment(256, 6, 0, 1) == 4);
  CHECK(alignment(256, 64, 33, 2) == 2);
  CHECK(alignment(256, 64, 33, 1) == 16);  // one product takes no step
}

/// A layer whose products are all the library's; none is asked for that was not prepared.
void check_layer(const LayerSettings& settings, const test::Extents& extents) {
  FakeGemm fake;
  const NetworkLayer layer = test::derived(settings, extents);
  CAPTURE(kind_name(settings));
  constexpr std::int64_t kBatch = 2;
  test::Numbers numbers(5);
  const auto random = [&](std::int64_t count) {
    return Stored(ElementType::fp32, numbers.between(-1, 1, count));
  };
  const auto made = [&](const KeptTensor& tensor) {
    return Stored(ElementType::fp32, test::elements_of(tensor, kBatch));
  };
  std::vector<Stored> tensors;  // which the call points into
  tensors.reserve(32);
  CudaCall call;
  const auto added = [&](Stored tensor) {
    tensors.push_back(std::move(tensor));
    return tensors.back().data();
  };
  std::vector<Values> parameters;
  for (const Parameter& parameter : layer.parameters) {
    call.parameters.push_back(added(random(parameter.shape.elements())));
    parameters.push_back(tensors.back().values());
    call.gradients.push_back(
        added(Stored(ElementType::fp32, Floats(parameter.shape.elements(), 0))));
  }
  for (const KeptTensor& tensor : layer.kept) call.kept.push_back(added(made(tensor)));
  for (const KeptTensor& tensor : layer.left_for_weights) call.left.push_back(added(made(tensor)));
  const std::int64_t elements = kBatch * layer.input.elements();
  Stored input = random(elements);
  const std::int64_t outputs = kBatch * layer.output.elements();
  Stored output(ElementType::fp32, outputs);
  Stored output_gradient = random(outputs);
  Stored input_gradient(ElementType::fp32, elements);
  call.input = input.data();
  call.output = output.data();
  call.output_gradient = output_gradient.data();
  call.input_gradient = input_gradient.data();
  const auto kernels = cuda_layer(fake.queue, layer, ElementType::fp32, kBatch);
  const std::size_t shapes = fake.choices.size();
  kernels->forward(fake.queue, call);
  kernels->backward_input(fake.queue, call);
  kernels->backward_weight(fake.queue, call);
  CHECK(fake.choices.size() == shapes);
  const test::ReferencePasses expected =
      test::run_reference(layer, kBatch, parameters, input.values(), {}, output_gradient.values());
  CHECK(difference(output.floats(), expected.forward.output) < 1e-5);
  CHECK(difference(input_gradient.floats(), expected.backward.input_gradient) < 1e-5);
  CHECK(!fake.choices.empty());
}

TEST_CASE("cublaslt: layers by the library make what the reference makes") {
  check_layer(AttentionBlock{2, true}, {5, 6});
  check_layer(Lstm{3, true}, {5, 3});  // rows of 12 bytes: products begin at odd places
  check_layer(Lstm{4, false}, {2, 6});
}

// The real one, as far as it goes without a device.

TEST_CASE("cublaslt: a library that is not there or is another is told of") {
  auto missing = load_cublaslt("/nowhere/libcublasLt.so");
  REQUIRE(!missing);
  CHECK(missing.problems().front().fault == Fault::no_device);
  CHECK(missing.problems().front().message.starts_with(
      "cuBLASLt cannot be loaded: /nowhere/libcublasLt.so: "));
  auto other = load_cublaslt("libc.so.6");
  REQUIRE(!other);
  CHECK(other.problems().front().message == "'libc.so.6' lacks cublasLtCreate");
}

TEST_CASE("cublaslt: a library that does not start is told of") {
  HostDevice device;
  const CublasLt functions = fake_library();
  library.starts = false;
  CudaChoices choices;
  CHECK_THROWS_WITH_AS(CublasLtGemm(device.driver, functions, choices),
                       "cublasLtCreate: CUBLAS_STATUS, it is not to be", CublasLtError);
}

TEST_CASE("cublaslt: the real library takes the attributes that it is given") {
  // Descriptors need no device. (A handle does, and the library leaks where it finds none.)
  const auto real = load_cublaslt("/usr/local/cuda/lib64/libcublasLt.so.13");
  if (!real) {
    MESSAGE("skipped: ", real.problems().front().message);
    return;
  }
  const auto good = [](cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; };
  const std::int32_t number = 1;
  const std::int64_t step = 100;
  cublasLtMatmulDesc_t product = nullptr;
  REQUIRE(good(real->cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F)));
  for (const auto attribute : {CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB,
                               CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET}) {
    CHECK(good(real->cublasLtMatmulDescSetAttribute(product, attribute, &number, sizeof number)));
  }
  CHECK(good(real->cublasLtMatmulDescDestroy(product)));
  cublasLtMatrixLayout_t layout = nullptr;
  REQUIRE(good(real->cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 5, 3, 7)));
  CHECK(good(real->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &number, sizeof number)));
  CHECK(good(real->cublasLtMatrixLayoutSetAttribute(
      layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step)));
  CHECK(good(real->cublasLtMatrixLayoutDestroy(layout)));
}

}  // namespace
}  // namespace plumbline
