// A CUDA device with host memory that does work at once when it is enqueued, and tensors on it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/libraries/builtin_convolutions.h"
#include "calibrate/cuda/libraries/builtin_gemm.h"
#include "calibrate/cuda/libraries/gemm.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/layer_cases.h"

namespace plumbline::test {

/// A driver whose memory starts as NaN.
inline CudaDriver host_driver() {
  CudaDriver driver;
  driver.cuModuleLoadData = [](CUmodule*, const void*) { return CUDA_SUCCESS; };
  driver.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
    static FakeKernel spin{{}, [](const FakeLaunch&) {}, {}};  // no time passes here
    if (std::strcmp(name, "plumbline_spin") == 0) {
      *function = reinterpret_cast<CUfunction>(&spin);
      return CUDA_SUCCESS;
    }
    const auto found = test::emulated_kernels().find(name);
    if (found == test::emulated_kernels().end()) return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(const_cast<FakeKernel*>(&found->second));
    return CUDA_SUCCESS;
  };
  driver.cuLaunchKernel = [](CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, CUstream, void** arguments, void**) {
    reinterpret_cast<const FakeKernel*>(function)->run(
        {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, arguments, 0, 1});
    return CUDA_SUCCESS;
  };
  driver.cuMemAlloc = [](CUdeviceptr* data, std::size_t bytes) {
    void* memory = ::operator new (bytes, std::align_val_t{256});
    std::memset(memory, 0xff, bytes);
    *data = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  };
  driver.cuMemFree = [](CUdeviceptr data) {
    ::operator delete (reinterpret_cast<void*>(data), std::align_val_t{256});
    return CUDA_SUCCESS;
  };
  driver.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return CUDA_SUCCESS;
  };
  driver.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return CUDA_SUCCESS;
  };
  driver.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return CUDA_SUCCESS;
  };
  driver.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  return driver;
}

/// A queue of that device with our own products and convolutions.
struct HostDevice {
  CudaDriver driver = host_driver();
  CudaKernels kernels{driver, nullptr};
  std::unique_ptr<CudaGemms> products = builtin_gemm();
  std::unique_ptr<CudaConvolutions> convolutions = builtin_convolutions();
  CudaQueue queue{&driver, &kernels, products.get(), convolutions.get(), nullptr, 1};
};

/// Makes the driver's events note the time of this clock, in ms. Only one driver at a time.
inline void note_events_by(const double& clock, CudaDriver& driver) {
  static const double* of_events = nullptr;
  of_events = &clock;
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(new double(0));
    return CUDA_SUCCESS;
  };
  driver.cuEventDestroy = [](CUevent event) {
    delete reinterpret_cast<double*>(event);
    return CUDA_SUCCESS;
  };
  driver.cuEventRecord = [](CUevent event, CUstream) {
    *reinterpret_cast<double*>(event) = *of_events;
    return CUDA_SUCCESS;
  };
  driver.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  driver.cuEventElapsedTime = [](float* milliseconds, CUevent begin, CUevent end) {
    *milliseconds =
        static_cast<float>(*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(begin));
    return CUDA_SUCCESS;
  };
}

/// The nearest bfloat16, ties to even, by independent arithmetic: 8 significant bits.
inline float rounded_to_bf16(float x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), -126);
  const float unit = std::ldexp(1.0F, exponent - 7);
  return std::nearbyint(x / unit) * unit;  // ties to even; a power of two: both steps are exact
}

/// A tensor in the device's type.
class Stored {
 public:
  /// All elements start as NaN.
  Stored(ElementType type, std::int64_t count)
      : type_(type), bytes_(static_cast<std::size_t>(count * bytes_of(type)), 0xff) {}
  /// The values are rounded to the type.
  Stored(ElementType type, const Floats& values) : Stored(type, std::ssize(values)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type_ == ElementType::bf16) {
        const auto half = static_cast<std::uint16_t>(
            std::bit_cast<std::uint32_t>(rounded_to_bf16(values[i])) >> 16U);
        std::memcpy(bytes_.data() + i * sizeof half, &half, sizeof half);
      } else {
        std::memcpy(bytes_.data() + i * sizeof(float), &values[i], sizeof(float));
      }
    }
  }

  Floats floats() const {
    Floats values(bytes_.size() / static_cast<std::size_t>(bytes_of(type_)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type_ == ElementType::bf16) {
        std::uint16_t half = 0;
        std::memcpy(&half, bytes_.data() + i * sizeof half, sizeof half);
        values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
      } else {
        std::memcpy(&values[i], bytes_.data() + i * sizeof(float), sizeof(float));
      }
    }
    return values;
  }
  Values values() const { return to_values(floats()); }
  CUdeviceptr data() { return reinterpret_cast<CUdeviceptr>(bytes_.data()); }
  friend bool operator==(const Stored&, const Stored&) = default;  ///< Bit by bit.

 private:
  ElementType type_;
  std::vector<unsigned char> bytes_;
};

/// Computes alpha A B + beta C of one product of the batch from the definition. Elements outside C
/// stay.
inline void multiply_plainly(const CudaGemm& p, const Floats& a, const Floats& b, Values& c) {
  const auto at = [](const CudaGemm::Operand& of, std::int64_t z, std::int64_t row,
                     std::int64_t column) {
    return z * of.step + (of.turned ? column * of.stride + row : row * of.stride + column);
  };
  for (std::int64_t z = 0; z < p.batch; ++z) {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      for (std::int64_t column = 0; column < p.columns; ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.depth; ++k)
          sum += static_cast<double>(a[at(p.a, z, row, k)]) * b[at(p.b, z, k, column)];
        double& to = c[at(p.c, z, row, column)];
        to = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * to);
      }
    }
  }
}

/// A product without operands.
inline CudaGemm product_of(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                           std::int64_t batch = 1) {
  CudaGemm made;
  made.rows = rows;
  made.columns = columns;
  made.depth = depth;
  made.batch = batch;
  return made;
}

/// A product with operands of random numbers, and its expected result.
struct GemmCase {
  CudaGemm product;
  Stored a;
  Stored b;
  Stored c;
  Values expected;
};

/// Makes a product. The bits of `turned` say which operands are turned. Rows are `apart` elements
/// longer than needed, and products are as much further apart. If beta and `apart` are 0, C starts
/// as NaN.
inline GemmCase gemm_case(ElementType type, CudaGemm p, int turned, std::int64_t apart) {
  p.a.turned = (turned & 1) != 0;
  p.b.turned = (turned & 2) != 0;
  const auto place = [&](CudaGemm::Operand& of, std::int64_t rows, std::int64_t columns) {
    if (of.turned) std::swap(rows, columns);
    of.stride = columns + apart;
    of.step = rows * of.stride + apart;
    return of.step * p.batch;
  };
  Numbers numbers(3);
  const std::int64_t of_a = place(p.a, p.rows, p.depth);
  const std::int64_t of_b = place(p.b, p.depth, p.columns);
  const std::int64_t of_c = place(p.c, p.rows, p.columns);
  GemmCase made{
      p,
      Stored(type, numbers.between(-1, 1, of_a)),
      Stored(type, numbers.between(-1, 1, of_b)),
      p.beta == 0 && apart == 0 ? Stored(type, of_c) : Stored(type, numbers.between(-1, 1, of_c)),
      {}};
  made.expected = made.c.values();
  multiply_plainly(p, made.a.floats(), made.b.floats(), made.expected);
  made.product.a.data = made.a.data();
  made.product.b.data = made.b.data();
  made.product.c.data = made.c.data();
  return made;
}

}  // namespace plumbline::test
