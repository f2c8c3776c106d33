// Attention between the dense layers of its block: by matrix products, or by fused kernels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline::cuda {

struct AttentionTensors {
  CUdeviceptr context = 0;    ///< [batch, tokens, widths.queries()].
  CUdeviceptr logsumexp = 0;  ///< logsumexp of the scores: fp32 [batch, heads, tokens].
  /// [batch, tokens, widths.qkv()]: a row holds all of Q, then K, then V, and head j lies in
  /// columns j x head size onwards of each.
  CUdeviceptr qkv = 0;
};

/// softmax(Q K^T / sqrt(head size)) V of all heads of a micro-batch. It has its own scratch.
class Attention {
 public:
  virtual ~Attention() = default;

  /// Writes context and logsumexp.
  virtual void forward(const CudaQueue& queue, const AttentionTensors& of) const = 0;
  /// Writes qkv_gradient from the forward's results and the gradient of context.
  virtual void backward(const CudaQueue& queue, const AttentionTensors& of,
                        CUdeviceptr qkv_gradient, CUdeviceptr context_gradient) const = 0;
};

/// Attention by products with a softmax between them. The scores are in memory. Samples are taken
/// together as long as their scores take at most 256 MiB. The backward recomputes the scores.
std::unique_ptr<Attention> unfused_attention(const AttentionBlock& settings, const LayerSite& site);

/// Attention in one kernel forward and two backward, without scores in memory. Null where there is
/// no kernel for this type and head size.
std::unique_ptr<Attention> fused_attention(const AttentionBlock& settings, const LayerSite& site);

/// The faster of the two on the site's device, forward and backward together. Taken from the
/// queue's choices, or timed and added to them. Fused where the memory does not hold the scores.
std::unique_ptr<Attention> make_attention(const AttentionBlock& settings, const LayerSite& site);

}  // namespace plumbline::cuda
