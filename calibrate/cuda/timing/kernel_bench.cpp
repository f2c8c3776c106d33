// One function for each class of kernel.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "calibrate/cuda/driver/timing.h"
#include "calibrate/cuda/layers/attention.h"
#include "calibrate/cuda/layers/layer_parts.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"

namespace plumbline {
namespace {

using cuda::Rows;

/// Larger than the last-level cache of any device: 50 MB on an H100, 126 MB on a B200.
constexpr std::size_t kPastCaches = std::size_t{256} << 20U;
constexpr std::size_t kMostCopies = 256;

std::optional<ElementType> element_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp32:
      return ElementType::fp32;
    case NumberFormat::bf16:
      return ElementType::bf16;
    default:
      return std::nullopt;
  }
}

/// A tensor among the operands of a kernel.
struct OperandSize {
  std::int64_t elements = 0;
  ElementType type = ElementType::fp32;
  bool is_zero = false;  ///< Ids and labels are; all else is noise.
};

using Operands = std::vector<CUdeviceptr>;

/// Calls `work`; returns whether the memory sufficed.
template <class Work>
bool fits(Work&& work) {
  try {
    work();
    return true;
  } catch (const CudaError& error) {
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
    return false;
  }
}

class CudaKernelRuns : public BenchedKernel {
 public:
  using Run = std::function<void(const Operands& operands)>;

  /// `first` runs once for each copy of the operands.
  CudaKernelRuns(const CudaQueue& queue, const std::vector<OperandSize>& sizes, Run run,
                 const Run& first = {})
      : queue_(queue), run_(std::move(run)), span_(queue) {
    std::size_t bytes = 0;
    for (const OperandSize& size : sizes) bytes += bytes_of_operand(size);
    const std::size_t wanted =
        std::clamp<std::size_t>(kPastCaches / std::max<std::size_t>(bytes, 1) + 1, 2, kMostCopies);
    while (copies_.size() < wanted && fits([&] { add_copy(sizes, first); })) {
    }
    if (copies_.empty()) throw std::bad_alloc();
    PLUMBLINE_CUDA(*queue.driver, cuStreamSynchronize, queue.stream);
  }
  ~CudaKernelRuns() override { queue_.driver->cuStreamSynchronize(queue_.stream); }
  CudaKernelRuns(const CudaKernelRuns&) = delete;
  CudaKernelRuns& operator=(const CudaKernelRuns&) = delete;

  std::optional<double> nanoseconds(std::int64_t times) override {
    double milliseconds = 0;
    for (std::int64_t done = 0; done < times; done += CudaSpan::kTogether) {
      const auto together =
          static_cast<int>(std::min<std::int64_t>(times - done, CudaSpan::kTogether));
      milliseconds += span_.milliseconds(together, [&] {
        run_(copies_[next_].operands);
        next_ = (next_ + 1) % copies_.size();
      });
    }
    return milliseconds * 1e6 / static_cast<double>(times);
  }

 private:
  struct Copy {
    std::vector<CudaScratch> memory;
    Operands operands;
  };

  static std::size_t bytes_of_operand(const OperandSize& size) {
    return static_cast<std::size_t>(size.elements * bytes_of(size.type));
  }

  void add_copy(const std::vector<OperandSize>& sizes, const Run& first) {
    Copy copy;
    for (const OperandSize& size : sizes) {
      copy.memory.emplace_back(*queue_.driver, bytes_of_operand(size));
      copy.operands.push_back(copy.memory.back().data());
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].is_zero) {
        cuda::fill(queue_, ElementType::fp32, copy.operands[i], 0, sizes[i].elements);
      } else {
        cuda::noise(queue_, sizes[i].type, copy.operands[i], static_cast<std::uint32_t>(i),
                    sizes[i].elements, 0.05F);
      }
    }
    if (first) first(copy.operands);
    copies_.push_back(std::move(copy));
  }

  CudaQueue queue_;
  Run run_;
  CudaSpan span_;
  std::vector<Copy> copies_;
  std::size_t next_ = 0;
};

