// Comparison of two labels in all that counts.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/plan_labels.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace plumbline {
namespace {

auto key(const Label& label) {
  return std::tie(label.devices, label.stages, label.traffic, label.last, label.replicas,
                  label.position);
}

std::pair<double, double> length(const Label& label) {
  return {label.period, label.chain.round_trip};
}

}  // namespace

bool is_before(const Label& a, const Label& b) { return key(a) < key(b); }

void LabelRules::keep(std::vector<Label>& labels, const Label& label) {
  comparisons_ += labels.size();
  for (const Label& other : labels) {
    if (bounds_.slack == 0 ? beats(other, label) : nearly_beats(other, label)) return;
  }
  std::erase_if(labels, [&](const Label& other) { return beats(label, other); });
  if (labels.size() < bounds_.max_alternatives) {
    labels.push_back(label);
    return;
  }
  const auto longest =
      std::max_element(labels.begin(), labels.end(),
                       [](const Label& a, const Label& b) { return length(a) < length(b); });
  if (length(label) < length(*longest)) *longest = label;
}

bool LabelRules::beats(const Label& a, const Label& b) const {
  if (a.card > b.card || a.devices > b.devices || a.inputs < b.inputs) return false;
  if (flushed_ && !waits_less(a, b)) return false;
  if (count_stages_ && a.stages > b.stages) return false;
  if (bounds_.fewest) return key(a) <= key(b);
  if (a.period != b.period) return a.period < b.period;
  if (a.card == b.card && a.devices == b.devices && a.inputs == b.inputs && a.chain == b.chain)
    return key(a) <= key(b);
  return true;
}

bool LabelRules::waits_less(const Label& a, const Label& b) const {
  if (as_many_devices_ && a.devices != b.devices) return false;
  return a.chain.reduced <= b.chain.reduced && a.chain.update <= b.chain.update &&
         a.chain.span <= b.chain.span && a.chain.round_trip <= b.chain.round_trip &&
         (b.chain.in_two || !a.chain.in_two);
}

/// Whether a is at most a little longer than b, and no worse otherwise.
bool LabelRules::nearly_beats(const Label& a, Label b) const {
  const double more = 1 + bounds_.slack;
  b.period *= more;
  b.chain = {b.chain.round_trip * more, b.chain.span * more, b.chain.reduced * more,
             b.chain.update * more, b.chain.in_two};
  return beats(a, b);
}

}  // namespace plumbline
