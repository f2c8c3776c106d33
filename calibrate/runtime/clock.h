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

/// Waits until `deadline`, or until `stop` is set. It sleeps while the end is far off, because 8
/// devices shall run on 2 cores, and looks again and again before it, because a sleeper is woken
/// some 50 us late. Between two looks others may run: a thread that only spins would be taken off
/// its core for milliseconds when another one needs it.
void wait_until(RealTime deadline, const std::atomic<bool>& stop);

/// The pause between two looks for something that is not to be expected before `earliest`.
void pause_before(RealTime earliest);

/// Asks the system to wake this thread without the usual slack of 50 us.
void wake_exactly();

/// The cores that this process may use; at least 1.
unsigned usable_cores();

}  // namespace plumbline
