// Streams that are held back while the host enqueues on them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/launch.h"
#include "calibrate/cuda/driver/pinned.h"

namespace plumbline {

/// A kernel that spins on one stream until the host sets a flag, and an event behind it for other
/// streams to wait for (as nvbench's blocking kernel). So however long the host takes, nothing
/// begins before all is enqueued. After a time the gate opens by itself: a host that is blocked by
/// full queues, or by a library that waits for the device, goes on, and was_in_time() says so.
class CudaGate {
 public:
  /// The time after which a gate opens by itself.
  static constexpr unsigned long long kPatience = 500'000'000;

  /// Work that is enqueued on the queue after this begins when open() is called; at once unless it
  /// `holds`. Requires: always the same device, with its context current; all work behind the last
  /// gate has ended. Errors: CudaError.
  void close(const CudaQueue& queue, bool holds, unsigned long long patience = kPatience) {
    const CudaDriver& driver = *queue.driver;
    if (opens_.all().empty()) {
      opens_ = CudaEvents(driver, 1, CU_EVENT_DISABLE_TIMING);
      words_ = CudaPinned(driver, words * sizeof(unsigned));
      for (std::size_t i = 0; i < words; ++i) word(i).store(0);
    }
    is_open_ = !holds;
    word(gave_up).store(0);
    if (holds) {
      cuda::launch(queue, "plumbline_wait_for_host", {}, 1, 0, words_.on_device(), ++ticket_,
                   patience);
    }
    PLUMBLINE_CUDA(driver, cuEventRecord, opens_[0], queue.stream);
  }
  /// Lets the work go. No effect on a gate that is open.
  void open() {
    if (!is_open_) word(ticket).store(ticket_);
    is_open_ = true;
  }
  bool is_open() const { return is_open_; }
  /// Whether the host opened the gate before the gate's patience ended; true if the gate held
  /// nothing. Requires: the work behind the gate has ended.
  bool was_in_time() const { return words_.data() == nullptr || word(gave_up).load() == 0; }
  /// The event for other streams that are to begin together with that queue.
  CUevent opens() const { return opens_[0]; }

 private:
  /// The words as plumbline_wait_for_host has them, and their number.
  enum Word : std::uint8_t { ticket, gave_up, words };
  std::atomic_ref<unsigned> word(std::size_t i) const {
    return std::atomic_ref<unsigned>(static_cast<unsigned*>(words_.data())[i]);
  }

  CudaEvents opens_;
  CudaPinned words_;
  unsigned ticket_ = 0;
  bool is_open_ = true;
};

}  // namespace plumbline
