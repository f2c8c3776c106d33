// Micro-batches that are not all of one length: training.micro_batch_lengths.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

struct Scenario;
class SectionReader;

/// The most different lengths. Each has costs of its own.
inline constexpr std::size_t kMaxLengths = 1000;
/// The largest length, in tokens or in lengths of the model.
inline constexpr double kLongestLength = 1e8;

/// The lengths as the user wrote them: one by one, or to be drawn.
struct LengthChoice {
  Mark mark;
  std::optional<std::vector<Marked<double>>> list;
  std::string list_path;  ///< The key of the list, for messages.
  Marked<double> mean{1, {}};
  double spread = 0;                        ///< The standard deviation over the mean.
  std::optional<Marked<double>> longest{};  ///< Longer ones are cut.
  /// Drawn lengths are rounded up to multiples of it; nothing: to the nearest 32nd of the model's.
  std::optional<Marked<double>> multiple{};
  std::uint64_t seed = 1;
  bool ascending = false;              ///< Each copy runs its shortest first.
  bool descending = false;             ///< Or its longest.
  std::optional<Marked<double>> of{};  ///< The length that the model's times are for.
};

/// Reads `micro_batch_lengths` of the training section, if it is there.
std::optional<LengthChoice> read_lengths(SectionReader& training);

/// The lengths of all micro-batches of a mini-batch.
struct MicroBatchLengths {
  Mark mark;
  double of = 1;                ///< The length that the model's times are for.
  std::vector<double> lengths;  ///< The different ones, ascending.
  /// For each micro-batch the index of its length; copy after copy where copies differ.
  std::vector<std::uint32_t> kind_of;
  /// For each length the scenario as if all micro-batches had it. Only its models are of use.
  std::vector<std::shared_ptr<const Scenario>> scenarios;

  double mean() const;
  /// The shortest of the lengths that is not below the mean.
  double usual() const;
  double longest() const { return lengths.back(); }
};

/// Decides the lengths of `micro_batches` in each of `copies` pipelines. `of`: the tokens of a
/// sample of the model, if they are known; lengths are then whole. A list has a length for each
/// micro-batch, in all copies the same, or one for each of every copy, copy after copy. Drawn
/// lengths are log-normal, scaled to the mean that is asked for, and differ between copies. Errors:
/// a list of another size; a length of 0, or of more than a thousand times the model's, or of less
/// than a thousandth; more than kMaxLengths different ones.
Result<MicroBatchLengths> decide_lengths(const LengthChoice& choice, std::optional<std::int64_t> of,
                                         std::int64_t micro_batches, std::int64_t copies);

/// A remark on these lengths. `derived`: each has layers derived for it.
std::string note_on(const MicroBatchLengths& lengths, bool derived);

/// The scenario with the models of one of its lengths, and no other length.
Scenario with_length(const Scenario& scenario, std::size_t kind);

}  // namespace plumbline
