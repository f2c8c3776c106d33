// One function for each class of kernel.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/kernel_bench.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "calibrate/cpu/attention.h"
#include "calibrate/cpu/buffer.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/kernels.h"
#include "calibrate/measure/sampling.h"
#include "calibrate/runtime/machine.h"
#include "calibrate/runtime/thread_core.h"
#include "calibrate/training/rotary_angles.h"

namespace plumbline {
namespace {

using cpu::Rows;

/// The most copies of a kernel's operands.
constexpr std::size_t kMostCopies = 1024;

/// The bytes after which the last-level cache holds nothing of the first ones.
std::size_t bytes_past_caches() {
  constexpr std::size_t usual = std::size_t{64} << 20U;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long known = sysconf(_SC_LEVEL3_CACHE_SIZE);
  // Where a machine is shared, a whole socket's cache may be told.
  if (known > 0) return std::clamp<std::size_t>(2 * static_cast<std::size_t>(known), 1, 4 * usual);
#endif
  return usual;
}

/// Small numbers of both signs.
void fill(const Buffer& buffer, std::size_t floats) {
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < floats; ++i) {
    state = state * 1664525U + 1013904223U;
    buffer.data()[i] = (static_cast<float>(state >> 8U) * 0x1p-24F - 0.5F) * 0.1F;
  }
}

/// The operands of one run.
using Operands = std::vector<float*>;

class CpuKernel : public BenchedKernel {
 public:
  using Run = std::function<void(const Operands& operands)>;

  /// `sizes` are those of the operands, in floats. `first` runs once for each copy of them.
  CpuKernel(const std::vector<std::int64_t>& sizes, Run run, const Run& first = {})
      : run_(std::move(run)) {
    std::size_t bytes = 0;
    for (const std::int64_t size : sizes) bytes += static_cast<std::size_t>(size) * sizeof(float);
    const std::size_t copies = copies_of(bytes);
    for (std::size_t copy = 0; copy < copies; ++copy) {
      Operands& operands = copies_.emplace_back();
      for (const std::int64_t size : sizes) {
        buffers_.emplace_back(static_cast<std::size_t>(size));
        fill(buffers_.back(), static_cast<std::size_t>(size));
        operands.push_back(buffers_.back().data());
      }
      if (first) first(operands);
    }
  }

  std::optional<double> nanoseconds(std::int64_t times) override {
    const RealTime cpu_before = thread_cpu_time();
    const RealTime before = now();
    for (std::int64_t i = 0; i < times; ++i) {
      run_(copies_[next_]);
      next_ = (next_ + 1) % copies_.size();
    }
    const Duration wall{now() - before};
    if (is_contaminated({wall, Duration{thread_cpu_time() - cpu_before}})) return std::nullopt;
    return static_cast<double>(wall.count()) / static_cast<double>(times);
  }

 private:
  /// Enough that caches do not hold them all; one where the memory has room for no more. Linux
  /// hands out memory that it does not have, so it is asked before.
  static std::size_t copies_of(std::size_t bytes) {
    const std::size_t wanted = std::clamp<std::size_t>(
        bytes_past_caches() / std::max<std::size_t>(bytes, 1) + 1, 2, kMostCopies);
    const auto available = available_memory();
    if (!available) return wanted;
    const std::size_t room = static_cast<std::size_t>(available->count) / 2;
    if (bytes > room) throw std::bad_alloc();
    return std::clamp<std::size_t>(room / std::max<std::size_t>(bytes, 1), 1, wanted);
  }

  Run run_;
  std::vector<Buffer> buffers_;
  std::vector<Operands> copies_;
  std::size_t next_ = 0;
};

class CpuKernelBench : public KernelBench {
 public:
  explicit CpuKernelBench(const KernelForms& forms) : forms_(forms), cores_(cores_of_thread()) {
    PLUMBLINE_CHECK(!matrix_library().empty(), "needs a build with oneDNN");
    use_one_thread();
    pin_to_core(0, 1);
  }
  ~CpuKernelBench() override { let_thread_use(cores_); }
  CpuKernelBench(const CpuKernelBench&) = delete;
  CpuKernelBench& operator=(const CpuKernelBench&) = delete;

  std::unique_ptr<BenchedKernel> prepare(const KernelKey& key) override {
    if (key.group.format != NumberFormat::fp32) return nullptr;
    switch (key.group.kernels) {
      case KernelClass::gemm:
        return product(key);
      case KernelClass::sdpa:
        return attention(key);
      case KernelClass::memory:
        return mover(key.group, {key.sizes[0], key.sizes[1]});
      case KernelClass::grouped:
      case KernelClass::batched:
      case KernelClass::collectives:
        break;
    }
    return nullptr;
  }
  std::string library(const KernelKey& key) const override {
    const bool is_product = key.group.kernels == KernelClass::gemm;
    return is_product ? matrix_library() : "plumbline with " + matrix_library();
  }

