// Turns of walkers that are not timed.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/work_beside.h"

#include <algorithm>
#include <cmath>

#include "base/bug.h"
#include "calibrate/cuda/driver/stopwatch.h"

namespace plumbline {
namespace {

/// Turns by which the time of one is found.
constexpr std::size_t kTimedTurns = 4;
/// A stream takes some 1,000 launches before the host waits; a turn has two.
constexpr double kMostTurns = 400;

}  // namespace

CudaWorkBeside::CudaWorkBeside(CudaDevices& devices,
                               std::vector<std::unique_ptr<CudaStageTimer>>& walkers)
    : devices_(devices), walkers_(walkers) {
  PLUMBLINE_CHECK(!walkers.empty() && walkers.size() < devices.all().size(), walkers.size());
  const std::size_t first = devices.all().size() - walkers.size();
  for (std::size_t device = 0; device < first; ++device) {
    PLUMBLINE_CUDA(devices.driver(), cuCtxSetCurrent, devices.all()[device].context);
    begins_.emplace_back(devices.driver(), 1, CU_EVENT_DISABLE_TIMING);
  }
  for (std::size_t i = 0; i < walkers.size(); ++i) {
    PLUMBLINE_CUDA(devices.driver(), cuCtxSetCurrent, devices.all()[first + i].context);
    walkers[i]->prepare();
    CudaStopwatch stopwatch(devices, first + i);
    const double all = stopwatch.time([&] {
      for (std::size_t turn = 0; turn < kTimedTurns; ++turn) walkers[i]->enqueue_untimed_turn();
    });
    turn_times_.push_back(std::max(all / kTimedTurns, 1.0));
  }
}

CudaWorkBeside::~CudaWorkBeside() {
  wait();
  devices_.driver().cuCtxSetCurrent(devices_.all().front().context);
}

bool CudaWorkBeside::lasts(std::uint32_t workers, double nanoseconds) const {
  return std::all_of(turn_times_.begin(), turn_times_.begin() + workers,
                     [&](double turn) { return kMostTurns * turn >= nanoseconds; });
}

void CudaWorkBeside::enqueue(std::size_t first, std::uint32_t workers, double nanoseconds) const {
  PLUMBLINE_CHECK(workers >= 1 && workers <= walkers_.size() && lasts(workers, nanoseconds),
                  workers, walkers_.size(), nanoseconds);
  const CudaDriver& driver = devices_.driver();
  const CudaDevice& on = devices_.all()[first];
  CUevent begins = begins_[first][0];
  PLUMBLINE_CUDA(driver, cuCtxSetCurrent, on.context);
  PLUMBLINE_CUDA(driver, cuEventRecord, begins, on.compute);
  const std::size_t others = devices_.all().size() - walkers_.size();
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < workers; ++i) {
    turns.push_back(static_cast<std::size_t>(std::ceil(nanoseconds / turn_times_[i])));
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, devices_.all()[others + i].context);
    PLUMBLINE_CUDA(driver, cuStreamWaitEvent, walkers_[i]->queue().stream, begins, 0);
  }
  for (std::size_t turn = 0; turn < *std::max_element(turns.begin(), turns.end()); ++turn) {
    for (std::size_t i = 0; i < workers; ++i) {
      if (turn >= turns[i]) continue;
      PLUMBLINE_CUDA(driver, cuCtxSetCurrent, devices_.all()[others + i].context);
      walkers_[i]->enqueue_untimed_turn();
    }
  }
}

void CudaWorkBeside::wait() const noexcept {
  const std::size_t others = devices_.all().size() - walkers_.size();
  for (std::size_t i = 0; i < walkers_.size(); ++i) {
    devices_.driver().cuCtxSetCurrent(devices_.all()[others + i].context);
    devices_.driver().cuStreamSynchronize(walkers_[i]->queue().stream);
  }
}

}  // namespace plumbline
