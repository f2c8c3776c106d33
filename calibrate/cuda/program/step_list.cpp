// Clocks and shelves.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/step_list.h"

#include <algorithm>

namespace plumbline {

void StepList::open(std::size_t streams) {
  clocks_.assign(streams, Clock(streams, 0));
  due_.resize(streams);
}

void StepList::wait(std::uint32_t stream, const std::vector<std::uint32_t>& steps) {
  due_[stream].insert(due_[stream].end(), steps.begin(), steps.end());
}

std::vector<std::uint32_t> StepList::newest(const std::vector<std::uint32_t>& steps) const {
  std::map<std::uint32_t, std::uint32_t> by_stream;
  for (const std::uint32_t step : steps) {
    std::uint32_t& last = by_stream.try_emplace(program_.steps[step].stream, step).first->second;
    last = std::max(last, step);
  }
  std::vector<std::uint32_t> last;
  last.reserve(by_stream.size());
  for (const auto& [stream, step] : by_stream) last.push_back(step);
  return last;
}

std::vector<std::uint32_t> StepList::take_waits(std::uint32_t stream) {
  std::vector<std::uint32_t> steps = newest(std::exchange(due_[stream], {}));
  std::sort(steps.rbegin(), steps.rend());  // the newest one implies the most
  Clock& clock = clocks_[stream];
  std::vector<std::uint32_t> waits;
  for (const std::uint32_t step : steps) {
    const std::uint32_t other = program_.steps[step].stream;
    if (other == stream || clock[other] > step) continue;
    waits.push_back(step);
    const Clock& known = ends_[step];
    for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], known[s]);
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

std::uint32_t StepList::append(CudaStep step) {
  const auto number = static_cast<std::uint32_t>(program_.steps.size());
  Clock& clock = clocks_[step.stream];
  clock[step.stream] = number + 1;
  ends_.push_back(clock);
  program_.steps.push_back(std::move(step));
  return number;
}

Held StepList::take(std::uint32_t slot, std::size_t bytes, std::uint32_t stream,
                    bool is_gradients) {
  if (bytes == 0) return nullptr;
  Shelf& shelf = (is_gradients ? gradient_shelves_ : shelves_)[{slot, bytes}];
  const Clock& clock = clocks_[stream];
  auto found = std::find_if(shelf.free.begin(), shelf.free.end(), [&](const Lease& lease) {
    return std::all_of(lease.used.begin(), lease.used.end(),
                       [&](const auto& use) { return clock[use.first] >= use.second; });
  });
  auto* lease = new Lease;
  if (found != shelf.free.end()) {
    lease->block = found->block;
    shelf.free.erase(found);
  } else {
    lease->block = static_cast<std::uint32_t>(program_.blocks.size());
    program_.blocks.push_back({slot, bytes, is_gradients});
  }
  return {lease, [&shelf](Lease* back) {
            shelf.free.push_back(std::move(*back));
            delete back;
          }};
}

void StepList::used(std::uint32_t step, std::initializer_list<const Held*> all) {
  const std::uint32_t stream = program_.steps[step].stream;
  for (const Held* held : all) {
    if (*held) (*held)->used[stream] = step + 1;
  }
}

}  // namespace plumbline