 private:
  /// The three products of a linear layer with its weights [outputs, inputs], as cpu::Dense has
  /// them.
  static std::unique_ptr<BenchedKernel> product(const KernelKey& key) {
    const auto [m, n, k, a, b] = key.sizes;
    const GemmSize size{m, n, k};
    const bool adds = key.group.accumulation != Accumulation::none;
    switch (key.group.pass) {
      case KernelPass::forward:
        return made({m * k, n * k, m * n}, [=](const Operands& of) {
          multiply(size, {of[0], size.depth}, {of[1], size.depth, true}, {of[2], size.columns});
        });
      case KernelPass::input:
        return made({m * k, k * n, m * n}, [=](const Operands& of) {
          multiply(size, {of[0], size.depth}, {of[1], size.columns}, {of[2], size.columns});
        });
      case KernelPass::weights:
        break;
    }
    return made({k * m, k * n, m * n}, [=](const Operands& of) {
      multiply(size, {of[0], size.rows, true}, {of[1], size.columns},
               {of[2], size.columns, adds ? 1.0F : 0.0F});
    });
  }

  static std::unique_ptr<BenchedKernel> attention(const KernelKey& key) {
    const auto [batch, queries, keys, heads, kv_heads] = key.sizes;
    const bool is_ours =
        queries == keys && key.group.query_size == key.group.value_size && heads % kv_heads == 0;
    if (!is_ours) return nullptr;
    const AttentionWidths widths{heads, kv_heads, key.group.query_size};
    const auto of_all = std::make_shared<cpu::Attention>(
        cpu::AttentionShape{batch, queries, widths, key.group.is_causal, 0});
    const std::int64_t rows = batch * queries;
    // context, logsumexp, qkv; gradients of qkv and context.
    const CpuKernel::Run forward = [=](const Operands& of) {
      of_all->forward(of[0], of[1], of[2]);
    };
    if (key.group.pass == KernelPass::forward)
      return made({rows * widths.queries(), rows * heads, rows * widths.qkv()}, forward);
    return std::make_unique<CpuKernel>(
        std::vector<std::int64_t>{rows * widths.queries(), rows * heads, rows * widths.qkv(),
                                  rows * widths.qkv(), rows * widths.queries()},
        [=](const Operands& of) { of_all->backward(of[3], of[4], of[2], of[1]); }, forward);
  }

  /// What moves more than it computes. A backward is all that the layers do for it.
  std::unique_ptr<BenchedKernel> mover(const KernelGroup& group, const Rows& shape) const {
    const bool forward = group.pass == KernelPass::forward;
    const std::int64_t count = shape.rows * shape.columns;
    switch (group.memory) {
      case MemoryKind::norm:
        return norm(forward, shape);
      case MemoryKind::rotation:
        return rotation(forward, shape);
      case MemoryKind::activation:
        return activation(forward, shape);
      case MemoryKind::residual:
        if (forward)
          return made({count, count},
                      [=](const Operands& of) { std::copy_n(of[0], count, of[1]); });
        return made({count, count}, [=](const Operands& of) { cpu::add(of[0], of[1], count); });
      case MemoryKind::sum:
        return made({count, count}, [=](const Operands& of) { cpu::add(of[0], of[1], count); });
      case MemoryKind::loss:
        return loss(forward, shape);
      case MemoryKind::lookup:
        if (group.pass == KernelPass::weights)
          return made({count, count}, [=](const Operands& of) { cpu::add(of[0], of[1], count); });
        return made({count, count}, [=](const Operands& of) { std::copy_n(of[0], count, of[1]); });
      case MemoryKind::routing:
      case MemoryKind::scores:
      case MemoryKind::permute:
      case MemoryKind::cast:
        break;
    }
    return nullptr;
  }

  /// The norm of each head in a row, which keeps its input.
  std::unique_ptr<BenchedKernel> head_norm(bool forward, const Rows& shape) const {
    const std::int64_t size = forms_.head_size;
    const std::int64_t heads = shape.columns / size;
    const std::int64_t count = shape.rows * shape.columns;
    const cpu::HeadRows rows{shape.rows, shape.columns, heads, size};
    // Heads, their input, rstd, scale; the gradient of the scale.
    const std::vector<std::int64_t> sizes = {count, count, shape.rows * heads, size, size};
    const CpuKernel::Run first = [=](const Operands& of) {
      cpu::norm_heads(of[0], of[1], shape.columns, of[2], heads, of[3], rows);
    };
    if (forward) return std::make_unique<CpuKernel>(sizes, first);
    return std::make_unique<CpuKernel>(
        sizes,
        [=](const Operands& of) {
          cpu::norm_heads_gradient(of[0], of[4], of[1], shape.columns, of[2], heads, of[3], rows);
        },
        first);
  }