class CudaKernelBench : public KernelBench {
 public:
  CudaKernelBench(const CudaQueue& queue, const KernelForms& forms)
      : queue_(queue), forms_(forms) {}

  std::unique_ptr<BenchedKernel> prepare(const KernelKey& key) override {
    const auto type = element_of(key.group.format);
    if (!type) return nullptr;
    std::unique_ptr<BenchedKernel> prepared;
    if (!fits([&] { prepared = prepare(key, *type); })) throw std::bad_alloc();
    return prepared;
  }
  std::string library(const KernelKey& key) const override {
    return key.group.kernels == KernelClass::gemm ? std::string(queue_.products->name())
                                                  : "plumbline";
  }

 private:
  std::unique_ptr<BenchedKernel> prepare(const KernelKey& key, ElementType type) const {
    switch (key.group.kernels) {
      case KernelClass::gemm:
        return product(key, type);
      case KernelClass::sdpa:
        return attention(key, type);
      case KernelClass::memory:
        return mover(key.group, type, {key.sizes[0], key.sizes[1]});
      case KernelClass::grouped:
      case KernelClass::batched:
      case KernelClass::collectives:
        break;
    }
    return nullptr;
  }

  /// The three products of a linear layer with its weights [outputs, inputs], as cuda::Dense has
  /// them.
  std::unique_ptr<BenchedKernel> product(const KernelKey& key, ElementType type) const {
    const auto [m, n, k, a, b] = key.sizes;
    const Accumulation sum = key.group.accumulation;
    const bool is_own_sum =
        sum == Accumulation::none || (sum == Accumulation::bf16) == (type == ElementType::bf16);
    if (!is_own_sum) return nullptr;
    CudaGemm p{m, n, k, 1, {0, k}, {0, n}, {0, n}};
    if (key.group.pass == KernelPass::forward) p.b = {0, k, 0, true};
    if (key.group.pass == KernelPass::weights) p.a = {0, m, 0, true};
    p.beta = sum == Accumulation::none ? 0 : 1;
    const CudaQueue queue = queue_;
    const auto with = [=](const Operands& of) {
      CudaGemm placed = p;
      placed.a.data = of[0];
      placed.b.data = of[1];
      placed.c.data = of[2];
      return placed;
    };
    return std::make_unique<CudaKernelRuns>(
        queue, std::vector<OperandSize>{{m * k, type}, {k * n, type}, {m * n, type}},
        [=](const Operands& of) { queue.products->multiply(queue, type, with(of)); },
        [=](const Operands& of) {
          if (!queue.products->is_prepared(queue, type, with(of)))
            queue.products->prepare(queue, type, with(of));
        });
  }

  std::unique_ptr<BenchedKernel> attention(const KernelKey& key, ElementType type) const {
    const auto [batch, queries, keys, heads, kv_heads] = key.sizes;
    const bool is_ours =
        queries == keys && key.group.query_size == key.group.value_size && heads % kv_heads == 0;
    if (!is_ours) return nullptr;
    const std::int64_t size = key.group.query_size;
    const AttentionBlock block{
        .heads = heads, .causal = key.group.is_causal, .kv_heads = kv_heads, .head_size = size};
    const NetworkInput input{{{queries, heads * size}}, std::nullopt};
    const auto layer = derive_layer(block, input, {});
    PLUMBLINE_CHECK(layer, queries, heads, size);
    const std::shared_ptr<const cuda::Attention> made =
        cuda::make_attention(block, cuda::LayerSite{queue_, *layer, type, batch});
    const AttentionWidths widths{heads, kv_heads, size};
    const std::int64_t rows = batch * queries;
    const CudaQueue queue = queue_;
    const auto forward = [=](const Operands& of) { made->forward(queue, {of[0], of[1], of[2]}); };
    // Context, logsumexp and qkv; the gradients of qkv and context.
    std::vector<OperandSize> sizes = {{rows * widths.queries(), type},
                                      {rows * heads, ElementType::fp32},
                                      {rows * widths.qkv(), type}};
    if (key.group.pass == KernelPass::forward)
      return std::make_unique<CudaKernelRuns>(queue, sizes, forward);
    sizes.push_back({rows * widths.qkv(), type});
    sizes.push_back({rows * widths.queries(), type});
    return std::make_unique<CudaKernelRuns>(
        queue, sizes,
        [=](const Operands& of) {
          made->backward(queue, {of[0], of[1], of[2]}, of[3], of[4]);
        },
        forward);
  }

