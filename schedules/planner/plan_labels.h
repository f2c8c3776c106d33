// Partial plans of the search, and the rules for keeping them.
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

/// The stages from one stage to the end, and their effect on the stages in front.
struct Label {
  double period = 0;  ///< So far; with a flush, the lower bound by the chain.
  double card = 0;    ///< Bytes on the card of the group that the next stage may share.
  double traffic = 0;
  std::uint32_t next = kNoLabel;  ///< The label of the stages behind.
  std::uint32_t last = 0;         ///< The frontier behind its first stage.
  std::uint32_t replicas = 0;     ///< For its first stage.
  std::uint32_t position = 0;     ///< The lowest position of its first stage.
  std::uint32_t devices = 0;
  std::uint32_t stages = 0;
  std::uint32_t inputs = kManyInputs;  ///< Room for inputs on a replica of its first stage.
  FlushChain chain;                    ///< With a flush: across the link if a stage may follow.
};

/// The order of equal plans: fewer devices, fewer stages, less traffic, then the earlier first cut.
bool is_before(const Label& a, const Label& b);

/// Keeps the labels of one cell that no other label beats.
class LabelRules {
 public:
  /// `as_many_devices`: labels are compared only with labels on as many devices, because more
  /// devices make a stage's window larger.
  LabelRules(const SearchBounds& bounds, bool flushed, bool as_many_devices, bool count_stages)
      : bounds_(bounds),
        flushed_(flushed),
        as_many_devices_(as_many_devices),
        count_stages_(count_stages) {}

  /// Adds the label unless another one beats it, and drops the labels that it beats.
  void keep(std::vector<Label>& labels, const Label& label);
  /// Whether there were more comparisons than the bounds allow.
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
