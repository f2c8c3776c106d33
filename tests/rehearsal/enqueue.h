// How the made-up libraries put work on the made-up GPU.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

extern "C" {

/// Enqueues the work of a kernel that holds `sms` of its stream's SMs, at most all of them, and
/// moves `bytes` bytes of the device's memory. `act` then does the work; null = no work. `forget`
/// gets the argument when it is no longer needed. Returns a CUresult.
int plumbline_rehearsal_enqueue(CUstream stream, const char* what, double nanoseconds, double bytes,
                                double sms, void (*act)(void*), void* argument,
                                void (*forget)(void*));

/// The SMs of the stream's context; 0 = there is no such stream.
unsigned plumbline_rehearsal_sms(CUstream stream);
}
