// The synthetic backend: ops take exactly the time that the model says, so the true time is known.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/runtime/backend.h"
#include "sim/scenario/noise.h"

namespace plumbline {

/// Its ops take the time that the model says, with `noise`. Its workers sleep until shortly before
/// the end of an op and then spin, so that 8 devices run on 2 cores. Time beyond that end counts as
/// lost.
std::unique_ptr<Backend> synthetic_backend(const Noise& noise);

}  // namespace plumbline
