// One observer for the process.
//
// SPDX-License-Identifier: MIT
#include "base/read_observer.h"

#include <atomic>

namespace plumbline {
namespace {

std::atomic<ReadObserver*> observing{nullptr};

}  // namespace

ReadObserver* read_observer() { return observing; }

ReadObserver* observe_reads(ReadObserver* observer) { return observing.exchange(observer); }

}  // namespace plumbline
