// A small data set that a network can learn: drawn from a seed, the same on every machine.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/network/network.h"

namespace plumbline {

/// The most different micro-batches that a run trains on; then they repeat.
inline constexpr std::uint32_t kMaxDifferentMicroBatches = 64;

/// Micro-batches of samples with their labels. Numbers: each class has a centre, and a sample is
/// its class's centre with noise. Token ids: each sequence continues by a fixed rule, and the label
/// of a token is the next one, folded into the classes.
class TrainingData {
 public:
  /// Makes `micro_batches` different ones of `batch` samples each. Requires: a network that ends in
  /// a head.
  TrainingData(const Network& network, std::int64_t batch, std::uint32_t micro_batches,
               std::uint64_t seed);

  std::uint32_t micro_batches() const { return micro_batches_; }
  /// The input of micro-batch m mod micro_batches(). Null where the network takes ids.
  const float* input(std::uint32_t m) const;
  /// The ids; null where the network takes numbers.
  const std::int32_t* ids(std::uint32_t m) const;
  const std::int32_t* labels(std::uint32_t m) const;

 private:
  std::uint32_t micro_batches_;
  std::size_t input_size_;   ///< Per micro-batch.
  std::size_t labels_size_;  ///< Per micro-batch.
  std::vector<float> numbers_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> labels_;
};

}  // namespace plumbline
