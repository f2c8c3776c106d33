// The machine's time: reading it, and waiting for a point in it exactly.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

namespace plumbline {

/// A point in real time: nanoseconds of the machine's steady clock, the same on all threads.
using RealTime = std::int64_t;

RealTime now();

/// Waits until `deadline`, or until `stop` is set. It sleeps while the deadline is far off, so that
/// 8 devices can run on 2 cores. Shortly before the deadline it polls, because a sleeping thread
/// wakes some 50 us late. Between two polls other threads may run: a thread that only spins would
/// lose its core for milliseconds when another one needs it.
void wait_until(RealTime deadline, const std::atomic<bool>& stop);

/// One pause between two polls for an event that is not expected before `earliest`.
void pause_before(RealTime earliest);

/// Asks the system to wake this thread without the usual slack of 50 us.
void wake_exactly();

/// The cores that this process may use; at least 1.
unsigned usable_cores();

}  // namespace plumbline
