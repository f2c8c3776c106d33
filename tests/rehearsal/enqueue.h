// How the made-up libraries put work on the made-up GPU.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

extern "C" {

/// What a kernel takes that holds `sms` of its stream's SMs (at most all that it has) and moves so
/// many bytes of the device's memory; `act` does it then, null = nothing is done. `forget` gets the
/// argument once it is not needed any more. Returns a CUresult.
int plumbline_rehearsal_enqueue(CUstream stream, const char* what, double nanoseconds, double bytes,
                                double sms, void (*act)(void*), void* argument,
                                void (*forget)(void*));

/// That the stream's context has; 0 = there is no such stream.
unsigned plumbline_rehearsal_sms(CUstream stream);
}
