// Attention between the dense layers of its block: by products, or fused into kernels of its own.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline::cuda {

struct AttentionTensors {
  CUdeviceptr context = 0;    ///< [batch, tokens, features].
  CUdeviceptr logsumexp = 0;  ///< Of the scores: fp32 [batch, heads, tokens].
  /// [batch, tokens, 3 features]: a row holds all of Q, then K, then V, and head j lies in columns
  /// j x head size onwards of each.
  CUdeviceptr qkv = 0;
};

/// softmax(Q K^T / sqrt(head size)) V of all heads of a micro-batch. Scratch is its own.
class Attention {
 public:
  virtual ~Attention() = default;

  /// Writes context and logsumexp.
  virtual void forward(const CudaQueue& queue, const AttentionTensors& of) const = 0;
  /// Writes qkv_gradient from what the forward left and the gradient of context.
  virtual void backward(const CudaQueue& queue, const AttentionTensors& of,
                        CUdeviceptr qkv_gradient, CUdeviceptr context_gradient) const = 0;
};

/// By products with a softmax between them, of all samples, or of so many that their scores, which
/// are in memory, take no more than 256 MiB; the backward makes them again.
std::unique_ptr<Attention> unfused_attention(const AttentionBlock& settings, const LayerSite& site);

/// In one kernel forward and two backward, without scores in memory; null where there is none for
/// this type and head size.
std::unique_ptr<Attention> fused_attention(const AttentionBlock& settings, const LayerSite& site);

/// The faster of the two, forward and backward together, on the site's device: as the queue's
/// choices have it, or timed and put there. Fused where the memory does not hold the scores.
std::unique_ptr<Attention> make_attention(const AttentionBlock& settings, const LayerSite& site);

}  // namespace plumbline::cuda
