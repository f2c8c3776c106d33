// Partial plans of the search, and which of them are worth keeping.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "schedules/planner/flush_chain.h"
#include "schedules/planner/plan_search.h"

namespace plumbline {

inline constexpr std::uint32_t kNoLabel = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kManyInputs = 1U << 30U;

/// The stages from one on to the end, and what they leave for those in front.
struct Label {
  double period = 0;  ///< So far; with a flush at least what the chain will make of it.
  double card = 0;    ///< Bytes on the card of the group where the next stage may go on.
  double traffic = 0;
  std::uint32_t next = kNoLabel;  ///< The label behind.
  std::uint32_t last = 0;         ///< The frontier behind its first stage.
  std::uint32_t replicas = 0;     ///< Of its first stage.
  std::uint32_t position = 0;     ///< The lowest of its first stage.
  std::uint32_t devices = 0;
  std::uint32_t stages = 0;
  std::uint32_t inputs = kManyInputs;  ///< That one replica of its first stage has room for.
  FlushChain chain;                    ///< With a flush; across the link, where a stage may go on.
};

/// Devices, stages, traffic, then the first cut: what decides between equals, less first.
bool is_before(const Label& a, const Label& b);

/// Keeps, of the labels of one cell, those that no other one beats.
class LabelRules {
 public:
  /// `as_many_devices`: more of them make a stage's window larger, so that labels are compared only
  /// with others on as many.
  LabelRules(const SearchBounds& bounds, bool flushed, bool as_many_devices, bool count_stages)
      : bounds_(bounds),
        flushed_(flushed),
        as_many_devices_(as_many_devices),
        count_stages_(count_stages) {}

  /// Adds the label, unless another one beats it, and drops those that it beats.
  void keep(std::vector<Label>& labels, const Label& label);
  /// Whether more were compared than the bounds allow.
  bool is_spent() const { return comparisons_ > bounds_.max_comparisons; }

 private:
  bool beats(const Label& a, const Label& b) const;
  bool waits_less(const Label& a, const Label& b) const;
  bool nearly_beats(const Label& a, Label b) const;

  const SearchBounds& bounds_;
  bool flushed_;
  bool as_many_devices_;
  bool count_stages_;
  std::uint64_t comparisons_ = 0;
};

}  // namespace plumbline
