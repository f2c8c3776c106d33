// Events are queried one by one, in the order of each device's steps.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/device_progress.h"

#include <algorithm>

namespace plumbline {

DeviceProgress::DeviceProgress(CurrentDevice& current, const OpGraph& graph,
                               const CudaProgram& program)
    : current_(current), graph_(graph), program_(program), on_device_(graph.slots()) {
  for (std::uint32_t i = 0; i < program_.steps.size(); ++i) {
    const CudaStep& step = program_.steps[i];
    if (!step.sends) on_device_[step.slot].steps.push_back(i);
  }
  signals_.resize(program_.steps.size());
}

void DeviceProgress::make_signal(std::uint32_t step) {
  signals_[step] = CudaEvents(current_.driver(), 1, CU_EVENT_DISABLE_TIMING);
}

bool DeviceProgress::has_ended(CUevent event) const {
  const CUresult result = current_.driver().cuEventQuery(event);
  if (result == CUDA_ERROR_NOT_READY) return false;
  check_cuda(current_.driver(), "cuEventQuery", result);
  return true;
}

void DeviceProgress::end_all() {
  for (OnDevice& one : on_device_) {
    one.ended = one.steps.size();
    one.awaits = kNone32;
  }
}

bool DeviceProgress::come_on(std::uint32_t slot) {
  OnDevice& mine = on_device_[slot];
  const std::size_t before = mine.ended;
  for (std::size_t i = mine.ended; i < mine.steps.size(); ++i) {
    if (!program_.steps[mine.steps[i]].signals) continue;
    if (!has_ended(signals_[mine.steps[i]][0])) break;
    mine.ended = i + 1;
  }
  mine.awaits = mine.ended == mine.steps.size() ? first_awaited(slot) : kNone32;
  return mine.ended > before;
}

std::optional<Hang> DeviceProgress::find_hang(RealTime still, RealTime patience) const {
  if (still <= patience) return std::nullopt;
  RealTime longest = 0;
  std::uint32_t late = 0;
  const std::vector<DeviceStand> all = stands(/*is_prepared=*/true);
  for (std::uint32_t slot = 0; slot < all.size(); ++slot) {
    if (all[slot].state != DeviceStand::State::runs) continue;
    const RealTime hold = graph_.cost(all[slot].node).hold.count();
    if (hold < longest) continue;
    longest = hold;
    late = slot;
  }
  if (still > patience + 20 * longest) return Hang{late, still};
  return std::nullopt;
}

std::vector<DeviceStand> DeviceProgress::stands(bool is_prepared) const {
  std::vector<DeviceStand> all(graph_.slots());
  if (!is_prepared) {
    for (DeviceStand& stand : all) stand.state = DeviceStand::State::starts;
    return all;
  }
  std::vector<bool> ended(program_.steps.size(), false);
  for (const OnDevice& one : on_device_) {
    for (std::size_t i = 0; i < one.ended; ++i) ended[one.steps[i]] = true;
  }
  for (std::uint32_t slot = 0; slot < all.size(); ++slot)
    all[slot] = stand_of(on_device_[slot], ended);
  return all;
}

std::uint32_t DeviceProgress::first_awaited(std::uint32_t slot) {
  for (const std::uint32_t step : program_.awaited[slot]) {
    current_.use(program_.steps[step].slot);
    if (!has_ended(signals_[step][0])) return step;
  }
  return kNone32;
}

DeviceStand DeviceProgress::stand_of(const OnDevice& mine, const std::vector<bool>& ended) const {
  DeviceStand stand;
  if (mine.awaits != kNone32) {
    stand.state = DeviceStand::State::runs;
    stand.node = program_.steps[mine.awaits].node;
  }
  if (mine.ended == mine.steps.size()) return stand;
  const CudaStep& step = program_.steps[mine.steps[mine.ended]];
  stand.state = DeviceStand::State::runs;
  stand.node = step.node;
  if (const auto before = lacks(step, ended)) {
    stand.state = DeviceStand::State::waits;
    stand.waits_for = program_.steps[*before].node;
  }
  return stand;
}

std::optional<std::uint32_t> DeviceProgress::lacks(const CudaStep& step,
                                                   const std::vector<bool>& ended) const {
  for (const std::uint32_t before : step.waits) {
    if (!program_.steps[before].sends && !ended[before]) return before;
  }
  for (const std::uint32_t before : step.waits) {
    if (program_.steps[before].sends && !is_on_its_way(before, ended)) return before;
  }
  return std::nullopt;
}

bool DeviceProgress::is_on_its_way(std::uint32_t copy, const std::vector<bool>& ended) const {
  std::vector<std::uint32_t> open = {copy};
  std::vector<bool> seen(program_.steps.size(), false);
  while (!open.empty()) {
    const std::uint32_t one = open.back();
    open.pop_back();
    if (seen[one]) continue;
    seen[one] = true;
    const CudaStep& step = program_.steps[one];
    if (!step.sends) {
      if (!ended[one]) return false;
      continue;
    }
    open.insert(open.end(), step.waits.begin(), step.waits.end());
    for (std::uint32_t before = one; before-- > 0;) {
      if (program_.steps[before].stream != step.stream) continue;
      open.push_back(before);
      break;
    }
  }
  return true;
}

}  // namespace plumbline
