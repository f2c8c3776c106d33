// Attention in kernels of its own, and the choice between it and products.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <memory>
#include <string>

#include "calibrate/cuda/driver/timing.h"
#include "calibrate/cuda/layers/attention.h"

namespace plumbline::cuda {
namespace {

constexpr const char* kFused = "fused";
constexpr const char* kGemms = "products";

AttentionShape shape_of(const AttentionBlock& settings, const LayerSite& site) {
  const Shape& input = site.layer.input;
  return {site.batch,
          input.extents.front(),
          attention_widths(settings, input.extents.back()),
          {settings.causal, settings.window}};
}

class FusedAttention : public Attention {
 public:
  FusedAttention(const AttentionShape& shape, const LayerSite& site)
      : shape_(shape),
        products_(site.fp32_scratch(shape.batch * shape.widths.heads * shape.tokens)) {}

  void forward(const CudaQueue& queue, const AttentionTensors& of) const override {
    cuda::fused_attention(queue, shape_, of.context, of.logsumexp, of.qkv);
  }
  void backward(const CudaQueue& queue, const AttentionTensors& of, CUdeviceptr qkv_gradient,
                CUdeviceptr context_gradient) const override {
    fused_attention_gradient(queue, shape_, qkv_gradient, context_gradient, of.context,
                             of.logsumexp, of.qkv, products_.data());
  }

 private:
  AttentionShape shape_;
  CudaScratch products_;
};

/// The key in choices: "attention bf16 8x1024x16*64 causal sms 132"; 16/4*64 where heads share
/// keys.
std::string described(const AttentionShape& shape, const LayerSite& site) {
  const AttentionWidths& widths = shape.widths;
  const std::string of_keys =
      widths.sharing() > 1 ? fmt::format("/{}", widths.kv_heads) : std::string();
  const std::string window =
      shape.seen.window > 0 ? fmt::format(" window {}", shape.seen.window) : std::string();
  return fmt::format("attention {} {}x{}x{}{}*{}{}{} sms {}", name(site.type), shape.batch,
                     shape.tokens, widths.heads, of_keys, widths.head_size,
                     shape.seen.causal ? " causal" : "", window, site.queue.sms);
}

/// The time of forward and backward, on temporary tensors.
double milliseconds_of(const Attention& attention, const AttentionShape& shape,
                       const LayerSite& site) {
  const std::int64_t rows = shape.batch * shape.tokens;
  const std::int64_t elements = rows * shape.widths.queries();
  const CudaScratch qkv = site.scratch(rows * shape.widths.qkv());
  const CudaScratch context = site.scratch(elements);
  const CudaScratch logsumexp = site.fp32_scratch(rows * shape.widths.heads);
  const CudaScratch qkv_gradient = site.scratch(rows * shape.widths.qkv());
  const CudaScratch context_gradient = site.scratch(elements);
  noise(site.queue, site.type, qkv.data(), 1, rows * shape.widths.qkv());
  noise(site.queue, site.type, context_gradient.data(), 2, elements);
  const AttentionTensors tensors{context.data(), logsumexp.data(), qkv.data()};
  const double time = median_milliseconds(site.queue, [&] {
    attention.forward(site.queue, tensors);
    attention.backward(site.queue, tensors, qkv_gradient.data(), context_gradient.data());
  });
  // Work on the tensors must end before they are freed.
  PLUMBLINE_CUDA(*site.queue.driver, cuStreamSynchronize, site.queue.stream);
  return time;
}

}  // namespace

std::unique_ptr<Attention> fused_attention(const AttentionBlock& settings, const LayerSite& site) {
  const AttentionShape shape = shape_of(settings, site);
  if (!is_fused(site.type, shape)) return nullptr;
  return std::make_unique<FusedAttention>(shape, site);
}

std::unique_ptr<Attention> make_attention(const AttentionBlock& settings, const LayerSite& site) {
  auto fused = fused_attention(settings, site);
  if (!fused) return unfused_attention(settings, site);
  if (site.queue.choices == nullptr) return fused;
  const AttentionShape shape = shape_of(settings, site);
  CudaChoices& choices = *site.queue.choices;
  const std::string what = described(shape, site);
  const auto found = choices.find(what);
  const std::string chosen = found == choices.end() ? "" : found->second;
  if (chosen == kFused) return fused;
  if (chosen == kGemms) return unfused_attention(settings, site);
  const double milliseconds = milliseconds_of(*fused, shape, site);
  try {
    auto products = unfused_attention(settings, site);
    if (milliseconds_of(*products, shape, site) < milliseconds) {
      choices[what] = kGemms;
      return products;
    }
  } catch (const CudaError& error) {  // scores grow with the square of the tokens
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
  }
  choices[what] = kFused;
  return fused;
}

}  // namespace plumbline::cuda
