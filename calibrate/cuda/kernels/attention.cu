// The softmax between the two products of attention.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// The keys [first, end) that the query of this block sees: if causal, itself and those before it,
/// of these the last `window` unless that is 0.
struct KeysSeen {
  long long first, end;

  __device__ bool has(long long key) const { return key >= first && key < end; }
};

__device__ inline KeysSeen keys_seen(long long tokens, int causal, long long window) {
  const long long query = blockIdx.x % tokens;
  return {window > 0 && query + 1 > window ? query + 1 - window : 0,
          causal != 0 ? query + 1 : tokens};
}

/// Turns scores [heads, queries, keys] into probabilities in place and writes the logsumexp of each
/// row. Keys that are not seen become 0. One block per row; queries = keys = tokens.
template <class T>
__device__ void attention_softmax(T* scores, float* logsumexp, long long tokens, int causal,
                                  long long window) {
  T* row = scores + blockIdx.x * tokens;
  const KeysSeen seen = keys_seen(tokens, causal, window);
  float largest = to_float(row[seen.first]);
  for (long long i = seen.first + threadIdx.x; i < seen.end; i += blockDim.x) {
    const float score = to_float(row[i]);
    largest = score > largest ? score : largest;
  }
  largest = block_maximum(largest);
  float sum = 0;
  for (long long i = seen.first + threadIdx.x; i < seen.end; i += blockDim.x)
    sum += expf(to_float(row[i]) - largest);
  sum = block_sum(sum);
  const float share = 1.0F / sum;
  for (long long i = threadIdx.x; i < tokens; i += blockDim.x)
    store(row[i], seen.has(i) ? expf(to_float(row[i]) - largest) * share : 0.0F);
  if (threadIdx.x == 0) logsumexp[blockIdx.x] = largest + logf(sum);
}

/// The backward, from the same scores. Turns them into the probabilities P again, and the gradient
/// of P into that of the scores, P (dP - sum(P dP)), each in place. One block per row.
template <class T>
__device__ void attention_softmax_gradient(T* scores, T* gradient, const float* logsumexp,
                                           long long tokens, int causal, long long window) {
  T* row = scores + blockIdx.x * tokens;
  T* row_gradient = gradient + blockIdx.x * tokens;
  const KeysSeen seen = keys_seen(tokens, causal, window);
  const float normalizer = logsumexp[blockIdx.x];
  float sum = 0;
  for (long long i = seen.first + threadIdx.x; i < seen.end; i += blockDim.x)
    sum += expf(to_float(row[i]) - normalizer) * to_float(row_gradient[i]);
  sum = block_sum(sum);
  for (long long i = threadIdx.x; i < tokens; i += blockDim.x) {
    const float p = seen.has(i) ? expf(to_float(row[i]) - normalizer) : 0.0F;
    store(row[i], p);
    store(row_gradient[i], seen.has(i) ? p * (to_float(row_gradient[i]) - sum) : 0.0F);
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(attention_softmax,
                 (Element * scores, float* logsumexp, long long tokens, int causal,
                  long long window),
                 (scores, logsumexp, tokens, causal, window))
PLUMBLINE_KERNEL(attention_softmax_gradient,
                 (Element * scores, Element* gradient, const float* logsumexp, long long tokens,
                  int causal, long long window),
                 (scores, gradient, logsumexp, tokens, causal, window))