  /// What moves more than it computes. A backward is all that the layers do for it.
  std::unique_ptr<BenchedKernel> mover(const KernelGroup& group, ElementType type,
                                       const Rows& shape) const {
    const bool forward = group.pass == KernelPass::forward;
    switch (group.memory) {
      case MemoryKind::norm:
        return norm(forward, type, shape);
      case MemoryKind::rotation:
        return rotation(forward, type, shape);
      case MemoryKind::activation:
        return activation(forward, type, shape);
      case MemoryKind::residual:
        return forward ? copied(type, shape) : added(type, shape);
      case MemoryKind::sum:
        return added(type, shape);
      case MemoryKind::loss:
        return loss(forward, type, shape);
      case MemoryKind::lookup:
      case MemoryKind::routing:
      case MemoryKind::scores:
      case MemoryKind::permute:
      case MemoryKind::cast:
        break;
    }
    return nullptr;
  }

  std::unique_ptr<BenchedKernel> copied(ElementType type, const Rows& shape) const {
    const CudaQueue queue = queue_;
    return made({{shape.elements(), type}, {shape.elements(), type}},
                [=](const Operands& of) { cuda::bias_rows(queue, type, of[0], 0, of[1], shape); });
  }
  std::unique_ptr<BenchedKernel> added(ElementType type, const Rows& shape) const {
    const CudaQueue queue = queue_;
    return made({{shape.elements(), type}, {shape.elements(), type}}, [=](const Operands& of) {
      cuda::add(queue, type, of[0], of[1], shape.elements());
    });
  }

  /// The norm of each head in a row, which keeps its input.
  std::unique_ptr<BenchedKernel> head_norm(bool forward, ElementType type,
                                           const Rows& shape) const {
    const std::int64_t size = forms_.head_size;
    const std::int64_t heads = shape.columns / size;
    const cuda::HeadRows rows{shape.rows, shape.columns, heads, size, heads};
    const CudaQueue queue = queue_;
    // Heads, their input, rstd, scale; the gradient of the scale, scratch.
    const std::vector<OperandSize> sizes = {{shape.elements(), type},
                                            {shape.elements(), type},
                                            {shape.rows * heads},
                                            {size, type},
                                            {size, type},
                                            {cuda::head_partial_floats(rows)}};
    const CudaKernelRuns::Run first = [=](const Operands& of) {
      cuda::norm_heads(queue, type, of[0], of[1], of[2], of[3], rows);
    };
    if (forward) return std::make_unique<CudaKernelRuns>(queue, sizes, first);
    return std::make_unique<CudaKernelRuns>(
        queue, sizes,
        [=](const Operands& of) {
          cuda::norm_heads_gradient(queue, type, of[0], of[4], of[1], of[2], of[3], rows, of[5]);
        },
        first);
  }

