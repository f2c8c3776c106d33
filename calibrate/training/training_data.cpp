// Drawing samples.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/training_data.h"

#include <algorithm>
#include <atomic>

#include "base/bug.h"
#include "base/parallel.h"
#include "base/random.h"

namespace plumbline {

TrainingData::TrainingData(const Network& network, std::int64_t batch, std::uint32_t micro_batches,
                           std::uint64_t seed)
    : micro_batches_(micro_batches) {
  const NetworkLayer& last = network.layers.back();
  const auto* head = std::get_if<Head>(&last.settings);
  PLUMBLINE_CHECK(head && micro_batches > 0 && batch > 0, network.name, micro_batches, batch);
  const auto sample_size = static_cast<std::size_t>(network.input.shape.elements());
  const std::size_t rows =
      last.input.extents.size() > 1 ? static_cast<std::size_t>(last.input.extents.front()) : 1;
  const std::size_t samples = static_cast<std::size_t>(batch) * micro_batches;
  input_size_ = sample_size * static_cast<std::size_t>(batch);
  labels_size_ = rows * static_cast<std::size_t>(batch);

  if (network.input.vocabulary) {
    labels_.reserve(rows * samples);
    const auto vocabulary = static_cast<std::uint64_t>(*network.input.vocabulary);
    ids_.reserve(sample_size * samples);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      std::uint64_t token = random_bits(seed, sample) % vocabulary;
      for (std::size_t t = 0; t < sample_size; ++t) {
        ids_.push_back(static_cast<std::int32_t>(token));
        token = (token * 5 + 7) % vocabulary;
        if (t < rows)
          labels_.push_back(
              static_cast<std::int32_t>(token % static_cast<std::uint64_t>(head->classes)));
      }
    }
    return;
  }
  numbers_.resize(sample_size * samples);
  labels_.resize(rows * samples);
  const std::atomic<bool> never{false};
  for_each_parallel(samples, available_cores(), never, [&](std::uint64_t sample) {
    const std::uint64_t label =
        random_bits(seed, sample) % static_cast<std::uint64_t>(head->classes);
    std::fill_n(labels_.begin() + static_cast<std::ptrdiff_t>(sample * rows), rows,
                static_cast<std::int32_t>(label));
    float* const numbers = numbers_.data() + sample * sample_size;
    for (std::size_t i = 0; i < sample_size; ++i) {
      const double centre = random_normal(seed + 1 + label, i);
      const double noise = random_normal(~seed - sample, i);
      numbers[i] = static_cast<float>(centre + 0.5 * noise);
    }
  });
}

const float* TrainingData::input(std::uint32_t m) const {
  return numbers_.empty() ? nullptr : numbers_.data() + m % micro_batches_ * input_size_;
}

const std::int32_t* TrainingData::ids(std::uint32_t m) const {
  return ids_.empty() ? nullptr : ids_.data() + m % micro_batches_ * input_size_;
}

const std::int32_t* TrainingData::labels(std::uint32_t m) const {
  return labels_.data() + m % micro_batches_ * labels_size_;
}

}  // namespace plumbline