  std::unique_ptr<BenchedKernel> norm(bool forward, const Rows& shape) const {
    if (forms_.norms_heads(shape.columns)) return head_norm(forward, shape);
    const std::int64_t count = shape.rows * shape.columns;
    const std::int64_t columns = shape.columns;
    // y, x, mean, rstd, scale, shift; gradients of y, x, scale and shift.
    const std::vector<std::int64_t> sizes = {count,   count, shape.rows, shape.rows, columns,
                                             columns, count, count,      columns,    columns};
    const bool is_centred = forms_.norm == NormKind::layer_norm;
    const CpuKernel::Run first = [=](const Operands& of) {
      if (is_centred) {
        cpu::layer_norm(of[0], of[2], of[3], of[1], {of[4], of[5]}, shape);
      } else {
        cpu::rms_norm(of[0], of[3], of[1], of[4], shape);
      }
    };
    if (forward) return std::make_unique<CpuKernel>(sizes, first);
    const auto backward = [=](const Operands& of) {
      if (is_centred) {
        const cpu::Normed normed{of[1], of[2], of[3]};
        cpu::layer_norm_input_gradient(of[7], of[6], nullptr, normed, of[4], shape);
        cpu::layer_norm_parameter_gradients({of[8], of[9]}, of[6], normed, shape);
      } else {
        cpu::rms_norm_input_gradient(of[7], of[6], nullptr, of[1], of[3], of[4], shape);
        cpu::rms_norm_scale_gradient(of[8], of[6], of[1], of[3], shape);
      }
    };
    return std::make_unique<CpuKernel>(sizes, backward, first);
  }

  std::unique_ptr<BenchedKernel> rotation(bool forward, const Rows& shape) const {
    const std::int64_t size = forms_.head_size;
    if (size % 2 != 0 || shape.columns % size != 0) return nullptr;
    const std::int64_t tokens = std::min(forms_.tokens, shape.rows);
    const auto angles = std::make_shared<std::vector<float>>(rotary_angles(tokens, size, 10'000));
    return made({shape.rows * shape.columns}, [=](const Operands& of) {
      cpu::turn_heads(of[0], angles->data(), !forward, tokens,
                      {shape.rows, shape.columns, shape.columns / size, size});
    });
  }

  std::unique_ptr<BenchedKernel> activation(bool forward, const Rows& shape) const {
    if (!forms_.activation) return nullptr;
    const std::int64_t count = shape.rows * shape.columns;
    const Activation kind = *forms_.activation;
    if (!forms_.gated && forward) {
      return made({count, count},
                  [=](const Operands& of) { cpu::activate(of[0], of[1], kind, count); });
    }
    if (!forms_.gated) {
      return made({count, count},
                  [=](const Operands& of) { cpu::activate_gradient(of[0], of[1], kind, count); });
    }
    if (forward) {
      return made({count, 2 * count},
                  [=](const Operands& of) { cpu::gate(of[0], of[1], kind, shape); });
    }
    return made({2 * count, count, 2 * count},
                [=](const Operands& of) { cpu::gate_gradient(of[0], of[1], of[2], kind, shape); });
  }

  /// In a layer's backward, I and W each make the gradient of the logits.
  static std::unique_ptr<BenchedKernel> loss(bool forward, const Rows& shape) {
    const std::int64_t count = shape.rows * shape.columns;
    if (forward) {
      return made({count}, [=](const Operands& of) {
        for (std::int64_t r = 0; r < shape.rows; ++r)
          cpu::softmax(of[0] + r * shape.columns, shape.columns);
      });
    }
    return made({count, count}, [=](const Operands& of) {
      for (int pass = 0; pass < 2; ++pass) {
        for (std::int64_t r = 0; r < shape.rows; ++r)
          cpu::cross_entropy_gradient(of[0] + r * shape.columns, of[1] + r * shape.columns, 1, 0,
                                      shape.columns);
      }
    });
  }

  static std::unique_ptr<BenchedKernel> made(const std::vector<std::int64_t>& sizes,
                                             CpuKernel::Run run) {
    return std::make_unique<CpuKernel>(sizes, std::move(run));
  }

  KernelForms forms_;
  std::vector<int> cores_;  ///< Of the thread, before it is bound to one.
};

}  // namespace

std::unique_ptr<KernelBench> cpu_kernel_bench(const KernelForms& forms) {
  return std::make_unique<CpuKernelBench>(forms);
}

}  // namespace plumbline
