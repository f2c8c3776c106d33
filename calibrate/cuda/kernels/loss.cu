// Softmax with cross-entropy against one label per row.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// Turns a row of logits into probabilities in place and writes -log p[label] of the row. One block
/// per row.
template <class T>
__device__ void softmax_loss(T* logits, float* row_losses, const int* labels, long long classes) {
  T* row = logits + blockIdx.x * classes;
  const float of_label = to_float(row[labels[blockIdx.x]]);
  float largest = to_float(row[0]);
  for (long long i = threadIdx.x; i < classes; i += blockDim.x) {
    const float logit = to_float(row[i]);
    largest = logit > largest ? logit : largest;
  }
  largest = block_maximum(largest);
  float sum = 0;
  for (long long i = threadIdx.x; i < classes; i += blockDim.x)
    sum += expf(to_float(row[i]) - largest);
  sum = block_sum(sum);
  const float share = 1.0F / sum;
  for (long long i = threadIdx.x; i < classes; i += blockDim.x)
    store(row[i], expf(to_float(row[i]) - largest) * share);
  if (threadIdx.x == 0) row_losses[blockIdx.x] = logf(sum) + (largest - of_label);
}

/// Writes the mean over the rows of each sample; one block per sample.
__device__ inline void sample_losses(float* losses, const float* row_losses,
                                     long long rows_of_sample) {
  const float* row = row_losses + blockIdx.x * rows_of_sample;
  float sum = 0;
  for (long long i = threadIdx.x; i < rows_of_sample; i += blockDim.x) sum += row[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = sum / static_cast<float>(rows_of_sample);
}

/// Writes (p - 1 at the label) x weight of the sample / its rows, for the rows from `first` on; one
/// block per row. `gradient` begins at the row `first`, all else at row 0.
template <class T>
__device__ void logits_gradient(T* gradient, const T* probabilities, const float* loss_weights,
                                const int* labels, long long classes, long long rows_of_sample,
                                long long first) {
  const long long row = first + blockIdx.x;
  const float weight = loss_weights[row / rows_of_sample] / static_cast<float>(rows_of_sample);
  for (long long i = threadIdx.x; i < classes; i += blockDim.x) {
    const float p = to_float(probabilities[row * classes + i]);
    store(gradient[blockIdx.x * classes + i], weight * (i == labels[row] ? p - 1.0F : p));
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(softmax_loss,
                 (Element * logits, float* row_losses, const int* labels, long long classes),
                 (logits, row_losses, labels, classes))
PLUMBLINE_PLAIN_KERNEL(sample_losses,
                       (float* losses, const float* row_losses, long long rows_of_sample),
                       (losses, row_losses, rows_of_sample))
PLUMBLINE_KERNEL(logits_gradient,
                 (Element * gradient, const Element* probabilities, const float* loss_weights,
                  const int* labels, long long classes, long long rows_of_sample, long long first),
                 (gradient, probabilities, loss_weights, labels, classes, rows_of_sample, first))