  std::unique_ptr<BenchedKernel> norm(bool forward, ElementType type, const Rows& shape) const {
    if (forms_.norms_heads(shape.columns)) return head_norm(forward, type, shape);
    const CudaQueue queue = queue_;
    const bool is_centred = forms_.norm == NormKind::layer_norm;
    const std::int64_t partial = cuda::partial_floats(shape);
    // y, x, mean, rstd, scale, shift; gradients of y, x, scale and shift; scratch.
    const std::vector<OperandSize> sizes = {{shape.elements(), type},
                                            {shape.elements(), type},
                                            {shape.rows},
                                            {shape.rows},
                                            {shape.columns, type},
                                            {shape.columns, type},
                                            {shape.elements(), type},
                                            {shape.elements(), type},
                                            {shape.columns, type},
                                            {shape.columns, type},
                                            {partial}};
    const auto normed = [=](const Operands& of) {
      return cuda::Normed{of[1], is_centred ? of[2] : 0, of[3]};
    };
    const CudaKernelRuns::Run first = [=](const Operands& of) {
      cuda::layer_norm(queue, type, of[0], normed(of), of[4], is_centred ? of[5] : 0, shape);
    };
    if (forward) return std::make_unique<CudaKernelRuns>(queue, sizes, first);
    const auto backward = [=](const Operands& of) {
      cuda::layer_norm_input_gradient(queue, type, of[7], of[6], 0, normed(of), of[4], shape);
      cuda::add_scale_gradient(queue, type, of[8], of[6], normed(of), shape, of[10]);
      if (is_centred) cuda::add_column_sums(queue, type, of[9], of[6], shape, of[10]);
    };
    return std::make_unique<CudaKernelRuns>(queue, sizes, backward, first);
  }

  std::unique_ptr<BenchedKernel> rotation(bool forward, ElementType type, const Rows& shape) const {
    const std::int64_t size = forms_.head_size;
    if (size % 2 != 0 || shape.columns % size != 0) return nullptr;
    const std::int64_t tokens = std::min(forms_.tokens, shape.rows);
    const cuda::HeadRows heads{shape.rows, shape.columns, shape.columns / size, size,
                               shape.columns / size};
    const CudaQueue queue = queue_;
    // The angles are noise: they cost what others do.
    return made({{shape.elements(), type}, {tokens * size}}, [=](const Operands& of) {
      cuda::turn_heads(queue, type, of[0], of[1], !forward, tokens, heads);
    });
  }

  std::unique_ptr<BenchedKernel> activation(bool forward, ElementType type,
                                            const Rows& shape) const {
    if (!forms_.activation) return nullptr;
    const std::int64_t count = shape.elements();
    const CudaQueue queue = queue_;
    const Activation kind = *forms_.activation;
    if (!forms_.gated) {
      return made({{count, type}, {count, type}}, [=](const Operands& of) {
        if (forward) {
          cuda::activate(queue, type, kind, of[0], of[1], count);
        } else {
          cuda::activate_gradient(queue, type, kind, of[0], of[0], of[1], count);
        }
      });
    }
    if (forward) {
      return made({{count, type}, {2 * count, type}},
                  [=](const Operands& of) { cuda::gate(queue, type, kind, of[0], of[1], shape); });
    }
    return made({{2 * count, type}, {count, type}, {2 * count, type}}, [=](const Operands& of) {
      cuda::gate_gradient(queue, type, kind, of[0], of[1], of[2], shape);
    });
  }

  /// In a layer's backward, I and W each make the gradient of the logits.
  std::unique_ptr<BenchedKernel> loss(bool forward, ElementType type, const Rows& shape) const {
    const CudaQueue queue = queue_;
    const OperandSize labels{shape.rows, ElementType::fp32, true};
    if (forward) {
      return made({{shape.elements(), type}, {shape.rows}, labels}, [=](const Operands& of) {
        cuda::softmax_loss(queue, type, of[0], of[1], of[2], shape);
      });
    }
    return made({{shape.elements(), type}, {shape.elements(), type}, {shape.rows}, labels},
                [=](const Operands& of) {
                  for (int pass = 0; pass < 2; ++pass)
                    cuda::logits_gradient(queue, type, of[0], of[1], of[2], of[3], shape, 1, 0);
                });
  }

  std::unique_ptr<BenchedKernel> made(const std::vector<OperandSize>& sizes,
                                      CudaKernelRuns::Run run) const {
    return std::make_unique<CudaKernelRuns>(queue_, sizes, std::move(run));
  }

  CudaQueue queue_;
  KernelForms forms_;
};

}  // namespace

std::unique_ptr<KernelBench> cuda_kernel_bench(const CudaQueue& queue, const KernelForms& forms) {
  return std::make_unique<CudaKernelBench>(queue, forms);
}

}  // namespace plumbline
