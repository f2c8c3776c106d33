// A thread as a device: its core and its CPU time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/runtime/clock.h"

namespace plumbline {

/// Pins the calling thread to usable core number `device`, where there are at least `devices`; does
/// nothing where there are fewer.
void pin_to_core(std::uint32_t device, std::uint32_t devices);

/// The cores that the calling thread may run on, and the way to let it run on them again.
std::vector<int> cores_of_thread();
void let_thread_use(const std::vector<int>& cores);

/// The time that the calling thread has run on any core. Real time minus this is the lost time.
RealTime thread_cpu_time();

}  // namespace plumbline
